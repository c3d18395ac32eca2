"""The confirmation of additions, from the conditions of each and its entry in the journal to the commit of many.

An addition may be confirmed if its ARC is still the version that it was begun in, and its name is free (/Ar-10/). This
is checked per ARC: a crawl that left an ARC alone does not affect its writers. Safe for any thread.

All additions of one domain that wait are confirmed in one batch. A batch shares the costs: the domain's lock, a read of
its main, its names' lock and a sync. One failure does not affect the others. Any thread may confirm. Locks, in this
order: those of the additions, the domain's (shared, from "is this ARC current?" until the journal has them all), the
overlay's. A thread that holds the locks of one addition never waits for another's, so no two threads can wait for each
other.

A close of data.xml finds the new data nodes and adds them to the document (/Xm-3/). New nodes go into the journal, and
the document with them is a new version of the file. A refusal stores nothing, and is logged.

One thread puts confirmed additions into git, many in one commit. It commits each domain when that is due
(commit_additions.py), at once for an fsync of a folder, and the rest at the end. It never notifies the kernel: a
committed addition looks the same as before. A failed commit is repeated; the journal keeps the additions meanwhile.
What others removed from the journal before it was in git is written again, or reported as lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from webarcfs.archive.additions import commit_additions
from webarcfs.archive.additions.commit_additions import next_commit
from webarcfs.archive.additions.journal import Journal, JournalPosition, StoredBody, Wanted, find_on_disk
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_nodes, schemas
from webarcfs.archive.document.schemas import Schemas
from webarcfs.archive.git.repository import Commit, TreeEntry
from webarcfs.archive.model.additions import AddFile, Addition, AddNodes, ArcVersion, Committed, Cost, Move
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged, Exists, InvalidDocument, NotPermitted, Replaced, WebarcError
from webarcfs.archive.system.files import blob_id
from webarcfs.archive.system.locks import Turnstile
from webarcfs.vfs import content
from webarcfs.vfs.domain_states import DomainReader
from webarcfs.vfs.node import Maker, author
from webarcfs.vfs.overlay import Number, Overlay, PendingFile
from webarcfs.vfs.view import View
from webarcfs.writing.drafts import DocumentBuffer, Draft, DraftFile

# == preconditions ====================================================================================================


def check_known(view: View, place: ArcVersion) -> None:
    """Raise Stale if this mount already knows that the ARC was replaced."""
    state = view.domain(place.domain)
    _arc(state.reader, state.main, place)


@dataclass(frozen=True, slots=True)
class LockedHead:
    """A domain's main on disk, which does not change while the domain's lock is held."""

    reader: DomainReader
    main: Commit | None

    @classmethod
    def now(cls, reader: DomainReader) -> LockedHead:
        """Return the current main. Under the domain's lock.

        The caller asks the view for the reader before it takes that lock: the view may have to take the domain over,
        under the same lock, and a publisher that waits by then lets nobody share it a second time.
        """
        return cls(reader, reader.origin.head())

    def check_free(self, place: ArcVersion, path: str, own: Container[str] = ()) -> None:
        """Raise Stale or Exists if `path` is taken; a blob in `own` is no obstacle.

        A renamed addition keeps its old name in git until the rename is committed, before any successor at that name.
        """
        reader, at = self.reader, _arc(self.reader, self.main, place)
        parts = path.split("/")
        for depth, name in enumerate(parts, 1):
            last = depth == len(parts)
            entry = reader.entries(at.oid).get(name)
            if entry is None or (last and not entry.is_tree and self._is_given_up(entry, place, path, own)):
                return
            if last or not entry.is_tree:
                break
            if reader.is_arc(entry.oid) or reader.leads_to_arcs(entry.oid):
                raise Replaced(f"{name!r} in {place.arc} of {place.domain} is, or leads to, an ARC of its own by now")
            at = entry
        raise Exists(f"{path!r} is there")

    def document(self, place: ArcVersion) -> bytes:
        """Return the ARC's data.xml. Raises Stale."""
        arc = _arc(self.reader, self.main, place)
        return self.reader.document(self.reader.entries(arc.oid)[DATA_XML].oid)

    def _is_given_up(self, entry: TreeEntry, place: ArcVersion, path: str, own: Container[str]) -> bool:
        return entry.oid in own or self.reader.overlay.is_leaving(place, path)


def _arc(reader: DomainReader, main: Commit | None, place: ArcVersion) -> TreeEntry:
    """Return the folder of the ARC in a state. Raises Stale if it is another version."""
    arc = reader.arc(main.tree, place) if main is not None else None
    if arc is None:
        raise Replaced(f"{place.arc} of {place.domain} was replaced or removed by a crawl")
    return arc


# == committer ========================================================================================================


#: Seconds until a failed commit is repeated.
AGAIN = 5.0
#: Commits in a row, if each finds that additions are gone from the journal.
ROUNDS = 3
#: Receives None when the confirmed additions are in git, or the error.
Done = Callable[[BaseException | None], None]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Domain:
    """The state of one domain: waiting additions, cost of the last commit. Times are monotonic seconds."""

    waiting: int = 0
    busy: bool = False
    oldest: float = 0.0
    cost: Cost = field(default_factory=Cost)
    ended: float = 0.0
    not_before: float = 0.0
    synced: list[Done] = field(default_factory=list)
    #: What is to be said of lost additions by the next `sync`.
    loss: WebarcError | None = None


class Committer(threading.Thread):
    """The thread of one mount."""

    def __init__(self, archive: Archive, journal: Journal, overlay: Overlay, interval: float) -> None:
        super().__init__(name="committer", daemon=True)
        self._archive = archive
        self._journal = journal
        self._overlay = overlay
        self._interval = interval
        self._domains: dict[str, _Domain] = {}
        self._read: commit_additions.Read = {}
        self._changed = threading.Condition()
        self._ending = self._ended = False
        #: Lines for whoever unmounts: lost additions, and in the end what waits in the journal.
        self.remains: list[str] = []

    def added(self, name: str, number: int = 1) -> None:
        """Count `number` more confirmed additions of a domain."""
        if not number:
            return
        with self._changed:
            domain = self._domains.setdefault(name, _Domain())
            if not domain.waiting:
                domain.oldest = time.monotonic()
                self._changed.notify()
            domain.waiting += number

    def sync(self, name: str, done: Done) -> None:
        """Commit at once; this thread calls `done` when the additions confirmed until now are in git, or with an error.

        The error of lost additions is reported once.
        """
        with self._changed:
            domain = self._domains.setdefault(name, _Domain())
            if (domain.waiting and not self._ended) or domain.busy:
                domain.synced.append(done)
                self._changed.notify()
                return
            answer, domain.loss = domain.loss, None
            if domain.waiting:
                answer = WebarcError(f"{name}: the mount has ended; its additions wait in the journal")
        done(answer)

    def run(self) -> None:
        """Commit due domains repeatedly."""
        memory = content.Memory()
        while (name := self._next()) is not None:
            self._commit(name)
            self._overlay.makers.forget()
            memory.give_back()

    def stop(self) -> None:
        """Commit the rest, and end. Additions that cannot be committed now stay in the journal."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self.join()
        self._report_remains()

    def _next(self) -> str | None:
        """Wait until a domain is due; return None at the end."""
        with self._changed:
            while True:
                due = {name: self._due(domain) for name, domain in self._domains.items() if domain.waiting}
                if not due:
                    if self._ending:
                        self._ended = True
                        return None
                    self._changed.wait()
                    continue
                name = min(due, key=lambda domain_name: due[domain_name])
                wait = due[name] - time.monotonic()
                if wait <= 0:
                    return name
                self._changed.wait(wait)

    def _due(self, domain: _Domain) -> float:
        if self._ending or domain.synced:
            return 0.0
        due = next_commit(self._interval, domain.cost, domain.ended, domain.oldest, domain.waiting)
        return max(due, domain.not_before)

    def _commit(self, name: str) -> None:
        with self._changed:
            domain = self._domains[name]
            waiting, domain.waiting = domain.waiting, 0
            synced, domain.synced, domain.busy = domain.synced, [], True
        try:
            self._commit_now(name, domain)
        except BaseException as error:
            _log.exception("%s: additions were not committed; it is tried again", name)
            with self._changed:
                domain.waiting += 0 if self._ending else waiting
                domain.not_before = time.monotonic() + AGAIN
            failure: BaseException | None = error
        else:
            failure = None
        with self._changed:
            domain.busy = False
            if failure is not None or not domain.waiting:  # later calls of `sync` waited for this commit only
                synced, domain.synced = synced + domain.synced, []
            if synced and failure is None:
                failure, domain.loss = domain.loss, None
        for done in synced:
            done(failure)

    def _commit_now(self, name: str, domain: _Domain) -> None:
        self._journal.make_folder()
        for attempt in range(ROUNDS):
            waited = self._journal.pending(name)
            committed = commit_additions.commit_additions(self._archive, name, self._read)
            domain.cost, domain.ended, domain.not_before = committed.cost, time.monotonic(), 0.0
            untaken = self._journal.untaken(committed, waited)
            self._settle(name, self._journal.release(committed, besides=untaken))
            if not untaken or not self._rescue(name, untaken, committed, first=attempt == 0):
                return
        raise Damaged(f"{name}: others keep removing additions from the journal")

    def _settle(self, name: str, positions: Sequence[JournalPosition]) -> None:
        self._overlay.committed(name, {position.key for position in positions})

    # -- additions that are gone from the journal ------------------------------------------------------------------

    def _rescue(self, name: str, untaken: Sequence[JournalPosition], committed: Committed, *, first: bool) -> bool:
        """Write additions again that a commit did not find; return whether another commit is needed.

        Raises Damaged for additions that are in the journal all the same, OSError where the disk does not take them.
        """
        refused = {(dropped.log, dropped.number): dropped.reason for dropped in committed.dropped}
        missing = [position for position in untaken if position.key not in refused]
        on_disk = find_on_disk(self._archive, missing) if missing else set()
        if on_disk and first:
            return True
        if on_disk:
            raise Damaged(f"{name}: {len(on_disk)} additions are in the journal and could not be committed")
        damaged = any(dropped.damaged for dropped in committed.dropped)
        if not missing and not (damaged and first):
            self._lose(name, {position: refused[position.key] for position in untaken})
            return False
        _log.warning("%s: %d additions were gone from the journal before they were in git", name, len(untaken))
        return self._write_again(name)

    def _write_again(self, name: str) -> bool:
        """Write all additions that a domain waits for again, in their order; return whether any could be.

        Not only those that are gone: another one may replace or rename them. Raises OSError.
        """
        with Turnstile(self._archive.lock(name)).exclusive():  # nobody confirms meanwhile
            waiting = self._journal.pending(name)
            newest = commit_additions.newest(position.addition for position in waiting)
            outcomes = self._journal.write_again({waiting[index]: addition for index, addition in newest.items()})
            written = {old: new for old, new in outcomes.items() if isinstance(new, JournalPosition)}
            self._overlay.renumbered(name, {old.key: new.key for old, new in written.items()})
            paths = {_path_of(old.addition) for old in written}
            replaced = [
                position for position in waiting if position not in outcomes and _path_of(position.addition) in paths
            ]
            self._journal.forget(replaced, lost=False)
        self._lose(name, {old: str(error) for old, error in outcomes.items() if isinstance(error, WebarcError)})
        for error in outcomes.values():
            if isinstance(error, BaseException) and not isinstance(error, WebarcError):
                raise error
        return bool(written)

    def _lose(self, name: str, reasons: Mapping[JournalPosition, str]) -> None:
        """Report additions as lost, and take their names away."""
        if not reasons:
            return
        for position, reason in reasons.items():
            self._report(position, reason)
        self._journal.forget(reasons.keys(), lost=True)
        self._settle(name, list(reasons))
        with self._changed:
            self._domains[name].loss = Damaged(f"{len(reasons)} additions are lost; the log names them")

    def _report_remains(self) -> None:
        """Report what is left outside of git at the end, in the journal or nowhere."""
        pending = self._journal.pending()
        on_disk = find_on_disk(self._archive, pending)
        for position in pending:
            if position.key not in on_disk:
                self._report(position, f"{self._archive.journal} was removed or replaced")
        waiting = Counter(position.addition.place.domain for position in pending if position.key in on_disk)
        for name, number in sorted(waiting.items()):
            line = f"{name}: {number} additions wait in the journal; the next mount or agent commits them"
            _log.warning("%s", line)
            self.remains.append(line)

    def _report(self, position: JournalPosition, reason: str) -> None:
        line = f"{_path_of(position.addition)} is lost: it is in neither git nor the journal ({reason})"
        _log.error("%s", line)
        self.remains.append(line)


def _path_of(addition: Addition) -> str:
    """Return the path of an addition below the mount point."""
    place = addition.place
    match addition:
        case AddFile():
            name = addition.path
        case Move():
            name = addition.new
        case _:
            name = DATA_XML
    return f"/{place.domain}/{place.arc}/{name}"


# == confirm ==========================================================================================================


#: Result of an addition: True if it contained anything new, False if not, or the error.
Outcome = bool | BaseException


class Lock(Protocol):
    """A lock of a thread."""

    def acquire(self, blocking: bool = True) -> bool:  # as in threading
        """Take it; return whether that succeeded."""

    def release(self) -> None:
        """Release it."""


class Confirmable:
    """An addition to be confirmed. One thread calls its methods, in their order, while it holds `locks`."""

    place: ArcVersion
    #: Whether it is provisional: it goes into the journal of such files, and git has to wait.
    provisional: bool = False

    @property
    def key(self) -> Hashable:
        """Two additions with the same key are never confirmed in one batch."""
        raise NotImplementedError

    @property
    def locks(self) -> Sequence[Lock]:
        """The locks to hold from `prepare` on, in this order."""
        raise NotImplementedError

    def prepare(self) -> bool:
        """Do the work that needs no read of the archive; return whether there is anything new. Raises the refusal."""
        raise NotImplementedError

    def judged(self, main: LockedHead) -> Wanted:
        """Return the journal's record, if the addition is permitted. Raises the refusal."""
        raise NotImplementedError

    def confirmed(self, ticket: JournalPosition) -> None:
        """Show the addition: the journal has it."""
        raise NotImplementedError

    def refused(self, error: BaseException) -> None:
        """Handle the refusal: the addition was not confirmed."""


class NewFile(Confirmable):
    """The unconfirmed content of a draft."""

    def __init__(self, draft: Draft, view: View, *, provisional: bool = False) -> None:
        self.place = draft.place
        self.provisional = provisional
        self._draft = draft
        self._overlay = view.overlay
        self._blob, self._body = "", StoredBody(0, b"")

    @property
    def key(self) -> Hashable:
        """The draft."""
        return id(self._draft)

    @property
    def locks(self) -> Sequence[Lock]:
        """The draft's."""
        return (self._draft.lock,)

    def prepare(self) -> bool:
        """Compute the blob id. Raises the error of a failed write."""
        if self._draft.removed:
            self._draft.dirty = False
        if self._draft.dirty:
            self._overlay.keep(self._draft.place, self._draft.path)
            self._blob, self._body = self._draft.body()
        return self._draft.dirty

    def judged(self, main: LockedHead) -> Wanted:
        """Return the record of a new file. Raises Stale, Exists."""
        draft = self._draft
        main.check_free(draft.place, draft.path, draft.blobs)
        by = author(draft.maker)
        size = self._body.size
        return AddFile(draft.place, draft.path, self._blob, size, by, int(time.time()), draft.blob), self._body

    def confirmed(self, ticket: JournalPosition) -> None:
        """Show the version that git will have; the name means the draft until its handles are closed."""
        draft = self._draft
        pending = PendingFile(self._blob, self._body.size, (ticket.log, ticket.number))
        self._overlay.confirmed(draft.place, draft.path, pending, DraftFile(draft) if draft.shown else None)
        draft.blob, draft.blob_size, draft.dirty, draft.failed = self._blob, self._body.size, False, False
        draft.blobs.add(self._blob)


@dataclass(slots=True)
class _Attempt:
    """An addition under way."""

    addition: Confirmable
    wanted: Wanted | None = None
    outcome: Outcome | None = None

    @property
    def ended(self) -> bool:
        return self.outcome is not None

    def fail(self, error: BaseException) -> None:
        if self.outcome is None:
            self.outcome = error
            self.addition.refused(error)

    def show(self, ticket: JournalPosition) -> None:
        try:
            self.addition.confirmed(ticket)
            self.outcome = True
        except BaseException as error:  # the journal has the others, too: their writers must not see this error
            self.fail(error)


class Confirmer:
    """Confirms the additions of one mount."""

    def __init__(self, view: View, journal: Journal, committer: Committer, provisional: Journal | None = None) -> None:
        self._view = view
        self._journal = journal
        self._provisional = provisional
        self._committer = committer

    def confirm(self, additions: Sequence[Confirmable]) -> list[Outcome]:
        """Confirm additions of one domain; return the outcome of each. They are then durable and shown.

        Additions whose locks other threads hold are confirmed afterwards, alone.
        """
        attempts = [_Attempt(addition) for addition in additions]
        self._together(attempts, wait=len(attempts) == 1)
        for attempt in attempts:
            if not attempt.ended:
                self._together([attempt], wait=True)
        return [attempt.outcome if attempt.outcome is not None else False for attempt in attempts]

    def one(self, addition: Confirmable) -> bool:
        """Confirm one addition; return whether it contained anything new. Raises the refusal."""
        [outcome] = self.confirm([addition])
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _together(self, attempts: Sequence[_Attempt], *, wait: bool) -> None:
        with ExitStack() as held:
            keys: set[Hashable] = set()
            going = []
            for attempt in attempts:
                if attempt.addition.key not in keys and _take(attempt.addition.locks, held, wait=wait):
                    keys.add(attempt.addition.key)
                    going.append(attempt)
            self._confirm([attempt for attempt in going if _is_new(attempt)])

    def _confirm(self, attempts: Sequence[_Attempt]) -> None:
        if not attempts:
            return
        domain = attempts[0].addition.place.domain
        try:
            reader = self._view.domain(domain).reader
            with Turnstile(self._view.archive.lock(domain)).shared():
                self._put(attempts, LockedHead.now(reader))
        except BaseException as error:
            for attempt in attempts:
                attempt.fail(error)
        self._committer.added(
            domain, sum(attempt.outcome is True and not attempt.addition.provisional for attempt in attempts)
        )

    def _put(self, attempts: Sequence[_Attempt], main: LockedHead) -> None:
        """Write the additions to the journal and the overlay. Under the domain's lock."""
        for attempt in attempts:
            try:
                attempt.wanted = attempt.addition.judged(main)
            except BaseException as error:
                attempt.fail(error)
        for journal, provisional in ((self._journal, False), (self._provisional, True)):
            going = [
                attempt for attempt in attempts if not attempt.ended and attempt.addition.provisional is provisional
            ]
            if going and journal is not None:
                self._put_into(journal, going)

    @staticmethod
    def _put_into(journal: Journal, going: Sequence[_Attempt]) -> None:
        tickets = journal.confirm_all([attempt.wanted for attempt in going if attempt.wanted is not None])
        for attempt, ticket in zip(going, tickets, strict=True):
            if isinstance(ticket, BaseException):
                attempt.fail(ticket)
            else:
                attempt.show(ticket)


def _take(locks: Sequence[Lock], held: ExitStack, *, wait: bool) -> bool:
    """Take all locks, to be released with `held`; without `wait`, take none and return False if one is not free."""
    with ExitStack() as taken:
        for lock in locks:
            if not lock.acquire(wait):
                return False
            taken.callback(lock.release)
        held.push(taken.pop_all())
    return True


def _is_new(attempt: _Attempt) -> bool:
    """Return whether there is anything to confirm; otherwise set the outcome."""
    try:
        if attempt.addition.prepare():
            return True
        attempt.outcome = False
    except BaseException as error:
        attempt.fail(error)
    return False


# == document close ===================================================================================================


#: Locks that keep two threads from extending one document at once; many, so that few documents share one.
_STRIPES = 1024


class NodeAddition(Confirmable):
    """The nodes that the document `new` has beyond `old`; the addition `source` is removed with them."""

    def __init__(
        self, documents: DocumentWriter, place: ArcVersion, maker: Maker, texts: tuple[bytes, bytes] = (b"", b"")
    ) -> None:
        self.place = place
        self.source = ""
        self.nodes = b""
        self.old, self.new = texts
        self._documents = documents
        self._maker = maker
        self._merged: tuple[bytes, tuple[bytes, ...]] = (b"", ())

    @property
    def key(self) -> Hashable:
        """The ARC: each addition to its document is merged with the earlier ones."""
        return self.place

    @property
    def locks(self) -> Sequence[Lock]:
        """The lock of the ARC's stripe: two threads must not extend one document at once."""
        return (self._documents.stripe(self.place),)

    def prepare(self) -> bool:
        """Find and check the nodes. Raises InvalidDocument, Exists, NotPermitted."""
        self.nodes = self._documents.nodes(self.old, self.new)
        return bool(self.nodes or self.source)

    def judged(self, main: LockedHead) -> Wanted:
        """Merge the nodes with the current document. Raises Stale, Exists."""
        document, before = self._documents.merged(self.place, main)
        self._merged = data_nodes.merge_nodes(document, self.nodes), (*before, self.nodes)
        return AddNodes(self.place, self.nodes, author(self._maker), int(time.time()), self.source), None

    def confirmed(self, ticket: JournalPosition) -> None:
        """Show the document with the nodes as a new version of the file."""
        document, nodes = self._merged
        number = ticket.log, ticket.number
        self._documents.show(self.place, PendingFile(blob_id(document), len(document), number, document, nodes))
        if self.source:
            self._documents.hide(self.place, self.source, number)

    def refused(self, error: BaseException) -> None:
        """Log an error of the writer's (/Xm-4/)."""
        if isinstance(error, InvalidDocument | Exists | NotPermitted):
            self._documents.refused(self.place, self._maker, error)


class BufferClose(NodeAddition):
    """The unconfirmed nodes of a buffer."""

    def __init__(self, documents: DocumentWriter, document: DocumentBuffer) -> None:
        super().__init__(documents, document.place, document.maker)
        self._document = document
        self._buffer = b""

    @property
    def locks(self) -> Sequence[Lock]:
        """The buffer's lock, too."""
        return (self._document.lock, *super().locks)

    def prepare(self) -> bool:
        """Also raises the refusal of a write."""
        document = self._document
        if not document.dirty:
            return False
        self._buffer = document.written()
        # Confirmed nodes are in `old`, in their place; in the buffer they may follow the end of the document.
        more = bool(document.seen) and self._buffer.startswith(document.seen)
        self.old = document.old
        self.new = self.old + self._buffer[len(document.seen) :] if more else self._buffer
        if super().prepare():
            return True
        self._seen()
        return False

    def confirmed(self, ticket: JournalPosition) -> None:
        """Also make the next close of the buffer continue from here."""
        super().confirmed(ticket)
        self._document.old = data_nodes.merge_nodes(self.old, self.nodes)
        self._seen()

    def _seen(self) -> None:
        self._document.seen, self._document.dirty, self._document.failed = self._buffer, False, False


class DocumentWriter:
    """The data nodes that are added through one mount."""

    def __init__(self, view: View, confirmer: Confirmer, schemas: Schemas) -> None:
        self._view = view
        self._confirmer = confirmer
        self._schemas = schemas
        self._stripes = [threading.Lock() for _ in range(_STRIPES)]

    def rewrite(self, place: ArcVersion, new: bytes, maker: Maker, source: str) -> None:
        """Add the nodes that a document has beyond the current one; remove the addition `source` in the same step.

        Raises InvalidDocument, Exists, NotPermitted, Stale, OSError.
        """
        addition = NodeAddition(self, place, maker, (self.current(place), new))
        addition.source = source
        self._confirmer.one(addition)

    def refused(self, place: ArcVersion, maker: Maker, error: WebarcError) -> None:
        """Log the refusal (/Xm-4/)."""
        who = author(maker)
        path = f"/{place.domain}/{place.arc}/{DATA_XML}"
        schemas.refused(self._view.archive, f"{who.name} <{who.mail}>", path, error)

    def current(self, place: ArcVersion) -> bytes:
        """Return the document as this mount shows it now. Raises Stale."""
        return self.merged(place, LockedHead.now(self._view.domain(place.domain).reader))[0]

    # -- for the additions -------------------------------------------------------------------------------------------

    def stripe(self, place: ArcVersion) -> threading.Lock:
        """Return the lock of a place; several places share one."""
        return self._stripes[hash(place) % _STRIPES]

    def nodes(self, old: bytes, new: bytes) -> bytes:
        """Return the new nodes of a document that fits its schemas. Raises InvalidDocument, Exists, NotPermitted."""
        return data_nodes.extended(old, new, self._schemas.judge)

    def merged(self, place: ArcVersion, main: LockedHead) -> tuple[bytes, tuple[bytes, ...]]:
        """Return main's document with the pending nodes, and those nodes that main does not have yet. Raises Stale."""
        document, kept = main.document(place), []
        for nodes in self._view.overlay.nodes(place):
            try:
                document = data_nodes.merge_nodes(document, nodes)
            except Exists:
                continue
            kept.append(nodes)
        return document, tuple(kept)

    def show(self, place: ArcVersion, pending: PendingFile) -> None:
        """Show a document that is in the journal."""
        self._view.overlay.confirmed(place, DATA_XML, pending)

    def hide(self, place: ArcVersion, path: str, number: Number) -> None:
        """Hide an addition that became nodes of the document."""
        self._view.overlay.gone(place, path, number)
