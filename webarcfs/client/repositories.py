"""The repositories of an archive, each opened once, with caches, for a client that lives long.

An object's name determines its content for ever, so only the refs are read each time.
"""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from time import monotonic

from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_xml import metadata
from webarcfs.archive.git.repository import Repository, TreeEntry, is_arc
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import CommitTag, MetaData

#: Cached facts, a line each; and cached ARCs, as many as a program uses at once: one may have very many entries.
_REMEMBERED = 1_000
_ARCS = 50
#: Seconds between two checks for packs that a repack removed, and that must not be kept open.
_INTERVAL = 1.0
#: Seconds for which a reader may see what was withdrawn: a withdrawal takes effect within a second.
_READERS_INTERVAL = 0.5
#: The name does not exist, or cannot.
_NOT_THERE = errno.ENOENT, errno.ENAMETOOLONG


@dataclass(frozen=True, slots=True)
class _Opened:
    """An open repository, the identity of its folder, and the time of the last check for removed packs."""

    path: str
    store: Repository
    identity: tuple[int, int]
    looked: float = 0.0


@dataclass(frozen=True, slots=True)
class FoundArc:
    """The folder of an ARC in one snapshot, with its entries by name in git's order."""

    store: Repository
    tree: str
    entries: dict[str, TreeEntry]


class Repositories:
    """The repositories of one archive."""

    def __init__(self, archive: Archive, readers: ReaderRepositories | None = None) -> None:
        """With `readers`, they are as its gate shows them."""
        self._archive = archive
        self._readers = readers
        self._shown: dict[str, tuple[float, Repository]] = {}
        self._opened: dict[str, _Opened] = {}
        self._opening = threading.Lock()
        self._roots = lru_cache(_REMEMBERED)(_root)
        self._trees = lru_cache(_REMEMBERED)(_tree)
        self._arcs = lru_cache(_ARCS)(_arc)
        self._times = lru_cache(_REMEMBERED)(_crawl_time)

    def store(self, domain: str) -> Repository:
        """Return the repository of a domain. Raises NotFound, Damaged."""
        if "/" in domain or domain.startswith("."):
            raise NotFound(f"the archive has no domain {domain!r}")
        if self._readers is not None and self._readers.gate.is_needed:
            return self._for_reader(self._readers, domain)
        with self._opening:
            known, time = self._opened.get(domain), monotonic()
            try:
                folder = os.stat(known.path if known else self._archive.repository(domain))  # noqa: PTH116 # each time
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno not in _NOT_THERE:
                    raise
                raise NotFound(f"the archive has no domain {domain!r}") from None
            if known is None or known.identity != (folder.st_dev, folder.st_ino):
                known = self._open(domain, (folder.st_dev, folder.st_ino))
            elif time - known.looked > _INTERVAL:
                known.store.let_go()
            else:
                return known.store
            self._opened[domain] = replace(known, looked=time)
            return known.store

    def _for_reader(self, readers: ReaderRepositories, domain: str) -> Repository:
        """Return a domain's repository as the reader sees it, or saw it half a second ago."""
        with self._opening:
            looked, store = self._shown.get(domain, (0.0, None))
            if store is None or monotonic() - looked > _READERS_INTERVAL:
                try:
                    store = readers.open(domain)
                except OSError as error:
                    if error.errno not in _NOT_THERE:
                        raise
                    raise NotFound(f"the archive has no domain {domain!r}") from None
                self._shown[domain] = monotonic(), store
            return store

    def close(self) -> None:
        """Remove what was made for the reader."""
        if self._readers is not None:
            self._readers.__exit__()

    def _open(self, domain: str, identity: tuple[int, int]) -> _Opened:
        """Open a repository for the first time, or after it was replaced (by a restore, say)."""
        for cache in (self._roots, self._trees, self._arcs, self._times):
            cache.cache_clear()
        path = self._archive.repository(domain)
        return _Opened(str(path), Repository(path), identity)

    def arc(self, meta: MetaData) -> FoundArc:
        """Return the ARC of a document in its snapshot. Raises NotFound, Damaged."""
        return self.document(meta.commit_tag, meta.path)

    def document(self, tag: CommitTag, path: str) -> FoundArc:
        """Return the ARC at `path` (`/<domain>/…`) in a snapshot. Raises NotFound, Damaged."""
        store = self.store(tag.domain)
        above, _, name = path.removeprefix(f"/{tag.domain}/").rpartition("/")
        root = self._roots(store, store.commit_of(tag))
        # In two steps: the folder is most often that of the previous document.
        tree = self._trees(store, self._trees(store, root, above), name)
        document_arc = self._arcs(store, tree) if tree else None
        if document_arc is None:
            raise NotFound(f"{tag} has no document {path}")
        return document_arc

    def stored(self, arc: FoundArc) -> datetime:
        """Return the start of the crawl that stored this version of an ARC. Raises InvalidDocument, Damaged."""
        return self._times(arc.store, arc.entries[DATA_XML].oid)

    def is_newest(self, tag: CommitTag) -> bool:
        """Return whether a snapshot is the domain's newest one."""
        head = self.store(tag.domain).head()
        return head is not None and head.message.tag == tag


def _root(store: Repository, commit: str) -> str:
    return store.commit(commit).tree


def _tree(store: Repository, folder: str, path: str) -> str:
    """Return the folder at `path` in `folder`, which may be empty; empty if there is none."""
    entry = store.find(folder, path) if folder else None
    return entry.oid if entry is not None and entry.is_tree else ""


def _arc(store: Repository, tree: str) -> FoundArc | None:
    """Return the ARC of a folder; None if it is no ARC."""
    entries = {entry.name: entry for entry in store.entries(tree)}
    return FoundArc(store, tree, entries) if is_arc(entries.values()) else None


def _crawl_time(store: Repository, document: str) -> datetime:
    return metadata(store.read(document)).crawl_time
