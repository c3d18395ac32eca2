"""Guards against spider traps: sites that never end, by accident or on purpose. Pure.

Each guard has a bound in `[crawl]` (0: no bound) and a word that follows `trap:` in crawl.log. Real sites stay far
below the bounds. If a site exceeds one, the word names it, and the publication can raise it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from urllib.parse import unquote

from agent.policy.vocabulary import Reason

#: Longer URLs are refused whatever the settings: RFC 9110 section 4.1 asks servers to support 8,000 octets.
LONGEST_URL = 8192
#: Nor may a path have more segments: each is a folder inside another, and the archive is read folder by folder.
MOST_SEGMENTS = 200

LENGTH = Reason.URL_LENGTH
PATH_DEPTH = Reason.PATH_DEPTH
REPEATS = Reason.REPEATS
PARAMETERS = Reason.PARAMETERS
QUERIES = Reason.QUERIES
CALENDAR = Reason.CALENDAR
HOSTS = Reason.HOSTS
REDIRECTS = Reason.REDIRECTS

# Years 2000 to 2199: an earlier date is not in a calendar's future, and other four-digit numbers are mostly not years.
_YEAR = r"(2[01]\d\d)"
_MONTH = r"(?:0?[1-9]|1[0-2])"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        # /2031/05/, /2031/05/17.html
        rf"/{_YEAR}/{_MONTH}(?:/{_DAY})?(?=[/?.]|$)",
        # 2031-05, 2031-05-17 as a segment or value of their own
        rf"(?<![^/?&;=_]){_YEAR}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?(?![\d-])",
        # ?year=2031&month=5, in any order; ?date=20310517. Names are bounded, so that a hostile query costs little.
        rf"[?&;][\w.\[-]{{0,30}}(?:year|jahr|yr)\]?={_YEAR}(?!\d)",
        rf"[?&;][\w.\[-]{{0,30}}(?:date|datum|day|month|week|cal)[\w.\]-]{{0,30}}={_YEAR}"
        r"(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])?(?!\d)",
    )
)
_ANY_YEAR = re.compile("2[01][0-9][0-9]")
_SEPARATOR = re.compile("[&;]")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a URL; 0 is no bound. All but the last are settings of `[crawl]` with the same names.

    `latest_year` is the last year to which a calendar is followed: the year of the crawl plus `max_years_ahead`.
    """

    max_path_depth: int = 32
    max_repeats: int = 5
    max_parameters: int = 32
    latest_year: int = 0


def why(url: str, bounds: Bounds) -> str | None:
    """Return the word for the trap that a canonical URL resembles; None if it resembles none."""
    path, mark, query = url.partition("?")
    slashes = path.count("/") - 2
    if too_much := _beyond(url, slashes):
        return too_much
    if bounds.max_path_depth and slashes > bounds.max_path_depth:
        return PATH_DEPTH
    if bounds.max_repeats and slashes > bounds.max_repeats and repeats(path) > bounds.max_repeats:
        return REPEATS
    if mark and _explodes(query, bounds):
        return PARAMETERS
    if bounds.latest_year and _ANY_YEAR.search(url) and (latest_year_in(url) or 0) > bounds.latest_year:
        return CALENDAR
    return None


def beyond_all(url: str) -> str | None:
    """Return the word for the fixed limit that a canonical URL exceeds, whatever the settings; else None."""
    return _beyond(url, url.partition("?")[0].count("/") - 2)


def _beyond(url: str, slashes: int) -> str | None:
    if len(url) > LONGEST_URL:
        return LENGTH
    return PATH_DEPTH if slashes > MOST_SEGMENTS else None


def repeats(path: str) -> int:
    """Return the count of the most frequent segment in a URL without its query (`/a/b/a/b/a/b/`: 3)."""
    return max(Counter(path.split("/")[3:]).values(), default=0)


def latest_year_in(url: str) -> int | None:
    """Return the latest year of the calendar dates in a URL; None without a date.

    A date is a year with a month, or a parameter whose name denotes a date. A number alone is none.
    """
    rest = unquote(url.partition("://")[2].partition("/")[2])
    years = [int(year) for pattern in _DATES for year in pattern.findall(f"/{rest}")]
    return max(years, default=None)


def _explodes(query: str, bounds: Bounds) -> bool:
    """Return whether a query has too many parameters, or too many repetitions of one parameter with its value."""
    parameters = _SEPARATOR.split(query)
    if bounds.max_parameters and len(parameters) > bounds.max_parameters:
        return True
    if not bounds.max_repeats or len(parameters) <= bounds.max_repeats:
        return False
    return max(Counter(parameters).values()) > bounds.max_repeats
