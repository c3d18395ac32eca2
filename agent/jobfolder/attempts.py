"""Decides when a failed job is tried again, and formats the reason of its failure. Pure.

A failure may be temporary: a full disk, lack of memory, a lock held by git. So the job is tried again soon, then after
growing pauses, and in any case when its publication is due. A job whose process is killed each time may harm the
machine; after MOST_WITH_KILLS failures it waits until its publication is due. The item stores the count: it survives a
restart.
"""

from __future__ import annotations

import dataclasses
import errno
from datetime import datetime, timedelta

from agent.jobfolder.jobstate import JobState, Phase
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import format_time, parse_time

#: Pauses after the first, second, … failure in a row; the last one after all further failures.
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (10, 60, 5 * 60, 30 * 60, 60 * 60))
#: Failures in a row after which a job whose process was killed waits until its publication is due.
MOST_WITH_KILLS = 10


def pause(failures: int) -> timedelta:
    """Return the pause after so many failures in a row."""
    return PAUSES[min(max(failures, 1), len(PAUSES)) - 1]


def failed(known: JobState, reason: str, at: datetime, *, killed: bool) -> JobState:
    """Return the item of a job whose process failed at `at`, with the time of its next try."""
    failures = known.failures + 1
    given_up = killed and failures >= MOST_WITH_KILLS
    again = "" if given_up else format_time(at + pause(failures))
    stamp = format_time(at)
    return dataclasses.replace(
        known, state=Phase.FAILED, reason=reason, updated=stamp, failures=failures, again=again, pid=0, ticks=0
    )


def is_due(known: JobState, at: datetime) -> bool:
    """Return whether a failed job is to be tried again now; a clock that was set back delays it at most one pause."""
    if known.state is not Phase.FAILED or not known.again:
        return False
    try:
        again = parse_time(known.again)
    except Damaged:
        return True
    return again <= at or again > at + PAUSES[-1]


def reason_of(error: BaseException, where: object = None) -> str:
    """Return the reason that an item gives for an error: the error, its file (else `where`), and the remedy."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = error.filename or where
        return f"the disk is full: {error.strerror}{f': {place}' if place else ''}; make room, it goes on by itself"
    return f"{type(error).__name__}: {error}"
