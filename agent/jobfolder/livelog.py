"""crawl.log of a job while it fetches: a line for each URL as soon as its outcome is known.

It lies in the job's folder, in plain text, and is for people and for `report`. The report has its own crawl.log, which
is written from the frontier when the job ends and says what the archive made of each document. So a line that is
missing here is no loss: after a kill, a job that goes on writes the file anew; what waits on a server that is given up,
or cut off at the end, stands in the report's alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agent.frontier.rows import FrontierUrl
from agent.frontier.store import Frontier
from agent.jobfolder.loglines import line
from agent.policy.vocabulary import UrlState

#: Its name in the job's folder.
NAME = "crawl.log"
_OPEN = frozenset({UrlState.WAITING, UrlState.FETCHING})


class LiveLog:
    """The growing crawl.log of one job. Errors of the disk end the job, as they do for its other files."""

    def __init__(self, folder: Path, frontier: Frontier) -> None:
        self._frontier = frontier
        self._file = (folder / NAME).open("w", encoding="utf-8", newline="\n")
        self._since = frontier.last_url()
        self._write(found for found in frontier.all() if found[0].state not in _OPEN)

    def batch(self, number: int) -> None:
        """Add the URLs of a batch that was read, and what the crawl found in them and does not fetch."""
        self._write(self._frontier.ended_in_batch(number))
        self.found()

    def found(self) -> None:
        """Add what the crawl found since the last call and does not fetch."""
        since, self._since = self._since, self._frontier.last_url()
        self._write(self._frontier.refused_since(since))

    def urls(self, rows: Iterable[FrontierUrl]) -> None:
        """Add URLs that got an outcome without a batch."""
        self._write((row, "") for row in rows)

    def close(self) -> None:
        """Close it."""
        self._file.close()

    def _write(self, found: Iterable[tuple[FrontierUrl, str]]) -> None:
        self._file.writelines(f"{line(row, referrer)}\n" for row, referrer in found)
        self._file.flush()
