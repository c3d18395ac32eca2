"""Orders to a job: what a person asks of it while it is open, as files `orders/<number>.json` in its folder.

An order is durable before its command answers. Orders that are given at the same time get numbers of their own. The
process of the job takes them by their numbers, each once, in one transaction with what it changes, so that a kill loses
and doubles none (`OrderBook`); where no process works on the job, they wait in the folder.

`OrderBook` also decides until when the job may fetch, and whether it is held: paused by a person, or at its deadline
where a person has to decide. Used by the thread of the job's frontier; only `stop_on_discard` starts a thread of its
own.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from agent.crawl import frontier
from agent.crawl.job_folder import VERSION, Hold, Job
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.archive.model.metadata import format_time, from_epoch, now, parse_time
from webarcfs.archive.system import clocks, files
from webarcfs.archive.system.files import sync_folder

# == orders ===========================================================================================================


FOLDER = "orders"
_log = logging.getLogger(__name__)


class OrderWord(StrEnum):
    """What an order asks for."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    DISCARD = "discard"
    DEADLINE = "deadline"
    EXCLUDE = "exclude"
    ADD = "add"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order. `value` is the time of a deadline (`yyyy-mm-ddThh:mm:ss`, CET), the host to exclude, the URLs to add,
    or a host and the seconds between two requests to it.

    `reason` is a line that a person gave with it; empty in orders of older versions.
    """

    number: int
    word: OrderWord
    value: str = ""
    by: str = ""
    at: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.word} {self.value}".strip()


def give(folder: Path, word: OrderWord, value: str = "", *, by: str = "", reason: str = "") -> Order:
    """Write an order into the folder of a job, durably. Raises NotFound if the job has ended, OSError."""
    orders = folder / FOLDER
    try:
        orders.mkdir(exist_ok=True)
        sync_folder(folder)
        content = {"word": word, "value": value, "by": by, "at": format_time(now()), "reason": reason}
        order = _numbered(orders, content)
    except (FileNotFoundError, NotADirectoryError):
        raise ended(folder.name) from None
    if not (orders / f"{order.number}.json").exists():
        raise ended(folder.name)
    return order


def ended(job: str) -> NotFound:
    """Return the error of an order to a job that is not there."""
    return NotFound(
        f"{job} has ended already; `webarc-agent report {job}` shows what became of it, `webarc-agent crawl --missing "
        f"{job}` asks again for what failed, or says by which --word for what it left, and `webarc-agent crawl --page "
        "URL` archives what it never saw"
    )


def after(folder: Path, number: int) -> list[Order]:
    """Return the orders of a job with a greater number than this, in order. One that cannot be read is skipped."""
    orders = (
        _read(folder / FOLDER, order_number) for order_number in sorted(_numbers(folder)) if order_number > number
    )
    return [order for order in orders if order is not None]


def describe_orders(folder: Path) -> list[dict[str, Any]]:
    """Return the orders of a job from its report."""
    return [
        {"number": order.number, "order": str(order.word), "value": order.value, "by": order.by, "at": order.at,
         "reason": order.reason}
        for order in after(folder, 0)
    ]  # fmt: skip


def last(folder: Path) -> int:
    """Return the number of a job's last order; 0 without one."""
    return max(_numbers(folder), default=0)


def _numbered(orders: Path, content: dict[str, Any]) -> Order:
    scratch = orders / f".{os.getpid()}"
    scratch.unlink(missing_ok=True)  # left by a dead process with the same process id
    number = last(orders.parent) + 1
    try:
        with scratch.open("xb") as file:
            file.write(json.dumps({"version": VERSION, **content}, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        while True:
            try:
                os.link(scratch, orders / f"{number}.json")  # another name, so that no order replaces another
                break
            except FileExistsError:
                number += 1
    finally:
        scratch.unlink(missing_ok=True)
    sync_folder(orders)
    return Order(number=number, **content)


def _numbers(folder: Path) -> list[int]:
    try:
        names = os.listdir(folder / FOLDER)  # noqa: PTH208 # names alone, and often
    except (FileNotFoundError, NotADirectoryError):
        return []
    stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return [int(stem) for stem in stems if stem.isascii() and stem.isdecimal()]


def _read(orders: Path, number: int) -> Order | None:
    path = orders / f"{number}.json"
    try:
        content = files.read_json(path) or {}
        fields = {name: str(content.get(name, "")) for name in ("value", "by", "at", "reason")}
        return Order(number=number, word=OrderWord(str(content.get("word"))), **fields)
    except (Damaged, ValueError) as error:
        _log.warning("%s is no order; it is skipped: %s", path, error)
        return None


# == order book =======================================================================================================


#: Seconds between two looks for orders.
_BETWEEN = 0.5


class OrderBook:
    """The orders of one open job, as far as its process took them."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._frontier = job.frontier
        self._taken = self._frontier.get(frontier.ORDERS) or 0
        self._again = 0.0
        self._read()

    def _read(self) -> None:
        held = self._frontier.get(frontier.HELD)
        #: Why the job keeps what it has, and waits; None if it works.
        self.held: Hold | None = Hold(held["why"]) if held else None
        self.discarded = self._frontier.get(frontier.DISCARDED) is True
        self.stopped = self._frontier.get(frontier.STOPPED) is True
        left_out = self._frontier.get(frontier.LEFT_OUT)
        #: Hosts whose waiting URLs are dropped, as `exclude_hosts` names them.
        self.left_out: tuple[str, ...] = () if left_out is None else tuple(left_out)
        #: URLs to be added, which are not in the frontier yet.
        added = self._frontier.get(frontier.ADDED)
        self.added: tuple[str, ...] = () if added is None else tuple(added)
        #: Hosts, as `exclude_hosts` names them → the seconds between two requests to them.
        self.waits: dict[str, float] = self._frontier.get(frontier.WAITS) or {}
        given = self._frontier.get(frontier.DEADLINE)
        own = self._job.begun.timestamp() + self._job.settings.max_duration.seconds
        #: When its time is over, in seconds since 1970; the time of a pause is not counted.
        self.deadline = own + (self._frontier.get(frontier.HELD_SECONDS) or 0.0) if given is None else given

    @property
    def latest_end(self) -> datetime:
        """When its time is over."""
        return from_epoch(self.deadline)

    @property
    def is_over_time(self) -> bool:
        """Whether its time is over; never while it is held."""
        return self.held is None and clocks.steady() > self.deadline

    def take(self, *, at_once: bool = False) -> bool:
        """Take the orders that were given since the last look; return whether there were any. Cheap if called often."""
        if not at_once and time.monotonic() < self._again:
            return False
        self._again = time.monotonic() + _BETWEEN
        new = after(self._job.folder, self._taken)
        if not new:
            return False
        with self._frontier.changes():
            for order in new:
                why = f": {order.reason}" if order.reason else ""
                _log.info("%s: %s, by %s%s", self._job.name, order, order.by or "somebody", why)
                self._apply(order)
                self._read()
            self._taken = new[-1].number
            self._frontier.set(frontier.ORDERS, self._taken)
        self.tell()
        return True

    def hold(self, why: Hold) -> None:
        """Hold the job until a person decides about it."""
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

    def forget_added(self) -> None:
        """Note that the added URLs are in the frontier. The caller wraps it in the transaction that puts them there."""
        self._frontier.set(frontier.ADDED, [])
        self.added = ()

    def tell(self) -> None:
        """Write into the item what the job took, and what holds now."""
        self._job.note(orders=self._taken, held=str(self.held or ""), latest_end=format_time(self.latest_end))

    def _apply(self, order: Order) -> None:
        if order.word is OrderWord.DISCARD:
            self._frontier.set(frontier.DISCARDED, True)
        elif self._frontier.get(frontier.CAPTURED) is not None:
            _log.warning("%s: it fetches nothing more, so %s changes nothing", self._job.name, order)
        elif order.word is OrderWord.PAUSE:
            self._hold(Hold.PAUSED)
        elif order.word is OrderWord.RESUME:
            self._go_on()
        elif order.word is OrderWord.STOP:
            self._frontier.set(frontier.STOPPED, True)
            self._go_on()
        elif order.word is OrderWord.DEADLINE:
            self._extend(order.value)
        elif order.word is OrderWord.ADD:
            self._frontier.set(frontier.ADDED, [*self.added, *order.value.split()])
        elif order.word is OrderWord.WAIT:
            self._slow_down(order.value)
        else:
            self._frontier.set(frontier.LEFT_OUT, sorted({*self.left_out, order.value}))

    def _slow_down(self, value: str) -> None:
        host, _, seconds = value.rpartition(" ")
        waits = {pattern: wait for pattern, wait in self.waits.items() if pattern != host}
        try:
            # The newest order comes first: its host may be a pattern of what others named.
            self._frontier.set(frontier.WAITS, {host: max(0.0, float(seconds)), **waits})
        except ValueError:
            _log.warning("%s: %r is no host and seconds; its waits stay", self._job.name, value)

    def _hold(self, why: Hold) -> None:
        held = self._frontier.get(frontier.HELD)
        hold: frontier.JobHold = {"why": str(why), "since": held["since"] if held else clocks.steady()}
        self._frontier.set(frontier.HELD, hold)

    def _go_on(self) -> None:
        held = self._frontier.get(frontier.HELD)
        if held:
            seconds = max(0.0, clocks.steady() - held["since"]) if held["why"] == Hold.PAUSED else 0.0
            self._frontier.set(frontier.HELD_SECONDS, (self._frontier.get(frontier.HELD_SECONDS) or 0.0) + seconds)
            self._frontier.set(frontier.HELD, None)

    def _extend(self, value: str) -> None:
        try:
            until = parse_time(value).timestamp()
        except Damaged:
            _log.warning("%s: %r is no time; its deadline stays", self._job.name, value)
            return
        self._frontier.set(frontier.DEADLINE, until)
        if self.held is Hold.DEADLINE:
            self._go_on()


@contextmanager
def stop_on_discard(job: Job, taken: int) -> Iterator[None]:
    """Inside, an order to discard the job sets its `stop`: it may be waiting for a lock, or publishing."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_BETWEEN):
            if any(order.word is OrderWord.DISCARD for order in after(job.folder, taken)):
                job.stop.set()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
