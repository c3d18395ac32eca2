"""Narrows webarc.db, links.db and the list of records to what a reader may see.

In webarc.db a view of the connection's own takes the place of `metadata`. The filter runs inside the query, so that
counts and limits are those of what the reader may see.

Of links.db a reader gets the links of pages that the reader may see, at times that the reader may know.

The records that a reader may see are heads for lists, which catalogue.db chooses, counts and sorts. A list costs what
it shows, and its first page no more than later ones. Three questions cost more: groups scan an index of all records,
words scan the records, and the number of sites scans all parts. A released record that is closed until a date is
listed, with what its description may say (the fields of availability); what it describes is not. Where a rule may take
a document from the reader, the record's own counts are left out: they are of all documents.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from webarcfs.access import access_rules
from webarcfs.access.access_rules import (
    Access,
    AccessFile,
    AccessRule,
    Open,
    Saw,
    Standing,
    VersionSpan,
    VisibleSnapshot,
    standing,
)
from webarcfs.access.gate import Gate
from webarcfs.access.reader_repositories import ReaderRepositories
from webarcfs.archive.catalogue.catalogue import (
    Catalogue,
    CatalogueDatabase,
    CrawlPlace,
    ShownGroup,
    ShownRecord,
    ShownSelection,
    opened,
)
from webarcfs.archive.catalogue.record import (
    BY_NUMBER,
    FieldPurpose,
    Record,
    ResourceCount,
)
from webarcfs.archive.config.directory import Archive, sql
from webarcfs.archive.git.repository import Repository, is_arc
from webarcfs.archive.history import redirect_lists, rendered_forms, versions
from webarcfs.archive.index import database
from webarcfs.archive.index.links import NEVER, LinkTarget, Question
from webarcfs.archive.index.query import DocumentOrigin, Narrowed, wanted_values
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

    def prepare(connection: sqlite3.Connection, equal: Mapping[str, str], origin: DocumentOrigin) -> None:
        of_origin = snapshots
        if origin.domain:  # of a domain of which nothing is shown nothing is read: not even the time tells of it
            of_origin = {domain: seen for domain, seen in snapshots.items() if domain == origin.domain}
        show(connection, of_origin, saw, permitted, named)
        equal = equal if gate.is_staff else {}
        if equal or not origin.is_any:
            _narrow(connection, equal, origin)

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


def _narrow(connection: sqlite3.Connection, equal: Mapping[str, str], origin: DocumentOrigin) -> None:
    """Leave out of the view, inside the gate, rows without the values of `equal`, by column, or of another origin.

    A version is of the publication that stored it, if the reader may see that crawl, else of the first one with it
    that the reader may see.
    """
    connection.execute(sql("gate/wanted"))
    connection.execute(sql("gate/insert_wanted"), wanted_values(equal, origin))
    connection.execute(sql("gate/drop_view"))
    terms = [sql(_TERMS[column]) for column in equal if column != "domain" or not origin.domain]
    terms += [sql("gate/of_shown_domains")] if origin.domain else []
    terms += [sql("gate/stored_by")] if origin.publication else []
    connection.execute("".join((sql("gate/view"), *terms, sql("gate/barrier"))))


# == reader links =====================================================================================================


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
        """Return from when to when a version of a page is known to the reader; None if it is not, or of another origin.

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
        publication = self._question.origin.publication
        if publication and access_rules.publication_of(snapshots, version, saw) != publication:
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


#: Heads that are remembered.
_ALONE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHead:
    """What lists show of a record. `documents` and `bytes` are of the whole snapshot.

    They are None where it was not counted, is closed, or where the reader may not see all of it.

    `title` is empty where no person gave it one, and `complete` None where nobody knows.

    `closed_until` is the end of its closure, None for an open one. `released` is when it was released, and
    `release_number` counts the releases of this record. What the feed says of it changed at `updated`. `tags` are the
    newest of each domain, those of sites first: a crawl that was cut or patched has several of one. Of
    `resource_domains` it has no page, only what pages of others needed. Times are CET.
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
    complete: bool | None
    documents: int | None
    bytes: int | None
    tags: tuple[CommitTag, ...]
    released: datetime
    updated: datetime
    release_number: int = 1
    resource_domains: frozenset[str] = frozenset()
    closed_until: datetime | None = None


#: Archive → the heads of its records that were asked for alone, whoever may see them, as long as something reads them:
#: state of the catalogue and record → what is kept of it; None where there is no such record.
_HEADS: WeakValueDictionary[Path, Cache[tuple[str, str], ShownRecord | None]] = WeakValueDictionary()
_LOCK = threading.Lock()


class ReaderRecords:
    """The records of an archive that a reader may see. For one thread.

    Each call asks catalogue.db, which is in step with the catalogue, and judges each record by the time and the rules
    of that moment. All raise Damaged of the catalogue, SettingsError of the rules.
    """

    def __init__(self, archive: Archive, clock: Callable[[], datetime] = now, reader: str = "") -> None:
        self._archive = archive
        self._catalogue = Catalogue(archive)
        self._clock = clock
        self._reader = reader
        self._access = AccessFile(archive)
        with _LOCK:
            self._heads = _HEADS.setdefault(archive.root, Cache(_ALONE))

    # -- lists -----------------------------------------------------------------------------------------------------

    def groups(self, chosen: ShownSelection | None = None) -> list[ShownGroup]:
        """Return counts of all records that readers may see, closed ones too, or of those that they choose."""
        with self._tables() as tables:
            return tables.groups(chosen)

    def listed(self, chosen: ShownSelection, part: slice, *, oldest: bool = False) -> list[RecordHead]:
        """Return a part of the records that readers choose, newest capture first."""
        with self._tables() as tables:
            shown = tables.shown(chosen, offset=part.start, limit=part.stop - part.start, oldest=oldest)
        return self._heads_of(shown)

    def newest(self, publications: Iterable[str], most: int) -> dict[str, list[RecordHead]]:
        """Return the newest records of publications, `most` at most of each, newest capture first."""
        with self._tables() as tables:
            shown = tables.newest_shown(publications, most)
        newest: dict[str, list[RecordHead]] = {}
        for head in self._heads_of(shown):
            newest.setdefault(head.publication, []).append(head)
        return newest

    def years_of(self, publication: str) -> dict[int, int]:
        """Return the number of a publication's records in each year between those of the first and of the last."""
        with self._tables() as tables:
            counts = tables.years_shown(publication)
        return {year: counts.get(year, 0) for year in range(min(counts), max(counts) + 1)} if counts else {}

    def of_publication(self, publication: str, part: slice) -> list[RecordHead]:
        """Return a part of a publication's records, newest capture first."""
        with self._tables() as tables:
            shown = tables.shown_of(publication, offset=part.start, limit=part.stop - part.start)
        return self._heads_of(shown)

    def collected(self, publications: Iterable[str], numbers: Iterable[int], part: slice) -> list[RecordHead]:
        """Return a part of the records of some publications, and of some numbers, newest capture first."""
        with self._tables() as tables:
            shown = tables.collected(publications, numbers, offset=part.start, limit=part.stop - part.start)
        return self._heads_of(shown)

    def places(self, record_ids: Iterable[str]) -> dict[str, CrawlPlace]:
        """Return where lists have those of these records that readers may see, closed ones too."""
        with self._tables() as tables:
            return tables.places(record_ids)

    def commit(self) -> str:
        """Return the state of the catalogue; empty without one."""
        state = self._catalogue.state()
        return "" if state is None else state.commit

    def beside(self, record_id: str, *, later: bool = False, only_open: bool = False) -> RecordHead | None:
        """Return the record of the same publication before another one, or after it; None without one."""
        opened_by = self._seconds() if only_open else None
        with self._tables() as tables:
            record = tables.head(record_id)
            neighbour = None if record is None else tables.shown_beside(record, later=later, opened_by=opened_by)
        return None if neighbour is None else next(iter(self._heads_of([neighbour])), None)

    def released(self, part: slice) -> list[RecordHead]:
        """Return a part of the open records, those first that were released last."""
        with self._tables() as tables:
            shown = tables.released(self._seconds(), offset=part.start, limit=part.stop - part.start)
        return self._heads_of(shown)

    def count_open(self) -> int:
        """Return the number of open records."""
        with self._tables() as tables:
            return tables.count_open(self._seconds())

    def last_gone(self) -> datetime | None:
        """Return when a record that readers had seen was taken from them last; None if that never happened."""
        with self._tables() as tables:
            return tables.last_gone()

    def count_sites(self) -> int:
        """Return the number of domains of which the records have a page."""
        with self._tables() as tables:
            return tables.count_sites()

    # -- one record ------------------------------------------------------------------------------------------------

    def head(self, record_id: str) -> RecordHead | None:
        """Return the head of a record; None if readers may not see it."""
        state = self._catalogue.state()
        if state is None:
            return None

        def alone() -> ShownRecord | None:
            with self._tables() as tables:
                return tables.head(record_id)

        shown = self._heads.get((state.commit, record_id), alone)
        return None if shown is None else self._judged(shown, self._whole())

    def read(self, record_id: str) -> Record:
        """Return a record as readers see it: of a closed one, the fields of availability. Raises NotFound."""
        head = self.head(record_id)
        if head is None:
            raise NotFound(f"there is no snapshot {record_id}")
        whole = self._whole()
        record = self._catalogue.read(record_id)[0].for_readers(whole=all(whole(tag.domain) for tag in head.tags))
        if head.closed_until is None:
            return record
        values = {n: value for n, value in record.values.items() if BY_NUMBER[n].kind is FieldPurpose.AVA}
        return replace(record, values=values, measures=(), resources=ResourceCount())

    def file(self, path: str) -> bytes | None:
        """Return the catalogue's copy of a file of settings; None without one."""
        return self._catalogue.file(path)

    # -- internal --------------------------------------------------------------------------------------------------

    @contextmanager
    def _tables(self) -> Iterator[CatalogueDatabase]:
        self._access.rules()  # with faults in them, nothing is told
        with opened(self._archive, self._catalogue) as tables:
            yield tables

    def _seconds(self) -> int:
        return int(self._clock().timestamp())

    def _whole(self) -> Callable[[str], bool]:
        """Return a function: whether no rule takes a document of a domain from the reader, as of now."""
        rules, at = self._access.rules(), self._clock()
        return cache(lambda domain: not rules.takes_from(domain, self._reader, at))

    def _heads_of(self, shown: Iterable[ShownRecord]) -> list[RecordHead]:
        whole = self._whole()
        heads = (self._judged(record, whole) for record in shown)
        return [head for head in heads if head is not None]

    def _judged(self, shown: ShownRecord, whole: Callable[[str], bool]) -> RecordHead | None:
        """Return what readers may see of a record now. `whole` says whether they may see all of a domain."""
        record_standing, until = standing(
            shown.state,
            held=shown.is_held,
            closed_for=shown.closed_for,
            captured=shown.date,
            now=self._clock(),
        )
        if not record_standing.is_told:
            return None
        head = whole_head(shown)
        if until is None and all(whole(tag.domain) for tag in head.tags):
            return head
        return replace(head, closed_until=until, documents=None, bytes=None)


def whole_head(shown: ShownRecord) -> RecordHead:
    """Return the head of a record as who may see all of it has it."""
    return RecordHead(
        id=shown.id,
        number=shown.number,
        publication=shown.publication,
        title=shown.title,
        signature=shown.signature,
        provenance=shown.provenance,
        project=shown.project,
        domain=shown.domain,
        is_occasion=shown.is_occasion,
        occasion=shown.occasion,
        date=shown.date,
        complete=shown.complete,
        documents=shown.documents,
        bytes=shown.bytes,
        tags=shown.tags,
        resource_domains=shown.resource_domains,
        released=shown.released,
        release_number=shown.releases,
        updated=shown.updated,
    )
