"""Makes durable what git leaves to the file system: the names of objects and refs.

With `core.fsync=all` git syncs what it writes before it gets a name, but never a folder; file systems with an ordered
journal keep the order of names by themselves, others may show a ref after a power cut and not the object it names. So
the folders are synced here: of objects before a ref moves, of refs before anybody is told that it did. Where nothing
changed that costs next to nothing.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from webarcfs.archive.system.fsync import sync_folder

#: Nanoseconds by which the times of files may lie behind the clock.
_COARSE = 10**9


def packs(repository: Path) -> None:
    """The names of packs, and of folders for loose objects. Raises OSError."""
    _folders([repository / "objects", repository / "objects" / "pack"])


def loose(repository: Path, oids: Iterable[str]) -> None:
    """The names of these objects, where they are loose. Raises OSError."""
    _folders(repository / "objects" / each for each in {oid[:2] for oid in oids})


class Since:
    """The names of objects that become loose from now on. Raises OSError.

    It goes by whether a folder's time changed, and not by which is later: the clock may be set back meanwhile.
    """

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        now = time.time_ns()
        # One more change would leave a folder the time that it has, where that is the present one.
        self._seen = {path: mtime for path, mtime in _loose(repository) if abs(now - mtime) > _COARSE}

    def sync(self) -> None:
        """Make them durable. Raises OSError."""
        _folders(path for path, mtime in _loose(self._repository) if self._seen.get(path) != mtime)


def _loose(repository: Path) -> Iterator[tuple[Path, int]]:
    with os.scandir(repository / "objects") as found:
        entries = [entry for entry in found if len(entry.name) == 2]
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):  # a repack removed it
            yield Path(entry.path), entry.stat().st_mtime_ns


def refs(repository: Path, names: Iterable[str]) -> None:
    """Refs that were moved, made or removed. Raises OSError."""
    _folders(sorted({repository, repository / "refs", *((repository / name).parent for name in names)}))


def _folders(folders: Iterable[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):  # git removes folders that are left empty
            sync_folder(folder)
