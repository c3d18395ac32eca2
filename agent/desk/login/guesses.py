"""Bounds the guessing of passwords, for each name and each address: so many in a span of time, then nothing is tried.

A guesser from one address has `GUESSES_OF_ADDRESS` in each span; many addresses together have `GUESSES_OF_NAME` for a
name. IPv6 gives each customer a /64 at least, which counts as one address. A person who is right is not counted, and a
guess that was refused leaves nothing behind. Where too many are remembered, those with the fewest guesses go first: a
flood of other names does not set a guesser free. For any thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network

from agent.desk import limits

_Key = tuple[str, ...]


class Guesses:
    """The guesses of the last span of time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[_Key, deque[float]] = {}

    def begin(self, name: str, address: str) -> float:
        """Count a guess before it is tried; return 0, or the seconds to wait if it may not be tried."""
        now = self._clock()
        keys = _keys(name, address)
        with self._lock:
            wait = max(self._wait(key, most, now) for key, most in keys)
            if not wait:
                for key, _ in keys:
                    self._known.setdefault(key, deque()).append(now)
                if len(self._known) > 3 * limits.GUESSERS:
                    self._forget(now)
            return wait

    def was_right(self, name: str, address: str) -> None:
        """Take the last guess back: it was none."""
        with self._lock:
            for key, _ in _keys(name, address):
                times = self._known.get(key)
                if times:
                    times.pop()
                if not times:
                    self._known.pop(key, None)

    def _wait(self, key: _Key, most: int, now: float) -> float:
        times = self._known.get(key)
        if times is None:
            return 0.0
        while times and times[0] <= now - limits.GUESS_SECONDS:
            times.popleft()
        return times[0] + limits.GUESS_SECONDS - now if len(times) >= most else 0.0

    def _forget(self, now: float) -> None:
        """Forget what is over, and if need be a tenth of the rest: those with the fewest guesses, the oldest first."""
        since = now - limits.GUESS_SECONDS
        self._known = {key: times for key, times in self._known.items() if times and times[-1] > since}
        kept = sorted(self._known, key=lambda key: (len(self._known[key]), self._known[key][-1]), reverse=True)
        for key in kept[27 * limits.GUESSERS // 10 :]:
            del self._known[key]


def _keys(name: str, address: str) -> tuple[tuple[_Key, int], ...]:
    name, address = name.casefold()[:200], _network(address)
    return (
        (("both", name, address), limits.GUESSES_OF_BOTH),
        (("address", address), limits.GUESSES_OF_ADDRESS),
        (("name", name), limits.GUESSES_OF_NAME),
    )


def _network(address: str) -> str:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    mapped = found.ipv4_mapped
    return str(ip_network((found, 64), strict=False)) if mapped is None else str(mapped)
