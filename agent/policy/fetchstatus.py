"""The outcome of a fetch as one number: the HTTP status above zero, Heritrix's fetch status codes below. Pure.

It is the second column of crawl.log. Seed 3's code (figures 3.8 and 4.3 there) is in the annotations.
"""

from __future__ import annotations

from enum import IntEnum

from agent.policy.vocabulary import Reason, Result
from webarcfs.archive.model import redirects

#: HTTP statuses whose body is a document.
WHOLE = frozenset({200, 203})
#: HTTP status of an answer to a request for a range, which may be that of the whole.
PARTIAL_CONTENT = 206
#: HTTP status of a conditional request whose document did not change (RFC 9110 section 15.4.5).
NOT_MODIFIED = 304
#: HTTP statuses by which a server says that a document is gone.
GONE = frozenset({404, 410})
#: HTTP statuses of temporary errors.
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


def is_error_page(status: int) -> bool:
    """Whether an answer says for good that there is no such page (`keep_errors` archives its body).

    The answers of PASSING, and all of a server's own trouble, may be another next time: they never replace a page.
    """
    return 400 <= status < 500 and status not in PASSING


def redirect_of(url: str, location: str) -> tuple[str, str]:
    """Return the target of a redirect from `url` by its header Location, and why it is not kept (empty: it is)."""
    target = redirects.target_of(url, location)
    if not target:
        return "", Reason.BAD_LOCATION
    return target, Reason.REDIRECT_TOO_LONG if redirects.is_too_long(url) or redirects.is_too_long(target) else ""


class Status(IntEnum):
    """The outcome of a URL without an HTTP response, or whose response is not kept (Heritrix's glossary)."""

    WAITING = 0
    DNS = -1
    CONNECT_FAILED = -2
    CONNECTION_LOST = -3
    TIMEOUT = -4
    RUNTIME = -5
    ILLEGAL_URL = -7
    ROBOTS_UNREACHABLE = -61
    INVALID_RESPONSE = -404
    TRAP = -4000
    TOO_MANY_HOPS = -4001
    OUT_OF_SCOPE = -5000
    LEFT_OUT = -5001
    TYPE = -5002
    QUOTA = -5003
    TIME_LIMIT = -5004
    CUT = -6000
    ROBOTS = -9998


#: Outcome → Tarântula's state of a document. Tarântula has no state for depth and traps: they have the state of URLs
#: outside the publication's bounds.
_SEED3: dict[int, int] = {
    Status.INVALID_RESPONSE: -1,
    Status.TYPE: -3,
    Status.QUOTA: -4,
    Status.OUT_OF_SCOPE: -5,
    Status.TOO_MANY_HOPS: -5,
    Status.TRAP: -5,
    Status.ILLEGAL_URL: -5,
    Status.LEFT_OUT: -5,
    Status.WAITING: -6,
    Status.CUT: -6,
    Status.ROBOTS: -7,
    Status.ROBOTS_UNREACHABLE: -7,
    Status.TIMEOUT: -10,
    Status.TIME_LIMIT: -10,
    Status.DNS: -11,
    Status.CONNECT_FAILED: -11,
    Status.CONNECTION_LOST: -11,
    Status.RUNTIME: -11,
}

#: Tarântula's word for "something in the system failed".
SYSTEM_ERROR = -11


#: Filters that judge by the type of a document alone: Tarântula's state for these is -3.
_BY_TYPE = frozenset(f"{Reason.FILTER}{name}" for name in ("profile", "types", "mime"))


def seed3_state(status: int, notes: str, result: str) -> int:
    """Return seed 3's code for a URL: a document that came, and is of a type that is not kept, has that of its type."""
    if result == Result.FILTERED and not _BY_TYPE.isdisjoint(notes.split(",")):
        return _SEED3[Status.TYPE]
    return seed3_code(status)


def seed3_code(status: int) -> int:
    """Return seed 3's code for an outcome: the HTTP status if above zero; a system error for unknown outcomes."""
    return status if status > 0 else _SEED3.get(status, SYSTEM_ERROR)
