"""The captures of foreign files as rows of an import's index.

The `content` of a capture tells its version: captures of one URL with the same content are one version.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agent.frontier.rows import FoundCapture, FrontierUrl, StoredCapture, UrlOutcome
from agent.policy.fetchstatus import GONE, Status, is_error_page
from agent.policy.vocabulary import LinkKind, Reason, UrlState
from webarcfs.archive.model.metadata import format_time, from_epoch

#: The content of a capture that says that there is nothing at its URL any more.
GONE_CONTENT = "gone"
#: How much of what should be a URL stands in crawl.log.
_LONGEST_URI = 2000


@dataclass(frozen=True, slots=True)
class Capture:
    """The URL of a record: canonical, with its domain and the time of the capture; `fraction` in nanoseconds."""

    url: str
    domain: str
    time: datetime
    fraction: int = 0


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where a record is: number of its file, its number in that file, the name of its crawl."""

    source: int
    ordinal: int
    crawl: str


def capture_row(
    record: RecordPlace, capture: Capture, outcome: UrlOutcome, batch: int, *, body: str = "", head: bytes = b""
) -> FoundCapture:
    """Return the row of a capture; `batch` is the number of the WARC with its body, `body` the digest of that.

    `head` is that of a revisit which has one of its own.
    """
    return FoundCapture(
        source=record.source,
        ordinal=record.ordinal,
        name=record.crawl,
        url=capture.url,
        domain=capture.domain,
        time=int(capture.time.timestamp()),
        fraction=capture.fraction,
        state=outcome.state,
        status=outcome.status,
        note=outcome.note,
        batch=batch,
        position=outcome.position,
        size=outcome.size,
        mime=outcome.mime,
        digest=outcome.digest,
        arc=outcome.arc,
        target=outcome.target,
        content=_content(outcome, body),
        head=head,
    )


def log_row(capture: StoredCapture) -> FrontierUrl:
    """Return a capture as crawl.log has it."""
    return FrontierUrl(
        id=capture.id,
        url=capture.url,
        domain=capture.domain,
        kind=LinkKind.LINK,
        depth=0,
        hops="",
        found_on=None,
        state=capture.state,
        tries=1,
        not_before=0.0,
        status=capture.status,
        note=capture.note,
        batch=capture.batch,
        position=capture.position,
        size=capture.size,
        mime=capture.mime,
        digest=capture.digest,
        captured=format_time(from_epoch(capture.time)) if capture.time else "",
        arc=capture.arc,
        target=capture.target,
        expanded=-1,
        nested=0,
        links=-1,
        inner=0,
        result=capture.result,
    )


def untaken_row(record: RecordPlace, uri: str, time: datetime | None, why: str) -> FoundCapture:
    """Return the row of a record that is not taken, for crawl.log."""
    url = "%20".join(uri.encode("utf-8", "backslashreplace").decode().split())[:_LONGEST_URI]
    return FoundCapture(
        source=record.source,
        ordinal=record.ordinal,
        name=record.crawl,
        url=url or "-",
        time=int(time.timestamp()) if time else 0,
        state=UrlState.REFUSED,
        status=int(Status.ILLEGAL_URL if why == Reason.BAD_URL else Status.INVALID_RESPONSE),
        note=why,
    )


def _content(outcome: UrlOutcome, body: str) -> str:
    if outcome.arc:
        return f"{body} error" if is_error_page(outcome.status) else body
    if outcome.target:
        return f"{outcome.status} {outcome.target}"
    return GONE_CONTENT if outcome.state == UrlState.DONE and outcome.status in GONE else ""
