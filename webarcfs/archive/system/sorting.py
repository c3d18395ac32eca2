"""Sorts more rows than memory holds: in parts, which an unnamed file keeps until they are read.

For one thread; the file is removed with the object, or with its process.
"""

from __future__ import annotations

import heapq
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

#: Bytes of rows in memory before they are written out; each row takes some 40 more.
_PART = 4 << 20
#: Bytes of each part that are read at a time.
_READ_AT_ONCE = 1 << 16
_LENGTH = 4


class Sorter:
    """Accepts rows of bytes in any order, returns them sorted. A context manager: its end frees the disk."""

    def __init__(self, folder: Path, part: int = _PART) -> None:
        """`folder` receives rows that do not fit into memory, under a name `tmp_…` if it cannot have unnamed files."""
        self._folder = folder
        self._most = part
        self._rows: list[bytes] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None
        self._ends: list[int] = []

    def add(self, row: bytes) -> None:
        """Add a row. Raises OSError on a full disk."""
        self._rows.append(row)
        self._bytes += len(row)
        if self._bytes >= self._most:
            self._write_out()

    def rows(self) -> Iterator[bytes]:
        """Return all rows in order; no more may be added."""
        self._rows.sort()
        starts = [0, *self._ends][:-1]
        parts = [self._part(start, end) for start, end in zip(starts, self._ends, strict=True)]
        return heapq.merge(*parts, self._rows) if parts else iter(self._rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._rows.clear()
        if self._file is not None:
            self._file.close()

    def _write_out(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, prefix="tmp_")  # noqa: SIM115 # __exit__ closes it
        self._rows.sort()
        for row in self._rows:
            self._file.write(len(row).to_bytes(_LENGTH, "big") + row)
        self._file.flush()
        self._ends.append(self._file.tell())
        self._rows.clear()
        self._bytes = 0

    def _part(self, start: int, end: int) -> Iterator[bytes]:
        assert self._file is not None
        fd, data, at = self._file.fileno(), b"", 0
        while start < end or at < len(data):
            missing = 0 if len(data) - at < _LENGTH else int.from_bytes(data[at : at + _LENGTH], "big")
            if len(data) - at < _LENGTH + missing:
                size = min(max(_READ_AT_ONCE, missing), end - start)
                data, at, start = data[at:] + os.pread(fd, size, start), 0, start + size
                continue
            yield data[at + _LENGTH : at + _LENGTH + missing]
            at += _LENGTH + missing
