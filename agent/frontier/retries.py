"""The outcome of a URL without a usable response: waiting for its next try, or failed. Pure.

The frontier does the retries: after an outcome that may improve, the URL waits until `not_before`. Times are in seconds
since 1970. `agent.policy.politeness` decides how often and when.
"""

from __future__ import annotations

from dataclasses import replace

from agent.frontier.rows import FrontierUrl, UrlOutcome
from agent.policy.fetchstatus import Status
from agent.policy.politeness import BUSY, NextTry, asks_for_pause, next_try
from agent.policy.vocabulary import UrlState


def again(row: FrontierUrl) -> UrlOutcome:
    """Return the outcome of a URL that was not attempted, or interrupted: it waits, and no try is counted."""
    return UrlOutcome(id=row.id, state=UrlState.WAITING, status=0, tried=0)


def failed(row: FrontierUrl, status: int, note: str, now: float) -> UrlOutcome:
    """Return the outcome of a failure: waiting, or failed after the last try. Too big or too slow is always failed."""
    outcome = UrlOutcome(id=row.id, state=UrlState.FAILED, status=int(status), note=note)
    if status in (Status.QUOTA, Status.TIME_LIMIT, Status.TYPE):
        return outcome
    return _later(outcome, next_try(0, row.tries, "", now))


def passing(row: FrontierUrl, outcome: UrlOutcome, value: str, now: float) -> UrlOutcome:
    """Return the outcome of a response with a temporary error; `value` is its field Retry-After."""
    following = next_try(outcome.status, row.tries, value, now)
    return _later(replace(outcome, note=BUSY) if following.busy else outcome, following)


def paused(row: FrontierUrl, status: int, value: str, now: float) -> UrlOutcome | None:
    """Return the outcome of a URL if its response, known from the log, asks for a pause; else None."""
    if not asks_for_pause(status, value, now):
        return None
    return passing(row, UrlOutcome(id=row.id, state=UrlState.FAILED, status=status), value, now)


def _later(outcome: UrlOutcome, following: NextTry) -> UrlOutcome:
    if following.at is None:
        return replace(outcome, state=UrlState.FAILED)
    return replace(outcome, state=UrlState.WAITING, not_before=following.at)
