"""Stage 1, capture: wget fetches, the frontier decides (/Cr-5/ … /Cr-8.1/).

Up to `max_instances` wget processes run at once, never two on one server. Each gets a batch of one server's URLs and
writes a WARC. Servers take turns (`Turns`). While wget fetches the next batch, another process reads the results of
the last one, and their links enter the frontier here. After a kill, no response that is whole in a WARC is fetched
again.

Whether hosts are at private addresses is looked up in threads: a name server may be slow. A result is valid for a
minute. wget resolves the name again, and a name server can give it another address. So responses from private addresses
are dropped by the address in their WARC record (`wget.py`).

`Turns` decides which server is asked next, for how many URLs, with which pause, and how fast. The server with the
fewest URLs fetched so far is next. The more servers wait, the shorter the batches, so that each is served soon; where
the deadline is near, so short that each server still has its turn before it. Also here: the bounds of single servers,
and what a person orders for servers while the crawl runs.
"""

from __future__ import annotations

import heapq
import logging
import math
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from enum import Enum, auto

from agent.crawl import scope, server_locks, wget
from agent.crawl.browserpool import BrowserPool, Dependencies
from agent.crawl.cookie_jars import CookieJars
from agent.crawl.crawl_log import LiveLog
from agent.crawl.disposition import OVER_SIZE, OVER_TIME, ArchivedPages, Captured, Disposition
from agent.crawl.frontier import NO_STATES, SHOWED_SECRETS, FrontierUrl, UrlOutcome
from agent.crawl.job_folder import Hold, Job
from agent.crawl.job_orders import OrderBook
from agent.crawl.politeness import LONGEST_PAUSE, Permission, RobotsCache, failed
from agent.crawl.public_proxy import PublicProxy
from agent.crawl.resultreader import EndedBatch, ResultReader
from agent.crawl.scope import PRIVATE_ADDRESS, is_private, is_private_host
from agent.crawl.secrets import Secrets, blank_requests, kept_back
from agent.crawl.server_locks import Slots
from agent.crawl.vocabulary import LinkKind, Reason, Status, UrlState
from agent.crawl.wget import DRAINED, FetchResult, Limits
from agent.crawl.wgetpool import Running, Wgets
from webarcfs.archive.config.settings import AtDeadline, Certificates, RobotsFor
from webarcfs.archive.system import clocks, locks

# == lookups ==========================================================================================================


#: Seconds for which the result of a look-up is valid, and hosts that are looked up at once.
_VALID_SECONDS, _AT_ONCE = 60.0, 16
#: Hosts whose results are kept; beyond it, the oldest is looked up again.
_MOST_RESULTS = 10_000


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
        if host in self._pending and (looked_up := self._found.pop(host, None)) is not None:
            self._pending.discard(host)
            self._known.pop(host, None)  # so that the oldest result comes first
            self._known[host] = looked_up, now + _VALID_SECONDS
            if len(self._known) > _MOST_RESULTS:
                del self._known[next(iter(self._known))]
        known, until = self._known.get(host, (Reach.PENDING, 0.0))
        if until > now:
            return known
        if host not in self._pending and len(self._pending) < _AT_ONCE:
            self._pending.add(host)
            threading.Thread(target=self._look, args=(host,), name="lookup", daemon=True).start()
        return Reach.PENDING

    def _look(self, host: str) -> None:
        try:
            addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            private = any(is_private(str(address[4][0])) for address in addresses)
        except (OSError, UnicodeError):
            private = False  # no server is reached then, and wget logs the reason
        self._found[host] = Reach.PRIVATE if private else Reach.PUBLIC


# == turns ============================================================================================================


#: URLs in a batch: enough to make wget's start cheap, few enough that results arrive soon.
LARGEST_BATCH = 400
#: Seconds that a batch should take at most if a wait between requests makes it long.
_LENGTH_OF_BATCH = 60.0
#: The minimum of both if more servers wait than slots exist: below it, wget's start would dominate.
_SMALLEST_BATCH = 10
_SHORTEST_BATCH = 2.0
#: Seconds that a document takes until a batch has reported, and what the last batch counts for in the mean.
_FIRST_PACE, _NEWEST = 0.02, 0.3
#: A part of the time before the deadline that is left for the start of wgets, and for what a slow server takes longer.
_SPARE = 0.5


class Turns:
    """The servers of one crawl. `places` is the number of wgets that it may have at a time.

    `drop` settles the waiting URLs of a server that is not asked any more.
    """

    def __init__(self, job: Job, book: OrderBook, places: int, drop: Callable[[str, UrlState, int, str], None]) -> None:
        self._job = job
        self._drop = drop
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

    def look(self, busy: set[str], backlog: int) -> None:
        """Find out which servers have URLs that wait; `busy` ones have a wget, `backlog` counts results to be read."""
        if self.waiting is not None:
            return
        waiting = self._frontier.waiting()
        dropped = {domain: why for domain in waiting if (why := self._refusal(domain)) is not None}
        if dropped:
            with self._frontier.changes():
                for domain, (status, note) in dropped.items():
                    self._drop(domain, UrlState.REFUSED, status, note)
            waiting = self._frontier.waiting()  # archived versions of what was dropped may link to others
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
        return scope.wait_of(self._job.publication, self._book.waits, domain)

    def size(self, domain: str, wait: float) -> int:
        """Return how many URLs the next batch of a server may have."""
        share = self._places / self._sharing
        most = max(_SMALLEST_BATCH, int(LARGEST_BATCH * min(share, 1.0)))
        if wait:
            most = min(most, int(max(_SHORTEST_BATCH, _LENGTH_OF_BATCH * min(share, 1.0)) / wait))
        if share < 1.0:
            # A round of all servers has to fit into the time that is left.
            left = (self._book.deadline - clocks.steady()) * _SPARE
            most = min(most, int(max(0.0, left) * share / (wait + self._pace)))
        room = self._room(domain)
        return max(1, most if room is None else min(most, room))

    def speed(self, taken: int, *, beside: int = 0) -> int | None:
        """Return the bytes a second of the next wget, 0 without a limit; None if the others have all (`taken`).

        So many more than the wgets may be `beside` them: a page of the browser, which may wait for one of them.
        """
        whole = self._settings.rate_limit
        if not whole:
            return 0
        part = max(1, whole // (min(self._places, self._sharing) + beside))
        left = whole - taken
        return min(part, left) if left >= part // 2 and left > 0 else None

    def is_full(self, domain: str) -> bool:
        """Return whether nothing more is fetched from a server."""
        return self._refusal(domain) is not None

    def _refusal(self, domain: str) -> tuple[Status, Reason] | None:
        """Return why nothing more is fetched from a server; None if it may be asked."""
        if scope.matches_host(self._book.left_out, domain):
            return Status.LEFT_OUT, Reason.LEFT_OUT
        if self._room(domain) == 0:
            return Status.CUT, Reason.HOST_FULL
        return None

    def _room(self, domain: str) -> int | None:
        """Return how many more documents a server may have; None without a bound."""
        own = scope.server_of(self._job.publication.server, domain)
        most = self._settings.max_host_documents if own is None or own.max_documents is None else own.max_documents
        return max(0, most - self._documents[domain]) if most else None


# == loop =============================================================================================================


#: Batches that wget may be ahead of the reader. This bounds the time until a limit or an error is noticed.
_FURTHEST = 2
_POLL = 0.02
_WATCH = 0.25
_SECONDS_BETWEEN = 0.5
#: Seconds that a job that ends or stops waits for documents that are under way.
_LONGEST_DRAIN = 5.0
#: Seconds between two looks at wgets that shall end, and may still make a request.
_LOOK = 0.002
#: Seconds that a stopping job waits for results that are being read.
_LONGEST_STOP = 2.0

_DENIED = frozenset({Permission.NO, Permission.UNAVAILABLE})
#: How wget ends where its proxy has no connection for it.
_UNCONNECTED = frozenset({Status.DNS, Status.CONNECT_FAILED, Status.CONNECTION_LOST, Status.TIMEOUT, Status.RUNTIME})

_log = logging.getLogger(__name__)


def capture(job: Job, archived: ArchivedPages, book: OrderBook) -> Captured:
    """Fetch the frontier's URLs; `archived` has the links of pages that fail or did not change.

    Returns when nothing is left to fetch, a limit is reached, or `job.stop` is set; also when the job is held, where
    the agent begins it again.
    """
    work = _Capture(job, archived, book)
    try:
        work.read_unread()
        return work.run()
    finally:
        try:
            work.end()
        finally:
            if work.public_proxy is not None:
                work.public_proxy.close()
            work.reader.close()
            work.log.close()
            work.intake.close()


class _Capture:
    def __init__(self, job: Job, archived: ArchivedPages, book: OrderBook) -> None:
        self.job = job
        self.book = book
        self.frontier = job.frontier
        self.settings = job.settings
        self.jars = CookieJars(job.folder / "cookies")
        self.intake = Disposition(job, archived, self.jars)
        self.archived = archived
        # A page that is replaced in any case is requested in full.
        # A page that a browser may show is, too: it needs the response.
        is_kept = job.settings.unchanged == "keep" and not scope.may_show_pages(job.publication)
        self.is_conditional = job.settings.conditional and is_kept
        self.robots = RobotsCache(job.frontier, job.settings.user_agent)
        self.secrets = Secrets.of(job.publication)
        if job.publication.has_secrets:
            with job.frontier.changes():
                job.frontier.set(SHOWED_SECRETS, True)
            _log.warning(
                "%s shows secrets to servers: what they answer (Set-Cookie, authorization) is in each headers.http of "
                "the mount; readers get these fields blanked",
                job.publication.name,
            )
            for line in kept_back(job.publication):
                _log.warning("%s", line)
        self.lookups: Lookups | None = None  # None: the crawl may request from any address
        proxied = scope.is_proxied(job.settings.wget_args, os.environ, job.settings.proxy)
        has_own_proxy = scope.is_proxied(job.settings.wget_args, {})  # wget prefers that one to any other
        is_guarded = job.publication.is_saved and not job.settings.private_addresses and not has_own_proxy
        self.public_proxy = PublicProxy(job.settings) if is_guarded else None
        proxy = "" if self.public_proxy is None else self.public_proxy.url
        self.wgets = Wgets(job.folder, job.settings, job.types, self.jars, self.secrets, proxy=proxy)
        if not job.settings.private_addresses:
            self.lookups = Lookups(names=not proxied)
        # A start URL at a private address opens the hosts of the job, not those that only have resources of its pages.
        self.is_inside = scope.may_be_private(job.publication)
        # A feed opens its own host alone.
        is_narrow = bool(job.publication.watch) and not job.settings.private_addresses
        public = not self.is_inside or is_narrow
        opened = (scope.domain_in(job.publication.watch),) if self.is_inside and is_narrow else ()
        self.reader = ResultReader(
            Limits(
                job.settings.max_file_size,
                job.settings.keep_errors,
                public,
                self.is_conditional,
                proxied or is_guarded,
                job.settings.max_sitemap_urls,
                opened,
            )
        )
        # What the archive allows over all jobs, no job raises.
        most = job.instances or self.settings.max_instances
        self.most = min(most, self.settings.max_instances)
        # Saved pages have slots of their own: no crawl waits for them, and they wait for none.
        self.slots = Slots(job.archive.root / "lock", most, *(["page"] if job.publication.is_saved else []))
        self.wants_place = False
        self.turns = Turns(job, book, self.most, self.intake.drop)
        self.log = LiveLog(job.folder, job.frontier)
        self.done = self.known = 0  # URLs, when they were counted last
        self.unread: dict[int, int] = {}  # batches that wget has finished → number of their URLs
        self.tell_again = self.count_again = 0.0
        # The files of a killed run may be newer than the last transaction of the frontier.
        files = (int(path.stem) for path in job.folder.glob("[0-9]*.list") if path.stem.isdecimal())
        self.number = max([self.frontier.last_batch(), *files])
        self.browser = BrowserPool(
            Dependencies(
                job=job,
                intake=self.intake,
                robots=self.robots,
                secrets=self.secrets,
                jars=self.jars,
                may_ask=self._may_be_asked,
                wait=self._wait_before,
                speed=lambda: self.turns.speed(self.wgets.speed, beside=1),
                next_batch=self._next_batch,
                is_full=self.turns.is_full,
                took=lambda domain: self.turns.took(domain, 1, 1),
                give=self._give_page,
                free=self._free,
                public=lambda domain: not self._is_free(domain),
            ),
            self.most,
        )

    def run(self) -> Captured:
        """Start batches that are due and read batches that have ended, until nothing is left."""
        while True:
            waits, left_out = self.book.waits, self.book.left_out
            if self.book.take() or self.book.added:
                self._obey(waits, left_out)
            self.wgets.tend()
            limit = self._limit()
            if limit is not None:
                return limit
            self.browser.tend()
            if self.browser.waits:
                self.turns.waiting = None  # a robots.txt may be wanted first
            waiting = self.start_batches()
            if not self.wgets and not waiting and not self.reader.backlog and not self.browser.is_open:
                return self.intake.verdict()
            self._collect()
            self._tell()
            descriptors = [*self.wgets.descriptors, *self.browser.descriptors]
            batch = self.reader.next(descriptors, self._patience())
            if batch is not None:
                self.start_batches()  # wget continues while its last results are applied
                self.read(batch)

    def _obey(self, waits: Mapping[str, float], left_out: tuple[str, ...]) -> None:
        """Apply the orders that were taken; `waits` and `left_out` are those that held before."""
        changed = tuple(host for host, wait in self.book.waits.items() if waits.get(host) != wait)
        changed += tuple(host for host in self.book.left_out if host not in left_out)
        self.wgets.end_soon(lambda domain: scope.matches_host(changed, domain))
        self.browser.show_again(lambda domain: scope.matches_host(changed, domain))
        self._add()
        self.turns.waiting = None

    def _add(self) -> None:
        """Put the URLs that a person added into the frontier."""
        if self.book.added:
            with self.frontier.changes():
                self.intake.add(self.book.added)
                self.book.forget_added()
            self.log.found()

    def start_batches(self) -> bool:
        """Start wget on each server that is free and due; return whether any URL waits."""
        now = clocks.steady()
        busy = self.wgets.domains | self.browser.hosts
        self.turns.look(busy, self.reader.backlog)
        self.wants_place = False
        due = self.turns.due(now, busy) if len(self.wgets) < self.most else []
        while due and len(self.wgets) < self.most and self.reader.backlog <= _FURTHEST:
            self._start(heapq.heappop(due)[-1], now)
        if not self.wants_place:
            self.slots.leave()
        return self.turns.waiting is None or bool(self.turns.waiting)

    def read(self, batch: EndedBatch) -> None:
        """Apply the results of a batch to the frontier, in one transaction."""
        rows = self.frontier.fetching(batch.number)
        with self.frontier.changes(), closing(self.reader.answers(batch, rows)) as answers:
            explained = map(self._explained, answers)
            self.turns.got_back(batch.domain, self.intake.take_in(batch.domain, explained))
            self.frontier.batch_read(batch.number)
        self.jars.forget(batch.number)
        self.log.batch(batch.number)
        self.turns.waiting = None
        self.browser.count()
        if not self.done:
            self.tell_again = self.count_again = 0.0  # show the first results at once
        self.done += self.unread.pop(batch.number, 0)
        self._tell()

    def _explained(self, answer: FetchResult) -> FetchResult:
        """Return a result with why the server was not connected to: wget knows only that its proxy did not."""
        settled, proxy = answer.settled, self.public_proxy
        if proxy is None or settled.status not in _UNCONNECTED or (fault := proxy.fault_of(answer.row.asked)) is None:
            return answer
        if fault == (PRIVATE_ADDRESS.status, PRIVATE_ADDRESS.reason):  # another try would reach none that is public
            settled = UrlOutcome(id=answer.row.id, state=UrlState.FAILED, status=fault[0], note=fault[1])
            return replace(answer, settled=settled)
        return replace(answer, settled=failed(answer.row, *fault, clocks.steady()))

    def read_unread(self) -> None:
        """Give the batches of a killed run to the reader: their responses are in WARCs, and are not fetched again.

        Bound the waits that the run wrote: the clock may have been set since.
        """
        with self.frontier.changes():
            self.frontier.bound_waits(clocks.steady() + LONGEST_PAUSE)
        for number, domain in self.frontier.unread_batches():
            files = wget.BatchFiles(self.job.folder, number)
            with locks.exclusive_until(self.job.archive.server_lock(domain), self.job.stop):  # its wget may be ending
                rows = self.frontier.fetching(number)
                if self.secrets.knows(domain) or wget.sends_proxy_password(self.settings.proxy):
                    blank_requests(files.warc, self.secrets.field_names)
                # A URL without an answer there was not tried: wget may have been kept from asking.
                self.reader.give(EndedBatch(number, domain, rows, files.warc, files.log, DRAINED))

    def _read_all(self) -> bool:
        """Apply the remaining results; return whether all were applied. A stopping job waits up to `_LONGEST_STOP`."""
        until: float | None = None
        while self.reader.backlog:
            if self.job.stop.is_set():
                until = until or time.monotonic() + _LONGEST_STOP
                if time.monotonic() > until:
                    return False  # the next run reads the rest from the WARCs
            batch = self.reader.next([], _WATCH)
            if batch is not None:
                self.read(batch)
        return True

    def _collect(self) -> None:
        """Give the batches of ended wgets to the reader."""
        for running in self.wgets.ended():
            self._give(running)

    def _give(self, running: Running) -> None:
        files = running.files
        self.turns.note_pace(running.documents, running.seconds, running.wait)
        self.unread[files.number] = len(running.rows)
        self.reader.give(EndedBatch(files.number, running.domain, running.rows, files.warc, files.log, running.killed))

    def _patience(self) -> float:
        """Check the wgets; return for how many seconds the loop may wait for the next event."""
        self.wgets.watch(self.intake.room)
        if self.wgets.may_ask:
            return _LOOK
        if self.browser.waits:
            return _POLL
        if self.wgets.pause or self.wgets.under_way:
            return _POLL * 2
        return _WATCH if len(self.wgets) >= self.most or not self.turns.waiting else _POLL

    def end(self) -> bool:
        """End all running wgets and apply what they fetched; return whether all of it was applied."""
        self.slots.leave()
        try:
            self.browser.end()
        finally:  # a full disk lets no page wait again, and no wget may stay
            for running in self.wgets.end():
                self._give(running)
        return self._read_all()

    # -- the browser ---------------------------------------------------------------------------------------------

    def _next_batch(self) -> int:
        self.number += 1
        return self.number

    def _wait_before(self, domain: str, url: str) -> float:
        wait = self.turns.wait(domain)
        return max(wait, self.robots.delay(url, clocks.steady())) if self.settings.robots else wait

    def _is_free(self, domain: str) -> bool:
        """Return whether a host may be at any address."""
        return self.lookups is None or (self.is_inside and self.intake.is_opened(domain))

    def _may_be_asked(self, domain: str) -> bool | None:
        """Return whether a host is at an address that the crawl may request from; None if it is not known yet."""
        if self._is_free(domain) or self.lookups is None:
            return True
        reach = self.lookups.reach(scope.host_of(domain))
        return None if reach is Reach.PENDING else reach is Reach.PUBLIC

    def _free(self, domain: str) -> None:
        """Let the wget at a host end after its document: the browser asks that host now."""
        if domain in self.wgets.domains:
            self.wgets.end_soon(lambda other: other == domain)

    def _give_page(self, number: int) -> None:
        """Have what a page asked for read. Its hosts are judged by what wgets get."""
        files = wget.BatchFiles(self.job.folder, number)
        rows = self.frontier.fetching(number)
        self.unread[number] = len(rows)
        self.reader.give(EndedBatch(number, "", rows, files.warc, files.log))

    # -- starting ------------------------------------------------------------------------------------------------

    def _start(self, domain: str, now: float) -> None:
        if not self._may_ask(domain):
            return
        lock = locks.try_exclusive(self.job.archive.server_lock(domain))
        if lock is None:
            return  # another job fetches from this server
        place, started = None, False
        try:
            wait, speed = self.turns.wait(domain), self.turns.speed(self.wgets.speed + self.browser.speed)
            if speed is None or not self._is_due(domain, lock, wait):
                return
            place = self.slots.take(len(self.wgets))
            if place is None:
                self.wants_place = True
                return
            rows, wait = self._choose(domain, now, wait)
            if rows and self._is_due(domain, lock, wait):
                self._launch(domain, rows, wait, speed, (lock, place))
                started = True
        finally:
            if not started:
                os.close(lock)
                if place is not None:
                    os.close(place)

    def _may_ask(self, domain: str) -> bool:
        """Return whether the server is known to be at an address that the crawl may request from."""
        may_ask = self._may_be_asked(domain)
        if may_ask is None:
            self.turns.held[domain] = time.monotonic() + _POLL
        elif not may_ask:
            _log.warning(
                "%s is at a private address, and is not asked; private_addresses (--private-addresses) allows it",
                domain,
            )
            with self.frontier.changes():
                self.intake.keep_out(domain)
            self.turns.waiting = None
        return bool(may_ask)

    def _is_due(self, domain: str, lock: int, wait: float) -> bool:
        """Return whether the wait since any job's last request, and the pause that the server asked for, are over."""
        left = server_locks.seconds_to_wait(lock, wait)
        if left <= 0:
            self.turns.held.pop(domain, None)
        else:
            self.turns.held[domain] = time.monotonic() + min(left, 1.0)  # another job may change the wait by then
        return left <= 0

    def _choose(self, domain: str, now: float, wait: float) -> tuple[list[FrontierUrl], float]:
        """Return the next URLs of a server that robots.txt allows, as far as it is known, and the wait in seconds."""
        most = 1 if self.intake.is_doubtful(domain) else self.turns.size(domain, wait)
        allowed: list[FrontierUrl] = []
        denied: list[str] = []
        self.turns.waiting = None
        with self.frontier.changes():
            while rows := self.frontier.next(domain, now, most):
                secured = self.intake.secure(rows)
                denied += [row.url for row in secured]
                if secured:
                    continue
                first = [row for row in rows if row.kind == LinkKind.ROBOTS]
                if first or not self.settings.robots:
                    return first or rows, wait
                says = [self._ask(row, now) for row in rows]
                allowed = [row for row, say in zip(rows, says, strict=True) if say is Permission.YES]
                denied += [row.url for row, say in zip(rows, says, strict=True) if say in _DENIED]
                if allowed or Permission.ASK in says:
                    break  # else all of them were refused
        if denied:
            self.log.found()
            self.log.urls(row for url in denied if (row := self.frontier.by_url(url)) is not None)
        if allowed:
            wait = max(wait, self.robots.delay(allowed[0].url, now))
        return allowed[: min(most, self.turns.size(domain, wait))], wait

    def _ask(self, row: FrontierUrl, now: float) -> Permission:
        """Return the robots.txt permission for a URL; settle the URL if it may not be fetched."""
        if row.embedded and self.settings.robots_for == RobotsFor.PAGES:
            return Permission.YES
        say = self.robots.say(row.url, now)
        if say is Permission.NO:
            self.intake.fail(
                UrlOutcome(id=row.id, state=UrlState.REFUSED, status=Status.ROBOTS, tried=0, note=Reason.ROBOTS), row
            )
        elif say is Permission.UNAVAILABLE:
            status = Status.ROBOTS_UNREACHABLE
            self.intake.fail(
                UrlOutcome(id=row.id, state=UrlState.FAILED, status=status, tried=0, note=Reason.ROBOTS_UNAVAILABLE),
                row,
            )
        return say

    def _launch(self, domain: str, rows: list[FrontierUrl], wait: float, speed: int, held: tuple[int, int]) -> None:
        # wget reads all bodies of a batch in one mode; the other URLs wait.
        to_the_end = rows[0].note == Reason.BAD_LENGTH
        rows = [row for row in rows if (row.note == Reason.BAD_LENGTH) == to_the_end]
        if self.secrets.knows(domain):
            shown = self.secrets.for_url(rows[0].url)
            rows = [row for row in rows if self.secrets.for_url(row.url) is shown]
        rows, referrer = self._with_one_referrer(rows)
        rows, conditions = (rows, {}) if to_the_end else self._with_conditions(rows)
        self.number += 1
        files = wget.BatchFiles(self.job.folder, self.number)
        wget.write_list(files, [row.asked for row in rows])
        with self.frontier.changes():
            self.frontier.take(rows, files.number, domain)
        self.turns.took(domain, len(rows), sum(row.kind != LinkKind.ROBOTS for row in rows))
        own = scope.server_of(self.job.publication.server, domain)
        certificates = self.settings.certificates if own is None or own.certificates is None else own.certificates
        checked = certificates == Certificates.CHECK
        self.wgets.start(
            files, rows, domain, wait, held, conditions=conditions, referrer=referrer, speed=speed, checked=checked
        )

    def _with_one_referrer(self, rows: list[FrontierUrl]) -> tuple[list[FrontierUrl], str]:
        """Return the URLs that have the same field Referer as the first one, with that field; the others wait."""
        pages = self.frontier.referrers(rows)
        fields = [wget.referrer_of(pages.get(row.id, ""), row.url) for row in rows]
        return [row for row, field in zip(rows, fields, strict=True) if field == fields[0]], fields[0]

    def _with_conditions(self, rows: list[FrontierUrl]) -> tuple[list[FrontierUrl], Mapping[str, str]]:
        """Return the first URL with the fields that make its request conditional, else those before such a URL.

        wget sends a field with all URLs of a run, so a conditional request is a run of its own. The watched feed is
        always asked for so.
        """
        for number, row in enumerate(rows):
            asks_if_changed = self.is_conditional or (row.kind == LinkKind.FEED and self.settings.unchanged == "keep")
            if asks_if_changed and row.kind != LinkKind.ROBOTS and row.note != Reason.ASKED_AGAIN:
                conditions = self.archived.conditions(row.url, as_page=not row.embedded)
                if conditions:
                    return (rows[:number], {}) if number else ([row], conditions)
        return rows, {}

    # -- ending early -------------------------------------------------------------------------------------------

    def _limit(self) -> Captured | None:
        """Return the end of the capture if it was stopped or a limit is reached, else None."""
        if self.job.stop.is_set():
            self._drain(_LONGEST_DRAIN)
            return Captured(False, "stopped")
        if self.book.stopped:
            return self._cut(Reason.STOPPED)
        if self.book.is_over_time and self.settings.at_deadline == AtDeadline.WAIT:
            self.book.hold(Hold.DEADLINE)
        if self.book.held:
            return self._hold()
        if self.book.is_over_time:
            return self._cut(OVER_TIME)
        return self._cut(OVER_SIZE) if self.intake.is_full else None

    def _cut(self, why: Reason) -> Captured:
        self._drain(_LONGEST_DRAIN)
        if not self.end():
            return Captured(False, "stopped")
        self.browser.end(Reason.BROWSER_CUT)
        self._add()  # so that the report names them
        with self.frontier.changes():
            self.frontier.give_up(Status.CUT, why)
        return Captured(False, why)

    def _drain(self, seconds: float) -> None:
        """Let the wgets end without another request, and apply what they fetched.

        Wait at most so long, or (inf) while the job is held; `_LONGEST_DRAIN` if it stops; not at all if discarded.
        """
        self.wgets.end_soon()
        self.browser.end()
        self.slots.leave()
        until, is_stopping = time.monotonic() + seconds, False
        while self.wgets and time.monotonic() < until:
            if self.job.stop.is_set() and not is_stopping:
                is_stopping, until = True, min(until, time.monotonic() + _LONGEST_DRAIN)
            self.book.take(at_once=is_stopping)
            if self.book.discarded or (seconds == math.inf and not self.book.held):
                break
            self.wgets.tend()
            self.wgets.watch(self.intake.room)
            self.job.note(reason=f"documents under way: {self.wgets.under_way}")
            self._collect()
            batch = self.reader.next(self.wgets.descriptors, _LOOK if self.wgets.may_ask else _POLL)
            if batch is not None:
                self.read(batch)
        self.job.note(reason="")

    def _hold(self) -> Captured | None:
        """Give all places back, and wait for an order; return None when it may continue."""
        self._drain(math.inf)
        self.turns.waiting = None
        if not self.book.held and not self.job.stop.is_set():
            return None  # documents may still be under way; their servers wait
        self.end()
        if self.job.by_agent:  # which begins the job again, once it has an order
            self.book.take(at_once=True)
            return Captured(False, str(self.book.held)) if self.book.held else None
        _log.warning("%s is held (%s); `webarc-agent job` resumes it", self.job.name, self.book.held)
        while self.book.held and not self.book.stopped and not self.job.stop.wait(_WATCH):
            self.book.take()
        return Captured(False, "stopped") if self.job.stop.is_set() else None

    def _tell(self) -> None:
        """Report the progress, at most every `_SECONDS_BETWEEN`, including documents fetched but not yet read."""
        now = time.monotonic()
        if now < self.tell_again:
            return
        self.tell_again = now + _SECONDS_BETWEEN
        if now >= self.count_again:
            counts = self.frontier.counts()
            self.done = counts.get("done", 0) + counts.get("failed", 0)
            self.known = sum(count for state, count in counts.items() if state not in NO_STATES and state != "refused")
            # Counting reads all rows. Its interval grows with its duration, so that it stays 2 % of the time.
            self.count_again = time.monotonic() + 50 * (time.monotonic() - now)
        done = self.done + self.wgets.answered + sum(self.unread.values())
        self.job.progress("capture", done, max(done, self.known))
