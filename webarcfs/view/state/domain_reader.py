"""Reads one domain's repository for the nodes: trees, metadata of ARCs, contents; through bounded caches.

Safe for any thread; holds no lock while git reads. All domains share the caches, which is right because everything in
git is named by its content.
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

#: Documents whose metadata are held, 2 KB each: of a file whose extended attributes are asked for, one after another.
_DESCRIBED = 1_000

_log = logging.getLogger(__name__)


class ArcTimes:
    """When an ARC's version was stored, as its data.xml has it, that in seconds, and the createTime in seconds; and how
    large that data.xml is."""

    __slots__ = ("crawl", "crawled", "created", "size")

    def __init__(self, crawl: str, create: str, size: int) -> None:
        """Raises Damaged for what is no time."""
        self.crawl = crawl
        self.crawled = seconds(parse_time(crawl))
        self.created = seconds(parse_time(create))
        self.size = size


class Caches:
    """What the readers of one mount share: enough for as many inodes as the mount may know, `most`.

    So what the kernel looks up again, once it had to let it go, is not read from git again.
    """

    def __init__(self, most: int | None = None) -> None:
        most = most if most is not None else limits.inodes()
        self.trees: Cache[str, Entries] = Cache(most + most // limits.OF_AN_ARC, lambda entries: len(entries) + 1)
        self.dates: Cache[str, ArcTimes | None] = Cache(most // limits.OF_AN_ARC)
        self.metadata: Cache[str, MetaData | None] = Cache(_DESCRIBED)
        self.commits: Cache[str, Commit] = Cache(2_000)
        self.leads: Cache[str, bool] = Cache(most // limits.OF_AN_ARC)
        # Each addition asks for its ARC several times.
        self.arcs: Cache[tuple[str, ArcVersion], Entry | None] = Cache(1_000)
        self.blobs = Blobs()


class DomainReader:
    """The repository of `domain`, read. `overlay` is what this mount added that is not yet in the states it shows."""

    def __init__(self, domain: str, store: Repository, caches: Caches, overlay: Overlay) -> None:
        self.domain = domain
        self.store = store
        self.overlay = overlay
        self._caches = caches

    def entries(self, tree: str) -> Entries:
        """What lies in a tree, by name; nothing in a folder that git does not have yet."""
        if not tree:
            return {}
        return self._caches.trees.get(tree, lambda: {entry.name: entry for entry in self.store.entries(tree)})

    def find(self, tree: str, path: str) -> Entry | None:
        """What git has at `path` below `tree`."""
        entry: Entry | None = Entry("", tree, True)
        for name in path.split("/"):
            entry = self.entries(entry.oid).get(name) if entry is not None and entry.is_tree else None
        return entry

    def commit(self, oid: str) -> Commit:
        """A commit. Raises Damaged when it is none."""
        return self._caches.commits.get(oid, lambda: self.store.commit(oid))

    def is_arc(self, tree: str) -> bool:
        """Whether a folder is an ARC: it has a file data.xml."""
        document = self.entries(tree).get(arc_paths.DATA_XML)
        return document is not None and document.is_document

    def leads_to_arcs(self, tree: str) -> bool:
        """Whether an ARC lies somewhere below; only that tells a folder above ARCs from a folder of additions."""
        return self.leads(tree, self.entries(tree))

    def leads(self, tree: str, entries: Entries) -> bool:
        """The same of a tree whose entries are known."""
        for entry in entries.values():
            if entry.is_tree:
                return self._caches.leads.get(tree, lambda: self._leads_to_arcs(tree))
        return False

    def arc(self, tree: str, place: ArcVersion) -> Entry | None:
        """The folder of an ARC below `tree`; None where it is none, or not that version."""
        return self._caches.arcs.get((tree, place), lambda: self._arc(tree, place))

    def _arc(self, tree: str, place: ArcVersion) -> Entry | None:
        found = self.find(tree, place.arc)
        if found is not None and found.is_tree and self.is_arc(found.oid):
            dates = self.dates(self.entries(found.oid)[arc_paths.DATA_XML].oid)
            if dates is not None and dates.crawl == place.version:
                return found
        return None

    def dates(self, document: str) -> ArcTimes | None:
        """The times of the ARC whose data.xml is the blob `document`; None, and a line in the log, as `described`."""
        return self._caches.dates.get(document, lambda: self._dated(document))

    def described(self, document: str) -> MetaData | None:
        """The metadata of that ARC; None, and a line in the log, when its data.xml cannot be understood."""
        return self._caches.metadata.get(document, lambda: self._parse(document))

    def size(self, blob: str) -> int:
        """A blob's size."""
        pending = self.overlay.size(blob)
        return pending if pending is not None else self.store.size(blob)

    def open(self, blob: str, size: int) -> Content:
        """The content of a blob of `size` bytes, to be closed.

        Raises Stale for a version that the next one replaced before git had it, and that is not kept here any more.
        """
        pending = self._pending(blob)
        if pending is None and self.overlay.is_superseded(blob):
            try:
                self.store.size(blob)
            except Damaged:  # who comes too late is told now, and not when it is read
                raise LookAgain("there is a newer version of it") from None
        return pending or self._caches.blobs.open(self.store, blob, size)

    def document(self, blob: str) -> bytes:
        """A data.xml that git has."""
        return self._caches.blobs.whole(self.store, blob)

    def _pending(self, blob: str) -> Content | None:
        """The content of a blob that is not in git yet."""
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
            pass  # `described` says so
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
