"""Groups captures into crawls: by name where their source has one, else by pauses in time. Pure.

The groups follow from names and times alone: the order of the files does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter


@dataclass(frozen=True, slots=True)
class CrawlSpan:
    """A crawl: the captures with this name from the time `first` to the time `last`, in seconds."""

    name: str
    first: int
    last: int
    captures: int


def group_by_pauses(times: Iterable[tuple[str, int, int]], pause: int) -> list[CrawlSpan]:
    """Return the crawls in order of time; `times` are name, time and number of captures, sorted by name and time.

    Captures with a name are one crawl. Among those without one, a crawl ends where `pause` seconds have no capture.
    """
    spans: list[CrawlSpan] = []
    for name, rows in groupby(times, key=itemgetter(0)):
        spans += _spans(name, rows, 0 if name else pause)
    return sorted(spans, key=lambda span: (span.first, span.last, span.name))


def _spans(name: str, rows: Iterable[tuple[str, int, int]], pause: int) -> list[CrawlSpan]:
    """Return the crawls of one name; without a `pause` all is one."""
    spans: list[CrawlSpan] = []
    first = last = captures = 0
    for _, time, count in rows:
        if captures and pause and time - last >= pause:
            spans.append(CrawlSpan(name, first, last, captures))
            captures = 0
        first = first if captures else time
        last = time
        captures += count
    return [*spans, CrawlSpan(name, first, last, captures)]
