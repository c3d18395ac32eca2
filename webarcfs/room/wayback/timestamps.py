"""The times of the Wayback Machine: digits, `YYYYMMDDhhmmss` in UTC, and spans that fewer digits name. Pure.

Impossible times are clamped part by part, as the Wayback Machine does: month 13 is December, 30 February its last day.
"""

from __future__ import annotations

import calendar
from datetime import UTC, datetime
from functools import lru_cache

#: Smallest and largest second that 14 digits can name.
FIRST_SECOND = int(datetime(1, 1, 1, tzinfo=UTC).timestamp())
LAST_SECOND = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


@lru_cache(4096)  # the captures of a crawl share theirs
def digits_of(seconds: int) -> str:
    """Return the 14 digits of a time (seconds since 1970, UTC), years 1 to 9999; other times are clamped."""
    time = datetime.fromtimestamp(min(max(seconds, FIRST_SECOND), LAST_SECOND), UTC)
    return f"{time.year:04}{time:%m%d%H%M%S}"


def seconds_of(digits: str) -> int:
    """Return the time (seconds since 1970, UTC) of 14 digits that name one. Raises ValueError for other digits."""
    if len(digits) != 14 or not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"{digits!r} are not the 14 digits of a time")
    parts = [int(digits[:4]), *(int(digits[at : at + 2]) for at in range(4, 14, 2))]
    year, month, day, hour, minute, second = parts
    return calendar.timegm(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timetuple())


def span_begin(digits: str) -> str:
    """Return the 14 digits of the first second of the span that one to 14 digits name, clamped."""
    return _clamped(digits.ljust(14, "0"))


def span_end(digits: str) -> str:
    """Return the 14 digits of the last second of the span that one to 14 digits name, clamped."""
    return _clamped(digits.ljust(14, "9"))


def _clamped(digits: str) -> str:
    year = max(int(digits[:4]), 1)
    month = min(max(int(digits[4:6]), 1), 12)
    day = min(max(int(digits[6:8]), 1), calendar.monthrange(year, month)[1])
    hour, minute, second = min(int(digits[8:10]), 23), min(int(digits[10:12]), 59), min(int(digits[12:]), 59)
    return f"{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}"
