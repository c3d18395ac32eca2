"""Reads exported WARCs into git, and puts the trees of their snapshots together again, without any ref.

Trees are made from the rows of a snapshot and the tree that was exported before it. What the rows name stays or comes;
all else of the tree before goes. Two trees are made at once: the snapshot's, and that which its publication saw, where
its record names one. Both must have the ids that the record names.

What browsers showed of pages is put beside the snapshots, form by form, before these are published (`store_forms`).

`Intake` makes a blob of each body, in the repository of its domain. A body is stored once its record is known to be
whole. A process that is killed leaves objects only, and the next one finds them: git's importer keeps none twice.

The records of an exported snapshot become values, each checked.

Nothing is taken as a path: the place of a document is that of its URL, and names of additions obey the rules of names.
So a file that someone made up yields nothing that an archive could not have.

What the records name becomes rows of bytes, which sort by domain, time and place. Files may be given in any order, and
one snapshot's records may be in several of them; so all rows are collected first. A row has no more than the id of a
blob, whatever the size of the body.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import IO
from urllib.parse import unquote, unquote_to_bytes

from agent.crawl.job_folder import publication_of
from agent.importing.foreign import ForeignRecord, Report, Step, printable
from agent.importing.import_sources import Source, parts_of
from webarcfs.archive.additions.placement import check_names
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import RefUpdate, Repository
from webarcfs.archive.git.writing import FastImport, Rewriting
from webarcfs.archive.history import redirect_lists, rendered_forms
from webarcfs.archive.history.versions import leads_to_arcs
from webarcfs.archive.model.arc_paths import (
    DATA_XML,
    DEEPEST,
    HEADERS,
    arc_path,
    is_data_file,
    places,
    second_path,
    split,
)
from webarcfs.archive.model.errors import Damaged, InvalidDocument, NotFound, NotPermitted, UrlRefused
from webarcfs.archive.model.metadata import CommitTag, compact_time, now, parse_compact_time
from webarcfs.archive.model.url_lists import MOST_LINES, REDIRECTS, Redirect, is_inside, place_of, read_list
from webarcfs.archive.model.urls import domain_of
from webarcfs.archive.system import locks
from webarcfs.archive.system.files import Sorter, blob_id
from webarcfs.export.selection import documents
from webarcfs.warc.foreign_files import LONGEST_HEAD
from webarcfs.warc.request_key import parts_of as request_key_parts_of

# == records, pure ====================================================================================================


#: The fields that only our exports have.
TAG = "webarcfs-commit-tag"
SNAPSHOT = "urn:webarcfs:snapshot:"
ADDITION = "urn:webarcfs:addition:"
MET = "urn:webarcfs:met:"
#: Bytes of a snapshot's record that are read.
LONGEST_SNAPSHOT = 1 << 20
#: Bytes of a list of what a crawl met that are read: of twenty million URLs.
LONGEST_MET = 1 << 26
#: How far clocks may differ: a snapshot of the future would stay the newest one.
_SKEW = timedelta(days=1)
_TREE = re.compile(r"[0-9a-f]{40}")
_SOURCE = re.compile(r"sha256:([0-9a-f]{64})")
_DATA = re.compile(r"data(\.orig)?(\.[a-z0-9]{1,16})?", re.ASCII)
_JOB = re.compile(r"\d{8}T\d{6}-[A-Za-z0-9._-]{1,100}(\+[A-Za-z0-9._-]{1,100})?", re.ASCII)
_NUMBER = re.compile(r"\d{1,12}", re.ASCII)
#: The words of fields that a snapshot's record may lack.
_WORDS = {
    "errors": ("kept", "no"), "copies": ("kept", "no"), "resources": ("kept", "alone"), "secrets": ("shown",),
    "met": ("listed", "unknown"),
}  # fmt: skip
_TAB = "%09"
_NO_NAME = "-"
_TIME = len("2026-11-21T02:00:00Z")


@dataclass(frozen=True, slots=True)
class NamedSnapshot:
    """A snapshot as its record names it. `before` is the tree that its revisits refer to; `time` is in seconds.

    `met_is_listed`: there is a list of what its crawl met unchanged.
    """

    tag: CommitTag
    publication: str
    job: str
    complete: bool
    held: bool
    errors: bool
    copies: bool
    resources: str
    sequence: int
    tree: str
    seen: str
    before: str
    sources: tuple[str, ...]
    time: int
    ended: tuple[str, ...] = ()
    imported_by: str = ""
    secrets: bool = False
    met_is_listed: bool = False
    patch: str = ""


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document at `arc`, in the file `name`. `stored`: its body is in this record; otherwise it is that of `before`.

    `seen`: the publication saw it.
    """

    tag: CommitTag
    arc: str
    name: str
    stored: bool
    seen: bool


@dataclass(frozen=True, slots=True)
class NamedFile:
    """Another file of an ARC: data.xml, the head, an addition. `only_seen`: it is what the publication saw."""

    tag: CommitTag
    arc: str
    name: str
    stored: bool
    seen: bool
    only_seen: bool = False


@dataclass(frozen=True, slots=True)
class NamedRedirect:
    """A line of a list of redirects. `only_seen`: of the list that the publication saw."""

    tag: CommitTag
    redirect: Redirect
    seen: bool
    only_seen: bool = False


@dataclass(frozen=True, slots=True)
class NamedMet:
    """The list of what a snapshot's crawl met unchanged."""

    tag: CommitTag


@dataclass(frozen=True, slots=True)
class NamedForm:
    """A file of what a browser showed of a document; `tree` is the id of the whole form."""

    tag: CommitTag
    arc: str
    tree: str
    name: str
    stored: bool = True


Named = NamedDocument | NamedFile | NamedRedirect | NamedMet | NamedForm


def is_snapshot(fields: Mapping[str, str]) -> bool:
    """Return whether the record with these fields names a snapshot."""
    return fields.get("warc-type") == "metadata" and _uri(fields).startswith(SNAPSHOT)


def read_snapshot(fields: Mapping[str, str], block: bytes) -> NamedSnapshot:
    """Return what a snapshot's record names. Raises Damaged for anything that an archive could not have."""
    lines = [line.partition(":") for line in block.decode("utf-8", "replace").splitlines() if line.strip()]
    pairs = [(name.strip().lower(), value.strip()) for name, _, value in lines]
    values = dict(pairs)
    tag = _tag(values.get("committag", ""))
    if _uri(fields) != f"{SNAPSHOT}{tag}":
        raise Damaged(f"the record of {_uri(fields)} names {tag}")
    sources, ended = ([value for name, value in pairs if name == field_name] for field_name in ("source", "source-end"))
    faults = [
        *(f"{name} {values.get(name)!r}" for name in ("complete", "held") if values.get(name) not in ("yes", "no")),
        *(f"{name} {values[name]!r}" for name, words in _WORDS.items() if values.get(name, "") not in {*words, ""}),
        *(
            f"{name} {values.get(name)!r}"
            for name in ("sequence", "time")
            if not _NUMBER.fullmatch(values.get(name, ""))
        ),
        *(
            f"{name} {values[name]!r}"
            for name in ("seen", "before")
            if values.get(name) and not _TREE.fullmatch(values[name])
        ),
        *([] if _TREE.fullmatch(values.get("tree", "")) else [f"tree {values.get('tree')!r}"]),
        *(f"source {source!r}" for source in (*sources, *ended) if not _SOURCE.fullmatch(source)),
        *_strange_names(*(values.get(name, "") for name in ("publication", "job", "patch", "import"))),
    ]
    if not faults and int(values["time"]) > (now() + _SKEW).timestamp():
        faults.append(f"time {values['time']}")
    if faults:
        raise Damaged(f"{tag}: its record cannot be right: {', '.join(faults)}")
    return NamedSnapshot(
        tag=tag,
        publication=values["publication"],
        job=values.get("job", ""),
        patch=values.get("patch", ""),
        complete=values["complete"] == "yes",
        held=values["held"] == "yes",
        errors=values.get("errors") == "kept",
        copies=values.get("copies") == "kept",
        resources=values.get("resources", ""),
        secrets=values.get("secrets") == "shown",
        sequence=int(values["sequence"]),
        tree=values["tree"],
        seen=values.get("seen", "") if values.get("seen") != values["tree"] else "",
        before=values.get("before", ""),
        sources=tuple(source.partition(":")[2] for source in sources),
        time=int(values["time"]),
        ended=tuple(source.partition(":")[2] for source in ended),
        imported_by=values.get("import", ""),
        met_is_listed=values.get("met") == "listed",
    )


def _strange_names(publication: str, *jobs: str) -> list[str]:
    try:
        validators.name(publication)
    except ValueError:
        return [f"publication {publication!r}"]
    sound = [job for job in jobs if not job or (_JOB.fullmatch(job) and publication_of(job) == publication)]
    return [f"job {job!r}" for job in jobs if job not in sound]


def read_named(fields: Mapping[str, str]) -> Named | None:
    """Return what a record with these fields has; None for one that names no tree, such as a warcinfo.

    Raises Damaged for anything that an archive could not have.
    """
    if TAG not in fields or _says(fields, "again"):
        return None
    tag = _tag(fields[TAG])
    kind, uri = fields.get("warc-type", "").lower(), _uri(fields)
    if kind == "metadata" and uri == f"{MET}{tag}":
        return NamedMet(tag)
    if "webarcfs-rendered" in fields:
        return _form(tag, uri, fields)
    if kind == "metadata" and _says(fields, "carried"):
        kind, uri = "revisit", fields.get("webarcfs-url", "")  # of the tree it says what a revisit does
    try:
        return _part(tag, kind, uri, fields)
    except (UrlRefused, NotPermitted, ValueError) as error:
        raise Damaged(f"{tag}: {uri}: {error}") from None


def _form(tag: CommitTag, uri: str, fields: Mapping[str, str]) -> NamedForm:
    tree, name = fields["webarcfs-rendered"], fields.get("webarcfs-file", "")
    if not _TREE.fullmatch(tree) or not rendered_forms.is_name(name):
        raise Damaged(f"{tag}: {uri}: {name!r} of {tree!r} is no part of what a browser showed")
    return NamedForm(tag, unquote(fields.get("webarcfs-path", "")), tree, name)


def _part(tag: CommitTag, kind: str, uri: str, fields: Mapping[str, str]) -> Named | None:
    seen, only_seen = not _says(fields, "unseen"), _says(fields, "seen")
    if kind in ("response", "revisit") and "webarcfs-redirect" in fields:
        return NamedRedirect(tag, _redirect(tag, uri, fields["webarcfs-redirect"]), seen, only_seen)
    if kind in ("resource", "revisit") and uri.startswith(ADDITION):
        arc, name = _addition(tag, uri, fields.get("webarcfs-file", ""))
        return NamedFile(tag, arc, name, kind == "resource", seen, only_seen)
    if kind in ("response", "resource", "revisit"):
        name = fields.get("webarcfs-data", "")
        if not _DATA.fullmatch(name) or name == DATA_XML:
            raise Damaged(f"{tag}: {uri}: {name!r} is no name of a data file")
        return NamedDocument(tag, _arc(tag, _url(uri, fields), fields), name, kind != "revisit", seen)
    if kind == "metadata" and fields.get("webarcfs-file") in (DATA_XML, HEADERS):
        return NamedFile(
            tag,
            _arc(tag, fields.get("webarcfs-url") or uri, fields),
            fields["webarcfs-file"],
            True,
            seen,
            only_seen,
        )
    return None


def _says(fields: Mapping[str, str], mark: str) -> bool:
    return fields.get(f"webarcfs-{mark}", "").lower() == "yes"


def _uri(fields: Mapping[str, str]) -> str:
    return fields.get("warc-target-uri", "").strip("<> ")


def _tag(text: str) -> CommitTag:
    """Return a commitTag whose domain a URL could have, and whose time a crawl."""
    tag = CommitTag.parse(text)
    try:
        sound = any(domain_of(f"{scheme}://{tag.domain}/") == tag.domain for scheme in ("http", "https"))
    except UrlRefused:
        sound = False
    if not sound:
        raise Damaged(f"{text!r}: no URL has the domain {tag.domain!r}")
    if not _old_enough(tag.crawl_time):
        raise Damaged(f"{text!r} is a time of the future")
    return tag


def _old_enough(time: datetime) -> bool:
    return time <= now() + _SKEW


def _url(uri: str, fields: Mapping[str, str]) -> str:
    """Return the URL by which the archive had a document: one that is made of the request, where that was no GET."""
    key = fields.get("webarcfs-url", "")
    parts = request_key_parts_of(key)
    return key if parts is not None and parts.url == uri else uri


def _arc(tag: CommitTag, url: str, fields: Mapping[str, str]) -> str:
    """Return the place of a URL in its domain: its second name where the record says so."""
    domain, arc = split(arc_path(url))
    if domain != tag.domain:
        raise Damaged(f"{tag}: {url} is of another domain")
    second = places(url)[0]
    return second if unquote(fields.get("webarcfs-path", "")) == second else arc


def _addition(tag: CommitTag, uri: str, file: str) -> tuple[str, str]:
    """Return the ARC of an addition, and its path inside that."""
    path, name = (unquote_to_bytes(text).decode("utf-8", "surrogateescape") for text in (_path_in(tag, uri), file))
    arc, parts = path.removesuffix(f"/{name}"), name.split("/")
    if arc in ("", path):
        raise Damaged(f"{tag}: {uri}: {file!r} is no file below it")
    check_names(parts)
    for folder in arc.split("/"):
        check_names([_NO_NAME, folder])
    if DATA_XML in parts or len(parts) > DEEPEST or is_inside(arc):
        raise Damaged(f"{tag}: {uri}: an addition cannot have the name {file!r}")
    return arc, name


def _path_in(tag: CommitTag, uri: str) -> str:
    tagged = f"{ADDITION}{tag}:"
    if not uri.startswith(tagged):
        raise Damaged(f"{tag}: {uri} is an addition of another snapshot")
    return uri.removeprefix(tagged)


def _redirect(tag: CommitTag, url: str, text: str) -> Redirect:
    """Return a redirect from its line, in which `%09` is a tab; `url` is its first field."""
    rest = text.removeprefix(f"{url}{_TAB}")
    status, target, time = rest[:3], rest[6 : -_TIME - 3], rest[-_TIME:]
    if "\0" in text or text == rest or rest != _TAB.join((status, target, time)):
        raise Damaged(f"{tag}: {text[:200]!r} is no redirect of {url}")
    redirect = read_list(f"{url}\t{status}\t{target}\t{time}\n".encode("ascii", "replace"), place_of(url))[0]
    if domain_of(redirect.url) != tag.domain:
        raise Damaged(f"{tag}: {url} is of another domain")
    return redirect


# == rows, pure =======================================================================================================


_ARCS, _LISTS = b"1", b"2"
_DOCUMENT, _FILE = b"1", b"2"
_SEEN, _ONLY_SEEN = b"s", b"o"
#: The rows of one snapshot, in parts.
Rows = Iterator[list[bytes]]


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file of an ARC: its blob, None for that of the tree before; `seen` by the publication, or `only_seen`."""

    blob: str | None
    seen: bool
    only_seen: bool = False


@dataclass(slots=True)
class ExportedArc:
    """The rows of one ARC: name → files. `data` is the name of its data file, empty without its record."""

    path: str
    data: str = ""
    seen: bool = True
    files: dict[str, ExportedFile] = field(default_factory=dict)
    seen_files: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Lines:
    """The lines of one list of redirects, in their order, and those that the publication saw."""

    place: str
    lines: list[bytes] = field(default_factory=list)
    seen: list[bytes] = field(default_factory=list)


def row_of(part: NamedDocument | NamedFile | NamedRedirect, blob: str | None) -> bytes:
    """Return the row of what a record names; `blob` is the id of its body, None where the record has none."""
    oid = (blob or "").encode()
    # No part contains a zero byte; so the rows of a place are together, and places sort by their bytes.
    match part:
        case NamedDocument():
            flags = _SEEN if part.seen else b""
            parts = [_ARCS, os.fsencode(part.arc), _DOCUMENT, part.name.encode(), oid, flags]
        case NamedFile():
            flags = _ONLY_SEEN if part.only_seen else _SEEN if part.seen else b""
            parts = [_ARCS, os.fsencode(part.arc), _FILE, os.fsencode(part.name), oid, flags]
        case NamedRedirect():
            flags = _ONLY_SEEN if part.only_seen else _SEEN if part.seen else b""
            parts = [_LISTS, place_of(part.redirect.url).encode(), str(part.redirect).encode(), flags]
    return b"\0".join([*_key(part.tag), *parts])


def form_row(part: NamedForm, blob: str) -> bytes:
    """Return the row of a file of a form; rows sort by domain, form and name."""
    return b"\0".join(text.encode() for text in (part.tag.domain, part.tree, part.name, blob))


def forms_by_domain(rows: Iterable[bytes]) -> Iterator[tuple[str, Iterator[tuple[str, dict[str, str]]]]]:
    """Yield each domain with its forms: the id of the tree, and name → blob. To be read in order."""
    split_rows = ([part.decode() for part in row.split(b"\0")] for row in rows)
    for domain, own in groupby(split_rows, key=lambda parts: parts[0]):
        yield domain, _forms(own)


def _forms(rows: Iterable[list[str]]) -> Iterator[tuple[str, dict[str, str]]]:
    for tree, files in groupby(rows, key=lambda parts: parts[1]):
        yield tree, {parts[2]: parts[3] for parts in files}


def by_snapshot(rows: Iterable[bytes], tags: Collection[CommitTag]) -> Iterator[tuple[CommitTag, Rows]]:
    """Yield the snapshots, domain by domain, oldest first, with their rows, which must be read before the next.

    Those in `tags` come as well if they have none: a domain may have had nothing at the time.
    """
    left = iter(sorted(tags, key=_key))
    next_ = next(left, None)
    split_rows = (row.split(b"\0") for row in rows)
    for key, own in groupby(split_rows, key=lambda parts: (parts[0], parts[1])):
        while next_ is not None and _key(next_) < key:
            yield next_, iter(())
            next_ = next(left, None)
        if next_ is not None and _key(next_) == key:
            next_ = next(left, None)
        domain, time = key
        yield CommitTag(parse_compact_time(time.decode()), domain.decode()), (parts[2:] for parts in own)
    while next_ is not None:
        yield next_, iter(())
        next_ = next(left, None)


def _key(tag: CommitTag) -> tuple[bytes, bytes]:
    return tag.domain.encode(), compact_time(tag.crawl_time).encode()


def read_places(rows: Rows) -> Iterator[ExportedArc | Lines]:
    """Yield the ARCs of a snapshot in order of the bytes of their paths, then its lists of redirects."""
    for (section, place), own in groupby(rows, key=lambda parts: (parts[0], parts[1])):
        if section == _LISTS:
            redirects = Lines(place.decode())
            for _, _, line, flags in own:
                _add_line(redirects, line, flags)
            yield redirects
        else:
            arc = ExportedArc(os.fsdecode(place))
            for parts in own:
                _add_file(arc, parts)
            yield arc


def _add_line(redirects: Lines, line: bytes, flags: bytes) -> None:
    into = {_SEEN: (redirects.lines, redirects.seen), _ONLY_SEEN: (redirects.seen,)}
    for lines in into.get(flags, (redirects.lines,)):
        if line not in lines[-1:]:  # the same record may be in two of the files
            lines.append(line)


def _add_file(arc: ExportedArc, parts: list[bytes]) -> None:
    _, _, kind, raw, oid, flags = parts
    name, blob = os.fsdecode(raw), oid.decode() or None
    if kind == _DOCUMENT:
        arc.data, arc.seen = name, flags == _SEEN
    elif flags == _ONLY_SEEN:
        if blob:
            arc.seen_files[name] = blob
        return
    earlier = arc.files.get(name)
    arc.files[name] = ExportedFile(blob or (earlier.blob if earlier else None), flags == _SEEN)


# == trees ============================================================================================================


#: Faults that are counted before a snapshot is given up.
_MOST_FAULTS = 1000
_OWN = (DATA_XML, HEADERS)
#: What a data.xml has if it names what a browser showed.
_RENDERED = b' rendered="'


@dataclass(frozen=True, slots=True)
class Built:
    """A snapshot's trees: `seen` is what its publication saw, empty for all of it.

    `stored_by` are the snapshots that its new documents name as those that stored them, `met` the list of what its
    crawl met unchanged, empty without one. `rendered` are the forms that they name.
    """

    tree: str
    seen: str
    stored_by: frozenset[CommitTag] = frozenset()
    met: str = ""
    rendered: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Old:
    """A place of the tree before: its files by their paths in it. A list of redirects has one, without a name."""

    path: str
    is_list: bool
    files: Mapping[str, str]


#: Asked between two places; it raises Interrupted.
Stop = Callable[[], None]


def build(store: Repository, named: NamedSnapshot, before: str | None, rows: Rows, stop: Stop) -> Built:
    """Store the trees of a snapshot; return them. Raises Damaged, with the reason, if they are not the named ones.

    `before` is the tree that its revisits refer to; None for none.
    """
    with ExitStack() as stack:
        work = _Work(store, named, before, stack)
        for named_place, old in _joined(rows, work.places_before()):
            stop()
            work.take(named_place, old)
        return work.finish()


def with_met(store: Repository, named: NamedSnapshot, built: Built, met: str) -> Built:
    """Return the trees with the list of what the crawl met, the blob `met`. Raises Damaged if it is not of them."""
    if not named.met_is_listed:
        return built
    if not met:
        raise Damaged("the record with the list of what its crawl met unchanged is missing")
    redirect_lists.check_met_list(store, built.seen or built.tree, redirect_lists.read_met_list(store, met))
    return replace(built, met=met)


def stored_by(raw: bytes, tag: CommitTag, arc: str) -> CommitTag:
    """Return the snapshot that stored a document, by its data.xml. Raises Damaged if that cannot be of this place."""
    try:
        data_xml.validate(raw)
        meta = data_xml.metadata(raw)
        paths = {f"/{arc_path(meta.url)}", f"/{second_path(meta.url)}"}
    except (InvalidDocument, UrlRefused) as error:
        raise Damaged(str(error)) from None
    if meta.path != f"/{tag.domain}/{arc}" or meta.path not in paths or meta.domain != tag.domain:
        raise Damaged(f"it is the data.xml of {meta.path}")
    if meta.commit_tag.domain != tag.domain or meta.commit_tag > tag:
        raise Damaged(f"it names the crawl {meta.commit_tag}")
    return meta.commit_tag


class _Work:
    def __init__(self, store: Repository, named: NamedSnapshot, before: str | None, stack: ExitStack) -> None:
        self._store = store
        self._named = named
        self._before = before
        self._sorter = stack.enter_context(Sorter(store.path / "objects" / "pack"))
        self._tree = stack.enter_context(store.rewriting(before))
        self._seen: Rewriting | None = stack.enter_context(store.rewriting(before)) if named.seen else None
        self._faults: list[str] = []
        self._stored_by: set[CommitTag] = set()
        self._rendered: set[str] = set()
        self._alone = ""  # a place of additions whose document no record names
        #: Folders of additions that changed: none may be, or lead to, an ARC.
        self._folders = stack.enter_context(Sorter(store.path / "objects" / "pack"))

    # -- the tree before -----------------------------------------------------------------------------------------

    def places_before(self) -> Iterator[tuple[bytes, Old]]:
        """Yield the places of the tree before, each with its key: ARCs by the bytes of their paths, then its lists."""
        if self._before is None:
            return
        for document in documents(self._store, self._before):
            named = (part for name, blob in document.files.items() for part in (os.fsencode(name), blob.encode()))
            self._sorter.add(b"\0".join([b"1", os.fsencode(document.path), *named]))
        top = self._store.find(self._before, REDIRECTS)
        for place, entry in redirect_lists.places(self._store, top):
            self._sorter.add(b"\0".join([b"2", place.encode(), b"", entry.oid.encode()]))
        for row in self._sorter.rows():
            section, path, *files = row.split(b"\0")
            pairs = zip(map(os.fsdecode, files[::2]), map(bytes.decode, files[1::2]), strict=True)
            yield b"\0".join([section, path]), Old(os.fsdecode(path), section == b"2", dict(pairs))

    # -- places --------------------------------------------------------------------------------------------------

    def take(self, named: ExportedArc | Lines | None, old: Old | None) -> None:
        """Put a place into the trees: as the rows name it, None if they do not; and as the tree before has it."""
        if isinstance(named, Lines) or (old is not None and old.is_list):
            self._list(named if isinstance(named, Lines) else None, old)
            return
        path = named.path if named is not None else old.path if old is not None else ""
        had = old.files if old is not None else {}
        new = self._files(named, had) if named is not None else {}
        blobs = {name: file.blob for name, file in new.items() if file.blob is not None}
        _change(self._tree, path, had, blobs)
        if self._seen is not None:
            _change(self._seen, path, had, _as_seen(named, new))

    def _files(self, named: ExportedArc, old: Mapping[str, str]) -> dict[str, ExportedFile]:
        """Return the files that an ARC has now."""
        files = dict(named.files)
        if not named.data:
            self._alone = self._alone or named.path
        elif files[named.data].blob is None:  # written as a revisit: what is not named is as it was
            for name in old:
                if name in _OWN or (is_data_file(name) and "/" not in name):
                    files.setdefault(name, ExportedFile(old[name], named.seen))
            if sum(is_data_file(name) for name in files if "/" not in name) > 1:
                self._fault(f"/{self._named.tag.domain}/{named.path}: its data file had another name before")
        for name, file in files.items():
            if file.blob is None:
                if name not in old:
                    self._fault(
                        f"/{self._named.tag.domain}/{named.path}/{name} is not in the tree before, {self._before}"
                    )
                files[name] = ExportedFile(old.get(name), file.seen)
        if named.data and DATA_XML not in files:
            self._fault(f"/{self._named.tag.domain}/{named.path}: the record of its {DATA_XML} is missing")
        self._check(named, files, old)
        return files

    def _check(self, named: ExportedArc, files: Mapping[str, ExportedFile], old: Mapping[str, str]) -> None:
        """Check what is new: descriptions, and the folders of additions."""
        descriptions = {file.blob for name, file in files.items() if name == DATA_XML} | {*named.seen_files.values()}
        for blob in descriptions - {None, old.get(DATA_XML)}:
            assert blob is not None
            try:
                raw = self._store.read(blob)
                self._stored_by.add(stored_by(raw, self._named.tag, named.path))
                if _RENDERED in raw and (tree := data_xml.metadata(raw).rendered):
                    self._rendered.add(tree)
            except Damaged as error:
                self._fault(f"/{self._named.tag.domain}/{named.path}/{DATA_XML}: {error}")
        for folder in {name.partition("/")[0] for name in files if "/" in name and name not in old}:
            self._folders.add(os.fsencode(f"{named.path}/{folder}"))

    def _list(self, named: Lines | None, old: Old | None) -> None:
        place = named.place if named is not None else old.path if old is not None else ""
        lines, seen = (named.lines, named.seen) if named is not None else ([], [])
        self._put_list(self._tree, place, lines, old)
        if self._seen is not None:
            self._put_list(self._seen, place, seen, old)

    def _put_list(self, tree: Rewriting, place: str, lines: list[bytes], old: Old | None) -> None:
        if not lines:
            if old is not None:
                tree.remove(place)
            return
        raw = b"".join(line + b"\n" for line in lines)
        try:
            if len(read_list(raw, place)) > MOST_LINES:
                raise Damaged(f"a list of {len(lines)} lines")
        except Damaged as error:
            self._fault(f"/{self._named.tag.domain}/{place}: {error}")
            return
        if old is None or old.files[""] != blob_id(raw):
            tree.write(place, raw)

    # -- the end -------------------------------------------------------------------------------------------------

    def _fault(self, line: str) -> None:
        self._faults.append(line)
        if len(self._faults) > _MOST_FAULTS:
            self._give_up()

    def _give_up(self) -> None:
        first, more = self._faults[0], len(self._faults) - 1
        raise Damaged(first + (f"; and {more} more like that" if more else ""))

    def finish(self) -> Built:
        """Store the trees, and compare their ids."""
        if self._faults:
            self._give_up()
        tree = self._tree.finish()
        seen = self._seen.finish() if self._seen is not None else ""
        if tree != self._named.tree:
            alone = f", that of the document {self._alone} among them" if self._alone else ""
            raise Damaged(
                f"its records make the tree {tree}, and it was {self._named.tree}: records of it are missing or were"
                f" changed{alone}"
            )
        if seen != self._named.seen:
            raise Damaged(f"its publication saw the tree {self._named.seen}, and its records make {seen}")
        for path in map(os.fsdecode, _each_once(self._folders.rows())):
            entry = self._store.find(tree, path)
            if entry is not None and entry.is_tree and leads_to_arcs(self._store, entry.oid):
                raise Damaged(f"/{self._named.tag.domain}/{path} leads to ARCs, and no addition can be in it")
        return Built(tree, seen, frozenset(self._stored_by), rendered=frozenset(self._rendered))


def _as_seen(named: ExportedArc | None, new: Mapping[str, ExportedFile]) -> dict[str, str]:
    """Return the files of an ARC as the publication saw them."""
    if named is None or not named.seen:
        return {}
    own = {name: file.blob for name, file in new.items() if file.blob is not None and (file.seen or name in _OWN)}
    return own | named.seen_files


def _change(tree: Rewriting, arc: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    for name in old.keys() - new.keys():
        tree.remove(f"{arc}/{name}")
    for name, blob in new.items():
        if old.get(name) != blob:
            tree.put(f"{arc}/{name}", blob)


def _joined(rows: Rows, before: Iterator[tuple[bytes, Old]]) -> Iterator[tuple[ExportedArc | Lines | None, Old | None]]:
    """Yield the places of both, in order, each once."""
    old = next(before, None)
    for named in read_places(rows):
        key = b"1\0" + os.fsencode(named.path) if isinstance(named, ExportedArc) else b"2\0" + named.place.encode()
        while old is not None and old[0] < key:
            yield None, old[1]
            old = next(before, None)
        if old is not None and old[0] == key:
            yield named, old[1]
            old = next(before, None)
        else:
            yield named, None
    while old is not None:
        yield None, old[1]
        old = next(before, None)


def _each_once(rows: Iterable[bytes]) -> Iterator[bytes]:
    last = None
    for row in rows:
        if row != last:
            yield row
        last = row


# == intake ===========================================================================================================


#: A smaller body waits in memory until its record is whole, a larger one in a file without a name.
_IN_MEMORY = 1 << 20
_CHUNK = 1 << 16
#: Lines on faults of the files that are kept.
MOST_FAULTS = 20


class Intake:
    """Takes files in. A context manager; `rows` and `snapshots` are complete after `end`.

    `is_there` says whether the archive has a snapshot already: its records are skipped.
    """

    def __init__(self, archive: Archive, stop: threading.Event, is_there: Callable[[NamedSnapshot], bool]) -> None:
        self._archive = archive
        self._stop = stop
        self._is_there = is_there
        self._stack = ExitStack()
        self._open: _Blobs | None = None
        self.rows = self._stack.enter_context(Sorter(archive.log))
        #: Rows of the files of rendered forms.
        self.forms = self._stack.enter_context(Sorter(archive.log))
        self.snapshots: dict[CommitTag, NamedSnapshot] = {}
        #: The blobs of the lists of what their crawls met.
        self.lists: dict[CommitTag, str] = {}
        #: Snapshots that cannot be taken, with the reason.
        self.refused: dict[CommitTag, str] = {}
        self.there: set[CommitTag] = set()
        #: The domains whose repositories were written to.
        self.touched: set[str] = set()
        #: Numbers of records of snapshots' parts, and of responses.
        self.named, self.others = 0, 0
        #: Number of records that were not whole; lines on them.
        self.broken = 0
        self.faults: list[str] = []

    def __enter__(self) -> Intake:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._open is not None:
            self._open.close()
        self._stack.close()

    def file(self, source: Source, step: Step) -> None:
        """Read one file; `step` is called with the bytes taken. Raises OSError on a full disk, Damaged."""
        report = Report()
        for part in parts_of(source.path, source.name, report, step, form=source.form):
            for record in part.records:
                step(part.taken())
                self._record(part.name, record)
        for line in report.losses.lines():
            self.fault(line)

    def end(self) -> None:
        """Store all that was taken in."""
        if self._open is not None:
            self._open.finish()
            self._open.close()
            self._open = None

    def fault(self, line: str) -> None:
        """Count a record that is not whole, with a line on it."""
        self.broken += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(printable(line))

    def _record(self, file: str, record: ForeignRecord) -> None:
        try:
            named = self._read(record)
        except Damaged as error:
            self.fault(f"{file}: {error}")
            return
        if isinstance(named, NamedSnapshot):
            self._snapshot(named)
        elif named is not None and named.tag not in self.there:
            blob = self._blob(record, named)
            if not record.whole():
                return  # `records` complains
            if isinstance(named, NamedMet):
                self.lists[named.tag] = blob or ""
            elif isinstance(named, NamedForm):
                if blob is not None:
                    self.forms.add(form_row(named, blob))
            else:
                self.rows.add(row_of(named, blob))

    def _read(self, record: ForeignRecord) -> Named | NamedSnapshot | None:
        """Return what a record names, its HTTP head read; None where that is nothing, or it is not whole."""
        if is_snapshot(record.fields):
            block = _block(record)
            return read_snapshot(record.fields, block) if record.whole() else None
        named = read_named(record.fields)
        self.named, self.others = self.named + (named is not None), self.others + (record.type == "response")
        if isinstance(named, NamedMet) and record.length > LONGEST_MET:
            raise Damaged(f"{named.tag}: a list of {record.length} bytes of what its crawl met")
        if isinstance(named, NamedDocument) and named.stored and record.type == "response":
            _skip_head(record)
        return named

    def _snapshot(self, snapshot: NamedSnapshot) -> None:
        first = self.snapshots.setdefault(snapshot.tag, snapshot)
        if first.tree != snapshot.tree:
            self.refused[snapshot.tag] = (
                f"two of the files say different things of it: trees {first.tree}, {snapshot.tree}"
            )
        if self._is_there(snapshot):
            self.there.add(snapshot.tag)

    def _blob(self, record: ForeignRecord, named: Named) -> str | None:
        """Store the body of a record; return its blob, None where there is none, or the record is not whole."""
        if isinstance(named, NamedRedirect) or not (isinstance(named, NamedMet) or named.stored):
            return None
        what = "what it met" if isinstance(named, NamedMet) else named.arc
        most = rendered_forms.LARGEST_PICTURE
        if isinstance(named, NamedForm) and record.length > most:
            self.fault(f"{named.tag}: {named.name} of {named.arc} has more than {most:,} bytes")
            return None
        with tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="tmp_", dir=str(self._archive.log)) as body:
            while data := record.read(_CHUNK):
                body.write(data)
            if not record.whole():
                return None
            size = body.tell()
            body.seek(0)
            return self._blobs(named.tag.domain).store(f"{named.tag}: {what}", size, body)

    def _blobs(self, domain: str) -> _Blobs:
        if self._open is None or self._open.domain != domain:
            self.end()
            self.touched.add(domain)
            self._open = _Blobs(self._archive, domain, self._stop)
        return self._open


class _Blobs:
    """The importer of one domain, under the lock that keeps crawls from tidying up its unfinished packs."""

    def __init__(self, archive: Archive, domain: str, stop: threading.Event) -> None:
        self.domain = domain
        with ExitStack() as stack:
            stack.enter_context(locks.exclusive_until(archive.publishing_lock(domain), stop))
            path = archive.repository(domain)
            store = Repository(path) if path.is_dir() else Repository.create(path)
            with locks.exclusive(archive.committing_lock(domain)):
                store.drop_scratch()
            self._importer: FastImport = stack.enter_context(store.importer(None))
            self._stack = stack.pop_all()

    def store(self, what: str, size: int, body: IO[bytes]) -> str:
        """Store a body; return its blob."""
        return self._importer.store(what, size, iter(lambda: body.read(_CHUNK), b""))

    def finish(self) -> None:
        """Make what was stored part of the repository."""
        self._importer.finish()

    def close(self) -> None:
        """End the importer, and release the lock."""
        self._stack.close()


def store_forms(
    archive: Archive, rows: Iterable[bytes], wanted: Mapping[str, Set[str]], fault: Callable[[str], None]
) -> None:
    """Put the forms that `rows` have into the refs of their domains, as far as documents of the domain want them.

    `fault` is told of one that is not whole. Their blobs must be in the repositories.
    """
    for domain, forms in forms_by_domain(rows):
        if not wanted.get(domain):
            continue
        store = Repository(archive.repository(domain))
        with locks.exclusive(archive.publishing_lock(domain)):
            before = store.ref(rendered_forms.REF)
            with store.rewriting(before) as rewriting:
                for tree, blobs in forms:
                    if tree not in wanted[domain]:
                        continue
                    if rendered_forms.tree_id(blobs) != tree:
                        fault(f"{domain}: what a browser showed of a page is not whole, and is left out: {tree}")
                        continue
                    for name, blob in blobs.items():
                        rewriting.put(rendered_forms.path_of(tree, name), blob)
                after = rewriting.finish()
                if store.entries(after) and after != before:
                    with locks.Turnstile(archive.lock(domain)).exclusive():
                        store.update_refs([RefUpdate(rendered_forms.REF, after, before)])


def drop_empty(archive: Archive, domain: str) -> None:
    """Remove the repository of a domain that has no ref: of an import that published nothing."""
    path = archive.repository(domain)
    if not path.is_dir() or Repository(path).ref_names("refs/"):
        return
    with locks.exclusive(archive.publishing_lock(domain)), suppress(NotFound):
        if not Repository(path).ref_names("refs/"):  # nobody began to crawl it meanwhile
            shutil.rmtree(path)


def _block(record: ForeignRecord) -> bytes:
    """Return the block of a snapshot's record."""
    if record.length > LONGEST_SNAPSHOT:
        raise Damaged(f"{record.fields.get('warc-target-uri', '')}: a record of {record.length} bytes")
    return b"".join(iter(lambda: record.read(_CHUNK), b""))


def _skip_head(record: ForeignRecord) -> None:
    """Read the HTTP head of a response."""
    size = 0
    while line := record.readline(LONGEST_HEAD):
        size += len(line)
        if line in (b"\r\n", b"\n"):
            return
        if size > LONGEST_HEAD:
            break
    raise Damaged(f"{record.fields.get('warc-target-uri', '')}: a response whose head does not end")


def in_order(sources: Sequence[Source]) -> list[Source]:
    """Return files by name: as they were written, so that what is there already is known before its records."""
    return sorted(sources, key=lambda source: (source.name, source.digest))
