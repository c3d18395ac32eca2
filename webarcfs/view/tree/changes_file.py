"""`.changes`: the archive's feed, up to the publications that this mount has taken over.

The view's thread reads new lines with `pending`, takes over their states, and then shows the lines with `release`; any
thread reads. A feed that `recover` rewrote is another file with the same lines; while the feed is missing, the last one
remains, so that its readers do not see everything again.
"""

# ruff: noqa: D102 # view/node.py specifies the methods of a node
from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.view.content import Content
from webarcfs.view.node import Attrs, File, number


@dataclass(frozen=True, slots=True)
class PendingLines:
    """Complete lines of the feed that are not shown yet: their tags, the file, the offset of their end."""

    tags: tuple[CommitTag, ...]
    fd: int
    end: int


class Changes:
    """The file as readers see it. It is also its own content: one for all handles."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._end = 0
        self._seen = (0, 0, 0)
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes that readers see."""
        return self._end

    @property
    def mtime(self) -> int:
        """The time of the feed's last growth; 0 without a feed."""
        with self._lock:
            return int(os.fstat(self._fd).st_mtime) if self._fd >= 0 else 0

    @property
    def dear(self) -> bool:
        """Return False: it is open as long as the mount."""
        return False

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the shown lines."""
        with self._lock:
            size = min(size, self._end - offset)
            return os.pread(self._fd, size, offset) if size > 0 else b""

    def close(self) -> None:
        """Do nothing: the file belongs to the mount, not to a handle."""

    def pending(self) -> PendingLines | None:
        """Return the lines that are not shown yet; None without a change. Only the view's thread calls it."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        seen = (found.st_dev, found.st_ino, found.st_size)
        if seen == self._seen:
            return None
        grown = seen[:2] == self._seen[:2] and found.st_size >= self._end
        fd = self._fd if grown else os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        self._seen = seen
        return _whole_lines(fd, self._end if grown else 0)

    def release(self, pending: PendingLines) -> None:
        """Show these lines. Their states must have been taken over."""
        with self._lock:
            old, self._fd, self._end = self._fd, pending.fd, pending.end
            if old not in (-1, pending.fd):
                os.close(old)


@dataclass(frozen=True)
class ChangesFile(File):
    """`.changes`: the feed up to the states that this mount shows. It grows under an open file."""

    changes: Changes
    attrs_cacheable: ClassVar[bool] = False

    @property
    def ino(self) -> int:
        return number("changes")

    def attrs(self) -> Attrs:
        return Attrs(self.kind, self.changes.size, self.changes.mtime, self.ino)

    def open(self) -> Content:
        return self.changes


def _whole_lines(fd: int, start: int) -> PendingLines:
    text = b""
    while piece := os.pread(fd, 1 << 20, start + len(text)):
        text += piece
    whole = text[: text.rfind(b"\n") + 1]
    tags = tuple(tag for line in whole.splitlines() if (tag := _tag(line)))
    return PendingLines(tags, fd, start + len(whole))


def _tag(line: bytes) -> CommitTag | None:
    try:
        return CommitTag.parse(line.decode("utf-8", "replace"))
    except Damaged:
        return None
