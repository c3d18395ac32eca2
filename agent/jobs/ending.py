"""How a job ends: its domains are published one after the other, a report takes its folder's place.

Crawls and imports end alike; each step is kept in the frontier, so that a job that died here goes on from there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.jobfolder.attempts import reason_of
from agent.jobfolder.job import Job
from agent.jobfolder.jobstate import Phase
from agent.jobfolder.statekeeper import StateKeeper
from agent.jobs.publishing import publish_domain
from agent.reports import report
from webarcfs.archive.model.errors import Interrupted, WebarcError


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How a job ended. `interrupted` ones wait in `jobs/` for the next run; `warnings` say what is missing and why."""

    job: str
    interrupted: bool
    complete: bool
    warnings: tuple[str, ...]
    tags: tuple[str, ...]
    summary: dict[str, object]
    report: Path | None


def until_stopped(job: Job, keeper: StateKeeper, work: Callable[[], JobOutcome], how: str) -> JobOutcome:
    """What `work` came to. Where somebody stopped it, by Interrupted, the outcome says `how`, and so does the item."""
    try:
        return work()
    except Interrupted:
        keeper.to(Phase.INTERRUPTED, reason="stopped", failures=0)
        return JobOutcome(job.name, True, False, (how,), (), {}, None)


@contextmanager
def failures_noted(keeper: StateKeeper) -> Iterator[None]:
    """Say in the item why a job failed; its folder stays, so that it can be tried again."""
    try:
        yield
    except Exception as error:
        with contextlib.suppress(OSError, WebarcError):  # the agent has heard it, and writes it down later
            keeper.failed(reason_of(error, keeper.folder))
        raise


def publish(job: Job, complete: bool, seconds: report.Seconds) -> list[str]:
    """Publish what the job has, domain by domain: a line for each where something was withheld. Raises Interrupted."""
    for domain in job.frontier.domains():
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
    """Write the report of a job that is published, and remove its folder."""
    parts = report.domains(job.frontier)
    whole = complete and all(part["complete"] for part in parts)
    summary = report.summary(job, whole, parts, seconds.values)
    tags = tuple(str(part["commit_tag"]) for part in parts)
    facts = {"complete": whole, "warnings": tuple(warnings), "tags": tags, "pid": 0, "ticks": 0}
    path = report.write(job, summary, keeper.ended(state, **facts))
    report.remove_job(job.folder)
    return JobOutcome(job.name, False, whole, tuple(warnings), tags, summary, path)
