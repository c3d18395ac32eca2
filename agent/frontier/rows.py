"""The URLs of a frontier as its methods take and return them: a known URL, a found one, the outcome of an attempt.

The columns are explained in sql/frontier/schema.sql.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from agent.policy.vocabulary import UrlState


@dataclass(frozen=True, slots=True)
class FrontierUrl:
    """A URL of the frontier; the columns are explained in sql/frontier/schema.sql."""

    id: int
    url: str
    domain: str
    kind: str
    depth: int
    hops: str
    found_on: int | None
    state: str
    tries: int
    not_before: float
    status: int
    note: str
    batch: int
    position: int
    size: int
    mime: str
    digest: str
    captured: str
    arc: str
    target: str
    expanded: int
    nested: int
    links: int
    inner: int
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundUrl:
    """A found URL: its page, its kind, and whether the scope accepts it (state `waiting`) or why not."""

    url: str
    domain: str
    kind: str
    depth: int
    hops: str
    found_on: int | None = None
    state: str = UrlState.WAITING
    status: int = 0
    note: str = ""
    inner: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlOutcome:
    """The outcome of an attempt at a URL. `tried` is 0 if the attempt does not count."""

    id: int
    state: str
    status: int
    tried: int = 1
    not_before: float = 0.0
    note: str = ""
    position: int = 0
    size: int = 0
    mime: str = ""
    digest: str = ""
    captured: str = ""
    arc: str = ""
    target: str = ""
    links: int = -1


class Meeting(NamedTuple):
    """An answer that said what the archive had: of a URL at a place. A duplicate is not the one that was compared."""

    arc: str
    url: str
    captured: str
    status: int
    is_duplicate: int
