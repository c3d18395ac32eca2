"""The run of one job on one domain, shared by the stages from unpack to publish."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from agent.jobfolder.job import Job
from agent.pipeline.overlap import LaterCrawls
from webarcfs.archive.git.objects import Entry, Names
from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.model.metadata import CommitTag

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

    def folder(self, path: str) -> dict[str, Entry] | None:
        """Return name → entry of the folder at `path`; None if it does not exist."""
        tree = self._tree(path)
        return None if tree is None else {entry.name: entry for entry in self._store.entries(tree)}

    def find(self, path: str) -> Entry | None:
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
        """Return the folder at `path`. Searches from the root, without recursion: paths may have thousands of parts."""
        if path in self._folders:
            self._folders.move_to_end(path)
            return self._folders[path]
        folder = self._keep("", self._root)
        inner = ""
        for name in path.split("/") if path else []:
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
    """A job's work on one domain. `complete` tells whether the capture was complete.

    `base` is the commit that the work is based on: main at the start of the work. With `older`, for an import of an
    older crawl or a crawl that was overtaken, it is the snapshot before this one in time. `later` are the crawls
    published since the job began to fetch.
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
    errors: bool = False  # whether `base` may have error pages among its documents
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
