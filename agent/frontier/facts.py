"""The facts of a job: values that its steps need after an interruption. Each is a row of the frontier's table `job`.

A fact has one writer; its comment names the module. The frontiers of interrupted jobs contain the keys, so a key must
not change. `Frontier.get` and `Frontier.set` take a fact; the value has its type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NotRequired, TypedDict, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Fact(Generic[Value]):
    """One fact, by its key; its values are JSON."""

    key: str


@dataclass(frozen=True, slots=True)
class FactAbout(Generic[Value]):
    """A fact that has one value per subject, a domain or a batch."""

    key: str

    def of(self, subject: str | int) -> Fact[Value]:
        """Return the fact about one subject."""
        return Fact(f"{self.key}:{subject}")


class CaptureEnd(TypedDict):
    """The end of fetching: whether all was fetched, and otherwise the reason."""

    complete: bool
    reason: str


class Held(TypedDict):
    """Why a job waits for an order, and since when, in seconds since the epoch."""

    why: str
    since: float


class PublishedDomain(TypedDict):
    """The publication of a domain, as in summary.json."""

    commit_tag: str
    complete: bool
    reason: str
    arcs: dict[str, int]
    redirects: NotRequired[dict[str, int]]  # absent where an older version began the job


class FilterFailure(TypedDict):
    """The failures of a filter: the number of documents, the first URL, and its error."""

    documents: int
    first: str
    error: str


class FileRead(TypedDict):
    """The result of importing a WARC file: its number of records, what was lost, and what was skipped."""

    records: int
    losses: list[str]
    remarks: list[str]


class GroupingFact(TypedDict):
    """The options by which captures become crawls and snapshots."""

    crawls: str
    pause: int
    max_cuts: int


class CutOutcome(TypedDict):
    """What became of a snapshot of an import; `part` is None if there was nothing to publish.

    `known`: the archive had all of it before the import.
    """

    part: PublishedDomain | None
    known: bool
    seconds: dict[str, float]
    filter_errors: dict[str, FilterFailure]


#: The start of the job, in seconds since the epoch: jobfolder.folders.
BEGUN: Fact[float] = Fact("begun")
#: The end of fetching; absent until then: jobs.crawljob.
CAPTURED: Fact[CaptureEnd] = Fact("captured")
#: The number of the last order that the job took: jobfolder.orderbook.
ORDERS: Fact[int] = Fact("orders")
#: Why the job waits for an order; None if it does not: jobfolder.orderbook.
HELD: Fact[Held | None] = Fact("held")
#: The seconds for which the job was paused, over all pauses: jobfolder.orderbook.
HELD_SECONDS: Fact[float] = Fact("held_seconds")
#: The deadline that a person gave, in seconds since the epoch: jobfolder.orderbook.
DEADLINE: Fact[float] = Fact("deadline")
#: Hosts that a person had left out: jobfolder.orderbook.
LEFT_OUT: Fact[list[str]] = Fact("left_out")
#: Whether a person ended the fetching: jobfolder.orderbook.
STOPPED: Fact[bool] = Fact("stopped")
#: Whether a person discarded the job: jobfolder.orderbook.
DISCARDED: Fact[bool] = Fact("discarded")
#: The archive's counter when fetching began: pipeline.overlap.
COUNTER: Fact[int] = Fact("counter")
#: Whether fetching had ended before the publishing process started: pipeline.overlap.
WAITED: Fact[bool] = Fact("waited")
#: The hosts that redirects of start URLs led to: frontier.discovery.
HOSTS: Fact[list[str]] = Fact("hosts")
#: The domains whose servers were given up: capture.disposition.
SERVERS_DOWN: Fact[list[str]] = Fact("down")
#: The last page whose links could not be read: capture.disposition.
LINKS_UNREAD: Fact[str] = Fact("links_unread")
#: Filter → its failures: stages.filter.
FILTER_ERRORS: Fact[dict[str, FilterFailure]] = Fact("filter_errors")
#: Step → its seconds, over all processes of the job: reports.report.
SECONDS: Fact[dict[str, float]] = Fact("seconds")
#: The publication of a domain: reports.report.
PUBLISHED: FactAbout[PublishedDomain] = FactAbout("published")
#: The commitTag of the job on a domain: jobs.publishing.
TAG: FactAbout[str] = FactAbout("tag")
#: The SHA-256 of each file of an import, in order: the number of a file is its place in it: jobs.importjob.
SOURCES: Fact[list[str]] = Fact("sources")
#: Whether the user declared an import complete: jobs.importjob.
COMPLETE: Fact[bool] = Fact("complete")
#: Whether an import may remove most of a domain: jobs.importjob.
ACCEPT_SHRINK: Fact[bool] = Fact("accept_shrink")
#: The result of a file of an import, by its batch: jobs.importplan.
FILE_READ: FactAbout[FileRead] = FactAbout("file")
#: The options of an import by which captures become crawls and snapshots: jobs.importjob.
GROUPING: Fact[GroupingFact] = Fact("grouping")
#: The lines on versions that an import could not keep; absent until the import is planned: jobs.importplan.
PLANNED: Fact[list[str]] = Fact("planned")
#: Whether an import takes known files again: jobs.importjob.
AGAIN: Fact[bool] = Fact("again")
#: The URLs that a crawl of an import saw in its earlier snapshots, once it is filled: jobs.cutpublishing.
FILLED: Fact[list[str]] = Fact("filled")
