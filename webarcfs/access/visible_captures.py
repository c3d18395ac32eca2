"""What a reader may see of a URL: its captures, and which of them is in force at a time.

A capture is a version of a document or a redirect, as the visible snapshots from `since` up to `until` have it. Its
time, for the reader, is when the server sent it; where the snapshot that stored it is hidden, when the crawl of the
first visible snapshot that contains it met it, else the time of that. What a crawl met unchanged is a capture, too.
What is in force at a time is, of each publication, the newest visible snapshot not later than that, and of these the
newest one that has something at the URL: its redirect, scheme included, else the document of its path.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import groupby
from operator import itemgetter

from webarcfs.access.access_rules import Absent, Answer, Blocked, Closed, Open, Standing, VersionSpan, VisibleSnapshot
from webarcfs.access.gate import KnownGate
from webarcfs.archive.catalogue.record import OWN
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.index.database import NEVER, CaptureIndex, CaptureRow, Meeting, Span, UrlRows
from webarcfs.archive.model.arc_paths import arc_path, second_path, split
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.model.url_lists import Met, spelled
from webarcfs.archive.system import clocks

#: Answers about seen redirects that are remembered.
_REMEMBERED = 4_096
#: Most rows of a URL that are kept while a request is answered.
_ROWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleCapture:
    """A version of a document, or a redirect, that a reader may see.

    `since` is the first visible snapshot that has it, `until` the first later one that has it no more (seconds since
    1970; NEVER). `last` is the last visible snapshot that has it. `captured` is the time of the server's answer, as far
    as the reader may know it. `blob` and `head` are git's ids of the body and of headers.http, `size` its bytes,
    `digest` its SHA-1. A redirect has a `target` and neither body nor type. `surt` is the key of the URL that sorts by
    host. `stored` is the snapshot whose crawl stored it. `is_revisit`: the crawl of `since` met it unchanged, at the
    time `captured`, by this URL. `is_resource`: only pages of other hosts needed it.
    """

    url: str
    path: str
    surt: str
    since: int
    until: int
    last: int
    captured: int
    status: int
    mime_type: str = ""
    title: str = ""
    blob: str = ""
    head: str = ""
    size: int = 0
    digest: bytes = b""
    target: str = ""
    publication: str = ""
    stored: int = 0
    is_revisit: bool = False
    is_resource: bool = False

    @property
    def is_redirect(self) -> bool:
        """Whether it leads elsewhere, and has no body."""
        return bool(self.target)


@dataclass(frozen=True, slots=True)
class VisibleState:
    """What a reader sees of a URL in the state of a snapshot: a capture, or why there is none.

    `answer` is Open with a capture, Closed or Blocked without one; Absent: as if it were not there. `closed` is the
    snapshot that has what is closed.
    """

    seq: int
    answer: Answer
    capture: VisibleCapture | None = None
    closed: int | None = None


def _order(capture: VisibleCapture) -> tuple[int, str, str, int]:
    return capture.captured, capture.url, capture.target, capture.since


class UrlHistory:
    """What a reader may see of one URL, in all visible snapshots of its domain; found when it is asked for."""

    def __init__(
        self,
        url: str,
        states: Callable[[], list[VisibleState]],
        captures: Callable[[UrlHistory], Iterable[VisibleCapture]],
    ) -> None:
        self.url = url
        self._states = states
        self._captures = captures

    @cached_property
    def states(self) -> Sequence[VisibleState]:
        """The state of each visible snapshot, oldest first."""
        return self._states()

    @cached_property
    def captures(self) -> Sequence[VisibleCapture]:
        """The captures that are in force in some of them, and when crawls met them again; oldest first."""
        return sorted(self._captures(self), key=_order)

    def at(self, seq: int) -> VisibleState | None:
        """Return the state in force at a time; before the first snapshot, that of the first. None: no snapshot."""
        place = bisect_right(self.states, seq, key=lambda state: state.seq)
        return self.states[max(place - 1, 0)] if self.states else None

    def nearest(self, seq: int) -> VisibleState | None:
        """Return the state with a capture that is nearest to a time; None without any. Of two the earlier one."""
        shown = [state for state in self.states if state.capture is not None]
        return min(shown, key=lambda state: abs(state.seq - seq), default=None)

    def gone_since(self, seq: int) -> int | None:
        """Return the snapshot that took the URL from what is shown or withheld, if the state `seq` still lacks it."""
        since: int | None = None
        is_there = False
        for state in self.states:
            if state.seq > seq:
                break
            if not isinstance(state.answer, Absent):
                is_there, since = True, None
            elif is_there:
                is_there, since = False, state.seq
        return since

    def beside(self, seq: int) -> tuple[VisibleState | None, VisibleState | None]:
        """Return the last state with a capture before a time, and the first one after it."""
        before = [state for state in self.states if state.capture is not None and state.seq < seq]
        after = [state for state in self.states if state.capture is not None and state.seq > seq]
        return before[-1] if before else None, after[0] if after else None


def _distinct(states: Iterable[VisibleState]) -> Iterator[VisibleCapture]:
    """Yield each capture once for each run of snapshots that have it."""
    before: VisibleCapture | None = None
    seen: set[tuple[str, int, str]] = set()
    for state in states:
        now = state.capture
        if now is not None and now != before and (key := (now.url, now.since, now.target)) not in seen:
            seen.add(key)
            yield now
        before = now


class VisibleCaptures:
    """The captures of an archive that a reader may see. For one thread; of the state that the gate looked at."""

    def __init__(self, gate: KnownGate, index: CaptureIndex) -> None:
        self.gate = gate
        self.index = index
        self._has_redirect = lru_cache(maxsize=_REMEMBERED)(self._in_seen_tree)
        self._latest: tuple[object, tuple[str, UrlRows]] | None = None

    # -- one URL -----------------------------------------------------------------------------------------------------

    def state(self, url: str, seq: int) -> VisibleState:
        """Return what the reader sees of a canonical URL at a time; before the first snapshot, in the first."""
        domain, stored = self._stored(url)
        facts = self.gate.facts(domain)
        if not facts.shown:
            return self._closed(domain, stored)(seq)
        newest = facts.newest(max(seq, facts.seqs[0]))
        row = self._row_of(domain, stored, newest)
        seq = newest[0].seq
        if not stored.is_newest(row, seq, facts.seqs):
            for snapshot, left in self._left(domain, stored):
                row = left
                if snapshot.seq >= seq:
                    break
        return self._closed(domain, stored)(seq) if row is None else self._judged(domain, row, seq)

    def in_snapshots(
        self, places: Sequence[tuple[str, int]]
    ) -> list[VisibleCapture | Closed | Blocked | Absent | None]:
        """Return what the reader sees of each URL in the tree of a snapshot; None where that has nothing there.

        All are asked for at once, for lists. A snapshot that the reader may not see has nothing.
        """
        return [
            self._in_snapshot(split(arc_path(url))[0], seq, rows)
            for (url, seq), rows in zip(places, self.index.in_snapshots(places), strict=True)
        ]

    def _in_snapshot(
        self, domain: str, seq: int, rows: Iterable[CaptureRow]
    ) -> VisibleCapture | Closed | Blocked | Absent | None:
        facts = self.gate.facts(domain)
        place = bisect_left(facts.seqs, seq)
        if place == len(facts.seqs) or facts.seqs[place] != seq:
            return None
        row = next((row for row in rows if self.contains(domain, facts.shown[place], row)), None)
        return None if row is None else self.visible(domain, row)

    def captured_at(self, url: str, seconds: int) -> VisibleCapture | None:
        """Return the capture of this very URL, its scheme included, of a second; None without one.

        Of several it is a document before a redirect, then the one that came to be visible last.
        """
        domain, stored = self._stored(url)
        captures = []
        for row in stored.rows:
            met = {seq: revisit for seq, revisit in stored.met(row).items() if revisit.time == seconds}
            if met or row.captured == seconds:
                shown = self._captures(domain, row, met)
                captures += [capture for capture in shown if capture.captured == seconds and capture.url == url]
        return max(captures, key=lambda capture: (not capture.is_redirect, capture.since), default=None)

    def history(self, url: str) -> UrlHistory:
        """Return what the reader may see of a canonical URL over time."""
        domain, stored = self._stored(url)

        def captures(history: UrlHistory) -> Iterator[VisibleCapture]:
            if not stored.has_redirects:  # of versions alone, each that a snapshot has is in force there
                for row in stored.rows:
                    yield from self._captures(domain, row, stored.met(row))
                return
            yield from _distinct(history.states)
            for state in history.states:
                now = state.capture
                met = stored.met_at((now.target and now.url) or now.path).get(state.seq) if now is not None else None
                if now is not None and met is not None:
                    yield from self._met_again(now, state.seq, met)

        return UrlHistory(url, lambda: self._states(domain, stored), captures)

    def of_row(self, row: CaptureRow, meetings: Iterable[Meeting]) -> Iterator[VisibleCapture]:
        """Yield what a reader may see of a stored version: the capture, and when crawls met it again.

        `meetings` are those of the index at the row's place.
        """
        return self._captures(split(row.path)[0], row, {meeting.seq: meeting.met for meeting in meetings})

    def _captures(self, domain: str, row: CaptureRow, met: Mapping[int, Met]) -> Iterator[VisibleCapture]:
        """Yield what a reader may see of a stored version or redirect: the capture, and when crawls met it again."""
        capture = self.visible(domain, row)
        if not isinstance(capture, VisibleCapture):
            return
        yield capture
        shown = (snapshot for snapshot in self.gate.facts(domain).shown if snapshot.seq in met) if met else ()
        for snapshot in shown:
            if self.contains(domain, snapshot, row):
                yield from self._met_again(capture, snapshot.seq, met[snapshot.seq])

    def _met_again(self, capture: VisibleCapture, seq: int, met: Met) -> Iterator[VisibleCapture]:
        url = capture.url if capture.is_redirect else spelled(capture.url, met.spelling)
        is_open = isinstance(self.gate.with_rules(Open(seq), url, from_epoch(met.time)), Open)
        if is_open and met.time != capture.captured:
            yield replace(capture, url=url, since=seq, captured=met.time, is_revisit=True)

    def _states(self, domain: str, stored: UrlRows) -> list[VisibleState]:
        """Return the state of a URL in each visible snapshot of its domain."""
        facts = self.gate.facts(domain)
        if not stored.rows:
            return [VisibleState(seq, Absent()) for seq in facts.seqs]
        closed = self._closed(domain, stored)
        judged: dict[int, VisibleState] = {}
        states = []
        left = self._left(domain, stored)
        for seq, newest in zip(facts.seqs, facts.newest_of_each(), strict=True):
            clocks.check()
            row = self._row_of(domain, stored, newest)
            if not stored.is_newest(row, seq, facts.seqs):
                row = next(left_at for snapshot, left_at in left if snapshot.seq == seq)
            if row is None:
                states.append(closed(seq))
                continue
            known = judged.get(id(row))
            if known is None:
                known = judged[id(row)] = self._judged(domain, row, seq)
            states.append(VisibleState(seq, known.answer, known.capture))
        return states

    def _stored(self, url: str) -> tuple[str, UrlRows]:
        """Return the domain of a URL, and what is stored for it. A request asks for one URL several times."""
        key = (self.gate.looks, url)
        if self._latest is not None and self._latest[0] == key:
            return self._latest[1]
        path, second = f"/{arc_path(url)}", f"/{second_path(url)}"
        versions, redirects = self.index.at(path, second)
        own = [row for row in versions if row.path == second]
        first = [row for row in versions if row.path == path]
        domain, led = split(path)[0], [redirect for redirect in redirects if redirect.url == url]
        stored = domain, UrlRows(url, led, own, first, partial(self.index.met, domain))
        self._latest = (key, stored) if len(versions) <= _ROWS else None
        return stored

    def _row_of(self, domain: str, stored: UrlRows, newest: Sequence[VisibleSnapshot]) -> CaptureRow | None:
        """Return the row that is in force where these snapshots make the state; None: no row."""
        for snapshot in newest:
            for row in stored.at(snapshot.seq):
                if not snapshot.seen or self.contains(domain, snapshot, row):
                    return row
        return None

    def _left(self, domain: str, stored: UrlRows) -> Iterator[tuple[VisibleSnapshot, CaptureRow | None]]:
        """Yield each visible snapshot, oldest first, with the row that the crawls up to it left at the URL, or None.

        That is the one that was captured last, unless a later complete crawl of the same publication did not find it.
        What a crawl met unchanged it captured. The tree of a crawl alone does not show it: what was imported later than
        a newer crawl is not in that one's tree, and an incomplete crawl has what it did not ask for, too. The order in
        which crawls came to the archive makes no difference.
        """
        complete, shown = self.index.complete(domain), set(self.gate.facts(domain).seqs)
        left: dict[str, tuple[int, CaptureRow]] = {}
        for snapshot in self.gate.facts(domain).snapshots:
            if snapshot.standing is not Standing.OPEN:
                continue
            row, before = self._row_of(domain, stored, [snapshot]), left.get(snapshot.publication)
            if row is not None:
                is_carried = row.stored in shown and row.stored != snapshot.seq and snapshot.seq not in complete
                is_carried = is_carried and snapshot.seq not in stored.met(row)
                if not is_carried or (before is not None and before[1] is not row):
                    left[snapshot.publication] = snapshot.seq, row
            elif snapshot.seq in complete:
                left.pop(snapshot.publication, None)
            yield snapshot, max(left.values(), key=itemgetter(0))[1] if left else None

    def _judged(self, domain: str, row: CaptureRow, seq: int) -> VisibleState:
        """Return the state at a snapshot that has a row: after the access rules."""
        capture = self.visible(domain, row)
        if isinstance(capture, VisibleCapture):
            return VisibleState(seq, Open(capture.since), capture)
        return VisibleState(seq, capture)

    def _closed(self, domain: str, stored: UrlRows) -> Callable[[int], VisibleState]:
        """Return a function: the state of a URL that no visible snapshot has at a time.

        That is the state of the last closed snapshot before it that has the URL, else of the first one after it. What
        is open in another snapshot is absent from this one, and not closed.
        """
        facts = self.gate.facts(domain)
        closed = [
            (snapshot, row)
            for snapshot in facts.closed
            if (row := self._row_of(domain, stored, [snapshot])) is not None
        ]
        judged: dict[int, VisibleState] = {}

        def state(seq: int) -> VisibleState:
            place = bisect_right(closed, seq, key=lambda pair: pair[0].seq)
            for at in itertools.chain(range(place - 1, -1, -1), range(place, len(closed))):
                clocks.check()
                snapshot, row = closed[at]
                known = judged.get(id(row))
                if known is None:
                    known = judged[id(row)] = self._judged(domain, row, snapshot.seq)
                if not isinstance(known.answer, Open) or not facts.shown:
                    return VisibleState(seq, known.answer, known.capture, snapshot.seq)
            return VisibleState(seq, Absent())

        return state

    # -- all URLs of a span --------------------------------------------------------------------------------------------

    def below(self, span: Span, *, backwards: bool = False, with_met: bool = False) -> Iterator[VisibleCapture]:
        """Yield the visible captures of the URLs of a span of keys, in order of key, time and URL; or backwards.

        `with_met` yields each time at which a crawl met one unchanged, too.
        """
        ask = self.index.meetings()
        for _, group in groupby(self.index.below(span, backwards=backwards), key=lambda row: row.surt):
            clocks.check()
            captures: list[VisibleCapture] = []
            for row in group:
                domain = split(row.path)[0]
                captures += self._captures(domain, row, dict(ask(domain, row.place)) if with_met else {})
            yield from sorted(captures, key=_order, reverse=backwards)

    def visible(self, domain: str, row: CaptureRow) -> VisibleCapture | Closed | Blocked | Absent:
        """Return what a reader may see of a stored version or redirect."""
        facts = self.gate.facts(domain)
        begin, after = _first_from(facts.seqs, row.first), _first_from(facts.seqs, row.last)
        if facts.sees_all:
            inside = [facts.shown[begin], facts.shown[after - 1]] if begin < after else []
        else:
            inside = [snapshot for snapshot in facts.shown[begin:after] if self.contains(domain, snapshot, row)]
        answer: Answer
        if inside:
            answer = Open(inside[0].seq)
        else:
            closed = [
                snapshot
                for snapshot in facts.closed
                if self.contains(domain, snapshot, row) and snapshot.until is not None
            ]
            answer = (
                Closed(min(snapshot.until for snapshot in closed if snapshot.until is not None)) if closed else Absent()
            )
            inside = closed
        answer = self.gate.with_rules(answer, row.url, from_epoch(row.captured))
        if not isinstance(answer, Open):
            return answer
        stored = _first_from(facts.seqs, row.stored)
        is_known = stored < len(facts.seqs) and facts.seqs[stored] == row.stored
        since = inside[0].seq
        return VisibleCapture(
            url=row.url,
            path=row.path,
            surt=row.surt,
            since=since,
            until=facts.seqs[after] if after < len(facts.seqs) else NEVER,
            last=inside[-1].seq,
            captured=row.captured if is_known else self._met_at(domain, row, since),
            status=row.status,
            mime_type=row.mime_type,
            title=row.title,
            blob=row.blob,
            head=row.head,
            size=row.size,
            digest=row.digest,
            target=row.target,
            publication=row.publication,
            is_resource=row.is_resource,
            stored=row.stored,
        )

    def _met_at(self, domain: str, row: CaptureRow, seq: int) -> int:
        """Return when the crawl of a snapshot met a row; where that is not known, the time of the snapshot."""
        return next((meeting.met.time for meeting in self.index.met(domain, row.place) if meeting.seq == seq), seq)

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def contains(self, domain: str, snapshot: VisibleSnapshot | None, row: CaptureRow) -> bool:
        """Return whether a snapshot has a row, as its publication saw it."""
        if snapshot is None or not row.first <= snapshot.seq < row.last:
            return False
        if not snapshot.seen:
            return True
        clocks.check()  # git is asked
        if not row.target:
            version = VersionSpan(row.path, row.blob, row.first, row.last, row.stored)
            return self.gate.saw(domain)(snapshot, version)
        if snapshot.seen == OWN:
            return snapshot.publication == row.publication
        return self._has_redirect(domain, snapshot.seen, row.url, row.target)

    def _in_seen_tree(self, domain: str, tree: str, url: str, target: str) -> bool:
        redirect = redirect_lists.of_url(Repository(self.gate.archive.repository(domain)), tree, url)
        return redirect is not None and redirect.target == target


def _first_from(seqs: Sequence[int], seq: int) -> int:
    return bisect_left(seqs, seq)
