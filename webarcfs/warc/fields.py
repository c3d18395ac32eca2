"""Fields of WARC records: dates and digests in one form, so that they can be compared."""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from webarcfs.archive.model.metadata import CET, now

_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?"
    r"(?:Z|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>[0-5]\d))?)?)?)?"
    r"|(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)",
    re.ASCII,
)
# ClueWeb09 has the day of the year where that of the month belongs: 2009-03-84T12:35:08-0700.
_DAY_OF_YEAR = re.compile(r"(\d{4}-(\d\d))-(3[2-9]|[4-9]\d|\d{3})(?=T)", re.ASCII)
_FRACTION = re.compile(r"T\d\d:\d\d:\d\d\.(\d{1,9})", re.ASCII | re.IGNORECASE)
_LEAP_SECOND = re.compile(r"(T\d\d:\d\d):60", re.ASCII)
_OLDEST = datetime(1990, 1, 1, tzinfo=CET)  # the web is no older
_CLOCK_SKEW = timedelta(days=1)
#: Writers' algorithms, and the size of their digests in bytes.
_DIGESTS = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}
_HEX = re.compile(r"[0-9a-fA-F]{40}")


def parse_date(text: str) -> datetime | None:
    """Return a WARC-Date (1.0; 1.1 with fractions of a second, or without smaller parts), to the second, in CET.

    Also in the forms that other writers gave it: with an offset, a leap second, or a day of the year. None for an
    invalid one, one before the web, or one in the future.
    """
    text, leap = _LEAP_SECOND.subn(r"\1:59", _DAY_OF_YEAR.sub(_with_day_of_month, text.strip().upper()))
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    sign, hours, minutes = match["sign"], int(match["hours"] or 0), int(match["minutes"] or 0)
    east = timedelta(hours=hours, minutes=minutes) * (-1 if sign == "-" else 1)
    parts = [int(part) for part in (*match.groups()[:6], *match.groups()[9:]) if part is not None]
    try:
        found = datetime(*(parts + [1, 1][: max(3 - len(parts), 0)]), tzinfo=UTC)  # type: ignore[arg-type,misc]
        found = (found - east + timedelta(seconds=leap)).astimezone(CET)
    except (ValueError, OverflowError):
        return None
    return found if _OLDEST <= found <= now() + _CLOCK_SKEW else None


def nanoseconds_of(text: str) -> int:
    """Return the fraction of a second that a WARC-Date has, in nanoseconds; 0 without one."""
    match = _FRACTION.search(text)
    return int(match[1].ljust(9, "0")) if match else 0


def _with_day_of_month(match: re.Match[str]) -> str:
    """Return the date of a day of the year; as it is, and invalid, if that day is not of its month."""
    try:
        day = datetime(int(match[1][:4]), 1, 1, tzinfo=UTC) + timedelta(days=int(match[3]) - 1)
    except (ValueError, OverflowError):
        return match[0]
    return f"{day:%Y-%m-%d}" if f"{day:%Y-%m}" == match[1] else match[0]


def digest_key(text: str) -> str:
    """Return a digest in the form for comparisons: `sha1:` and base32; empty without one."""
    algorithm, _, value = text.strip().partition(":")
    algorithm = algorithm.lower().replace("-", "")
    if not value:
        return ""
    if algorithm == "sha1" and _HEX.fullmatch(value):
        value = base32(bytes.fromhex(value))
    return f"{algorithm}:{value.upper() if algorithm == 'sha1' else value}"


@dataclass(frozen=True, slots=True)
class Digest:
    """A declared digest of a known algorithm: its name in hashlib, and its bytes."""

    algorithm: str
    value: bytes


def declared_digest(text: str) -> Digest | None:
    """Return a digest from base32 or hex, both common in WARC files; None if it cannot be compared."""
    algorithm, _, value = text.strip().partition(":")
    algorithm = algorithm.lower().replace("-", "")
    size = _DIGESTS.get(algorithm)
    if size is None:
        return None
    with suppress(ValueError):
        if len(value) == 2 * size:
            return Digest(algorithm, bytes.fromhex(value))
        value = value.rstrip("=").upper()
        found = base64.b32decode(value + "=" * (-len(value) % 8))
        return Digest(algorithm, found) if len(found) == size else None
    return None


def capture_key(url: str, seconds: int) -> str:
    """Return the key of one capture."""
    return f"{url} {seconds}"


def base32(digest: bytes) -> str:
    """Return a digest in the form of WARC files and crawl.log."""
    return base64.b32encode(digest).decode("ascii")
