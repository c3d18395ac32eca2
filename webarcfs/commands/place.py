"""The archive of a reader's command: a directory, or the archive behind a mount; whole, or as readers see it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index.links_query import LinkReader, Question
from webarcfs.archive.index.query import Narrowed
from webarcfs.archive.model.errors import NotAnArchive, NotFound, UsageError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.client import mounted
from webarcfs.gate import reader_query
from webarcfs.gate.gate import Gate, Reader, StaffGate
from webarcfs.gate.reader_links import ReaderLinks
from webarcfs.gate.reader_repositories import ReaderRepositories
from webarcfs.lazy_commands import AbsolutePath

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Place:
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

    def must_be_open(self, tag: CommitTag) -> None:
        """Raise NotFound or Forbidden if the reader may not see a snapshot."""
        if self._repositories is not None:
            self._repositories.must_be_open(tag)

    def narrowed(self) -> Narrowed | None:
        """Return what narrows a query to the reader; None where nothing is hidden."""
        return None if self.gate is None else reader_query.narrowed(self.gate)

    def links(self, question: Question) -> LinkReader | None:
        """Return what narrows links to the reader; None where nothing may be hidden."""
        if self.gate is None or self._repositories is None:
            return None
        return ReaderLinks(self.gate, self._repositories, question)


def place_options(command: _F) -> _F:
    """Add the options `--archive`, `--mount`, `--as-reader` and `--reader`; the command gets the `Place`."""
    archive = click.option(
        "--archive", metavar="DIR", help="The archive; else $WEBARC_ARCHIVE, else /srv/webarc.", type=click.Path()
    )
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

    return cast(_F, archive(mount(public(named(with_place)))))


def for_reader(place: Place, reader: Reader) -> Place:
    """Return a place as a reader sees it. Raises UsageError for a mount. Called inside a command."""
    if place.mount is not None:
        raise UsageError("a mount shows all that there is; give --archive with --as-reader")
    return _behind(place, Gate(place.archive, reader))


def _behind(place: Place, gate: Gate) -> Place:
    repositories = click.get_current_context().with_resource(ReaderRepositories(gate))
    return Place(place.archive, place.mount, gate, repositories)


def find(archive: str | None, mount: Path | None) -> Place:
    """Return the place of the options. Raises UsageError for both at once, NotAnArchive without an archive."""
    if archive is not None and mount is not None:
        raise UsageError("give --archive or --mount, not both")
    if mount is None:
        return Place(directory.open_archive(directory.default_root(archive)))
    if found := mounted.behind(mount):
        return Place(found[1], found[0])
    raise NotAnArchive(f"{mount} is in no mounted archive; `mount.webarcfs ARCHIVE {mount}` mounts one")
