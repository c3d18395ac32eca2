"""The gate of an archive for one reader: asks the catalogue, the access rules, git and webarc.db, and decides.

Each call sees what the catalogue and the rules say now. What cannot be decided is closed: a catalogue or rules that
cannot be read raise Damaged or SettingsError.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import ClassVar

from webarcfs.archive.catalogue.captures import part_of
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.catalogue_database import RecordedPart, opened
from webarcfs.archive.catalogue.record import OWN, Record, State
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, Repository
from webarcfs.archive.history import sequence
from webarcfs.archive.index import held_versions
from webarcfs.archive.model.arc_paths import split
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.archive.model.metadata import CommitTag, now, parse_compact_time
from webarcfs.archive.system import deadline
from webarcfs.gate import visibility
from webarcfs.gate.access_file import AccessFile
from webarcfs.gate.access_rules import Access, AccessRules
from webarcfs.gate.visibility import (
    Absent,
    Answer,
    Blocked,
    Closed,
    Open,
    Saw,
    Scope,
    Snapshot,
    Standing,
    Version,
    standing,
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader: the name that a trusted proxy told, empty for the public."""

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
        found = self.version_at(path, seq)
        if found is None:
            return Absent()
        url, captured, version = found
        snapshots = self.snapshots(domain)
        answer: Answer = visibility.may(snapshots, version, self.saw(domain))
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

    def scope(self, domain: str) -> Scope:
        """Return all that the reader may see of a domain, but for the access rules."""
        return Scope(self.snapshots(domain), self.saw(domain))

    def rules(self) -> AccessRules:
        """Return the access rules as they are now. Raises SettingsError, OSError."""
        return self._access.rules()

    def domains(self) -> list[str]:
        """Return the domains of which the reader may see a snapshot, in order."""
        return [name for name in self.archive.domains() if any(_is_open(each) for each in self.snapshots(name))]

    def records(self, publication: str | None = None) -> Iterator[Record]:
        """Yield the records that the reader may see, newest capture first, with the fields that readers see."""
        for each in self._catalogue.records(publication):
            deadline.check()
            date = each.date
            if date is None:
                continue
            held = any(part.is_held for part in each.parts)
            said, _ = standing(each.state, held=held, closed_for=each.closed_for, captured=date, now=self._clock())
            if said is Standing.OPEN:
                yield each.for_readers(whole=self.shows_all_of(each.domains))

    def shows_all_of(self, domains: Iterable[str]) -> bool:
        """Return whether no rule takes a document of some domains from the reader."""
        rules = self.rules()
        return not any(rules.takes_from(domain, self.reader.name, self._clock()) for domain in domains)

    def standing(self, tag: CommitTag) -> Snapshot | None:
        """Return what a snapshot is to the reader; None if there is none."""
        seq = int(tag.crawl_time.timestamp())
        return next((each for each in self.snapshots(tag.domain) if each.seq == seq), None)

    def now(self) -> datetime:
        """Return the time by which closures and rules are judged."""
        return self._clock()

    # -- facts -------------------------------------------------------------------------------------------------------

    def snapshots(self, domain: str) -> list[Snapshot]:
        """Return the snapshots of a domain, oldest first; none if there is no such domain. Raises Damaged."""
        with opened(self.archive, self._catalogue) as database:
            recorded = database.parts(domain)
        try:
            store = Repository(self.archive.repository(domain))
        except NotFound:
            return []
        found = []
        for name in store.ref_names(CRAWLS):
            time = parse_compact_time(name)
            part = recorded.get(int(time.timestamp())) or self._unrecorded(store, f"{CRAWLS}{name}", time)
            if part is not None:
                found.append(self._snapshot(part, time))
        return sorted(found, key=lambda each: each.seq)

    def _snapshot(self, part: RecordedPart | _Unrecorded, time: datetime) -> Snapshot:
        state = part.state if isinstance(part, RecordedPart) else None
        closed_for = part.closed_for if isinstance(part, RecordedPart) else ""
        said, until = standing(state, held=part.is_held, closed_for=closed_for, captured=time, now=self._clock())
        return Snapshot(int(time.timestamp()), part.publication, said, part.seen, until)

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
        publications = lru_cache(maxsize=1)(lambda: {each.seq: each.publication for each in self.snapshots(domain)})

        @lru_cache(maxsize=_REMEMBERED)
        def has(tree: str, arc: str, blob: str) -> bool:
            folder = store.find(tree, arc)
            if folder is None or not folder.is_tree:
                return False
            return any(entry.oid == blob for entry in store.each(folder.oid) if not entry.is_tree)

        def saw(snapshot: Snapshot, version: Version) -> bool:
            if snapshot.seen == OWN:
                return publications().get(version.stored) == snapshot.publication
            return has(snapshot.seen, split(version.path)[1], version.blob)

        return saw

    def version_at(self, path: str, seq: int) -> tuple[str, datetime, Version] | None:
        """Return URL, time of capture and version of the document at a path in a snapshot."""
        found = held_versions.version_at(self.archive.database, path, seq)
        if found is None:
            return None
        version = Version(path, found.blob, found.first, found.last, found.stored)
        return found.url, found.captured, version


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
        return (each for each in self._catalogue.records(publication) if each.state is not State.DISCARDED)

    def snapshots(self, domain: str) -> list[Snapshot]:
        """Return the snapshots of a domain, oldest first."""
        return [opened_to_staff(each) for each in super().snapshots(domain)]


def opened_to_staff(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as it is to staff."""
    if snapshot.standing is Standing.DISCARDED:
        return snapshot
    return replace(snapshot, standing=Standing.OPEN, until=None)


@dataclass(frozen=True, slots=True)
class _Unrecorded:
    """A snapshot without a record, as git tells it."""

    seq: int
    seen: str
    is_held: bool
    publication: str


#: Answers about seen trees that are remembered.
_REMEMBERED = 65_536


def _is_open(snapshot: Snapshot) -> bool:
    return snapshot.standing is Standing.OPEN
