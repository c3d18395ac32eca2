"""The archive for Python programs: documents, their files and data nodes, snapshots, news (/Cl-2/ … /Cl-11/).

    from webarcfs.client import WebarchiveClient

    with WebarchiveClient("/mnt/archive") as client:
        for meta in client.select("mimeType = 'text/html'", "crawlTime DESC", limit=10):
            print(meta.title, len(client.open_read(meta, client.data_name(meta)).read()))

A client of a mount reads and writes through it, and so sees what was written a moment ago; a client of an archive's
directory reads the repositories, and writes nothing (SEMANTICS.md specifies a mount's caches). Errors are those of
`webarcfs.archive.model.errors`, never bare OSErrors. Safe for any thread.
"""

from __future__ import annotations

import builtins
import dataclasses
import io
import os
import tempfile
from collections.abc import Iterator, Set
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from xml.etree import ElementTree

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_xml import parse_element
from webarcfs.archive.history import versions
from webarcfs.archive.index.links_query import FoundLink, Question
from webarcfs.archive.index.links_query import ask as ask_links
from webarcfs.archive.index.query import SECONDS, ask
from webarcfs.archive.model.arc_paths import DATA_XML, is_data_file, is_reserved
from webarcfs.archive.model.errors import Exists, InvalidDocument, NotAnArchive, NotFound, UsageError
from webarcfs.archive.model.metadata import CommitTag, MetaData
from webarcfs.archive.system.fsync import write_all
from webarcfs.client import mounted
from webarcfs.client.arc_folders import ArcFolders
from webarcfs.client.mounted import family
from webarcfs.client.observers import INTERVAL, News, Observer
from webarcfs.client.repositories import Repositories
from webarcfs.gate import reader_query
from webarcfs.gate.gate import Gate, Reader, StaffGate
from webarcfs.gate.reader_links import ReaderLinks
from webarcfs.gate.reader_repositories import ReaderRepositories
from webarcfs.gate.visibility import Standing

if TYPE_CHECKING:
    from webarcfs.search.searching import SearchAnswer

__all__ = ["CommitTag", "MetaData", "Observer", "WebarchiveClient"]

#: Bodies up to this size are read into memory; larger ones go through an unnamed file.
LARGE = 4 << 20
_PIECE = 1 << 20
_DATA = "{urn:webarcfs:arc:1}data"


class WebarchiveClient:
    """Access to one archive (/Cl-2.2/): `place` is its directory, or a mount of it (or a path inside one).

    `interval` is the time between two checks for observers' news, in seconds (/Sv-5.1/). With the name of a `reader`
    (empty: the public), the client shows what that reader may see, of an archive's directory only. Raises NotAnArchive,
    UsageError.
    """

    def __init__(self, place: str | os.PathLike[str], *, interval: float = INTERVAL, reader: str | None = None) -> None:
        self.mount, self.archive = _found(Path(place).absolute())
        if reader is not None and self.mount is not None:
            raise UsageError("a mount shows all that there is; a reader's client needs the archive's directory")
        self._of_client = StaffGate(self.archive) if reader is None else Gate(self.archive, Reader(reader))
        self._readers = ReaderRepositories(self._of_client)
        feed = self.mount / ".changes" if self.mount is not None else self.archive.changes
        self._news = News(feed, interval)
        self._repositories = Repositories(self.archive, self._readers)
        self._folders = ArcFolders(self.mount, self._repositories)

    def __enter__(self) -> WebarchiveClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the observers' thread, after the deliveries under way."""
        self._news.stop()
        self._repositories.close()

    # -- documents ---------------------------------------------------------------------------------------------------

    def select(self, where: str = "", order_by: str = "", limit: int | None = None) -> builtins.list[MetaData]:
        """Return the documents for which an SQL condition holds, one for each snapshot that has them (/Cl-6/).

        Raises BadCondition, TookTooLong; `webarc query --help` describes conditions.
        """
        gate = self._gate
        narrowed = None if gate is None else reader_query.narrowed(gate)
        return list(ask(self.archive.database, where, order_by, limit, narrowed=narrowed))

    def search(self, words: str, **narrowing: Any) -> SearchAnswer:
        """Return documents with words, in the language of `webarc search --help`: 20 hits, and the number of all.

        `narrowing` are the fields of `webarcfs.search.searching.SearchQuestion`: `at` (a CommitTag or a time),
        `all_versions`, `domain`, `type`, `language`, `publication`, `record`, `sort`, `limit`, `offset`, …. Raises
        BadCondition, NotFound without an index, UsageError without the libraries of webarcfs[search].
        """
        if find_spec("tantivy") is None:
            raise UsageError("search needs more libraries: pip install 'webarcfs[search]'")
        from webarcfs.search.searching import Searcher, SearchQuestion  # noqa: PLC0415 # of the extra `search`

        return Searcher(self.archive, self._gate).ask(SearchQuestion(words=words, **narrowing))

    def links(self, question: Question, seconds: float = SECONDS) -> Iterator[FoundLink]:
        """Yield links of pages, with the ARC of each target that is archived; `Question` says which.

        Raises NotFound without links.db, TookTooLong.
        """
        gate = self._gate
        reader = None if gate is None else ReaderLinks(gate, self._readers, question)
        return ask_links(self.archive, question, seconds, reader, arcs=True)

    def list(self, meta: MetaData) -> builtins.list[str]:
        """Return the names in a document's ARC in its snapshot, additions included (/Cl-7/). Raises NotFound."""
        arc = self._repositories.arc(meta)
        if folder := self._shown_in(meta):
            with family(meta.path):
                return sorted(os.listdir(folder))  # noqa: PTH208 # the path is a string already
        return [*arc.entries]

    def data_name(self, meta: MetaData) -> str:
        """Return the name of the document's data file (`data.html`). Raises NotFound."""
        for name, entry in self._repositories.arc(meta).entries.items():
            if is_data_file(name) and not entry.is_tree:
                return name
        raise NotFound(f"{meta.path} has no data file in {meta.commit_tag}")

    def open_read(self, meta: MetaData, name: str) -> BinaryIO:
        """Open a file of the document's ARC as a stream (/Cl-8/): `name` may be in users' folders. Raises NotFound."""
        arc, name = self._repositories.arc(meta), name.strip("/")
        if ".." in name.split("/"):
            raise NotFound(f"{name!r} leads out of {meta.path}")
        store, found = arc.store, arc.entries.get(name)
        # Crawled files are equal in git, and faster there if small; git does not have recent additions yet.
        crawled = found if name != DATA_XML and is_reserved(name) else None
        if crawled is not None and not crawled.is_tree and store.size(crawled.oid) <= LARGE:
            return io.BytesIO(store.read(crawled.oid))
        if folder := self._shown_in(meta):
            with family(f"{meta.path}/{name}"):
                return open(f"{folder}/{name}", "rb")  # noqa: PTH123 # the caller closes it
        found = found or store.find(arc.tree, name)
        if found is None or found.is_tree:
            raise NotFound(f"{meta.path} has no file {name!r} in {meta.commit_tag}")
        if store.size(found.oid) <= LARGE:
            return io.BytesIO(store.read(found.oid))
        with family(name):
            body = tempfile.TemporaryFile()  # noqa: SIM115 # the caller closes it
            store.copy(found.oid, body.fileno())
            body.seek(0)
            return body

    @contextmanager
    def open_write(self, meta: MetaData, name: str) -> Iterator[BinaryIO]:
        """Open a new file in the document's ARC as a stream (/Cl-9/); it is kept if the `with` block raises nothing.

        Raises Exists for an existing name, Stale when a crawl replaced the document (/Ar-10/), NotPermitted where no
        addition is allowed, or for a client without a mount.
        """
        place = f"{meta.path}/{name}"
        with self._folders.current(meta) as folder, tempfile.SpooledTemporaryFile(LARGE) as body:
            if folder.has(name):
                raise Exists(f"{place} is there already")
            # A file closed in a mount stays for ever, so nothing from a failed block may get there.
            yield cast(BinaryIO, body)
            body.seek(0)
            folder.check()
            with family(place), folder.opened(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
                while piece := body.read(_PIECE):
                    write_all(fd, piece)

    # -- data nodes --------------------------------------------------------------------------------------------------

    def get_data(self, meta: MetaData, tag: str) -> ElementTree.Element | None:
        """Return the data node of an expanded name (`words`, `{urn:x}words`), or None (/Cl-10/)."""
        with self.open_read(meta, DATA_XML) as stream:
            document = stream.read()
        parse_element(document)  # refuses what is unsafe for the standard library's parser
        data = ElementTree.fromstring(document).find(_DATA)  # noqa: S314 # our own, checked when it was written
        return next((node for node in (data if data is not None else ()) if node.tag == tag), None)

    def add_data(self, meta: MetaData, tag: str, element: ElementTree.Element | str) -> None:
        """Add a data node (/Cl-11/): `element`, whose expanded name must be `tag`, or the text of a new element.

        Raises Exists for an existing name, InvalidDocument when a schema of the archive does not allow it, Stale,
        NotPermitted as `open_write` does.
        """
        if isinstance(element, str):
            text, element = element, ElementTree.Element(tag)
            element.text = text
        if element.tag != tag:
            raise InvalidDocument(f"the element is called {element.tag}, not {tag}")
        with (
            self._folders.current(meta) as folder,
            family(f"{meta.path}/{DATA_XML}"),
            folder.opened(DATA_XML, os.O_WRONLY | os.O_APPEND) as fd,
        ):
            os.write(fd, ElementTree.tostring(element, "unicode").encode("utf-8", "xmlcharrefreplace"))

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def domains(self) -> builtins.list[str]:
        """Return the domains of the archive, in order."""
        gate = self._gate
        return builtins.list(self.archive.domains()) if gate is None else gate.domains()

    def records(self, publication: str | None = None) -> Iterator[Record]:
        """Yield the records of captures, or of a publication's, newest first: those that the client may see.

        Raises Damaged.
        """
        gate = self._gate
        return Catalogue(self.archive).records(publication) if gate is None else gate.records(publication)

    def snapshots(self, domain: str) -> builtins.list[CommitTag]:
        """Return the commitTags of a domain, oldest first. Raises NotFound."""
        return [tag for tag, _ in versions.snapshots(self._repositories.store(domain), domain)]

    def at(self, commit_tag: CommitTag | str) -> Iterator[MetaData]:
        """Yield all documents of a snapshot, by folders; as `select`, but read from git. Raises NotFound."""
        tag = _tag(commit_tag)
        store = self._repositories.store(tag.domain)
        tree = versions.tree_of(store, tag)
        known = None if self._gate is None else set(self.snapshots(tag.domain))
        return (_shown(versions.described(store, arc), tag, known) for arc in versions.arcs(store, tree))

    def changed(self, commit_tag: CommitTag | str) -> Iterator[MetaData]:
        """Yield the documents that a snapshot added, or of which it stored another version. Raises NotFound."""
        tag = _tag(commit_tag)
        store = self._repositories.store(tag.domain)
        if self._gate is None:
            return versions.stored_by(store, tag)
        # What a hidden snapshot stored is new to the reader where a visible one has it first.
        known = set(self.snapshots(tag.domain))
        return (_shown(meta, tag, known) for meta in versions.differing(store, tag))

    # -- news --------------------------------------------------------------------------------------------------------

    def add_observer(self, observer: Observer, since: CommitTag | str | None = None) -> None:
        """Call `observer` with the list of new commitTags, in order, from a thread of its own (/Cl-4/, /Cl-5/).

        It begins after `since`, the last tag that it remembers, or with later publications only. A call that raises is
        logged, and its tags are delivered again, with newer ones. A reader's observer gets the tags that the reader may
        see when they are delivered. Raises NotFound when the feed has no such tag.
        """
        self._news.add(observer, None if since is None else str(_tag(since)), self._is_shown)

    def remove_observer(self, observer: Observer) -> None:
        """Stop calling it; on return no call is under way, unless the observer itself is the caller."""
        self._news.remove(observer)

    # ----------------------------------------------------------------------------------------------------------------

    @property
    def _gate(self) -> Gate | None:
        """The gate; None where nothing is hidden from staff."""
        return self._of_client if self._of_client.is_needed else None

    def _is_shown(self, tag: CommitTag) -> bool:
        """Return whether the client may see a snapshot. Called in the observers' thread."""
        own = self._of_client
        gate = StaffGate(self.archive) if own.is_staff else Gate(self.archive, own.reader)
        if not gate.is_needed:
            return True
        found = gate.standing(tag)
        return found is not None and found.standing is Standing.OPEN

    def _shown_in(self, meta: MetaData) -> str:
        """Return the path of a document's ARC in the mount, or an empty one: only the newest snapshot can grow."""
        if self.mount is None:
            return ""
        if self._repositories.is_newest(meta.commit_tag):
            return f"{self.mount}{meta.path}"
        return f"{self.mount}/.snapshots/{meta.commit_tag}{meta.path}"


def _found(place: Path) -> tuple[Path | None, Archive]:
    """Return the mount that contains `place`, if any, and the archive."""
    if found := mounted.behind(place):
        return found
    if not place.is_dir():
        raise NotAnArchive(f"there is no folder {place}")
    return None, directory.open_archive(place)


def _tag(tag: CommitTag | str) -> CommitTag:
    return tag if isinstance(tag, CommitTag) else CommitTag.parse(tag)


def _shown(meta: MetaData, tag: CommitTag, known: Set[CommitTag] | None) -> MetaData:
    """Return a document's metadata in a snapshot: crawlTime and commitTag are the snapshot's.

    So is the time of capture, if a reader does not know the snapshot that stored it; `known` is None for all.
    """
    is_known = known is None or meta.commit_tag in known
    captured = None if meta.capture_time == tag.crawl_time or not is_known else meta.capture_time
    return dataclasses.replace(meta, crawl_time=tag.crawl_time, commit_tag=tag, captured=captured)
