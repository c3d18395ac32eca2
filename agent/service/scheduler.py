"""Computes which publications are due. Pure (/Cr-1.2/, /Cr-3/).

A publication with a start date is due on that date and at each interval counted from it: a monthly publication that
starts on the 31st is due on the last day of shorter months and on the 31st again. A publication without a start date is
due at once, then one interval after its last run began. Missed runs are made up by one run. The archive's CET has no
summer time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from webarcfs.archive.config.interval import Interval
from webarcfs.archive.config.settings import Publication

#: A run further in the future was named by a wrong clock, and is ignored.
AHEAD = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, order=True)
class Due:
    """A publication's run, and since when it is due."""

    since: datetime
    publication: str


def due(publications: Iterable[Publication], runs: Mapping[str, Iterable[datetime]], now: datetime) -> list[Due]:
    """Return the due publications, longest due first. `runs`: publication → starts of its runs, finished or not."""
    times = (Due(next_due(each, runs.get(each.name, ()), now), each.name) for each in publications)
    return sorted(each for each in times if each.since <= now)


def next_due(publication: Publication, runs: Iterable[datetime], now: datetime) -> datetime:
    """Return when a publication is due next; if it is due already, not later than `now`."""
    last = max((run for run in runs if run <= now + AHEAD), default=None)
    start, interval = publication.start, publication.crawl.interval
    if last is None or (start is not None and last < start):
        return now if start is None else start
    return interval.after(last) if start is None else _first_after(start, interval, last)


def _first_after(start: datetime, interval: Interval, last: datetime) -> datetime:
    """Return the first of the times start, start + interval, … that is later than `last` (not before `start`)."""
    if interval.unit != "month":
        step = timedelta(seconds=interval.seconds)
        return start + ((last - start) // step + 1) * step
    here = last.astimezone(start.tzinfo)
    months = (here.year - start.year) * 12 + here.month - start.month
    number = max(1, months // interval.count)
    while (time := Interval(number * interval.count, "month").after(start)) <= last:
        number += 1
    return time
