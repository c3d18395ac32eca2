"""A bounded cache: least recently used goes first, each value has a weight.

Pure memory, safe for any thread. Two threads that miss the same key at once both make the value; since everything kept
here is named by what it is made of, both make the same.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
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
        """What the values held now weigh together."""
        return self._weight

    def keep(self, key: K, value: V) -> V:
        """Hold a value that was made for a new key."""
        with self._lock:
            self._keep(key, value)
        return value

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of `key`, made by `make` when it is not held. No lock is held while it is made."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._keep(key, value)
        return value

    def held(self, key: K) -> V | None:
        """The value of `key` if it is held."""
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
