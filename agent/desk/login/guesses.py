"""Bounds the guessing of passwords, for each name and each address: so many in a span of time, then nothing is tried.

A guesser from one address has `GUESSES_OF_ADDRESS` in each span; many addresses together have `GUESSES_OF_NAME` for a
name. A person who is right is not counted. For any thread.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from agent.desk import limits


class Guesses:
    """The guesses of the last span of time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, ...], deque[float]] = OrderedDict()

    def begin(self, name: str, address: str) -> float:
        """Count a guess before it is tried; return 0, or the seconds to wait if it may not be tried."""
        now = self._clock()
        with self._lock:
            waits = [self._wait(key, most, now) for key, most in _keys(name, address)]
            if not any(waits):
                for key, _ in _keys(name, address):
                    self._of(key).append(now)
            return max(waits)

    def was_right(self, name: str, address: str) -> None:
        """Take the last guess back: it was none."""
        with self._lock:
            for key, _ in _keys(name, address):
                if self._of(key):
                    self._of(key).pop()

    def _wait(self, key: tuple[str, ...], most: int, now: float) -> float:
        found = self._of(key)
        while found and found[0] <= now - limits.GUESS_SECONDS:
            found.popleft()
        return found[0] + limits.GUESS_SECONDS - now if len(found) >= most else 0.0

    def _of(self, key: tuple[str, ...]) -> deque[float]:
        found = self._known.setdefault(key, deque())
        self._known.move_to_end(key)
        while len(self._known) > 3 * limits.GUESSERS:
            self._known.popitem(last=False)
        return found


def _keys(name: str, address: str) -> tuple[tuple[tuple[str, ...], int], ...]:
    name = name.casefold()[:200]
    return (
        (("both", name, address), limits.GUESSES_OF_BOTH),
        (("address", address), limits.GUESSES_OF_ADDRESS),
        (("name", name), limits.GUESSES_OF_NAME),
    )
