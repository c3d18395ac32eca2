"""Takes in what batches came to: outcomes into the frontier, and what they lead to behind them (/Cr-1.1/).

Decides nothing about URLs, which is the scope's and the answers' business; it knows what follows from an outcome: that
a failing page's archived version stands in for it, that a server which is never reached is down, and what makes a crawl
incomplete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agent import answers, fetch
from agent.answers import Answer
from agent.discovery import Discovery
from agent.frontier import Row, Settled
from agent.job import Job
from agent.links import Link
from agent.status import Status

#: Batches in a row in which a server was never reached, after which it counts as down.
_TRIES_OF_SERVER = answers.TRIES
_UNREACHED = frozenset({Status.DNS, Status.CONNECT_FAILED})


#: Reason of a capture that was cut short because the crawl took longer than `max_duration`.
OVER_TIME = "max-duration"


@dataclass(frozen=True, slots=True)
class Captured:
    """How a capture ended: whether it saw all that it set out to see, and why not."""

    complete: bool
    reason: str = ""


class Intake:
    """What is known of the servers of a job, and the way of answers into its frontier."""

    def __init__(self, job: Job, archived_links: Callable[[str], Iterable[Link]]) -> None:
        self._folder = job.folder
        self._frontier = job.frontier
        self._discovery = Discovery(job.frontier, job.publication)
        self._archived_links = archived_links
        self._settled: list[Settled] = []
        self._unreached: dict[str, int] = {}
        self._down: set[str] = set(job.frontier.get("down") or ())

    def take_in(self, domain: str, found: Iterable[Answer]) -> int:
        """Take in what a batch of one server came to; the caller keeps it in one transaction. Returns its bytes."""
        settled = [self._one(answer) for answer in found]
        self._flush()
        self._judge_server(domain, settled)
        self._expand()
        self._discovery.forget_if_large()
        return sum(each.size for each in settled)

    def fail(self, settled: Settled, row: Row) -> None:
        """A page failed for good, or may not be had. Its archived version stands in for it, so that what only it
        links to is found.
        """
        self._fail(settled, row)
        self._flush()

    def _fail(self, settled: Settled, row: Row) -> None:
        self._settled.append(settled)
        if row.kind != "robots":
            self._discovery.links(row, self._archived_links(row.url))

    def _flush(self) -> None:
        self._frontier.settle(self._settled)
        self._settled = []
        self._discovery.flush()

    def is_doubtful(self, domain: str) -> bool:
        """Whether the server was not reached the last time."""
        return domain in self._unreached

    def verdict(self) -> Captured:
        """How the capture ended, when nothing is left to fetch."""
        if self._down:
            return Captured(False, f"server down: {', '.join(sorted(self._down))}")
        failed = [row.url for row in self._frontier.seeds() if self._discovery.end_of(row).state == "failed"]
        if failed:
            return Captured(False, f"start URL failed: {failed[0]}")
        return Captured(True)

    def _one(self, answer: Answer) -> Settled:
        row, settled = answer.row, answer.settled
        if settled.state in ("failed", "refused"):
            self._fail(settled, row)
        else:
            self._settled.append(settled)
        if settled.state == "waiting":
            return settled
        if row.kind == "robots":
            status = settled.status if settled.state == "done" else settled.status or Status.ROBOTS_UNREACHABLE
            body = answer.target.encode() or answer.robots
            self._frontier.set_robots(row.url, status, body, time.time())
        elif answer.target:
            self._flush()  # a redirect looks at what is there
            self._discovery.redirect(row, answer.target)
        else:
            self._discovery.links(row, answer.links)
        return settled

    def _judge_server(self, domain: str, settled: list[Settled]) -> None:
        """Count how often a server was not reached at all; one that is down is not asked for each of its pages."""
        tried = [each for each in settled if each.tried]
        if not tried or any(each.status not in _UNREACHED for each in tried):
            self._unreached.pop(domain, None)
            return
        self._unreached[domain] = self._unreached.get(domain, 0) + 1
        if self._unreached[domain] >= _TRIES_OF_SERVER:
            self._down.add(domain)
            self._frontier.set("down", sorted(self._down))
            self._frontier.fail_domain(domain, tried[-1].status, f"server-down,{tried[-1].note}")

    def _expand(self) -> None:
        """Pages that are nearer than was thought: their links may now be near enough."""
        while nearer := self._frontier.to_expand():  # one that comes nearer brings others nearer
            for row in nearer:
                warc = fetch.BatchFiles(self._folder, row.batch).warc
                self._discovery.links(row, answers.links_at(warc, row.position, row) if row.position else ())
            self._discovery.flush()
