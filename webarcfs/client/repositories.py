"""The repositories of an archive as its client reads them: each opened once, and what was found remembered.

What an object's name says is true for ever, so only the refs are read each time. Any thread may ask.
"""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from time import monotonic

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_xml import metadata
from webarcfs.archive.git.objects import Entry
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import versions
from webarcfs.archive.history.versions import is_arc
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import CommitTag, MetaData

#: Facts that are remembered, a line each; and ARCs, as many as a program is at: one may have very many in it.
_REMEMBERED = 1_000
_ARCS = 50
#: Seconds between two looks for packs that a repack removed, and that must not be held open.
_INTERVAL = 1.0
#: Nothing of that name is there, or can be.
_NOT_THERE = errno.ENOENT, errno.ENAMETOOLONG


@dataclass(frozen=True, slots=True)
class _Opened:
    """An open repository, which folder that is, and when it was looked at for packs that are gone."""

    path: str
    store: Repository
    identity: tuple[int, int]
    looked: float = 0.0


@dataclass(frozen=True, slots=True)
class FoundArc:
    """The folder of an ARC in one snapshot, and what lies in it, by name in git's order."""

    store: Repository
    tree: str
    entries: dict[str, Entry]


class Repositories:
    """The repositories of one archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._opened: dict[str, _Opened] = {}
        self._opening = threading.Lock()
        self._roots = lru_cache(_REMEMBERED)(_root)
        self._trees = lru_cache(_REMEMBERED)(_tree)
        self._arcs = lru_cache(_ARCS)(_arc)
        self._times = lru_cache(_REMEMBERED)(_crawl_time)

    def store(self, domain: str) -> Repository:
        """The repository of a domain. Raises NotFound, Damaged."""
        if "/" in domain or domain.startswith("."):
            raise NotFound(f"the archive has no domain {domain!r}")
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

    def _open(self, domain: str, identity: tuple[int, int]) -> _Opened:
        """Open a repository, for the first time or because another one was put in its place, by a restore, say."""
        for cache in (self._roots, self._trees, self._arcs, self._times):
            cache.cache_clear()
        path = self._archive.repository(domain)
        return _Opened(str(path), Repository(path), identity)

    def arc(self, meta: MetaData) -> FoundArc:
        """The ARC of a document in its snapshot. Raises NotFound, Damaged."""
        store = self.store(meta.domain)
        above, _, name = meta.path.removeprefix(f"/{meta.domain}/").rpartition("/")
        root = self._roots(store, versions.commit_of(store, meta.commit_tag))
        # By two steps: the folder is most often the one of the last document, too.
        tree = self._trees(store, self._trees(store, root, above), name)
        found = self._arcs(store, tree) if tree else None
        if found is None:
            raise NotFound(f"{meta.commit_tag} has no document {meta.path}")
        return found

    def stored(self, arc: FoundArc) -> datetime:
        """When the crawl began that stored this version of an ARC. Raises InvalidDocument, Damaged."""
        return self._times(arc.store, arc.entries[DATA_XML].oid)

    def is_newest(self, tag: CommitTag) -> bool:
        """Whether a snapshot is the domain's newest one."""
        head = self.store(tag.domain).head()
        return head is not None and head.message.tag == tag


def _root(store: Repository, commit: str) -> str:
    return store.commit(commit).tree


def _tree(store: Repository, folder: str, path: str) -> str:
    """The folder at `path` in `folder`, which may be none; empty where there is none."""
    found = store.find(folder, path) if folder else None
    return found.oid if found is not None and found.is_tree else ""


def _arc(store: Repository, tree: str) -> FoundArc | None:
    """The ARC that a folder is; None where it is none."""
    entries = {entry.name: entry for entry in store.entries(tree)}
    return FoundArc(store, tree, entries) if is_arc(entries.values()) else None


def _crawl_time(store: Repository, document: str) -> datetime:
    return metadata(store.read(document)).crawl_time
