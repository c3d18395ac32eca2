"""Merges the redirects that a crawl saw into the lists of its domain (`webarcfs.archive.model.url_lists`).

By line: a redirect with the same status and target keeps its line; another one replaces it; a body removes it at once.
A line whose URL is gone is removed as an ARC is: by a complete crawl, if its publication saw the line before, and no
other publication has it. A URL with an ARC has no line: a redirect is held back while the ARC of the very URL is there.

The list of what a crawl met unchanged is written here, too, from the frontier and the tree. An ARC was met if the crawl
had an answer for it with the same bytes, or one that said that it did not change. What the crawl stored has its time in
data.xml; what it did not reach was not met, and is in the tree all the same. A copy that is imported meets nothing that
the archive has.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import groupby, islice
from operator import itemgetter

from agent.crawl.frontier import FrontierUrl, MetAnswer
from agent.crawl.vocabulary import ARCHIVED, GONE, NOT_MODIFIED, WHOLE, LinkKind, Reason, UrlState, source_in
from agent.pipeline.domain_run import DomainRun, TreeReader
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import PUBLICATIONS, Repository, TreeEntry
from webarcfs.archive.git.writing import Rewriting
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.history.redirect_lists import arcs_in_order, place_in_order
from webarcfs.archive.model.arc_paths import DATA_XML, places
from webarcfs.archive.model.metadata import COPIES, MetaData, parse_time, utc
from webarcfs.archive.model.url_lists import (
    MOST_LINES,
    REDIRECTS,
    STATUSES,
    ColumnWriter,
    Met,
    MetColumn,
    MetList,
    Redirect,
    is_too_long,
    place_of,
    spelling_of,
    write_list,
    write_met_list,
)
from webarcfs.archive.system.files import Sorter, blob_id

# == redirects ========================================================================================================


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MergedRedirects:
    """The domain's new tree, and the part that the publication saw, both with their lists; when it met what it saw."""

    tree: str
    seen: str
    met: MetColumn


class _Fate(Enum):
    """What the crawl says of a URL that had a redirect, and has none now."""

    UNSEEN = auto()
    BODY = auto()
    GONE = auto()
    UNANSWERED = auto()


@dataclass(frozen=True, slots=True)
class _SeenRedirect:
    """A redirect that the crawl saw, and its row in the frontier; `is_copy`: an imported copy says so."""

    redirect: Redirect
    row: int
    is_copy: bool = False


@dataclass
class _List:
    """The lines of one list: those of the state, those that the publication saw, and what the crawl adds."""

    place: str
    old: dict[str, Redirect]
    seen_before: frozenset[str]
    kept: list[Redirect] = field(default_factory=list)
    seen: list[Redirect] = field(default_factory=list)
    met: dict[str, Met] = field(default_factory=dict)

    def keep(self, redirect: Redirect, *, seen: bool) -> None:
        self.kept.append(redirect)
        if seen:
            self.seen.append(redirect)


def merge_redirects(
    run: DomainRun, tree: str, seen: str, seen_before: str | None, *, complete: bool
) -> MergedRedirects:
    """Return `tree` and its part `seen` with the redirects of the crawl.

    `tree` comes with the lists of the state before, `seen` with those of `seen_before`, which the publication saw last.
    Only a `complete` crawl removes what is gone.
    """
    return _Merge(run, tree, seen_before, complete=complete).into(tree, seen)


class _Merge:
    def __init__(self, run: DomainRun, tree: str, seen_before: str | None, *, complete: bool) -> None:
        self._run = run
        self._store = run.store
        self._complete = complete
        self._arcs = TreeReader(run.store, tree)
        self._seen_before = TreeReader(run.store, seen_before)
        held = run.store.refs(PUBLICATIONS).items() if complete else ()
        self._others = [TreeReader(run.store, oid) for name, oid in held if name != run.job.publication.name]

    def into(self, tree: str, seen: str) -> MergedRedirects:
        with ExitStack() as stack:
            of_tree, of_seen = (_Lists(self._store, root, stack) for root in (tree, seen))
            met = ColumnWriter()
            for place, seen_redirects in self._places(stack):
                now, before = self._run.shelf.find(place), self._seen_before.find(place)
                if now is not None or before is not None or seen_redirects:
                    lines = self._merged(_list(self._store, place, now, before), seen_redirects)
                    of_tree.put(place, now, lines.kept, (before,))
                    of_seen.put(place, before, lines.seen, (now, of_tree.last))
                    for redirect in sorted(lines.seen):
                        met.add(redirect.url, lines.met.get(redirect.url))
            self._run.flush()
            if dropped := self._run.redirects["dropped"]:
                _log.warning("%s: %d redirects more than `max_redirects` are not kept", self._run.domain, dropped)
            return MergedRedirects(of_tree.finish(), of_seen.finish(), met.column())

    def _places(self, stack: ExitStack) -> Iterator[tuple[str, list[_SeenRedirect]]]:
        """Yield each list that may change, in order, with the redirects that were found for it.

        Those are the lists of the URLs that the crawl has an answer of, and those that the publication saw before: the
        cost does not depend on the lists of other publications.
        """
        sorter = stack.enter_context(Sorter(self._run.job.folder))
        frontier, domain = self._run.job.frontier, self._run.domain
        for number, row in enumerate(frontier.redirects(domain)):
            if number < self._run.job.settings.max_redirects:
                sorter.add("\t".join([place_of(row[1]), row[1], *map(str, (row[0], *row[2:]))]).encode())
            else:
                self._run.redirects["dropped"] += 1
        stored, seen = self._run.shelf.find(REDIRECTS), self._seen_before.find(REDIRECTS)
        if stored is not None and stored != seen:
            for url in frontier.answered(domain):
                sorter.add(place_of(url).encode())
        groups = groupby((row.decode().split("\t") for row in sorter.rows()), key=itemgetter(0))
        redirects_by_place = ((place, self._bounded(row[1:] for row in rows if len(row) > 1)) for place, rows in groups)
        yield from _joined(redirects_by_place, (place for place, _ in redirect_lists.places(self._store, seen)))

    def _bounded(self, rows: Iterator[list[str]]) -> list[_SeenRedirect]:
        """Return the redirects of a list, as many as it may have: an honest site has two of 100,000 in one."""
        seen_redirects = [_seen_redirect(*row) for row in islice(rows, MOST_LINES)]
        self._run.redirects["dropped"] += sum(1 for _ in rows)
        return seen_redirects

    def _merged(self, lines: _List, seen_redirects: list[_SeenRedirect]) -> _List:
        counts = self._run.redirects
        by_url = {seen_redirect.redirect.url: seen_redirect for seen_redirect in seen_redirects}
        for url, old in lines.old.items():
            now = by_url.pop(url, None)
            if now is None:
                self._without_redirect(lines, old)
            elif old.leads_as(now.redirect):
                lines.keep(old, seen=True)
                if not now.is_copy:
                    lines.met[url] = Met(int(now.redirect.time.timestamp()))
                counts["unchanged"] += 1
            elif self._is_overtaken(old, now.redirect):
                self._run.annotate(now.row, Reason.OLDER)
                lines.keep(old, seen=True)
                counts["unchanged"] += 1
            elif now.is_copy:
                self._run.annotate(now.row, Reason.RESPONSE_HELD)
                lines.keep(old, seen=True)
                counts["unchanged"] += 1
            else:
                lines.keep(now.redirect, seen=True)
                counts["changed"] += 1
        for seen_redirect in by_url.values():
            if len(lines.kept) >= MOST_LINES:
                counts["dropped"] += 1
            elif self._has_arc(seen_redirect.redirect.url):
                self._run.annotate(seen_redirect.row, Reason.REDIRECT_HELD)
                counts["held"] += 1
            else:
                lines.keep(seen_redirect.redirect, seen=True)
                counts["added"] += 1
        return lines

    def _without_redirect(self, lines: _List, old: Redirect) -> None:
        """Keep or remove the line of a URL for which the crawl has no redirect."""
        fate, was_seen = self._fate(old.url), old.url in lines.seen_before
        is_gone_now = self._complete and was_seen and not self._is_held_by_others(lines.place, old.url)
        if fate is _Fate.BODY or (fate in (_Fate.UNSEEN, _Fate.GONE) and is_gone_now):
            self._run.redirects["removed"] += 1
        else:
            stays_seen = was_seen and (fate is _Fate.UNANSWERED or not self._complete)
            lines.keep(old, seen=stays_seen)
            self._run.redirects["unchanged"] += 1

    def _fate(self, url: str) -> _Fate:
        row = self._run.job.frontier.by_url(url)
        if row is None or row.kind == LinkKind.ROBOTS:
            return _Fate.UNSEEN
        if {Reason.ERROR_HELD, Reason.OLDER, Reason.RESPONSE_HELD}.intersection(row.note.split(",")):
            return _Fate.UNANSWERED
        if row.arc and row.result in ARCHIVED:
            return _Fate.BODY
        if row.state == UrlState.DONE and row.status in WHOLE:
            return _Fate.BODY  # the server has a page there, which a filter refused
        return _Fate.GONE if row.status in GONE or _leads_nowhere(row) else _Fate.UNANSWERED

    def _is_overtaken(self, old: Redirect, new: Redirect) -> bool:
        """Return whether a crawl that was published since the job began saw the redirect later."""
        return bool(self._run.later.begun) and new.time < old.time

    def _has_arc(self, url: str) -> bool:
        """Return whether the ARC of this very URL is in the tree, and no other URL of its path had a body."""
        for arc in places(url):
            entry = self._arcs.find(f"{arc}/{DATA_XML}")
            if entry is None or not entry.is_document or self._run.job.frontier.has_body(self._run.domain, arc):
                continue
            if data_xml.metadata(self._store.read(entry.oid)).url == url:
                return True
        return False

    def _is_held_by_others(self, place: str, url: str) -> bool:
        return any(url in redirect_lists.urls(self._store, other.find(place)) for other in self._others)


class _Lists:
    """The lists of one tree, of which those that change are rewritten. `last` is the list that was put last."""

    def __init__(self, store: Repository, tree: str, stack: ExitStack) -> None:
        self._store = store
        self._tree = tree
        self._stack = stack
        self._rewriting: Rewriting | None = None
        self.last: TreeEntry | None = None

    def put(self, place: str, now: TreeEntry | None, lines: list[Redirect], known: Iterable[TreeEntry | None]) -> None:
        """Replace the list `now` by these lines, or remove it; `known` are lists that git may have with these bytes."""
        raw = write_list(lines)
        self.last = TreeEntry(place, blob_id(raw), False) if raw else None
        if self.last is None:
            if now is not None:
                self._open().remove(place)
        elif now is None or now.oid != self.last.oid:
            if any(entry is not None and entry.oid == self.last.oid for entry in known):
                self._open().put(place, self.last.oid)
            else:
                self._open().write(place, raw)

    def _open(self) -> Rewriting:
        if self._rewriting is None:
            self._rewriting = self._stack.enter_context(self._store.rewriting(self._tree))
        return self._rewriting

    def finish(self) -> str:
        return self._tree if self._rewriting is None else self._rewriting.finish()


def _list(store: Repository, place: str, entry: TreeEntry | None, seen: TreeEntry | None) -> _List:
    old = {redirect.url: redirect for redirect in redirect_lists.lines(store, entry, place)}
    is_same = entry is not None and seen is not None and entry.oid == seen.oid
    return _List(place, old, frozenset(old) if is_same else redirect_lists.urls(store, seen))


def _seen_redirect(url: str, row: str, status: str, target: str, captured: str, note: str) -> _SeenRedirect:  # noqa: PLR0917 # a row
    redirect = Redirect(url, int(status), target, utc(parse_time(captured)))
    return _SeenRedirect(redirect, int(row), is_copy=source_in(note) in COPIES)


def _leads_nowhere(row: FrontierUrl) -> bool:
    """Return whether the server redirects to a target that is not kept."""
    is_redirect = row.state == UrlState.DONE and row.status in STATUSES
    return is_redirect and (not row.target or is_too_long(row.target) or is_too_long(row.url))


def _joined(
    seen_redirects: Iterable[tuple[str, list[_SeenRedirect]]], stored: Iterable[str]
) -> Iterator[tuple[str, list[_SeenRedirect]]]:
    """Yield the places of both, in order, each once."""
    left, right = iter(seen_redirects), iter(stored)
    listed, place = next(left, None), next(right, None)
    while listed is not None or place is not None:
        if listed is not None and (place is None or listed[0] <= place):
            place = next(right, None) if listed[0] == place else place
            yield listed
            listed = next(left, None)
        else:
            assert place is not None
            yield place, []
            place = next(right, None)


# == met lists ========================================================================================================


#: ARCs that are kept in memory for the index.
_MOST_AT_HAND = 100_000


@dataclass(slots=True)
class MetAtHand:
    """The ARCs that a crawl met unchanged: the index need not read its tree again. None if they are too many."""

    arcs: list[tuple[str, Met]] | None = field(default_factory=list)

    def add(self, arc: str, met: Met) -> None:
        """Add an ARC, in the order of the tree."""
        if self.arcs is not None:
            self.arcs.append((arc, met))
            if len(self.arcs) > _MOST_AT_HAND:
                self.arcs = None


def met_list_of(run: DomainRun, seen: str, redirects: MetColumn, at_hand: MetAtHand) -> bytes:
    """Return the list of a run: of the tree `seen` by its publication, with what was met of its redirects.

    What was met of its ARCs is added to `at_hand`.
    """
    choice, arcs = _Choice(run, seen), ColumnWriter()
    for arc, answers in _with_answers(run, seen):
        met = choice.of(arc, answers) if answers else None
        arcs.add(arc, met)
        if met is not None:
            at_hand.add(arc, met)
    return write_met_list(MetList(arcs.column(), redirects))


def _with_answers(run: DomainRun, seen: str) -> Iterator[tuple[str, list[MetAnswer]]]:
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

    def of(self, arc: str, answers: Iterable[MetAnswer]) -> Met | None:
        """Return when the ARC was met: of several URLs at its place (`/` and `/index.html`) its own counts first."""
        meetings = [meeting for meeting in answers if not self._is_of_another_version(meeting)]
        if not meetings or all(meeting.is_duplicate for meeting in meetings):
            return None
        if len(meetings) > 1:
            url = self._meta(arc).url
            meetings.sort(key=lambda meeting: (meeting.url != url, meeting.is_duplicate))
        first = meetings[0]
        return Met(int(parse_time(first.captured).timestamp()), spelling_of(first.url))

    def _is_of_another_version(self, answer: MetAnswer) -> bool:
        """Whether "not modified" may have been said of a version that another crawl has replaced meanwhile."""
        later = self._run.later.begun
        return bool(later) and answer.status == NOT_MODIFIED and str(self._meta(answer.arc).commit_tag) in later

    def _meta(self, arc: str) -> MetaData:
        entry = self._shelf.find(f"{arc}/{DATA_XML}")
        assert entry is not None
        return data_xml.metadata(self._run.store.read(entry.oid))
