"""What a search is asked and answers, as values: they need none of the libraries that search."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from webarcfs.archive.model.metadata import CommitTag


class HitOrder(StrEnum):
    """An order of hits."""

    RELEVANCE = "relevance"
    DATE = "date"  # newest first
    OLDEST = "oldest"
    URL = "url"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuestion:
    """A search, and what narrows it. `words` is in the language of query_language.py.

    Of the states of the archive it means all of them; with `present` the present alone; with `at` that of a snapshot,
    or of all domains at a time; with `record` the snapshots of a record. `past` leaves out URLs that have a hit at
    present. `during`, a span of time, means what was
    captured in it; `site`, `after` and `before` are further conditions: all four are as in the language, where they may
    stand instead. Texts that are empty narrow nothing. Without a `role`, and without one in the words, it means pages.
    """

    words: str
    at: CommitTag | datetime | None = None
    record: str = ""
    present: bool = False
    past: bool = False
    during: str = ""
    site: str = ""
    after: str = ""
    before: str = ""
    domain: str = ""
    publication: str = ""
    collection: str = ""
    type: str = ""
    language: str = ""
    role: str = ""
    error_pages: bool = False
    exact: bool = False
    sort: HitOrder = HitOrder.RELEVANCE
    limit: int = 20
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a text on one line, and the places (begin, end) of the words that were found in it."""

    text: str = ""
    marks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A URL that was found: its best version, as it is in the snapshot `commitTag`.

    `since` and `until` are the first and the last snapshot that have it so, `first` and `last` those that have anything
    at its URL. `wordsFrom` and `wordsTo` are those that have it with the words: `versions` versions of the `ofVersions`
    that lie between. Times are CET. The names are those of the output.
    """

    url: str
    path: str
    commitTag: str  # noqa: N815 # as in other outputs
    title: str
    mimeType: str  # noqa: N815
    language: str
    size: int
    status: int
    publication: str
    role: str
    since: str
    until: str
    first: str
    last: str
    wordsFrom: str  # noqa: N815
    wordsTo: str  # noqa: N815
    versions: int
    ofVersions: int  # noqa: N815
    snippet: Snippet = field(default_factory=Snippet)

    def place_of(self) -> tuple[str, str]:
        """Return the snapshot and the path at which a mount has it."""
        return self.commitTag, self.path


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """A page of hits, the number of all URLs, and spellings that would find more where nothing was found.

    `is_exact`: the numbers are; else some per cent more or less. `in_present` are the URLs that have a hit at present;
    None where one state was asked for. `missing` are snapshots of the archive that are not in the index yet.
    """

    total: int
    hits: tuple[Hit, ...]
    suggestion: str = ""
    missing: int = 0
    is_exact: bool = True
    in_present: int | None = None


@dataclass(frozen=True, slots=True)
class SnapshotHits:
    """The number of hits in a snapshot, and the first of them."""

    commitTag: str  # noqa: N815
    total: int
    hits: tuple[Hit, ...] = ()
