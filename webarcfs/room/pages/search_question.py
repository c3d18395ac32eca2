"""What a request asks of the full-text index: its parameters as a question, with times as people type them.

`/search` and `/curve` have the same names for what narrows a search.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from webarcfs.archive.model.errors import BadCondition, Damaged, NotFound
from webarcfs.archive.model.metadata import CommitTag, from_epoch, parse_moment
from webarcfs.room.visit import Visit
from webarcfs.search.query_language import AskedRole, parse_span

if TYPE_CHECKING:
    from webarcfs.search.searching import Searcher, SearchQuestion

#: Longest search, in characters.
LONGEST = 2_000
#: What narrows a search to a part of all versions, whatever states it is of.
NARROWING = ("site", "type", "language", "role", "publication", "errors")
#: What says of which states of the archive a search is: at most one of them holds.
STATES = ("during", "at", "present", "past", "record")


# -- times as people type them, pure ----------------------------------------------------------------------------------


_DAY_FIRST = re.compile(r"(?:(\d{1,2})\. ?)?(\d{1,2})[./] ?(\d{4})", re.ASCII)
_BETWEEN = re.compile(
    r"\s*(?:\.{2,}|[\u2010-\u2015\u2026])\s*|\s+(?:to|until|bis)\s+|(?<=\d{4})\s*-\s*(?=\d{4}\s*$)",
    re.IGNORECASE | re.ASCII,
)


def time_in(text: str) -> str:
    """Return a year, a month or a day as searches have it: `2024-03` for `3/2024`, `2024-03-31` for `31.3.2024`."""
    match = _DAY_FIRST.fullmatch(text.strip())
    if match is None:
        return text.strip()
    day, month, year = match.groups()
    return f"{year}-{int(month):02}" + (f"-{int(day):02}" if day else "")


def span_in(text: str) -> str:
    """Return a span of time as searches have it: `2019..2021` for `2019-2021`, `2019 – 2021` or `2019 to 2021`."""
    return "..".join(map(time_in, _BETWEEN.split(text.strip(), maxsplit=1)))


# -- questions ---------------------------------------------------------------------------------------------------------


def searcher_of(visit: Visit) -> Searcher:
    """Return what searches. Raises NotFound where the archive has no full-text index."""
    if not visit.services.has_search:
        raise NotFound("this archive has no full-text index, so nothing can be searched")
    return visit.services.searcher()


def narrowed(visit: Visit) -> SearchQuestion:
    """Return a question without words that is narrowed as a request says, by `NARROWING`. It means all versions."""
    from webarcfs.search.searching import SearchQuestion  # noqa: PLC0415 # of the extra `search`

    role = visit.parameter("role")
    return SearchQuestion(
        words="",
        site=visit.parameter("site"),
        type=visit.parameter("type"),
        language=visit.parameter("language"),
        publication=visit.parameter("publication"),
        role=role if role in set(AskedRole) else "",
        error_pages=visit.parameter("errors") == "1",
    )


def question_of(visit: Visit) -> SearchQuestion:
    """Return the question of a request. A time takes the place of the present, and a state that of a record.

    Raises BadCondition, NotFound.
    """
    from webarcfs.search.searching import HitOrder  # noqa: PLC0415 # of the extra `search`

    sort = visit.parameter("sort")
    at, during = _at(visit.parameter("at")), span_in(visit.parameter("during"))
    record_id, is_of_present = visit.parameter("record"), visit.parameter("present") == "1"
    return replace(
        narrowed(visit),
        words=visit.parameter("q")[:LONGEST],
        at=at,
        record=record_id if at is None else "",
        past=visit.parameter("past") == "1" and at is None and not is_of_present,
        present=is_of_present and at is None and not during and not record_id,
        during=during,
        after=time_in(visit.parameter("after")),
        before=time_in(visit.parameter("before")),
        collection=visit.parameter("collection"),
        sort=HitOrder(sort) if sort in set(HitOrder) else HitOrder.RELEVANCE,
    )


def _at(text: str) -> CommitTag | datetime | None:
    """Return the snapshot or the time that a text means: the end of a year, a month or a day."""
    if not text:
        return None
    try:
        return parse_moment(text)
    except Damaged:
        pass
    try:
        return from_epoch(parse_span(time_in(text))[1] - 1)
    except BadCondition:
        raise BadCondition(f"{text!r} is no time and no snapshot") from None
