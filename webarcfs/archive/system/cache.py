"""What is kept in memory: a bounded cache; and what shows that a value from files is to be read again.

Of a cache the least recently used value is evicted first, each value has a weight. It is safe for any thread. Two
threads that miss the same key at once both make the value; since each key determines its value here, both make the
same.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Holds values up to a total weight of `limit`."""

    def __init__(self, limit: int, weigh: Callable[[V], int] = lambda _: 1) -> None:
        self._limit = limit
        self._weigh = weigh
        self._values: OrderedDict[K, V] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    @property
    def weight(self) -> int:
        """The total weight of the values held now."""
        return self._weight

    def keep(self, key: K, value: V) -> V:
        """Add a value that was made for a new key; return it."""
        with self._lock:
            self._keep(key, value)
        return value

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of `key`; `make` makes a missing one. No lock is held meanwhile."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._keep(key, value)
        return value

    def held(self, key: K) -> V | None:
        """Return the value of `key` if it is held, else None."""
        return self._values.get(key)

    def _keep(self, key: K, value: V) -> None:
        weight = self._weigh(value)
        if key in self._values or weight > self._limit:
            return
        self._values[key] = value
        self._weight += weight
        while self._weight > self._limit:
            _, dropped = self._values.popitem(last=False)
            self._weight -= self._weigh(dropped)


def identity(path: Path, folder: Path | None = None) -> tuple[object, ...]:
    """Return a value that changes when the file at `path` does, or one in `folder` whose name ends alike."""
    own: tuple[object, ...] = ()
    with contextlib.suppress(OSError):
        own = (path.name, *_changes(path.stat()))
    beside: list[FileState] = []
    if folder is not None:
        with contextlib.suppress(OSError):
            beside = file_states(folder, path.suffix)
    return (own, *beside)


#: Name, inode, size and time of the last change of a file.
FileState = tuple[str, int, int, int]


def file_states(folder: Path, suffix: str) -> list[FileState]:
    """Return the state of each file in a folder whose name ends so, in order. Raises OSError for the folder."""
    states: list[FileState] = []
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:  # servers ask this for each page, of hundreds of files: names in an open folder are found soonest
        for name in sorted(os.listdir(opened)):  # noqa: PTH208
            if name.endswith(suffix):
                with contextlib.suppress(OSError):
                    states.append((name, *_changes(os.stat(name, dir_fd=opened))))
    finally:
        os.close(opened)
    return states


def _changes(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns
