"""The outcome of a URL that was not answered well: waiting for its next try, or failed. Pure.

Retries belong to the frontier: an outcome that may be better next time leaves the URL waiting until `not_before`. Times
are in seconds since 1970. How often and when is decided by `agent.policy.politeness`.
"""

from __future__ import annotations

from dataclasses import replace

from agent.frontier.store import FrontierUrl, UrlOutcome
from agent.policy.fetchstatus import Status
from agent.policy.politeness import BUSY, NextTry, asks_for_pause, next_try
from agent.policy.vocabulary import UrlState


def again(row: FrontierUrl) -> UrlOutcome:
    """Not attempted, or interrupted: put back without counting a try."""
    return UrlOutcome(id=row.id, state=UrlState.WAITING, status=0, tried=0)


def failed(row: FrontierUrl, status: int, note: str, now: float) -> UrlOutcome:
    """A failure: to be tried again, or the last of its tries. What was too big or too slow is not tried again."""
    outcome = UrlOutcome(id=row.id, state=UrlState.FAILED, status=int(status), note=note)
    if status in (Status.QUOTA, Status.TIME_LIMIT):
        return outcome
    return _later(outcome, next_try(0, row.tries, "", now))


def passing(row: FrontierUrl, outcome: UrlOutcome, value: str, now: float) -> UrlOutcome:
    """An answer that may be better later; `value` is its field Retry-After."""
    following = next_try(outcome.status, row.tries, value, now)
    return _later(replace(outcome, note=BUSY) if following.busy else outcome, following)


def paused(row: FrontierUrl, status: int, value: str, now: float) -> UrlOutcome | None:
    """The outcome of a URL whose server asked for a pause, as far as the log tells it; None where it did not ask."""
    if not asks_for_pause(status, value, now):
        return None
    return passing(row, UrlOutcome(id=row.id, state=UrlState.FAILED, status=status), value, now)


def _later(outcome: UrlOutcome, following: NextTry) -> UrlOutcome:
    if following.at is None:
        return replace(outcome, state=UrlState.FAILED)
    return replace(outcome, state=UrlState.WAITING, not_before=following.at)
