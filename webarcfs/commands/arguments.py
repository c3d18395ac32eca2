"""The arguments of a reader's command: the archive, a document by its URL or path, a snapshot by its name.

An archive is a directory, or the one behind a mount; it is whole, or as readers see it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from webarcfs.access import reader_stores
from webarcfs.access.gate import Gate, KnownGate, KnownStaffGate, Reader, StaffGate
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.access.reader_stores import ReaderLinks
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index.links import LinkReader, Question
from webarcfs.archive.index.query import DocumentOrigin, Narrowed
from webarcfs.archive.model.arc_paths import DATA_XML, arc_path, places, second_name, split
from webarcfs.archive.model.errors import BadCondition, NotAnArchive, NotFound, UrlRefused, UsageError
from webarcfs.archive.model.metadata import ANY_ROLE, PAGE_ROLE, RESOURCE_ROLE, CommitTag
from webarcfs.archive.model.urls import canonical
from webarcfs.client import mounted
from webarcfs.commands.completing import complete_hosts, complete_publications
from webarcfs.commands.lazy_commands import AbsolutePath, archive_option
from webarcfs.commands.snapshot_names import Beside, StateAt, VisibleSnapshots, newer_than_latest, parse_name, resolve

# == time ==============================================================================================================


def typed_span(option: str, text: str) -> tuple[int, int]:
    """Return the first second of a year, month, day or span, and the one after its last. Raises UsageError."""
    from webarcfs.search.query_language import parse_span  # noqa: PLC0415 # few commands have times

    try:
        return parse_span(text)
    except BadCondition as error:
        raise UsageError(f"--{option}: {error}") from None


# == place ============================================================================================================


_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ArchiveArgument:
    """An archive, and the mount by which it was given, if any; with a `gate`, as its reader sees it.

    Where something is discarded, staff have a gate, too.
    """

    archive: Archive
    mount: Path | None = None
    gate: Gate | None = None
    _repositories: ReaderRepositories | None = None

    def repository(self, domain: str) -> Repository:
        """Return the repository of a domain. Raises NotFound for an unknown domain."""
        if domain not in set(self.archive.domains()):
            raise NotFound(f"the archive has no domain {domain!r}")
        if self._repositories is not None:
            return self._repositories.open(domain)
        return Repository(self.archive.repository(domain))

    @property
    def reader(self) -> ReaderRepositories | None:
        """The repositories as the reader sees them; None where nothing is hidden from staff."""
        return self._repositories

    def known_gate(self) -> KnownGate:
        """Return a gate that remembers, for many questions; of staff also where nothing is hidden from them."""
        if self.gate is None or self.gate.is_staff:
            return KnownStaffGate(self.archive)
        return KnownGate(self.archive, self.gate.reader)

    def must_be_open(self, tag: CommitTag) -> None:
        """Raise NotFound or Forbidden if the reader may not see a snapshot."""
        if self._repositories is not None:
            self._repositories.must_be_open(tag)

    def narrowed(self) -> Narrowed | None:
        """Return what narrows a query to the reader; None where nothing is hidden."""
        return None if self.gate is None else reader_stores.narrowed(self.gate)

    def links(self, question: Question) -> LinkReader | None:
        """Return what narrows links to the reader; None where nothing may be hidden."""
        if self.gate is None or self._repositories is None:
            return None
        return ReaderLinks(self.gate, self._repositories, question)


def place_options(command: _F) -> _F:
    """Add the options `--archive`, `--mount`, `--as-reader` and `--reader`; the command gets `place`."""
    mount = click.option(
        "--mount", metavar="DIR", help="A mount of the archive, or a path inside one.", type=AbsolutePath()
    )
    public = click.option("--as-reader", is_flag=True, help="Show only what readers may see: what is released.")
    named = click.option("--reader", metavar="NAME", help="As --as-reader, for the reader of this name.")

    @functools.wraps(command)
    def with_place(
        *args: Any, archive: str | None, mount: Path | None, as_reader: bool, reader: str | None, **options: Any
    ) -> Any:
        place = find(archive, mount)
        if as_reader or reader is not None:
            place = for_reader(place, Reader(reader or ""))
        elif (gate := StaffGate(place.archive)).is_needed:
            place = _behind(place, gate)
        return command(*args, place=place, **options)

    return cast(_F, archive_option(mount(public(named(with_place)))))


def origin_options(command: _F) -> _F:
    """Add the options `--domain` and `--publication`; the command gets `origin`."""
    of_domain = click.option(
        "--domain", default="", metavar="HOST", shell_complete=complete_hosts, help="Only of this host."
    )
    of_publication = click.option(
        "--publication",
        default="",
        metavar="NAME",
        shell_complete=complete_publications,
        help="Only what this publication stored.",
    )

    @functools.wraps(command)
    def with_origin(*args: Any, domain: str, publication: str, **options: Any) -> Any:
        return command(*args, origin=DocumentOrigin(domain_of(domain) if domain else "", publication), **options)

    return cast(_F, of_domain(of_publication(with_origin)))


def domain_of(text: str) -> str:
    """Return the domain that a host's name spells: in lower case, IDNA in punycode, with its port unless that is usual.

    The archive need not have it. Raises UsageError for what is no host.
    """
    scheme = "https" if text.endswith(":443") else "http"
    if any(mark in text for mark in "/?#@\\") or text != text.strip():
        raise UsageError(f"{text!r} is no host; give its name alone, such as www.example.org")
    try:
        return split(arc_path(canonical(f"{scheme}://{text}/")))[0]
    except UrlRefused as error:
        raise UsageError(f"{text!r} is no host: {error}") from None


def roles_of(role: str) -> frozenset[str]:
    """Return the roles of documents that the option `--role` means."""
    return frozenset({PAGE_ROLE, RESOURCE_ROLE} if role == ANY_ROLE else {role})


def for_reader(place: ArchiveArgument, reader: Reader) -> ArchiveArgument:
    """Return a place as a reader sees it. Raises UsageError for a mount. Called inside a command."""
    if place.mount is not None:
        raise UsageError("a mount shows all that there is; give --archive with --as-reader")
    return _behind(place, Gate(place.archive, reader))


def _behind(place: ArchiveArgument, gate: Gate) -> ArchiveArgument:
    repositories = click.get_current_context().with_resource(ReaderRepositories(gate))
    return ArchiveArgument(place.archive, place.mount, gate, repositories)


def find(archive: str | None, mount: Path | None) -> ArchiveArgument:
    """Return the place of the options. Raises UsageError for both at once, NotAnArchive without an archive."""
    if archive is not None and mount is not None:
        raise UsageError("give --archive or --mount, not both")
    if mount is None:
        return ArchiveArgument(directory.open_archive(directory.default_root(archive)))
    if mount_and_archive := mounted.behind(mount):
        return ArchiveArgument(mount_and_archive[1], mount_and_archive[0])
    raise NotAnArchive(f"{mount} is in no mounted archive; `mount.webarcfs ARCHIVE {mount}` mounts one")


#: What stands beside a name that stands alone.
_NOTHING = Beside()


# == targets ==========================================================================================================


@dataclass(frozen=True, slots=True)
class Target:
    """A document: its domain's repository, and its ARC's path in it."""

    store: Repository
    domain: str
    arc: str
    url: str = ""  # where it was named by its URL


def document(place: ArchiveArgument, text: str) -> Target:
    """Return the document of a URL, of a path in metadata (`/www.example.org/index.html`), or of one below the mount.

    It need not be in any snapshot. Raises UsageError for any other text, NotFound for a domain that is not in the
    archive.
    """
    if "://" in text:
        try:
            domain, arc = split(arc_path(url := canonical(text)))
        except UrlRefused as error:
            raise UsageError(f"{text}: {error}") from None
        store = place.repository(domain)
        head, second = store.head(), second_name(arc, url)
        if head is not None and store.find(head.tree, f"{second}/{DATA_XML}") is not None:
            arc = second
    else:
        url = ""
        domain, arc = split(_inside(place, text))
    arc = arc.strip("/")
    if not arc or any(part in ("", ".", "..") for part in (domain, *arc.split("/"))):
        raise UsageError(f"{text!r} names no document; give a URL, or a path such as /www.example.org/index.html")
    return Target(place.repository(domain), domain, arc, url)


def arc_in(target: Target, store: Repository, tree: str) -> str:
    """Return the path of a document in the tree of one snapshot.

    That of a URL may be the second name of its place there and the first one at present, or the other way round.
    """
    names = places(target.url) if target.url else ()
    return next((arc for arc in names if store.find(tree, f"{arc}/{DATA_XML}") is not None), target.arc)


def tag(place: ArchiveArgument, text: str, beside: Beside = _NOTHING) -> tuple[CommitTag, Repository]:
    """Return the snapshot of a name, and its domain's repository. A whole commitTag's snapshot need not exist.

    `beside` says of which host it is, if the name does not. Prints the commitTag where the name is a short one. Raises
    UsageError for a name of several snapshots, NotFound, or Forbidden, for one that the reader may not see.
    """
    snapshots = VisibleSnapshots(place.archive, place.gate)
    commit_tag = resolve(text, snapshots, beside)
    store = place.repository(commit_tag.domain)
    return _opened(place, text, commit_tag, newer_than_latest(text, commit_tag, snapshots, beside)), store


def named(place: ArchiveArgument, text: str, beside: Beside = _NOTHING) -> CommitTag:
    """Return the snapshot of a name, as `tag` does; that of a whole commitTag may be of an unknown domain."""
    snapshots = VisibleSnapshots(place.archive, place.gate)
    commit_tag = resolve(text, snapshots, beside)
    return _opened(place, text, commit_tag, newer_than_latest(text, commit_tag, snapshots, beside))


def _opened(place: ArchiveArgument, text: str, commit_tag: CommitTag, newer: Sequence[CommitTag]) -> CommitTag:
    """Print which snapshot a short name is of, and the newer ones that `latest` does not count."""
    place.must_be_open(commit_tag)
    if text != str(commit_tag):
        click.echo(f"webarc: {text} is {commit_tag}", err=True)
    if newer:
        snapshots = "a newer snapshot is" if len(newer) == 1 else f"{len(newer):,} newer snapshots are"
        which = newer[0] if len(newer) == 1 else f"the newest is {newer[0]}"
        click.echo(f"webarc: {snapshots} of no complete crawl, and not counted: {which}", err=True)
    return commit_tag


def host_of(place: ArchiveArgument, text: str) -> str:
    """Return the host of a URL, or of a path in the archive, or below the mount. Raises UsageError for another text."""
    try:
        return split(arc_path(canonical(text)) if "://" in text else _inside(place, text))[0]
    except UrlRefused as error:
        raise UsageError(f"{text}: {error}") from None


def moment(place: ArchiveArgument, text: str | None, beside: Beside = _NOTHING) -> CommitTag | datetime | None:
    """Return the snapshot that a text names, or the time that it spells: that is the state of every host. None: None.

    A time is of one host where the text itself names that. It raises what `tag` does.
    """
    if text is None:
        return None
    name = parse_name(text)
    if isinstance(name, StateAt) and not name.of:
        return name.end
    return named(place, text, beside)


def _inside(place: ArchiveArgument, text: str) -> str:
    """Turn a path below the mount into one in the archive."""
    if place.mount is not None:
        path = Path(text).absolute()
        if path.is_relative_to(place.mount):
            return str(path.relative_to(place.mount))
    return text
