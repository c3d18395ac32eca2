"""Whose turn it is: which server is asked next, for how many URLs, with which pause, and how fast.

The server with the fewest URLs fetched so far is next. The more servers wait, the shorter the batches, so that each
is served soon; where the deadline is near, so short that each server still has its turn before it. Also here: the
bounds of single servers, and the servers that a person left out while the crawl runs.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter

from agent.jobfolder.job import Job
from agent.jobfolder.orderbook import OrderBook
from agent.policy import scope
from agent.policy.fetchstatus import Status
from agent.policy.vocabulary import Reason
from agent.system import steadyclock

#: URLs in a batch: enough to make wget's start cheap, few enough that results arrive soon.
LARGEST_BATCH = 400
#: Seconds that a batch should take at most if a wait between requests makes it long.
_LENGTH_OF_BATCH = 60.0
#: The minimum of both if more servers wait than slots exist: below it, wget's start would dominate.
_SMALLEST_BATCH = 10
_SHORTEST_BATCH = 2.0
#: Seconds that a document takes until a batch has told, and what the last batch counts for in the mean.
_FIRST_PACE, _NEWEST = 0.02, 0.3
#: A part of the time before the deadline that is left for the start of wgets, and for what a slow server takes longer.
_SPARE = 0.5


class Turns:
    """The servers of one crawl. `places` is the number of wgets that it may have at a time."""

    def __init__(self, job: Job, book: OrderBook, places: int) -> None:
        self._job = job
        self._book = book
        self._frontier = job.frontier
        self._settings = job.settings
        self._places = places
        self._sharing = 1  # servers that need a slot, now or once their results are read
        served = job.frontier.served()
        self._served = Counter({domain: urls for domain, (urls, _) in served.items()})
        self._documents = Counter({domain: documents for domain, (_, documents) in served.items()})
        self._pace = _FIRST_PACE
        #: Server → when its first URL may be fetched; None if that may have changed.
        self.waiting: dict[str, float] | None = None
        #: Server that is not due yet → when to look again (monotonic).
        self.held: dict[str, float] = {}
        #: Servers that had as many documents as they may have.
        self.full: set[str] = set()

    def look(self, busy: set[str], backlog: int) -> None:
        """Find out which servers have URLs that wait; `busy` ones have a wget, `backlog` counts results to be read."""
        if self.waiting is not None:
            return
        waiting = self._frontier.waiting()
        dropped = {domain: why for domain in waiting if (why := self._refusal(domain)) is not None}
        if dropped:
            with self._frontier.changes():
                for domain, (status, note) in dropped.items():
                    self._frontier.refuse_waiting(domain, status, note)
        self.waiting = {domain: ready for domain, ready in waiting.items() if domain not in dropped}
        self._sharing = max(1, len(self.waiting.keys() | busy) + backlog)

    def due(self, now: float, busy: set[str]) -> list[tuple[int, float, str]]:
        """Return a heap of the servers that may be requested from, fewest URLs fetched first."""
        moment = time.monotonic()
        due = [
            (self._served[domain], ready, domain)
            for domain, ready in (self.waiting or {}).items()
            if ready <= now and domain not in busy and self.held.get(domain, 0.0) <= moment
        ]
        heapq.heapify(due)
        return due

    def took(self, domain: str, urls: int, documents: int) -> None:
        """Note that a server is asked for so many URLs; robots.txt is no document."""
        self._served[domain] += urls
        self._documents[domain] += documents

    def got_back(self, domain: str, documents: int) -> None:
        """Note that so many documents of a server wait once more."""
        self._documents[domain] -= documents

    def note_pace(self, documents: int, seconds: float, wait: float) -> None:
        """Note how long a wget took for so many documents."""
        if documents:
            pace = max(0.0, seconds / documents - wait)
            self._pace += _NEWEST * (pace - self._pace)

    def wait(self, domain: str) -> float:
        """Return the pause between two requests to a server, in seconds."""
        own = scope.server_of(self._job.publication.server, domain)
        return self._settings.wait if own is None or own.wait is None else own.wait

    def size(self, domain: str, wait: float) -> int:
        """Return how many URLs the next batch of a server may have."""
        share = self._places / self._sharing
        most = max(_SMALLEST_BATCH, int(LARGEST_BATCH * min(share, 1.0)))
        if wait:
            most = min(most, int(max(_SHORTEST_BATCH, _LENGTH_OF_BATCH * min(share, 1.0)) / wait))
        if share < 1.0:
            # A round of all servers has to fit into the time that is left.
            left = (self._book.deadline - steadyclock.steady()) * _SPARE
            most = min(most, int(max(0.0, left) * share / (wait + self._pace)))
        room = self._room(domain)
        return max(1, most if room is None else min(most, room))

    def speed(self, taken: int) -> int | None:
        """Return the bytes a second of the next wget, 0 without a limit; None if the others have all (`taken`)."""
        whole = self._settings.rate_limit
        if not whole:
            return 0
        part = max(1, whole // min(self._places, self._sharing))
        left = whole - taken
        return min(part, left) if left >= part // 2 and left > 0 else None

    def _refusal(self, domain: str) -> tuple[Status, Reason] | None:
        """Return why nothing more is fetched from a server; None if it may be asked."""
        if scope.matches(self._book.left_out, domain):
            return Status.LEFT_OUT, Reason.LEFT_OUT
        if self._room(domain) == 0:
            self.full.add(domain)
            return Status.CUT, Reason.HOST_FULL
        return None

    def _room(self, domain: str) -> int | None:
        """Return how many more documents a server may have; None without a bound."""
        own = scope.server_of(self._job.publication.server, domain)
        most = self._settings.max_host_documents if own is None or own.max_documents is None else own.max_documents
        return max(0, most - self._documents[domain]) if most else None
