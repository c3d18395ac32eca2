"""A gate that remembers what git and the catalogue said, until one of them changes: for servers.

The state of the archive is looked at before each answer that uses it: the feed's time and size, and the catalogue's
commit. So a release, a withdrawal and a crawl count with the next request.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.catalogue_database import opened
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import now
from webarcfs.gate.gate import Gate, Reader
from webarcfs.gate.visibility import Saw, Snapshot, Standing

#: Domains that are remembered.
_DOMAINS = 10_000


@dataclass(slots=True)
class DomainFacts:
    """What a gate knows of a domain in one state of the archive.

    `snapshots` are all, oldest first, `shown` the open ones, `seqs` their times. `records` has the record of a
    snapshot. `is_whole`: nothing of the domain is hidden, so that its own state counts, whoever saw it.
    """

    snapshots: list[Snapshot]
    records: dict[int, str]
    shown: list[Snapshot] = field(init=False)
    seqs: list[int] = field(init=False)
    is_whole: bool = field(init=False)
    saw: Saw | None = None
    _publications: int = field(init=False)

    def __post_init__(self) -> None:
        self.shown = [each for each in self.snapshots if each.standing is Standing.OPEN]
        self.is_whole = len(self.shown) == len(self.snapshots)
        if self.is_whole:
            self.shown = [replace(each, seen="") for each in self.shown]
        self.seqs = [each.seq for each in self.shown]
        self._publications = len({each.publication for each in self.shown})

    def newest(self, seq: int) -> list[Snapshot]:
        """Return the open snapshots whose states together are that of the time `seq`, the one that decides first.

        That is the newest one of each publication; where nothing is hidden, the newest alone.
        """
        return self.newest_at(bisect_right(self.seqs, seq) - 1)

    def newest_at(self, place: int) -> list[Snapshot]:
        """Return the same for the open snapshot at a place among them."""
        if self.is_whole or self._publications <= 1:
            return self.shown[place : place + 1] if place >= 0 else []
        found: dict[str, Snapshot] = {}
        for at in range(place, -1, -1):
            each = self.shown[at]
            found.setdefault(each.publication, each)
            if len(found) == self._publications:
                break
        return list(found.values())


class KnownGate(Gate):
    """A gate for one reader that remembers. For one thread; `look` begins each request."""

    def __init__(self, archive: Archive, reader: Reader, clock: Callable[[], datetime] = now) -> None:
        super().__init__(archive, reader, clock)
        self._records = Catalogue(archive)
        self._state: object = None
        self._facts: dict[str, DomainFacts] = {}
        self._ends = float("inf")

    @property
    def state(self) -> object:
        """A value that changes when a reader may see something else, the access rules aside."""
        return self._state

    def look(self) -> None:
        """Forget what was known if the archive has another state by now. Raises Damaged for a damaged catalogue."""
        try:
            found = os.stat(self.archive.changes)  # noqa: PTH116 # asked for each request
            feed = (found.st_ino, found.st_size, found.st_mtime_ns)
        except FileNotFoundError:
            feed = (0, 0, 0)
        state = (feed, self._records.state())
        if state != self._state or self.now().timestamp() >= self._ends:
            self._facts.clear()
            self._ends = float("inf")
            self._state = state

    def facts(self, domain: str) -> DomainFacts:
        """Return what is known of a domain; of an unknown domain, that it has no snapshots."""
        known = self._facts.get(domain)
        if known is None:
            known = self._facts[domain] = self._found(domain)
            while len(self._facts) > _DOMAINS:
                del self._facts[next(iter(self._facts))]
        return known

    def snapshots(self, domain: str) -> list[Snapshot]:
        """Return the snapshots of a domain, oldest first."""
        return self.facts(domain).snapshots

    def saw(self, domain: str) -> Saw:
        """Return the predicate of a domain, the same one in one state of the archive."""
        known = self.facts(domain)
        if known.saw is None:
            known.saw = super().saw(domain)
        return known.saw

    def is_shown(self, domain: str) -> bool:
        """Return whether the reader may see a snapshot of a domain."""
        return bool(self.facts(domain).shown)

    def _found(self, domain: str) -> DomainFacts:
        if not self.archive.repository(domain).is_dir():
            return DomainFacts([], {})
        snapshots = super().snapshots(domain)
        self._ends = min([self._ends, *(each.until.timestamp() for each in snapshots if each.until is not None)])
        with opened(self.archive, self._records) as database:
            return DomainFacts(snapshots, database.records(domain))
