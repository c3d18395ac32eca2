"""Orders to open jobs, as a person gives them: judged, written, and waited for until they are taken."""

from __future__ import annotations

import math
import os
import shlex
import time
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agent.crawl import job_folder, job_orders, scope, server_locks
from agent.crawl.frontier import ADDED, WAITS
from agent.crawl.job_folder import JobState, kind_of, publication_of
from agent.crawl.job_orders import Order, OrderWord
from agent.crawl.politeness import LONGEST_PAUSE
from agent.crawl.vocabulary import UrlState
from agent.reports import tables, url_fates
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import is_import
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.validators import Interval, start_url
from webarcfs.archive.model.errors import NotFound, UsageError, WebarcError
from webarcfs.archive.model.metadata import CET, format_time, from_epoch, now

#: Most characters of the reason of an order.
LONGEST_REASON = 500
#: Most URLs that one order adds; a list of more is a crawl of its own.
MOST_URLS = 100
_OF_URLS = (OrderWord.EXCLUDE, OrderWord.ADD, OrderWord.WAIT)
#: Hosts that are named of those that an order means.
MOST_MATCHING = 10
#: Seconds until a job that has taken an order to add URLs has them.
_SECONDS_TO_ADD = 1.0
#: What stands behind an order: in words, how many values at least and at most.
_WANTS = {
    OrderWord.DEADLINE: ("a time", 1, 1),
    OrderWord.EXCLUDE: ("a host", 1, 1),
    OrderWord.ADD: (f"1 to {MOST_URLS} URLs", 1, MOST_URLS),
    OrderWord.WAIT: ("a host and seconds", 2, 2),
}


def find(archive: Archive, name: str) -> Path:
    """Return the folder of an open job, by its name or its publication. Raises NotFound, which says what there is."""
    folders = sorted(path for path in archive.jobs.iterdir() if not path.name.startswith((".", "step-")))
    matching_folders = [path for path in folders if name in (path.name, publication_of(path.name))]
    if matching_folders:
        return matching_folders[-1]
    if ended_job := find_ended(archive, name):
        raise job_orders.ended(ended_job)
    names = ", ".join(path.name for path in folders) or "none"
    raise NotFound(f"there is no open job {name}; there are: {names}")


def find_ended(archive: Archive, name: str) -> str:
    """Return the job that has ended, by its name, its record or its publication (its newest); empty where none has."""
    if "/" in name or name.startswith("."):
        return ""
    if (archive.reports / name).is_dir():
        return name
    catalogue = Catalogue(archive)
    if catalogue.has(name) and (archive.reports / (job := catalogue.read(name)[0].job_name)).is_dir():
        return job
    return next((job for job in url_fates.report_names(archive) if kind_of(job) == name), "")


def words_for(state: JobState) -> tuple[OrderWord, ...]:
    """Return the orders that make sense for a job as it is now; the same for commands and forms."""
    if is_import(state.job):
        return ()
    if state.state is job_folder.Phase.CONVERTING:
        return (OrderWord.DISCARD,)
    if state.held == job_folder.Hold.DEADLINE:
        return (OrderWord.STOP, OrderWord.DISCARD, OrderWord.DEADLINE, *_OF_URLS)
    return (
        OrderWord.RESUME if state.held else OrderWord.PAUSE,
        OrderWord.STOP,
        OrderWord.DISCARD,
        OrderWord.DEADLINE,
        *_OF_URLS,
    )


def judged(state: JobState, word: str, values: tuple[str, ...]) -> tuple[OrderWord, str]:
    """Return the order that a person means, and its value. Raises UsageError for one that makes no sense."""
    if word not in set(OrderWord):
        raise UsageError(f"{word} is no order; there are: {', '.join(OrderWord)}")
    wanted = OrderWord(word)
    missing, least, most = _WANTS.get(wanted, ("nothing", 0, 0))
    if not least <= len(values) <= most:
        raise UsageError(f"{word} wants {missing} behind it")
    if is_import(state.job):
        raise UsageError(f"{state.job} is an import, which takes no orders; the same command resumes it")
    if wanted is OrderWord.DEADLINE:
        return wanted, format_time(_time(values[0]))
    if wanted is OrderWord.EXCLUDE:
        return wanted, _host(values[0])
    has_fetched = state.state is job_folder.Phase.CONVERTING
    if wanted is OrderWord.ADD:
        urls = dict.fromkeys(map(start_url, values))
        if has_fetched:
            raise UsageError(
                f"{state.job} fetches nothing more; `webarc-agent crawl --page {shlex.join(urls)}` fetches these"
            )
        return wanted, " ".join(urls)
    if wanted is OrderWord.WAIT:
        host, seconds = _host(values[0]), _seconds(values[1])
        if has_fetched:
            raise UsageError(
                f"{state.job} fetches nothing more; for the next crawl of {state.publication}, "
                f'set host = "{host}" and wait = {seconds:g} in a [[publication.server]]'
            )
        return wanted, f"{host} {seconds:g}"
    if wanted is OrderWord.RESUME and state.held == job_folder.Hold.DEADLINE:
        raise UsageError(f"its time is over: give it more by `deadline`, or `stop` or `discard` {state.job}")
    return wanted, ""


def state_of(folder: Path) -> JobState:
    """Return the item of an open job."""
    return job_folder.load_item(folder) or JobState(job=folder.name, publication=publication_of(folder.name))


def give(folder: Path, word: str, values: tuple[str, ...], by: str, reason: str = "") -> Order:
    """Give an order to a job; it is on the disk on return. Raises UsageError, NotFound if the job ended, OSError."""
    wanted, value = judged(state_of(folder), word, values)
    return job_orders.give(folder, wanted, value, by=by, reason=reason_of(reason))


def matching_hosts(folder: Path, word: str, values: tuple[str, ...]) -> list[str] | None:
    """Return the hosts of an open job that an order is about, before it is given: then they may be hosts no more.

    None for an order about no host, and where nobody knows.
    """
    if word not in (OrderWord.EXCLUDE, OrderWord.WAIT) or not values:
        return None
    pattern = values[0].lower()
    with suppress(WebarcError, OSError), job_folder.looked_at(folder) as frontier:
        return sorted(host.domain for host in frontier.hosts_now() if scope.matches_host((pattern,), host.domain))
    return None


def what_became(folder: Path, order: Order) -> Iterator[str]:
    """Yield what a job that took an order to add URLs made of each, where it can be seen."""
    if order.word is not OrderWord.ADD:
        return
    with suppress(WebarcError, OSError), job_folder.looked_at(folder) as frontier:
        until = time.monotonic() + _SECONDS_TO_ADD
        for url in order.value.split():
            while (is_new := url in (frontier.get(ADDED) or ())) and time.monotonic() < until:
                time.sleep(0.05)
            row = None if is_new else frontier.by_url(url)  # one that failed before waits once more from then on
            if row is None:
                yield f"{url}: is taken in as soon as the job can"
            elif row.state == UrlState.REFUSED:
                yield f"{url}: is not asked for, {tables.sentence_of(row.note.partition(',')[0]) or row.note}"
            else:
                yield f"{url}: {'waits' if row.state == UrlState.WAITING else f'was asked for, status {row.status}'}"


def hosts_now(archive: Archive, folder: Path) -> list[dict[str, Any]]:
    """Return the hosts that an open job asks: the URLs that wait, the next time, the last word. Raises WebarcError.

    The next time is empty for a host that is asked now, and for one of which nothing waits.
    """
    asked = job_folder.load(folder)
    with job_folder.looked_at(folder) as frontier:
        hosts, waits = frontier.hosts_now(), frontier.get(WAITS) or {}
    rows = []
    for host in hosts:
        wait = 0.0 if asked is None else scope.wait_of(asked.publication, waits, host.domain)
        at = None if host.ready is None else max(host.ready, time.time() + _pause(archive, host.domain, wait))
        is_now = host.fetching or at is None or at <= time.time()
        rows.append(
            {
                "host": host.domain,
                "waiting": host.waiting,
                "fetching": host.fetching,
                "next": "" if is_now or at is None else format_time(from_epoch(math.ceil(at))),
                "last": host.word,
                "wait": wait,
            }
        )
    return rows


def _pause(archive: Archive, domain: str, wait: float) -> float:
    """Return the seconds until any job may send its next request to a server."""
    try:
        lock = os.open(archive.server_lock(domain), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0.0
    try:
        return server_locks.seconds_to_wait(lock, wait)
    finally:
        os.close(lock)


def reason_of(text: str, longest: int = LONGEST_REASON) -> str:
    """Return a reason as one line. Raises UsageError for a long one, or one with control characters."""
    line = " ".join(text.split())
    if len(line) > longest:
        raise UsageError(f"a reason has {longest} characters at most; this one has {len(line)}")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in line):
        raise UsageError("a reason is a line of text, without control characters")
    return line


def is_taken(folder: Path, order: Order, seconds: float) -> str:
    """Wait until a job has taken an order; return what to say of it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        state = job_folder.load_item(folder)
        if state is None and not folder.is_dir():
            return "and it has ended"
        if state is not None and state.orders >= order.number:
            return f"taken ({state.held})" if state.held else "taken"
        time.sleep(0.05)
    return "given; it is taken as soon as the job can"


def _time(text: str) -> datetime:
    """Return the time that a person means. Raises UsageError for none, or one in the past."""
    try:
        at = now() + timedelta(seconds=Interval.parse(text).seconds)
    except ValueError:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            raise UsageError(f"{text!r} is neither a time, as 2026-12-01T22:00:00, nor a span, as '2 hours'") from None
    at = (at if at.tzinfo is not None else at.replace(tzinfo=CET)).astimezone(CET)
    if at <= now():
        raise UsageError(f"{format_time(at)} is over already; `stop` ends it now")
    return at


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_PAUSE:
        raise UsageError(f"{text!r} is no number of seconds from 0 to {LONGEST_PAUSE:g}")
    return seconds


def _host(text: str) -> str:
    try:
        pattern = validators.url_pattern(text)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if "/" in pattern:
        raise UsageError(f"{text!r} has a path; an order leaves out whole hosts")
    return pattern.lower()
