"""The run of one job on one domain, shared by the stages from unpack to publish, and the documents that pass them.

A stage takes documents and yields documents; it sets its fields with `replace`. A small body is in memory, a large one
in an unnamed file in the job's folder, so that memory is bounded.

`LaterCrawls` says which of two overlapping crawls of a domain is newer: an older capture never replaces a newer one. A
crawl that is resumed after another one was published is inserted before it in the history, like an old import; main
does not move. Clocks may be set back, so the archive's counter identifies the crawls published since a job began to
fetch. Times are compared with those crawls only.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from agent.crawl import frontier
from agent.crawl.job_folder import Job
from webarcfs.archive.git.repository import Commit, Names, Repository, TreeEntry
from webarcfs.archive.history import sequence
from webarcfs.archive.history.rendered_forms import RenderedForm
from webarcfs.archive.model.arc_paths import data_name
from webarcfs.archive.model.metadata import CommitTag, from_epoch, parse_time
from webarcfs.archive.system.files import blob_hash
from webarcfs.content import mimetype
from webarcfs.warc.http_response import Head

# == document =========================================================================================================


#: Bodies up to this size stay in memory, one at a time.
IN_MEMORY = 1 << 20
_CHUNK = 1 << 18


class DocumentBody:
    """The decoded bytes of a document: written once, then read as often as needed."""

    def __init__(self, folder: Path) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, dir=str(folder))  # noqa: SIM115
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._file.write(data)
        self.size += len(data)

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes from the start, in pieces."""
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK):
            yield chunk

    def start(self, size: int) -> bytes:
        """Return the first `size` bytes."""
        self._file.seek(0)
        return self._file.read(size)

    @cached_property
    def blob(self) -> str:
        """The object id that git gives to these bytes (gitformat-objects: `blob <size>\\0` and the bytes)."""
        digest = blob_hash(self.size)
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        """Write the bytes to a named file."""
        with path.open("wb") as file:
            self._file.seek(0)
            shutil.copyfileobj(self._file, file, _CHUNK)

    def close(self) -> None:
        """Release the bytes."""
        self._file.close()


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document of a crawl. A field is empty until its stage has set it.

    `row` is its id in the frontier, `url` is canonical, `captured` is the time of the response (CET), `note` is the
    annotation for crawl.log, `source` what it was taken from if that is no response of a server.
    `certificate` is what was wrong with the server's, in words. `has_secrets`: its headers may have some. `method` and
    `request_type` are those of the request, if it was no GET. `rendered` is what a browser showed of it.
    """

    row: int
    url: str
    status: int
    head: Head
    body: DocumentBody
    captured: datetime
    folder: Path = field(repr=False)
    note: str = ""
    source: str = ""
    certificate: str = ""
    has_secrets: bool = False
    method: str = ""
    request_type: str = ""
    rendered: RenderedForm | None = None
    # normalise
    arc: str = ""  # its path inside the domain
    data_name: str = ""
    # compare
    stored: tuple[TreeEntry, ...] | None = None  # the entries of its ARC's folder now; None if it does not exist
    nested: bool = False  # whether that folder contains folders
    unchanged: bool = False
    becomes_page: bool = False  # the ARC holds the same, as a resource of pages of other hosts; now it is a page
    was_error: bool = False  # whether what the ARC holds is an error page
    # extract
    title: str = ""
    create_time: datetime | None = None
    # describe
    data_xml: bytes = b""

    @cached_property
    def mime_type(self) -> str:
        """The MIME type as browsers compute it (/Cr-12.3/); computed on first use."""
        start, head = self.body.start(mimetype.SAMPLE), self.head
        return mimetype.mime_type(start, head.content_type, nosniff=head.forbids_sniffing)

    @cached_property
    def path(self) -> Path:
        """A file with the body, written on first use (/Fi-1/); the filter stage removes it."""
        path = self.folder / f"filter-{self.row}{Path(data_name(self.url)).suffix}"
        self.body.save(path)
        return path


def replace(document: Document, **values: Any) -> Document:
    """Return a copy with some fields set; cached properties stay cached."""
    # Called three times per document: dataclasses.replace, which reads each field, takes four times as long.
    copy = object.__new__(Document)
    copy.__dict__.update(document.__dict__)
    copy.__dict__.update(values)
    return copy


# == overlap ==========================================================================================================


@dataclass(frozen=True, slots=True)
class LaterCrawls:
    """The crawls of a domain published since a job began to fetch: commitTag → start of that crawl.

    `overtook`: the job was interrupted after it had fetched all, and one of these crawls began after its last response.
    """

    begun: dict[str, datetime] = field(default_factory=dict)
    overtook: bool = False

    def replaces(self, tag: str, captured: datetime) -> bool:
        """Return whether a version stored by the crawl `tag` is newer than one captured at `captured`."""
        return tag in self.begun and captured < self.begun[tag]


def note_begin(job: Job) -> None:
    """Record the archive's counter when the job begins to fetch; a resumed job keeps the first value."""
    if job.frontier.get(frontier.COUNTER) is None:
        number = sequence.last_number(job.archive)
        with job.frontier.changes():
            job.frontier.set(frontier.COUNTER, number)


def note_wait(job: Job) -> None:
    """Record that the job is resumed after it had fetched all."""
    with job.frontier.changes():
        job.frontier.set(frontier.WAITED, True)


def later_crawls(job: Job, store: Repository, domain: str) -> LaterCrawls:
    """Return the crawls of a domain published since the job began to fetch; none for imports, which have own times."""
    counter = job.frontier.get(frontier.COUNTER)
    if counter is None or job.cut is not None:
        return LaterCrawls()
    begun: dict[str, datetime] = {}
    head = store.head()
    for commit in store.history(head.oid if head else None):
        if not commit.message.is_crawl:
            continue
        if commit.message.sequence <= counter:
            break
        begun[str(commit.message.tag)] = from_epoch(commit.time)
    if not begun or not job.frontier.get(frontier.WAITED):
        return LaterCrawls(begun)
    captured = job.frontier.last_captured(domain)  # reads every URL of the job
    return LaterCrawls(begun, bool(captured) and any(parse_time(captured) < time for time in begun.values()))


# == run ==============================================================================================================


#: What a report counts of a domain's ARCs.
ARC_COUNTS = ("added", "changed", "removed", "unchanged")
#: The same of its redirects: `held` back by an ARC, `dropped` beyond `max_redirects`.
REDIRECT_COUNTS = (*ARC_COUNTS, "held", "dropped")
_FOLDERS_KEPT = 64
_NAMES_KEPT = 500_000


class TreeReader:
    """Reads one tree and caches the folders read last, because documents of a folder follow each other.

    The cache is bounded in folders and names, except for the last folder: a folder may have any number of names.
    """

    def __init__(self, store: Repository, tree: str | None) -> None:
        self._store = store
        self._root = tree
        self._folders: OrderedDict[str, Names] = OrderedDict()
        self._names = 0
        self._latest: tuple[str, Mapping[str, TreeEntry] | None] | None = None

    def folder(self, path: str) -> Mapping[str, TreeEntry] | None:
        """Return name → entry of the folder at `path`; None if it does not exist. The latest one is cached."""
        # Stages ask for the same ARC one after the other.
        if self._latest is None or self._latest[0] != path:
            self._latest = None  # one at a time: a folder may have half a million names
            tree = self._tree(path)
            entries = None if tree is None else {entry.name: entry for entry in self._store.entries(tree)}
            self._latest = path, entries
        return self._latest[1]

    def find(self, path: str) -> TreeEntry | None:
        """Return the entry at `path`; None if it does not exist."""
        parent, _, name = path.rpartition("/")
        folder = self._kept(parent)
        return folder.find(name) if folder is not None else None

    def _tree(self, path: str) -> str | None:
        if not path:
            return self._root
        entry = self.find(path)
        return entry.oid if entry is not None and entry.is_tree else None

    def _kept(self, path: str) -> Names | None:
        """Return the folder at `path`.

        Searches from its folder where that is kept, else from the root, without recursion: paths may have thousands of
        parts.
        """
        if path in self._folders:
            self._folders.move_to_end(path)
            return self._folders[path]
        inner, _, name = path.rpartition("/")
        names = [name]
        if inner not in self._folders:
            inner, names = "", path.split("/") if path else []
        folder = self._keep(inner, self._root)
        for name in names:
            entry = folder.find(name) if folder is not None else None
            if entry is None or not entry.is_tree:
                return None
            inner = f"{inner}/{name}" if inner else name
            folder = self._keep(inner, entry.oid)
        return folder

    def _keep(self, path: str, tree: str | None) -> Names | None:
        if path not in self._folders and tree is not None:
            folder = self._folders[path] = self._store.names(tree)
            self._names += len(folder)
            while len(self._folders) > 1 and (len(self._folders) > _FOLDERS_KEPT or self._names > _NAMES_KEPT):
                self._names -= len(self._folders.popitem(last=False)[1])
        return self._folders.get(path)


@dataclass(kw_only=True)
class DomainRun:
    """A job's work on one domain. `complete` says whether the capture was complete.

    `base` is the commit that the work is based on: main at the start of the work. With `older`, for an import of an
    older crawl or a crawl that was overtaken, it is the snapshot before this one in time. `later` are the crawls
    published since the job began to fetch. `is_resource`: the crawl has no page of the domain, only what pages of
    others need.
    """

    job: Job
    domain: str
    store: Repository
    base: Commit | None
    tag: CommitTag
    complete: bool
    shelf: TreeReader
    older: bool = False
    later: LaterCrawls = LaterCrawls()
    is_resource: bool = False
    errors: bool = False  # whether `base` may have error pages among its documents
    copies: bool = False  # whether `base` may have copies among its documents
    resources: bool = False  # whether `base` may have documents that only pages of other hosts needed
    results: list[dict[str, Any]] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    moves: list[tuple[int, str]] = field(default_factory=list)
    arcs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ARC_COUNTS, 0))
    redirects: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REDIRECT_COUNTS, 0))

    def parent(self, main: str | None) -> str | None:
        """Return the parent of this run's commit; `main` is the current commit of main."""
        if self.older:
            return self.base.oid if self.base is not None else None
        return main

    def note(self, row: int, result: str, mime: str = "", note: str = "", *, nested: bool = False) -> None:
        """Record a document's result for the frontier and crawl.log; `nested`: its ARC's folder contained folders."""
        self.results.append({"id": row, "result": result, "nested": nested, "mime": mime, "note": note})
        if len(self.results) >= 1000:
            self.flush()

    def annotate(self, row: int, note: str) -> None:
        """Record a word for crawl.log about a URL without a document."""
        self.notes.append((row, note))
        if len(self.notes) >= 1000:
            self.flush()

    def move(self, row: int, arc: str) -> None:
        """Record that a document has another ARC than the first name of its URL."""
        self.moves.append((row, arc))
        if len(self.moves) >= 1000:
            self.flush()

    def flush(self) -> None:
        """Write the results into the frontier."""
        with self.job.frontier.changes():
            self.job.frontier.results(self.results)
            for row, note in self.notes:
                self.job.frontier.annotate(row, note)
            for row, arc in self.moves:
                self.job.frontier.move(row, arc)
        self.results.clear()
        self.notes.clear()
        self.moves.clear()
