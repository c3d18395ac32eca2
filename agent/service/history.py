"""The past runs of jobs, read from the folder names in jobs/ and reports/: the scheduler stores nothing else.

A job's name begins with its start time. For a job in jobs/ the last attempt counts as well, so a failure does not make
its publication due earlier; `agent.jobfolder.attempts` decides when it is tried again.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent.jobfolder import jobstate
from agent.jobfolder.jobstate import JobState
from agent.service.scheduler import AHEAD
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import compact_time, now, parse_compact_time, parse_time

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


class Past:
    """Reads the history repeatedly. The reports are listed again only if their folder has changed."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._stamp = 0
        self._reported = _Reported({}, {})

    def read(self, *, surely: bool = False) -> History:
        """Return the current history. `surely` lists reports/ again: its mtime misses changes within a clock tick."""
        stamp = self._archive.reports.stat().st_mtime_ns
        if surely or stamp != self._stamp:
            self._stamp, self._reported = stamp, _reported(self._archive)
        return _with_jobs(self._archive, self._reported)


def read(archive: Archive) -> History:
    """Return the current history of the two folders. Folders without a job's name are ignored."""
    return _with_jobs(archive, _reported(archive))


@dataclass(frozen=True, slots=True)
class _Reported:
    """The history without the open jobs. It is kept, since the desk asks for it several times a page."""

    runs: dict[str, frozenset[datetime]]
    last: dict[str, str]


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
    latest = compact_time(now() + AHEAD)
    for entry in os.scandir(archive.reports):
        match = _NAME.fullmatch(entry.name)
        if match is None or match[1] > latest or (match[2] in last and entry.name <= last[match[2]][1]):
            continue
        with contextlib.suppress(Damaged):
            last[match[2]] = (parse_compact_time(match[1]), entry.name)
    return last


def _with_jobs(archive: Archive, reported: _Reported) -> History:
    runs = dict(reported.runs)
    found, refused = [], []
    for name, begun, publication in _jobs(archive.jobs):
        runs[publication] = runs.get(publication, frozenset()) | {begun}
        try:
            known = jobstate.load(archive.jobs / name)
        except Damaged as error:
            refused.append(str(error))
            continue
        if known is None and (archive.reports / name).is_dir():
            continue  # the job is done, and its folder is being removed
        found.append(known or JobState(job=name, publication=publication))
        with contextlib.suppress(Damaged):
            runs[publication] |= {parse_time(found[-1].attempted)}
    return History(runs, reported.last, tuple(sorted(found, key=lambda each: each.job)), tuple(sorted(refused)))


def item_of(folder: Path, publication: str) -> JobState:
    """Return the item of a job; without an item, the state is waiting. Raises Damaged if it is of another version."""
    return jobstate.load(folder) or JobState(job=folder.name, publication=publication)


def _jobs(folder: Path) -> Iterator[tuple[str, datetime, str]]:
    """Yield (name, start, publication) of the folders that are named like jobs."""
    for entry in os.scandir(folder):
        match = _NAME.fullmatch(entry.name)
        if match is not None:
            with contextlib.suppress(Damaged):
                yield entry.name, parse_compact_time(match[1]), match[2]
