"""Stage 4, normalise: assigns each document its ARC and the name of its data file (/Cr-8.2/, /Cr-11/).

Two URLs of one crawl may share an ARC (http and https, `/` and `/index.html`). Where they have the same bytes, one ARC
has them, and crawl.log names its URL at the other. Where the bytes differ, both are kept: the ARC's first name stays
with the URL that has it, and each other URL gets a second name, for good. In a new place https has the first name, then
the URL of the directory, then the capture that is older.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from agent.frontier.rows import FrontierUrl
from agent.pipeline.document import Document, replace
from agent.pipeline.domainrun import DomainRun, TreeReader
from agent.policy.vocabulary import LinkKind, Reason, Result, UrlState
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import PUBLICATIONS
from webarcfs.archive.model.arc_paths import DATA_XML, data_name, second_name
from webarcfs.archive.model.redirects import STATUSES


def normalise(documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
    """Yield the documents that have an ARC of their own, with that and the name of its data file."""
    names = _Names(run)
    for document in documents:
        name = data_name(document.url)
        arc = names.arc_of(document, name)
        if isinstance(arc, _Shared):
            run.note(document.row, Result.DUPLICATE, document.mime_type, f"{Reason.SAME_AS}{arc.url}")
            document.body.close()
            continue
        if arc != document.arc:
            run.move(document.row, arc)
            run.annotate(document.row, f"{Reason.DIFFERS_FROM}{names.holder_of(document.arc)}")
        yield replace(document, arc=arc, data_name=name)


@dataclass(frozen=True, slots=True)
class _Shared:
    """The URL whose ARC has the same bytes."""

    url: str


class _Names:
    """Which document of a place has its first name, in one run on one domain."""

    def __init__(self, run: DomainRun) -> None:
        self._run = run
        store = run.store
        published = store.refs(PUBLICATIONS)
        own = published.pop(run.job.publication.name, None)
        self._last = TreeReader(store, own) if own else None
        self._others = [TreeReader(store, tree) for tree in published.values()]
        rivals = run.job.frontier.rivals(run.domain)
        groups = groupby((row for row in rivals if not self._has_second(row.arc, row.url)), key=lambda row: row.arc)
        self._winners = {arc: self._winner(arc, list(rows)) for arc, rows in groups}

    def arc_of(self, document: Document, name: str) -> str | _Shared:
        """Return the ARC of a document, or whose ARC has its bytes; `name` is that of its data file."""
        first, second = document.arc, second_name(document.arc, document.url)
        if self._has_second(first, document.url):
            return second
        entry = self._run.shelf.find(f"{first}/{name}")
        is_same = entry is not None and entry.oid == document.body.blob
        if first not in self._winners:
            return first if is_same or self._is_free_for(document.url, first) else second
        winner = self._winners[first]
        if winner is None:
            return _Shared(self._holder(first) or document.url) if is_same else second
        if winner.id == document.row:
            return first
        own = self._run.job.frontier.by_url(document.url)
        return _Shared(winner.url) if own is not None and own.digest == winner.digest else second

    def holder_of(self, arc: str) -> str:
        """Return the URL that has a first name from now on; empty if none has it any more."""
        winner = self._winners.get(arc)
        return winner.url if winner is not None else self._holder(arc) or ""

    def _winner(self, arc: str, rows: list[FrontierUrl]) -> FrontierUrl | None:
        """Return which of several captures of a place has its first name; None: an archived one of another URL."""
        holder = self._holder(arc)
        known = next((row for row in rows if row.url == holder), None)
        if known is not None:
            return known
        return None if holder and not self._gives_way(holder, arc) else min(rows, key=_rank, default=None)

    def _has_second(self, arc: str, url: str) -> bool:
        return _has(self._run.shelf, second_name(arc, url))

    def _holder(self, arc: str) -> str | None:
        """Return the URL of the document that has a place; None without one."""
        entry = self._run.shelf.find(f"{arc}/{DATA_XML}")
        if entry is None or not entry.is_document:
            return None
        return data_xml.metadata(self._run.store.read(entry.oid)).url

    def _is_free_for(self, url: str, arc: str) -> bool:
        holder = self._holder(arc)
        return holder is None or holder == url or self._gives_way(holder, arc)

    def _gives_way(self, holder: str, arc: str) -> bool:
        """Return whether the crawl ends the document that has a place: its URL redirects now, or is gone."""
        row = self._run.job.frontier.by_url(holder)
        if row is not None and row.kind != LinkKind.ROBOTS and row.state == UrlState.DONE and row.status in STATUSES:
            return True
        if row is not None or not self._run.complete or self._last is None:
            return False
        return _has(self._last, arc) and not any(_has(other, arc) for other in self._others)


def _has(tree: TreeReader, arc: str) -> bool:
    entry = tree.find(f"{arc}/{DATA_XML}")
    return entry is not None and entry.is_document


def _rank(row: FrontierUrl) -> tuple[bool, bool, str, int]:
    is_folder = row.url.partition("?")[0].endswith("/")
    return not row.url.startswith("https:"), not is_folder, row.captured, row.id
