"""The records that a reader may see, as heads for lists: kept in memory, in step with the catalogue.

A released record that is closed until a date is listed, with what its description may say (the fields of availability);
what it describes is not. Where a rule may take a document from the reader, the record's own counts are left out: they
are of all documents. The cost of a change is that of the records that changed. What the catalogue says is the same for
all: a process reads it once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from sys import intern
from weakref import WeakValueDictionary

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.fields import BY_NUMBER, Kind
from webarcfs.archive.catalogue.record import Occasion, Record, State
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import CommitTag, now
from webarcfs.archive.system.cache import Cache
from webarcfs.gate.access_file import AccessFile
from webarcfs.gate.access_rules import AccessRules
from webarcfs.gate.visibility import Standing, standing

#: Records that are remembered before all of them are read.
_ALONE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHead:
    """What lists show of a record. `documents` and `bytes` are of the whole snapshot.

    They are None where it was not counted, is closed, or where the reader may not see all of it.

    `closed_until` is the end of its closure, None for an open one. `released` is when readers got it, and
    `release_number` counts the releases of this record. Times are CET.
    """

    id: str
    number: int
    publication: str
    title: str
    signature: str
    provenance: str
    project: str
    domain: str
    is_occasion: bool
    occasion: str
    date: datetime
    complete: bool
    documents: int | None
    bytes: int | None
    tags: tuple[CommitTag, ...]
    released: datetime
    release_number: int = 1
    closed_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class KeptHead:
    """What is kept of a record: its head, and what decides who may see it."""

    head: RecordHead
    state: State
    is_held: bool
    closed_for: str


class _Heads:
    """The heads of all records of an archive, whoever may see them, in step with its catalogue. For any thread."""

    def __init__(self) -> None:
        #: State of the catalogue and record → what is kept of it, of some that were read alone.
        self.alone: Cache[tuple[str | None, str], KeptHead | None] = Cache(_ALONE)
        self._lock = threading.Lock()
        self._commit: str | None = None
        self._kept: dict[str, KeptHead] = {}

    @property
    def is_read(self) -> bool:
        """Whether all records were read once: then only changes have to be."""
        return self._commit is not None

    def at(self, commit: str | None, catalogue: Catalogue) -> tuple[str | None, list[KeptHead]]:
        """Return the heads, brought in step if another thread did not; and the commit whose state they are."""
        with self._lock:
            if commit != self._commit:
                commit = _commit_of(catalogue)  # another thread may have been further already
                kept = dict(self._kept)
                for record_id, record in catalogue.changed(self._commit):
                    found = None if record is None else _kept(record)
                    if found is None:
                        kept.pop(record_id, None)
                    else:
                        kept[record_id] = found
                self._kept, self._commit = kept, commit
            return self._commit, list(self._kept.values())


#: Archive → the heads of its records, as long as something reads them.
_HEADS: WeakValueDictionary[Path, _Heads] = WeakValueDictionary()
_LOCK = threading.Lock()


class ReaderRecords:
    """The records of an archive that a reader may see. For one thread."""

    def __init__(self, archive: Archive, clock: Callable[[], datetime] = now, reader: str = "") -> None:
        self._catalogue = Catalogue(archive)
        self._clock = clock
        self._reader = reader
        self._access = AccessFile(archive)
        self._rules = AccessRules()
        #: Domain → whether no rule takes a document of it from the reader.
        self._whole: dict[str, bool] = {}
        with _LOCK:
            self._heads = _HEADS.setdefault(archive.root, _Heads())
        self._commit: str | None = None
        self._kept: list[KeptHead] = []
        self._shown: list[RecordHead] = []
        self._by_id: dict[str, RecordHead] = {}
        self._ends: float = 0

    def all(self) -> list[RecordHead]:
        """Return the heads of all records that readers may see, newest capture first. Raises Damaged."""
        self._follow()
        return self._shown

    def head(self, record_id: str) -> RecordHead | None:
        """Return the head of a record; None if readers may not see it."""
        self._follow()
        return self._by_id.get(record_id)

    def head_of_shown(self, record_id: str) -> RecordHead | None:
        """Return the head of the record of a snapshot that the reader sees; None if readers may not see the record.

        It is read alone as long as not all are known: reading thousands takes seconds, which a page need not wait for.
        """
        if self._heads.is_read:
            self._follow()
            return self._by_id.get(record_id)

        self._follow_rules()
        self._whole.clear()

        def alone() -> KeptHead | None:
            try:
                return _kept(self._catalogue.read(record_id)[0])
            except NotFound:
                return None

        found = self._heads.alone.get((_commit_of(self._catalogue), record_id), alone)
        return None if found is None else self._judged(found)[0]

    def read(self, record_id: str) -> Record:
        """Return a record as readers see it: of a closed one, the fields of availability. Raises NotFound."""
        head = self.head(record_id)
        if head is None:
            raise NotFound(f"there is no snapshot {record_id}")
        record = self._catalogue.read(record_id)[0].for_readers(whole=self._shows_all_of(head))
        if head.closed_until is None:
            return record
        values = {n: value for n, value in record.values.items() if BY_NUMBER[n].kind is Kind.AVA}
        return replace(record, values=values, measures=())

    def file(self, path: str) -> bytes | None:
        """Return the catalogue's copy of a file of settings; None without one."""
        return self._catalogue.file(path)

    def _follow(self) -> None:
        commit = _commit_of(self._catalogue)
        if commit != self._commit:
            self._commit, self._kept = self._heads.at(commit, self._catalogue)
            self._ends = 0
        self._follow_rules()
        if self._clock().timestamp() >= self._ends:
            self._judge()

    def _follow_rules(self) -> None:
        rules = self._access.rules()
        if rules != self._rules:
            self._rules, self._ends = rules, 0
            self._whole.clear()

    def _shows_all_of(self, head: RecordHead) -> bool:
        return all(self._shows_all(tag.domain) for tag in head.tags)

    def _shows_all(self, domain: str) -> bool:
        if domain not in self._whole:
            self._whole[domain] = not self._rules.takes_from(domain, self._reader, self._clock())
        return self._whole[domain]

    def _judge(self) -> None:
        """Decide which of them readers may see now, and when that changes by itself."""
        self._whole.clear()
        lapses = [rule.lapses.timestamp() for rule in self._rules.rules if rule.lapses is not None]
        shown, ends = [], min((at for at in lapses if at > self._clock().timestamp()), default=float("inf"))
        for each in self._kept:
            head, until = self._judged(each)
            if head is not None:
                shown.append(head)
            if until is not None:
                ends = min(ends, until.timestamp())
        self._shown = sorted(shown, key=lambda each: (each.date, each.number), reverse=True)
        self._by_id = {each.id: each for each in self._shown}
        self._ends = ends

    def _judged(self, each: KeptHead) -> tuple[RecordHead | None, datetime | None]:
        """Return what readers may see of a record now, and when that changes by itself."""
        said, until = standing(
            each.state, held=each.is_held, closed_for=each.closed_for, captured=each.head.date, now=self._clock()
        )
        if said is Standing.CLOSED and until is not None:
            return replace(each.head, closed_until=until, documents=None, bytes=None), until
        if said is not Standing.OPEN:
            return None, None
        return each.head if self._shows_all_of(each.head) else replace(each.head, documents=None, bytes=None), None


def _commit_of(catalogue: Catalogue) -> str | None:
    state = catalogue.state()
    return None if state is None else state.commit


def _kept(record: Record) -> KeptHead | None:
    """Return what is kept of a record; None for one without a capture."""
    if record.date is None:
        return None
    held = any(part.is_held for part in record.parts)
    return KeptHead(_head(record, record.date), record.state, held, record.closed_for)


def _head(record: Record, date: datetime) -> RecordHead:
    releases = [each.at for each in record.events if each.state is State.RELEASED]
    return RecordHead(
        id=record.id,
        number=record.number,
        publication=intern(record.publication),  # all records of a publication have much in common
        title=intern(record.title.text),
        signature=intern(record.text(2)),
        provenance=intern(record.text(3)),
        project=intern(record.text(4)),
        domain=intern(record.text(12) or ", ".join(record.domains[:1])),
        is_occasion=record.occasion is Occasion.OCCASION,
        occasion=record.text(5),
        date=date,
        complete=record.complete,
        documents=_number(record.text(23)),
        bytes=_number(record.text(22)),
        tags=tuple(part.tag for part in record.parts),
        released=releases[-1] if releases else date,
        release_number=max(len(releases), 1),
    )


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def years_of(heads: Iterable[RecordHead]) -> dict[int, int]:
    """Return the number of snapshots in each year, each year between the first and the last among them."""
    counts: dict[int, int] = {}
    for each in heads:
        counts[each.date.year] = counts.get(each.date.year, 0) + 1
    return {year: counts.get(year, 0) for year in range(min(counts), max(counts) + 1)} if counts else {}
