"""Which versions were captured in a span of time by crawls that a reader may see, for filters of the index.

A capture is of a version that a crawl stored, or met unchanged, at the time at which the server answered. What a crawl
carried over is none. Of a version that a hidden crawl stored, the first visible snapshot that has it is its first
capture: when its crawl met it, else the snapshot's time. The CDX API lists the same captures.

The index has when a version was stored. What a crawl met is in webarc.db; for most crawls nobody needs to look there:

- A crawl all of whose captures lie in the span, and which carried over nothing, captured its whole tree. A filter names
  the trees of such snapshots by numbers and by a few marks of each domain.
- Of a crawl that carried over a part, the versions of this part are named, if they are fewer than those that it met.
- Of any other crawl, as one at midnight of New Year's Eve, the versions that it met in the span are named.
- On a domain whose publications saw only parts of its trees, and some of whose snapshots are hidden, each version is
  asked for. So is each URL whose access rules depend on the time or the spelling of a capture.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from webarcfs.access.access_rules import Access, AccessRule, Standing, VersionSpan, VisibleSnapshot
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import database
from webarcfs.archive.index.database import CaptureFacts, CaptureIndex, PathSpan, PathSpans
from webarcfs.archive.model.arc_paths import DIRECTORY_INDEX
from webarcfs.archive.model.errors import TooMany
from webarcfs.archive.model.url_lists import Met, spelled
from webarcfs.archive.system import clocks
from webarcfs.search.index import IndexReader
from webarcfs.search.translation import CapturedWithin, ReadersView, Shown, SnapshotMemory, Translator, Trees, UrlKey
from webarcfs.search.words import SNAPSHOT, began, ended, key, span

#: Spans of time that are remembered.
_SPANS = 64
#: Snapshots in a row whose versions are named by marks, each pair of ends by one.
_LISTED = 16
#: Versions that are named for one span, some 150 bytes each.
MOST_NAMED = 5_000_000

#: A span of time: from the first second on, before the second.
TimeSpan = tuple[int, int]


class CaptureTimes:
    """What was captured when, for one reader of an archive. For one thread."""

    def __init__(self, archive: Archive, view: ReadersView | None) -> None:
        self._archive = archive
        self._view = view
        #: The memory is kept, so that no other one has its id.
        self._known: OrderedDict[object, tuple[CapturedWithin, SnapshotMemory]] = OrderedDict()

    def within(self, reader: IndexReader, times: TimeSpan, shown: Shown) -> CapturedWithin:
        """Return what was captured in a span of time. `shown` is what the reader sees of all states.

        Raises TookTooLong, Busy, NotFound without webarc.db.
        """
        state = (reader.identity, times, shown.rules, id(shown.remembered) if shown.hides_snapshots else None)
        if state not in self._known:
            self._known[state] = _Look(self._archive, self._view, reader, times, shown).captured(), shown.remembered
            while len(self._known) > _SPANS:
                self._known.popitem(last=False)
        self._known.move_to_end(state)
        return self._known[state][0]


@dataclass(slots=True)
class _Named:
    """What is gathered for a span of time, domain by domain."""

    met: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    domains: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    runs: list[tuple[str, int, int, int]] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)

    def add(self, keys: Iterable[str]) -> None:
        """Add versions that were met. Raises TooMany."""
        self._append(self.met, keys)

    def answer(self, keys: Iterable[str]) -> None:
        """Add versions that were asked for, each by itself, and were captured."""
        self._append(self.asked, keys)

    def leave_out(self, keys: Iterable[str]) -> None:
        """Add versions that crawls carried over."""
        self._append(self.carried, keys)

    def _append(self, names: list[str], keys: Iterable[str]) -> None:
        for name in keys:
            clocks.check()
            names.append(name)
            if len(self.met) + len(self.asked) + len(self.carried) > MOST_NAMED:
                raise TooMany(f"more than {MOST_NAMED:,} versions are to be asked for; give a shorter span of time")


class _Look:
    """One look at what was captured in a span of time."""

    def __init__(
        self, archive: Archive, view: ReadersView | None, reader: IndexReader, times: TimeSpan, shown: Shown
    ) -> None:
        self._archive = archive
        self._view = view
        self._reader = reader
        self._times = times
        self._shown = shown

    def captured(self) -> CapturedWithin:
        """Return what was captured."""
        facts: dict[str, dict[int, CaptureFacts]] = {}
        for domain, seq, of_snapshot in self._reader.facts_of(*self._times):
            facts.setdefault(domain, {})[seq] = of_snapshot
        shared, named = {of_domain.domain for of_domain in self._shown.shared}, _Named()
        urls = tuple(dict.fromkeys(url for rule in self._sensitive_rules() for url in _spellings(rule)))
        for domain, of_domain in sorted(facts.items()):
            clocks.check()
            if domain in shared:
                named.answer(self._in_domain(domain))
            else:
                self._by_snapshots(domain, of_domain, named)
        if urls:
            named.answer(self._below(urls, shared))
        begin, end = self._times
        asked = tuple(sorted(shared))
        return CapturedWithin(begin, end, tuple(named.met), self._trees(named), tuple(named.asked), asked, urls)

    def _trees(self, named: _Named) -> Trees | None:
        if not named.domains:
            return None
        every = database.domains(self._archive.database)
        others = sorted({*every} - {*named.domains})
        are_others = len(others) < len(named.domains)
        domains = others if are_others else named.domains
        return Trees(tuple(domains), are_others, tuple(named.marks), tuple(named.runs), tuple(named.carried))

    # -- snapshots as a whole ----------------------------------------------------------------------------------------

    def _by_snapshots(self, domain: str, facts: dict[int, CaptureFacts], named: _Named) -> None:
        """Gather what the crawls of a domain captured. `facts` has all its snapshots of the span."""
        begin, end = self._times
        open_ones, seqs = self._open(domain), sorted(facts)
        whole: list[int] = []
        partly: list[int] = []
        for seq in seqs:
            of_crawl = facts[seq]
            if open_ones is not None and seq not in open_ones:
                continue
            if open_ones is not None and of_crawl.carried and begin <= seq < end:
                named.add(self._first_seen(domain, seq, open_ones))
            if not of_crawl.met or of_crawl.last < begin or of_crawl.first >= end:
                continue
            is_inside = begin <= of_crawl.first and of_crawl.last < end and begin <= seq < end
            if is_inside and 0 <= of_crawl.carried <= of_crawl.met:
                whole.append(seq)
                partly += [seq] if of_crawl.carried else []
            else:
                met = database.met_in_snapshot(self._archive.database, domain, seq)
                named.add(key(path, since) for path, since, when in met if self._has(when.time))
        if whole:
            named.domains.append(domain)
            named.leave_out(self._carried(domain, whole, partly))
            self._mark(domain, [seq for seq in seqs if begin < seq < end], whole, named)

    def _open(self, domain: str) -> set[int] | None:
        """Return the snapshots of a domain that the reader may see; None for all."""
        snapshots = self._shown.snapshots.get(domain)
        if snapshots is None:
            return None
        return {snapshot.seq for snapshot in snapshots if snapshot.standing is Standing.OPEN}

    def _has(self, time: int) -> bool:
        return self._times[0] <= time < self._times[1]

    def _carried(self, domain: str, whole: Sequence[int], partly: Sequence[int]) -> Iterator[str]:
        """Yield the versions that some of these crawls carried over, and none of them captured."""
        carried: Counter[tuple[str, int, int]] = Counter()
        for seq in partly:
            for version in database.carried_in_snapshot(self._archive.database, domain, seq):
                clocks.check()
                carried[version.path, version.since, version.until] += 1
        for (path, since, until), count in carried.items():
            if count == sum(1 for seq in whole if since <= seq < until):
                yield key(path, since)

    def _first_seen(self, domain: str, seq: int, open_ones: set[int]) -> Iterator[str]:
        """Yield the versions that a hidden crawl stored, and that a snapshot, the first visible one, carried over."""
        earlier = sorted(other for other in open_ones if other < seq)
        for version in database.carried_in_snapshot(self._archive.database, domain, seq):
            if version.stored not in open_ones and not (earlier and version.since <= earlier[-1]):
                yield key(version.path, version.since)

    @staticmethod
    def _mark(domain: str, seqs: Sequence[int], whole: Sequence[int], named: _Named) -> None:
        """Name the versions of a domain that begin and end in the span, and that none of its whole trees has."""
        named.marks += [ended(domain, seq) for seq in seqs if seq <= whole[0]]
        named.marks += [began(domain, seq) for seq in seqs if seq > whole[-1]]
        run: list[int] = []
        known = set(whole)
        for seq in seqs:
            if not whole[0] < seq <= whole[-1]:
                continue
            if seq not in known:
                run.append(seq)
                continue
            if len(run) > _LISTED:
                named.runs.append((domain, run[0], run[-1], seq))
            else:
                ends = [*run, seq]
                named.marks += [
                    span(domain, first, last) for at, first in enumerate(run) for last in ends[at + 1 :]
                ]  # fmt: skip
            run = []

    # -- version by version ------------------------------------------------------------------------------------------

    def _in_domain(self, domain: str) -> Iterator[str]:
        """Yield the versions of a domain that were captured, each asked for."""
        versions = database.versions_of(self._archive.database, domain)
        with CaptureIndex(self._archive.database) as captures:
            ask = captures.meetings()
            for path, of_path in groupby(versions, key=lambda version: version.path):
                spans = [
                    PathSpan(
                        version.first,
                        version.last,
                        version.blob,
                        version.stored,
                        int(version.captured.timestamp()),
                        version.url,
                    )
                    for version in of_path
                ]
                yield from self._at_path(domain, path, spans, dict(ask(domain, path)))

    def _below(self, urls: Sequence[UrlKey], but: set[str]) -> Iterator[str]:
        """Yield the versions of some URLs that were captured, each asked for; but for those of some domains."""
        make = Translator(self._reader.schema)
        query = make.but(make.urls(urls), make.term("mark", SNAPSHOT), make.terms("domain", sorted(but)))
        page = self._reader.documents(query, max(self._reader.count(query), 1))
        paths = {(document.domain, document.path) for document in page.plain()}
        with CaptureIndex(self._archive.database) as captures, PathSpans(self._archive.database) as spans:
            ask = captures.meetings()
            for domain, path in sorted(paths):
                met = {meeting.seq: meeting.met for meeting in ask(domain, path)}
                yield from self._at_path(domain, path, spans.of(path), met)

    def _at_path(self, domain: str, path: str, spans: Sequence[PathSpan], met: dict[int, Met]) -> Iterator[str]:
        clocks.check()
        snapshots = self._snapshots(domain)
        seqs = {snapshot.seq for snapshot in snapshots}
        for stored in spans:
            version = VersionSpan(path, stored.blob, stored.since, stored.until, stored.stored)
            having = [snapshot.seq for snapshot in snapshots if self._contains(domain, snapshot, version)]
            if having and any(map(self._has, self._captures(stored, having, seqs, met))):
                yield key(path, stored.since)

    def _captures(self, stored: PathSpan, having: Sequence[int], seqs: set[int], met: dict[int, Met]) -> Iterator[int]:
        """Yield when a version was captured. `having` are the visible snapshots that have it, `seqs` all of them."""
        first = None
        if stored.stored in seqs:
            if stored.stored == stored.since:
                yield stored.captured
        else:
            first = met[having[0]].time if having[0] in met else having[0]
            yield first
        for seq in having:
            if seq in met and met[seq].time != first:
                url = spelled(stored.url, met[seq].spelling)
                if self._view is None or self._view.is_open(url, met[seq].time):
                    yield met[seq].time

    def _snapshots(self, domain: str) -> Sequence[VisibleSnapshot]:
        if self._view is None:
            return [
                VisibleSnapshot(snapshot.seq, snapshot.publication, Standing.OPEN)
                for snapshot in database.snapshots(self._archive.database, domain)
            ]
        return self._view.snapshots(domain)

    def _contains(self, domain: str, snapshot: VisibleSnapshot, version: VersionSpan) -> bool:
        if not version.first <= snapshot.seq < version.last:
            return False
        return domain not in self._shown.of_shared or self._view is None or self._view.has(snapshot, domain, version)

    # -- access rules ------------------------------------------------------------------------------------------------

    def _sensitive_rules(self) -> Iterator[AccessRule]:
        """Yield the rules by which one capture of a version may be seen and another not."""
        rules = self._shown.rules
        if any(rule.access is not Access.ALLOW for rule in rules):
            for rule in rules:
                if rule.after is not None or rule.before is not None or len(_spellings(rule)) > 1:
                    yield rule


def _spellings(rule: AccessRule) -> list[UrlKey]:
    """Return the keys of the URLs of a rule, and of other spellings of them for which it does not hold."""
    beginnings = rule.beginnings()
    path, mark, query = rule.prefix.partition("?")
    folder, _, name = path.rpartition("/")
    if beginnings:
        own = [UrlKey(beginning, is_beginning=True) for beginning in beginnings]
        if mark and name == DIRECTORY_INDEX:
            return [*own, UrlKey(f"{folder}/?{query}", is_beginning=True)]
        is_apart = not mark and folder and name and DIRECTORY_INDEX.startswith(name)
        return [*own, UrlKey(f"{folder}/"), UrlKey(f"{folder}/?", is_beginning=True)] if is_apart else own
    own = [UrlKey(rule.prefix)]
    if name == "":
        return [*own, UrlKey(f"{path}{DIRECTORY_INDEX}{mark}{query}")]
    return [*own, UrlKey(f"{folder}/{mark}{query}")] if name == DIRECTORY_INDEX else own
