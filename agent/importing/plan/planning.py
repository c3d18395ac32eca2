"""Plans an import: from the captures of its files to crawls, and to the snapshots of each host. Writes the index.

The plan follows from the files and the options alone. It is written before anything is published, in one transaction,
so that an import that is killed goes on by the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from agent.frontier.importindex import ImportIndex
from agent.frontier.rows import StoredCrawl, StoredCut
from agent.importing.crawls.cutting import HostCuts, Sighting, UrlCaptures, cut
from agent.importing.crawls.grouping import CrawlSpan, group_by_pauses
from agent.importing.crawls.naming import CrawlsBy
from agent.importing.tally import Tally
from agent.policy.vocabulary import Reason
from webarcfs.archive.system.sorting import Sorter

#: Hours without a capture that end a crawl, and snapshots of a host in one crawl, unless options say otherwise.
PAUSE_HOURS, MOST_CUTS = 12, 50
_HOUR = 3600
_WIDTH = 8


@dataclass(frozen=True, slots=True)
class Grouping:
    """The options of an import by which captures become crawls and snapshots; `pause` in seconds."""

    crawls: CrawlsBy = CrawlsBy.AUTO
    pause: int = PAUSE_HOURS * _HOUR
    max_cuts: int = MOST_CUTS


def plan(index: ImportIndex, grouping: Grouping, folder: Path, *, complete: bool) -> list[str]:
    """Write the plan into the index; return a line for each host with more versions than can be kept.

    `folder` receives what is more than memory holds. `complete`: that a page is gone is a version of it.
    """
    index.sort()
    spans = group_by_pauses(index.times(), grouping.pause) or [CrawlSpan("", 0, 0, 0)]
    index.add_crawls(StoredCrawl(number, span.name, span.first, span.last, 0) for number, span in enumerate(spans, 1))
    index.index_captures()
    losses, dropped = Tally(), list[int]()
    for domain, rows in groupby(index.hosts(all_of_them=complete), key=itemgetter(0)):
        host = _Host(index, domain, folder, complete=complete)
        cuts = host.cuts({crawl: first for _, crawl, first in rows}, grouping.max_cuts)
        index.add_cuts(
            StoredCut(crawl, domain, number, begin, 0, number == len(begins), "")
            for crawl, begins in cuts.begins.items()
            for number, begin in enumerate(begins, 1)
        )
        for position, url in cuts.dropped(host.urls()):
            dropped.append(position)
            losses.add(domain, f"a version beyond the {grouping.max_cuts} snapshots of one crawl (--max-cuts)", url)
    index.place_in_cuts(dropped, Reason.MOST_CUTS)
    return losses.lines()


@dataclass(frozen=True, slots=True)
class _Host:
    """A host with its captures in all crawls."""

    index: ImportIndex
    domain: str
    folder: Path
    complete: bool

    def urls(self) -> Iterator[UrlCaptures]:
        for url, rows in self.index.sightings(self.domain, gone=self.complete):
            yield UrlCaptures(url, [Sighting(*row) for row in rows])

    def cuts(self, firsts: Mapping[int, int], most: int) -> HostCuts:
        with ExitStack() as stack:
            return cut(firsts, self.urls, most, lambda rows: _sorted(rows, stack.enter_context(Sorter(self.folder))))


def _sorted(rows: Iterable[tuple[int, int, int]], sorter: Sorter) -> Iterator[tuple[int, int, int]]:
    for numbers in rows:
        sorter.add(b"".join(number.to_bytes(_WIDTH, "big") for number in numbers))
    for row in sorter.rows():
        first, after, crawl = (int.from_bytes(row[at : at + _WIDTH], "big") for at in range(0, 3 * _WIDTH, _WIDTH))
        yield first, after, crawl
