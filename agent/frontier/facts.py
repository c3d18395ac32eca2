"""The facts of a job: what its steps need again after an interruption. Each is a row of the frontier's table `job`.

A fact has one writer, which its comment names. The keys stand in files of jobs that were interrupted: they stay.
`Frontier.get` and `Frontier.set` take a fact, and give and take values of its type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypedDict, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Fact(Generic[Value]):
    """One fact, by its key; its values are JSON."""

    key: str


@dataclass(frozen=True, slots=True)
class FactAbout(Generic[Value]):
    """A fact for each of several subjects: domains, or batches."""

    key: str

    def of(self, subject: str | int) -> Fact[Value]:
        """The fact about one of them."""
        return Fact(f"{self.key}:{subject}")


class CaptureEnd(TypedDict):
    """How fetching ended: whether all was fetched, and else the reason."""

    complete: bool
    reason: str


class PublishedDomain(TypedDict):
    """What was published on a domain, as summary.json has it."""

    commit_tag: str
    complete: bool
    reason: str
    arcs: dict[str, int]


class FilterFailure(TypedDict):
    """How often a filter failed, on which URL first, and with which error."""

    documents: int
    first: str
    error: str


class FileRead(TypedDict):
    """What a WARC file gave to an import: its records, what was lost of it, and what was passed over."""

    records: int
    losses: list[str]
    remarks: list[str]


#: When the job began, in seconds since the epoch: jobfolder.folders.
BEGUN: Fact[float] = Fact("begun")
#: How fetching ended; absent until it has: jobs.crawljob.
CAPTURED: Fact[CaptureEnd] = Fact("captured")
#: The archive's counter when the job began to fetch: pipeline.overlap.
COUNTER: Fact[int] = Fact("counter")
#: Whether fetching had ended before the process that publishes: pipeline.overlap.
WAITED: Fact[bool] = Fact("waited")
#: The hosts that redirects of start URLs led to: frontier.discovery.
HOSTS: Fact[list[str]] = Fact("hosts")
#: The domains whose server was given up: capture.disposition.
SERVERS_DOWN: Fact[list[str]] = Fact("down")
#: The last page whose links could not be read: capture.disposition.
LINKS_UNREAD: Fact[str] = Fact("links_unread")
#: Filter → its failures: stages.filter.
FILTER_ERRORS: Fact[dict[str, FilterFailure]] = Fact("filter_errors")
#: Step → the seconds that it took, over all processes of the job: reports.report.
SECONDS: Fact[dict[str, float]] = Fact("seconds")
#: What was published on a domain: reports.report.
PUBLISHED: FactAbout[PublishedDomain] = FactAbout("published")
#: The commitTag of the job on a domain: jobs.publishing.
TAG: FactAbout[str] = FactAbout("tag")
#: The SHA-256 of each file of an import: jobs.importjob.
SOURCES: Fact[list[str]] = Fact("sources")
#: Whether an import was said to be complete: jobs.importjob.
COMPLETE: Fact[bool] = Fact("complete")
#: Whether an import may remove most of a domain: jobs.importjob.
ACCEPT_SHRINK: Fact[bool] = Fact("accept_shrink")
#: What a file of an import gave, by its batch: jobs.importjob.
FILE_READ: FactAbout[FileRead] = FactAbout("file")
#: The `revisit` records that an import could not resolve, a line each: jobs.importjob.
REVISITS: Fact[list[str]] = Fact("revisits")
#: The time of a domain's first record in an import, in seconds since the epoch: importing.warcfile.
FIRST_RECORD: FactAbout[int] = FactAbout("begun")
