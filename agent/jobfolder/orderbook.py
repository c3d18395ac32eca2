"""A job takes its orders: each once, in one transaction with what it changes, so that a kill loses and doubles none.

It also decides until when the job may fetch, and whether it is held: paused by a person, or at its deadline where a
person has to decide. Used by the thread of the job's frontier; only `stop_on_discard` starts a thread of its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from agent.frontier import facts
from agent.jobfolder import orders
from agent.jobfolder.job import Job
from agent.jobfolder.jobstate import Hold
from agent.jobfolder.orders import Order, Word
from agent.system import steadyclock
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import format_time, from_epoch, parse_time

#: Seconds between two looks for orders.
_BETWEEN = 0.5
_log = logging.getLogger(__name__)


class OrderBook:
    """The orders of one open job, as far as its process took them."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._frontier = job.frontier
        self._taken = self._frontier.get(facts.ORDERS) or 0
        self._again = 0.0
        self._read()

    def _read(self) -> None:
        held = self._frontier.get(facts.HELD)
        #: Why the job keeps what it has, and waits; None if it works.
        self.held: Hold | None = Hold(held["why"]) if held else None
        self.discarded = self._frontier.get(facts.DISCARDED) is True
        self.stopped = self._frontier.get(facts.STOPPED) is True
        left_out = self._frontier.get(facts.LEFT_OUT)
        #: Hosts whose waiting URLs are dropped, as `exclude_hosts` names them.
        self.left_out: tuple[str, ...] = () if left_out is None else tuple(left_out)
        given = self._frontier.get(facts.DEADLINE)
        own = self._job.begun.timestamp() + self._job.settings.max_duration.seconds
        #: When its time is over, in seconds since 1970; the time of a pause is not counted.
        self.deadline = own + (self._frontier.get(facts.HELD_SECONDS) or 0.0) if given is None else given

    @property
    def latest_end(self) -> datetime:
        """When its time is over."""
        return from_epoch(self.deadline)

    @property
    def is_over_time(self) -> bool:
        """Whether its time is over; never while it is held."""
        return self.held is None and steadyclock.steady() > self.deadline

    def take(self, *, at_once: bool = False) -> bool:
        """Take the orders that were given since the last look; return whether there were any. Cheap if called often."""
        if not at_once and time.monotonic() < self._again:
            return False
        self._again = time.monotonic() + _BETWEEN
        new = orders.after(self._job.folder, self._taken)
        if not new:
            return False
        with self._frontier.changes():
            for order in new:
                why = f": {order.reason}" if order.reason else ""
                _log.info("%s: %s, by %s%s", self._job.name, order, order.by or "somebody", why)
                self._apply(order)
                self._read()
            self._taken = new[-1].number
            self._frontier.set(facts.ORDERS, self._taken)
        self.tell()
        return True

    def hold(self, why: Hold) -> None:
        """Hold the job until a person says how it goes on."""
        with self._frontier.changes():
            self._hold(why)
        self._read()
        self.tell()

    def let_go(self) -> None:
        """Hold the job no longer: it has fetched all that it will."""
        if self.held is not None:
            with self._frontier.changes():
                self._go_on()
            self._read()
            self.tell()

    def tell(self) -> None:
        """Write into the item what the job took, and what holds now."""
        self._job.note(orders=self._taken, held=str(self.held or ""), latest_end=format_time(self.latest_end))

    def _apply(self, order: Order) -> None:
        if order.word is Word.DISCARD:
            self._frontier.set(facts.DISCARDED, True)
        elif self._frontier.get(facts.CAPTURED) is not None:
            _log.warning("%s: it fetches nothing more, so %s changes nothing", self._job.name, order)
        elif order.word is Word.PAUSE:
            self._hold(Hold.PAUSED)
        elif order.word is Word.RESUME:
            self._go_on()
        elif order.word is Word.STOP:
            self._frontier.set(facts.STOPPED, True)
            self._go_on()
        elif order.word is Word.DEADLINE:
            self._extend(order.value)
        else:
            self._frontier.set(facts.LEFT_OUT, sorted({*self.left_out, order.value}))

    def _hold(self, why: Hold) -> None:
        held = self._frontier.get(facts.HELD)
        hold: facts.Held = {"why": str(why), "since": held["since"] if held else steadyclock.steady()}
        self._frontier.set(facts.HELD, hold)

    def _go_on(self) -> None:
        held = self._frontier.get(facts.HELD)
        if held:
            seconds = max(0.0, steadyclock.steady() - held["since"]) if held["why"] == Hold.PAUSED else 0.0
            self._frontier.set(facts.HELD_SECONDS, (self._frontier.get(facts.HELD_SECONDS) or 0.0) + seconds)
            self._frontier.set(facts.HELD, None)

    def _extend(self, value: str) -> None:
        try:
            until = parse_time(value).timestamp()
        except Damaged:
            _log.warning("%s: %r is no time; its deadline stays", self._job.name, value)
            return
        self._frontier.set(facts.DEADLINE, until)
        if self.held is Hold.DEADLINE:
            self._go_on()


@contextmanager
def stop_on_discard(job: Job, taken: int) -> Iterator[None]:
    """Inside, an order to discard the job sets its `stop`: it may be waiting for a lock, or publishing."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_BETWEEN):
            if any(each.word is Word.DISCARD for each in orders.after(job.folder, taken)):
                job.stop.set()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
