"""Looks up whether hosts are at private addresses, beside the crawl: a name server may take its time.

An answer holds for a minute here. wget looks a name up again, so whoever runs a name server can still give the two
different answers: what wget got from inside is dropped by the address that its WARC names (`fetchresults.py`).
"""

from __future__ import annotations

import socket
import threading
import time
from enum import Enum, auto

from agent.policy.addresses import is_private, is_private_host

#: Seconds for which an answer holds, and hosts that are looked up at a time.
HOLDS, AT_ONCE = 60.0, 16


class Reach(Enum):
    """What is known of a host."""

    PUBLIC = auto()
    PRIVATE = auto()
    PENDING = auto()


class Lookups:
    """What is known of hosts. Without `names`, only of those whose name is an address. For one thread."""

    def __init__(self, *, names: bool) -> None:
        self._names = names
        self._known: dict[str, tuple[Reach, float]] = {}
        self._found: dict[str, Reach] = {}
        self._pending: set[str] = set()

    def reach(self, host: str) -> Reach:
        """What is known of a host by now; a name that was not looked up yet is looked up from now on."""
        private = is_private_host(host)
        if private is not None or not self._names:
            return Reach.PRIVATE if private else Reach.PUBLIC
        now = time.monotonic()
        if host in self._pending and (found := self._found.pop(host, None)) is not None:
            self._pending.discard(host)
            self._known[host] = found, now + HOLDS
        known, until = self._known.get(host, (Reach.PENDING, 0.0))
        if until > now:
            return known
        if host not in self._pending and len(self._pending) < AT_ONCE:
            self._pending.add(host)
            threading.Thread(target=self._look, args=(host,), name="lookup", daemon=True).start()
        return Reach.PENDING

    def _look(self, host: str) -> None:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            private = any(is_private(str(each[4][0])) for each in found)
        except (OSError, UnicodeError):
            private = False  # nobody is asked then: wget says why
        self._found[host] = Reach.PRIVATE if private else Reach.PUBLIC
