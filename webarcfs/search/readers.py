"""What a reader sees, gathered from the gate for filters, and again when something may have changed."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.index import held_versions
from webarcfs.gate import visibility
from webarcfs.gate.access_rules import AccessRule
from webarcfs.gate.gate import Gate
from webarcfs.gate.visibility import Saw, Scope, Snapshot, Standing, Version
from webarcfs.search.indexed_document import key
from webarcfs.search.visible import Moment, Named, Remembered, Shown, in_force

_NEVER = 1 << 62
#: Moments whose named versions are remembered.
_MOMENTS = 64


@dataclass(slots=True)
class _Known:
    """What the gate said in one state of the archive, by domain."""

    snapshots: dict[str, list[Snapshot]]
    saw: dict[str, Saw]
    named: OrderedDict[Moment, tuple[Named, ...]] = field(default_factory=OrderedDict)
    shown: dict[tuple[Moment, tuple[AccessRule, ...]], Shown] = field(default_factory=dict)
    remembered: Remembered = field(default_factory=Remembered)

    @property
    def ends(self) -> float:
        """When the first closure ends, in seconds since 1970."""
        found = [each.until for all_of_it in self.snapshots.values() for each in all_of_it if each.until is not None]
        return min((each.timestamp() for each in found), default=float("inf"))


class ReadersView:
    """What the reader of a gate sees. For one thread."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._catalogue = Catalogue(gate.archive)
        self._state: object = None
        self._known = _Known({}, {})

    def shown(self, moment: Moment) -> Shown:
        """Return what filters need. Raises what the gate raises: what cannot be decided is closed."""
        rules = in_force(self._gate.rules(), self._gate.reader.name, self._gate.now().timestamp())
        known = self._current()
        key = (moment, rules)
        if key in known.shown:
            return known.shown[key]
        hidden = {domain: found for domain, found in known.snapshots.items() if not _is_open(found)}
        shared = {domain for domain, found in hidden.items() if _is_of_several(found)}
        if moment not in known.named:
            named = (Named(domain, tuple(self._keys(domain, moment))) for domain in sorted(shared))
            known.named[moment] = tuple(named)
            while len(known.named) > _MOMENTS:
                known.named.popitem(last=False)
        plain = {domain: found for domain, found in hidden.items() if domain not in shared}
        others = sorted(each.seq for domain, found in known.snapshots.items() if domain not in plain for each in found)
        if len(known.shown) >= _MOMENTS:
            known.shown.clear()
        found = known.shown[key] = Shown(
            plain, others, known.named[moment], rules, self._gate.reader.name, known.remembered
        )  # fmt: skip
        return found

    def snapshots(self, domain: str, standing: Standing = Standing.OPEN) -> Sequence[Snapshot]:
        """Return the snapshots of a domain of a standing, oldest first."""
        return [each for each in self._current().snapshots.get(domain, []) if each.standing is standing]

    def has(self, snapshot: Snapshot, domain: str, version: Version) -> bool:
        """Return whether a snapshot of a domain contains a version, as its publication saw it."""
        is_there = version.first <= snapshot.seq < version.last
        return is_there and (not snapshot.seen or self._saw(domain)(snapshot, version))

    def _saw(self, domain: str) -> Saw:
        known = self._known
        if domain not in known.saw:
            known.saw[domain] = self._gate.saw(domain)
        return known.saw[domain]

    def _current(self) -> _Known:
        archive = self._gate.archive
        try:
            found = os.stat(archive.changes)  # noqa: PTH116 # asked for each search
            feed = (found.st_ino, found.st_size, found.st_mtime_ns)
        except FileNotFoundError:
            feed = (0, 0, 0)
        state = (feed, self._catalogue.state())
        if state != self._state or self._gate.now().timestamp() >= self._known.ends:
            domains = held_versions.domains(archive.database)
            self._known = _Known({domain: self._gate.snapshots(domain) for domain in domains}, {})
            self._state = state
        return self._known

    def _keys(self, domain: str, moment: Moment) -> Iterator[str]:
        """Yield the keys of the versions of a domain that a state has for the reader."""
        snapshots, saw = self._known.snapshots[domain], self._saw(domain)
        versions = (
            Version(each.path, each.blob, each.first, each.last, each.stored)
            for each in held_versions.versions_of(self._gate.archive.database, domain)
        )
        if moment.ever:
            scope = Scope(snapshots, saw)
            yield from (key(each.path, each.first) for each in versions if scope.shows(each))
            return
        # Of each publication its newest snapshot, and of these for each path the newest one.
        newest = visibility.newest_open(snapshots, _NEVER if moment.seq is None else moment.seq)
        best: dict[str, tuple[int, str]] = {}
        for version in versions:
            for each in newest:
                if self.has(each, domain, version):
                    best[version.path] = max(
                        best.get(version.path, (0, "")), (each.seq, key(version.path, version.first))
                    )
                    break
        yield from (name for _, name in best.values())


def _is_of_several(snapshots: Sequence[Snapshot]) -> bool:
    """Whether a reader's state is put together from several publications', or from less than a domain has."""
    return any(each.seen for each in snapshots) or len({each.publication for each in snapshots}) > 1


def _is_open(snapshots: Sequence[Snapshot]) -> bool:
    return all(each.standing is Standing.OPEN for each in snapshots)
