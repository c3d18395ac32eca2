"""Guards against spider traps: sites, made by accident or on purpose, that never end. Pure.

Each guard has a bound in `[crawl]` (0: no bound) and a word that crawl.log has behind `trap:`. The bounds are far from
what real sites do; where one does more, its publication raises the bound, and the word says which.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from urllib.parse import unquote

from agent.policy.vocabulary import Reason

#: Longer URLs are refused whatever the settings say: no server need take them (RFC 9110 section 4.1 asks for 8,000).
LONGEST_URL = 8192
#: Nor does any path go deeper: an archive keeps each segment as a folder in another, and is read folder by folder.
MOST_SEGMENTS = 200

LENGTH = Reason.URL_LENGTH
PATH_DEPTH = Reason.PATH_DEPTH
REPEATS = Reason.REPEATS
PARAMETERS = Reason.PARAMETERS
QUERIES = Reason.QUERIES
CALENDAR = Reason.CALENDAR
HOSTS = Reason.HOSTS
REDIRECTS = Reason.REDIRECTS

# Years from 2000 on: an earlier date is no calendar's future, and other numbers of four digits are mostly no years.
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
    """How far a URL may go; 0 is no bound. All but the last are settings of `[crawl]`, by the same names.

    `latest_year` is the last one to which a calendar is followed: `max_years_ahead` after that of the crawl.
    """

    max_path_depth: int = 32
    max_repeats: int = 5
    max_parameters: int = 32
    latest_year: int = 0


def why(url: str, bounds: Bounds) -> str | None:
    """The word for the trap that a canonical URL looks like; None where it looks like none."""
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
    """The word for what makes a canonical URL more than any archive takes, whatever the settings say."""
    return _beyond(url, url.partition("?")[0].count("/") - 2)


def _beyond(url: str, slashes: int) -> str | None:
    if len(url) > LONGEST_URL:
        return LENGTH
    return PATH_DEPTH if slashes > MOST_SEGMENTS else None


def repeats(path: str) -> int:
    """How often the segment occurs that occurs most in a URL without its query (`/a/b/a/b/a/b/`: 3)."""
    return max(Counter(path.split("/")[3:]).values(), default=0)


def latest_year_in(url: str) -> int | None:
    """The latest year of the dates in a URL, as calendars write them; None where there is none.

    A date is a year with a month, or a parameter that says that it is one: a number alone is none.
    """
    rest = unquote(url.partition("://")[2].partition("/")[2])
    years = [int(year) for pattern in _DATES for year in pattern.findall(f"/{rest}")]
    return max(years, default=None)


def _explodes(query: str, bounds: Bounds) -> bool:
    """Whether a query has too many parameters, or one of them, value and all, again and again."""
    parameters = _SEPARATOR.split(query)
    if bounds.max_parameters and len(parameters) > bounds.max_parameters:
        return True
    if not bounds.max_repeats or len(parameters) <= bounds.max_repeats:
        return False
    return max(Counter(parameters).values()) > bounds.max_repeats
