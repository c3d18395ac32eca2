"""The end of a job: publishes its domains one after the other, then replaces its folder by a report and a record.

Crawls and imports end alike. The frontier records each step, so that a job that is killed here resumes at that step.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agent.catalogue.keeping import keep_capture
from agent.frontier.facts import PublishedDomain
from agent.jobfolder.attempts import reason_of
from agent.jobfolder.job import Job
from agent.jobfolder.jobstate import JobState, Phase
from agent.jobfolder.statekeeper import StateKeeper
from agent.jobs.publishing import publish_domain, was_published
from agent.reports import report
from webarcfs.archive.model.errors import Interrupted, WebarcError
from webarcfs.archive.model.metadata import CommitTag

_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The end of a job. An `interrupted` job stays in `jobs/` for the next run; `warnings` say what is missing, why."""

    job: str
    interrupted: bool
    complete: bool
    warnings: tuple[str, ...]
    tags: tuple[str, ...]
    summary: dict[str, object]
    report: Path | None


def until_stopped(job: Job, keeper: StateKeeper, work: Callable[[], _Outcome], how: str) -> _Outcome | JobOutcome:
    """Return the outcome of `work`. If it raises Interrupted, note that in the item and return `how` as a warning."""
    try:
        return work()
    except Interrupted:
        keeper.to(Phase.INTERRUPTED, reason=keeper.item.held or "stopped", failures=0)
        how = f"held ({keeper.item.held}); `webarc-agent job` says how it goes on" if keeper.item.held else how
        return JobOutcome(job.name, True, False, (how,), (), {}, None)


@contextmanager
def failures_noted(keeper: StateKeeper) -> Iterator[None]:
    """Write the reason of a failure into the item; the job's folder stays, so that it can be tried again."""
    try:
        yield
    except Exception as error:
        with contextlib.suppress(OSError, WebarcError):  # the agent reads the error from stderr, and writes it later
            keeper.failed(reason_of(error, keeper.folder))
        raise


def publish(job: Job, complete: bool, seconds: report.Seconds, *, only_begun: bool = False) -> list[str]:
    """Publish the job domain by domain; return a line for each incomplete publication. Raises Interrupted.

    `only_begun`: nothing is published; what a killed process of the job had published is put into the index.
    """
    for domain in job.frontier.domains():
        if only_begun and not was_published(job, domain):
            continue
        if job.stop.is_set():
            raise Interrupted(f"stopped before {domain} was published")
        done = publish_domain(job, domain, complete, seconds.values)
        if done is not None:
            with job.frontier.changes():
                report.keep_domain(job.frontier, *done)
                seconds.keep()
    return [f"{part['commit_tag']}: {part['reason']}" for part in report.domains(job.frontier) if part["reason"]]


def finish(
    job: Job, keeper: StateKeeper, seconds: report.Seconds, *, complete: bool, warnings: Sequence[str], state: Phase
) -> JobOutcome:
    """Write the report of a published job and the record of its capture, and remove its folder."""
    parts, account = report.domains(job.frontier), report.account_of(job)
    item = keeper.ended(state, warnings=tuple(warnings))
    outcome = reported(job, account, parts, item, seconds=seconds.values, complete=complete)
    report.remove_job(job.folder)
    return outcome


def reported(
    job: Job,
    account: report.Account,
    parts: Sequence[PublishedDomain],
    item: JobState,
    *,
    seconds: Mapping[str, float],
    complete: bool,
) -> JobOutcome:
    """Write the report of a published job, with its item as it ended, and the record of its capture.

    It is `complete` if the last part of each domain is. `parts` are in order of their domains and times.
    """
    last = {CommitTag.parse(part["commit_tag"]).domain: part["complete"] for part in parts}
    whole = complete and all(last.values())
    summary = report.summary(job, account, whole, parts, seconds)
    tags = tuple(part["commit_tag"] for part in parts)
    item = dataclasses.replace(item, complete=whole, tags=tags, pid=0, ticks=0)
    path = report.write(job, account, summary, item)
    keep_capture(job, tags)
    return JobOutcome(job.name, False, whole, item.warnings, tags, summary, path)
