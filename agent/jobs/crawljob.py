"""Jobs: one run of one publication from start to report, resumed where it was when something killed it.

A job's folder in `jobs/` holds its frontier and its WARCs; it is there from the first moment to the last, when the
report takes its place. So a job that was interrupted is found by the next run of its publication.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent.capture.archivedlinks import archived_links
from agent.capture.disposition import OVER_TIME, Captured
from agent.capture.loop import capture
from agent.filters import chain
from agent.frontier.discovery import Discovery
from agent.frontier.store import Frontier
from agent.jobfolder import definition, jobstate
from agent.jobfolder.definition import Definition
from agent.jobfolder.job import Job, Progress
from agent.jobfolder.jobstate import Phase
from agent.jobfolder.names import kind_of
from agent.jobfolder.statekeeper import StateKeeper
from agent.jobs.ending import JobOutcome, failures_noted, finish, publish, until_stopped
from agent.pipeline import overlap
from agent.reports import report
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Profile, Publication
from webarcfs.archive.model.errors import Damaged, Interrupted, NotFound
from webarcfs.archive.model.metadata import compact_time, from_epoch, now, parse_compact_time
from webarcfs.archive.system import locks

_log = logging.getLogger(__name__)
_STOPPED = "stopped; the next crawl of it goes on from here"


def run(
    archive: Archive,
    publication: Publication,
    profile: Profile | None,
    *,
    accept_shrink: bool = False,
    instances: int = 0,
    folder: Path | None = None,
    by_agent: bool = False,
    stop: threading.Event | None = None,
    progress: Progress = lambda *_: None,
) -> JobOutcome:
    """Crawl a publication, or go on with its interrupted job, and publish what came of it.

    `folder` is a certain job's, else it is the one that was interrupted last, or a new one. `instances` is how many
    wgets the archive allows over all jobs; `by_agent`: nobody asked for it on a command line. Raises Busy when it is
    being crawled already, SettingsError when its filters cannot be loaded, NotFound when the job is done meanwhile,
    Damaged when it is of another version.
    """
    chain(publication.crawl.filters, archive.filters, profile)  # before anything is fetched
    asked = Definition(publication=publication, profile=profile, accept_shrink=accept_shrink, instances=instances)
    with alone(archive, publication.name):
        if folder is not None and not folder.is_dir():
            raise NotFound(f"there is no job {folder.name} any more")
        folder = folder or interrupted(archive, publication.name) or new_folder(archive, publication.name)
        keeper = StateKeeper(folder, publication.name, progress, by_agent=by_agent)
        with _opened(folder) as frontier, failures_noted(keeper):
            definition.save(folder, asked)
            keeper.begin(frontier)
            job = _job(archive, folder, frontier, asked, progress=keeper.progress, stop=stop or threading.Event())
            return until_stopped(job, keeper, lambda: _work(job, keeper), _STOPPED)


def _job(archive: Archive, folder: Path, frontier: Frontier, asked: Definition, **how: Any) -> Job:
    return Job(
        archive=archive,
        name=folder.name,
        folder=folder,
        publication=asked.publication,
        profile=asked.profile,
        frontier=frontier,
        begun=from_epoch(frontier.get("begun")),
        accept_shrink=asked.accept_shrink,
        instances=asked.instances,
        **how,
    )


@contextmanager
def alone(archive: Archive, publication: str) -> Iterator[None]:
    """Be the only one that begins or runs a job of a publication. Raises Busy when another process does."""
    busy = f"{publication} is being crawled already, by another process"
    with locks.exclusive_or_busy(archive.publication_lock(publication), busy):
        yield


def _work(job: Job, keeper: StateKeeper) -> JobOutcome:
    with job.frontier.changes():
        Discovery(job.frontier, job.publication).seeds(job.publication.urls)
    seconds = report.Seconds(job.frontier)
    captured = _captured(job, seconds)
    keeper.to(Phase.CONVERTING)
    warnings = [captured.reason] if captured.reason else []
    withheld = publish(job, captured.complete, seconds)
    warnings += withheld if captured.complete else []
    warnings += _fruitless(job)
    state = Phase.INTERRUPTED if captured.reason == OVER_TIME else Phase.ARCHIVED
    return finish(job, keeper, seconds, complete=captured.complete, warnings=warnings, state=state)


def _captured(job: Job, seconds: report.Seconds) -> Captured:
    """How the capture ended, now or before an interruption. Raises Interrupted."""
    known = job.frontier.get("captured")
    if known is not None:
        overlap.note_wait(job)
        return Captured(**known)
    overlap.note_begin(job)
    with seconds.of("capture"):
        captured = capture(job, lambda url: archived_links(job.archive, url))
    if job.stop.is_set() and not captured.complete:
        raise Interrupted("stopped while it was fetching")
    with job.frontier.changes():
        job.frontier.set("captured", {"complete": captured.complete, "reason": captured.reason})
        seconds.keep()
    return captured


def _fruitless(job: Job) -> list[str]:
    """A line for each start URL that gave nothing."""
    discovery = Discovery(job.frontier, job.publication)
    lines = []
    for seed in job.frontier.seeds():
        end = discovery.end_of(seed)
        if end.result not in ("added", "changed", "unchanged", "duplicate"):
            why = ", ".join(part for part in (str(end.status), end.note, end.result) if part)
            where = "" if end.id == seed.id else f" (by way of {end.url})"
            lines.append(f"{seed.url} gave nothing{where}: {why}")
    return lines


def interrupted(archive: Archive, publication: str) -> Path | None:
    """The folder of the publication's job that was interrupted last; those of another version are left alone."""
    found = folders_of(archive, publication)
    for path in reversed(found):
        if not (path / "frontier.db").exists():
            shutil.rmtree(path)  # killed before it had begun
        elif usable(path):
            _log.info("going on with the interrupted job %s", path.name)
            return path
    return None


def folders_of(archive: Archive, kind: str) -> list[Path]:
    """The folders of a publication's crawls, or of one import, oldest first; one that was being removed is gone."""
    found = sorted(path for path in archive.jobs.iterdir() if kind_of(path.name) == kind)
    for path in found:
        if path.name.startswith("."):
            shutil.rmtree(path)
    return [path for path in found if not path.name.startswith(".")]


def usable(folder: Path) -> bool:
    """Whether a job's folder can be gone on with; one of another version, or a damaged one, is named and left alone."""
    try:
        jobstate.load(folder)
        if (folder / "frontier.db").exists():
            Frontier(folder / "frontier.db").close()
    except Damaged as error:
        _log.warning("%s", error)
        return False
    return True


def new_folder(archive: Archive, publication: str) -> Path:
    """The folder of a new job; its crawl begins now (/Cr-4/, /Cr-7.1/)."""
    begun = now()
    while True:
        name = f"{compact_time(begun)}-{publication}"
        folder = archive.jobs / name
        taken = (archive.reports / name).exists() or folder.exists()
        if not taken:
            folder.mkdir()
            return folder
        begun = from_epoch(begun.timestamp() + 1)


@contextmanager
def _opened(folder: Path) -> Iterator[Frontier]:
    frontier = Frontier(folder / "frontier.db")
    try:
        if frontier.get("begun") is None:
            with frontier.changes():
                frontier.set("begun", _begun(folder.name))
        yield frontier
    finally:
        frontier.close()


def _begun(name: str) -> float:
    try:
        return parse_compact_time(name.partition("-")[0]).timestamp()
    except Damaged:
        return now().timestamp()


def drop(folder: Path) -> None:
    """Remove the folder of a job that never began."""
    shutil.rmtree(folder, ignore_errors=True)
