"""Patches of crawls in the catalogue: which record takes one, and how it does.

A patch asks again for what a crawl did not get. What it publishes becomes parts of the record of that crawl, with an
event; the record stays one. What was done with the record before counts no more: new pages have to be counted and
checked like all others. Its completeness stays as it was, since a patch removes nothing and follows no links.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from agent.catalogue.recording import add_parts
from agent.crawl.job_folder import Job, is_import
from agent.crawl.vocabulary import ARCHIVED_OR_DUPLICATE
from webarcfs.archive.catalogue.catalogue import Catalogue, RecordSelection, captures, opened
from webarcfs.archive.catalogue.record import Record, RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Release
from webarcfs.archive.model.errors import NotFound, WebarcError
from webarcfs.archive.model.metadata import CommitTag

_log = logging.getLogger(__name__)
#: Rows of the publication's newest records that are looked at.
_LOOKED_AT = 100


def find_record(catalogue: Catalogue, job: str, publication: str) -> Record:
    """Return the record of a job, which may have been there before it. Raises NotFound."""
    if catalogue.has(job):
        record, _ = catalogue.read(job)
        if not record.job:
            return record
    for record in catalogue.records(publication):
        if record.job_name == job:
            return record
    raise NotFound(f"the catalogue has no record of {job}; `webarc-agent record list` lists them")


def refusal(  # noqa: PLR0911 # a reason each
    archive: Archive, catalogue: Catalogue, record: Record
) -> str:
    """Return why a record takes no patch now; empty if it takes one."""
    if is_import(record.id):
        return "it is an import, which asks no server"
    if record.state is RecordState.OPEN:
        return "its crawl has not ended"
    if not record.parts:
        return "its crawl published nothing, so there is nothing to patch: crawl it again"
    if record.state is RecordState.DISCARDED:
        return f"it is discarded; `webarc-agent record restore {record.id}` takes that back"
    if record.state is RecordState.REJECTED:
        return f"it is rejected; `webarc-agent record reopen {record.id}` takes that back"
    if record.state is RecordState.RELEASED and record.release != Release.AUTOMATIC:
        return (
            "it is released, and readers would see pages that nobody has checked: withdraw it first "
            f"(`webarc-agent record withdraw {record.id} --reason TEXT`), and release it after the patch"
        )
    newer = _newer(archive, catalogue, record)
    return f"{newer} is a newer crawl of {record.publication}; patch that one" if newer else ""


def _newer(archive: Archive, catalogue: Catalogue, record: Record) -> str:
    """Return the id of a later crawl of the record's publication; empty without one."""
    since = int(record.date.timestamp()) + 1 if record.date is not None else 0
    with opened(archive, catalogue) as tables:
        chosen = RecordSelection(publication=record.publication, since=since)
        rows = tables.listed(chosen, limit=_LOOKED_AT)
        return next((row.id for row in rows if row.has_parts and row.id != record.id), "")


def keep_patch(job: Job, tags: Iterable[str]) -> None:
    """Add to the record of a crawl what its patch published. A part that is there already is not added again.

    It never fails the job: the next start adds what is missing.
    """
    patch = job.patch
    assert patch is not None
    try:
        for capture in captures(job.archive, map(CommitTag.parse, tags)):
            add_parts(job.archive, Catalogue(job.archive), patch.record, capture.parts, _account(job), by=patch.by)
    except (WebarcError, OSError) as error:
        _log.error("the record %s lacks its patch, the next start tries again: %s", patch.record, error)


def _account(job: Job) -> str:
    asked = came = 0
    for row in job.frontier.asked():
        asked += 1
        came += job.frontier.end_of(row).result in ARCHIVED_OR_DUPLICATE
    return f"{came} of {asked} URLs came, {job.name}"
