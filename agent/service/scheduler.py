"""Which publications are due: values in, values out. Pure (/Cr-1.2/, /Cr-3/).

A publication with a start date is due then and at each interval after it, counted from that date: a monthly one that
begins on the 31st comes on the last day of shorter months and on the 31st again. One without is due at once, and an
interval after its last run began. What was missed is made up once. There is no summer time in the archive's CET.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from webarcfs.archive.config.interval import Interval
from webarcfs.archive.config.settings import Publication

#: A run that lies further in the future was named by a clock that was wrong, and counts as none.
AHEAD = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, order=True)
class Due:
    """A publication's run, and since when it is due."""

    since: datetime
    publication: str


def due(publications: Iterable[Publication], runs: Mapping[str, Iterable[datetime]], now: datetime) -> list[Due]:
    """What is due, longest due first. `runs` says when runs of a publication began, finished ones or not."""
    times = (Due(next_due(each, runs.get(each.name, ()), now), each.name) for each in publications)
    return sorted(each for each in times if each.since <= now)


def next_due(publication: Publication, runs: Iterable[datetime], now: datetime) -> datetime:
    """When a publication is due next; not after `now` where it is due."""
    last = max((run for run in runs if run <= now + AHEAD), default=None)
    start, interval = publication.start, publication.crawl.interval
    if last is None or (start is not None and last < start):
        return now if start is None else start
    return interval.after(last) if start is None else _first_after(start, interval, last)


def _first_after(start: datetime, interval: Interval, last: datetime) -> datetime:
    """The first time of the row start, start + interval, … that is later than `last`, which is not before `start`."""
    if interval.unit != "month":
        step = timedelta(seconds=interval.seconds)
        return start + ((last - start) // step + 1) * step
    here = last.astimezone(start.tzinfo)
    months = (here.year - start.year) * 12 + here.month - start.month
    number = max(1, months // interval.count)
    while (time := Interval(number * interval.count, "month").after(start)) <= last:
        number += 1
    return time
