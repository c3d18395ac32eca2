"""Keeps a record of each capture: when its job ends, and later of captures that have none.

A record that cannot be written never fails a job; the next start writes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress

from agent.catalogue import stepfolders, ways
from agent.catalogue.circumstances import of_job, settings_as_they_were
from agent.catalogue.describing import SYSTEM, Circumstances, described, empty, into
from agent.jobfolder.job import Job
from agent.jobfolder.names import folder_of
from webarcfs.archive.catalogue.captures import Capture, captures
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record, State
from webarcfs.archive.catalogue.steps import HELD, Step, Way, next_by_itself, progress_of
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import Database
from webarcfs.archive.model.errors import Busy, WebarcError
from webarcfs.archive.model.metadata import CommitTag

_log = logging.getLogger(__name__)
#: Records that are written in one commit.
_AT_ONCE = 100


def keep_capture(job: Job, tags: Iterable[str]) -> None:
    """Write the record of a job that has ended and has its report, and its publication's settings.

    A record that is there stays. Then the first step that comes by itself is asked for.
    """
    try:
        catalogue = Catalogue(job.archive)
        about = of_job(job)
        name = about.record if about.record and catalogue.has(about.record) else job.name
        if about.record or not catalogue.has(name):  # a record that was entered may have the job's name
            _keep(catalogue, job, about, tags)
        ask_next(job.archive, catalogue.read(name)[0], about.way)
    except (WebarcError, OSError) as error:
        _log.error("the record of %s was not written, the next start tries again: %s", job.name, error)


def _keep(catalogue: Catalogue, job: Job, about: Circumstances, tags: Iterable[str]) -> None:
    mark = None
    found = captures(job.archive, map(CommitTag.parse, tags))
    capture = next((each for each in found if each.job == job.name), None)
    if capture is None:
        record = empty(job.name, job.publication.name, about)
    else:
        record = described(job.archive, capture, catalogue.newest(job.publication.name, job.name), about)
        mark = capture.last if catalogue.described() == capture.last - len(capture.parts) else None
    what = "captured" if capture is not None else "nothing"
    expected: dict[str, str | None] = {job.name: None}
    if about.record:
        waiting, blob = catalogue.read(about.record)
        if waiting.state is not State.OPEN:
            return
        record, expected = into(waiting, record), {waiting.id: blob}
    files = settings_as_they_were(job)
    catalogue.save([record], SYSTEM, f"{record.id}: {what}", expected=expected, described=mark, files=files)


def ask_next(archive: Archive, record: Record, way: Way | None = None) -> Step | None:
    """Ask for the step of a record that comes by itself, and return it; None where there is none.

    One that was asked for already is returned, too.
    """
    step = next_by_itself(progress_of(record), way or ways.of_record(archive, record))
    if step is not None:
        with suppress(Busy):
            stepfolders.ask(archive, record, step)
    return step


def catch_up_records(archive: Archive, stop: Callable[[], bool] = lambda: False) -> int:
    """Write the records of captures that have none, but for jobs that have not ended; return their number.

    An archive of layout 1 gets none: the next publication, or `upgrade`, raises it. Reads only what was published since
    all had one. `stop` ends it between two commits; the next call goes on. Logs what cannot be read or written.
    """
    try:
        return _catch_up(archive, stop)
    except (WebarcError, OSError) as error:
        _log.error("the catalogue was not completed, the next start tries again: %s", error)
        return 0


def _catch_up(archive: Archive, stop: Callable[[], bool]) -> int:
    catalogue = Catalogue(archive)
    if directory.layout_of(archive.root) < directory.WITH_CATALOGUE or not archive.database.exists():
        return 0
    known = catalogue.described()
    with Database(archive.database) as database:
        since = {tag: number for number, tag in database.since(known)}
    if not since:
        return 0
    under_way = {folder.name for folder in archive.jobs.iterdir()}
    found = captures(archive, map(CommitTag.parse, since))
    last = min([max(since.values()), *(each.sequence - 1 for each in found if folder_of(each.job) in under_way)])
    missing = [each for each in found if folder_of(each.job) not in under_way and not catalogue.has(each.job)]
    waiting = _waiting(catalogue) if missing else {}
    expected: dict[str, str | None]
    newest: dict[str, Record] = {}
    for start in range(0, len(missing), _AT_ONCE):
        if stop():
            return start
        records, expected = [], {}
        for capture in missing[start : start + _AT_ONCE]:
            record = _described(archive, catalogue, capture, newest)
            before, blob = waiting.get(capture.job, (None, None))
            records.append(record if before is None else into(before, record))
            expected[records[-1].id] = blob
        saved = catalogue.save(records, SYSTEM, f"{len(records)} captures from git", expected=expected)
        for each in saved:
            if each.state in HELD:  # what readers see already is left as it is
                ask_next(archive, each)
    if last > known:
        catalogue.save([], SYSTEM, f"all captures up to {last} have records", described=last)
    return len(missing)


def _waiting(catalogue: Catalogue) -> dict[str, tuple[Record, str]]:
    """Return the open records whose jobs have begun, by their jobs, with their blobs."""
    found = (catalogue.read(each.id) for each in catalogue.records() if each.state is State.OPEN and each.job)
    return {record.job: (record, blob) for record, blob in found}


def _described(archive: Archive, catalogue: Catalogue, capture: Capture, newest: dict[str, Record]) -> Record:
    """Return the record of a capture, counted from the one before it; `newest` has those not written yet."""
    before = newest.get(capture.publication) or catalogue.newest(capture.publication, capture.job)
    if before is not None and before.id > capture.job:
        before = None
    record = newest[capture.publication] = described(archive, capture, before)
    return record
