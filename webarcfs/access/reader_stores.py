"""Narrows webarc.db, links.db and the list of records to what a reader may see.

In webarc.db a view of the connection's own takes the place of `metadata`. The filter runs inside the query, so that
counts and limits are those of what the reader may see.

Of links.db a reader gets the links of pages that the reader may see, at times that the reader may know.

The records that a reader may see are heads for lists, kept in memory, in step with the catalogue. A released record
that is closed until a date is listed, with what its description may say (the fields of availability); what it describes
is not. Where a rule may take a document from the reader, the record's own counts are left out: they are of all
documents. The cost of a change is that of the records that changed. What the catalogue says is the same for all: a
process reads it once.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from sys import intern
from typing import Any
from weakref import WeakValueDictionary

from webarcfs.access import access_rules
from webarcfs.access.access_rules import (
    Access,
    AccessFile,
    AccessRule,
    AccessRules,
    Open,
    Saw,
    Standing,
    VersionSpan,
    VisibleSnapshot,
    standing,
)
from webarcfs.access.gate import Gate
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import (
    BY_NUMBER,
    FieldNumber,
    FieldPurpose,
    Occasion,
    Record,
    RecordState,
    ResourceCount,
)
from webarcfs.archive.config.directory import Archive, sql
from webarcfs.archive.git.repository import Repository, is_arc
from webarcfs.archive.history import redirect_lists, rendered_forms, versions
from webarcfs.archive.index import database
from webarcfs.archive.index.links import NEVER, LinkTarget, Question
from webarcfs.archive.index.query import COLUMNS, Narrowed
from webarcfs.archive.model.arc_paths import arc_path, second_name, split
from webarcfs.archive.model.errors import Damaged, InvalidDocument, NotFound, UrlRefused
from webarcfs.archive.model.metadata import CommitTag, from_epoch, now, parse_time
from webarcfs.archive.model.url_lists import LONGEST_CHAIN, without_fragment
from webarcfs.archive.system.cache import Cache

# == reader query =====================================================================================================


#: Answers of the rules that are remembered.
_REMEMBERED = 65_536
#: The term of the view for a column whose value is given.
_TERMS = {
    "url": "gate/equal_url",
    "path": "gate/equal_path",
    "domain": "gate/equal_domain",
    "commitTag": "gate/equal_commitTag",
}


def narrowed(gate: Gate) -> Narrowed | None:
    """Return what narrows a query to the gate's reader; None where nothing is hidden from it.

    A question of staff is asked only of the rows that have the values which it names. A reader's is not: the work
    would show whether a hidden row has them.

    Raises what the gate raises: SettingsError for access rules with faults, Damaged for a catalogue that is.
    """
    rules = gate.rules()
    snapshots = {domain: gate.snapshots(domain) for domain in database.domains(gate.archive.database)}
    if not rules.rules and all(
        snapshot.standing is Standing.OPEN for domain_snapshots in snapshots.values() for snapshot in domain_snapshots
    ):
        return None

    @lru_cache(maxsize=_REMEMBERED)
    def rule_of(url: str, captured: str) -> AccessRule | None:
        return rules.find(url, gate.reader.name, parse_time(captured), gate.now())

    def permitted(url: str, captured: str) -> bool:
        rule = rule_of(url, captured)
        return rule is None or rule.access is Access.ALLOW

    def named(url: str, captured: str) -> bool:
        rule = rule_of(url, captured)
        return rule is not None and rule.access is Access.ALLOW and bool(rule.user)

    sees: dict[str, Saw] = {}

    def saw(domain: str, snapshot: VisibleSnapshot, version: VersionSpan) -> bool:
        if domain not in sees:
            sees[domain] = gate.saw(domain)
        return sees[domain](snapshot, version)

    def prepare(connection: sqlite3.Connection, equal: Mapping[str, str]) -> None:
        show(connection, snapshots, saw, permitted, named)
        if gate.is_staff and equal:
            _narrow(connection, equal)

    return prepare


def show(
    connection: sqlite3.Connection,
    snapshots: Mapping[str, Sequence[VisibleSnapshot]],
    saw: Callable[[str, VisibleSnapshot, VersionSpan], bool],
    permitted: Callable[[str, str], bool],
    named: Callable[[str, str], bool],
) -> None:
    """Make the view `metadata` of a connection to webarc.db that of a reader, for as long as it is open.

    `snapshots` are those of each domain. `permitted` and `named` say of URL and time of capture whether no rule takes
    it away, and whether a rule allows it to the reader by name.
    """

    def sees(*about: Any) -> bool:
        domain, seq, publication, seen, path, blob, stored = about
        snapshot = VisibleSnapshot(seq, publication, Standing.OPEN, seen)
        return saw(domain, snapshot, VersionSpan(path, blob.hex(), seq, seq + 1, stored))

    connection.create_function("permitted", 2, permitted)
    connection.create_function("named", 2, named)
    connection.create_function("saw", 7, sees)
    connection.execute(sql("gate/snapshots"))
    for domain, domain_snapshots in snapshots.items():
        for snapshot in domain_snapshots:
            if snapshot.standing.is_told:
                values = {
                    "domain": domain,
                    "seq": snapshot.seq,
                    "publication": snapshot.publication,
                    "seen": snapshot.seen,
                }
                closed = int(snapshot.standing is Standing.CLOSED)
                connection.execute(sql("gate/insert_snapshot"), values | {"closed": closed})
    connection.execute(sql("gate/view") + sql("gate/barrier"))


def _narrow(connection: sqlite3.Connection, equal: Mapping[str, str]) -> None:
    """Leave out of the view, inside the gate, rows that do not have the values of `equal`, by column."""
    connection.execute(sql("gate/wanted"))
    connection.execute(sql("gate/insert_wanted"), {column: equal.get(column) for column in COLUMNS})
    connection.execute(sql("gate/drop_view"))
    terms = (sql(_TERMS[column]) for column in equal)
    connection.execute("".join((sql("gate/view"), *terms, sql("gate/barrier"))))


# == reader links =====================================================================================================


#: Answers about targets that are remembered.


class ReaderLinks:
    """The links that a reader may see of an answer to one question. For one thread."""

    def __init__(self, gate: Gate, repositories: ReaderRepositories, question: Question) -> None:
        self._gate = gate
        self._repositories = repositories
        self._question = question
        self._at = None if question.at is None else int(question.at.crawl_time.timestamp())
        self._facts = cache(self._facts_of)
        self._state = cache(self._state_of)
        self._dom = lru_cache(maxsize=_REMEMBERED)(self._dom_of)
        self.held = lru_cache(maxsize=_REMEMBERED)(self._held)

    def span(self, path: str, first: int, last: int) -> tuple[int, int] | None:
        """Return from when to when a version of a page is known to the reader; None if it is not.

        That is from the first open snapshot that contains it to the first open one that does not.
        """
        domain = split(path)[0]
        snapshots, saw = self._facts(domain)
        capture = self._gate.version_at(path, first)
        if capture is None:
            return None
        url, captured, version = capture
        answer = self._gate.with_rules(access_rules.may(snapshots, version, saw), url, captured)
        if not isinstance(answer, Open) or self._has_hidden_dom(path, version.stored, answer.since):
            return None
        if self._at is None and not self._question.ever:
            now = access_rules.newest_open(snapshots, NEVER)
            if not any(
                first <= snapshot.seq < last and (not snapshot.seen or saw(snapshot, version)) for snapshot in now
            ):
                return None
        later = [snapshot.seq for snapshot in snapshots if snapshot.standing is Standing.OPEN and snapshot.seq >= last]
        return answer.since, min(later, default=NEVER)

    def _has_hidden_dom(self, path: str, stored: int, since: int) -> bool:
        """Return whether links of a version may be of a DOM that only a crawl showed which the reader does not see.

        `since` is the first open snapshot that has the version; 0 where a rule allows it by name and closed ones have
        it alone.
        """
        seen = (Standing.OPEN,) if since else (Standing.OPEN, Standing.CLOSED)
        snapshots = self._facts(split(path)[0])[0]
        return access_rules.hides_form(snapshots, stored, seen) and self._dom(path, stored)

    def _dom_of(self, path: str, stored: int) -> bool:
        """Return whether a browser showed a DOM of the version that a snapshot stored; also if nobody can tell."""
        domain, arc = split(path)
        try:
            store = Repository(self._gate.archive.repository(domain))
            form = rendered_forms.named_at(store, CommitTag(from_epoch(stored), domain), arc)
            return bool(form) and bool(rendered_forms.html_blob(store, form))
        except (NotFound, Damaged, InvalidDocument):
            return True

    def _facts_of(self, domain: str) -> tuple[list[VisibleSnapshot], Saw]:
        return self._gate.snapshots(domain), self._gate.saw(domain)

    def _state_of(self, domain: str) -> tuple[Repository, str] | None:
        """Return the store and the tree of a domain as the reader sees it; None if it sees none of it."""
        try:
            store = self._repositories.open(domain)
        except NotFound:
            return None
        seen = versions.snapshots(store, domain)
        tags = [(tag, oid) for tag, oid in seen if self._at is None or tag.crawl_time.timestamp() <= self._at]
        return (store, store.commit(tags[-1][1]).tree) if tags else None

    def _held(self, url: str) -> LinkTarget:
        """Return what the reader may see of a URL."""
        try:
            for _ in range(LONGEST_CHAIN + 1):
                path = arc_path(url)
                state = self._state(split(path)[0])
                if state is None:
                    return LinkTarget(False, "")
                redirect = redirect_lists.of_url(*state, url)
                target = without_fragment(redirect.target) if redirect is not None else url
                if target == url:
                    break
                url = target
            else:
                return LinkTarget(True, "")
            # As for those who may see all: a folder without its slash is the folder's page.
            folder = path if "?" in url else arc_path(f"{url}/")
        except UrlRefused:
            return LinkTarget(False, "")
        paths = (candidate for candidate in (second_name(path, url), path, folder) if _has(*state, split(candidate)[1]))
        return LinkTarget(True, next((f"/{path}" for path in paths), ""))


def _has(store: Repository, tree: str, arc: str) -> bool:
    entry = store.find(tree, arc)
    return entry is not None and entry.is_tree and is_arc(store.each(entry.oid))


# == reader records ===================================================================================================


#: Records that are remembered before all of them are read.
_ALONE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHead:
    """What lists show of a record. `documents` and `bytes` are of the whole snapshot.

    They are None where it was not counted, is closed, or where the reader may not see all of it.

    `closed_until` is the end of its closure, None for an open one. `released` is when readers got it, and
    `release_number` counts the releases of this record. `tags` are the newest of each domain, those of sites first: a
    crawl that was cut or patched has several of one. Of `resource_domains` it has no page, only what pages of others
    needed. Times are CET.
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
    resource_domains: frozenset[str] = frozenset()
    closed_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class KeptHead:
    """What is kept of a record: its head, and what decides who may see it."""

    head: RecordHead
    state: RecordState
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
                    kept_head = None if record is None else _kept(record)
                    if kept_head is None:
                        kept.pop(record_id, None)
                    else:
                        kept[record_id] = kept_head
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

        kept_head = self._heads.alone.get((_commit_of(self._catalogue), record_id), alone)
        return None if kept_head is None else self._judged(kept_head)[0]

    def read(self, record_id: str) -> Record:
        """Return a record as readers see it: of a closed one, the fields of availability. Raises NotFound."""
        head = self.head(record_id)
        if head is None:
            raise NotFound(f"there is no snapshot {record_id}")
        record = self._catalogue.read(record_id)[0].for_readers(whole=self._shows_all_of(head))
        if head.closed_until is None:
            return record
        values = {n: value for n, value in record.values.items() if BY_NUMBER[n].kind is FieldPurpose.AVA}
        return replace(record, values=values, measures=(), resources=ResourceCount())

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
        for kept_head in self._kept:
            head, until = self._judged(kept_head)
            if head is not None:
                shown.append(head)
            if until is not None:
                ends = min(ends, until.timestamp())
        self._shown = sorted(shown, key=lambda head: (head.date, head.number), reverse=True)
        self._by_id = {head.id: head for head in self._shown}
        self._ends = ends

    def _judged(self, kept_head: KeptHead) -> tuple[RecordHead | None, datetime | None]:
        """Return what readers may see of a record now, and when that changes by itself."""
        record_standing, until = standing(
            kept_head.state,
            held=kept_head.is_held,
            closed_for=kept_head.closed_for,
            captured=kept_head.head.date,
            now=self._clock(),
        )
        if record_standing is Standing.CLOSED and until is not None:
            return replace(kept_head.head, closed_until=until, documents=None, bytes=None), until
        if record_standing is not Standing.OPEN:
            return None, None
        return kept_head.head if self._shows_all_of(kept_head.head) else replace(
            kept_head.head, documents=None, bytes=None
        ), None


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
    releases = [event.at for event in record.events if event.state is RecordState.RELEASED]
    return RecordHead(
        id=record.id,
        number=record.number,
        publication=intern(record.publication),  # all records of a publication have much in common
        title=intern(record.title.text),
        signature=intern(record.text(FieldNumber.SIGNATURE)),
        provenance=intern(record.text(FieldNumber.PROVENANCE)),
        project=intern(record.text(FieldNumber.PROJECT)),
        domain=intern(record.text(FieldNumber.DOMAIN) or ", ".join(record.domains[:1])),
        is_occasion=record.occasion is Occasion.OCCASION,
        occasion=record.text(FieldNumber.OCCASION),
        date=date,
        complete=record.complete,
        documents=_number(record.text(FieldNumber.FILES)),
        bytes=_number(record.text(FieldNumber.BYTES)),
        tags=record.newest_tags,
        resource_domains=record.domains_without_pages,
        released=releases[-1] if releases else date,
        release_number=max(len(releases), 1),
    )


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def years_of(heads: Iterable[RecordHead]) -> dict[int, int]:
    """Return the number of snapshots in each year, each year between the first and the last among them."""
    counts: dict[int, int] = {}
    for head in heads:
        counts[head.date.year] = counts.get(head.date.year, 0) + 1
    return {year: counts.get(year, 0) for year in range(min(counts), max(counts) + 1)} if counts else {}
