"""Looks at an archive: what is amiss, by its reports, jobs, records, disk, backup and index, and by the note of damage.

Only files are read, so it is the same whether an agent runs or not. Each report is taken once, in the order of the
jobs' starts: what came and went between two looks is not missed. What cannot be read is logged, and is neither amiss
nor over.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agent.crawl.job_folder import (
    ITEM_FILE,
    JobState,
    Phase,
    is_page,
    is_patch,
    kind_of,
    load,
    load_item,
    publication_of,
)
from agent.indexing import fulltext
from agent.maintenance.backup_mark import MARK
from agent.notifying import conditions
from agent.notifying.conditions import AmissCondition, BackupState, Key, Observation
from agent.notifying.notification_store import SeenCrawl
from agent.service import agent_status, scheduler
from webarcfs.archive.catalogue import catalogue
from webarcfs.archive.catalogue.catalogue import RecordRow, RecordSelection
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import NotificationKind, Publication, Settings
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.archive.model.metadata import from_epoch, parse_time
from webarcfs.archive.repair import damage_note
from webarcfs.archive.system import files

_log = logging.getLogger(__name__)
#: New reports of one publication that are looked at, the newest ones; records that wait.
_MOST_REPORTS, _MOST_RECORDS = 50, 1000
#: Days for which the check of a released crawl is reported, if it is the newest of its publication.
_CHECK_DAYS = 30


@dataclass(frozen=True, slots=True)
class WatchedArchive:
    """An archive at a time, with its settings. `faulty` are publications whose own files have faults."""

    archive: Archive
    settings: Settings
    at: datetime
    faulty: frozenset[str] = frozenset()

    @property
    def publications(self) -> dict[str, Publication]:
        """The publications that are crawled by the schedule."""
        return {publication.name: publication for publication in self.settings.publications if not publication.retired}


@dataclass(slots=True)
class _Findings:
    amiss: list[AmissCondition] = field(default_factory=list)
    passing: list[AmissCondition] = field(default_factory=list)
    unsure: set[Key] = field(default_factory=set)
    unsure_kinds: set[NotificationKind] = field(default_factory=set)


def observe(watched: WatchedArchive, seen: Mapping[str, SeenCrawl]) -> tuple[Observation, dict[str, SeenCrawl]]:
    """Return what is amiss, and the crawls that were looked at by now; `seen` are those of the last time."""
    findings = _Findings()
    crawls = _crawls(watched, seen, findings)
    _records(watched, findings)
    findings.amiss += _archive(watched, _damage(watched, findings))
    for name in watched.faulty:
        findings.unsure |= {(kind, name) for kind in conditions.OF_PUBLICATION}
    observation = Observation(
        at=watched.at,
        amiss=tuple(findings.amiss),
        passing=tuple(findings.passing),
        unsure=frozenset(findings.unsure),
        unsure_kinds=frozenset(findings.unsure_kinds),
        publications=frozenset(watched.publications) | watched.faulty,
    )
    return observation, crawls


# -- the archive -------------------------------------------------------------------------------------------------------


def _damage(watched: WatchedArchive, findings: _Findings) -> datetime | None:
    """Return when something of the archive could not be read; None for never, and where that is not known."""
    try:
        return damage_note.read(watched.archive)
    except (Damaged, OSError) as error:
        _log.info("%s", error)
        findings.unsure_kinds.add(NotificationKind.DAMAGED)
        return None


def _archive(watched: WatchedArchive, damage: datetime | None) -> Iterator[AmissCondition]:
    space = shutil.disk_usage(watched.archive.root)
    agent_runs = agent_status.running(watched.archive) is not None
    notify = watched.settings.notify
    yield from conditions.of_archive(
        free=space.free,
        total=space.total,
        disk_bound=notify.disk_free,
        is_agent_missing=conditions.lacks_agent(watched.settings.publications, agent_runs=agent_runs),
        is_index_behind=_is_index_behind(watched),
        backup=state_of_backup(watched.settings.backup.to, watched.at, notify.backup_age),
        damage=damage,
    )


def _is_index_behind(watched: WatchedArchive) -> bool:
    if not (watched.settings.index.search and fulltext.installed()):
        return False
    has_snapshots = watched.archive.changes.exists() and watched.archive.changes.stat().st_size > 0
    return has_snapshots and fulltext.is_behind(watched.archive)


def state_of_backup(folder: str, at: datetime, age: Interval) -> BackupState:
    """Return how the backup in a folder is; good where none is wanted. One that cannot be read is old."""
    if not folder:
        return BackupState.GOOD
    try:
        mark = files.read_json(Path(folder) / MARK)
    except (Damaged, OSError):
        return BackupState.OLD
    return conditions.backup_state(mark, at, age)


# -- crawls ------------------------------------------------------------------------------------------------------------


def _crawls(watched: WatchedArchive, seen: Mapping[str, SeenCrawl], findings: _Findings) -> dict[str, SeenCrawl]:
    """Add what is amiss with crawls; return those that were looked at.

    What is amiss with a publication lasts until its next crawl. All other jobs are told of once.
    """
    known = dict(seen)
    newest, fresh = _reports(watched, seen)
    publications = watched.publications
    for name in publications:
        known.setdefault(name, SeenCrawl("", watched.at))
    # One with faults in its own file is crawled as before. It may be retired: then it has no new reports.
    crawled_as_before = sorted(watched.faulty & seen.keys() & fresh.keys())
    for subject, names in fresh.items():
        lasts = subject in publications or subject in crawled_as_before
        before = known.get(subject, SeenCrawl("", watched.at))
        known[subject] = SeenCrawl(names[-1], before.captured)
        if not seen and not lasts:
            continue  # it ended before anybody was told
        if not before.report and lasts:
            names = names[-1:]  # noqa: PLW2901 # of the past only the last one counts
        for name in names[-_MOST_REPORTS:]:
            _take_report(watched, name, known, findings, lasts=lasts)
        if (skipped := len(names) - _MOST_REPORTS) > 0:
            _log.warning("%s has %d new reports; the %d oldest are not told of", subject, len(names), skipped)
    for name in (*publications, *crawled_as_before):
        if name in newest:
            findings.amiss += _of_newest(watched, name, newest[name], findings)
    jobs = scheduler.open_jobs(watched.archive)
    _jobs(watched, jobs, findings)
    _nothing_captured(watched, known, jobs, findings)
    return known


def _reports(watched: WatchedArchive, seen: Mapping[str, SeenCrawl]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the newest report by publication or kind of job, and all that are newer than those seen, oldest first.

    One that is named with a time to come, by a wrong clock, is left out: it would hide all later ones.
    """
    newest: dict[str, str] = {}
    fresh: dict[str, list[str]] = defaultdict(list)
    latest = scheduler.latest_name(watched.at)
    for entry in os.scandir(watched.archive.reports):
        parts = scheduler.split_name(entry.name)
        if parts is None or entry.name > latest:
            continue
        subject = parts[1]
        newest[subject] = max(newest.get(subject, ""), entry.name)
        if subject not in seen or entry.name > seen[subject].report:
            fresh[subject].append(entry.name)
    return newest, {subject: sorted(names) for subject, names in fresh.items()}


def _take_report(
    watched: WatchedArchive, name: str, known: dict[str, SeenCrawl], findings: _Findings, *, lasts: bool
) -> None:
    """Add what is amiss with a job that has ended, and note when its publication captured something."""
    summary, warnings = _ended(watched, name)
    if summary is None:
        return
    publication = publication_of(name)
    if publication in known and conditions.captured_something(summary):
        with suppress(Damaged):
            finished = min(parse_time(str(summary.get("finished"))), watched.at)
            known[publication] = SeenCrawl(known[publication].report, finished)
    if not is_patch(name):  # that a patch got less than it was asked for leaves the crawl as it was
        findings.passing += conditions.of_report(kind_of(name), summary, warnings, lasts=lasts)


def _of_newest(watched: WatchedArchive, publication: str, name: str, findings: _Findings) -> Iterator[AmissCondition]:
    summary, warnings = _ended(watched, name)
    if summary is None:
        findings.unsure |= {(kind, publication) for kind in conditions.OF_PUBLICATION}
    else:
        yield from conditions.of_report(publication, summary, warnings)


def _ended(watched: WatchedArchive, name: str) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the summary of a job that has ended, and its warnings; None for one that cannot be read."""
    folder = watched.archive.reports / name
    try:
        item = load_item(folder)
        return files.read_json(folder / "summary.json"), item.warnings if item is not None else ()
    except (Damaged, OSError) as error:
        _log.info("%s", error)
        return None, ()


def _jobs(watched: WatchedArchive, jobs: tuple[JobState, ...], findings: _Findings) -> None:
    """Add the jobs that failed, also while they are tried again; a job that was stopped neither failed nor is over."""
    for job in jobs:
        subject = kind_of(job.job)
        if job.state is Phase.FAILED or job.failures:
            page = _page_of(watched, job.job) if is_page(job.job) else ""
            findings.amiss.append(
                conditions.failed_job(subject, job.job, job.reason, job.failures, updated=job.updated, page=page)
            )
        else:
            findings.unsure.add((NotificationKind.CRAWL_FAILED, subject))


def _page_of(watched: WatchedArchive, job: str) -> str:
    """Return the URL that an open job saves; empty where that cannot be read."""
    with suppress(Damaged, OSError):
        definition = load(watched.archive.jobs / job)
        if definition is not None and definition.page is not None:
            return definition.page.url
    return ""


def _nothing_captured(
    watched: WatchedArchive, known: Mapping[str, SeenCrawl], jobs: tuple[JobState, ...], findings: _Findings
) -> None:
    running = {job.publication for job in jobs if job.runs and job.documents}
    for name, publication in watched.publications.items():
        condition = conditions.has_captured_nothing(publication, known[name].captured, watched.at)
        if condition is None:
            continue
        if name in running:  # it captures now: what it has is not archived yet
            findings.unsure.add(condition.key)
        else:
            findings.amiss.append(condition)


# -- records -----------------------------------------------------------------------------------------------------------


def _records(watched: WatchedArchive, findings: _Findings) -> None:
    """Add the crawls that wait for a release, and checks that found something."""
    if not watched.archive.catalogue.is_dir():
        return
    since = int((watched.at - timedelta(days=_CHECK_DAYS)).timestamp())
    try:
        with catalogue.opened(watched.archive) as tables:
            waiting = tables.listed(RecordSelection(waits=True), limit=_MOST_RECORDS)
            total = tables.count_of(RecordSelection(waits=True)) if len(waiting) == _MOST_RECORDS else len(waiting)
            unlike = tables.listed(RecordSelection(passed=False, since=since), limit=_MOST_RECORDS)
            newest = tables.newest({row.publication for row in unlike})
    except (WebarcError, OSError) as error:
        _log.info("the records could not be read, so nobody is told of them: %s", error)
        findings.unsure_kinds |= {NotificationKind.WAITS_FOR_RELEASE, NotificationKind.CHECK_FAILED}
        return
    if total > len(waiting):
        _log.info("%d crawls wait for a release; the %d oldest are not told of", total, total - len(waiting))
        findings.unsure_kinds.add(NotificationKind.WAITS_FOR_RELEASE)
    must_wait = {row.id for row in waiting}
    failed = {row.id for row in unlike}
    for row in waiting:
        if row.id not in failed:
            ended = _ended_at(watched, row.id)
            findings.amiss.append(conditions.waits(row.id, _title(row), has_passed=row.progress.passed, since=ended))
    for row in unlike:
        is_newest = newest.get(row.publication, (0, 0))[1] <= int(row.date.timestamp())
        if row.id in must_wait or is_newest:
            condition = conditions.waits(
                row.id, _title(row), has_passed=False, must_wait=row.id in must_wait, since=_ended_at(watched, row.id)
            )
            findings.amiss.append(condition)


def _ended_at(watched: WatchedArchive, record: str) -> datetime | None:
    """Return when the job of a record ended: when its report was written. None where it has no report."""
    with suppress(OSError):
        return from_epoch((watched.archive.reports / record / ITEM_FILE).stat().st_mtime)
    return None


def _title(row: RecordRow) -> str:
    """Return what a crawl is called, with its date; the title that no person gave has that already."""
    title, date = row.title or row.publication, f"{from_epoch(row.date.timestamp()):%Y-%m-%d}"
    return title if date in title else f"{title}, {date}"
