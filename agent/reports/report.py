"""What a job tells afterwards: crawl.log, a line a URL seen, and summary.json."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent.frontier import facts
from agent.frontier.facts import PublishedDomain
from agent.frontier.store import Frontier, FrontierUrl
from agent.jobfolder.job import Job
from agent.jobfolder.jobstate import JobState, save
from agent.pipeline.domainrun import DomainRun
from agent.policy.fetchstatus import seed3_code
from agent.reports import crawllog
from agent.stages.publish import Published
from agent.system import jsonfile
from webarcfs.archive.model.metadata import format_time, now, parse_time, utc
from webarcfs.archive.system.fsync import sync_folder, sync_tree

_ARCS = ("added", "changed", "removed", "unchanged")


class Seconds:
    """What each stage took, over all runs of a job that was interrupted."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        known = frontier.get(facts.SECONDS)
        self.values = {} if known is None else known

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Count the time inside for `stage`."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.values[stage] = self.values.get(stage, 0.0) + time.monotonic() - begun

    def keep(self) -> None:
        """Write them down."""
        self._frontier.set(facts.SECONDS, self.values)


def keep_domain(frontier: Frontier, run: DomainRun, published: Published) -> None:
    """Note what was published on a domain, for the summary of a job that may yet be interrupted."""
    fact = facts.PUBLISHED.of(run.domain)
    known = frontier.get(fact)
    part: PublishedDomain = {
        "commit_tag": str(run.tag),
        "complete": published.complete,
        "reason": published.reason,
        "arcs": run.arcs if known is None else known["arcs"],
    }
    frontier.set(fact, part)


def domains(frontier: Frontier) -> list[PublishedDomain]:
    """What was published on each domain, in order of domain."""
    found = (frontier.get(facts.PUBLISHED.of(domain)) for domain in frontier.domains())
    return [part for part in found if part is not None]


def summary(job: Job, complete: bool, parts: list[PublishedDomain], seconds: dict[str, float]) -> dict[str, Any]:
    """The content of summary.json."""
    return {
        "job": job.name,
        "publication": job.publication.name,
        "commit_tags": [part["commit_tag"] for part in parts],
        "complete": complete,
        "started": format_time(job.begun),
        "finished": format_time(now()),
        "seconds": {stage: round(value, 3) for stage, value in seconds.items()},
        "urls": job.frontier.by_status(),
        "documents": job.frontier.by_mime_type(),
        "bytes": job.frontier.counts()["bytes"],
        "arcs": {key: sum(part["arcs"][key] for part in parts) for key in _ARCS},
        "filter_errors": job.frontier.get(facts.FILTER_ERRORS) or {},
    }


def write(job: Job, content: dict[str, Any], item: JobState | None = None) -> Path:
    """Write the report, whole or not at all, with the item as it ended; returns its folder.

    It is on the disk when this returns. Raises OSError: the disk is full, say; then the next run of the job writes it.
    """
    scratch = job.archive.reports / f".{job.name}"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        _fill(scratch, job, content, item)
        sync_tree(scratch)  # a name without its content would be a report, and the job would go
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    final = job.archive.reports / job.name
    shutil.rmtree(final, ignore_errors=True)
    scratch.rename(final)
    sync_folder(job.archive.reports)  # before the job goes
    return final


def _fill(folder: Path, job: Job, content: dict[str, Any], item: JobState | None) -> None:
    folder.mkdir()
    crawllog.write(folder, (line(row, referrer) for row, referrer in job.frontier.all()))
    jsonfile.write(folder / "summary.json", content)
    if item is not None:
        save(folder, item)
    if job.settings.keep_warc:
        for path in sorted(job.folder.glob("*.warc")):
            _keep(path, folder / path.name)


def _keep(warc: Path, target: Path) -> None:
    """A second name for a WARC: a job that dies before its report is there has all of its WARCs still."""
    try:
        os.link(warc, target)
    except OSError:  # a file system without links
        shutil.copy2(warc, target)


def remove_job(folder: Path) -> None:
    """Remove the folder of a job whose report is there: in one step, so that no half of it is taken for a job."""
    going = folder.with_name(f".{folder.name}")
    shutil.rmtree(going, ignore_errors=True)
    folder.rename(going)
    shutil.rmtree(going, ignore_errors=True)


def line(row: FrontierUrl, referrer: str) -> str:
    """A URL's line in crawl.log: Heritrix's twelve columns; what does not apply is `-`."""
    stamp = utc(parse_time(row.captured)) if row.captured else None
    annotations = [row.note, row.result, f"tries:{row.tries}" if row.tries > 1 else ""]
    columns = (
        stamp.strftime("%Y-%m-%dT%H:%M:%S.000Z") if stamp else "-",
        f"{row.status:5}",
        f"{row.size if row.captured else '-':>10}",
        row.url,
        row.hops or "-",
        referrer or "-",
        row.mime or "-",
        f"#{row.batch:03}",
        stamp.strftime("%Y%m%d%H%M%S000") if stamp else "-",
        f"sha1:{row.digest}" if row.digest else "-",
        "-",
        ",".join([f"seed3:{seed3_code(row.status)}", *("_".join(each.split()) for each in annotations if each)]),
    )
    return " ".join(columns)
