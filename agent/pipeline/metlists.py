"""The list of what a crawl met unchanged (`webarcfs.archive.model.met_list`), from the frontier and the tree.

An ARC was met if the crawl had an answer for it with the same bytes, or one that said that it did not change. What the
crawl stored has its time in data.xml; what it did not reach was not met, and is in the tree all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from agent.frontier.rows import Meeting
from agent.pipeline.domainrun import DomainRun, TreeReader
from agent.policy.fetchstatus import NOT_MODIFIED
from webarcfs.archive.document import data_xml
from webarcfs.archive.history.met_lists import arcs_in_order, place_in_order
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.met_list import Met, MetColumn, MetList, column, spelling_of, write
from webarcfs.archive.model.metadata import MetaData, parse_time


def met_list_of(run: DomainRun, seen: str, redirects: MetColumn) -> bytes:
    """Return the list of a run: of the tree `seen` by its publication, with what was met of its redirects."""
    choice = _Choice(run, seen)
    rows = ((arc, choice.of(arc, answers)) for arc, answers in _joined(run, seen))
    return write(MetList(column(rows), redirects))


def _joined(run: DomainRun, seen: str) -> Iterator[tuple[str, list[Meeting]]]:
    """Yield each ARC of a tree, in order, with the answers that the crawl had for it unchanged; both are streams."""
    groups = groupby(run.job.frontier.met(run.domain), key=itemgetter(0))
    answered = next(groups, None)
    for arc in arcs_in_order(run.store, seen):
        place = place_in_order(arc)
        while answered is not None and place_in_order(answered[0]) < place:
            answered = next(groups, None)
        if answered is not None and answered[0] == arc:
            yield arc, list(answered[1])
            answered = next(groups, None)
        else:
            yield arc, []


class _Choice:
    """Which of the answers for an ARC says when it was met."""

    def __init__(self, run: DomainRun, seen: str) -> None:
        self._run = run
        self._shelf = TreeReader(run.store, seen)

    def of(self, arc: str, answers: Iterable[Meeting]) -> Met | None:
        """Return when the ARC was met: of several URLs at its place (`/` and `/index.html`) its own counts first."""
        told = [each for each in answers if not self._is_of_another_version(each)]
        if not told or all(each.is_duplicate for each in told):
            return None
        if len(told) > 1:
            url = self._meta(arc).url
            told.sort(key=lambda each: (each.url != url, each.is_duplicate))
        first = told[0]
        return Met(int(parse_time(first.captured).timestamp()), spelling_of(first.url))

    def _is_of_another_version(self, answer: Meeting) -> bool:
        """Whether "not modified" may have been said of a version that another crawl has replaced meanwhile."""
        later = self._run.later.begun
        return bool(later) and answer.status == NOT_MODIFIED and str(self._meta(answer.arc).commit_tag) in later

    def _meta(self, arc: str) -> MetaData:
        entry = self._shelf.find(f"{arc}/{DATA_XML}")
        assert entry is not None
        return data_xml.metadata(self._run.store.read(entry.oid))
