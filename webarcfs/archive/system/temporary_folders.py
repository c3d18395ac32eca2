"""Temporary folders of processes that may end in any way: what a killed one leaves, the next one removes.

Whoever makes a folder holds a lock in it; the death of a process releases it.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import weakref
from pathlib import Path

from webarcfs.archive.system import locks

#: Begins the names of those with the repositories that are made for readers.
OF_READERS = "webarcfs-reader-"
_LOCK = "lock"


class TemporaryFolder:
    """A new folder whose name begins with `prefix`, until `remove`; it removes those that killed processes left."""

    def __init__(self, prefix: str) -> None:
        remove_left(prefix)
        while (lock := self._make(prefix)) is None:
            continue
        self._unlock = weakref.finalize(self, os.close, lock)

    def _make(self, prefix: str) -> int | None:
        """Make the folder, and return what holds it; None if another process took it for left before it was held."""
        self._folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        try:
            lock = locks.try_exclusive(self.path / _LOCK)
        except FileNotFoundError:
            return None
        if lock is None or (self.path / _LOCK).exists():
            return lock
        os.close(lock)
        return None

    def remove(self) -> None:
        """Remove the folder and all in it."""
        self._folder.cleanup()
        self._unlock()


def remove_left(prefix: str) -> None:
    """Remove the folders of this user that have such a name, and that no process holds."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if _is_own(folder):
            _remove_if_left(folder)


def _is_own(folder: Path) -> bool:
    try:
        about = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()


def _remove_if_left(folder: Path) -> None:
    try:
        with locks.if_free(folder / _LOCK) as is_left:
            if is_left:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # it went meanwhile, or is of another kind
        return
