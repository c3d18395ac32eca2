"""The index of an import: its captures, the crawls and the snapshots that they become, in the job's frontier.db.

Sorting, grouping and cutting are questions to SQLite, which keeps on the disk what is more than memory holds. The
statements are the files `sql/imports/*.sql`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from agent.crawl.frontier import (
    NO_STATES,
    FoundCapture,
    Frontier,
    PlannedHost,
    StoredBody,
    StoredCapture,
    StoredCrawl,
    StoredCut,
    UntakenCount,
)
from agent.crawl.vocabulary import Reason
from webarcfs.archive.config.directory import sql

_AT_ONCE = 1000


class ImportIndex(Frontier):
    """An open frontier.db of an import. Facts and transactions are those of every frontier."""

    def __init__(self, path: Path) -> None:
        """Open or create it. Raises what `Frontier` raises."""
        super().__init__(path)
        self._db.executescript(sql("imports/schema"))

    # -- reading -------------------------------------------------------------------------------------------------

    def add_found(self, capture: FoundCapture) -> None:
        """Add a capture as it is read."""
        self._many("imports/add_found", [capture])

    def add_body(self, keys: Iterable[str], body: StoredBody) -> None:
        """Record a body under each of its keys: its digests, and its URL and time."""
        values = {name: getattr(body, name) for name in body.__slots__}
        self._connection.executemany(sql("imports/add_body"), [values | {"key": key} for key in keys])

    def body(self, key: str) -> StoredBody | None:
        """Return the body with that key; None without one."""
        row = self._connection.execute(sql("imports/body"), {"key": key}).fetchone()
        return None if row is None else StoredBody(*row)

    def add_revisit(self, **values: Any) -> None:
        """Store a revisit record until all files are read."""
        self._run("imports/add_revisit", **values)

    def add_waiting(self, revisits: Iterable[dict[str, Any]]) -> None:
        """Store the revisits that earlier imports could not resolve, unless the files have them themselves."""
        self._run("imports/index_revisits")
        self._connection.executemany(sql("imports/add_waiting"), revisits)
        self._run("imports/drop_waiting")

    def revisits(self) -> Iterator[dict[str, Any]]:
        """Return all revisit records, oldest first."""
        return self._query("imports/revisits")

    def unresolved(self, crawl: int) -> Iterator[dict[str, Any]]:
        """Yield the revisit records of a crawl that found nothing."""
        return self._query("imports/unresolved", crawl=crawl, note=Reason.REVISIT_UNRESOLVED)

    def has_capture(self, domain: str, url: str, time: int) -> bool:
        """Return whether the import has a capture of a URL of that time."""
        return bool(self._scalar("imports/has_capture", domain=domain, url=url, time=time))

    # -- planning ------------------------------------------------------------------------------------------------

    def sort(self) -> None:
        """Put all captures that were read in order of time."""
        self._run("imports/sort")
        self._run("imports/clear_found")

    def times(self) -> Iterator[tuple[str, int, int]]:
        """Yield name, time and number of the captures, sorted by name and time."""
        return iter(self._connection.execute(sql("imports/times")))

    def add_crawls(self, crawls: Iterable[StoredCrawl]) -> None:
        """Add the crawls, and put each capture into its crawl."""
        self._many("imports/add_crawl", crawls)
        self._run("imports/place_in_crawls")

    def index_captures(self) -> None:
        """Create the indexes by crawl, host and URL, which the methods below need."""
        self._run("imports/index_urls")
        self._run("imports/index_cuts")

    def hosts(self, *, all_of_them: bool) -> list[tuple[str, int, int]]:
        """Return host, crawl and first capture of the hosts that have something for the archive, or of all hosts."""
        return list(self._connection.execute(sql("imports/hosts"), {"all": all_of_them}))

    def sightings(self, domain: str, *, gone: bool) -> Iterator[tuple[str, Iterator[tuple[int, int, str]]]]:
        """Yield each URL of a host with its captures: position, crawl, content.

        `gone`: also those that say that there is nothing any more.
        """
        rows = self._connection.execute(sql("imports/sightings"), {"domain": domain, "gone": gone})
        for url, group in groupby(rows, key=itemgetter(0)):
            yield url, ((position, crawl, content) for _, position, crawl, content in group)

    def add_cuts(self, cuts: Iterable[StoredCut]) -> None:
        """Add snapshots of hosts."""
        self._many("imports/add_cut", cuts)

    def place_in_cuts(self, dropped: Iterable[int], note: str) -> None:
        """Put each capture into a snapshot of its host; the dropped ones into none, with a word for crawl.log."""
        self._run("imports/place_in_cuts")
        self._connection.executemany(sql("imports/drop"), ({"id": position, "note": note} for position in dropped))
        self._run("imports/date_cuts")

    # -- publishing ----------------------------------------------------------------------------------------------

    def crawls(self) -> list[StoredCrawl]:
        """Return the crawls in order of time."""
        return [StoredCrawl(**row) for row in self._query("imports/crawls")]

    def cuts(self) -> list[StoredCut]:
        """Return the snapshots of hosts in the order in which they are published."""
        return [StoredCut(**row) for row in self._query("imports/cuts")]

    def ends_of_sources(self) -> dict[int, set[int]]:
        """Return the beginning of a snapshot → the numbers of the files that no later one has a capture of."""
        ends: dict[int, set[int]] = {}
        for source, begin in self._connection.execute(sql("imports/ends_of_sources")):
            ends.setdefault(begin, set()).add(source)
        return ends

    def sources_of(self, cut: StoredCut) -> list[int]:
        """Return the numbers of the files that a snapshot has captures of."""
        rows = self._connection.execute(sql("imports/sources_of_cut"), _of(cut))
        return [source for (source,) in rows]

    def captures_of(self, cut: StoredCut) -> Iterator[StoredCapture]:
        """Yield the captures of a snapshot, those of a URL together and in order of time."""
        return self._captures("imports/captures_of_cut", **_of(cut))

    def captures_of_host(self, cut: StoredCut) -> Iterator[StoredCapture]:
        """Yield the captures of all snapshots that its crawl has of its host, in the same order."""
        return self._captures("imports/captures_of_host", crawl=cut.crawl, domain=cut.domain)

    def set_results(self, cut: StoredCut, rows: Iterable[dict[str, Any]], outcome: str) -> None:
        """Record what became of a snapshot and its captures; `rows` have id, result, note and MIME type."""
        self._connection.executemany(sql("imports/set_result"), rows)
        self._run("imports/repeat_results", **_of(cut))
        self._run("imports/set_outcome", crawl=cut.crawl, domain=cut.domain, number=cut.number, outcome=outcome)

    def outcomes(self, crawl: int) -> list[str]:
        """Return the outcomes of a crawl's snapshots, by host and time."""
        return [row["outcome"] for row in self._query("imports/outcomes", crawl=crawl)]

    def is_published(self, crawl: int) -> bool:
        """Return whether all snapshots of a crawl have their outcome."""
        return not int(self._scalar("imports/left_in_crawl", crawl=crawl))

    def is_known(self, crawl: int) -> bool:
        """Return whether a crawl has snapshots, and the archive had each of them."""
        return not int(self._scalar("imports/news_of_crawl", crawl=crawl))

    def planned_hosts(self) -> list[PlannedHost]:
        """Return what the plan has of each host that is to be published, by crawl and host."""
        return [PlannedHost(**row) for row in self._query("imports/planned_hosts")]

    def untaken(self) -> list[UntakenCount]:
        """Return how many captures and records are in no snapshot, by status and word."""
        return [UntakenCount(**row) for row in self._query("imports/untaken")]

    def crawl_done(self, crawl: int) -> None:
        """Record that a crawl has its report."""
        self._run("imports/crawl_done", number=crawl)

    # -- reports -------------------------------------------------------------------------------------------------

    def counts(self, crawl: int = 0) -> dict[str, int]:
        """Return state → number of captures, of one crawl or of all; also `bytes` and `documents`."""
        rows = list(self._query("imports/counts", crawl=crawl))
        sums = {name: sum(row[name] for row in rows) for name in NO_STATES}
        return {row["state"]: row["urls"] for row in rows} | sums

    def by_status_of(self, crawl: int) -> dict[str, int]:
        """Return status → number of captures of a crawl."""
        return {str(row["status"]): row["urls"] for row in self._query("imports/by_status", crawl=crawl)}

    def by_mime_type_of(self, crawl: int) -> dict[str, int]:
        """Return MIME type → number of archived captures of a crawl."""
        return {row["mime"]: row["documents"] for row in self._query("imports/by_mime_type", crawl=crawl)}

    def log_of(self, crawl: int) -> Iterator[StoredCapture]:
        """Yield all captures and records of a crawl in order of time."""
        return self._captures("imports/log_of_crawl", crawl=crawl)

    def batches_of(self, crawl: int) -> list[int]:
        """Return the numbers of the WARCs in the job's folder that contain documents of a crawl."""
        rows = self._connection.execute(sql("imports/batches_of_crawl"), {"crawl": crawl})
        return [batch for (batch,) in rows]

    def _captures(self, statement: str, **values: Any) -> Iterator[StoredCapture]:
        return (StoredCapture(*row) for row in self._connection.execute(sql(statement), values))


def _of(cut: StoredCut) -> dict[str, Any]:
    return {"crawl": cut.crawl, "domain": cut.domain, "cut": cut.number}
