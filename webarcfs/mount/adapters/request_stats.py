"""Counts the requests that reach user space, by kind (`-o stats`). Each thread has its own counter: no contention."""

from __future__ import annotations

import threading
from collections import Counter

#: Extended attribute of the root with the counts; not listed.
STATS = "user.webarc.stats"


class RequestStats:
    """The counts of one mount."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._all: list[Counter[str]] = []

    def count(self, kind: str) -> None:
        """Count one request of this kind."""
        try:
            mine: Counter[str] = self._local.counter
        except AttributeError:
            mine = self._local.counter = Counter()
            self._all.append(mine)
        mine[kind] += 1

    def __str__(self) -> str:
        total: Counter[str] = Counter()
        for each in self._all:
            total.update(each.copy())
        return " ".join(f"{kind}={number}" for kind, number in sorted(total.items()))
