"""Folders of snapshots as git's bytes, in which names are looked up, with the names that need a mark.

Links lead to the same folders over and over; pygit2's own look-up would make an object each time.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.git.tree_lines import FILE, FOLDERS, LINE
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.system.cache import Cache
from webarcfs.exchange.static.names import to_mark

#: Bytes of folders that are kept.
_KEPT = 64 << 20


class Folder:
    """A folder: its lines, the places where they begin, and the marks of the folders in it."""

    __slots__ = ("_raw", "_starts", "marks")

    def __init__(self, raw: bytes, name: str) -> None:
        """Read git's bytes of a folder. Raises Damaged, with `name`, for others."""
        self._raw = raw
        self._starts = array("Q")
        upto = 0
        folders: list[str] = []
        for match in LINE.finditer(raw):
            self._starts.append(match.start())
            upto += match.end() - match.start()
            if match[1] in FOLDERS:
                folders.append(os.fsdecode(match[2]))
        if upto != len(raw):
            raise Damaged(f"{name} is no tree that can be read")
        # Files of ARCs and additions have no part in it.
        self.marks = to_mark(folders)

    @property
    def weight(self) -> int:
        """Bytes of memory, for a cache's bound."""
        return 500 + len(self._raw) + 8 * len(self._starts) + 200 * len(self.marks)

    def folder(self, name: str) -> str | None:
        """Return the id of a folder in it; None without one."""
        return next((found for mode in FOLDERS if (found := self._find(mode, name)) is not None), None)

    def file(self, name: str) -> str | None:
        """Return the id of a file in it; None without one."""
        return self._find(FILE, name)

    def _find(self, mode: bytes, name: str) -> str | None:
        line = b"%s %s\0" % (mode, os.fsencode(name))
        at = self._raw.find(line)
        while at >= 0:
            # A name may have in it what looks like a line.
            place = bisect_left(self._starts, at)
            if place < len(self._starts) and self._starts[place] == at:
                begin = at + len(line)
                return self._raw[begin : begin + 20].hex()
            at = self._raw.find(line, at + 1)
        return None


class Folders:
    """Folders that were read, up to a bound, and the latest one however large it is."""

    def __init__(self) -> None:
        self._kept: Cache[str, Folder] = Cache(_KEPT, lambda each: each.weight)
        self._latest: tuple[str, Folder] | None = None

    def read(self, store: Repository, tree: str) -> Folder:
        """Return a folder by its id. Raises Damaged."""
        if self._latest is not None and self._latest[0] == tree:
            return self._latest[1]
        found = self._kept.get(tree, lambda: Folder(store.read_tree(tree), f"{store.path}: {tree}"))
        self._latest = tree, found
        return found
