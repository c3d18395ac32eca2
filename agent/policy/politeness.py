"""Decides what follows when a server says "not now" (RFC 6585 section 4, RFC 9110 section 10.2.3). Pure.

All that is decided of such an answer is here; four modules do it:

1. `capture/wgetlog.py` reads status and Retry-After from the log while wget runs (`asks_for_pause`, `pause`).
2. `capture/wgetpool.py` stops that wget for the pause, or ends it (`is_held`), and writes the pause into the server's
   lock file, so that no job asks the server before it is over (`capture/serverlocks.py`).
3. `frontier/retries.py` makes the URL's outcome: waiting until its next try, or failed (`next_try`).
4. `capture/disposition.py` counts such answers of a server in a row, and gives it up (`is_given_up`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from agent.policy.vocabulary import Reason

#: No pause is longer, whatever a server asks for: an hour, in seconds.
LONGEST_PAUSE = 3600.0
#: A wget is stopped for pauses of so many seconds, and keeps its place and buffers; for a longer one it is ended.
LONGEST_HOLD = 60.0
#: How often in a row a server, or one of its pages, may ask for a pause before it is given up.
PATIENCE = 6
#: How often a URL is tried before it has failed, and how often in a row a server may not be reached.
TRIES = 3
#: What crawl.log says of an answer that asked for a pause, and of the URLs of a server that was given up for it.
BUSY = Reason.BUSY
SERVER_BUSY = Reason.SERVER_BUSY


def retry_after(value: str, now: float) -> float | None:
    """Seconds that a Retry-After field asks to wait, 0 to LONGEST_PAUSE; None where it says nothing.

    `value` is a number of seconds or an HTTP date; `now` counts in seconds since 1970.
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
    """Whether an answer asks to leave the whole server alone: 429 does; 503 only if it says how long.

    A 503 without a word on that is mostly one broken page.
    """
    return status == 429 or (status == 503 and retry_after(value, now) is not None)


def pause(value: str, in_a_row: int, wait: float, now: float) -> float:
    """Seconds to leave a server alone that asked for it: what it says, else longer with each time in a row.

    `in_a_row` is how often it asked before this, `wait` the crawl's own pause between two requests.
    """
    asked = retry_after(value, now)
    backing_off = max(wait, 1.0) * 2.0 ** min(in_a_row, 12)
    return min(max(asked if asked is not None else backing_off, wait), LONGEST_PAUSE)


def is_held(seconds: float, in_a_row: int) -> bool:
    """Whether a wget is stopped for a pause of its server, and goes on then; else it is ended."""
    return seconds <= LONGEST_HOLD and in_a_row < PATIENCE


def is_given_up(in_a_row: int) -> bool:
    """Whether a server is not asked any more, which did nothing but ask for pauses that often."""
    return in_a_row >= PATIENCE


@dataclass(frozen=True, slots=True)
class NextTry:
    """When a URL is tried again, in seconds since 1970, None for never; `busy` if its server asked for a pause."""

    at: float | None
    busy: bool = False


def next_try(status: int, tries: int, value: str, now: float) -> NextTry:
    """When a URL whose answer may be better later is tried again: after the backoff or Retry-After, whichever is later.

    It was tried `tries` times before; `value` is the field Retry-After. Up to PATIENCE times if the server asked for a
    pause, else TRIES times.
    """
    busy = asks_for_pause(status, value, now)
    is_last = tries + 1 >= (PATIENCE if busy else TRIES)
    return NextTry(None if is_last else now + max(delay(tries), retry_after(value, now) or 0.0), busy)


def delay(tries: int) -> float:
    """Seconds until the next try of a URL that was tried so often before: 1, 2, 4, …"""
    return 2.0**tries if tries < 16 else 65536.0
