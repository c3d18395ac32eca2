"""What the handlers ask: the archive as whoever asks may see it. A server brings it.

`ClientSource` reads an archive's directory by a `WebarchiveClient`, so that what a reader may not see is not there.
Any thread may use it. What a reader may know to exist, and not see, is named: an embargo, a document that is withheld.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol
from xml.etree.ElementTree import Element

from webarcfs.access import reader_stores
from webarcfs.access.access_rules import AccessFile, Blocked, Standing
from webarcfs.access.gate import Gate, KnownGate, Reader
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.access.reader_stores import ReaderRecords
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive, layout_of
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.index.links import FoundLink, Question
from webarcfs.archive.index.query import DocumentOrigin, ask
from webarcfs.archive.model.errors import DocumentWithheld, Forbidden, NotFound, SettingsError
from webarcfs.archive.model.metadata import CommitTag, MetaData, format_time
from webarcfs.archive.model.url_lists import REDIRECTS
from webarcfs.archive.system import clocks
from webarcfs.client.client import WebarchiveClient
from webarcfs.client.local_source import LocalSource
from webarcfs.client.observers import NewsFeed
from webarcfs.client.repositories import FoundArc
from webarcfs.client.source import ArcListing
from webarcfs.web import limits
from webarcfs.web.ranges import body_in_pieces

if TYPE_CHECKING:
    from webarcfs.search.searching import SearchAnswer

# == values ===========================================================================================================


@dataclass(frozen=True, slots=True)
class FileBody:
    """A file. `pieces` yields its bytes from a place up to another, in pieces that fit into memory."""

    blob: str
    size: int
    pieces: Callable[[int, int], Iterator[bytes]]


#: Documents that are read from a database: closed in the thread that began with them.
Documents = Generator[MetaData, None, None]


class ApiSource(Protocol):
    """The archive as whoever asks may see it. What is not there raises NotFound; all may raise Damaged."""

    @property
    def person(self) -> str:
        """The name of whoever asks; empty for the public."""

    def abilities(self) -> list[str]:
        """Return what the server can do for whoever asks: read, search, links, …."""

    def layout(self) -> int:
        """Return the version of the archive's layout."""

    def domains(self) -> list[str]:
        """Return the domains, in order."""

    def snapshots(self, domain: str) -> list[CommitTag]:
        """Return the snapshots of a domain, oldest first."""

    def documents(self, tag: CommitTag, after: str) -> Iterator[MetaData]:
        """Return the documents of a snapshot, by folders; those behind the one at the path `after`."""

    def changed(self, tag: CommitTag) -> Iterator[MetaData]:
        """Return the documents that a snapshot added or changed."""

    def query(self, where: str, order_by: str, limit: int | None, origin: DocumentOrigin) -> Documents:
        """Yield the documents for which a condition holds, for one thread. Raises BadCondition, TookTooLong."""

    def arc(self, tag: CommitTag, path: str) -> ArcListing:
        """Return a document with its names. Raises Forbidden under an embargo, DocumentWithheld by a rule."""

    def file(self, tag: CommitTag, path: str, name: str) -> FileBody:
        """Return a file of a document, which may be in users' folders. Raises as `arc`."""

    def node(self, tag: CommitTag, path: str, name: str) -> Element | None:
        """Return the data node of an expanded name, or None. Raises as `arc`."""

    def files(self, tag: CommitTag) -> Iterator[tuple[str, FileBody]]:
        """Return all files of a snapshot with their paths below the domain."""

    def search(self, words: str, narrowing: Mapping[str, Any]) -> SearchAnswer:
        """Return a page of hits. Raises BadCondition, and NotFound without an index."""

    def links(self, question: Question) -> Generator[FoundLink, None, None]:
        """Yield links of pages, for one thread. Raises NotFound without links, TookTooLong."""

    def records(self, publication: str | None) -> Iterable[Record]:
        """Return the records of crawls, newest first."""

    def record(self, record_id: str) -> Record:
        """Return a record."""

    def publication(self, name: str) -> dict[str, object]:
        """Return what a publication is, as JSON has it."""

    def shown(self, tags: Iterable[CommitTag]) -> set[CommitTag]:
        """Return those of some snapshots that whoever asks may see now."""

    def news_state(self) -> object:
        """Return a value that changes whenever there may be news."""

    @property
    def feed(self) -> NewsFeed:
        """The commitTags of all snapshots, in the order of their publication."""


# == client source ====================================================================================================


class ClientSource:
    """An archive's directory, for a reader; for any thread. What was made for the reader goes with it.

    With None for a reader, documents are as staff see them.
    """

    def __init__(self, archive: Archive, reader: str | None = "") -> None:
        self._archive = archive
        self._reader = Reader(reader or "")
        self._local = LocalSource(archive.root, reader)
        self._client = WebarchiveClient.of(self._local)
        self._catalogue = Catalogue(archive)
        self._domains: set[str] = set()
        self._access = AccessFile(archive)
        self._looking = threading.Lock()
        self._latest_gate: KnownGate | None = None

    def look(self) -> None:
        """Begin a request: what cannot be decided is closed. Raises SettingsError for access rules with faults."""
        with self._looking:
            self._access.rules()

    @property
    def person(self) -> str:
        """The name of the reader; empty for the public."""
        return self._reader.name

    @property
    def opened(self) -> int:
        """How many domains it has opened: each may keep files open."""
        return len(self._domains)

    @property
    def feed(self) -> NewsFeed:
        """The archive's feed."""
        return self._local.feed

    def abilities(self) -> list[str]:
        """Return what the server can do: it reads."""
        has_search = find_spec("tantivy") is not None and (self._archive.search / "current").exists()
        return ["read", *(["search"] if has_search else []), *(["links"] if self._archive.links.exists() else [])]

    def layout(self) -> int:
        """Return the version of the archive's layout."""
        return layout_of(self._archive.root)

    # -- lists -------------------------------------------------------------------------------------------------------

    def domains(self) -> list[str]:
        """Return the domains of which the reader sees a snapshot."""
        return self._gate().domains()

    def snapshots(self, domain: str) -> list[CommitTag]:
        """Return the snapshots of a domain, oldest first."""
        self._store(domain)
        return self._client.snapshots(domain)

    def documents(self, tag: CommitTag, after: str) -> Iterator[MetaData]:
        """Return the documents of a snapshot, by folders."""
        self._open(tag)
        return self._client.at(tag, after=after)

    def changed(self, tag: CommitTag) -> Iterator[MetaData]:
        """Return the documents that a snapshot added or changed."""
        self._open(tag)
        return self._client.changed(tag)

    def query(self, where: str, order_by: str, limit: int | None, origin: DocumentOrigin) -> Documents:
        """Yield the documents for which a condition holds."""
        narrowed = reader_stores.narrowed(self._gate())
        yield from ask(self._archive.database, where, order_by, limit, narrowed=narrowed, origin=origin)

    def search(self, words: str, narrowing: Mapping[str, Any]) -> SearchAnswer:
        """Return a page of hits."""
        return self._client.search(words, **narrowing)

    def links(self, question: Question) -> Generator[FoundLink, None, None]:
        """Yield links of pages."""
        yield from self._client.links(question)

    def records(self, publication: str | None) -> Iterable[Record]:
        """Return the records that the reader may see, newest first."""
        return self._client.records(publication)

    def record(self, record_id: str) -> Record:
        """Return a record as the reader may see it. Raises Forbidden under an embargo."""
        records = ReaderRecords(self._archive, reader=self._reader.name)
        head = records.head(record_id)
        if head is not None and head.closed_until is not None:
            raise Forbidden(f"the crawl is under embargo until {format_time(head.closed_until)}")
        return records.read(record_id)

    def publication(self, name: str) -> dict[str, object]:
        """Return what a publication is, with the number of its records in each year."""
        years = ReaderRecords(self._archive, reader=self._reader.name).years_of(name)
        if not years:
            raise NotFound(f"there is no publication {name!r}")
        return {"name": name, "description": self._description(name), "records": sum(years.values()), "years": years}

    # -- documents ---------------------------------------------------------------------------------------------------

    def arc(self, tag: CommitTag, path: str) -> ArcListing:
        """Return a document with its names."""
        return self._local.listing_of(self._folder(tag, path), tag)

    def file(self, tag: CommitTag, path: str, name: str) -> FileBody:
        """Return a file of a document."""
        arc = self._folder(tag, path)
        entry = arc.store.find(arc.tree, name)
        if entry is None or entry.is_tree:
            raise NotFound(f"{path} has no file {name!r} in {tag}")
        return _body(arc.store, entry.oid)

    def node(self, tag: CommitTag, path: str, name: str) -> Element | None:
        """Return the data node of an expanded name, or None."""
        return self._client.get_data(self._local.listing_of(self._folder(tag, path), tag).document, name)

    def files(self, tag: CommitTag) -> Iterator[tuple[str, FileBody]]:
        """Return all files of a snapshot with their paths below the domain."""
        self._open(tag)
        store = self._store(tag.domain)
        tree = store.snapshot_tree(tag)
        return _files(store, tree)

    # -- news --------------------------------------------------------------------------------------------------------

    def shown(self, tags: Iterable[CommitTag]) -> set[CommitTag]:
        """Return those of some snapshots that the reader may see now."""
        gate = self._gate()
        shown: set[CommitTag] = set()
        of_domains: dict[str, set[int]] = {}
        for tag in tags:
            clocks.check()
            if tag.domain not in of_domains:
                snapshots = gate.snapshots(tag.domain)
                of_domains[tag.domain] = {snapshot.seq for snapshot in snapshots if snapshot.standing is Standing.OPEN}
            if int(tag.crawl_time.timestamp()) in of_domains[tag.domain]:
                shown.add(tag)
        return shown

    def news_state(self) -> object:
        """Return the state of the feed and of the catalogue: a release is news, too."""
        try:
            status = os.stat(self._archive.changes)  # noqa: PTH116 # asked several times a second
            feed = (status.st_ino, status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            feed = (0, 0, 0)
        return feed, self._catalogue.state()

    # ----------------------------------------------------------------------------------------------------------------

    def _description(self, name: str) -> str:
        """Return what the settings say of a publication; nothing where they have faults."""
        try:
            settings, _ = settings_files.load(self._archive.settings)
        except SettingsError:
            return ""
        return next((known.description for known in settings.publications if known.name == name), "")

    def _gate(self) -> Gate:
        """Return a gate for one thread. What it knows is kept for the next one, until the archive changes."""
        gate = KnownGate(self._archive, self._reader)
        gate.look()
        self._latest_gate = gate
        return gate

    def _store(self, domain: str) -> Repository:
        store = self._local.repository(domain)
        self._domains.add(domain)
        return store

    def _open(self, tag: CommitTag) -> None:
        """Raise NotFound for a snapshot that the reader does not see, Forbidden for one under an embargo."""
        try:
            self._store(tag.domain).commit_of(tag)
        except NotFound:
            ReaderRepositories(self._gate()).must_be_open(tag)
            raise

    def _folder(self, tag: CommitTag, path: str) -> FoundArc:
        """Return the folder of a document. Raises NotFound, Forbidden under an embargo, DocumentWithheld by a rule."""
        self._domains.add(tag.domain)
        try:
            return self._local.folder(tag, path)
        except NotFound:
            self._open(tag)
            answer = self._gate().may(tag.domain, path, int(tag.crawl_time.timestamp()))
            if isinstance(answer, Blocked):
                raise DocumentWithheld(answer.text or "this document is archived, and may not be shown") from None
            raise


def _files(store: Repository, tree: str) -> Iterator[tuple[str, FileBody]]:
    for entry in store.each(tree):
        files = store.files(entry.oid, entry.name) if entry.is_tree else iter([(entry.name, entry.oid)])
        for path, blob in files if entry.name != REDIRECTS else ():
            clocks.check()
            yield path, _body(store, blob)


def _body(store: Repository, blob: str) -> FileBody:
    size = store.size(blob)
    return FileBody(blob, size, lambda start, end: body_in_pieces(store, blob, size, start, end))


class ClientSources:
    """The sources of a process, for the readers that came last. For any thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._known: OrderedDict[str, ClientSource] = OrderedDict()

    def of(self, reader: str) -> ClientSource:
        """Return the source of a reader, for a request. Raises as its `look`.

        One that opened many domains is replaced: who uses it still, keeps it.
        """
        with self._lock:
            source = self._known.get(reader)
            if source is None or source.opened > limits.API_DOMAINS:
                source = self._known[reader] = ClientSource(self._archive, reader)
            self._known.move_to_end(reader)
            while len(self._known) > limits.API_READERS:
                self._known.popitem(last=False)
        source.look()
        return source
