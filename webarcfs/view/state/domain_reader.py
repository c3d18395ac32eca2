"""Reads one domain's repository for the nodes: trees, metadata of ARCs, contents; through bounded caches.

Safe for any thread; holds no lock while git reads. All domains share the caches, since git names every object by its
content.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from webarcfs.archive.document import data_xml
from webarcfs.archive.git.objects import Entry
from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.addition import ArcVersion
from webarcfs.archive.model.errors import Damaged, InvalidDocument, LookAgain
from webarcfs.archive.model.metadata import MetaData, format_time, parse_time
from webarcfs.archive.system.cache import Cache
from webarcfs.view import limits
from webarcfs.view.content import Blobs, Content, FromFile, FromMemory
from webarcfs.view.node import seconds
from webarcfs.view.state.overlay import Overlay

Entries = Mapping[str, Entry]

#: Documents whose metadata are cached, 2 KB each: for a file whose extended attributes are read one after another.
_DESCRIBED = 1_000

_log = logging.getLogger(__name__)


class ArcTimes:
    """The times of an ARC and the size of its data.xml: crawlTime as text and in seconds, createTime in seconds."""

    __slots__ = ("crawl", "crawled", "created", "size")

    def __init__(self, crawl: str, create: str, size: int) -> None:
        """Raises Damaged for an invalid time."""
        self.crawl = crawl
        self.crawled = seconds(parse_time(crawl))
        self.created = seconds(parse_time(create))
        self.size = size


class Caches:
    """The caches that the readers of one mount share, sized for the inodes that the mount may know, `most`.

    A node that the kernel dropped and looks up again is therefore not read from git again.
    """

    def __init__(self, most: int | None = None) -> None:
        most = most if most is not None else limits.inodes()
        self.trees: Cache[str, Entries] = Cache(most + most // limits.OF_AN_ARC, lambda entries: len(entries) + 1)
        self.dates: Cache[str, ArcTimes | None] = Cache(most // limits.OF_AN_ARC)
        self.metadata: Cache[str, MetaData | None] = Cache(_DESCRIBED)
        self.commits: Cache[str, Commit] = Cache(2_000)
        self.leads: Cache[str, bool] = Cache(most // limits.OF_AN_ARC)
        # Each addition reads its ARC several times.
        self.arcs: Cache[tuple[str, ArcVersion], Entry | None] = Cache(1_000)
        self.blobs = Blobs()


class DomainReader:
    """A reader of the repository of `domain`. `overlay` has the additions of this mount that its states lack.

    `origin` is the archive's repository, where `store` is one without the discarded snapshots.
    """

    def __init__(
        self, domain: str, store: Repository, caches: Caches, overlay: Overlay, origin: Repository | None = None
    ) -> None:
        self.domain = domain
        self.store = store
        self.origin = store if origin is None else origin
        self.overlay = overlay
        self._caches = caches

    def entries(self, tree: str) -> Entries:
        """Return the entries of a tree, by name; none for a folder that git does not have yet."""
        if not tree:
            return {}
        return self._caches.trees.get(tree, lambda: {entry.name: entry for entry in self.store.entries(tree)})

    def find(self, tree: str, path: str) -> Entry | None:
        """Return git's entry at `path` below `tree`, or None."""
        entry: Entry | None = Entry("", tree, True)
        for name in path.split("/"):
            entry = self.entries(entry.oid).get(name) if entry is not None and entry.is_tree else None
        return entry

    def commit(self, oid: str) -> Commit:
        """Return a commit. Raises Damaged for any other object."""
        return self._caches.commits.get(oid, lambda: self.store.commit(oid))

    def is_arc(self, tree: str) -> bool:
        """Return whether a folder is an ARC: it contains a file data.xml."""
        document = self.entries(tree).get(arc_paths.DATA_XML)
        return document is not None and document.is_document

    def leads_to_arcs(self, tree: str) -> bool:
        """Return whether an ARC lies somewhere below: this distinguishes a folder above ARCs from one of additions."""
        return self.leads(tree, self.entries(tree))

    def leads(self, tree: str, entries: Entries) -> bool:
        """Return the same for a tree whose entries are known."""
        for entry in entries.values():
            if entry.is_tree:
                return self._caches.leads.get(tree, lambda: self._leads_to_arcs(tree))
        return False

    def arc(self, tree: str, place: ArcVersion) -> Entry | None:
        """Return the folder of an ARC below `tree`; None if there is no ARC, or another version."""
        return self._caches.arcs.get((tree, place), lambda: self._arc(tree, place))

    def _arc(self, tree: str, place: ArcVersion) -> Entry | None:
        found = self.find(tree, place.arc)
        if found is not None and found.is_tree and self.is_arc(found.oid):
            dates = self.dates(self.entries(found.oid)[arc_paths.DATA_XML].oid)
            if dates is not None and dates.crawl == place.version:
                return found
        return None

    def dates(self, document: str) -> ArcTimes | None:
        """Return the times of the ARC whose data.xml is the blob `document`; None, with a log line, as `described`."""
        return self._caches.dates.get(document, lambda: self._dated(document))

    def described(self, document: str) -> MetaData | None:
        """Return the metadata of that ARC; None, with a line in the log, if its data.xml is not understood."""
        return self._caches.metadata.get(document, lambda: self._parse(document))

    def size(self, blob: str) -> int:
        """Return a blob's size."""
        pending = self.overlay.size(blob)
        return pending if pending is not None else self.store.size(blob)

    def open(self, blob: str, size: int) -> Content:
        """Return the content of a blob of `size` bytes, to be closed.

        Raises Stale for a version that was replaced before git had it, and is no longer kept here.
        """
        pending = self._pending(blob)
        if pending is None and self.overlay.is_superseded(blob):
            try:
                self.store.size(blob)
            except Damaged:  # fail now, and not at the first read
                raise LookAgain("there is a newer version of it") from None
        return pending or self._caches.blobs.open(self.store, blob, size)

    def document(self, blob: str) -> bytes:
        """Return a data.xml that git has."""
        return self._caches.blobs.whole(self.store, blob)

    def _pending(self, blob: str) -> Content | None:
        """Return the content of a blob that is not in git yet, or None."""
        found = self.overlay.read_blob(blob)
        return None if found is None else FromFile(found) if isinstance(found, int) else FromMemory(found)

    def _leads_to_arcs(self, tree: str) -> bool:
        below = (entry.oid for entry in self.entries(tree).values() if entry.is_tree)
        return any(self.is_arc(oid) or self.leads_to_arcs(oid) for oid in below)

    def _dated(self, blob: str) -> ArcTimes | None:
        try:
            document = self.store.read(blob)
            times = data_xml.times(document)
            if times is not None:
                return ArcTimes(times[0], times[1], len(document))
        except Damaged:
            pass  # `described` logs it
        meta = self.described(blob)
        if meta is None:
            return None
        return ArcTimes(format_time(meta.crawl_time), format_time(meta.create_time), self.store.size(blob))

    def _parse(self, blob: str) -> MetaData | None:
        try:
            return data_xml.metadata(self.store.read(blob))
        except (InvalidDocument, Damaged) as error:
            _log.error("%s: data.xml %s has no metadata: %s", self.domain, blob, error)
            return None
