"""Whether a URL that was not answered well is tried again, and when.

Retries belong to the frontier: an outcome that may be better next time leaves the URL waiting until `not_before`. Times
are in seconds since 1970. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from agent.frontier.store import FrontierUrl, UrlOutcome
from agent.policy.fetchstatus import Status
from agent.policy.politeness import BUSY, PATIENCE, asks_for_pause, retry_after

#: How often a URL is tried before it has failed.
TRIES = 3


def again(row: FrontierUrl) -> UrlOutcome:
    """Nobody came to it, or nobody is to blame: as if it had not been tried."""
    return UrlOutcome(id=row.id, state="waiting", status=0, tried=0)


def failed(row: FrontierUrl, status: int, note: str, now: float) -> UrlOutcome:
    """A failure: to be tried again, or the last of its tries. What was too big or too slow is not tried again."""
    settled = UrlOutcome(id=row.id, state="failed", status=int(status), note=note)
    if status in (Status.QUOTA, Status.TIME_LIMIT):
        return settled
    return _last_or_again(row, settled, now + _delay(row.tries))


def passing(row: FrontierUrl, settled: UrlOutcome, value: str, now: float) -> UrlOutcome:
    """An answer that may be better later; a server that asks for a pause is asked more often, as late as it wishes.

    `value` is what its field Retry-After says.
    """
    later = now + max(_delay(row.tries), retry_after(value, now) or 0.0)
    if asks_for_pause(settled.status, value, now):
        return _last_or_again(row, replace(settled, note=BUSY), later, PATIENCE)
    return _last_or_again(row, settled, later)


def _last_or_again(row: FrontierUrl, settled: UrlOutcome, later: float, tries: int = TRIES) -> UrlOutcome:
    if row.tries + 1 < tries:
        return replace(settled, state="waiting", not_before=later)
    return replace(settled, state="failed")


def _delay(tries: int) -> float:
    """Seconds until the next try: 1, 2, 4, …"""
    return 2.0**tries if tries < 16 else 65536.0
