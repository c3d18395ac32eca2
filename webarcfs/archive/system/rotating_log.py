"""Log files of the folder `log/`: any process appends to them, and rotates them by size; no cron job does.

`agent.log` becomes `agent.log.1` and so on; the oldest is removed. Several processes may write one file at a time (two
mounts, an agent): lines are appended whole (O_APPEND), and a process that finds the file too large moves it aside under
a lock. The others detect that the name leads to another file, and open the new one.
"""

from __future__ import annotations

import fcntl
import logging
import logging.handlers
import os
from pathlib import Path

#: Bytes after which a log is moved aside, and the number of old ones that are kept: 60 MB a log at most.
LARGEST = 10 << 20
KEPT = 5
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class RotatingLog(logging.handlers.WatchedFileHandler):
    """A handler that appends to `path` and bounds it, with its predecessors."""

    def __init__(self, path: Path, largest: int = LARGEST, kept: int = KEPT) -> None:
        self._path = path
        self._largest = largest
        self._kept = kept
        super().__init__(path, encoding="utf-8", delay=True)
        self.setFormatter(logging.Formatter(FORMAT))

    def emit(self, record: logging.LogRecord) -> None:
        """Append a record; a log that cannot be rotated is still written, and a missing one is no error."""
        try:
            if self._path.stat().st_size >= self._largest:
                rotate(self._path, self._largest, self._kept)
        except FileNotFoundError:
            pass  # the first record makes it
        except OSError:
            self.handleError(record)
        try:
            super().emit(record)
        except OSError:  # from opening it again: the folder is gone, say
            self.handleError(record)


def rotate(path: Path, largest: int = LARGEST, kept: int = KEPT) -> bool:
    """Move a log of at least `largest` bytes aside, unless another process was faster; return whether this one did.

    Raises OSError when the folder is not writable.
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
