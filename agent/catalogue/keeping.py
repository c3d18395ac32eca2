"""Keeps a record of each capture: when its job ends, and later of captures that have none.

A record that cannot be written never fails a job; the next start writes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from agent.catalogue.circumstances import of_job, settings_as_they_were
from agent.catalogue.describing import SYSTEM, described, empty
from agent.jobfolder.job import Job
from webarcfs.archive.catalogue.captures import Capture, captures
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import Database
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import CommitTag

_log = logging.getLogger(__name__)
#: Records that are written in one commit.
_AT_ONCE = 100


def keep_capture(job: Job, tags: Iterable[str]) -> None:
    """Write the record of a job that has ended and has its report, and its publication's settings.

    A record that is there stays.
    """
    try:
        catalogue = Catalogue(job.archive)
        if not catalogue.has(job.name):
            _keep(catalogue, job, tags)
    except (WebarcError, OSError) as error:
        _log.error("the record of %s was not written, the next start tries again: %s", job.name, error)


def _keep(catalogue: Catalogue, job: Job, tags: Iterable[str]) -> None:
    about, mark = of_job(job), None
    found = captures(job.archive, map(CommitTag.parse, tags))
    capture = next((each for each in found if each.job == job.name), None)
    if capture is None:
        record = empty(job.name, job.publication.name, about)
    else:
        record = described(job.archive, capture, catalogue.newest(job.publication.name, job.name), about)
        mark = capture.last if catalogue.described() == capture.last - len(capture.parts) else None
    what = "captured" if capture is not None else "nothing"
    expected = {job.name: None}
    files = settings_as_they_were(job)
    catalogue.save([record], SYSTEM, f"{job.name}: {what}", expected=expected, described=mark, files=files)


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
    if directory.layout_of(archive.root) < directory.LAYOUT or not archive.database.exists():
        return 0
    known = catalogue.described()
    with Database(archive.database) as database:
        since = {tag: number for number, tag in database.since(known)}
    if not since:
        return 0
    under_way = {folder.name for folder in archive.jobs.iterdir()}
    found = captures(archive, map(CommitTag.parse, since))
    last = min([max(since.values()), *(each.sequence - 1 for each in found if each.job in under_way)])
    missing = [each for each in found if each.job not in under_way and not catalogue.has(each.job)]
    newest: dict[str, Record] = {}
    for start in range(0, len(missing), _AT_ONCE):
        if stop():
            return start
        records = [_described(archive, catalogue, capture, newest) for capture in missing[start : start + _AT_ONCE]]
        expected = dict.fromkeys(record.id for record in records)
        catalogue.save(records, SYSTEM, f"{len(records)} captures from git", expected=expected)
    if last > known:
        catalogue.save([], SYSTEM, f"all captures up to {last} have records", described=last)
    return len(missing)


def _described(archive: Archive, catalogue: Catalogue, capture: Capture, newest: dict[str, Record]) -> Record:
    """Return the record of a capture, counted from the one before it; `newest` has those not written yet."""
    before = newest.get(capture.publication) or catalogue.newest(capture.publication, capture.job)
    if before is not None and before.id > capture.job:
        before = None
    record = newest[capture.publication] = described(archive, capture, before)
    return record
