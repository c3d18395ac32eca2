"""What part of a site is archived, excluded, not to be had, unlinked. Pure.

A crawl knows what links lead to. How much the server has, and how much of that no link leads to, its owner knows: these
two figures are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent.policy.vocabulary import Reason, Result
from agent.reports.tables import LogLine, parsed
from webarcfs.archive.model.errors import UsageError

#: The reasons that are decisions: settings, people and robots.txt, not the network.
_DECISIONS = frozenset(
    {
        Reason.EXCLUDED, Reason.EXCLUDED_HOST, Reason.PATHS, Reason.EXTENSION, Reason.TYPE, Reason.SERVER_DEPTH,
        Reason.HOST_FULL, Reason.PRIVATE_ADDRESS, Reason.TOO_DEEP, Reason.ROBOTS, Reason.URL_LENGTH, Reason.PATH_DEPTH,
        Reason.REPEATS, Reason.PARAMETERS, Reason.QUERIES, Reason.CALENDAR, Reason.HOSTS, Reason.TOO_BIG,
        Reason.OVER_SIZE, Reason.OVER_TIME, Reason.STOPPED, Reason.DISCARDED, Reason.LEFT_OUT,
    }
)  # fmt: skip
_REDIRECTS = range(300, 400)


@dataclass(slots=True)
class Shares:
    """Documents of a site: archived, excluded by a decision, and asked for without getting one."""

    archived: int = 0
    excluded: int = 0
    lost: int = 0

    def add(self, line: LogLine) -> None:
        """Count a line: not robots.txt, a redirect, a second URL of a document, or another site's URL."""
        if line.archived:
            self.archived += 1
        elif line.path.endswith("P") or line.status in _REDIRECTS or Result.DUPLICATE in line.notes:
            return
        elif line.reason in _DECISIONS or line.reason.startswith(Reason.FILTER):
            self.excluded += 1
        elif line.reason != Reason.FOREIGN_HOST:
            self.lost += 1

    def rows(self, on_server: int | None = None, unlinked: int | None = None) -> Iterator[tuple[str, int, float]]:
        """Yield what each share is, its documents, and its percentage of what the server has, or else of all known.

        Raises UsageError if more is known than the server is said to have.
        """
        parts = {"archived": self.archived, "excluded": self.excluded, "not to be had": self.lost}
        if unlinked is not None:
            parts["unlinked"] = unlinked
        known = sum(parts.values())
        if on_server is not None:
            if on_server < known:
                raise UsageError(f"the crawl and --unlinked know of {known} documents: --on-server has to be as many")
            parts["not accounted for"] = on_server - known
        whole = known if on_server is None else on_server
        yield from ((name, count, 100 * count / whole if whole else 0.0) for name, count in parts.items())
        yield "on the server" if on_server is not None else "known", whole, 100.0 if whole else 0.0


def shares(lines: Iterable[str], host: str | None = None, *, live: bool = False) -> Shares:
    """Return the shares of a crawl.log, or of the lines of one host. Raises Damaged for an invalid line."""
    result = Shares()
    for line in parsed(lines, host, live=live):
        result.add(line)
    return result
