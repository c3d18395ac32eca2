"""A crawl's job: one run of one publication from start to report. A killed job is resumed where it ended."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

from agent.crawl import job_folder
from agent.crawl.discovery import Discovery
from agent.crawl.disposition import OVER_TIME, ArchivedPages, Captured, lines_on_hosts
from agent.crawl.frontier import BEGUN, CAPTURED, ORDERS, CaptureEnd, Frontier
from agent.crawl.job_folder import OCCASION, Definition, Job, Progress, StateKeeper
from agent.crawl.job_orders import OrderBook, stop_on_discard
from agent.crawl.job_state import Phase
from agent.crawl.loop import capture
from agent.crawl.vocabulary import Reason, Status
from agent.filters import chain
from agent.jobs.publishing import JobOutcome, failures_noted, finish, publish, until_stopped
from agent.pipeline import domain_run
from agent.reports import report
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Profile, Publication
from webarcfs.archive.model.errors import Interrupted, NotFound
from webarcfs.archive.model.metadata import from_epoch

_log = logging.getLogger(__name__)
_STOPPED = "stopped; the next crawl of it resumes from here"


def run(
    archive: Archive,
    publication: Publication,
    profile: Profile | None,
    *,
    accept_shrink: bool = False,
    instances: int = 0,
    folder: Path | None = None,
    by_agent: bool = False,
    occasion: str = "",
    shifts: bool = False,
    stop: threading.Event | None = None,
    progress: Progress = lambda *_: None,
) -> JobOutcome:
    """Crawl a publication, or resume its interrupted job, and publish the result.

    `folder` selects a job; by default it is the job that was interrupted last, or a new one. `instances` is the number
    of wgets that the archive allows over all jobs. `by_agent`: the agent started the job, not a command. `occasion`
    says why it is begun beside the schedule, which resumes from it only if it `shifts`. Raises Busy if the publication
    is being crawled already, SettingsError if its filters cannot be loaded, NotFound if the job has finished meanwhile,
    Damaged if it is of another version.
    """
    chain(publication.crawl.filters, archive.filters, profile)  # fails before anything is fetched
    asked = Definition(
        publication=publication, profile=profile, accept_shrink=accept_shrink, instances=instances, occasion=occasion
    )
    kind = publication.name + (OCCASION if occasion and not shifts else "")
    with job_folder.alone(archive, publication.name):
        if folder is not None and not folder.is_dir():
            raise NotFound(f"there is no job {folder.name} any more")
        folder = folder or job_folder.interrupted(archive, kind)
        folder = folder or job_folder.new_folder(archive, kind)
        keeper = StateKeeper(folder, publication.name, progress, by_agent=by_agent)
        with job_folder.opened(folder) as frontier, failures_noted(keeper):
            job_folder.save(folder, asked)
            keeper.begin(frontier)
            how = {"progress": keeper.progress, "note": keeper.note, "stop": stop or threading.Event()}
            job = _job(archive, folder, frontier, asked, by_agent=by_agent, **how)
            return _run(job, keeper)


def _run(job: Job, keeper: StateKeeper) -> JobOutcome:
    """Work on the job to its end, or until it stops or is discarded."""
    book = OrderBook(job)
    book.take(at_once=True)
    book.tell()
    if not book.discarded:
        with stop_on_discard(job, job.frontier.get(ORDERS) or 0):
            outcome = until_stopped(job, keeper, lambda: _work(job, keeper, book), _STOPPED)
        if not outcome.interrupted:
            return outcome
        book.take(at_once=True)
    return _discarded(job, keeper) if book.discarded else outcome


def _job(archive: Archive, folder: Path, frontier: Frontier, asked: Definition, **how: Any) -> Job:
    return Job(
        archive=archive,
        name=folder.name,
        folder=folder,
        publication=asked.publication,
        profile=asked.profile,
        frontier=frontier,
        begun=from_epoch(frontier.get(BEGUN) or 0),
        accept_shrink=asked.accept_shrink,
        instances=asked.instances,
        **how,
    )


def _work(job: Job, keeper: StateKeeper, book: OrderBook) -> JobOutcome:
    with job.frontier.changes():
        Discovery(job.frontier, job.publication, job.profile).seeds(job.publication.urls)
    seconds = report.Seconds(job.frontier)
    captured = _captured(job, seconds, book)
    keeper.to(Phase.CONVERTING)
    warnings = [captured.reason] if captured.reason else lines_on_hosts(captured.hosts)
    withheld = publish(job, captured, seconds)
    warnings += withheld if captured.complete else []
    warnings += _fruitless(job)
    state = Phase.INTERRUPTED if captured.reason in (OVER_TIME, Reason.STOPPED) else Phase.ARCHIVED
    return finish(job, keeper, seconds, captured=captured, warnings=warnings, state=state)


def _discarded(job: Job, keeper: StateKeeper) -> JobOutcome:
    """End a job without publishing what is not published yet; its report and record say so."""
    job.stop.clear()
    seconds = report.Seconds(job.frontier)
    with job.frontier.changes():
        job.frontier.give_up(Status.CUT, Reason.DISCARDED)
    reason = str(Reason.DISCARDED)
    end = Captured(False, reason)
    publish(job, end, seconds, only_begun=True)
    keeper.note(held="", reason=reason)
    return finish(job, keeper, seconds, captured=end, warnings=[reason], state=Phase.INTERRUPTED)


def _captured(job: Job, seconds: report.Seconds, book: OrderBook) -> Captured:
    """Run the capture unless it has ended before an interruption; return its end. Raises Interrupted."""
    end_before = job.frontier.get(CAPTURED)
    if end_before is not None:
        domain_run.note_wait(job)
        return Captured(**end_before)
    domain_run.note_begin(job)
    with seconds.of("capture"):
        captured = capture(job, ArchivedPages(job.archive), book)
    if (book.held and captured.reason == book.held) or (job.stop.is_set() and not captured.complete):
        raise Interrupted("stopped while it was fetching")
    book.let_go()  # an order to pause came too late
    end: CaptureEnd = {"complete": captured.complete, "reason": captured.reason, "hosts": dict(captured.hosts)}
    with job.frontier.changes():
        job.frontier.set(CAPTURED, end)
        seconds.keep()
    return captured


def _fruitless(job: Job) -> list[str]:
    """Return a line for each start URL without an archived document."""
    discovery = Discovery(job.frontier, job.publication, job.profile)
    lines = []
    for seed in job.frontier.seeds():
        end = discovery.end_of(seed)
        if end.result not in ("added", "changed", "unchanged", "duplicate"):
            why = ", ".join(part for part in (str(end.status), end.note, end.result) if part)
            where = "" if end.id == seed.id else f" (by way of {end.url})"
            lines.append(f"{seed.url} gave nothing{where}: {why}")
    return lines
