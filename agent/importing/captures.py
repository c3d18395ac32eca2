"""The captures of foreign WARC files: of several captures of one URL, the newest document counts.

Without a document it is the newest redirect: servers redirect for a moment (a login, a cookie), and send the page then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from agent.frontier.rows import FoundUrl, UrlOutcome
from agent.frontier.store import Frontier
from agent.policy.vocabulary import LinkKind
from webarcfs.archive.model.metadata import format_time


@dataclass(frozen=True, slots=True)
class Capture:
    """The URL of a record: canonical, with its domain and the time of the capture."""

    url: str
    domain: str
    time: datetime


def settle(frontier: Frontier, capture: Capture, settled: UrlOutcome, batch: int, kind: str = LinkKind.LINK) -> bool:
    """Record the outcome of a capture; return False, and record nothing, if another capture of the URL is better.

    `batch` is the number of the spool that contains its body.
    """
    row = frontier.by_url(capture.url)
    if row is None:
        frontier.add([FoundUrl(url=capture.url, domain=capture.domain, kind=kind, depth=0, hops="")])
        row = frontier.by_url(capture.url)
        assert row is not None
    elif (bool(settled.arc), bool(settled.target), format_time(capture.time)) <= (
        bool(row.arc),
        bool(row.target),
        row.captured,
    ):
        return False
    frontier.settle([replace(settled, id=row.id, captured=format_time(capture.time))])
    frontier.place(row.id, batch)
    return True
