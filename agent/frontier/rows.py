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


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCapture:
    """A capture of a foreign file; the columns are explained in sql/imports/schema.sql.

    One without a `domain` is a record that is not taken; `note` says why.
    """

    source: int
    ordinal: int
    name: str
    url: str
    domain: str = ""
    time: int
    fraction: int = 0
    state: str
    status: int = 0
    note: str = ""
    batch: int = 0
    position: int = 0
    size: int = 0
    mime: str = ""
    digest: str = ""
    arc: str = ""
    target: str = ""
    content: str = ""
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class StoredCapture:
    """A capture in the order of time; `id` is its position in that order."""

    id: int
    source: int
    name: str
    url: str
    domain: str
    time: int
    state: str
    status: int
    note: str
    batch: int
    position: int
    size: int
    mime: str
    digest: str
    arc: str
    target: str
    content: str
    head: bytes
    crawl: int
    cut: int
    result: str


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A body in a WARC of the job, with what its capture said of it."""

    batch: int
    position: int
    size: int
    status: int
    mime: str
    content: str


@dataclass(frozen=True, slots=True)
class StoredCrawl:
    """A crawl of an import: its number, the name of its captures, its first and its last time; whether it is done."""

    number: int
    name: str
    first: int
    last: int
    done: int


@dataclass(frozen=True, slots=True)
class StoredCut:
    """A snapshot of a host in a crawl of an import; `outcome` is JSON, empty until it is published."""

    crawl: int
    domain: str
    number: int
    begin: int
    time: int
    is_last: int
    outcome: str


@dataclass(frozen=True, slots=True)
class PlannedHost:
    """What an import would publish of a host in a crawl."""

    crawl: int
    domain: str
    captures: int
    bytes: int
    cuts: int


@dataclass(frozen=True, slots=True)
class UntakenCount:
    """How many captures with a status and a word are in no snapshot, and the first of their URLs."""

    status: int
    note: str
    number: int
    first: str
