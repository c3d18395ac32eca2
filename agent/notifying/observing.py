"""Looks at an archive: what is amiss, by its reports, jobs, records, disk, backup and index.

Only files are read, so it is the same whether an agent runs or not. Each report is taken once, in the order of the
jobs' starts: what came and went between two looks is not missed. What cannot be read is logged, and is neither amiss
nor over.
"""

from __future__ import annotations

import logging
import os
import re
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
from agent.notifying import conditions
from agent.notifying.conditions import AmissCondition, BackupState, Key, Observation
from agent.notifying.notification_store import SeenCrawl
from agent.service import agent_status, scheduler
from webarcfs.archive.catalogue import catalogue
from webarcfs.archive.catalogue.catalogue import RecordRow, RecordSelection
from webarcfs.archive.config.directory import BACKUP, Archive
from webarcfs.archive.config.settings import NotificationKind, Publication, Settings
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.archive.model.metadata import compact_time, from_epoch, parse_time
from webarcfs.archive.system import files

_log = logging.getLogger(__name__)
_NAME = re.compile(r"\d{8}T\d{6}-.+", re.ASCII)
#: New reports of one publication that are looked at, the newest ones; records that wait.
_MOST_REPORTS, _MOST_RECORDS = 50, 1000
#: Days for which the check of a released crawl is reported, if it is the newest of its publication.
_CHECK_DAYS = 30


@dataclass(frozen=True, slots=True)
class ArchiveLook:
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


def observe(look: ArchiveLook, seen: Mapping[str, SeenCrawl]) -> tuple[Observation, dict[str, SeenCrawl]]:
    """Return what is amiss, and the crawls that were looked at by now; `seen` are those of the last time."""
    findings = _Findings()
    crawls = _crawls(look, seen, findings)
    _records(look, findings)
    findings.amiss += _archive(look)
    for name in look.faulty:
        findings.unsure |= {(kind, name) for kind in conditions.OF_PUBLICATION}
    observation = Observation(
        at=look.at,
        amiss=tuple(findings.amiss),
        passing=tuple(findings.passing),
        unsure=frozenset(findings.unsure),
        unsure_kinds=frozenset(findings.unsure_kinds),
        publications=frozenset(look.publications) | look.faulty,
    )
    return observation, crawls


# -- the archive -------------------------------------------------------------------------------------------------------


def _archive(look: ArchiveLook) -> Iterator[AmissCondition]:
    space = shutil.disk_usage(look.archive.root)
    agent_runs = agent_status.running(look.archive) is not None
    notify = look.settings.notify
    yield from conditions.of_archive(
        free=space.free,
        total=space.total,
        disk_bound=notify.disk_free,
        is_agent_missing=conditions.lacks_agent(look.settings.publications, agent_runs=agent_runs),
        is_index_behind=_is_index_behind(look.archive),
        backup=state_of_backup(look.settings.backup.to, look.at, notify.backup_age),
    )


def _is_index_behind(archive: Archive) -> bool:
    has_snapshots = archive.changes.exists() and archive.changes.stat().st_size > 0
    return has_snapshots and fulltext.wanted(archive) and fulltext.is_behind(archive)


def state_of_backup(folder: str, at: datetime, age: Interval) -> BackupState:
    """Return how the backup in a folder is; good where none is wanted. One that cannot be read is old."""
    if not folder:
        return BackupState.GOOD
    try:
        mark = files.read_json(Path(folder) / BACKUP)
    except (Damaged, OSError):
        return BackupState.OLD
    return conditions.backup_state(mark, at, age)


# -- crawls ------------------------------------------------------------------------------------------------------------


def _crawls(look: ArchiveLook, seen: Mapping[str, SeenCrawl], findings: _Findings) -> dict[str, SeenCrawl]:
    """Add what is amiss with crawls; return those that were looked at.

    What is amiss with a publication lasts until its next crawl. All other jobs are told of once.
    """
    known = dict(seen)
    newest, fresh = _reports(look, seen)
    for name in look.publications:
        known.setdefault(name, SeenCrawl("", look.at))
    for subject, names in fresh.items():
        lasts = subject in look.publications
        before = known.get(subject, SeenCrawl("", look.at))
        known[subject] = SeenCrawl(names[-1], before.captured)
        if not seen and not lasts:
            continue  # it ended before anybody was told
        if not before.report and lasts:
            names = names[-1:]  # noqa: PLW2901 # of the past only the last one counts
        for name in names[-_MOST_REPORTS:]:
            _take_report(look, name, known, findings, lasts=lasts)
        if (skipped := len(names) - _MOST_REPORTS) > 0:
            _log.warning("%s has %d new reports; the %d oldest are not told of", subject, len(names), skipped)
    for name in look.publications:
        if name in newest:
            findings.amiss += _of_newest(look, name, newest[name], findings)
    jobs = scheduler.read(look.archive).open
    _jobs(look, jobs, findings)
    _nothing_captured(look, known, jobs, findings)
    return known


def _reports(look: ArchiveLook, seen: Mapping[str, SeenCrawl]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the newest report by publication or kind of job, and all that are newer than those seen, oldest first.

    One that is named with a time to come, by a wrong clock, is left out: it would hide all later ones.
    """
    newest: dict[str, str] = {}
    fresh: dict[str, list[str]] = defaultdict(list)
    latest = compact_time(look.at + scheduler.AHEAD)
    for entry in os.scandir(look.archive.reports):
        if _NAME.fullmatch(entry.name) is None or entry.name[: len(latest)] > latest:
            continue
        subject = kind_of(entry.name)
        newest[subject] = max(newest.get(subject, ""), entry.name)
        if subject not in seen or entry.name > seen[subject].report:
            fresh[subject].append(entry.name)
    return newest, {subject: sorted(names) for subject, names in fresh.items()}


def _take_report(
    look: ArchiveLook, name: str, known: dict[str, SeenCrawl], findings: _Findings, *, lasts: bool
) -> None:
    """Add what is amiss with a job that has ended, and note when its publication captured something."""
    summary, warnings = _ended(look, name)
    if summary is None:
        return
    publication = publication_of(name)
    if publication in known and conditions.captured_something(summary):
        with suppress(Damaged):
            finished = min(parse_time(str(summary.get("finished"))), look.at)
            known[publication] = SeenCrawl(known[publication].report, finished)
    if not is_patch(name):  # that a patch got less than it was asked for leaves the crawl as it was
        findings.passing += conditions.of_report(kind_of(name), summary, warnings, lasts=lasts)


def _of_newest(look: ArchiveLook, publication: str, name: str, findings: _Findings) -> Iterator[AmissCondition]:
    summary, warnings = _ended(look, name)
    if summary is None:
        findings.unsure |= {(kind, publication) for kind in conditions.OF_PUBLICATION}
    else:
        yield from conditions.of_report(publication, summary, warnings)


def _ended(look: ArchiveLook, name: str) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the summary of a job that has ended, and its warnings; None for one that cannot be read."""
    folder = look.archive.reports / name
    try:
        item = load_item(folder)
        return files.read_json(folder / "summary.json"), item.warnings if item is not None else ()
    except (Damaged, OSError) as error:
        _log.info("%s", error)
        return None, ()


def _jobs(look: ArchiveLook, jobs: tuple[JobState, ...], findings: _Findings) -> None:
    """Add the jobs that failed, also while they are tried again; a job that was stopped neither failed nor is over."""
    for job in jobs:
        subject = kind_of(job.job)
        if job.state is Phase.FAILED or job.failures:
            page = _page_of(look, job.job) if is_page(job.job) else ""
            findings.amiss.append(
                conditions.failed_job(subject, job.job, job.reason, job.failures, updated=job.updated, page=page)
            )
        else:
            findings.unsure.add((NotificationKind.CRAWL_FAILED, subject))


def _page_of(look: ArchiveLook, job: str) -> str:
    """Return the URL that an open job saves; empty where that cannot be read."""
    with suppress(Damaged, OSError):
        definition = load(look.archive.jobs / job)
        if definition is not None and definition.page is not None:
            return definition.page.url
    return ""


def _nothing_captured(
    look: ArchiveLook, known: Mapping[str, SeenCrawl], jobs: tuple[JobState, ...], findings: _Findings
) -> None:
    running = {job.publication for job in jobs if job.runs and job.documents}
    for name, publication in look.publications.items():
        condition = conditions.has_captured_nothing(publication, known[name].captured, look.at)
        if condition is None:
            continue
        if name in running:  # it captures now: what it has is not archived yet
            findings.unsure.add(condition.key)
        else:
            findings.amiss.append(condition)


# -- records -----------------------------------------------------------------------------------------------------------


def _records(look: ArchiveLook, findings: _Findings) -> None:
    """Add the crawls that wait for a release, and checks that found something."""
    if not look.archive.catalogue.is_dir():
        return
    since = int((look.at - timedelta(days=_CHECK_DAYS)).timestamp())
    try:
        with catalogue.opened(look.archive) as tables:
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
            ended = _ended_at(look, row.id)
            findings.amiss.append(conditions.waits(row.id, _title(row), has_passed=row.progress.passed, since=ended))
    for row in unlike:
        is_newest = newest.get(row.publication, (0, 0))[1] <= int(row.date.timestamp())
        if row.id in must_wait or is_newest:
            condition = conditions.waits(
                row.id, _title(row), has_passed=False, must_wait=row.id in must_wait, since=_ended_at(look, row.id)
            )
            findings.amiss.append(condition)


def _ended_at(look: ArchiveLook, record: str) -> datetime | None:
    """Return when the job of a record ended: when its report was written. None where it has no report."""
    with suppress(OSError):
        return from_epoch((look.archive.reports / record / ITEM_FILE).stat().st_mtime)
    return None


def _title(row: RecordRow) -> str:
    """Return what a crawl is called, with its date; the title that no person gave has that already."""
    title, date = row.title or row.publication, f"{from_epoch(row.date.timestamp()):%Y-%m-%d}"
    return title if date in title else f"{title}, {date}"
