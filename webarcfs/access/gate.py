"""The gate of an archive for one reader: asks the catalogue, the access rules, git and webarc.db, and decides.

Each call sees what the catalogue and the rules say now. What cannot be decided is closed: a catalogue or rules that
cannot be read raise Damaged or SettingsError.

For servers there is a gate that remembers what git and the catalogue said, until one of them changes. The state of the
archive is looked at before each answer that uses it: the feed's time and size, the catalogue's commit and the access
rules. So a release, a withdrawal, a rule and a crawl count with the next request. What is known of an archive in one
state is the same for all readers, so all gates of a process share it; those for staff have their own.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import ClassVar
from weakref import WeakValueDictionary

from webarcfs.access import access_rules, secret_headers
from webarcfs.access.access_rules import (
    Absent,
    Access,
    AccessFile,
    AccessRules,
    Answer,
    Blocked,
    Closed,
    Open,
    Saw,
    Standing,
    VersionSpan,
    VisibleSnapshot,
    standing,
)
from webarcfs.archive.catalogue.catalogue import Catalogue, RecordedPart, opened, part_of
from webarcfs.archive.catalogue.record import OWN, Record, RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.index import database
from webarcfs.archive.model.arc_paths import split
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.archive.model.metadata import CommitTag, now, parse_compact_time
from webarcfs.archive.system import clocks
from webarcfs.archive.system.cache import Cache

# == gate =============================================================================================================


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader: the name that a trusted proxy gave, empty for the public."""

    name: str = ""


class Gate:
    """What one reader may see of an archive. For one thread.

    `is_staff`: it hides what is discarded, and nothing else.
    """

    is_staff: ClassVar[bool] = False

    def __init__(self, archive: Archive, reader: Reader, clock: Callable[[], datetime] = now) -> None:
        self.archive = archive
        self.reader = reader
        self._clock = clock
        self._catalogue = Catalogue(archive)
        self._access = AccessFile(archive)

    @property
    def is_needed(self) -> bool:
        """Whether it may hide something."""
        return True

    # -- decisions ---------------------------------------------------------------------------------------------------

    def may(self, domain: str, path: str, seq: int) -> Answer:
        """Return whether the reader may see the document that is at `path` (`/<domain>/…`) in the snapshot `seq`."""
        document = self.version_at(path, seq)
        if document is None:
            return Absent()
        url, captured, version = document
        snapshots = self.snapshots(domain)
        answer: Answer = access_rules.may(snapshots, version, self.saw(domain))
        return self.with_rules(answer, url, captured)

    def with_rules(self, answer: Answer, url: str, captured: datetime) -> Answer:
        """Return an answer after the access rules: they take away, and a rule for the reader's name ends a closure."""
        rule = self.rules().find(url, self.reader.name, captured, self._clock())
        if rule is None or isinstance(answer, Absent):
            return answer
        if rule.access is Access.EXCLUDE:
            return Absent()
        if rule.access is Access.BLOCK:
            return Blocked(rule.public_text)
        return Open(0) if isinstance(answer, Closed) and rule.user else answer

    def rules(self) -> AccessRules:
        """Return the access rules as they are now. Raises SettingsError, OSError."""
        return self._access.rules()

    def domains(self) -> list[str]:
        """Return the domains of which the reader may see a snapshot, in order."""
        return [name for name in self.archive.domains() if any(_is_open(snapshot) for snapshot in self.snapshots(name))]

    def records(self, publication: str | None = None) -> Iterator[Record]:
        """Yield the records that the reader may see, newest capture first, with the fields that readers see."""
        for record in self._catalogue.records(publication):
            clocks.check()
            date = record.date
            if date is None:
                continue
            held = any(part.is_held for part in record.parts)
            record_standing, _ = standing(
                record.state, held=held, closed_for=record.closed_for, captured=date, now=self._clock()
            )
            if record_standing is Standing.OPEN:
                yield record.for_readers(whole=self.shows_all_of(record.domains))

    def shows_all_of(self, domains: Iterable[str]) -> bool:
        """Return whether no rule takes a document of some domains from the reader."""
        rules = self.rules()
        return not any(rules.takes_from(domain, self.reader.name, self._clock()) for domain in domains)

    def standing(self, tag: CommitTag) -> VisibleSnapshot | None:
        """Return what a snapshot is to the reader; None if there is none."""
        seq = int(tag.crawl_time.timestamp())
        return next((snapshot for snapshot in self.snapshots(tag.domain) if snapshot.seq == seq), None)

    def now(self) -> datetime:
        """Return the time by which closures and rules are judged."""
        return self._clock()

    def hides_headers(self, store: Repository, stored: int) -> bool:
        """Return whether secrets may be in headers that a crawl of a domain stored, which the reader may not see."""
        return not self.is_staff and secret_headers.of_crawl(store, stored)

    # -- facts -------------------------------------------------------------------------------------------------------

    def snapshots(self, domain: str) -> list[VisibleSnapshot]:
        """Return the snapshots of a domain, oldest first; none if there is no such domain. Raises Damaged."""
        with opened(self.archive, self._catalogue) as database:
            recorded = database.parts(domain)
        return self._snapshots_of(domain, recorded)

    def _snapshots_of(self, domain: str, recorded: Mapping[int, RecordedPart]) -> list[VisibleSnapshot]:
        try:
            store = Repository(self.archive.repository(domain))
        except NotFound:
            return []
        domain_snapshots = []
        for name in store.ref_names(CRAWLS):
            time = parse_compact_time(name)
            part = recorded.get(int(time.timestamp())) or self._unrecorded(store, f"{CRAWLS}{name}", time)
            if part is not None:
                domain_snapshots.append(self._snapshot(part, time))
        return sorted(domain_snapshots, key=lambda snapshot: snapshot.seq)

    def _snapshot(self, part: RecordedPart | _Unrecorded, time: datetime) -> VisibleSnapshot:
        state = part.state if isinstance(part, RecordedPart) else None
        closed_for = part.closed_for if isinstance(part, RecordedPart) else ""
        snapshot_standing, until = standing(
            state, held=part.is_held, closed_for=closed_for, captured=time, now=self._clock()
        )
        return VisibleSnapshot(int(time.timestamp()), part.publication, snapshot_standing, part.seen, until)

    def _unrecorded(self, store: Repository, ref: str, time: datetime) -> _Unrecorded | None:
        """Return what git says of a snapshot without a record; None if the ref has gone."""
        target = store.ref(ref)
        commit = sequence.crawl_commit(store, target) if target is not None else None
        if commit is None:
            return None
        part = part_of(store, commit)
        return _Unrecorded(int(time.timestamp()), part.seen, part.is_held, commit.message.publication)

    def saw(self, domain: str) -> Saw:
        """Return the predicate of a domain: whether a snapshot whose publication saw less saw a version."""
        store = Repository(self.archive.repository(domain))
        publications = lru_cache(maxsize=1)(
            lambda: {snapshot.seq: snapshot.publication for snapshot in self.snapshots(domain)}
        )

        @lru_cache(maxsize=_REMEMBERED)
        def has(tree: str, arc: str, blob: str) -> bool:
            folder = store.find(tree, arc)
            if folder is None or not folder.is_tree:
                return False
            return any(entry.oid == blob for entry in store.each(folder.oid) if not entry.is_tree)

        def saw(snapshot: VisibleSnapshot, version: VersionSpan) -> bool:
            if snapshot.seen == OWN:
                return publications().get(version.stored) == snapshot.publication
            return has(snapshot.seen, split(version.path)[1], version.blob)

        return saw

    def version_at(self, path: str, seq: int) -> tuple[str, datetime, VersionSpan] | None:
        """Return URL, time of capture and version of the document at a path in a snapshot."""
        held_version = database.version_at(self.archive.database, path, seq)
        if held_version is None:
            return None
        version = VersionSpan(path, held_version.blob, held_version.first, held_version.last, held_version.stored)
        return held_version.url, held_version.captured, version


class StaffGate(Gate):
    """What staff see: all but the snapshots of discarded records. For one thread."""

    is_staff = True

    def __init__(self, archive: Archive, clock: Callable[[], datetime] = now) -> None:
        super().__init__(archive, Reader(), clock)

    @property
    def is_needed(self) -> bool:
        """Whether a record is discarded. A damaged catalogue, which cannot say it, keeps nobody from working."""
        try:
            return bool(self._catalogue.discarded())
        except Damaged as error:
            _log.warning("nobody knows what is discarded, so all is shown: %s", error)
            return False

    def rules(self) -> AccessRules:
        """Return no rules: they are for readers."""
        return AccessRules()

    def records(self, publication: str | None = None) -> Iterator[Record]:
        """Yield the records that are not discarded, newest capture first."""
        return (record for record in self._catalogue.records(publication) if record.state is not RecordState.DISCARDED)

    def _snapshots_of(self, domain: str, recorded: Mapping[int, RecordedPart]) -> list[VisibleSnapshot]:
        return [opened_to_staff(snapshot) for snapshot in super()._snapshots_of(domain, recorded)]


def opened_to_staff(snapshot: VisibleSnapshot) -> VisibleSnapshot:
    """Return a snapshot as it is to staff."""
    if snapshot.standing is Standing.DISCARDED:
        return snapshot
    return replace(snapshot, standing=Standing.OPEN, until=None)


@dataclass(frozen=True, slots=True)
class _Unrecorded:
    """A snapshot without a record, as git has it."""

    seq: int
    seen: str
    is_held: bool
    publication: str


#: Answers about seen trees that are remembered.
_REMEMBERED = 65_536


def _is_open(snapshot: VisibleSnapshot) -> bool:
    return snapshot.standing is Standing.OPEN


# == known gate =======================================================================================================


#: Snapshots of domains that are remembered, at some 300 bytes; a domain counts as some more.
_SNAPSHOTS, _OF_DOMAIN = 200_000, 5
#: Seconds for which the access rules are taken to be the same, in an answer that takes longer.
_SECONDS = 0.5
#: Predicates that a gate keeps, each with a repository that is open.
_PREDICATES = 32


@dataclass(slots=True)
class DomainFacts:
    """What a gate knows of a domain in one state of the archive.

    `snapshots` are all, oldest first, `shown` the open ones, `seqs` their times. `records` has the record of a
    snapshot. `closed` are those that are closed until a time. `is_whole`: nothing of the domain is hidden, so that its
    own state counts, whoever saw it; `sees_all`: no open snapshot saw less than the domain has.
    """

    snapshots: list[VisibleSnapshot]
    records: dict[int, str]
    shown: list[VisibleSnapshot] = field(init=False)
    seqs: list[int] = field(init=False)
    closed: list[VisibleSnapshot] = field(init=False)
    is_whole: bool = field(init=False)
    sees_all: bool = field(init=False)
    _publications: int = field(init=False)

    def __post_init__(self) -> None:
        self.shown = [snapshot for snapshot in self.snapshots if snapshot.standing is Standing.OPEN]
        self.is_whole = len(self.shown) == len(self.snapshots)
        if self.is_whole:
            self.shown = [replace(snapshot, seen="") if snapshot.seen else snapshot for snapshot in self.shown]
        self.closed = [snapshot for snapshot in self.snapshots if snapshot.standing is Standing.CLOSED]
        self.sees_all = not any(snapshot.seen for snapshot in self.shown)
        self.seqs = [snapshot.seq for snapshot in self.shown]
        self._publications = len({snapshot.publication for snapshot in self.shown})

    def newest(self, seq: int) -> list[VisibleSnapshot]:
        """Return the open snapshots whose states together are that of the time `seq`, the one that decides first.

        That is the newest one of each publication; where nothing is hidden, the newest alone.
        """
        return self.newest_at(bisect_right(self.seqs, seq) - 1)

    def newest_at(self, place: int) -> list[VisibleSnapshot]:
        """Return the same for the open snapshot at a place among them."""
        if self._is_of_one:
            return self.shown[place : place + 1] if place >= 0 else []
        by_publication: dict[str, VisibleSnapshot] = {}
        for at in range(place, -1, -1):
            snapshot = self.shown[at]
            by_publication.setdefault(snapshot.publication, snapshot)
            if len(by_publication) == self._publications:
                break
        return list(by_publication.values())

    def newest_of_each(self) -> Iterator[list[VisibleSnapshot]]:
        """Yield the same for each open snapshot, oldest first."""
        if self._is_of_one:
            yield from ([snapshot] for snapshot in self.shown)
            return
        by_publication: dict[str, VisibleSnapshot] = {}
        for snapshot in self.shown:
            by_publication.pop(snapshot.publication, None)
            by_publication[snapshot.publication] = snapshot
            yield list(reversed(by_publication.values()))

    @property
    def _is_of_one(self) -> bool:
        return self.is_whole or self._publications <= 1


class _Known:
    """What is known of the domains of an archive in one state, up to the time `ends`. For any thread."""

    def __init__(self, state: object) -> None:
        self.state = state
        self.domains: Cache[str, DomainFacts] = Cache(_SNAPSHOTS, lambda facts: len(facts.snapshots) + _OF_DOMAIN)
        self.ends = float("inf")
        self._lock = threading.Lock()

    def end_at(self, times: list[float]) -> None:
        """Count no longer than up to the first of these times."""
        with self._lock:
            self.ends = min([self.ends, *times])


#: Archive, clock and whether it is for staff → what is known in its latest state.
_LATEST: WeakValueDictionary[tuple[Path, Callable[[], datetime], bool], _Known] = WeakValueDictionary()
_LOCK = threading.Lock()


class KnownGate(Gate):
    """A gate for one reader that remembers. For one thread; `look` begins each request."""

    def __init__(self, archive: Archive, reader: Reader, clock: Callable[[], datetime] = now) -> None:
        super().__init__(archive, reader, clock)
        self._records = Catalogue(archive)
        self._known = _Known(None)
        self._facts: dict[str, DomainFacts] = {}  # those of this request: they do not change within it
        self._saw: dict[str, Saw] = {}
        self._rules: AccessRules | None = None
        self._rules_end = 0.0
        self._looks = 0

    @property
    def state(self) -> object:
        """A value that changes when a reader may see something else, the access rules aside."""
        return self._known.state

    @property
    def looks(self) -> int:
        """How often it was looked at the archive: another number in each request."""
        return self._looks

    def look(self) -> None:
        """Forget what was known if the archive has another state by now. Raises Damaged for a damaged catalogue."""
        try:
            status = os.stat(self.archive.changes)  # noqa: PTH116 # asked for each request
            feed = (status.st_ino, status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            feed = (0, 0, 0)
        state = (feed, self._records.state())
        self._looks += 1
        self._facts.clear()
        self._rules = None
        key = (self.archive.root, self._clock, self.is_staff)
        with _LOCK:
            known = _LATEST.get(key)
            if known is None or known.state != state or self.now().timestamp() >= known.ends:
                known = _LATEST[key] = _Known(state)
        if known is not self._known:
            self._known = known
            self._saw.clear()

    def rules(self) -> AccessRules:
        """Return the access rules as they were when the request began. Raises SettingsError, OSError."""
        at = time.monotonic()
        if self._rules is None or at > self._rules_end:
            self._rules = super().rules()
            self._rules_end = at + _SECONDS
        return self._rules

    def with_rules(self, answer: Answer, url: str, captured: datetime) -> Answer:
        """Return an answer after the access rules."""
        return super().with_rules(answer, url, captured) if self.rules().rules else answer

    def facts(self, domain: str) -> DomainFacts:
        """Return what is known of a domain; of an unknown domain, that it has no snapshots."""
        known = self._facts.get(domain)
        if known is None:
            known = self._facts[domain] = self._known.domains.get(domain, lambda: self._found(domain))
        return known

    def snapshots(self, domain: str) -> list[VisibleSnapshot]:
        """Return the snapshots of a domain, oldest first."""
        return self.facts(domain).snapshots

    def saw(self, domain: str) -> Saw:
        """Return the predicate of a domain, the same one in one state of the archive."""
        known = self._saw.get(domain)
        if known is None:
            known = self._saw[domain] = super().saw(domain)
            while len(self._saw) > _PREDICATES:
                del self._saw[next(iter(self._saw))]
        return known

    def _found(self, domain: str) -> DomainFacts:
        if not self.archive.repository(domain).is_dir():
            return DomainFacts([], {})
        with opened(self.archive, self._records) as database:
            recorded, records = database.parts(domain), database.records(domain)
        snapshots = self._snapshots_of(domain, recorded)
        self._known.end_at([snapshot.until.timestamp() for snapshot in snapshots if snapshot.until is not None])
        return DomainFacts(snapshots, records)


class KnownStaffGate(StaffGate, KnownGate):
    """What staff see, remembered. For one thread."""
