"""Decides which of two overlapping crawls of a domain is newer: an older capture never replaces a newer one.

A crawl that is resumed after another one was published is inserted before it in the history, like an old import; main
does not move. Clocks may be set back, so the archive's counter identifies the crawls published since a job began to
fetch. Times are compared with those crawls only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from agent.frontier import facts
from agent.jobfolder.job import Job
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.model.metadata import from_epoch, parse_time


@dataclass(frozen=True, slots=True)
class LaterCrawls:
    """The crawls of a domain published since a job began to fetch: commitTag → start of that crawl.

    `overtook`: the job was interrupted after it had fetched all, and one of these crawls began after its last response.
    """

    begun: dict[str, datetime] = field(default_factory=dict)
    overtook: bool = False

    def replaces(self, tag: str, captured: datetime) -> bool:
        """Return whether a version stored by the crawl `tag` is newer than one captured at `captured`."""
        return tag in self.begun and captured < self.begun[tag]


def note_begin(job: Job) -> None:
    """Record the archive's counter when the job begins to fetch; a resumed job keeps the first value."""
    if job.frontier.get(facts.COUNTER) is None:
        number = sequence.last_number(job.archive)
        with job.frontier.changes():
            job.frontier.set(facts.COUNTER, number)


def note_wait(job: Job) -> None:
    """Record that the job is resumed after it had fetched all."""
    with job.frontier.changes():
        job.frontier.set(facts.WAITED, True)


def later_crawls(job: Job, store: Repository, domain: str) -> LaterCrawls:
    """Return the crawls of a domain published since the job began to fetch; none for imports, which have own times."""
    counter = job.frontier.get(facts.COUNTER)
    if counter is None or job.cut is not None:
        return LaterCrawls()
    begun: dict[str, datetime] = {}
    head = store.head()
    for commit in store.history(head.oid if head else None):
        if not commit.message.is_crawl:
            continue
        if commit.message.sequence <= counter:
            break
        begun[str(commit.message.tag)] = from_epoch(commit.time)
    if not begun or not job.frontier.get(facts.WAITED):
        return LaterCrawls(begun)
    captured = job.frontier.last_captured(domain)  # reads every URL of the job
    return LaterCrawls(begun, bool(captured) and any(parse_time(captured) < time for time in begun.values()))
