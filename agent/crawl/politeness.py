"""Decides on retries and pauses after 429, 503 and other errors (RFC 6585 section 4, RFC 9110 section 10.2.3). Pure.

How long, how often and when a server is given up are decided here; which statuses pass, in `vocabulary.py`. Others
apply it:

1. `crawl/wget.py` has wget write the heads of responses into its log, if there is a wait between requests.
2. `crawl/wget.py` reads status and Retry-After from the log while wget runs (`asks_for_pause`, `pause`). It counts
   single responses in a row (`in_a_row`); the count is kept in the server's lock file, for all jobs.
3. `crawl/wgetpool.py` stops that wget for the pause, or ends it (`is_held`), and writes the pause into the server's
   lock file, so that no job sends a request before it is over.
4. `crawl/wget.py` gives the URL the outcome that is decided here: waiting until its next try, or failed (`next_try`).
   sql/frontier/settle.sql counts the tries.
5. `crawl/disposition.py` counts whole batches in a row (`in_a_row`), for its own run, and gives a server up
   (`is_given_up`).

Without a wait between requests, the log has no heads, so 2 and 3 see nothing: wget is neither stopped nor ended, and no
pause is recorded. The URL that was refused still waits (4), and the server is given up (5).

A URL without a usable response waits for its next try, or has failed. The frontier does the retries: after an outcome
that may improve, the URL waits until `not_before`. Times are in seconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime

from agent.crawl.frontier import FrontierUrl, UrlOutcome
from agent.crawl.vocabulary import Reason, Status, UrlState

# == politeness, pure =================================================================================================


#: The longest pause in seconds, whatever a server asks for: an hour.
LONGEST_PAUSE = 3600.0
#: For pauses of up to this many seconds, wget is stopped and keeps its slot and buffers; for longer ones it is ended.
LONGEST_HOLD = 60.0
#: Requests for a pause in a row after which a server, or a page, is given up.
PATIENCE = 6
#: Tries after which a URL has failed, and attempts in a row after which an unreachable server is given up.
TRIES = 3
#: Annotations in crawl.log: of a response that asked for a pause, and of the URLs of a server given up for pauses.
BUSY = Reason.BUSY
SERVER_BUSY = Reason.SERVER_BUSY


def retry_after(value: str, now: float) -> float | None:
    """Return the seconds that a Retry-After field asks to wait, 0 to LONGEST_PAUSE; None if it is not valid.

    `value` is a number of seconds or an HTTP date; `now` is in seconds since 1970.
    """
    text = value.strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:10]), LONGEST_PAUSE)
    try:
        moment = parsedate_to_datetime(text)
        seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_PAUSE)


def asks_for_pause(status: int, value: str, now: float) -> bool:
    """Return whether a response asks for a pause of the whole server: 429 always, 503 only with Retry-After.

    A 503 without Retry-After is mostly one broken page.
    """
    return status == 429 or (status == 503 and retry_after(value, now) is not None)


def pause(value: str, in_a_row: int, wait: float, now: float) -> float:
    """Return the length of a requested pause in seconds: Retry-After, else doubled with each request in a row.

    `in_a_row` is the number of requests for a pause before this one, `wait` the crawl's pause between two requests.
    """
    asked = retry_after(value, now)
    backing_off = max(wait, 1.0) * 2.0 ** min(in_a_row, 12)
    return min(max(asked if asked is not None else backing_off, wait), LONGEST_PAUSE)


def in_a_row(before: int, asking: int, responses: int = 1, *, failing: int = 0) -> int:
    """Return how many requests for a pause a server has made in a row, after more `responses`; `before` is the count.

    `asking` of the responses ask for a pause, `failing` ones have another status of 500 or above. If all ask, they are
    added; if all fail, the count stays; otherwise it restarts. `wget.py` judges response by response and distinguishes
    failing ones. `disposition.py` judges a batch as a whole and does not distinguish them: they restart the count.
    """
    if asking == responses:
        return before + asking
    return before if failing == responses else 0


def is_held(seconds: float, in_a_row: int) -> bool:
    """Return whether wget is stopped during the pause and continues after it; otherwise it is ended."""
    return seconds <= LONGEST_HOLD and in_a_row < PATIENCE


def is_given_up(in_a_row: int) -> bool:
    """Return whether a server is given up after so many requests for a pause in a row."""
    return in_a_row >= PATIENCE


@dataclass(frozen=True, slots=True)
class NextTry:
    """The time of a URL's next try, in seconds since 1970, None for never; `busy` if its server asked for a pause."""

    at: float | None
    busy: bool = False


def next_try(status: int, tries: int, value: str, now: float) -> NextTry:
    """Return the next try of a URL after a temporary error: after the backoff or Retry-After, whichever is later.

    `tries` is the number of tries before this one; `value` is the field Retry-After. A URL is tried up to PATIENCE
    times if the server asked for a pause, else TRIES times.
    """
    busy = asks_for_pause(status, value, now)
    is_last = tries + 1 >= (PATIENCE if busy else TRIES)
    return NextTry(None if is_last else now + max(delay(tries), retry_after(value, now) or 0.0), busy)


def delay(tries: int) -> float:
    """Return the seconds until the next try after `tries` earlier tries: 1, 2, 4, …"""
    return 2.0**tries if tries < 16 else 65536.0


# == retries, pure ====================================================================================================


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
