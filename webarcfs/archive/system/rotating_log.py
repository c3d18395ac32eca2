"""Log files of the folder `log/`: appended to by any process, rotated by size, never by anybody's cron.

`agent.log` becomes `agent.log.1` and so on; the oldest goes. Several processes may write one file at a time (two
mounts, an agent): lines are appended whole (O_APPEND), and whoever finds the file too large moves it aside under a
lock. Others see that their file is no longer the one of that name, and open the new one.
"""

from __future__ import annotations

import fcntl
import logging
import logging.handlers
import os
from pathlib import Path

#: Bytes after which a log is moved aside, and how many of those are kept: 60 MB a log at most.
LARGEST = 10 << 20
KEPT = 5
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class RotatingLog(logging.handlers.WatchedFileHandler):
    """A handler that appends to `path` and keeps it, with its predecessors, within bounds."""

    def __init__(self, path: Path, largest: int = LARGEST, kept: int = KEPT) -> None:
        self._path = path
        self._largest = largest
        self._kept = kept
        super().__init__(path, encoding="utf-8", delay=True)
        self.setFormatter(logging.Formatter(FORMAT))

    def emit(self, record: logging.LogRecord) -> None:
        """Append a record; a log that cannot be rotated is still written, and one that is gone troubles nobody."""
        try:
            if self._path.stat().st_size >= self._largest:
                rotate(self._path, self._largest, self._kept)
        except FileNotFoundError:
            pass  # the first record makes it
        except OSError:
            self.handleError(record)
        try:
            super().emit(record)
        except OSError:  # from opening it anew: the folder is gone, say
            self.handleError(record)


def rotate(path: Path, largest: int = LARGEST, kept: int = KEPT) -> bool:
    """Move a log that has `largest` bytes aside, unless another process was faster; returns whether this one did.

    Raises OSError when the folder cannot be written.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        try:
            if path.stat().st_size < largest:
                return False
        except FileNotFoundError:
            return False
        names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, kept + 1))]
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            if newer.exists():
                newer.replace(older)
        return True
    finally:
        os.close(folder)
