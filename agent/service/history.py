"""Which job ran when, by the names of the folders in jobs/ and reports/: the scheduler needs no other memory.

A job's name begins with the time of its start. Of a job that waits in jobs/ the last attempt counts, so a failure makes
its publication due no sooner; `agent.jobfolder.attempts` says when it is tried again.
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

#: Publication → when its newest report's job began, and that job.
Last = dict[str, tuple[datetime, str]]
_NAME = re.compile(r"(\d{8}T\d{6})-(.+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class History:
    """`runs`: publication → when its runs began; `last`: publication → its newest report; `open`: jobs in jobs/."""

    runs: dict[str, set[datetime]]
    last: dict[str, str]
    open: tuple[JobState, ...]
    refused: tuple[str, ...] = ()


class Past:
    """Reads the history again and again. Reports of years are listed only when one has come."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._stamp = 0
        self._last: Last = {}

    def read(self, *, surely: bool = False) -> History:
        """The history as it is now. `surely` reads the folders again: their times miss changes within a clock tick."""
        stamp = self._archive.reports.stat().st_mtime_ns
        if surely or stamp != self._stamp:
            self._stamp, self._last = stamp, _last_reports(self._archive)
        return _with_jobs(self._archive, self._last)


def read(archive: Archive) -> History:
    """The history as the two folders have it now. Folders that are no job's, or of another version, are passed over."""
    return _with_jobs(archive, _last_reports(archive))


def _last_reports(archive: Archive) -> Last:
    """The newest report of each publication. Names are compared as they are, so that a million of them cost little.

    One that a wrong clock named after a time to come is passed over: it would hide all that ran since, for years.
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


def _with_jobs(archive: Archive, last: Last) -> History:
    runs = {publication: {begun} for publication, (begun, _) in last.items()}
    found, refused = [], []
    for name, begun, publication in _jobs(archive.jobs):
        runs.setdefault(publication, set()).add(begun)
        try:
            known = jobstate.load(archive.jobs / name)
        except Damaged as error:
            refused.append(str(error))
            continue
        if known is None and (archive.reports / name).is_dir():
            continue  # it is done, and its folder just going
        found.append(known or JobState(job=name, publication=publication))
        with contextlib.suppress(Damaged):
            runs[publication].add(parse_time(found[-1].attempted))
    names = {publication: name for publication, (_, name) in last.items()}
    return History(runs, names, tuple(sorted(found, key=lambda each: each.job)), tuple(sorted(refused)))


def item_of(folder: Path, publication: str) -> JobState:
    """The item of a job; one that was killed before it had one waits. Raises Damaged for one of another version."""
    return jobstate.load(folder) or JobState(job=folder.name, publication=publication)


def _jobs(folder: Path) -> Iterator[tuple[str, datetime, str]]:
    """(Name, when it began, publication) of the folders that are named like jobs."""
    for entry in os.scandir(folder):
        match = _NAME.fullmatch(entry.name)
        if match is not None:
            with contextlib.suppress(Damaged):
                yield entry.name, parse_compact_time(match[1]), match[2]
