"""An archive on this machine, for a client: its directory, or a mount of it.

A client of a mount reads and writes through it, and so sees what was written a moment ago; a client of a directory
reads the repositories, and writes nothing (SEMANTICS.md specifies a mount's caches).
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator, Set
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from webarcfs.access import reader_stores
from webarcfs.access.access_rules import Standing
from webarcfs.access.gate import Gate, Reader, StaffGate
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.access.reader_stores import ReaderLinks
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_xml import metadata
from webarcfs.archive.git.repository import Repository, TreeEntry, is_arc
from webarcfs.archive.history import versions
from webarcfs.archive.history.versions import ArcTree
from webarcfs.archive.index.links import FoundLink, Question
from webarcfs.archive.index.links import ask as ask_links
from webarcfs.archive.index.query import DocumentOrigin, ask
from webarcfs.archive.model.arc_paths import DATA_XML, is_data_file, is_reserved
from webarcfs.archive.model.errors import Exists, NotAnArchive, NotFound, UsageError
from webarcfs.archive.model.metadata import CommitTag, MetaData
from webarcfs.archive.system.files import write_all
from webarcfs.client.mounted import ArcFolders, behind, family
from webarcfs.client.observers import FileFeed, NewsFeed
from webarcfs.client.repositories import FoundArc, Repositories
from webarcfs.client.source import LARGE, PIECE, ArcEntry, ArcListing, Keep, ReadDocument, shown_in

if TYPE_CHECKING:
    from webarcfs.search.searching import SearchAnswer

#: Repositories of readers that stay readable after newer ones were made: somebody may be reading a list of documents.
_KEPT = 16


class LocalSource:
    """The archive at `place`, its directory or a path in a mount; with a `reader`, as that one may see it."""

    def __init__(self, place: Path, reader: str | None) -> None:
        """Raises NotAnArchive; UsageError for a reader of a mount."""
        self.mount, self.archive = _found(place.absolute())
        if reader is not None and self.mount is not None:
            raise UsageError("a mount shows all that there is; a reader's client needs the archive's directory")
        self._of_client = StaffGate(self.archive) if reader is None else Gate(self.archive, Reader(reader))
        self._readers = ReaderRepositories(self._of_client, keep=_KEPT)
        self._repositories = Repositories(self.archive, self._readers)
        self._folders = ArcFolders(self.mount, self._repositories)
        self._feed = FileFeed(self.mount / ".changes" if self.mount is not None else self.archive.changes)

    def close(self) -> None:
        """Remove what was made for the reader."""
        self._repositories.close()

    # -- documents ---------------------------------------------------------------------------------------------------

    def select(self, where: str, order_by: str, limit: int | None, origin: DocumentOrigin) -> list[MetaData]:
        """Ask webarc.db."""
        gate = self._gate
        narrowed = None if gate is None else reader_stores.narrowed(gate)
        return list(ask(self.archive.database, where, order_by, limit, narrowed=narrowed, origin=origin))

    def search(self, words: str, narrowing: dict[str, Any]) -> SearchAnswer:
        """Ask the full-text index."""
        if find_spec("tantivy") is None:
            raise UsageError("search needs more libraries: pip install 'webarcfs[search]'")
        from webarcfs.search.searching import Searcher, SearchQuestion  # noqa: PLC0415 # of the extra `search`

        return Searcher(self.archive, self._gate).ask(SearchQuestion(words=words, **narrowing))

    def links(self, question: Question, seconds: float) -> Iterator[FoundLink]:
        """Ask links.db."""
        gate = self._gate
        reader = None if gate is None else ReaderLinks(gate, self._readers, question)
        return ask_links(self.archive, question, seconds, reader, arcs=True)

    def document(self, tag: CommitTag, path: str) -> MetaData:
        """Return the document at `path` (`/<domain>/…`) in a snapshot, as `documents` has it. Raises NotFound."""
        return self._described(self.folder(tag, path), tag)

    def folder(self, tag: CommitTag, path: str) -> FoundArc:
        """Return the folder of the document at `path` in a snapshot, as the repository has it. Raises NotFound."""
        return self._repositories.document(tag, path)

    def repository(self, domain: str) -> Repository:
        """Return the repository of a domain as the client sees it. Raises NotFound, Damaged."""
        return self._repositories.store(domain)

    def listing(self, meta: MetaData) -> ArcListing:
        """Return what git has of a document's ARC in its snapshot. Raises NotFound, Damaged."""
        return self.listing_of(self._repositories.arc(meta), meta.commit_tag)

    def listing_of(self, found: FoundArc, tag: CommitTag) -> ArcListing:
        """Return what the folder of a document has in a snapshot. Raises Damaged."""
        entries = tuple(
            ArcEntry(entry.name, entry.is_tree, 0 if entry.is_tree else found.store.size(entry.oid), entry.oid)
            for entry in found.entries.values()
        )
        return ArcListing(self._described(found, tag), found.tree, entries)

    def _described(self, found: FoundArc, tag: CommitTag) -> MetaData:
        """Return a document as it is in a snapshot. Raises InvalidDocument, Damaged."""
        stored = metadata(found.store.read(found.entries[DATA_XML].oid))
        known: Set[CommitTag] | None = None
        if self._gate is not None and found.store.ref(stored.commit_tag.ref) is None:
            known = frozenset()  # a reader does not see the snapshot that stored it
        return shown_in(stored, tag, known)

    def names(self, meta: MetaData) -> list[str]:
        """Return the names in a document's ARC: as the mount shows them, else as git has them."""
        arc = self._repositories.arc(meta)
        if folder := self._place_in_mount(meta):
            with family(meta.path):
                return sorted(os.listdir(folder))  # noqa: PTH208 # the path is a string already
        return [*arc.entries]

    def data_name(self, meta: MetaData) -> str:
        """Return the name of the document's data file."""
        for name, entry in self._repositories.arc(meta).entries.items():
            if is_data_file(name) and not entry.is_tree:
                return name
        raise NotFound(f"{meta.path} has no data file in {meta.commit_tag}")

    def read(self, meta: MetaData, name: str) -> BinaryIO:
        """Open a file of the document's ARC: from git if it is small, else through the mount or an unnamed file."""
        arc, name = self._repositories.arc(meta), name.strip("/")
        if ".." in name.split("/"):
            raise NotFound(f"{name!r} leads out of {meta.path}")
        store, entry = arc.store, arc.entries.get(name)
        # Crawled files are equal in git, and faster there if small; git does not have recent additions yet.
        crawled = entry if name != DATA_XML and is_reserved(name) else None
        if crawled is not None and not crawled.is_tree and store.size(crawled.oid) <= LARGE:
            return io.BytesIO(store.read(crawled.oid))
        if folder := self._place_in_mount(meta):
            with family(f"{meta.path}/{name}"):
                return open(f"{folder}/{name}", "rb")  # noqa: PTH123 # the caller closes it
        entry = entry or store.find(arc.tree, name)
        if entry is None or entry.is_tree:
            raise NotFound(f"{meta.path} has no file {name!r} in {meta.commit_tag}")
        return _opened(store, entry.oid, name)

    @contextmanager
    def adding(self, meta: MetaData, name: str) -> Iterator[Keep]:
        """Announce a new file of the mount, in the open folder of its ARC."""
        place = f"{meta.path}/{name}"
        with self._folders.current(meta) as folder:
            if folder.has(name):
                raise Exists(f"{place} is there already")

            def keep(body: BinaryIO) -> None:
                folder.check()
                with family(place), folder.opened(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
                    while piece := body.read(PIECE):
                        write_all(fd, piece)

            yield keep

    def add_node(self, meta: MetaData, name: str, element: bytes) -> None:  # noqa: ARG002 # a mount reads it there
        """Append an element to data.xml of the mount, which makes a node of it."""
        with (
            self._folders.current(meta) as folder,
            family(f"{meta.path}/{DATA_XML}"),
            folder.opened(DATA_XML, os.O_WRONLY | os.O_APPEND) as fd,
        ):
            os.write(fd, element)

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def domains(self) -> list[str]:
        """Return the domains that the client may see."""
        gate = self._gate
        return list(self.archive.domains()) if gate is None else gate.domains()

    def records(self, publication: str | None) -> Iterator[Record]:
        """Return the records that the client may see."""
        gate = self._gate
        return Catalogue(self.archive).records(publication) if gate is None else gate.records(publication)

    def snapshots(self, domain: str) -> list[CommitTag]:
        """Return the commitTags of a domain from its refs."""
        return [tag for tag, _ in versions.snapshots(self._repositories.store(domain), domain)]

    def documents(self, tag: CommitTag, after: str) -> Iterator[MetaData]:
        """Return the documents of a snapshot from its tree."""
        store = self._repositories.store(tag.domain)
        arcs = versions.arcs(store, store.snapshot_tree(tag))
        if after and not any(f"/{tag.domain}/{arc.path}" == after for arc in arcs):
            raise NotFound(f"{tag} has no document {after}")
        known = self._known(tag)
        return (shown_in(versions.described(store, arc), tag, known) for arc in arcs)

    def changed(self, tag: CommitTag) -> Iterator[MetaData]:
        """Return what a snapshot stored; for a reader what differs from the visible one before."""
        store = self._repositories.store(tag.domain)
        known = self._known(tag)
        if known is None:
            return versions.stored_by(store, tag)
        # What a hidden snapshot stored is new to the reader where a visible one has it first.
        return (shown_in(meta, tag, known) for meta in versions.differing(store, tag))

    def read_all(self, tag: CommitTag) -> Iterator[ReadDocument]:
        """Read the documents of a snapshot from its tree."""
        store = self._repositories.store(tag.domain)
        tree = store.snapshot_tree(tag)
        known = self._known(tag)
        return (_read_document(store, tree, arc, tag, known) for arc in versions.arcs(store, tree))

    # -- news --------------------------------------------------------------------------------------------------------

    @property
    def feed(self) -> NewsFeed:
        """The file of commitTags."""
        return self._feed

    def is_shown(self, tag: CommitTag) -> bool:
        """Return whether the client may see a snapshot, by the rules of this moment."""
        own = self._of_client
        gate = StaffGate(self.archive) if own.is_staff else Gate(self.archive, own.reader)
        if not gate.is_needed:
            return True
        snapshot = gate.standing(tag)
        return snapshot is not None and snapshot.standing is Standing.OPEN

    # ----------------------------------------------------------------------------------------------------------------

    @property
    def _gate(self) -> Gate | None:
        """The gate; None where nothing is hidden from staff."""
        return self._of_client if self._of_client.is_needed else None

    def _known(self, tag: CommitTag) -> Set[CommitTag] | None:
        """Return the snapshots of a tag's domain that the reader may see; None for all."""
        return None if self._gate is None else set(self.snapshots(tag.domain))

    def _place_in_mount(self, meta: MetaData) -> str:
        """Return the path of a document's ARC in the mount, or an empty one: only the newest snapshot can grow."""
        if self.mount is None:
            return ""
        if self._repositories.is_newest(meta.commit_tag):
            return f"{self.mount}{meta.path}"
        return f"{self.mount}/.snapshots/{meta.commit_tag}{meta.path}"


def _found(place: Path) -> tuple[Path | None, Archive]:
    """Return the mount that contains `place`, if any, and the archive."""
    if mount_and_archive := behind(place):
        return mount_and_archive
    if not place.is_dir():
        raise NotAnArchive(f"there is no folder {place}")
    return None, directory.open_archive(place)


def _opened(store: Repository, blob: str, name: str) -> BinaryIO:
    """Return a blob as a stream: of memory if it is small, else of an unnamed file."""
    if store.size(blob) <= LARGE:
        return io.BytesIO(store.read(blob))
    with family(name):
        body = tempfile.TemporaryFile()  # noqa: SIM115 # the caller closes it
        store.copy(blob, body.fileno())
        body.seek(0)
        return body


def _read_document(
    store: Repository, tree: str, arc: ArcTree, tag: CommitTag, known: Set[CommitTag] | None
) -> ReadDocument:
    document = ReadDocument(shown_in(versions.described(store, arc), tag, known))
    folder = store.find(tree, arc.path)
    for name, blob in _files(store, store.entries(folder.oid) if folder is not None else []):
        document.files[name] = _opened(store, blob, name)
    return document


def _files(store: Repository, entries: list[TreeEntry], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the files of an ARC, those in users' folders included, but not those of ARCs below it."""
    for entry in entries:
        if not entry.is_tree:
            yield prefix + entry.name, entry.oid
        elif not is_arc(below := store.entries(entry.oid)):
            yield from _files(store, below, f"{prefix}{entry.name}/")
