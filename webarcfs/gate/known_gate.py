"""A gate that remembers what git and the catalogue said, until one of them changes: for servers.

The state of the archive is looked at before each answer that uses it: the feed's time and size, the catalogue's commit
and the access rules. So a release, a withdrawal, a rule and a crawl count with the next request. What is known of an
archive in one state is the same for all readers, so all gates of a process share it.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from weakref import WeakValueDictionary

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.catalogue_database import opened
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import now
from webarcfs.archive.system.cache import Cache
from webarcfs.gate.access_rules import AccessRules
from webarcfs.gate.gate import Gate, Reader
from webarcfs.gate.visibility import Answer, Saw, Snapshot, Standing

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

    snapshots: list[Snapshot]
    records: dict[int, str]
    shown: list[Snapshot] = field(init=False)
    seqs: list[int] = field(init=False)
    closed: list[Snapshot] = field(init=False)
    is_whole: bool = field(init=False)
    sees_all: bool = field(init=False)
    _publications: int = field(init=False)

    def __post_init__(self) -> None:
        self.shown = [each for each in self.snapshots if each.standing is Standing.OPEN]
        self.is_whole = len(self.shown) == len(self.snapshots)
        if self.is_whole:
            self.shown = [replace(each, seen="") if each.seen else each for each in self.shown]
        self.closed = [each for each in self.snapshots if each.standing is Standing.CLOSED]
        self.sees_all = not any(each.seen for each in self.shown)
        self.seqs = [each.seq for each in self.shown]
        self._publications = len({each.publication for each in self.shown})

    def newest(self, seq: int) -> list[Snapshot]:
        """Return the open snapshots whose states together are that of the time `seq`, the one that decides first.

        That is the newest one of each publication; where nothing is hidden, the newest alone.
        """
        return self.newest_at(bisect_right(self.seqs, seq) - 1)

    def newest_at(self, place: int) -> list[Snapshot]:
        """Return the same for the open snapshot at a place among them."""
        if self._is_of_one:
            return self.shown[place : place + 1] if place >= 0 else []
        found: dict[str, Snapshot] = {}
        for at in range(place, -1, -1):
            each = self.shown[at]
            found.setdefault(each.publication, each)
            if len(found) == self._publications:
                break
        return list(found.values())

    def newest_of_each(self) -> Iterator[list[Snapshot]]:
        """Yield the same for each open snapshot, oldest first."""
        if self._is_of_one:
            yield from ([each] for each in self.shown)
            return
        found: dict[str, Snapshot] = {}
        for each in self.shown:
            found.pop(each.publication, None)
            found[each.publication] = each
            yield list(reversed(found.values()))

    @property
    def _is_of_one(self) -> bool:
        return self.is_whole or self._publications <= 1


class _Known:
    """What is known of the domains of an archive in one state, up to the time `ends`. For any thread."""

    def __init__(self, state: object) -> None:
        self.state = state
        self.domains: Cache[str, DomainFacts] = Cache(_SNAPSHOTS, lambda each: len(each.snapshots) + _OF_DOMAIN)
        self.ends = float("inf")
        self._lock = threading.Lock()

    def end_at(self, times: list[float]) -> None:
        """Count no longer than up to the first of these times."""
        with self._lock:
            self.ends = min([self.ends, *times])


#: Archive and clock → what is known in its latest state.
_LATEST: WeakValueDictionary[tuple[Path, Callable[[], datetime]], _Known] = WeakValueDictionary()
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
            found = os.stat(self.archive.changes)  # noqa: PTH116 # asked for each request
            feed = (found.st_ino, found.st_size, found.st_mtime_ns)
        except FileNotFoundError:
            feed = (0, 0, 0)
        state = (feed, self._records.state())
        self._looks += 1
        self._facts.clear()
        self._rules = None
        key = (self.archive.root, self._clock)
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

    def snapshots(self, domain: str) -> list[Snapshot]:
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

    def is_shown(self, domain: str) -> bool:
        """Return whether the reader may see a snapshot of a domain."""
        return bool(self.facts(domain).shown)

    def _found(self, domain: str) -> DomainFacts:
        if not self.archive.repository(domain).is_dir():
            return DomainFacts([], {})
        snapshots = super().snapshots(domain)
        self._known.end_at([each.until.timestamp() for each in snapshots if each.until is not None])
        with opened(self.archive, self._records) as database:
            return DomainFacts(snapshots, database.records(domain))
