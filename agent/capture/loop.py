"""Stage 1, capture: wget fetches, the frontier decides (/Cr-5/ … /Cr-8.1/).

Up to `max_instances` wget processes run at once, never two on one server. Each gets a batch of one server's URLs and
writes a WARC. Servers take turns (turns.py). While wget fetches the next batch, another process reads the results of
the last one, and their links enter the frontier here. After a kill, no response that is whole in a WARC is fetched
again.
"""

from __future__ import annotations

import heapq
import logging
import math
import os
import time
from collections.abc import Mapping
from contextlib import closing

from agent.capture import serverlocks, wgetcommand
from agent.capture.archivedpages import ArchivedPages
from agent.capture.disposition import OVER_SIZE, OVER_TIME, Captured, Disposition
from agent.capture.fetchresults import DRAINED, Limits
from agent.capture.lookups import Lookups, Reach
from agent.capture.resultreader import EndedBatch, ResultReader
from agent.capture.turns import Turns
from agent.capture.wgetpool import Running, Wgets
from agent.capture.wgetslots import Slots
from agent.frontier.robotscache import Permission, RobotsCache
from agent.frontier.rows import FrontierUrl, UrlOutcome
from agent.frontier.store import NO_STATES
from agent.jobfolder.job import Job
from agent.jobfolder.jobstate import Hold
from agent.jobfolder.livelog import LiveLog
from agent.jobfolder.orderbook import OrderBook
from agent.policy import addresses, scope
from agent.policy.fetchstatus import Status
from agent.policy.politeness import LONGEST_PAUSE
from agent.policy.vocabulary import LinkKind, Reason, UrlState
from agent.system import steadyclock
from webarcfs.archive.config.settings import AtDeadline
from webarcfs.archive.system import locks

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
            work.reader.close()
            work.log.close()


class _Capture:
    def __init__(self, job: Job, archived: ArchivedPages, book: OrderBook) -> None:
        self.job = job
        self.book = book
        self.frontier = job.frontier
        self.settings = job.settings
        self.intake = Disposition(job, archived)
        self.archived = archived
        # A page that is replaced in any case is requested in full.
        self.is_conditional = job.settings.conditional and job.settings.unchanged == "keep"
        self.robots = RobotsCache(job.frontier, job.settings.user_agent)
        self.wgets = Wgets(job.folder, job.settings, job.types)
        self.lookups: Lookups | None = None  # None: the crawl may request from any address
        if not addresses.may_be_private(job.settings, job.publication.urls):
            self.lookups = Lookups(names=not addresses.is_proxied(job.settings.wget_args, os.environ))
        public = self.lookups is not None
        self.reader = ResultReader(
            Limits(job.settings.max_file_size, job.settings.keep_errors, public, self.is_conditional)
        )
        # What the archive allows over all jobs, no job raises.
        most = job.instances or self.settings.max_instances
        self.most = min(most, self.settings.max_instances)
        self.slots = Slots(job.archive.root / "lock", most)
        self.wants_place = False
        self.turns = Turns(job, book, self.most)
        self.log = LiveLog(job.folder, job.frontier)
        self.done = self.known = 0  # URLs, when they were counted last
        self.unread: dict[int, int] = {}  # batches that wget has finished → number of their URLs
        self.tell_again = self.count_again = 0.0
        # The files of a killed run may be newer than the last transaction of the frontier.
        files = (int(path.stem) for path in job.folder.glob("[0-9]*.list") if path.stem.isdecimal())
        self.number = max([self.frontier.last_batch(), *files])

    def run(self) -> Captured:
        """Start batches that are due and read batches that have ended, until nothing is left."""
        while True:
            if self.book.take():
                self.wgets.end_soon(lambda domain: scope.matches(self.book.left_out, domain))
                self.turns.waiting = None
            self.wgets.tend()
            limit = self._limit()
            if limit is not None:
                return limit
            waiting = self.start_batches()
            if not self.wgets and not waiting and not self.reader.backlog:
                return self.intake.verdict(self.book.left_out, self.turns.full)
            self._collect()
            self._tell()
            batch = self.reader.next(self.wgets.descriptors, self._patience())
            if batch is not None:
                self.start_batches()  # wget continues while its last results are applied
                self.read(batch)

    def start_batches(self) -> bool:
        """Start wget on each server that is free and due; return whether any URL waits."""
        now = steadyclock.steady()
        self.turns.look(self.wgets.domains, self.reader.backlog)
        self.wants_place = False
        due = self.turns.due(now, self.wgets.domains) if len(self.wgets) < self.most else []
        while due and len(self.wgets) < self.most and self.reader.backlog <= _FURTHEST:
            self._start(heapq.heappop(due)[-1], now)
        if not self.wants_place:
            self.slots.leave()
        return self.turns.waiting is None or bool(self.turns.waiting)

    def read(self, batch: EndedBatch) -> None:
        """Apply the results of a batch to the frontier, in one transaction."""
        rows = self.frontier.fetching(batch.number)
        with self.frontier.changes(), closing(self.reader.answers(batch, rows)) as answers:
            self.turns.got_back(batch.domain, self.intake.take_in(batch.domain, answers))
            self.frontier.batch_read(batch.number)
        self.log.batch(batch.number)
        self.turns.waiting = None
        if not self.done:
            self.tell_again = self.count_again = 0.0  # show the first results at once
        self.done += self.unread.pop(batch.number, 0)
        self._tell()

    def read_unread(self) -> None:
        """Give the batches of a killed run to the reader: their responses are in WARCs, and are not fetched again.

        Bound the waits that the run wrote: the clock may have been set since.
        """
        with self.frontier.changes():
            self.frontier.bound_waits(steadyclock.steady() + LONGEST_PAUSE)
        for number, domain in self.frontier.unread_batches():
            files = wgetcommand.BatchFiles(self.job.folder, number)
            with locks.exclusive_until(self.job.archive.server_lock(domain), self.job.stop):  # its wget may be ending
                rows = self.frontier.fetching(number)
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
        for each in self.wgets.ended():
            self._give(each)

    def _give(self, each: Running) -> None:
        files = each.files
        self.turns.note_pace(each.documents, each.seconds, each.wait)
        self.unread[files.number] = len(each.rows)
        self.reader.give(EndedBatch(files.number, each.domain, each.rows, files.warc, files.log, each.killed))

    def _patience(self) -> float:
        """Check the wgets; return for how many seconds the loop may wait for the next event."""
        self.wgets.watch(self.intake.room)
        if self.wgets.may_ask:
            return _LOOK
        if self.wgets.pause or self.wgets.under_way:
            return _POLL * 2
        return _WATCH if len(self.wgets) >= self.most or not self.turns.waiting else _POLL

    def end(self) -> bool:
        """End all running wgets and apply what they fetched; return whether all of it was applied."""
        self.slots.leave()
        for each in self.wgets.end():
            self._give(each)
        return self._read_all()

    # -- starting ------------------------------------------------------------------------------------------------

    def _start(self, domain: str, now: float) -> None:
        if not self._may_ask(domain):
            return
        lock = locks.try_exclusive(self.job.archive.server_lock(domain))
        if lock is None:
            return  # another job fetches from this server
        place, started = None, False
        try:
            wait, speed = self.turns.wait(domain), self.turns.speed(self.wgets.speed)
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
        reach = Reach.PUBLIC if self.lookups is None else self.lookups.reach(addresses.host_of(domain))
        if reach is Reach.PENDING:
            self.turns.held[domain] = time.monotonic() + _POLL
        elif reach is Reach.PRIVATE:
            _log.warning(
                "%s is at a private address, and is not asked: `private_addresses = true` would let it be crawled",
                domain,
            )
            with self.frontier.changes():
                self.intake.keep_out(domain)
            self.turns.waiting = None
        return reach is Reach.PUBLIC

    def _is_due(self, domain: str, lock: int, wait: float) -> bool:
        """Return whether the wait since any job's last request, and the pause that the server asked for, are over."""
        left = serverlocks.seconds_to_wait(lock, wait)
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
        rows, conditions = self._with_conditions(rows) if self.is_conditional and not to_the_end else (rows, {})
        self.number += 1
        files = wgetcommand.BatchFiles(self.job.folder, self.number)
        wgetcommand.write_list(files, [row.url for row in rows])
        with self.frontier.changes():
            self.frontier.take(rows, files.number, domain)
        self.turns.took(domain, len(rows), sum(row.kind != LinkKind.ROBOTS for row in rows))
        self.wgets.start(files, rows, domain, wait, held, conditions=conditions, speed=speed)

    def _with_conditions(self, rows: list[FrontierUrl]) -> tuple[list[FrontierUrl], Mapping[str, str]]:
        """Return the first URL with the fields that make its request conditional, else those before such a URL.

        wget sends a field with all URLs of a run, so a conditional request is a run of its own.
        """
        for number, row in enumerate(rows):
            if row.kind != LinkKind.ROBOTS and row.note != Reason.ASKED_AGAIN:
                conditions = self.archived.conditions(row.url)
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
        with self.frontier.changes():
            self.frontier.give_up(Status.CUT, why)
        return Captured(False, why)

    def _drain(self, seconds: float) -> None:
        """Let the wgets end without another request, and apply what they fetched.

        Wait at most so long, or (inf) while the job is held; `_LONGEST_DRAIN` if it stops; not at all if discarded.
        """
        self.wgets.end_soon()
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
        """Give all places back, and wait for an order; return None when it goes on."""
        self._drain(math.inf)
        self.turns.waiting = None
        if not self.book.held and not self.job.stop.is_set():
            return None  # documents may still be under way; their servers wait
        self.end()
        if self.job.by_agent:  # which begins the job again, once it has an order
            self.book.take(at_once=True)
            return Captured(False, str(self.book.held)) if self.book.held else None
        _log.warning("%s is held (%s); `webarc-agent job` lets it go on", self.job.name, self.book.held)
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
