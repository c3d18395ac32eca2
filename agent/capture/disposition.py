"""Applies the results of batches to the frontier, and adds the URLs that they lead to (/Cr-1.1/).

A failed page contributes the links of its archived version; a server that is never reached is given up; both make the
crawl incomplete. Which URLs enter is decided by the scope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from agent.capture import fetchresults, wgetcommand
from agent.capture.fetchresults import FetchResult
from agent.frontier import facts
from agent.frontier.discovery import Discovery
from agent.frontier.store import FrontierUrl, UrlOutcome
from agent.jobfolder.job import Job
from agent.policy.fetchstatus import Status
from agent.policy.politeness import BUSY, SERVER_BUSY, TRIES, is_given_up
from agent.policy.scope import PRIVATE_ADDRESS
from agent.policy.vocabulary import LinkKind, Reason, UrlState
from agent.system import steadyclock
from webarcfs.content.outlinks import Link

#: URLs of a server that are settled at a time.
_AT_ONCE = 1000
_UNREACHED = frozenset({Status.DNS, Status.CONNECT_FAILED})
#: Reason of a capture that was cut short because the crawl took longer than `max_duration`.
OVER_TIME = Reason.OVER_TIME
#: Reason of one that was cut short because the next document would not have fitted into `max_total_size`.
OVER_SIZE = Reason.OVER_SIZE


@dataclass(frozen=True, slots=True)
class Captured:
    """How a capture ended: whether it saw all that it set out to see, and why not."""

    complete: bool
    reason: str = ""


class Disposition:
    """What is known of the servers of a job, and the way of answers into its frontier."""

    def __init__(self, job: Job, archived_links: Callable[[str], Iterable[Link]]) -> None:
        self._folder = job.folder
        self._frontier = job.frontier
        self._discovery = Discovery(job.frontier, job.publication)
        self._archived_links = archived_links
        self._settled: list[UrlOutcome] = []
        self._unreached: dict[str, int] = {}
        self._busy: dict[str, int] = {}
        self._most = job.settings.max_total_size
        self._bytes = job.frontier.bytes_done() if self._most else 0
        self.is_full = False
        self._down: set[str] = set(job.frontier.get(facts.SERVERS_DOWN) or ())

    @property
    def room(self) -> int | None:
        """How many bytes more the crawl may keep (`max_total_size`); None where there is no limit."""
        return max(self._most - self._bytes, 0) if self._most else None

    def take_in(self, domain: str, found: Iterable[FetchResult]) -> None:
        """Take in what a batch of one server came to; the caller keeps it in one transaction."""
        settled = [self._one(answer) for answer in found]
        self._flush()
        self._judge_server(domain, settled)
        self._expand()
        self._discovery.forget_if_large()

    def fail(self, settled: UrlOutcome, row: FrontierUrl) -> None:
        """A page failed for good, or may not be had. Its archived version stands in for it, so that what only it
        links to is found.
        """
        self._fail(settled, row)
        self._flush()

    def _fail(self, settled: UrlOutcome, row: FrontierUrl) -> None:
        self._settled.append(settled)
        if row.kind != LinkKind.ROBOTS:
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
        if unread := self._frontier.get(facts.LINKS_UNREAD):
            return Captured(False, f"links not read: {unread}")
        failed = [row.url for row in self._frontier.seeds() if _has_failed(self._discovery.end_of(row))]
        if failed:
            return Captured(False, f"start URL failed: {failed[0]}")
        return Captured(True)

    def _one(self, answer: FetchResult) -> UrlOutcome:
        row, settled = answer.row, self._fitting(answer.settled)
        if settled.note == OVER_SIZE:
            self._settled.append(settled)
            return settled
        if settled.state in (UrlState.FAILED, UrlState.REFUSED):
            self._fail(settled, row)
        else:
            self._settled.append(settled)
        if settled.state == UrlState.WAITING:
            return settled
        if row.kind == LinkKind.ROBOTS:
            status = settled.status if settled.state == UrlState.DONE else settled.status or Status.ROBOTS_UNREACHABLE
            body = answer.target.encode() or answer.robots
            self._frontier.set_robots(row.url, status, body, steadyclock.steady())
        elif answer.target:
            self._flush()  # a redirect looks at what is there
            self._discovery.redirect(row, answer.target)
        else:
            if fetchresults.LINKS_UNREAD in settled.note.split(","):
                # The pages that only this one links to must not count as no longer linked.
                self._frontier.set(facts.LINKS_UNREAD, row.url)
            self._discovery.links(row, answer.links)
        return settled

    def _fitting(self, settled: UrlOutcome) -> UrlOutcome:
        """An outcome as it is if its bytes still fit into the crawl, else refused: the limit holds to the byte."""
        if not self._most:
            return settled
        if settled.state == UrlState.DONE and self._bytes + settled.size > self._most:
            settled = replace(
                settled, state=UrlState.REFUSED, status=int(Status.QUOTA), note=OVER_SIZE, arc="", target=""
            )
        if settled.state == UrlState.DONE:
            self._bytes += settled.size
        self.is_full = self.is_full or settled.note == OVER_SIZE
        return settled

    def _judge_server(self, domain: str, settled: list[UrlOutcome]) -> None:
        """Count how often in a row a server was not reached at all, or asked for a pause and did nothing else; then it
        is not asked for each of its pages.
        """
        tried = [each for each in settled if each.tried]
        if tried and all(each.status in _UNREACHED for each in tried):
            self._unreached[domain] = self._unreached.get(domain, 0) + 1
            if self._unreached[domain] >= TRIES:
                self._give_up(domain, tried[-1].status, f"{Reason.SERVER_DOWN},{tried[-1].note}")
        else:
            self._unreached.pop(domain, None)
        if tried and all(each.note == BUSY for each in tried):
            self._busy[domain] = self._busy.get(domain, 0) + len(tried)
            if is_given_up(self._busy[domain]):
                self._give_up(domain, tried[-1].status, SERVER_BUSY)
        elif tried:
            self._busy.pop(domain, None)

    def _give_up(self, domain: str, status: int, note: str) -> None:
        self._down.add(domain)
        self._frontier.set(facts.SERVERS_DOWN, sorted(self._down))
        self._frontier.fail_domain(domain, status, note)

    def keep_out(self, domain: str) -> None:
        """Nothing more of a domain is asked for, since it is at a private address. Archived versions of its pages stand
        in for them, and rules of other servers that were to be found there are not known.
        """
        status, note = int(PRIVATE_ADDRESS.status), PRIVATE_ADDRESS.reason
        while rows := self._frontier.next(domain, math.inf, _AT_ONCE):
            for row in rows:
                self._fail(UrlOutcome(id=row.id, state=UrlState.FAILED, status=status, tried=0, note=note), row)
                if row.kind == LinkKind.ROBOTS:
                    self._frontier.set_robots(row.url, status, b"", steadyclock.steady())
            self._flush()

    def _expand(self) -> None:
        """Pages that are nearer than was thought: their links may now be near enough."""
        while nearer := self._frontier.to_expand():  # one that comes nearer brings others nearer
            for row in nearer:
                warc = wgetcommand.BatchFiles(self._folder, row.batch).warc
                self._discovery.links(row, fetchresults.links_at(warc, row.position, row) if row.position else ())
            self._discovery.flush()


def _has_failed(row: FrontierUrl) -> bool:
    """Whether the end of a start URL's redirects did not come, also since it is at a private address."""
    return row.state == UrlState.FAILED or PRIVATE_ADDRESS.reason in row.note.split(",")
