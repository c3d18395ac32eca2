"""Computes which publications are due.

A publication with a start date is due on that date and at each interval counted from it: a monthly publication that
starts on the 31st is due on the last day of shorter months and on the 31st again. A crawl that a person begins while a
new publication waits for its start is its first one: none follows it at the start.

A publication without a start date is due at once, then one interval after its last run began. Missed runs are made up
by one run. The archive's CET has no summer time.

The past runs of jobs are read from the folder names in jobs/ and reports/; the scheduler stores nothing. A job's name
begins with its start time. For a job in jobs/ the last attempt counts as well, so a failure does not make its
publication due earlier; `agent.crawl.job_folder` decides when it is tried again.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from agent.crawl import job_folder
from agent.crawl.job_folder import JobState
from webarcfs.archive.catalogue.record import OCCASION
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import compact_time, now, parse_compact_time, parse_time

# == scheduler, pure ==================================================================================================


#: A run further in the future was named by a wrong clock, and is ignored.
AHEAD = timedelta(minutes=1)
#: A run this long before the start of a publication is its first one: so long a new one waits at most by itself.
EARLY = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, order=True)
class Due:
    """A publication's run, and since when it is due."""

    since: datetime
    publication: str


def due(publications: Iterable[Publication], runs: Mapping[str, Iterable[datetime]], at: datetime) -> list[Due]:
    """Return the due publications, longest due first. `runs`: publication → starts of its runs, finished or not."""
    times = (
        Due(next_due(publication, runs.get(publication.name, ()), at), publication.name) for publication in publications
    )
    return sorted(candidate for candidate in times if candidate.since <= at)


def next_due(publication: Publication, runs: Iterable[datetime], at: datetime) -> datetime:
    """Return when a publication is due next; if it is due already, not later than `at`."""
    last = max((run for run in runs if run <= at + AHEAD), default=None)
    start, interval = publication.start, publication.crawl.interval
    if last is None or (start is not None and last < start - EARLY):
        return at if start is None else start
    return interval.after(last) if start is None else _first_after(start, interval, max(last, start))


def _first_after(start: datetime, interval: Interval, last: datetime) -> datetime:
    """Return the first of the times start, start + interval, … that is later than `last` (not before `start`)."""
    if not interval.months:
        step = timedelta(seconds=interval.seconds)
        return start + ((last - start) // step + 1) * step
    local = last.astimezone(start.tzinfo)
    months = (local.year - start.year) * 12 + local.month - start.month
    number = max(1, months // interval.months)
    while (time := Interval(number * interval.months, "month").after(start)) <= last:
        number += 1
    return time


# == history ==========================================================================================================


#: Publication → the start of the job of its newest report, and that job's name.
Last = dict[str, tuple[datetime, str]]
_NAME = re.compile(r"(\d{8}T\d{6})-(.+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class History:
    """`runs`: publication → starts of its runs; `last`: publication → its newest report; `open`: jobs in jobs/."""

    runs: dict[str, frozenset[datetime]]
    last: dict[str, str]
    open: tuple[JobState, ...]
    refused: tuple[str, ...] = ()

    def newest(self, publication: str) -> str | None:
        """Return the newest report of a publication, also of a crawl by occasion; None without one."""
        names = (self.last.get(publication), self.last.get(f"{publication}{OCCASION}"))
        return max((name for name in names if name is not None), default=None)


#: Readings of jobs and reports at most, where jobs end all the time.
_READINGS = 5


class Past:
    """Reads the history repeatedly. The reports are listed again only if their folder has changed."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._stamp = 0
        self._reported = _Reported({}, {})

    def read(self, *, surely: bool = False) -> History:
        """Return the current history. `surely` lists reports/ again: its mtime misses changes within a clock tick.

        A job that ends between the two folders would be in neither: then both are read again.
        """
        for _ in range(_READINGS):
            stamp = self._archive.reports.stat().st_mtime_ns
            if surely or stamp != self._stamp:
                self._stamp, self._reported = stamp, _reported(self._archive)
            history = _with_jobs(self._archive, self._reported)
            if self._archive.reports.stat().st_mtime_ns == stamp:
                break
        return history


def read(archive: Archive) -> History:
    """Return the current history of the two folders. Folders without a job's name are ignored."""
    return _with_jobs(archive, _reported(archive))


def open_jobs(archive: Archive) -> tuple[JobState, ...]:
    """Return the jobs in jobs/, without listing the reports."""
    return _with_jobs(archive, _Reported({}, {})).open


@dataclass(frozen=True, slots=True)
class _Reported:
    """The history without the open jobs. It is kept, since the desk asks for it several times a page."""

    runs: dict[str, frozenset[datetime]]
    last: dict[str, str]


def split_name(name: str) -> tuple[str, str] | None:
    """Return the time and the publication of a job's name; None for another name."""
    match = _NAME.fullmatch(name)
    return None if match is None else (match[1], match[2])


def latest_name(at: datetime) -> str:
    """Return what names of jobs sort before, unless a wrong clock named them with a time after `at`."""
    return f"{compact_time(at + AHEAD)}~"


def _reported(archive: Archive) -> _Reported:
    last = _last_reports(archive)
    return _Reported(
        {publication: frozenset((begun,)) for publication, (begun, _) in last.items()},
        {publication: name for publication, (_, name) in last.items()},
    )


def _last_reports(archive: Archive) -> Last:
    """Return the newest report of each publication. Names are compared as strings: a million of them cost little.

    A report named with a future time, by a wrong clock, is ignored: it would hide all later runs, for years.
    """
    last: Last = {}
    latest = latest_name(now())
    for entry in os.scandir(archive.reports):
        match = _NAME.fullmatch(entry.name)
        if match is None or entry.name > latest or (match[2] in last and entry.name <= last[match[2]][1]):
            continue
        with contextlib.suppress(Damaged):
            last[match[2]] = (parse_compact_time(match[1]), entry.name)
    return last


def _with_jobs(archive: Archive, reported: _Reported) -> History:
    runs = dict(reported.runs)
    states, refused = [], []
    for name, begun, publication in _jobs(archive.jobs):
        runs[publication] = runs.get(publication, frozenset()) | {begun}
        try:
            item = job_folder.load_item(archive.jobs / name)
        except Damaged as error:
            refused.append(str(error))
            continue
        if item is None and (archive.reports / name).is_dir():
            continue  # the job is done, and its folder is being removed
        states.append(item or JobState(job=name, publication=publication))
        with contextlib.suppress(Damaged):
            runs[publication] |= {parse_time(states[-1].attempted)}
    return History(runs, reported.last, tuple(sorted(states, key=lambda state: state.job)), tuple(sorted(refused)))


def item_of(folder: Path, publication: str) -> JobState:
    """Return the item of a job; without an item, the state is waiting. Raises Damaged if it is of another version."""
    return job_folder.load_item(folder) or JobState(job=folder.name, publication=publication)


def _jobs(folder: Path) -> Iterator[tuple[str, datetime, str]]:
    """Yield (name, start, publication) of the folders that are named like jobs."""
    for entry in os.scandir(folder):
        match = _NAME.fullmatch(entry.name)
        if match is not None:
            with contextlib.suppress(Damaged):
                yield entry.name, parse_compact_time(match[1]), match[2]
