"""What is exported of a search or a query: versions with their captures, decided once, and what their pages need.

A question gives places: a path and a time at which the archive has something there. What is exported of each is the
whole version: its capture, and each capture that met it unchanged, as far as the asker may see them. With resources it
is also what the pages need to be shown: images, sheets, scripts and frames, in the state of the same snapshot, whatever
host they are of, and the redirects that lead to them.

The rows are sorted by host, snapshot and place, and lie in a file beside the result, so that memory is flat for any
number of them, and an interrupted export resumes with the same ones. For a reader all of it comes from
`access/visible_captures`, and bodies from the repositories of `access/reader_repositories`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

from webarcfs.access.access_rules import Open
from webarcfs.access.visible_captures import VisibleCapture, VisibleCaptures
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index.database import CaptureIndex, CaptureRow
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, split
from webarcfs.archive.model.errors import Damaged, Exists, Interrupted, InvalidDocument, NotFound
from webarcfs.archive.model.metadata import CommitTag, MetaData, from_epoch
from webarcfs.archive.model.url_lists import LONGEST_CHAIN, without_fragment
from webarcfs.archive.system.cache import Cache
from webarcfs.archive.system.clocks import Progress
from webarcfs.archive.system.files import Sorter
from webarcfs.content import outlinks, text
from webarcfs.content.mimetype import SAMPLE, declared_type
from webarcfs.content.reference_table import LinkPurpose, NamedAs
from webarcfs.export.selection import ExportedDocument, Files, FolderLines, Opener, Stop, data_of
from webarcfs.warc.http_response import LONGEST_OF_ARC, content_type_in

# == rows, pure =======================================================================================================


#: From this status on, a server says that there is no such page.
_FIRST_ERROR: Final = 400


class RowKind(IntEnum):
    """What a row is; of one capture, the kinds come in this order."""

    VERSION = 0  #: a capture with its body
    REVISIT = 1  #: a capture that met a version unchanged
    REDIRECT = 2  #: a capture that leads elsewhere


@dataclass(frozen=True, slots=True)
class ChosenCapture:
    """A capture to export, of the ARC `arc` as the snapshot `seq` of a domain has it.

    Times are seconds since 1970. `captured` is that of the capture, `url` that by which it was asked for. A revisit is
    of the capture of `of_url` at `of_captured`. `first`, `last` and `captures` are of a version: when it was captured
    first and last, and how often. `blob` is git's id of the body, `digest` its SHA-1 in hex. `is_match`: the question
    found it; otherwise a page needs it.
    """

    kind: RowKind
    domain: str
    seq: int
    arc: str
    url: str
    captured: int
    status: int
    mime_type: str = ""
    title: str = ""
    blob: str = ""
    size: int = 0
    digest: str = ""
    target: str = ""
    publication: str = ""
    is_resource: bool = False
    of_url: str = ""
    of_captured: int = 0
    first: int = 0
    last: int = 0
    captures: int = 1
    is_match: bool = True

    @property
    def tag(self) -> CommitTag:
        """The snapshot that has it."""
        return CommitTag(from_epoch(self.seq), self.domain)

    @property
    def path(self) -> str:
        """Its path in metadata."""
        return f"/{self.domain}/{self.arc}"

    @property
    def is_found_page(self) -> bool:
        """Whether it is a version that the question found, and neither an error page nor a resource."""
        is_found = self.kind is RowKind.VERSION and self.is_match
        return is_found and not self.is_resource and self.status < _FIRST_ERROR

    @property
    def _identity(self) -> str:
        return f"{self.domain}\0{self.seq:012}\0{self.arc}\0{self.captured:012}\0{int(self.kind)}\0{self.url}"

    def as_row(self) -> bytes:
        """Return it as bytes that sort by host, snapshot and place; of the same capture, what was found comes first."""
        row = f"{self._identity}\0{int(not self.is_match)}"
        return row.encode("utf-8", "surrogateescape") + b"\n" + self.as_line()

    def as_line(self) -> bytes:
        """Return it as a line of the file of rows."""
        return json.dumps([*asdict(self).values()]).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> ChosenCapture:
        """Return the inverse of `as_line`. Raises Damaged for anything else."""
        try:
            values = json.loads(line)
            return cls(RowKind(values[0]), *values[1:])
        except (ValueError, TypeError, IndexError) as error:
            raise Damaged(f"no row of an export: {error!r}") from None


#: The first and the last second of a span, None without a bound.
Span = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class VersionQuestion:
    """A question, in words and as the places that it finds.

    `places` are read once: path (`/<domain>/…`) and a time (seconds since 1970) at which the archive has there what was
    found. `span` has the first and the last second whose snapshots count. Of a version that was captured before, the
    captures of that span are exported, and the first one, which has its content. `publication`: only what its crawls
    stored. `one_a_url`: of what was found at a URL, the version that was captured last.
    """

    words: str
    places: Iterable[tuple[str, int]]
    span: Span = (None, None)
    publication: str = ""
    one_a_url: bool = False
    with_resources: bool = False

    def __str__(self) -> str:
        """Return it in words, for messages and to compare with what was asked before."""
        return self.words


# == selection ========================================================================================================


#: The name of the file of rows beside a result.
ROWS: Final = "versions"
_NEW: Final = ".new"
#: Why resources are not exported.
UNREAD: Final = "pages, sheets or frames whose references were not all followed: they are longer or more than is read"
#: Rows between two looks at who asked for the end.
_SOME: Final = 100


@dataclass(frozen=True, slots=True)
class VersionSelection:
    """The captures to export. Iterated as often as need be, from the file `rows`.

    `versions` are those that the question found, `resources` what their pages need; `unread` are the pages whose
    references are not all there, because they are longer or more than is read.
    """

    open: Opener
    rows: Path
    question: str
    name: str
    newest: CommitTag
    digest: str
    versions: int
    resources: int
    captures: int
    unread: int = 0

    def __len__(self) -> int:
        """Return the number of captures."""
        return self.captures

    @property
    def left_out(self) -> dict[str, int]:
        """What is not exported, with its number."""
        return {UNREAD: self.unread} if self.unread else {}

    def after(self, number: int) -> Iterator[ChosenCapture]:
        """Yield the captures but for the first `number`. Raises Damaged, OSError."""
        with self.rows.open("rb") as lines:
            yield from map(ChosenCapture.from_line, islice(lines, number, None))

    def as_json(self) -> dict[str, Any]:
        """Return it for JSON, without the repositories and rows."""
        return {
            "question": self.question, "name": self.name, "newest": str(self.newest), "digest": self.digest,
            "versions": self.versions, "resources": self.resources, "captures": self.captures, "unread": self.unread,
        }  # fmt: skip

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], rows: Path, open_: Opener) -> VersionSelection:
        """Return the inverse of `as_json`. Raises Damaged for anything else, or where the rows are not its own."""
        try:
            selection = cls(open_, rows, **{**fields, "newest": CommitTag.parse(str(fields["newest"]))})
            digest, lines = hashlib.sha256(), 0
            with rows.open("rb") as file:
                for line in file:
                    digest.update(line)
                    lines += 1
        except (KeyError, TypeError, ValueError, AttributeError, FileNotFoundError) as error:
            raise Damaged(f"no selection of versions: {error!r}") from None
        if (digest.hexdigest(), lines) != (selection.digest, selection.captures):
            raise Damaged(f"{rows} is not as it was when the export began; remove {rows.parent}, and export again")
        return selection

    def must_be_visible(self) -> None:
        """Raise Exists if the asker sees less by now than these rows."""
        reader = VersionReader(self.open)
        for row in self.after(0):
            if row.kind is RowKind.VERSION:
                reader.files(row)


def choose(
    captures: VisibleCaptures,
    question: VersionQuestion,
    open_: Opener,
    rows: Path,
    *,
    progress: Progress,
    stop: Stop,
) -> VersionSelection:
    """Write what a question finds into the file `rows`, and return it. Raises NotFound for nothing, Interrupted."""
    chooser = _Chooser(captures, question, VersionReader(open_), progress, stop)
    with Sorter(rows.parent) as sorter:
        for row in chooser.rows(rows.parent):
            sorter.add(row.as_row())
        counts = _Written()
        before = b""
        scratch = rows.with_name(f"{rows.name}{_NEW}")
        with scratch.open("wb") as file:
            for raw in sorter.rows():
                key, _, line = raw[:-1].rpartition(b"\n")
                identity = key.rpartition(b"\0")[0]
                if identity != before:
                    file.write(counts.add(line + b"\n"))
                before = identity
    if not counts.captures or not counts.versions:
        scratch.unlink()
        raise NotFound(f"there is nothing to export: no version is one of {question}")
    scratch.replace(rows)
    name = next(iter(counts.domains)).replace(":", "-") if len(counts.domains) == 1 else "webarc"
    assert counts.newest is not None
    return VersionSelection(
        open_, rows, str(question), name, counts.newest, counts.digest.hexdigest(), counts.versions, counts.resources,
        counts.captures, chooser.unread,
    )  # fmt: skip


class _Written:
    """Counts the rows that are written."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.domains: set[str] = set()
        self.newest: CommitTag | None = None
        self.versions = self.resources = self.captures = 0

    def add(self, line: bytes) -> bytes:
        row = ChosenCapture.from_line(line)
        self.digest.update(line)
        self.captures += 1
        self.versions += row.is_match and row.kind is RowKind.VERSION
        self.resources += not row.is_match
        if len(self.domains) < 2:  # that is all that a name asks
            self.domains.add(row.domain)
        if self.newest is None or row.seq > self.newest.crawl_time.timestamp():
            self.newest = row.tag
        return line


class _Chooser:
    """Makes the rows of a question, in any order, some of them twice."""

    def __init__(
        self,
        captures: VisibleCaptures,
        question: VersionQuestion,
        reader: VersionReader,
        progress: Progress,
        stop: Stop,
    ) -> None:
        self._captures = captures
        self._index: CaptureIndex = captures.index
        self._question = question
        self._progress = progress
        self._stop = stop
        self._needed = _Needed(captures, reader) if question.with_resources else None
        self._done = 0

    @property
    def unread(self) -> int:
        """The number of pages whose references were not all read."""
        return 0 if self._needed is None else self._needed.unread

    def rows(self, folder: Path) -> Iterator[ChosenCapture]:
        with Sorter(folder) as places:
            for number, (path, seq) in enumerate(self._question.places):
                places.add(f"{path}\0{seq:012}".encode("utf-8", "surrogateescape"))
                if not number % _SOME:
                    self._look("finding", number)
            texts = (row.decode("utf-8", "surrogateescape").rpartition("\0") for row in places.rows())
            meetings = self._index.meetings()
            for path, group in groupby(texts, key=lambda text: text[0]):
                seqs = sorted({int(seq) for _, _, seq in group})
                domain = split(path)[0]
                own = [row for row in self._index.at(path)[0] if row.path == path and _has_one(row, seqs)]
                met = meetings(domain, path) if own else []
                own = [row for row in own if self._question.publication in ("", row.publication)]
                found = (list(self._captures.of_row(row, met)) for row in own)
                yield from self._versions(capture for shown in found for capture in shown)

    def _versions(self, captures: Iterable[VisibleCapture]) -> Iterator[ChosenCapture]:
        """Yield the captures of what was found at one path: of each version its first one, then when it was met."""
        begin, until = self._question.span
        by_version: dict[tuple[str, int], list[VisibleCapture]] = {}
        for capture in sorted(captures, key=lambda capture: (capture.is_revisit, capture.since)):
            is_late_enough = begin is None or capture.since >= begin or not capture.is_revisit
            if is_late_enough and (until is None or capture.since <= until):
                by_version.setdefault((capture.blob, capture.stored), []).append(capture)
        versions = [of_version for of_version in by_version.values() if not of_version[0].is_revisit]
        if begin is not None:
            versions = [of_version for of_version in versions if max(capture.since for capture in of_version) >= begin]
        if self._question.one_a_url:
            versions = _newest_of_each_url(versions)
        for response, *others in versions:
            again = {other.captured: other for other in reversed(others) if other.captured != response.captured}
            times = [response.captured, *again]
            self._done += 1
            if not self._done % _SOME:
                self._look("choosing", self._done)
            version = replace(
                _chosen(response, RowKind.VERSION), first=min(times), last=max(times), captures=len(times)
            )
            yield version
            for other in again.values():
                yield replace(
                    _chosen(other, RowKind.REVISIT), of_url=response.url, of_captured=response.captured, captures=0
                )
            if self._needed is not None:
                for seq in sorted({version.seq, *(other.since for other in again.values())}):
                    yield from self._needed.of(version, seq)

    def _look(self, what: str, number: int) -> None:
        self._progress(what, number, number)
        if self._stop():
            raise Interrupted("the export was interrupted before it wrote anything; the same command starts it again")


def _has_one(row: CaptureRow, seqs: list[int]) -> bool:
    return any(row.first <= seq < row.last for seq in seqs)


def _newest_of_each_url(versions: Iterable[list[VisibleCapture]]) -> list[list[VisibleCapture]]:
    """Return, of each URL, the version whose first capture is the last one."""
    newest: dict[str, list[VisibleCapture]] = {}
    for version in versions:
        known = newest.setdefault(version[0].url, version)
        if version[0].captured > known[0].captured:
            newest[version[0].url] = version
    return [*newest.values()]


def _chosen(capture: VisibleCapture, kind: RowKind) -> ChosenCapture:
    domain, arc = split(capture.path)
    return ChosenCapture(
        kind, domain, capture.since, arc, capture.url, capture.captured, capture.status, capture.mime_type,
        capture.title, capture.blob, capture.size, capture.digest.hex(), capture.target, capture.publication,
        capture.is_resource,
    )  # fmt: skip


# == what pages need ==================================================================================================


#: Frames in frames, and sheets in sheets, that are followed; resources of one page.
_DEEPEST: Final = 8
_MOST: Final = 20_000
#: References that are remembered, of whole bodies: sheets and frames are those of page after page.
_REMEMBERED: Final = 100_000
#: URLs in the state of one snapshot that were looked up, at some 2 kB.
_STATES: Final = 10_000


class _Needed:
    """Finds what pages need to be shown, in the state of their snapshot."""

    def __init__(self, captures: VisibleCaptures, reader: VersionReader) -> None:
        self._captures = captures
        self._reader = reader
        self._references: Cache[tuple[str, str, str], tuple[tuple[str, NamedAs], ...]] = Cache(
            _REMEMBERED, lambda references: len(references) + 1
        )
        self._states: Cache[tuple[str, int], tuple[ChosenCapture, ...]] = Cache(_STATES)
        self.unread = 0

    def of(self, page: ChosenCapture, seq: int) -> Iterator[ChosenCapture]:
        """Yield what a page needs in the state of a snapshot that has it, and what that needs."""
        seen: set[str] = set()
        waiting = [(page, NamedAs.NOTHING, 0)]
        while waiting:
            document, named, depth = waiting.pop()
            for url, as_what in self._of_document(document, named):
                if url in seen:
                    continue
                if len(seen) >= _MOST:
                    self.unread += 1
                    return
                seen.add(url)
                for row in self._states.get((url, seq), lambda url=url: (*self._at(url, seq),)):  # type: ignore[misc]
                    yield row
                    if row.kind is RowKind.VERSION and depth < _DEEPEST:
                        waiting.append((row, as_what, depth + 1))

    def _of_document(self, row: ChosenCapture, named: NamedAs) -> tuple[tuple[str, NamedAs], ...]:
        """Return the URLs that a document needs, and as what it names them."""
        if named is NamedAs.NOTHING and not outlinks.may_have_links(row.mime_type):
            return ()
        return self._references.get((row.blob, row.url, str(named)), lambda: self._read(row, named))

    def _read(self, row: ChosenCapture, named: NamedAs) -> tuple[tuple[str, NamedAs], ...]:
        store, files = self._reader.files(row)
        try:
            blob = files[data_of(files)]
            size = store.size(blob)
            body = store.read_short(blob, outlinks.LONGEST_BODY)
            sent = content_type_in(store.read_short(files.get(HEADERS, ""), LONGEST_OF_ARC))
        except (Damaged, KeyError):
            return ()  # it is left out when it is written, and counted then
        mime_type = outlinks.read_as(row.mime_type, declared_type(sent), named)
        charset = text.decode_charset(body[:SAMPLE], sent)
        links = outlinks.find(body, row.url, mime_type, charset)
        self.unread += links.is_cut or size > outlinks.LONGEST_BODY
        return tuple((link.url, link.named) for link in links.links if link.kind is LinkPurpose.REQUISITE)

    def _at(self, url: str, seq: int) -> Iterator[ChosenCapture]:
        """Yield what the state of a time has at a URL: a document, behind redirects where there are some."""
        for _ in range(LONGEST_CHAIN + 1):
            state = self._captures.state(url, seq)
            if not isinstance(state.answer, Open) or state.capture is None:
                return
            kind = RowKind.REDIRECT if state.capture.is_redirect else RowKind.VERSION
            row = replace(_chosen(state.capture, kind), is_match=False)
            if kind is RowKind.VERSION:
                yield replace(row, first=row.captured, last=row.captured)
                return
            yield row
            url = without_fragment(row.target)


# == reading ==========================================================================================================


#: Bytes of folders of trees that are kept: documents of a folder follow each other.
_FOLDERS: Final = 32 << 20


class VersionReader:
    """Reads the files of chosen versions, as the asker sees them. For one thread."""

    def __init__(self, open_: Opener) -> None:
        self._open = open_
        self._store: tuple[str, Repository] | None = None
        self._tree: tuple[str, int, str] | None = None
        self._folders: Cache[str, FolderLines] = Cache(_FOLDERS, lambda folder: folder.weight)

    def store(self, domain: str) -> Repository:
        """Return the repository of a domain; the last one stays open. Raises Exists if the asker sees it no more."""
        if self._store is None or self._store[0] != domain:
            try:
                self._store = domain, self._open(domain)
            except NotFound:
                raise _vanished(domain) from None
        return self._store[1]

    def files(self, row: ChosenCapture) -> tuple[Repository, Files]:
        """Return the repository of a row, and the own files of its ARC: name → blob.

        Raises Exists if the asker does not see that version any more, Damaged.
        """
        store = self.store(row.domain)
        if self._tree is None or self._tree[:2] != (row.domain, row.seq):
            try:
                self._tree = row.domain, row.seq, store.snapshot_tree(row.tag)
            except NotFound:
                raise _vanished(str(row.tag)) from None
        folder = self._find(store, self._tree[2], row.arc)
        entries = store.entries(folder) if folder is not None else []
        files = {entry.name: entry.oid for entry in entries if not entry.is_tree}
        data = data_of(files)
        if DATA_XML not in files or not data or files[data] != row.blob:
            raise _vanished(f"{row.tag} {row.path}")
        return store, files

    def document(self, row: ChosenCapture) -> tuple[Repository, ExportedDocument, MetaData]:
        """Return the repository, the document of a row, and its metadata. Raises Damaged, Exists."""
        store, files = self.files(row)
        try:
            meta = data_xml.metadata(store.read(files[DATA_XML]))
        except InvalidDocument as error:
            raise Damaged(f"{row.tag} {row.path}: {error}") from None
        return store, ExportedDocument(row.arc, files, None, files), meta

    def _find(self, store: Repository, tree: str, arc: str) -> str | None:
        """Return the folder of an ARC. pygit2's own look-up keeps some memory for each name that is asked for."""
        folder: str | None = tree
        for name in arc.split("/"):
            if folder is None:
                return None
            folder = self._folders.get(folder, partial(_lines_of, store, folder)).folder(name)
        return folder


def _lines_of(store: Repository, tree: str) -> FolderLines:
    return FolderLines(store.read_tree(tree), f"{store.path}: {tree}")


def _vanished(what: str) -> Exists:
    return Exists(f"{what} is not what it was when this export was decided, or may not be seen any more; export again")
