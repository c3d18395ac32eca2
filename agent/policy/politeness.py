"""How long a server that says "not now" is left alone (RFC 6585 section 4, RFC 9110 section 10.2.3). Pure."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

#: No pause is longer, whatever a server asks for: an hour, in seconds.
LONGEST_PAUSE = 3600.0
#: How often in a row a server, or one of its pages, may ask for a pause before it is given up.
PATIENCE = 6
#: What crawl.log says of an answer that asked for a pause, and of the URLs of a server that was given up for it.
BUSY = "busy"
SERVER_BUSY = "server-busy"


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
