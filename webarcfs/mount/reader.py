"""Reads one domain's repository for the nodes: trees, metadata of ARCs, contents; through bounded caches.

Safe for any thread; holds no lock while git reads. All domains share the caches, which is right because everything in
git is named by its content.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from webarcfs.archive import arcxml, layout
from webarcfs.archive.errors import Damaged, InvalidDocument
from webarcfs.archive.model import MetaData
from webarcfs.archive.store import Commit, Entry, Store
from webarcfs.mount.blobs import Blobs, Content
from webarcfs.mount.cache import Cache

Entries = Mapping[str, Entry]

_log = logging.getLogger(__name__)


class Caches:
    """What the readers of one mount share. An entry takes some 300 bytes, so this is 50 MB at most."""

    def __init__(self) -> None:
        self.trees: Cache[str, Entries] = Cache(150_000, lambda entries: len(entries) + 1)
        self.metadata: Cache[str, MetaData | None] = Cache(20_000)
        self.commits: Cache[str, Commit] = Cache(2_000)
        self.leads: Cache[str, bool] = Cache(10_000)
        self.blobs = Blobs()


class Reader:
    """The repository of `domain`, read."""

    def __init__(self, domain: str, store: Store, caches: Caches) -> None:
        self.domain = domain
        self.store = store
        self._caches = caches

    def entries(self, tree: str) -> Entries:
        """What lies in a tree, by name."""
        return self._caches.trees.get(tree, lambda: {entry.name: entry for entry in self.store.entries(tree)})

    def commit(self, oid: str) -> Commit:
        """A commit. Raises Damaged when it is none."""
        return self._caches.commits.get(oid, lambda: self.store.commit(oid))

    def is_arc(self, tree: str) -> bool:
        """Whether a folder is an ARC: it has a file data.xml (DESIGN.md section 2)."""
        document = self.entries(tree).get(layout.DATA_XML)
        return document is not None and not document.is_tree

    def leads_to_arcs(self, tree: str) -> bool:
        """Whether an ARC lies somewhere below; only that tells a folder above ARCs from a folder of additions."""
        return self._caches.leads.get(tree, lambda: self._leads_to_arcs(tree))

    def metadata(self, tree: str) -> MetaData | None:
        """The metadata of the ARC `tree`; None, and a line in the log, when its data.xml cannot be understood."""
        document = self.entries(tree)[layout.DATA_XML].oid
        return self._caches.metadata.get(document, lambda: self._parse(document))

    def size(self, blob: str) -> int:
        """A blob's size."""
        return self.store.size(blob)

    def open(self, blob: str, size: int) -> Content:
        """The content of a blob of `size` bytes, to be closed."""
        return self._caches.blobs.open(self.store, blob, size)

    def _leads_to_arcs(self, tree: str) -> bool:
        below = (entry.oid for entry in self.entries(tree).values() if entry.is_tree)
        return any(self.is_arc(oid) or self.leads_to_arcs(oid) for oid in below)

    def _parse(self, blob: str) -> MetaData | None:
        try:
            return arcxml.metadata(self.store.read(blob))
        except (InvalidDocument, Damaged) as error:
            _log.error("%s: data.xml %s has no metadata: %s", self.domain, blob, error)
            return None
