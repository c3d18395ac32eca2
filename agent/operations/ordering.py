"""Orders to open jobs, as a person gives them: judged, written, and waited for until they are taken."""

from __future__ import annotations

import time
import unicodedata
from datetime import datetime, timedelta
from pathlib import Path

from agent.crawl import job_orders, job_state
from agent.crawl.job_folder import is_import, publication_of
from agent.crawl.job_orders import Order, OrderWord
from agent.crawl.job_state import JobState
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import NotFound, UsageError
from webarcfs.archive.model.metadata import CET, format_time, now

#: Most characters of the reason of an order.
LONGEST_REASON = 500


def find(archive: Archive, name: str) -> Path:
    """Return the folder of an open job, by its name or its publication. Raises NotFound, which says what there is."""
    folders = sorted(path for path in archive.jobs.iterdir() if not path.name.startswith((".", "step-")))
    matching_folders = [path for path in folders if name in (path.name, publication_of(path.name))]
    if matching_folders:
        return matching_folders[-1]
    if "/" not in name and (archive.reports / name).is_dir():
        raise job_orders.ended(name)
    names = ", ".join(path.name for path in folders) or "none"
    raise NotFound(f"there is no open job {name}; there are: {names}")


def words_for(state: JobState) -> tuple[OrderWord, ...]:
    """Return the orders that make sense for a job as it is now; the same for commands and forms."""
    if is_import(state.job):
        return ()
    if state.state is job_state.Phase.CONVERTING:
        return (OrderWord.DISCARD,)
    if state.held == job_state.Hold.DEADLINE:
        return (OrderWord.STOP, OrderWord.DISCARD, OrderWord.DEADLINE, OrderWord.EXCLUDE)
    return (
        OrderWord.RESUME if state.held else OrderWord.PAUSE,
        OrderWord.STOP,
        OrderWord.DISCARD,
        OrderWord.DEADLINE,
        OrderWord.EXCLUDE,
    )


def judged(state: JobState, word: str, values: tuple[str, ...]) -> tuple[OrderWord, str]:
    """Return the order that a person means, and its value. Raises UsageError for one that makes no sense."""
    if word not in set(OrderWord):
        raise UsageError(f"{word} is no order; there are: {', '.join(OrderWord)}")
    wanted = OrderWord(word)
    most = 1 if wanted in (OrderWord.DEADLINE, OrderWord.EXCLUDE) else 0
    if len(values) != most:
        missing = {OrderWord.DEADLINE: "a time", OrderWord.EXCLUDE: "a host"}.get(wanted, "nothing")
        raise UsageError(f"{word} wants {missing} behind it")
    if is_import(state.job):
        raise UsageError(f"{state.job} is an import, which takes no orders; the same command resumes it")
    if wanted is OrderWord.DEADLINE:
        return wanted, format_time(_time(values[0]))
    if wanted is OrderWord.EXCLUDE:
        return wanted, _host(values[0])
    if wanted is OrderWord.RESUME and state.held == job_state.Hold.DEADLINE:
        raise UsageError(f"its time is over: give it more by `deadline`, or `stop` or `discard` {state.job}")
    return wanted, ""


def state_of(folder: Path) -> JobState:
    """Return the item of an open job."""
    return job_state.load(folder) or JobState(job=folder.name, publication=publication_of(folder.name))


def give(folder: Path, word: str, values: tuple[str, ...], by: str, reason: str = "") -> Order:
    """Give an order to a job; it is on the disk on return. Raises UsageError, NotFound if the job ended, OSError."""
    wanted, value = judged(state_of(folder), word, values)
    return job_orders.give(folder, wanted, value, by=by, reason=reason_of(reason))


def reason_of(text: str) -> str:
    """Return the reason of an order as one line. Raises UsageError for a long one, or one with control characters."""
    line = " ".join(text.split())
    if len(line) > LONGEST_REASON:
        raise UsageError(f"a reason has {LONGEST_REASON} characters at most; this one has {len(line)}")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in line):
        raise UsageError("a reason is a line of text, without control characters")
    return line


def is_taken(folder: Path, order: Order, seconds: float) -> str:
    """Wait until a job has taken an order; return what to say of it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        state = job_state.load(folder)
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


def _host(text: str) -> str:
    try:
        pattern = validators.url_pattern(text)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if "/" in pattern:
        raise UsageError(f"{text!r} has a path; an order leaves out whole hosts")
    return pattern.lower()
