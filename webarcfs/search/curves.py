"""Curves: in which share of what was captured words stand, year by year or month by month.

The share of a period is the number of distinct versions with the words that were captured in it, of all distinct
versions that were captured in it. Captured is what a crawl stored or met unchanged. All numbers are of what the asker
may see. Where few versions were captured, a share says little: such periods are marked.

Each number is one question to the index. So words, periods and time are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from webarcfs.archive.model.errors import BadCondition, TooMany
from webarcfs.archive.model.metadata import CET, from_epoch
from webarcfs.archive.system import clocks
from webarcfs.search.query_language import parse_search

if TYPE_CHECKING:
    from webarcfs.search.searching import Searcher, SearchQuestion  # of the extra `search`

# == periods, pure ====================================================================================================


#: Most expressions of one answer, and most periods.
MOST_CURVES, MOST_PERIODS = 8, 240
#: Fewer versions than these make a period one of few.
FEW = 20
_PERIOD = re.compile(r"([0-9]{4})(?:-([0-9]{1,2}))?", re.ASCII)


class PeriodLength(StrEnum):
    """How long each period is."""

    YEAR = "year"
    MONTH = "month"


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """A year, or with a `month` (1 to 12) a month of it. Its days begin at midnight in CET."""

    year: int
    month: int = 0

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}" if self.month else f"{self.year:04}"

    @classmethod
    def parse(cls, text: str) -> Period:
        """Return the period that a text names, `2024` or `2024-03`. Raises BadCondition for any other text."""
        match = _PERIOD.fullmatch(text.strip())
        year, month = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
        if match is None or not year or (match[2] and not 1 <= month <= 12):
            raise BadCondition(f"{text!r} is no year and no month; give it as 2024 or 2024-03")
        return cls(year, month)

    @classmethod
    def of(cls, seconds: int, by: PeriodLength) -> Period:
        """Return the period of a time, in seconds since 1970."""
        time = from_epoch(seconds)
        return cls(time.year, time.month if by is PeriodLength.MONTH else 0)

    @property
    def begin(self) -> datetime:
        """Its first moment."""
        return datetime(self.year, self.month or 1, 1, tzinfo=CET)

    def following(self) -> Period:
        """Return the period behind it."""
        if not self.month:
            return Period(self.year + 1)
        return Period(self.year + self.month // 12, self.month % 12 + 1)

    def first(self, by: PeriodLength) -> Period:
        """Return the first period of a length in this one, or the one that has this one."""
        return Period(self.year, (self.month or 1) if by is PeriodLength.MONTH else 0)

    def last(self, by: PeriodLength) -> Period:
        """Return the last period of a length in this one, or the one that has this one."""
        return Period(self.year, (self.month or 12) if by is PeriodLength.MONTH else 0)


def periods(first: Period, last: Period) -> list[Period]:
    """Return the periods from one to another of the same length. Raises BadCondition, TooMany."""
    if last < first:
        raise BadCondition(f"{last} is before {first}")
    begin, end = _number(first), _number(last)
    if end - begin >= MOST_PERIODS:
        what = "months" if first.month else "years"
        raise TooMany(
            f"{end - begin + 1:,} {what} from {first} to {last}; a curve has {MOST_PERIODS} at most: narrow the time"
        )
    if not first.month:
        return [Period(year) for year in range(begin, end + 1)]
    return [Period(number // 12, number % 12 + 1) for number in range(begin, end + 1)]


def _number(period: Period) -> int:
    return period.year * 12 + period.month - 1 if period.month else period.year


# == curves, pure =====================================================================================================


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What was captured in a period: distinct versions in all, and those that each expression finds."""

    period: Period
    captured: int
    versions: tuple[int, ...]

    @property
    def is_few(self) -> bool:
        """Whether so few versions were captured that their shares say little."""
        return self.captured < FEW

    def share(self, at: int) -> float | None:
        """Return the share that an expression has, from 0 to 1; None where nothing was captured."""
        return self.versions[at] / self.captured if self.captured else None


@dataclass(frozen=True, slots=True)
class Curves:
    """The curves of some expressions. `missing` are snapshots of the archive that are not in the index yet."""

    words: tuple[str, ...]
    by: PeriodLength
    points: tuple[CurvePoint, ...]
    missing: int = 0

    @property
    def most(self) -> float:
        """The largest share of all; 0 without one."""
        shares = (point.share(at) for point in self.points for at in range(len(self.words)))
        return max((share for share in shares if share is not None), default=0.0)

    @property
    def has_few(self) -> bool:
        """Whether a period has few versions."""
        return any(point.is_few for point in self.points)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each period and expression, as files have them."""
        for point in self.points:
            for at, words in enumerate(self.words):
                share = point.share(at)
                yield {
                    "period": str(point.period),
                    "words": words,
                    "versions": point.versions[at],
                    "captured": point.captured,
                    "share": None if share is None else round(share, 6),
                    "few": point.is_few,
                }


#: The columns of a file.
COLUMNS = ("period", "words", "versions", "captured", "share", "few")


def decimals(share: float) -> int:
    """Return how many decimals of a share in per cent are worth showing: three digits, whatever its size."""
    return 1 if share >= 0.1 else 2 if share >= 0.01 or not share else 3


def in_per_cent(share: float, places: int) -> str:
    """Return a share as text, with so many decimals: `12.5 %`."""
    return f"{100 * share:.{places}f} %"


# == counting =========================================================================================================


def count_curves(
    searcher: Searcher,
    words: Sequence[str],
    question: SearchQuestion,
    by: PeriodLength = PeriodLength.YEAR,
    between: tuple[Period | None, Period | None] = (None, None),
) -> Curves:
    """Return the curves of expressions of the language of searches.

    `question` has what narrows them all; its own words are not asked. Without limits `between`, the periods are those
    from the first snapshot that the asker may see to the last one, and on as long as its crawl captured anything.

    Raises BadCondition for a faulty expression and for one that names a time itself, TooMany for too many expressions
    or periods, TookTooLong at the thread's deadline.
    """
    if not words:
        raise BadCondition("a curve is of a word; give some")
    if len(words) > MOST_CURVES:
        raise TooMany(f"{len(words)} curves; {MOST_CURVES} at most are drawn together")
    for expression in words:
        parse_search(expression)  # so that a fault is marked at its place in what was typed
    asked = _asked_periods(searcher, question, by, between)
    points = [_count(searcher, words, question, period) for period in asked]
    if between[1] is None and points:  # a crawl has the name of its begin, and may end in another period
        while (later := _count(searcher, words, question, points[-1].period.following())).captured:
            periods(points[0].period, later.period)  # no more than are possible
            points.append(later)
    return Curves(tuple(words), by, tuple(points), searcher.count_missing())


def _count(searcher: Searcher, words: Sequence[str], question: SearchQuestion, period: Period) -> CurvePoint:
    clocks.check()
    captured = searcher.count_versions(replace(question, words=f"during:{period}", during=""))
    versions = []
    for expression in words:
        clocks.check()
        found = searcher.count_versions(replace(question, words=expression, during=str(period))) if captured else 0
        versions.append(found)
    return CurvePoint(period, captured, tuple(versions))


def _asked_periods(
    searcher: Searcher, question: SearchQuestion, by: PeriodLength, between: tuple[Period | None, Period | None]
) -> list[Period]:
    first, last = between
    if first is not None and last is not None:
        return periods(first.first(by), last.last(by))
    span = searcher.time_span(question.domain)
    if span is None:
        return []
    begin = Period.of(span[0], by) if first is None else first.first(by)
    end = Period.of(span[1], by) if last is None else last.last(by)
    return periods(begin, end) if begin <= end else []
