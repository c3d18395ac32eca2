"""Sums by key, of any number of keys: what does not fit into memory is sorted on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from webarcfs.archive.system.files import Sorter

#: Keys in memory.
_MOST = 100_000
_SEPARATOR = "\0"


class SpilledCounts:
    """Adds up numbers by keys, which are tuples of texts without U+0000. A context manager: its end frees the disk."""

    def __init__(self, folder: Path, most: int = _MOST) -> None:
        """`folder` receives, in a file without a name, what is more than `most` keys."""
        self._sorter = Sorter(folder)
        self._most = most
        self._sums: dict[tuple[str, ...], list[int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._sorter.__exit__(*exc)

    def add(self, key: tuple[str, ...], *numbers: int) -> None:
        """Add numbers to the sums of a key. Raises OSError on a full disk."""
        sums = self._sums.get(key)
        if sums is not None:
            for at, number in enumerate(numbers):
                sums[at] += number
            return
        self._sums[key] = list(numbers)
        if len(self._sums) >= self._most:
            self._spill()

    def rows(self) -> Iterator[tuple[tuple[str, ...], list[int]]]:
        """Yield keys and sums in order of the keys, by their bytes. Nothing may be added after that."""
        self._spill()
        last: bytes | None = None
        sums: list[int] = []
        for row in self._sorter.rows():
            key, _, numbers = row.rpartition(b"\0")
            own = [int(number) for number in numbers.split()]
            if key == last:
                sums = [one + other for one, other in zip(sums, own, strict=True)]
                continue
            if last is not None:
                yield tuple(last.decode().split(_SEPARATOR)), sums
            last, sums = key, own
        if last is not None:
            yield tuple(last.decode().split(_SEPARATOR)), sums

    def _spill(self) -> None:
        for key, sums in self._sums.items():
            self._sorter.add(f"{_SEPARATOR.join(key)}{_SEPARATOR}{' '.join(map(str, sums))}".encode())
        self._sums.clear()
