"""When a job that failed is tried again, and what it says of its failure. Pure.

What stood in its way may pass: a full disk is freed, memory is free again, a git lets go of a lock. So it is tried
again soon, then with growing pauses, and in any case when its publication is due. One that kills its process each time
may harm more than itself, so it is given up until then. The count is in the item: it survives a restart.
"""

from __future__ import annotations

import dataclasses
import errno
from datetime import datetime, timedelta

from agent.jobfolder.jobstate import JobState, Phase
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import format_time, parse_time

#: Pauses after the first, second, … failure in a row; the last one after all others.
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (10, 60, 5 * 60, 30 * 60, 60 * 60))
#: After so many failures in a row, one whose process was killed waits until its publication is due.
MOST_WITH_KILLS = 10


def pause(failures: int) -> timedelta:
    """How long to wait after so many failures in a row."""
    return PAUSES[min(max(failures, 1), len(PAUSES)) - 1]


def failed(known: JobState, reason: str, at: datetime, *, killed: bool) -> JobState:
    """A job whose process has ended at `at` with a failure, with when it is tried again."""
    failures = known.failures + 1
    given_up = killed and failures >= MOST_WITH_KILLS
    again = "" if given_up else format_time(at + pause(failures))
    stamp = format_time(at)
    return dataclasses.replace(
        known, state=Phase.FAILED, reason=reason, updated=stamp, failures=failures, again=again, pid=0, ticks=0
    )


def is_due(known: JobState, at: datetime) -> bool:
    """Whether a job that failed is to be tried again by now; a clock that was set back costs it one pause at most."""
    if known.state is not Phase.FAILED or not known.again:
        return False
    try:
        again = parse_time(known.again)
    except Damaged:
        return True
    return again <= at or again > at + PAUSES[-1]


def reason_of(error: BaseException, where: object = None) -> str:
    """What an item says of an error: what it is, of which file (else of `where`), and what to do."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = error.filename or where
        return f"the disk is full: {error.strerror}{f': {place}' if place else ''}; make room, it goes on by itself"
    return f"{type(error).__name__}: {error}"
