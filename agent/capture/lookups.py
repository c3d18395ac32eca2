"""Looks up whether hosts are at private addresses, in threads: a name server may be slow.

A result is valid for a minute. wget resolves the name again, and a name server can give it another address. So
responses from private addresses are dropped by the address in their WARC record (`fetchresults.py`).
"""

from __future__ import annotations

import socket
import threading
import time
from enum import Enum, auto

from agent.policy.addresses import is_private, is_private_host

#: Seconds for which a result is valid, and hosts that are looked up at once.
HOLDS, AT_ONCE = 60.0, 16
#: Hosts whose results are kept; beyond it, the oldest is looked up again.
MOST = 10_000


class Reach(Enum):
    """Whether a host is at a public address."""

    PUBLIC = auto()
    PRIVATE = auto()
    PENDING = auto()


class Lookups:
    """The reach of hosts. Without `names`, only hosts given as an address are checked. Used by one thread."""

    def __init__(self, *, names: bool) -> None:
        self._names = names
        self._known: dict[str, tuple[Reach, float]] = {}
        self._found: dict[str, Reach] = {}
        self._pending: set[str] = set()

    def reach(self, host: str) -> Reach:
        """Return the reach of a host as known now; start a look-up if the name was not looked up yet."""
        private = is_private_host(host)
        if private is not None or not self._names:
            return Reach.PRIVATE if private else Reach.PUBLIC
        now = time.monotonic()
        if host in self._pending and (found := self._found.pop(host, None)) is not None:
            self._pending.discard(host)
            self._known.pop(host, None)  # so that the oldest result comes first
            self._known[host] = found, now + HOLDS
            if len(self._known) > MOST:
                del self._known[next(iter(self._known))]
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
            private = False  # no server is reached then, and wget logs the reason
        self._found[host] = Reach.PRIVATE if private else Reach.PUBLIC
