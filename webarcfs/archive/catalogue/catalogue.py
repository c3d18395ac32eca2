"""The catalogue: catalogue.git, with a record.xml for each capture, and the tables of catalogue.db that derive from it.

catalogue.git derives from nothing: edits, releases and withdrawals are there only. Each change is a commit by its
author. A record lies at `records/<publication>/<YYYY>/<id>.xml`, its attachments in the folder `<id>` beside it. The
files `number` (given last), `described` (the number in the feed up to which each capture has a record) and `discarded`
(the ids of discarded records, a line each) lie at the top. All methods raise Damaged if the repository cannot be read.

Captures come from git: which crawls' commits one job made, and what it saw. A commit of layout 2 names its job. Of
older ones those of the same publication and time are one job, whose name these two are; imports are one by the same
files. Nothing else is read: no report, no catalogue.

catalogue.db has what decisions and lists need of the records: what a row shows of each without reading it, and which
ones a list chooses. Who opens it brings it in step with the catalogue; the cost follows the records that changed. A
user who may not write gets tables of his own, in memory.
"""

from __future__ import annotations

import errno
import heapq
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from io import IOBase
from pathlib import Path
from typing import Any

from webarcfs.archive.catalogue.record import (
    OWN,
    PAGE,
    CrawlPart,
    Event,
    FieldNumber,
    Occasion,
    Record,
    RecordState,
    Value,
    is_import,
    newest_of,
    publication_of,
    read_record,
    write_record,
)
from webarcfs.archive.catalogue.workflow import HELD, Progress, WorkflowStep, progress_of
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.git.repository import CRAWLS, MAIN, PUBLICATIONS, Commit, RefUpdate, Repository, TreeEntry
from webarcfs.archive.history import sequence
from webarcfs.archive.index.sqlite_file import STEPS_BETWEEN_LOOKS, SqliteFile, remove
from webarcfs.archive.model.errors import Busy, Damaged, DatabaseDamaged, InvalidDocument, NotFound
from webarcfs.archive.model.metadata import CommitTag, compact_time, from_epoch, now, parse_compact_time
from webarcfs.archive.system import clocks, locks
from webarcfs.archive.system.files import size_of

# == captures =========================================================================================================


@dataclass(frozen=True, slots=True)
class CapturedPart:
    """A crawl's commit on a domain, with what names its job."""

    part: CrawlPart
    job: str
    publication: str
    sources: tuple[str, ...]
    time: int
    sequence: int
    patch: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What the commits of one job have in common, and no others."""
        if self.job:
            return (self.job,)
        if self.sources:
            return (self.publication, *sorted(self.sources))
        return (self.publication, str(self.time))


@dataclass(frozen=True, slots=True)
class PublishedCrawl:
    """What one job published: its parts in the order of the feed. `is_import`: it read files, and fetched nothing.

    `last` is the number in the feed of its last part, `sequence` of its first. `patches` are the jobs that asked again
    for what it had not got.
    """

    job: str
    publication: str
    parts: tuple[CrawlPart, ...]
    sequence: int
    last: int
    is_import: bool
    patches: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the last of its parts on each domain is complete."""
        return all({part.tag.domain: part.complete for part in self.parts}.values())

    @property
    def is_held(self) -> bool:
        """Whether readers were not allowed to see it at once."""
        return any(part.is_held for part in self.parts)


def captures(archive: Archive, tags: Iterable[CommitTag] | None = None) -> list[PublishedCrawl]:
    """Return the captures of an archive, or those of some commitTags, in the order of the feed.

    Skips what cannot be read: `verify` reports it.
    """
    jobs: dict[tuple[str, ...], list[CapturedPart]] = {}
    for captured_part in _all_parts(archive) if tags is None else _named_parts(archive, tags):
        jobs.setdefault(captured_part.key, []).append(captured_part)
    all_captures = (_capture(sorted(parts, key=lambda part: part.sequence)) for parts in jobs.values())
    return sorted(all_captures, key=lambda capture: capture.sequence)


def _all_parts(archive: Archive) -> Iterator[CapturedPart]:
    for domain in archive.domains():
        with suppress(NotFound, Damaged):
            store = Repository(archive.repository(domain))
            for name in store.ref_names(CRAWLS):
                yield from _at(store, f"{CRAWLS}{name}")


def _named_parts(archive: Archive, tags: Iterable[CommitTag]) -> Iterator[CapturedPart]:
    stores: dict[str, Repository] = {}
    for tag in tags:
        with suppress(NotFound, Damaged):
            if tag.domain not in stores:
                stores[tag.domain] = Repository(archive.repository(tag.domain))
            yield from _at(stores[tag.domain], tag.ref)


def _at(store: Repository, ref: str) -> Iterator[CapturedPart]:
    with suppress(Damaged):
        target = store.ref(ref)
        commit = sequence.crawl_commit(store, target) if target is not None else None
        if commit is not None:
            yield _part(store, commit)


def part_of(store: Repository, commit: Commit) -> CrawlPart:
    """Return what a crawl's commit published. Of layout 1 git has no seen tree: then each publication saw its own."""
    message = commit.message
    seen = message.seen
    if not seen and not message.job and len(_publications(store)) > 1:
        seen = OWN
    return CrawlPart(message.tag, message.complete, seen, message.is_held, not message.has_pages)


def _publications(store: Repository) -> set[str]:
    """Return the publications that ever published on a domain."""
    publications = set(store.ref_names(PUBLICATIONS))
    for target in store.refs(CRAWLS).values() if len(publications) <= 1 else ():
        with suppress(Damaged):
            commit = sequence.crawl_commit(store, target)
            publications |= {commit.message.publication} if commit is not None else set()
    return publications


def _part(store: Repository, commit: Commit) -> CapturedPart:
    message = commit.message
    part = part_of(store, commit)
    sources = tuple(message.all("Source"))
    return CapturedPart(part, message.job, message.publication, sources, commit.time, message.sequence, message.patch)


def _capture(parts: list[CapturedPart]) -> PublishedCrawl:
    first = parts[0]
    job = first.job or f"{compact_time(from_epoch(first.time))}-{first.publication}"
    own = tuple(captured_part.part for captured_part in parts if not captured_part.patch)
    shown = with_patch(own, (captured_part.part for captured_part in parts if captured_part.patch))
    patches = tuple(dict.fromkeys(captured_part.patch for captured_part in parts if captured_part.patch))
    sequences = first.sequence, parts[-1].sequence
    return PublishedCrawl(job, first.publication, shown, *sequences, bool(first.sources), patches)


def with_patch(parts: tuple[CrawlPart, ...], more: Iterable[CrawlPart]) -> tuple[CrawlPart, ...]:
    """Return the parts of a crawl with those of its patch that it lacks.

    A patch only adds: a host that was complete before is so after it, and no other one becomes complete by it.
    """
    complete = {part.tag.domain: part.complete for part in parts}
    tags = {part.tag for part in parts}
    new = (part for part in more if part.tag not in tags)
    return (*parts, *(replace(part, complete=complete.get(part.tag.domain, False)) for part in new))


# == record rows, pure ================================================================================================


#: The states of records that people have to look at: not released, and not put aside.
WAITING = tuple(state for state in RecordState if state in HELD)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A record in a list. `documents` and `bytes` are None if not counted; `…_before` are those of the one before.

    `before` is the id of the counted record of the same publication that comes before it, empty without one.
    `complete` is None for an import that does not say it.
    """

    id: str
    number: int
    publication: str
    state: RecordState
    title: str
    domain: str
    date: datetime
    complete: bool | None
    has_parts: bool
    is_occasion: bool
    reason: str
    release: str
    closed_for: str
    documents: int | None
    bytes: int | None
    progress: Progress
    before: str = ""
    documents_before: int | None = None
    bytes_before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSelection:
    """What a list chooses: an empty text, or None, chooses all. `since` is a time in seconds since 1970.

    `words` are words that the record has in its title, domains, publication, signature, provenance, project, occasion
    or number. `waits`: people have to decide. `complete`, `passed`: as the capture and the last check were.
    """

    publication: str = ""
    state: str = ""
    words: str = ""
    year: str = ""
    waits: bool = False
    complete: bool | None = None
    passed: bool | None = None
    since: int = 0

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the statements in sql/catalogue/."""
        words = self.words.casefold().split()[:3]
        begin, end = _year(self.year)
        return {
            "publication": self.publication,
            "state": self.state,
            "waits": int(self.waits),
            "complete": -1 if self.complete is None else int(self.complete),
            "passed": -1 if self.passed is None else int(self.passed),
            "since": max(self.since, begin),
            "until": end,
            **{f"word{at}": words[at - 1] if at <= len(words) else "" for at in (1, 2, 3)},
        }


def _year(text: str) -> tuple[int, int]:
    if not (text.isascii() and text.isdecimal() and len(text) == 4):
        return 0, 1 << 40
    begin = parse_compact_time(f"{text}0101T000000") if int(text) else from_epoch(0)
    end = parse_compact_time(f"{int(text) + 1}0101T000000") if 0 < int(text) < 9999 else from_epoch(1 << 37)
    return int(begin.timestamp()), int(end.timestamp())


#: A number of more digits is none that SQLite could have.
_DIGITS = 15


def values_of(record: Record) -> dict[str, Any]:
    """Return the columns of a record, for `catalogue/insert_record`."""
    progress = progress_of(record)
    domains = ", ".join(record.domains)
    title = record.title.text
    words = (title, domains, record.publication, record.id, str(record.number), *map(record.text, (2, 3, 4, 5, 12)))
    return {
        "date": int((record.date or _begun(record)).timestamp()),
        "title": title,
        "titled": int(record.has_own_title),
        "domain": record.text(FieldNumber.DOMAIN) or domains,
        "complete": record.completeness,
        "parts": len(record.parts),
        "occasion": int(record.occasion is Occasion.OCCASION),
        "reason": record.text(FieldNumber.OCCASION),
        "release": record.release,
        "documents": _number(record.text(FieldNumber.FILES)),
        "bytes": _number(record.text(FieldNumber.BYTES)),
        "resources": record.resources.bytes,
        "waits": int(record.state in HELD),
        "passed": int(progress.passed),
        "progress": _told(progress),
        "extensions": int(bool(record.text(FieldNumber.FILES_BY_EXTENSION))),
        "words": " ".join(words).casefold(),
        **_reader_values(record),
    }


def release_of(
    state: RecordState | None, *, held: bool, closed_for: str, captured: datetime
) -> tuple[bool, datetime | None]:
    """Return whether readers may know of a snapshot, and the end of its closure. `state` is that of its record.

    `held`: git says that it was not to be shown at once. A closure that cannot be read hides it.
    """
    if state is None or state is RecordState.OPEN:
        return not held, None
    if state is not RecordState.RELEASED or not closed_for:
        return state is RecordState.RELEASED, None
    try:
        return True, Interval.parse(closed_for).after(captured)
    except (ValueError, OverflowError):
        return False, None


def _reader_values(record: Record) -> dict[str, Any]:
    """Return the columns that lists of the reading room choose and sort by.

    `shown` narrows a list to what its reader may see in it. Whoever reads a row judges it again.
    """
    held = any(part.is_held for part in record.parts)
    date = record.date or _begun(record)
    releases = [event.at for event in record.events if event.state is RecordState.RELEASED]
    is_shown, until = release_of(record.state, held=held, closed_for=record.closed_for, captured=date)
    fields = {
        "signature": record.text(FieldNumber.SIGNATURE),
        "provenance": record.text(FieldNumber.PROVENANCE),
        "project": record.text(FieldNumber.PROJECT),
        "host": record.text(FieldNumber.DOMAIN) or ", ".join(record.domains[:1]),
    }
    words = (record.title.text, *fields.values(), record.publication, record.text(FieldNumber.OCCASION),
             str(record.number), *record.domains)  # fmt: skip
    return {
        **fields,
        "held": int(held),
        "shown": int(is_shown and bool(record.parts)),
        "closedUntil": 0 if until is None else int(until.timestamp()),
        "year": str(date.year),
        "released": int((releases[-1] if releases else date).timestamp()),
        "releases": max(len(releases), 1),
        "updated": int(max(_changes_of(record, date, until)).timestamp()),
        "gone": int(bool(releases) and not is_shown),
        "readerWords": " ".join(words).casefold(),
    }


def _changes_of(record: Record, date: datetime, until: datetime | None) -> Iterator[datetime]:
    """Yield when what the feed says of a record changed: a field that an entry shows, or whether it is there at all.

    `until` is the end of its closure. Later changes of a record that readers may not see any more are not told.
    """
    yield date
    was_released = False
    for event in record.events:
        if event.state is RecordState.RELEASED or (was_released and event.state is not None):
            yield event.at
        was_released = event.state is RecordState.RELEASED or (was_released and event.state is None)
    if record.state is RecordState.RELEASED:
        values = (record.title, *(record.values.get(number, Value("")) for number in _IN_ENTRIES))
        yield from (value.at for value in values if value.at is not None)
        yield from () if until is None else (until,)


#: Fields that an entry of the feed shows.
_IN_ENTRIES = (FieldNumber.PROVENANCE, FieldNumber.DOMAIN)
#: After the end of all closures, in seconds.
_NEVER = (1 << 62) - 1


def row_of(row: Any) -> RecordRow:
    """Return the row of a line that `catalogue/list_records` found."""
    (number, publication, state, title, domain, date, complete, parts, occasion, reason, release, closed_for,
     documents, size, passed, progress, record_id, before, documents_before, bytes_before) = row  # fmt: skip
    return RecordRow(
        id=record_id, number=number, publication=publication, state=RecordState(state), title=title, domain=domain,
        date=from_epoch(date), complete=_known(complete), has_parts=bool(parts), is_occasion=bool(occasion),
        reason=reason if occasion else "", release=release, closed_for=closed_for, documents=documents, bytes=size,
        progress=_read(progress, RecordState(state), complete=bool(complete), passed=bool(passed)),
        before=before or "", documents_before=documents_before, bytes_before=bytes_before,
    )  # fmt: skip


def _known(flag: int | None) -> bool | None:
    """Return a flag of a table; None where it is not known."""
    return None if flag is None else bool(flag)


def _begun(record: Record) -> datetime:
    """Return when a record without parts was made: its id begins with that."""
    with suppress(Damaged):
        return parse_compact_time(record.id.partition("-")[0])
    return record.events[0].at if record.events else from_epoch(0)


def _number(text: str) -> int | None:
    """Return what a field says that somebody may have typed; None if it is no number that SQLite can have."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None


def _told(progress: Progress) -> str:
    fields = {
        "done": sorted(progress.done),
        "fetching": progress.is_fetching,
        "looks": progress.looks_wanted,
        "checkers": sorted(progress.checkers),
        "back": progress.is_taken_back,
    }
    return json.dumps({name: value for name, value in fields.items() if value}, ensure_ascii=False)


def _read(text: str, state: RecordState, *, complete: bool, passed: bool) -> Progress:
    fields = json.loads(text)
    return Progress(
        state=state,
        done=frozenset(WorkflowStep(step) for step in fields.get("done", ())),
        is_complete=complete,
        is_fetching=bool(fields.get("fetching")),
        looks_wanted=bool(fields.get("looks")),
        passed=passed,
        checkers=frozenset(fields.get("checkers", ())),
        is_taken_back=bool(fields.get("back")),
    )


# == catalogue ========================================================================================================


RECORDS = "records"
_NUMBER = "number"
_DESCRIBED = "described"
_DISCARDED = "discarded"
_ENDING = ".xml"
_IS_RECORD = re.compile(rf"{RECORDS}/[^/]+/[^/]+/[^/]+\{_ENDING}", re.DOTALL)
#: Times that a change is tried which others of the record overtake.
_TRIES = 10
#: libgit2 writes a stream to a file as it is, and then compressed, beside it.
_TIMES_WRITTEN = 2
_SPACE_OF_A_COMMIT = 1 << 18
#: Characters that the name of a commit's author cannot have.
_NOT_IN_AUTHORS = re.compile(r"[<>\x00-\x1f]+")


@dataclass(frozen=True, slots=True)
class CatalogueState:
    """A state of catalogue.git: a commit and its tree."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class FileState:
    """Copies of settings as a commit left them; None: a file was not there."""

    subject: str
    author: str
    time: datetime
    contents: tuple[bytes | None, ...]


class Catalogue:
    """The records of an archive. For one thread; each method reads the newest state. Empty without a catalogue.git."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._opened: Repository | None = None
        self._discarded: tuple[str, frozenset[str]] = ("", frozenset())

    # -- reading ---------------------------------------------------------------------------------------------------

    def state(self) -> CatalogueState | None:
        """Return the newest state; None if there is no catalogue yet."""
        store = self._store()
        oids = None if store is None else store.tree_of(MAIN)
        return None if oids is None else CatalogueState(*oids)

    def ids(self, publication: str | None = None) -> Iterator[str]:
        """Yield the ids of all records, or of a publication's, newest capture first. No record is read."""
        return (record_id for record_id, _ in self._files(publication))

    def records(self, publication: str | None = None) -> Iterator[Record]:
        """Yield all records, or those of a publication, newest capture first."""
        for record_id, blob in self._files(publication):
            yield self._parsed(blob, record_id)

    def read(self, record_id: str) -> tuple[Record, str]:
        """Return a record and the id of its blob, for `save`. Raises NotFound."""
        blob = self._find(record_id)
        if blob is None:
            raise NotFound(f"the catalogue has no record {record_id}; `webarc-agent record list` lists them")
        return self._parsed(blob, record_id), blob

    def has(self, record_id: str) -> bool:
        """Return whether there is a record of that id."""
        return self._find(record_id) is not None

    def newest(self, publication: str, before: str) -> Record | None:
        """Return the newest counted record of a publication whose id is less than `before`; None without one."""
        older = (record_id for record_id in self.ids(publication) if record_id < before)
        records = (self.read(record_id)[0] for record_id in older)
        return next((record for record in records if record.parts and record.state is not RecordState.DISCARDED), None)

    def discarded(self) -> frozenset[str]:
        """Return the ids of the discarded records. It costs a look at a ref if nothing changed."""
        state = self.state()
        if state is None:
            return frozenset()
        known = self._discarded
        if known[0] != state.commit:
            known = self._discarded = (state.commit, self._lines(state.tree, _DISCARDED))
        return known[1]

    def described(self) -> int:
        """Return the number in the feed up to which each capture has a record."""
        state = self.state()
        return 0 if state is None else self._whole(state.tree, _DESCRIBED)

    def changed(self, since: str | None) -> Iterator[tuple[str, Record | None]]:
        """Yield the records that differ from the state of a commit, by id; None for one that is gone."""
        store, state = self._store(), self.state()
        if store is None or state is None:
            return
        old = store.tree_at(since) if since is not None else None
        for difference in store.differences(old, state.tree):
            if _IS_RECORD.fullmatch(difference.path):
                record_id = difference.path.rpartition("/")[2].removesuffix(_ENDING)
                yield record_id, None if difference.new is None else self._parsed(difference.new, record_id)

    def file(self, path: str) -> bytes | None:
        """Return the newest copy of a file of settings; None without one."""
        store, state = self._store(), self.state()
        entry = store.find(state.tree, path) if store is not None and state is not None else None
        return store.read(entry.oid) if store is not None and entry is not None and not entry.is_tree else None

    def history(self, record_id: str) -> Iterator[Event]:
        """Yield the commits that changed a record, newest first: their subject, time and author."""
        store, state = self._store(), self.state()
        oid = None if state is None else state.commit
        while store is not None and oid is not None:
            commit = store.plain_commit(oid)
            parent = commit.parents[0] if commit.parents else None
            before = None if parent is None else store.tree_at(parent)
            if self._find(record_id, commit.tree) != (self._find(record_id, before) if before is not None else None):
                yield Event(commit.subject, from_epoch(commit.time), commit.author)
            oid = parent

    def file_states(self, *paths: str) -> Iterator[FileState]:
        """Yield the states of copies of settings, newest first: each commit that changed one of them.

        Raises what the thread's deadline raises.
        """
        store, state = self._store(), self.state()
        if store is None or state is None:
            return
        nothing: list[TreeEntry | None] = [None for _ in paths]
        commit = store.plain_commit(state.commit)
        entries = [store.find(commit.tree, path) for path in paths]
        while entries != nothing:
            clocks.check()
            parent = store.plain_commit(commit.parents[0]) if commit.parents else None
            before = nothing if parent is None else [store.find(parent.tree, path) for path in paths]
            if entries != before:
                contents = tuple(None if entry is None else store.read(entry.oid) for entry in entries)
                yield FileState(commit.subject, commit.author, from_epoch(commit.time), contents)
            if parent is None:
                return
            commit, entries = parent, before

    def attachment(self, record_id: str, name: str) -> tuple[str, int]:
        """Return the blob of an attachment and its size. Raises NotFound."""
        store, state = self._store(), self.state()
        if store is not None and state is not None and "/" not in record_id and "/" not in name:
            entry = store.find(state.tree, f"{_folder(record_id)}/{name}")
            if entry is not None and not entry.is_tree:
                return entry.oid, store.size(entry.oid)
        raise NotFound(f"{record_id} has no attachment {name!r}; `webarc-agent record attachments` lists them")

    def copy(self, blob: str, fd: int) -> None:
        """Write an attachment to the descriptor `fd`, in constant memory."""
        store = self._store()
        assert store is not None
        store.copy(blob, fd)

    def attachment_faults(self, record: Record) -> Iterator[str]:
        """Yield how the attachments that a record names differ from the files beside it."""
        store, state = self._store(), self.state()
        folder = store.find(state.tree, _folder(record.id)) if store is not None and state is not None else None
        there = {} if store is None or folder is None else {entry.name: entry.oid for entry in store.each(folder.oid)}
        for attachment in record.attachments:
            blob = there.pop(attachment.name, None)
            if blob is None:
                yield f"{record.id}: its attachment {attachment.name!r} is missing"
            elif store is not None and store.size(blob) != attachment.bytes:
                size = store.size(blob)
                yield f"{record.id}: its attachment {attachment.name!r} has {size} bytes, and not {attachment.bytes}"
        yield from (f"{record.id}: {name!r} lies beside it, and it does not name it" for name in there)

    # -- writing ---------------------------------------------------------------------------------------------------

    def write_file(self, file: IOBase) -> str:
        """Store the bytes of an attachment, as a stream; return its blob, which `save` then puts beside a record.

        Raises OSError where the disk has too little space: libgit2 says then that it does not find the new object.
        """
        store = self._store()
        if store is None:
            raise NotFound("the catalogue has no record yet")
        disk = os.statvfs(self._archive.catalogue)
        if disk.f_bavail * disk.f_frsize < _TIMES_WRITTEN * size_of(file) + _SPACE_OF_A_COMMIT:
            raise OSError(errno.ENOSPC, f"{self._archive.catalogue}: {os.strerror(errno.ENOSPC)}")
        return store.write_stream(file)

    def change(
        self,
        record_id: str,
        change: Callable[[Record], Record],
        author: str,
        message: Callable[[Record], str],
        *,
        attached: Mapping[tuple[str, str], str | None] | None = None,
    ) -> Record:
        """Change a record, again from what it is then where another change overtook this one; return it as it is saved.

        A change that changes nothing is not saved. `message` says of the changed record what was done, `attached` is as
        of `save`. Raises what `change` raises, NotFound, and Busy if the record is changed all the time.
        """
        for _ in range(_TRIES):
            record, blob = self.read(record_id)
            changed = change(record)
            if changed == record:
                return record
            commit_message = f"{record_id}: {message(changed)}"
            try:
                self.save([changed], author, commit_message, expected={record_id: blob}, attached=attached)
            except Busy:
                continue
            return changed
        raise Busy(f"{record_id} is being changed all the time; try again")

    def save(
        self,
        records: Sequence[Record],
        author: str,
        message: str,
        *,
        expected: Mapping[str, str | None] | None = None,
        described: int | None = None,
        files: Mapping[str, bytes] | None = None,
        attached: Mapping[tuple[str, str], str | None] | None = None,
    ) -> list[Record]:
        """Write records in one commit, durably; return them with their numbers, which new ones get here.

        `described` is the number in the feed up to which each capture has a record from now on. `files` are copies of
        settings, kept as they were. `attached` has the blobs of attachments by record and name; None takes one away,
        and the history keeps it. `expected` has the blob from which a record was edited, None for a new one. Raises
        Busy, and writes nothing, if the catalogue has another one by now.
        """
        self._raise_layout()
        with locks.Turnstile(self._archive.catalogue_lock).exclusive():
            store = self._store() or Repository.create(self._archive.catalogue)
            state = self.state()
            tree = state.tree if state is not None else store.write_tree([])
            for record_id, blob in (expected or {}).items():
                if self._find(record_id, tree) != blob:
                    raise Busy(f"the record {record_id} was changed meanwhile; look at it again")
            last = self._whole(tree, _NUMBER)
            numbered = list(_numbered(records, last))
            changes: dict[str, str | None] = {
                _path(record.id): store.write_blob(write_record(record)) for record in numbered
            }
            last = max([last, *(record.number for record in numbered)])
            changes[_NUMBER] = store.write_blob(f"{last}\n".encode())
            changes |= {path: store.write_blob(content) for path, content in (files or {}).items()}
            changes |= {f"{_folder(record_id)}/{name}": blob for (record_id, name), blob in (attached or {}).items()}
            before = self._lines(tree, _DISCARDED)
            discarded = _discarded(numbered, before)
            if discarded != before:
                lines = "".join(f"{record_id}\n" for record_id in sorted(discarded))
                changes[_DISCARDED] = store.write_blob(lines.encode()) if lines else None
            if described is not None:
                changes[_DESCRIBED] = store.write_blob(f"{described}\n".encode())
            edited = store.edit(tree, changes)
            if state is None or edited != tree:
                parents = [state.commit] if state is not None else []
                name = _NOT_IN_AUTHORS.sub(" ", author).strip() or "unnamed"
                when = int(now().timestamp())
                commit = store.write_commit(edited, parents, f"{message}\n", (name, f"{name}@localhost"), when)
                store.update_refs([RefUpdate(MAIN, commit, parents[0] if parents else None)])
        return numbered

    # -- internal --------------------------------------------------------------------------------------------------

    def _raise_layout(self) -> None:
        """Programs that know no catalogue must refuse the archive. Taken before the catalogue's lock."""
        if directory.layout_of(self._archive.root) < directory.WITH_CATALOGUE:
            with sequence.hold(self._archive):
                directory.raise_layout(self._archive)

    def _store(self) -> Repository | None:
        if self._opened is None:
            if not self._archive.catalogue.exists():
                return None
            try:
                self._opened = Repository(self._archive.catalogue)
            except NotFound as error:
                raise Damaged(f"{self._archive.catalogue} is no repository: {error}") from None
        return self._opened

    def _files(self, publication: str | None) -> Iterator[tuple[str, str]]:
        """Yield id and blob of each record, newest first; a year's folder is read when it is reached."""
        store, state = self._store(), self.state()
        if store is None or state is None or "/" in (publication or ""):
            return
        top = store.find(state.tree, RECORDS if publication is None else f"{RECORDS}/{publication}")
        if top is None or not top.is_tree:
            return
        of_publications = [top.oid] if publication is not None else [entry.oid for entry in store.each(top.oid)]
        yield from heapq.merge(*(_newest_first(store, tree) for tree in of_publications), reverse=True)

    def _find(self, record_id: str, tree: str | None = None) -> str | None:
        """Return the blob of a record, in the newest state if no tree is given."""
        store, state = self._store(), self.state() if tree is None else None
        tree = state.tree if state is not None else tree
        if store is None or tree is None or "/" in record_id:
            return None
        entry = store.find(tree, _path(record_id))
        return entry.oid if entry is not None and not entry.is_tree else None

    def _parsed(self, blob: str, record_id: str) -> Record:
        store = self._store()
        assert store is not None
        try:
            record = read_record(store.read(blob))
        except InvalidDocument as error:
            raise Damaged(f"{store.path}: {_path(record_id)}: {error}") from None
        if record.id != record_id:
            raise Damaged(f"{store.path}: {_path(record_id)} is the record of {record.id}")
        return record

    def _lines(self, tree: str, name: str) -> frozenset[str]:
        """Return the lines of a file; none without one."""
        store = self._store()
        assert store is not None
        entry = store.find(tree, name)
        text = store.read(entry.oid) if entry is not None and not entry.is_tree else b""
        return frozenset(text.decode("utf-8", "replace").splitlines())

    def _whole(self, tree: str, name: str) -> int:
        """Return the number in a file; 0 without one."""
        store = self._store()
        assert store is not None
        entry = store.find(tree, name)
        text = store.read(entry.oid).strip() if entry is not None and not entry.is_tree else b"0"
        if not text.isdigit():
            raise Damaged(f"{store.path}: {name} is no number")
        return int(text)


def _newest_first(store: Repository, publication: str) -> Iterator[tuple[str, str]]:
    for year in sorted(store.each(publication), key=lambda entry: entry.name, reverse=True):
        ids_and_blobs = (
            (entry.name.removesuffix(_ENDING), entry.oid) for entry in store.each(year.oid) if not entry.is_tree
        )
        yield from sorted(ids_and_blobs, reverse=True)


def _path(record_id: str) -> str:
    return f"{_folder(record_id)}{_ENDING}"


def _folder(record_id: str) -> str:
    """Return the folder of a record's attachments."""
    return f"{RECORDS}/{publication_of(record_id)}/{record_id[:4]}/{record_id}"


def _discarded(records: Sequence[Record], before: frozenset[str]) -> frozenset[str]:
    """Return the ids of all discarded records once these are saved."""
    discarded = {record.id for record in records if record.state is RecordState.DISCARDED}
    return before - {record.id for record in records} | discarded


def _numbered(records: Sequence[Record], last: int) -> Iterator[Record]:
    for record in records:
        if record.number:
            yield record
        else:
            last += 1
            yield replace(record, number=last)


# == catalogue database ===============================================================================================


_MEMORY = Path(":memory:")
#: Seconds that a process waits for another that writes; then it reads from tables of its own.
_PATIENCE = 2.0
#: Held by a thread while it reads the file, for the reason of `sqlite_file.IN_TURN`.
_IN_TURN = threading.Lock()
#: Words of a reader that choose records; each is looked for in each record.
MOST_WORDS = 5


@dataclass(frozen=True, slots=True)
class RecordedPart:
    """A snapshot that a record describes. `seq` is its time in seconds; the rest as in `CrawlPart` and `Record`."""

    seq: int
    seen: str
    is_held: bool
    publication: str
    state: RecordState
    closed_for: str


@dataclass(frozen=True, slots=True)
class YearOfCaptures:
    """What a publication captured in a year. `documents` and `bytes` are of all snapshots but the `uncounted`."""

    publication: str
    year: int
    snapshots: int
    uncounted: int
    documents: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRecord:
    """What lists of readers have of a record, whoever may see it. `documents` and `bytes` are None if not counted.

    `date` is that of its capture. `title` is empty where no person gave it one, `complete` None where nobody knows. It
    was released at `released`, by the last of so many `releases`; what the feed says of it changed at `updated`. `tags`
    and `resource_domains` are `newest_tags` and `domains_without_pages` of the record.
    """

    id: str
    number: int
    publication: str
    state: RecordState
    closed_for: str
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
    released: datetime
    releases: int
    updated: datetime
    is_held: bool
    tags: tuple[CommitTag, ...]
    resource_domains: frozenset[str]


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """Records of readers that have in common what they choose by. `first` and `last` are dates of captures."""

    signature: str
    publication: str
    project: str
    is_occasion: bool
    year: str
    count: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class CrawlPlace:
    """Where lists have a crawl: the number of its record, its publication and its date."""

    number: int
    publication: str
    date: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSelection:
    """What a list of readers chooses: an empty text, or None, chooses all.

    A record has each word of `words`, of which `MOST_WORDS` count.
    """

    words: str = ""
    signature: str = ""
    publication: str = ""
    project: str = ""
    is_occasion: bool | None = None
    year: str = ""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the statements in sql/catalogue/."""
        # SQLite ends a text at a NUL; no record has either of the two characters.
        words = list(dict.fromkeys(self.words.replace("\0", "\uffff").casefold().split()))[:MOST_WORDS]
        words += [""] * (MOST_WORDS - len(words))
        return {
            "signature": self.signature,
            "publication": self.publication,
            "project": self.project,
            "occasion": -1 if self.is_occasion is None else int(self.is_occasion),
            "year": self.year,
            **{f"word{at}": word for at, word in enumerate(words, 1)},
        }


class CatalogueDatabase(SqliteFile):
    """An open catalogue.db, in step with its catalogue. Use it as a context manager, in one thread.

    What it is asked ends with the deadline of the thread that asks.
    """

    def __init__(
        self, path: Path, catalogue: Catalogue | None, *, of_one_thread: bool = True, copied_from: Path | None = None
    ) -> None:
        """Open or make it, and bring it in step. Raises DatabaseDamaged, Busy, OSError; Damaged of the catalogue.

        Without a catalogue it is only opened, for `check`. `copied_from` is a database of another user, from which a
        new one begins where it can be read.
        """
        super().__init__(path, "IMMEDIATE", of_one_thread=of_one_thread, patience=_PATIENCE)
        self._connection.set_progress_handler(clocks.is_over, STEPS_BETWEEN_LOOKS)
        #: The commit of the catalogue with which it is in step, or a later one; empty without any.
        self.commit = ""
        try:
            with self._translated():
                if copied_from is not None:
                    self._copy_from(copied_from, "catalogue/schema")
                self._ready("catalogue/schema")
                if catalogue is not None:
                    self.update(catalogue)
        except BaseException:
            self._connection.close()
            raise

    def update(self, catalogue: Catalogue) -> bool:
        """Bring it in step with the catalogue; return whether it was behind.

        It ends with no deadline: the next request would begin again.
        """
        with self._reading():
            if self._is_in_step(catalogue):
                return False
        with self._translated(), clocks.under(None):
            self._run("begin")
            with self._connection:
                if self._is_in_step(catalogue):
                    return False  # another process was faster: the lock was waited for
                known = self._run("catalogue/select_state").fetchone()
                for record_id, record in catalogue.changed(known[0] if known is not None else None):
                    self._run("catalogue/forget_parts", id=record_id)
                    self._run("catalogue/forget_record", id=record_id)
                    if record is not None:
                        self._add(record)
                self._run("catalogue/forget_state")
                self._run("catalogue/insert_state", oid=self.commit)
        return True

    def _is_in_step(self, catalogue: Catalogue) -> bool:
        """Return whether it is in step; there is nothing to be in step with before the first record."""
        known = self._run("catalogue/select_state").fetchone()
        state = catalogue.state()
        self.commit = "" if state is None else state.commit
        return state is None or (known is not None and known[0] == state.commit)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with _IN_TURN, self._translated():
            yield

    def _add(self, record: Record) -> None:
        self._run(
            "catalogue/insert_record",
            id=record.id,
            number=record.number,
            publication=record.publication,
            state=str(record.state),
            closedFor=record.closed_for,
            **values_of(record),
        )
        for position, part in enumerate(record.parts):
            self._run(
                "catalogue/insert_part",
                domain=part.tag.domain,
                seq=int(part.tag.crawl_time.timestamp()),
                record=record.id,
                seen=part.seen,
                held=int(part.is_held),
                position=position,
                resource=int(part.is_resource),
            )

    def parts(self, domain: str) -> dict[int, RecordedPart]:
        """Return the snapshots of a domain that have records, by their times."""
        with self._reading():
            rows = self._run("catalogue/select_parts", domain=domain)
            return {
                int(seq): RecordedPart(int(seq), seen, bool(held), publication, RecordState(state), closed_for)
                for seq, seen, held, publication, state, closed_for in rows
            }

    def records(self, domain: str) -> dict[int, str]:
        """Return the ids of the records of a domain's snapshots, by their times."""
        with self._reading():
            return {int(seq): str(record) for seq, record in self._run("catalogue/select_records", domain=domain)}

    def id_of(self, number: int) -> str | None:
        """Return the id of the record of a number; None without one."""
        with self._reading():
            row = self._run("catalogue/find_number", number=number).fetchone()
        return None if row is None else str(row[0])

    # -- lists -----------------------------------------------------------------------------------------------------

    def listed(
        self, chosen: RecordSelection, *, offset: int = 0, limit: int = 50, oldest: bool = False
    ) -> list[RecordRow]:
        """Return the rows of a part of a list, newest first; it costs what that part costs."""
        values = {**chosen.parameters(), "offset": offset, "limit": limit}
        with self._reading():
            if oldest:
                return [row_of(row) for row in self._run("catalogue/list_oldest", **values)]
            return [row_of(row) for row in self._run("catalogue/list_records", **values)]

    def row(self, record_id: str) -> RecordRow | None:
        """Return the row of a record; None without one."""
        with self._reading():
            sql_row = self._run("catalogue/find_listed", id=record_id).fetchone()
        return None if sql_row is None else row_of(sql_row)

    def count_of(self, chosen: RecordSelection) -> int:
        """Return how many records a list has."""
        with self._reading():
            if chosen.words.strip():
                return int(self._run("catalogue/count_found", **chosen.parameters()).fetchone()[0])
            return int(self._run("catalogue/count_listed", **chosen.parameters()).fetchone()[0])

    def of_servers(self, record_id: str, year: str = "", *, offset: int = 0, limit: int = 50) -> list[RecordRow]:
        """Return a part of the records with pages of the servers of a record, newest first; it is one of them.

        They are of any publication. A `year` chooses those of one.
        """
        begin, end = _year(year)
        values = {"id": record_id, "since": begin, "until": end, "offset": offset, "limit": limit}
        with self._reading():
            return [row_of(row) for row in self._run("catalogue/list_of_servers", **values)]

    def count_of_servers(self, record_id: str, year: str = "") -> int:
        """Return how many records `of_servers` lists in all."""
        begin, end = _year(year)
        with self._reading():
            return int(self._run("catalogue/count_of_servers", id=record_id, since=begin, until=end).fetchone()[0])

    def numbers(self, chosen: RecordSelection, limit: int) -> list[int]:
        """Return the numbers of the records of a list, newest first."""
        with self._reading():
            numbers = self._run("catalogue/list_numbers", **chosen.parameters(), limit=limit).fetchone()[0]
        return [int(number) for number in numbers.split(",")] if numbers else []

    def newest(self, publications: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return how many records publications have, and the time of the newest in seconds, by their names.

        One without records is not among them.
        """
        names = json.dumps(list(publications))
        with self._reading():
            return {
                name: (int(count), int(date)) for name, count, date in self._run("catalogue/find_newest", names=names)
            }

    def by_year(self) -> list[YearOfCaptures]:
        """Return what each publication captured in each year, by publication and year."""
        with self._reading():
            rows = self._run("catalogue/by_year").fetchall()
        return [YearOfCaptures(name, *map(int, figures)) for name, *figures in rows]

    def mean_bytes(self, most: int) -> dict[str, tuple[float, int]]:
        """Return the mean size of each publication's last captures, `most` at most, and how many these are."""
        with self._reading():
            return {name: (mean, int(of)) for name, mean, of in self._run("catalogue/mean_bytes", most=most)}

    def newest_by_extension(self) -> list[str]:
        """Return the id of the newest record of each publication whose files were counted by extension."""
        with self._reading():
            return [str(record_id) for (record_id,) in self._run("catalogue/newest_by_extension")]

    # -- lists of readers ------------------------------------------------------------------------------------------

    def head(self, record_id: str) -> ShownRecord | None:
        """Return a record as lists of readers have it, whoever may see it; None without one that captured something."""
        return next(iter(self._shown("catalogue/find_head", id=record_id)), None)

    def shown(self, chosen: ShownSelection, *, offset: int, limit: int, oldest: bool = False) -> list[ShownRecord]:
        """Return a part of the records that readers choose, newest first."""
        name = "catalogue/list_shown_oldest" if oldest else "catalogue/list_shown"
        return self._shown(name, **chosen.parameters(), offset=offset, limit=limit)

    def groups(self, chosen: ShownSelection | None = None) -> list[ShownGroup]:
        """Return counts of all records that readers may see, or of those that they choose."""
        with self._reading():
            if chosen is None:
                rows = self._run("catalogue/group_shown").fetchall()
            else:
                rows = self._run("catalogue/group_found", **chosen.parameters()).fetchall()
        return [
            ShownGroup(
                signature, publication, project, bool(occasion), year, count, from_epoch(first), from_epoch(last)
            )
            for signature, publication, project, occasion, year, count, first, last in rows
        ]

    def newest_shown(self, publications: Iterable[str], most: int) -> list[ShownRecord]:
        """Return the newest records of publications, `most` at most of each, by the publications' names."""
        return self._shown("catalogue/newest_shown", publications=json.dumps(list(publications)), most=most)

    def years_shown(self, publication: str) -> dict[int, int]:
        """Return how many records of a publication readers may see in each year that has some."""
        with self._reading():
            return {
                int(year): int(count) for year, count in self._run("catalogue/years_shown", publication=publication)
            }

    def shown_of(self, publication: str, *, offset: int, limit: int) -> list[ShownRecord]:
        """Return a part of a publication's records, newest first."""
        return self._shown("catalogue/shown_of_publication", publication=publication, offset=offset, limit=limit)

    def collected(
        self, publications: Iterable[str], numbers: Iterable[int], *, offset: int, limit: int
    ) -> list[ShownRecord]:
        """Return a part of the records of some publications, and of some numbers, newest first."""
        values = {"publications": json.dumps(list(publications)), "numbers": json.dumps(list(numbers))}
        return self._shown("catalogue/list_collected", **values, offset=offset, limit=limit)

    def places(self, record_ids: Iterable[str]) -> dict[str, CrawlPlace]:
        """Return where lists have these records, by their ids; those that readers may not see are not among them."""
        with self._reading():
            rows = self._run("catalogue/find_places", records=json.dumps(list(record_ids)))
            return {record_id: CrawlPlace(number, name, from_epoch(date)) for record_id, number, name, date in rows}

    def shown_beside(
        self, record: ShownRecord, *, later: bool = False, opened_by: int | None = None
    ) -> ShownRecord | None:
        """Return the record of the same publication before another one; or after it. None without one."""
        values = {
            "publication": record.publication,
            "date": int(record.date.timestamp()),
            "number": record.number,
            "open": _NEVER if opened_by is None else opened_by,
        }
        return next(iter(self._shown("catalogue/shown_after" if later else "catalogue/shown_before", **values)), None)

    def released(self, opened_by: int, *, offset: int, limit: int) -> list[ShownRecord]:
        """Return a part of the records that are open by a time, those first that were released last."""
        return self._shown("catalogue/list_released", open=opened_by, offset=offset, limit=limit)

    def count_open(self, opened_by: int) -> int:
        """Return how many records are open to readers by a time."""
        with self._reading():
            return int(self._run("catalogue/count_open", open=opened_by).fetchone()[0])

    def last_gone(self) -> datetime | None:
        """Return when a record that readers had seen was taken from them last; None if that never happened."""
        with self._reading():
            seconds = self._run("catalogue/last_gone").fetchone()[0]
        return None if seconds is None else from_epoch(seconds)

    def count_sites(self) -> int:
        """Return of how many domains readers may see a page in some record."""
        with self._reading():
            return int(self._run("catalogue/count_sites").fetchone()[0])

    def _shown(self, statement: str, **values: Any) -> list[ShownRecord]:
        """Return the records that a statement chooses, in its order."""
        with self._reading():
            record_ids = [str(record_id) for (record_id,) in self._run(statement, **values)]
            if not record_ids:
                return []
            records = json.dumps(record_ids)
            rows = {row[0]: row for row in self._run("catalogue/heads_of_records", records=records)}
            parts: dict[str, list[tuple[CommitTag, bool]]] = {}
            for record_id, domain, seq, resource in self._run("catalogue/parts_of_records", records=records):
                parts.setdefault(record_id, []).append((CommitTag(from_epoch(seq), domain), bool(resource)))
        return [
            _shown_record(rows[record_id], parts.get(record_id, [])) for record_id in record_ids if record_id in rows
        ]


def _shown_record(row: Any, parts: Sequence[tuple[CommitTag, bool]]) -> ShownRecord:
    (record_id, number, publication, state, closed_for, title, signature, provenance, project, host, occasion, reason,
     date, complete, documents, size, released, releases, held, updated) = row  # fmt: skip
    with_pages = {tag.domain for tag, is_resource in parts if not is_resource}
    return ShownRecord(
        id=record_id, number=number, publication=publication, state=RecordState(state), closed_for=closed_for,
        title=title, signature=signature, provenance=provenance, project=project, domain=host,
        is_occasion=bool(occasion), occasion=reason, date=from_epoch(date), complete=_known(complete),
        documents=documents, bytes=size, released=from_epoch(released), releases=releases,
        updated=from_epoch(updated), is_held=bool(held),
        tags=newest_of(tag for tag, _ in parts),
        resource_domains=frozenset(tag.domain for tag, _ in parts) - with_pages,
    )  # fmt: skip


@contextmanager
def opened(archive: Archive, catalogue: Catalogue | None = None) -> Iterator[CatalogueDatabase]:
    """Open the tables of an archive's records, in step with the catalogue. Raises Damaged of the catalogue.

    A damaged file is rebuilt: at once, or for the next one where a question meets the damage.
    """
    catalogue = catalogue or Catalogue(archive)
    try:
        database = _opened(archive, catalogue)
        if database is not None:
            _IN_MEMORY.forget()
        with database or _IN_MEMORY.opened(archive.catalogue_database, catalogue) as tables:
            yield tables
    except DatabaseDamaged:
        _IN_MEMORY.forget()
        with suppress(Busy, OSError):
            remove_damaged(archive)
        raise


#: States of records that no crawl has, or that are left out of lists.
_WITHOUT_CRAWL = frozenset({RecordState.OPEN, RecordState.CANCELLED, RecordState.DISCARDED})
_BEGINS_AS_JOB = re.compile(r"\d{8}T\d{6}-[^/]", re.ASCII)


def look_up_record(archive: Archive, catalogue: Catalogue, name: str) -> tuple[Record, str]:
    """Return the record of a crawl by its number, its name, its job or a commitTag of it, and the id of its blob.

    Raises NotFound. A publication has many: of one the message names the newest, so that no act is on a crawl that
    nobody named.
    """
    record_id = _find_id(archive, catalogue, name)
    if record_id is None:
        newest = newest_crawl(catalogue.records(name))
        if newest is not None:
            raise NotFound(f"{name} is a publication; its newest crawl is {newest.id}: name that one")
        raise NotFound(f"there is no record {name}; `webarc-agent record list` lists them")
    return catalogue.read(record_id)


def look_up_crawl(
    archive: Archive, catalogue: Catalogue, name: str, shown: Callable[[str], Iterable[Record]] | None = None
) -> Record:
    """Return what `look_up_record` does; of a publication it is the newest crawl, also one by occasion.

    `shown` yields those records of a publication that whoever asks may see, the newest first. Raises NotFound, which
    tells nothing of others.
    """
    record_id = _find_id(archive, catalogue, name)
    if record_id is not None and shown is None:
        return catalogue.read(record_id)[0]
    shown = shown or catalogue.records
    if record_id is None:
        record = newest_crawl(shown(name))
    else:
        record = next((record for record in shown(publication_of(record_id)) if record.id == record_id), None)
    if record is None:
        raise NotFound(f"there is no record {name}; `webarc-agent record list` lists them")
    return record


def newest_crawl(records: Iterable[Record]) -> Record | None:
    """Return the first crawl that was made; without one the first import or saved page."""
    newest: Record | None = None
    for record in records:
        if record.state in _WITHOUT_CRAWL:
            continue
        if not is_import(record.id) and not record.id.endswith(PAGE):
            return record
        newest = newest or record
    return newest


def _find_id(archive: Archive, catalogue: Catalogue, name: str) -> str | None:
    """Return the id of the record of a number, of its own name, of its job, or of a commitTag; None without one."""
    if name.isdecimal():
        with opened(archive, catalogue) as tables:
            return tables.id_of(int(name)) if len(name) <= _DIGITS else None
    if catalogue.has(name):
        return name
    tag: CommitTag | None = None
    with suppress(Damaged):
        tag = CommitTag.parse(name)
    if tag is not None:
        with opened(archive, catalogue) as tables:
            return tables.records(tag.domain).get(int(tag.crawl_time.timestamp()))
    if not _BEGINS_AS_JOB.match(name):
        return None
    # a record that was there before its job has another name
    return next((record.id for record in catalogue.records(publication_of(name)) if record.job_name == name), None)


def _opened(archive: Archive, catalogue: Catalogue) -> CatalogueDatabase | None:
    """Return the database; None where this process may not bring it in step."""
    path = archive.catalogue_database
    if catalogue.state() is None and not path.exists():
        return None  # without a record there is nothing to keep: who only reads makes no file
    with suppress(Busy, OSError):
        if _is_left_damaged(path):
            return None
        try:
            return CatalogueDatabase(path, catalogue)
        except DatabaseDamaged:
            remove_damaged(archive)
        with suppress(DatabaseDamaged):
            return CatalogueDatabase(path, catalogue)
    return None


def remove_damaged(archive: Archive) -> None:
    """Remove the file if it is damaged, outdated or lacks a table: another process may have rebuilt it.

    Raises Busy, OSError. This process leaves it alone where it may not remove it.
    """
    path = archive.catalogue_database
    try:
        with locks.exclusive(archive.catalogue_database_lock), clocks.under(None):
            if not path.exists():
                return
            with suppress(DatabaseDamaged), CatalogueDatabase(path, None) as database:
                if database.has_all_of("catalogue/schema") and not database.check():
                    return
            remove(path)
    except OSError:
        _LEFT_DAMAGED[path] = _identity(path)
        raise


#: Damaged files that could not be removed, as they were then.
_LEFT_DAMAGED: dict[Path, tuple[int, int]] = {}


def _is_left_damaged(path: Path) -> bool:
    return path in _LEFT_DAMAGED and _LEFT_DAMAGED[path] == _identity(path)


def _identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from its successors."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return status.st_ino, status.st_ctime_ns
    return 0, 0


class _InMemory:
    """The tables of the archive that was asked for last, for a process that may not write its file. For any thread.

    They are kept until it may, so that a question costs what changed since the last one.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._path: Path | None = None
        self._database: CatalogueDatabase | None = None

    @contextmanager
    def opened(self, path: Path, catalogue: Catalogue) -> Iterator[CatalogueDatabase]:
        """Lend the tables of an archive, in step with its catalogue, to one thread at a time."""
        with self._lock:
            database = self._database if self._path == path and catalogue.state() is not None else None
            if database is None:
                database = _copied(path, catalogue)
                self._path, self._database = path, database
            else:
                database.update(catalogue)
            yield database

    def forget(self) -> None:
        """Let the tables go."""
        self._database = None


def _copied(path: Path, catalogue: Catalogue) -> CatalogueDatabase:
    """Return tables in memory, made from a copy of the file; from git alone where that is damaged."""
    if not _is_left_damaged(path):
        with suppress(DatabaseDamaged):
            return CatalogueDatabase(_MEMORY, catalogue, of_one_thread=False, copied_from=path)
    return CatalogueDatabase(_MEMORY, catalogue, of_one_thread=False)


_IN_MEMORY = _InMemory()
