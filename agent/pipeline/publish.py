"""Stage 8, publish: writes new and changed ARCs into git, and updates main atomically (/Cr-14/, /Ar-1.2/, /Ar-8/).

First, without a lock, the objects are written, without a ref. Then, under the domain's lock, the tree is merged with
the current main, the refs are updated by compare and swap, and the feed gets its line. A reader sees all of a crawl or
nothing.

The redirects that a crawl saw are merged into the lists of its domain (`webarcfs.archive.model.url_lists`).

By line: a redirect with the same status and target keeps its line; another one replaces it; a body removes it at once.
A line whose URL is gone is removed as an ARC is: by a complete crawl, if its publication saw the line before, and no
other publication has it. A URL with an ARC has no line: a redirect is held back while the ARC of the very URL is there.

The list of what a crawl met unchanged is written here, too, from the frontier and the tree. An ARC was met if the crawl
had an answer for it with the same bytes, or one that said that it did not change. What the crawl stored has its time in
data.xml; what it did not reach was not met, and is in the tree all the same. A copy that is imported meets nothing that
the archive has.

Which ARCs a crawl removes, and whether it may remove any, is decided here (/Cr-14.2/).

An ARC is removed if the publication's last complete crawl saw it, this crawl did not see it, and no other publication
on the domain contains it. A crawl that found much less than the last one removes nothing; nor does an incomplete one.
Each domain is judged for itself. One that only has resources of pages may lose most of them: pages change what they
need.

The part of a domain's tree that a publication saw, the tree behind refs/publications, is made here, too. Folders that
the publication saw completely are the tree objects of main. So the only publication of a host costs no object, and one
that saw a part costs the folders above that part.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from agent.crawl.frontier import SHOWED_SECRETS, FrontierUrl, MetAnswer
from agent.crawl.vocabulary import (
    ARCHIVED,
    GONE,
    NOT_MODIFIED,
    TOO_FEW,
    WHOLE,
    LinkKind,
    Reason,
    Result,
    UrlState,
    is_error_page,
    source_in,
)
from agent.pipeline.domain_run import Document, DomainRun, TreeReader
from webarcfs.archive.additions.commit_additions import commit_additions, fold_in
from webarcfs.archive.additions.placement import additions_since
from webarcfs.archive.config import directory
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import MAIN, PUBLICATIONS, Commit, RefUpdate, Repository, TreeEntry, is_arc
from webarcfs.archive.git.writing import FILE, FOLDER, FastImport, Rewriting
from webarcfs.archive.history import redirect_lists, rendered_forms, sequence
from webarcfs.archive.history.redirect_lists import arcs_in_order, place_in_order
from webarcfs.archive.history.rendered_forms import RenderedForm
from webarcfs.archive.history.versions import arcs, leads_to_arcs, only_resources
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, is_reserved, places, second_name
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import COMMITTER, COPIES, CrawlMessage, MetaData, parse_time, utc
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
from webarcfs.archive.system import files, locks
from webarcfs.archive.system.files import Sorter, blob_id

# == redirects ========================================================================================================


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


# == seen tree ========================================================================================================


_NOTES = "webarc-seen.json"
_AT_ONCE = 1000
#: Commits among which a publication's last complete crawl is looked for.
_LOOKED_BACK = 1000


def subset(store: Repository, tree: str, arcs: Iterator[tuple[str, bool]], redirects: TreeEntry | None = None) -> str:
    """Write the tree that contains only these ARCs of `tree`, and the lists of `redirects`; return its id.

    `arcs` yields (path, whether its folder contains folders), children directly after their folder. ARCs that are not
    in `tree` are ignored.
    """
    cursor = _Cursor(arcs)
    return _subset(store, tree, "", False, cursor, redirects) or store.write_tree([])


@dataclass(frozen=True, slots=True)
class SeenTree:
    """The part of a tree that a publication saw, and its number of ARCs."""

    tree: str
    arcs: int


def seen_part(
    store: Repository,
    publication: str,
    tree: str,
    names: Iterable[str],
    arcs: Callable[[], Iterator[tuple[str, bool]]],
    *,
    redirects: TreeEntry | None = None,
) -> SeenTree:
    """Return the part of `tree` that `publication` saw: the ARCs `names`, each once, in any order; the rest as above.

    The same ARCs of the same tree give the same part, so the last result is stored in the repository, in a file that
    may be lost. For an unchanged site no tree is read. `names` in another order only lose this saving.
    """
    lists = redirects.oid if redirects is not None else ""
    digest, count, left = hashlib.sha256(f"{tree}{lists}".encode()), 0, iter(names)
    while some := list(islice(left, _AT_ONCE)):
        digest.update(os.fsencode("\0".join(some)) + b"\0")
        count += len(some)
    question = digest.hexdigest()
    notes = _notes(store)
    noted = notes.get(publication)
    if noted == [question, store.ref(PUBLICATIONS + publication)]:
        return SeenTree(noted[1], count)
    part = subset(store, tree, arcs(), redirects)
    with suppress(OSError):  # it only saves time
        files.write_json(store.path / _NOTES, notes | {publication: [question, part]}, durable=False)
    return SeenTree(part, count)


@dataclass(frozen=True, slots=True)
class CrawlBefore:
    """The publication's crawl before this one: the tree that it saw, None where that is not known or there is none.

    `is_newest`: no other publication was crawled since. `is_whole`: it saw all of its state.
    """

    tree: str | None = None
    is_newest: bool = False
    is_whole: bool = False


def crawl_before(
    store: Repository, base: Commit | None, publication: str, *, only_complete: bool = False
) -> CrawlBefore:
    """What a publication saw in its newest crawl at or below the state `base`, in the newest complete one if wanted.

    The commits of layout 1 do not say it: of those it is the whole state where no other publication ever published on
    the domain, else the tree behind refs/publications.
    """
    history = (commit for commit in store.history(base.oid if base else None) if commit.message.is_crawl)
    is_newest = True
    for commit in history:
        if commit.message.publication != publication:
            is_newest = False
        elif only_complete and not commit.message.complete:
            continue
        elif commit.message.job:
            return CrawlBefore(commit.message.seen or commit.tree, is_newest, not commit.message.seen)
        elif is_newest and all(older.message.publication == publication for older in history):
            return CrawlBefore(commit.tree, is_newest, True)
        else:
            return CrawlBefore(store.ref(PUBLICATIONS + publication), is_newest, False)
    return CrawlBefore()


def _notes(store: Repository) -> dict[str, Any]:
    try:
        return files.read_json(store.path / _NOTES) or {}
    except (Damaged, OSError):
        return {}


class _Cursor:
    """The next ARC of an iterator."""

    def __init__(self, arcs: Iterator[tuple[str, bool]]) -> None:
        self._arcs = arcs
        self.path: str | None = None
        self.nested = False
        self.advance()

    def advance(self) -> None:
        self.path, self.nested = next(self._arcs, (None, False))

    def inside(self, prefix: str) -> bool:
        """Return whether the next ARC is below `prefix` (which ends in `/`, or is empty)."""
        return self.path is not None and self.path.startswith(prefix)


def _subset(  # noqa: PLR0917 # a recursion
    store: Repository, tree: str, prefix: str, is_seen_arc: bool, cursor: _Cursor, redirects: TreeEntry | None = None
) -> str | None:
    """Return the seen part of the folder `prefix`, with `redirects`; None if nothing in it was seen."""
    whole = store.names(tree)
    part, same = _Part(), True
    if is_seen_arc:
        for child in store.each(tree):
            if not child.is_tree or not leads_to_arcs(store, child.oid):
                part.add(child)
    if redirects is not None:
        part.add(redirects)
        same = whole.find(REDIRECTS) == redirects
    while cursor.inside(prefix):
        name = str(cursor.path)[len(prefix) :].partition("/")[0]
        entry = whole.find(name)
        inner = _child(store, entry, f"{prefix}{name}", cursor)
        if inner is not None:
            part.add(TreeEntry(name, inner, True))
            same = same and entry is not None and entry.oid == inner
    if same and len(part) == len(whole):
        return tree
    return store.write_lines(part.lines()) if len(part) else None


class _Part:
    """The entries of a folder that are kept; there may be hundreds of thousands."""

    def __init__(self) -> None:
        self._rows: list[bytes] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, entry: TreeEntry) -> None:
        """Add an entry; each name once."""
        # git's order: folders are sorted as if their names ended in a slash. No name contains a zero byte.
        name = os.fsencode(entry.name)
        self._rows.append(b"%s%s\0%s" % (name, b"/" if entry.is_tree else b"", bytes.fromhex(entry.oid)))

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of git's tree object, in its order."""
        self._rows.sort()
        for row in self._rows:
            name, _, oid = row.partition(b"\0")
            yield b"%s %s\0%s" % ((FOLDER, name[:-1], oid) if name.endswith(b"/") else (FILE, name, oid))


def _child(store: Repository, entry: TreeEntry | None, path: str, cursor: _Cursor) -> str | None:
    """Return the seen part of one folder; move the cursor past all ARCs in it."""
    is_arc = cursor.path == path
    nested = cursor.nested
    if is_arc:
        cursor.advance()
    inner = f"{path}/"
    if entry is None or not entry.is_tree:
        while cursor.inside(inner):
            cursor.advance()
        return None
    if is_arc and not nested and not cursor.inside(inner):
        return entry.oid
    return _subset(store, entry.oid, inner, is_arc, cursor)


# == removal ==========================================================================================================


@dataclass(frozen=True, slots=True)
class RemovalVerdict:
    """The ARCs that a complete crawl may remove. `complete` is false if too little was found, with the `reason`."""

    complete: bool
    removed: list[str] = field(default_factory=list)
    reason: str = ""


def removed_arcs(
    run: DomainRun, last: str | None, seen: SeenTree, fetched: int, listed: Iterable[str] = ()
) -> RemovalVerdict:
    """Return the verdict on a crawl that saw `seen`, of which it fetched `fetched` ARCs, and saw `last` before.

    `listed` are ARCs that are gone as well, and are not in `last`, since the crawl before knew them by sitemaps alone.
    """
    store = run.store
    if last is None:
        return RemovalVerdict(True)
    gone, new = _compare(store, last, seen.tree)
    # The number of ARCs in the last complete crawl: this crawl's, minus the new, plus the gone. No tree is walked.
    before = seen.arcs - new + len(gone)
    is_too_few = fetched < run.job.settings.min_share * before and not run.job.accept_shrink
    # A domain that had pages, and of which only an image is needed now, is one whose links broke.
    if is_too_few and not (run.is_resource and had_no_pages(store, run.base, run.job.publication.name, last)):
        reason = (
            f"{TOO_FEW} {fetched} of the {before} ARCs that the last complete crawl saw; nothing was removed "
            f"(--accept-shrink accepts it)"
        )
        return RemovalVerdict(False, reason=reason)
    held = store.refs(PUBLICATIONS).items()
    others = [TreeReader(store, oid) for name, oid in held if name != run.job.publication.name]
    arcs_gone = dict.fromkeys([*gone, *listed])
    return RemovalVerdict(True, [arc for arc in arcs_gone if not any(_holds(other, arc) for other in others)])


def had_no_pages(store: Repository, base: Commit | None, publication: str, tree: str) -> bool:
    """Return whether a publication's last complete crawl at or below `base`, which saw `tree`, had no page of a domain.

    Another publication may have made pages of the documents since; then its commit tells.
    """
    if only_resources(store, tree):
        return True
    commits = islice(store.history(base.oid if base else None), _LOOKED_BACK)
    own = (commit.message for commit in commits if commit.message.is_crawl and commit.message.complete)
    last = next((message for message in own if message.publication == publication), None)
    return last is not None and not last.has_pages


def without(store: Repository, tree: str, arcs: list[str]) -> str:
    """Return `tree` without the files and additions of these ARCs; ARCs inside them stay."""
    if not arcs:
        return tree
    shelf = TreeReader(store, tree)
    with store.rewriting(tree) as left:
        for arc in arcs:
            for path in own_paths(store, shelf, arc):
                left.remove(path)
        return left.finish()


def _compare(store: Repository, last: str, seen: str) -> tuple[list[str], int]:
    """Return the ARCs of `last` that are not in `seen`, and the number of ARCs in `seen` that are not in `last`."""
    gone, new = [], 0
    for difference in store.differences(last, seen):
        folder, _, name = difference.path.rpartition("/")
        if name != DATA_XML:
            continue
        if difference.new is None:
            gone.append(folder)
        elif difference.old is None:
            new += 1
    return gone, new


def _holds(held: TreeReader, arc: str) -> bool:
    entry = held.find(f"{arc}/{DATA_XML}")
    return entry is not None and not entry.is_tree


def own_files(store: Repository, shelf: TreeReader, arc: str) -> Iterator[tuple[str, str]]:
    """Path and blob of each file of an ARC, also in folders of additions; not of the ARCs inside it."""
    for entry in (shelf.folder(arc) or {}).values():
        path = f"{arc}/{entry.name}"
        if not entry.is_tree:
            yield path, entry.oid
        elif not leads_to_arcs(store, entry.oid):
            yield from store.files(entry.oid, path)


def own_paths(store: Repository, shelf: TreeReader, arc: str) -> Iterator[str]:
    """Yield the files of an ARC, and its folders without other ARCs inside."""
    for entry in (shelf.folder(arc) or {}).values():
        if not entry.is_tree or not leads_to_arcs(store, entry.oid):
            yield f"{arc}/{entry.name}"


# == publish ==========================================================================================================


_log = logging.getLogger(__name__)
#: Number of checked folders that are remembered: documents of a folder mostly follow each other.
_FOLDERS_KEPT = 10_000
#: Why nothing was removed, by whether the snapshot is older than the newest state.
_INCOMPLETE = {False: "crawl incomplete", True: "older than what is there, which stays the newest state"}


@dataclass(frozen=True, slots=True)
class Published:
    """The result of publishing one domain: the crawl's commit, and whether it was complete and could remove ARCs.

    `shared` is the commitTag of an earlier crawl whose commit it is, where nothing changed; else empty.
    `met` is for the index of this process.
    """

    commit: str
    complete: bool
    reason: str = ""
    shared: str = ""
    met: MetAtHand = field(default_factory=lambda: MetAtHand(None))


class Publisher:
    """Writes the documents of one domain; `finish` publishes them. A context manager; without `finish` it discards."""

    def __init__(self, run: DomainRun) -> None:
        self._run = run
        self._importer: FastImport | None = None
        self._forms = _RenderedForms(run)
        #: Error pages that were seen, and those of them whose ARC held none before.
        self._errors, self._new_errors = 0, 0
        #: Copies that were stored.
        self._copies = 0
        #: Whether stored headers may have secrets: of this crawl, or of the one that an import takes from an export.
        self._has_secrets = run.job.publication.has_secrets or run.job.frontier.get(SHOWED_SECRETS) is True
        self._roomy: set[str] = set()
        #: ARCs that stay although the crawl did not see them: the one before knew them by sitemaps alone.
        self._held_listed: list[str] = []
        #: Those of them of which the server says that they are gone.
        self._gone_listed: list[str] = []

    def __enter__(self) -> Publisher:
        # The lock protects unfinished packs of mounts that commit additions.
        with locks.exclusive(self._run.job.archive.committing_lock(self._run.domain)):
            self._run.store.drop_scratch()
        with self._run.job.frontier.changes():
            self._run.job.frontier.clear_results(self._run.domain)
            self._run.job.frontier.clear_moves(self._run.domain)
        return self

    def __exit__(self, *exc: object) -> None:
        self._forms.close()
        if self._importer is not None:
            self._importer.__exit__(*exc)

    def publish(self, documents: Iterator[Document], run: DomainRun) -> Iterator[Document]:
        """Yield all documents, after passing the new and changed ones to git's importer."""
        for document in documents:
            if is_error_page(document.status):
                self._errors += 1
                self._new_errors += not document.was_error
            if document.unchanged:
                run.arcs["unchanged"] += 1
                if document.nested:  # `rest_unchanged` sets the result of the others
                    run.note(document.row, Result.UNCHANGED, nested=True)
            else:
                result = self._store(document)
                self._copies += document.source in COPIES
                self._has_secrets |= document.has_secrets
                note = ""
                if document.becomes_page:  # a version of its own, for the role alone: the document did not change
                    result, note = Result.UNCHANGED, Reason.BECAME_PAGE
                run.arcs[result] += 1
                run.note(document.row, result, document.mime_type, note, nested=document.nested)
            yield document
        self._count_not_modified()
        run.flush()
        with run.job.frontier.changes():
            run.job.frontier.rest_unchanged(run.domain)

    def finish(self) -> Published:
        """Publish the documents and redirects, and remove the ARCs that the crawl may remove."""
        run = self._run
        tree = self._imported_tree()
        complete, reason, removed = run.complete, "" if run.complete else _INCOMPLETE[run.older], []
        seen_before = self._seen_last()
        if run.complete:
            self._hold_unseen(seen_before)
            # A page that became an error page was not found; an error page that was one before is as it was.
            count = run.arcs["added"] + run.arcs["changed"] + run.arcs["unchanged"] - self._new_errors
            count += len(self._earlier())
            seen = self._seen_part(tree, seen_before)
            # One that is gone at one URL may have been met at another URL of its place.
            listed = [arc for arc in self._gone_listed if not run.job.frontier.has_body(run.domain, arc)]
            verdict, seen_tree = removed_arcs(run, seen_before, seen, count, listed), seen.tree
            complete, reason, removed = verdict.complete, verdict.reason, verdict.removed
        if not complete:
            tree = self._with_pages_for_errors(tree)
            removed = [] if run.job.cut is None else list(self._redirected(tree))
            tree = without(run.store, tree, removed)
            seen_tree, seen_before = self._seen_with_the_one_before(tree)
        else:
            tree = without(run.store, tree, removed)
        run.arcs["removed"] = len(removed)
        merged = merge_redirects(run, tree, seen_tree, seen_before, complete=complete)
        if (earlier := self._unchanged(merged.tree, merged.seen)) is not None:
            return Published(earlier.oid, complete, reason, shared=str(earlier.message.tag))
        at_hand = MetAtHand()
        met = run.store.write_blob(met_list_of(run, merged.seen, merged.met, at_hand))
        return Published(self._swap(merged.tree, merged.seen, met, complete), complete, reason, met=at_hand)

    def _unchanged(self, tree: str, seen: str) -> Commit | None:
        """Return the publication's last crawl of a domain of resources if this one changed nothing; else None.

        Pages of thousands of hosts need something of as many others, which seldom changes. So it is where nothing but
        the watched feed was asked for: most crawls of a feed find it as it was.
        """
        run, store = self._run, self._run.store
        is_feed_alone = bool(run.job.publication.watch) and not run.job.frontier.has_more(run.domain)
        if not (run.is_resource or is_feed_alone) or run.older or run.base is None or tree != run.base.tree:
            return None
        if store.ref(MAIN) != run.base.oid:
            return None
        if not is_feed_alone and store.ref(PUBLICATIONS + run.job.publication.name) != seen:
            return None
        last = sequence.crawl_commit(store, run.base.oid)
        if last is None or last.message.publication != run.job.publication.name:
            return None
        return last if last.message.is_held == run.job.is_held else None

    def _count_not_modified(self) -> None:
        """Count the documents that a server did not send again. If one is gone meanwhile, the crawl is not complete."""
        run = self._run
        for row, url, arc in run.job.frontier.not_modified(run.domain):
            second = second_name(arc, url)
            if run.shelf.find(f"{second}/{DATA_XML}") is not None:
                run.move(row, second)
                run.arcs["unchanged"] += 1
            elif run.shelf.find(f"{arc}/{DATA_XML}") is not None:
                run.arcs["unchanged"] += 1
            else:
                _log.warning("%s: the server said that it is unchanged, and it was removed meanwhile", url)
                run.complete = False

    # -- objects -------------------------------------------------------------------------------------------------

    def _store(self, document: Document) -> str:
        importer = self._open_importer()
        stored = document.stored or ()
        was_arc = is_arc(stored)
        self._make_room(importer, document.arc)
        for entry in stored:
            self._remove_old(importer, f"{document.arc}/{entry.name}", entry)
        importer.put_stream(f"{document.arc}/{document.data_name}", document.body.size, document.body.chunks())
        importer.put(f"{document.arc}/{DATA_XML}", document.data_xml)
        importer.put(f"{document.arc}/{HEADERS}", document.head.raw)
        if document.rendered is not None:
            self._forms.put(importer, document.rendered)
        return Result.CHANGED if was_arc else Result.ADDED

    def _remove_old(self, importer: FastImport, path: str, entry: TreeEntry) -> None:
        """Remove an entry of a replaced ARC: its files and additions are removed, the ARCs inside it stay."""
        if entry.is_tree and leads_to_arcs(self._run.store, entry.oid):
            return
        importer.remove(path)
        if entry.is_tree or not is_reserved(entry.name):
            _log.info("/%s/%s: the addition went with the old version of its ARC", self._run.domain, path)

    def _make_room(self, importer: FastImport, arc: str) -> None:
        """Remove additions whose names a crawled page needs, for its ARC or for a folder above it (section 3).

        Only entries of the base tree are removed, so checking a folder twice loses nothing.
        """
        if self._run.base is None:
            return
        parts = arc.split("/")
        for depth in range(1, len(parts)):
            path = "/".join(parts[:depth])
            if path not in self._roomy:
                if len(self._roomy) >= _FOLDERS_KEPT:
                    self._roomy.clear()
                self._roomy.add(path)
                self._clear(importer, path, own=False)
        self._clear(importer, arc, own=True)

    def _clear(self, importer: FastImport, path: str, *, own: bool) -> None:
        entry = self._run.shelf.find(path)
        if entry is None or (entry.is_tree and own):
            return  # an ARC's own folder is replaced by _remove_old
        names = [""]
        if entry.is_tree and leads_to_arcs(self._run.store, entry.oid):
            inner = self._run.store.entries(entry.oid)
            names = [] if is_arc(inner) else [f"/{child.name}" for child in inner if not child.is_tree]
        for name in names:
            importer.remove(path + name)
            _log.warning("/%s/%s%s: the addition went, its place is needed by a page", self._run.domain, path, name)

    def _open_importer(self) -> FastImport:
        if self._importer is None:
            base = self._run.base
            self._importer = self._run.store.importer(base.tree if base else None)
        return self._importer

    def _imported_tree(self) -> str:
        run = self._run
        if self._importer is not None:
            return self._importer.finish()
        return run.base.tree if run.base is not None else run.store.write_tree([])

    # -- what stays -------------------------------------------------------------------------------------------

    def _seen_last(self) -> str | None:
        """Return the tree that the publication saw last in a complete crawl, or in the snapshot before of this one."""
        run = self._run
        name = run.job.publication.name
        if run.job.cut is not None and run.job.cut.number > 1:
            before = crawl_before(run.store, run.base, name).tree
            if before is not None:
                return before
        return run.store.ref(PUBLICATIONS + name)

    def _earlier(self) -> list[str]:
        """Return the ARCs that the crawl saw in its earlier snapshots of the domain, and not again."""
        urls = () if self._run.job.cut is None else self._run.job.cut.earlier
        earlier_arcs = (next((arc for arc in places(url) if self._is_in_base(arc)), None) for url in urls)
        return [arc for arc in earlier_arcs if arc is not None]

    def _is_in_base(self, arc: str) -> bool:
        return self._run.shelf.find(f"{arc}/{DATA_XML}") is not None

    def _hold_unseen(self, last: str | None) -> None:
        """Keep the last seen ARCs of pages that timed out, failed or were refused, and those seen before."""
        run = self._run
        held = list(self._earlier())
        if last is not None:
            shelf = TreeReader(run.store, last)
            self._take_listed(last)
            held += self._held_listed
            unanswered = (arc for url in run.job.frontier.unanswered(run.domain) for arc in places(url))
            held += [arc for arc in unanswered if shelf.find(f"{arc}/{DATA_XML}") is not None]
        with run.job.frontier.changes():
            run.job.frontier.hold(run.domain, held)

    def _take_listed(self, last: str) -> None:
        """Find the ARCs that the publication's last complete crawl knew by sitemaps alone: they stay unless gone.

        The tree behind refs/publications, `last`, is without them (`_without_listed`).
        """
        run = self._run
        if run.base is None or not run.job.settings.sitemaps:
            return
        before = crawl_before(run.store, run.base, run.job.publication.name, only_complete=True).tree
        if before is None or before == last:
            return
        for difference in run.store.differences(before, last):
            arc, _, name = difference.path.rpartition("/")
            if name != DATA_XML or difference.new is not None:
                continue
            entry = run.shelf.find(difference.path)
            if entry is None:
                continue
            row = run.job.frontier.by_url(data_xml.metadata(run.store.read(entry.oid)).url)
            (self._gone_listed if row is not None and row.status in GONE else self._held_listed).append(arc)

    def _without_listed(self, seen_tree: str) -> str:
        """Return what the publication saw without the ARCs that it knows by sitemaps alone.

        A later crawl removes what is in the tree behind refs/publications and was not seen again.
        """
        run = self._run
        listed = [*self._held_listed, *run.job.frontier.listed_arcs(run.domain)]
        shelf = TreeReader(run.store, seen_tree)
        return without(run.store, seen_tree, [arc for arc in listed if shelf.find(f"{arc}/{DATA_XML}") is not None])

    def _redirected(self, tree: str) -> Iterator[str]:
        """Yield the ARCs of URLs that redirect in this import. In a crawl only a complete one ends them."""
        run, shelf = self._run, TreeReader(self._run.store, tree)
        for _, url, *_, note in run.job.frontier.redirects(run.domain):
            for arc in places(url):
                entry = shelf.find(f"{arc}/{DATA_XML}")
                if entry is None or not entry.is_document or run.job.frontier.has_body(run.domain, arc):
                    continue
                stored = data_xml.metadata(run.store.read(entry.oid))
                if stored.url == url and (stored.source in COPIES or source_in(note) not in COPIES):
                    yield arc

    def _with_pages_for_errors(self, tree: str) -> str:
        """The tree with what error pages took the place of, a page or a redirect: an incomplete crawl ends neither."""
        run, frontier = self._run, self._run.job.frontier
        if run.base is None or not self._new_errors:
            return tree
        held = 0
        now, before = TreeReader(run.store, tree), TreeReader(run.store, run.base.tree)
        with run.store.rewriting(tree) as rewriting:
            for row, url, arc, result in frontier.new_errors(run.domain):
                if not self._replaces(before, url, arc):
                    continue
                for path in own_paths(run.store, now, arc):
                    rewriting.remove(path)
                for path, blob in own_files(run.store, before, arc):
                    rewriting.put(path, blob)
                run.note(row, Result.UNCHANGED, note=Reason.ERROR_HELD)
                run.arcs[result] -= 1
                held += 1
            run.flush()
            run.arcs["unchanged"] += held
            return rewriting.finish() if held else tree

    def _replaces(self, before: TreeReader, url: str, arc: str) -> bool:
        """Return whether an error page replaced a page at `arc`, or the redirect of its URL."""
        entry = before.find(f"{arc}/{DATA_XML}")
        if entry is None:
            return url in redirect_lists.urls(self._run.store, before.find(place_of(url)))
        return not is_error_page(data_xml.metadata(self._run.store.read(entry.oid)).status)

    # -- what the publication saw ----------------------------------------------------------------------------

    def _seen_part(self, tree: str, before: str | None) -> SeenTree:
        """The ARCs of `tree` that the publication saw now, with the redirects that it saw `before`."""
        run, frontier = self._run, self._run.job.frontier
        names, arcs_seen = frontier.seen_names(run.domain), lambda: frontier.seen(run.domain)
        redirects = None if before is None else run.store.find(before, REDIRECTS)
        return seen_part(run.store, run.job.publication.name, tree, names, arcs_seen, redirects=redirects)

    def _seen_with_the_one_before(self, tree: str) -> tuple[str, str | None]:
        """What an incomplete crawl saw of `tree` with what its publication's crawl before it had; and the latter."""
        run, frontier = self._run, self._run.job.frontier
        before = crawl_before(run.store, run.base, run.job.publication.name)
        if run.base is None or (before.is_newest and before.is_whole):
            return tree, before.tree
        if before.tree is not None:
            with frontier.changes():
                frontier.hold(run.domain, (arc.path for arc in arcs(run.store, before.tree)))
        return self._seen_part(tree, before.tree).tree, before.tree

    # -- the swap ------------------------------------------------------------------------------------------------

    def _swap(self, tree: str, seen_tree: str, met: str, complete: bool) -> str:
        """Publish the state `tree`, of which the publication saw `seen_tree`, and met unchanged what `met` lists."""
        run, store = self._run, self._run.store
        archive = run.job.archive
        commit_additions(archive, run.domain)  # so that little work is left under the lock
        last_seen = self._without_listed(seen_tree) if complete else None
        forms = self._forms.updates()
        with locks.Turnstile(archive.lock(run.domain)).exclusive(), sequence.publication_slot(archive, run.tag) as turn:
            # Additions confirmed until now belong to the previous state: a mount confirms under the same lock.
            fold_in(archive, store, run.domain, following=None if run.older else tree)
            directory.raise_layout(archive)
            seen = "" if seen_tree == tree else seen_tree
            main = store.ref(MAIN)
            parent = run.parent(main)
            if not run.older and run.base is not None and main is not None and main != run.base.oid:
                tree = additions_since(store, run.base.tree, store.commit(main).tree, tree)
            cut = run.job.cut
            message = CrawlMessage(
                run.tag,
                run.job.publication.name,
                complete,
                turn.number,
                sources=() if cut is None else cut.sources,
                ended=() if cut is None else cut.ended,
                imported_by="" if cut is None else cut.job,
                job=run.job.crawl,
                held=run.job.is_held,
                seen=seen,
                errors=run.errors or self._errors > 0,
                copies=run.copies or self._copies > 0,
                resources="alone" if run.is_resource else "kept" if run.resources else "",
                secrets=self._has_secrets,
                met=met,
                patch="" if run.job.patch is None else run.job.name,
            )
            seconds = int((run.job.begun if cut is None else run.tag.crawl_time).timestamp())
            commit = store.write_commit(tree, [parent] if parent else [], str(message), COMMITTER, seconds)
            updates = self._ref_updates(commit, main, seen, last_seen)
            store.update_refs([*updates, *forms, RefUpdate(run.tag.met_ref, met, store.ref(run.tag.met_ref))])
            turn.publish()
        return commit

    def _ref_updates(self, commit: str, main: str | None, seen: str, last_seen: str | None) -> list[RefUpdate]:
        """What moves: `seen` is the tree for refs/seen, `last_seen` what a complete crawl saw."""
        store = self._run.store
        updates = [RefUpdate(self._run.tag.ref, commit, None)]
        if seen:
            updates.append(RefUpdate(self._run.tag.seen_ref, seen, None))
        if not self._run.older:
            updates.append(RefUpdate(MAIN, commit, main))
        publication = PUBLICATIONS + self._run.job.publication.name
        last = store.ref(publication)
        if last_seen is not None and last_seen != last:
            updates.append(RefUpdate(publication, last_seen, last))
        return updates


# == rendered forms ===================================================================================================


class _RenderedForms:
    """The forms that the new versions of a crawl have; their ref moves with main."""

    def __init__(self, run: DomainRun) -> None:
        self._store = run.store
        self._stack = ExitStack()
        self._rewriting: Rewriting | None = None
        self._before: str | None = None

    def put(self, importer: FastImport, form: RenderedForm) -> None:
        """Store a form."""
        if self._rewriting is None:
            self._before = self._store.ref(rendered_forms.REF)
            self._rewriting = self._stack.enter_context(self._store.rewriting(self._before))
        blobs = {name: importer.store(name, len(content), [content]) for name, content in form.files().items()}
        tree = rendered_forms.tree_id(blobs)
        for name, blob in blobs.items():
            self._rewriting.put(rendered_forms.path_of(tree, name), blob)

    def updates(self) -> list[RefUpdate]:
        """Return what moves; the blobs must be in the repository."""
        if self._rewriting is None:
            return []
        return [RefUpdate(rendered_forms.REF, self._rewriting.finish(), self._before)]

    def close(self) -> None:
        """Release what is held."""
        self._stack.close()
