"""The feed: `changes`, one commitTag a line, in the order of publication; append only, derived from git (/Cl-5/).

A reader that follows it byte by byte sees only complete lines appear at its end. The next append removes a line that a
crash cut off, which no reader can have taken for a line.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from webarcfs.archive.model.metadata import CommitTag

_LONGEST_LINE = 1024


class Feed:
    """The file `changes` of an archive. Only the holder of the sequence lock may append."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> Iterator[str]:
        """Yield the lines, without their newline, oldest first; an unfinished line is left out."""
        try:
            with self._path.open("r", encoding="utf-8", errors="replace", newline="\n") as file:
                yield from (line.removesuffix("\n") for line in file if line.endswith("\n"))
        except FileNotFoundError:
            return

    def last(self) -> str | None:
        """Return the last complete line, or None."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - 2 * _LONGEST_LINE))
                whole = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return None
        return whole[-1].decode("utf-8", "replace") if whole else None

    def append(self, tag: CommitTag) -> None:
        """Add a line, and return when it is on disk."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            end = _end_of_whole_lines(fd)
            os.ftruncate(fd, end)
            os.pwrite(fd, f"{tag}\n".encode(), end)
            os.fsync(fd)
        finally:
            os.close(fd)

    def rewrite(self, tags: Iterable[CommitTag]) -> int:
        """Replace the file in one step, if it differs; return its number of lines."""
        scratch = self._path.with_name(f".{self._path.name}.new")
        count = 0
        with scratch.open("w", encoding="utf-8") as file:
            for tag in tags:
                file.write(f"{tag}\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        if self._path.exists() and filecmp.cmp(scratch, self._path, shallow=False):
            scratch.unlink()
        else:
            scratch.rename(self._path)
        return count


def _end_of_whole_lines(fd: int) -> int:
    size = os.fstat(fd).st_size
    start = max(0, size - _LONGEST_LINE)
    return start + os.pread(fd, size - start, start).rfind(b"\n") + 1
