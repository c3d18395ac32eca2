"""Writes the report of a job: crawl.log, with one line per URL seen, and summary.json."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.frontier import facts
from agent.frontier.facts import FilterFailure, PublishedDomain
from agent.frontier.store import Frontier
from agent.jobfolder import orders
from agent.jobfolder.job import Job
from agent.jobfolder.jobstate import JobState, save
from agent.jobfolder.loglines import line
from agent.pipeline.domainrun import ARC_COUNTS, REDIRECT_COUNTS, DomainRun
from agent.reports import crawllog, waiting
from agent.stages.publish import Published
from agent.system import jsonfile
from webarcfs.archive.model.metadata import format_time, now
from webarcfs.archive.system.fsync import sync_folder, sync_tree


class Seconds:
    """The seconds of each stage, over all runs of an interrupted job."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        known = frontier.get(facts.SECONDS)
        self.values = {} if known is None else known

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Add the time inside to `stage`."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.values[stage] = self.values.get(stage, 0.0) + time.monotonic() - begun

    def keep(self) -> None:
        """Write the seconds into the frontier."""
        self._frontier.set(facts.SECONDS, self.values)


def keep_domain(frontier: Frontier, run: DomainRun, published: Published) -> None:
    """Record the publication of a domain in the frontier: the job may be interrupted before its summary."""
    fact = facts.PUBLISHED.of(run.domain)
    known = frontier.get(fact)
    part: PublishedDomain = {
        "commit_tag": str(run.tag),
        "complete": published.complete,
        "reason": published.reason,
        "arcs": run.arcs if known is None else known["arcs"],
        "redirects": run.redirects if known is None else known.get("redirects", {}),
    }
    frontier.set(fact, part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a report tells of the URLs of a job: the lines of crawl.log, and what is counted.

    `urls` are counted by status, `documents` by MIME type. `warcs` are the files that `keep_warc` keeps. `revisits` are
    those that found nothing, and wait.
    """

    lines: Iterable[str]
    urls: dict[str, int]
    documents: dict[str, int]
    bytes: int
    filter_errors: dict[str, FilterFailure]
    warcs: Sequence[Path]
    revisits: Iterable[dict[str, Any]] = ()


def account_of(job: Job) -> Account:
    """Return the account of a crawl: all is in its frontier."""
    return Account(
        lines=(line(row, referrer) for row, referrer in job.frontier.all()),
        urls=job.frontier.by_status(),
        documents=job.frontier.by_mime_type(),
        bytes=job.frontier.counts()["bytes"],
        filter_errors=job.frontier.get(facts.FILTER_ERRORS) or {},
        warcs=sorted(job.folder.glob("*.warc")),
    )


def domains(frontier: Frontier) -> list[PublishedDomain]:
    """Return the recorded publications, in order of domain."""
    found = (frontier.get(facts.PUBLISHED.of(domain)) for domain in frontier.domains())
    return [part for part in found if part is not None]


def summary(
    job: Job, account: Account, complete: bool, parts: Sequence[PublishedDomain], seconds: Mapping[str, float]
) -> dict[str, Any]:
    """Return the content of summary.json."""
    return {
        "job": job.name,
        "publication": job.publication.name,
        "commit_tags": [part["commit_tag"] for part in parts],
        "complete": complete,
        "started": format_time(job.begun),
        "finished": format_time(now()),
        "seconds": {stage: round(value, 3) for stage, value in seconds.items()},
        "urls": account.urls,
        "documents": account.documents,
        "bytes": account.bytes,
        "arcs": {key: sum(part["arcs"][key] for part in parts) for key in ARC_COUNTS},
        "redirects": {key: sum(part.get("redirects", {}).get(key, 0) for part in parts) for key in REDIRECT_COUNTS},
        "orders": orders.told(job.folder),
        "filter_errors": account.filter_errors,
    }


def write(job: Job, account: Account, content: dict[str, Any], item: JobState | None = None) -> Path:
    """Write the report atomically and durably, with the final `item`; return its folder.

    Raises OSError, for example on a full disk; then the next run of the job writes the report.
    """
    scratch = job.archive.reports / f".{job.name}"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        _fill(scratch, job, account, content, item)
        sync_tree(scratch)  # a folder without its content would count as a report, and the job would be removed
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    final = job.archive.reports / job.name
    shutil.rmtree(final, ignore_errors=True)
    scratch.rename(final)
    sync_folder(job.archive.reports)  # before the job is removed
    return final


def _fill(folder: Path, job: Job, account: Account, content: dict[str, Any], item: JobState | None) -> None:
    folder.mkdir()
    crawllog.write(folder, account.lines)
    jsonfile.write(folder / "summary.json", content)
    waiting.write(folder, account.revisits)
    if item is not None:
        save(folder, item)
    if job.settings.keep_warc:
        for path in account.warcs:
            _keep(path, folder / path.name)


def _keep(warc: Path, target: Path) -> None:
    """Link a WARC into the report: a job that is killed before the end of its report still has all its WARCs."""
    try:
        os.link(warc, target)
    except OSError:  # a file system without links
        shutil.copy2(warc, target)


def remove_job(folder: Path) -> None:
    """Remove the folder of a job after its report: renamed first, so that a partly removed folder is no job."""
    going = folder.with_name(f".{folder.name}")
    shutil.rmtree(going, ignore_errors=True)
    folder.rename(going)
    shutil.rmtree(going, ignore_errors=True)
