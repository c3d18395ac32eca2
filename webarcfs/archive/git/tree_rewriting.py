"""Derives a domain's tree from another one by any number of changes in any order, in constant memory.

Changes are kept on the disk until `finish`; then each affected folder is read once and written once. So the cost of a
document does not depend on the size of its folder; `git fast-import`, given the same changes by path, searches the
folder for each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from webarcfs.archive.git import tree_stream
from webarcfs.archive.git.pack_writer import Pack
from webarcfs.archive.system.sorting import Sorter

#: So many trees, or so many bytes of them, become one pack; until then they are in memory.
_TREES = 50_000
_BYTES = 16 << 20
_NUMBER: Final = 6
_ID: Final = 20
_NOTHING: Final = bytes(_ID)


class Rewriting:
    """Changes to a tree. Nothing is in the repository before `finish`; a context manager, which frees its resources.

    Until it ends, no repack removes the trees that it stored.
    """

    def __init__(self, repository: Path, base: str | None, read: Callable[[str], bytes]) -> None:
        """`base` is the tree to begin with, None for an empty one; `read` returns git's bytes of a tree."""
        self._repository = repository
        self._base = base
        self._read = read
        self._stack = ExitStack()
        self._sorter = self._stack.enter_context(Sorter(repository / "objects" / "pack"))
        self._changes = 0
        self._pack = Pack(repository)

    def put(self, path: str, blob: str) -> None:
        """Place a file; the last one at a path counts."""
        self.put_digest(path, bytes.fromhex(blob))

    def write(self, path: str, body: bytes) -> None:
        """Place a file with these bytes, which are stored together with the trees."""
        self.put(path, self._keep(body, "blob"))

    def remove(self, path: str) -> None:
        """Drop the tree's file or folder at `path`; files that are put there, before or after, stay."""
        self.put_digest(path, _NOTHING)

    def put_digest(self, path: str, blob: bytes) -> None:
        """As `put`, with the id as 20 bytes."""
        # No name contains a zero byte, so rows sort by path, and those of one path by time.
        self._changes += 1
        self._sorter.add(b"%s\0%s%s" % (os.fsencode(path), self._changes.to_bytes(_NUMBER, "big"), blob))

    def finish(self) -> str:
        """Store the new trees, and return the id of the outermost. Raises OSError on a full disk, Damaged."""
        tree = tree_stream.changed(self._base, _each_once(self._sorter.rows()), self._read, self._keep)
        if tree is None:
            tree = self._keep(b"")
        self._store()
        return tree

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def _keep(self, raw: bytes, kind: str = "tree") -> str:
        oid = self._pack.add(kind, raw)
        if len(self._pack) >= _TREES or self._pack.bytes >= _BYTES:
            self._store()
        return oid

    def _store(self) -> None:
        keep = self._pack.store()
        if keep is not None:
            self._stack.callback(keep.unlink, missing_ok=True)
        self._pack = Pack(self._repository)


def _each_once(rows: Iterable[bytes]) -> Iterator[tree_stream.Change]:
    """Yield each path once: with the last file that was put there, or an empty id."""
    at, last = b"", b""
    for row in rows:
        path, blob = row[: -1 - _NUMBER - _ID], row[-_ID:]
        if path != at:
            if at:
                yield at, last
            at, last = path, b""
        if blob != _NOTHING:
            last = blob
    if at:
        yield at, last
