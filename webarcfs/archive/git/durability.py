"""Syncs what git leaves to the file system: the names of objects and refs.

With `core.fsync=all` git syncs a file's content before it gets a name, but never a folder; file systems with an ordered
journal keep the order of names by themselves, others may show a ref after a power cut without the object it names. So
the folders are synced here: those of objects before a ref moves, those of refs before the move is reported. Without
changes this costs next to nothing.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from webarcfs.archive.system.fsync import sync_folder

#: Nanoseconds by which the times of files may lag behind the clock.
_COARSE = 10**9


def packs(repository: Path) -> None:
    """Sync the names of packs, and of folders for loose objects. Raises OSError."""
    _folders([repository / "objects", repository / "objects" / "pack"])


def loose(repository: Path, oids: Iterable[str]) -> None:
    """Sync the names of these objects, if they are loose. Raises OSError."""
    _folders(repository / "objects" / each for each in {oid[:2] for oid in oids})


class Since:
    """The names of objects that become loose from now on. Raises OSError.

    A folder counts as changed if its time differs, later or not: the clock may be set back meanwhile.
    """

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        now = time.time_ns()
        # A folder with the present time is left out: one more change would not alter its time.
        self._seen = {path: mtime for path, mtime in _loose(repository) if abs(now - mtime) > _COARSE}

    def sync(self) -> None:
        """Sync them. Raises OSError."""
        _folders(path for path, mtime in _loose(self._repository) if self._seen.get(path) != mtime)


def _loose(repository: Path) -> Iterator[tuple[Path, int]]:
    with os.scandir(repository / "objects") as found:
        entries = [entry for entry in found if len(entry.name) == 2]
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):  # a repack removed it
            yield Path(entry.path), entry.stat().st_mtime_ns


def refs(repository: Path, names: Iterable[str]) -> None:
    """Sync refs that were moved, made or removed. Raises OSError."""
    _folders(sorted({repository, repository / "refs", *((repository / name).parent for name in names)}))


def _folders(folders: Iterable[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):  # git removes folders that become empty
            sync_folder(folder)
