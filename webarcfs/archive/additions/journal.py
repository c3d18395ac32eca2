"""The journal of one mount: confirmed additions that git does not have yet, in memory and on disk.

`confirm` returns when the addition is on disk, `confirm_all` when several are, each of which may be refused. Threads
that confirm at once share one sync. A name is claimed and written under the domain's names lock, which is released
before the sync; so mounts never confirm one name twice, and still sync together. The journal is a sequence of logs: a
full one is followed by another, and is removed when git has all of it.

In memory, additions are found by log, domain and blob; that part is safe for any thread. On disk, bodies are unnamed
drafts, and large bodies are in files of their own.

A name that a pending or provisional addition has taken, through any mount, is refused before anything is confirmed.
Callers check the names that are in git already.

For additions that a commit did not take, what the journal holds in memory is compared with what is on disk.

Provisional files are confirmed and durable, but their maker may still change or remove them.

One log has the last state of each of them; git has none. A file leaves it when it settles, since the mount's journal
has it by then, or when it is removed. When much of the log is of the past, the last states move to another one. A log
and its successor may both be there after a crash: they have the same states.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import secrets
import tempfile
import threading
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Self

from webarcfs.archive.additions.journal_log import (
    INLINE,
    PROVISIONAL,
    SUFFIX,
    FileKey,
    LogReader,
    LogRecord,
    LogWriter,
    frame,
    log_names,
    log_path,
)
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_nodes import names_of
from webarcfs.archive.model.additions import AddFile, Addition, AddNodes, ArcVersion, Committed, Move, Removal
from webarcfs.archive.model.errors import Damaged, Exists, NotFound
from webarcfs.archive.model.metadata import compact_time, now
from webarcfs.archive.system import locks
from webarcfs.archive.system.files import blob_hash, blob_id, sync_folder, write_all

# == pending ==========================================================================================================


@dataclass(frozen=True, slots=True)
class JournalPosition:
    """A confirmed addition with its place: its log and its number there."""

    log: str
    number: int
    addition: Addition

    @property
    def key(self) -> tuple[str, int]:
        """Its log and number, which identify it."""
        return self.log, self.number


@dataclass(frozen=True, slots=True)
class PendingAddition:
    """A ticket, the span of its record, and the place of its body: `offset` of the segment's log, or `file`.

    `fd` is a descriptor of that file, which outlives its name; -1 without one.
    """

    ticket: JournalPosition
    segment: LogWriter
    begin: int
    end: int
    offset: int
    file: str
    fd: int = -1

    @property
    def is_confirmed(self) -> bool:
        """Whether its record is synced."""
        return self.segment.is_synced(self.end)


class PendingIndex:
    """The pending additions of one journal."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], dict[int, PendingAddition]] = {}
        self._bodies: dict[str, dict[tuple[str, int], PendingAddition]] = {}
        #: The number of descriptors that they hold.
        self.descriptors = 0

    def keep(self, pending: PendingAddition) -> None:
        """Add a pending addition."""
        with self._lock:
            self._add(pending)
            self.descriptors += pending.fd >= 0

    def replace(self, old: PendingAddition, new: PendingAddition) -> None:
        """Put an addition in another's place, with its descriptor; a lookup finds one of them at any time."""
        with self._lock:
            self._remove(old)
            self._add(new)

    def forget(self, gone: Iterable[PendingAddition]) -> None:
        """Remove pending additions; no lookup finds them any more."""
        with self._lock:
            for pending in gone:
                self._forget(pending)

    def of(self, domain: str | None = None) -> Sequence[PendingAddition]:
        """Return the pending additions of a domain, or all, in order."""
        with self._lock:
            held = [pendings for key, pendings in self._held.items() if domain in (None, key[1])]
            return sorted(
                (pending for some in held for pending in some.values()), key=lambda pending: pending.ticket.number
            )

    def logs(self) -> set[str]:
        """Return the logs with pending additions."""
        with self._lock:
            return {log for log, _ in self._held}

    def read(self, blob: str, folder: Path) -> bytes | int | None:
        """Return a body: its bytes, or a descriptor of its file in `folder`, which the caller closes; None if unknown.

        Its source exists as long as the read takes: nothing is forgotten meanwhile.
        """
        with self._lock:
            pending = next(iter(self._bodies.get(blob, {}).values()), None)
            if pending is None:
                return None
            if pending.file:
                return open_body(pending, folder)
            addition = pending.ticket.addition
            assert isinstance(addition, AddFile)
            return os.pread(pending.segment.fd, addition.size, pending.offset)

    def _forget(self, pending: PendingAddition) -> None:
        if self._remove(pending) and pending.fd >= 0:
            self.descriptors -= 1
            os.close(pending.fd)

    def _add(self, pending: PendingAddition) -> None:
        ticket = pending.ticket
        self._held.setdefault((ticket.log, ticket.addition.place.domain), {})[ticket.number] = pending
        if isinstance(ticket.addition, AddFile):
            self._bodies.setdefault(ticket.addition.blob, {})[ticket.log, ticket.number] = pending

    def _remove(self, pending: PendingAddition) -> bool:
        """Remove an addition; return whether it was there."""
        ticket = pending.ticket
        key = ticket.log, ticket.addition.place.domain
        held = self._held.get(key, {})
        was_there = held.pop(ticket.number, None) is not None
        if not held:
            self._held.pop(key, None)
        if isinstance(ticket.addition, AddFile):
            same = self._bodies.get(ticket.addition.blob, {})
            same.pop((ticket.log, ticket.number), None)
            if not same:
                self._bodies.pop(ticket.addition.blob, None)
        return was_there


def open_body(pending: PendingAddition, folder: Path) -> int:
    """Open the file of a large body in `folder`, or what is left of it without its name. Raises OSError."""
    try:
        return os.open(folder / pending.file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        if pending.fd < 0:
            raise
        return os.open(f"/proc/self/fd/{pending.fd}", os.O_RDONLY | os.O_CLOEXEC)


# == bodies ===========================================================================================================


#: Prefix of a draft's temporary name, where unnamed files cannot be made.
DRAFT = ".draft-"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredBody:
    """The bytes of a file to be added: `data`, or the first `size` bytes of the descriptor `fd` of a draft.

    A `final` draft is used itself, and must not be written any more; any other is copied. The descriptor stays the
    caller's.
    """

    size: int
    data: bytes | None = None
    fd: int = -1
    final: bool = True


def nameless(folder: Path) -> int:
    """Return a descriptor of a new, unnamed file in `folder`. Raises OSError."""
    try:
        return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
            raise
    fd, name = tempfile.mkstemp(prefix=DRAFT, dir=folder)
    Path(name).unlink(missing_ok=True)
    return fd


def read(body: StoredBody) -> bytes:
    """Return a small body's bytes."""
    return body.data if body.data is not None else b"".join(chunks(body))


def chunks(body: StoredBody) -> Iterator[bytes]:
    """Yield a body's bytes in chunks. Raises OSError when the draft is shorter than `size`."""
    if body.data is not None:
        yield body.data
        return
    at = 0
    while at < body.size:
        chunk = os.pread(body.fd, min(_CHUNK, body.size - at), at)
        if not chunk:
            raise OSError(errno.EIO, "a draft is shorter than what was written to it")
        yield chunk
        at += len(chunk)


def blob_of(body: StoredBody) -> str:
    """Return git's id of a body. Raises OSError."""
    digest = blob_hash(body.size)
    for chunk in chunks(body):
        digest.update(chunk)
    return digest.hexdigest()


def store(body: StoredBody, path: Path) -> None:
    """Store a large body at `path`, durably; a final draft gets the name, any other body is copied. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir()
        sync_folder(path.parent.parent)
    try:
        if not (body.data is None and body.final and _link(body, path)):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                for chunk in chunks(body):
                    write_all(fd, chunk)
                os.fsync(fd)
            finally:
                os.close(fd)
        sync_folder(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _link(body: StoredBody, path: Path) -> bool:
    """Give a draft a name; return False if that is not possible."""
    if os.fstat(body.fd).st_size != body.size:
        return False
    os.fsync(body.fd)
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # With a descriptor Python calls linkat(2), which follows the link in /proc; link(2) does not.
        os.link(f"/proc/self/fd/{body.fd}", path, src_dir_fd=root, follow_symlinks=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        return False
    finally:
        os.close(root)
    return True


# == name claims ======================================================================================================


@dataclass(slots=True)
class _Taken:
    """The names of one version of an ARC: file → log → blob; folder → number of files below it; node → log.

    A log is named by its file. A file that settles is in two logs for a while, which are read in any order.
    """

    files: dict[str, dict[str, str]] = field(default_factory=dict)
    folders: Counter[str] = field(default_factory=Counter)
    nodes: dict[str, str] = field(default_factory=dict)


class Claims:
    """The pending names of an archive, read from the logs. The journals of one mount share it."""

    def __init__(self, archive: Archive) -> None:
        #: Held by the one thread that uses it.
        self.lock = threading.RLock()
        self._archive = archive
        self._logs: dict[str, LogReader] = {}
        self._taken: dict[ArcVersion, _Taken] = {}
        self._places: dict[str, set[ArcVersion]] = {}

    @contextmanager
    def claiming(self, domain: str) -> Iterator[None]:
        """Let no other thread or mount claim a name of the domain meanwhile. What they claimed before is known."""
        with self.lock, locks.exclusive(self._archive.names_lock(domain)):
            self.refresh()
            yield

    def refresh(self) -> None:
        """Read the records that were written since the last call."""
        names = log_names(self._archive, SUFFIX, PROVISIONAL)
        if self._logs.keys() - names:
            # Another one may have taken its place while the folder was read.
            names = log_names(self._archive, SUFFIX, PROVISIONAL)
        for gone in self._logs.keys() - names:
            self._forget(gone)
        for name in names:
            log = self._logs.get(name)
            if log is None:
                log = self._logs[name] = LogReader(self._archive.journal / name)
            self._read(log)

    def wrote(self, log: str, begin: int, end: int, addition: Addition) -> None:
        """Note a record of our own mount, between two offsets of a log: it need not be read from there."""
        known = self._logs.get(log)
        if known is not None and known.end == begin:
            self._apply(known, addition)
            known.end = end

    def forget_all(self) -> None:
        """Forget all names; the next refresh reads the logs again."""
        self._logs.clear()
        self._taken.clear()
        self._places.clear()

    def check(self, addition: Addition, own: Collection[str] = ()) -> None:
        """Raises Exists when another addition has taken a name of `addition`, outside of the logs `own`."""
        taken = self._taken.get(addition.place)
        if taken is None:
            return
        match addition:
            case AddFile():
                _check_file(taken, addition.path, addition.replaces, own)
            case Move():
                _check_file(taken, addition.new, "", own)
            case AddNodes():
                for name in names_of(addition.nodes):
                    if taken.nodes.get(name, "") not in ("", *own):
                        raise Exists(f"data.xml has a data node {name} already")

    def _read(self, log: LogReader) -> None:
        try:
            records = log.more()
            if records is None:  # a failed sync was cut off
                self._forget(log.path.name)
                log = self._logs[log.path.name] = LogReader(log.path)
                records = log.more() or []
        except FileNotFoundError:
            return
        for record in records:
            self._apply(log, record.addition)

    def _apply(self, log: LogReader, addition: Addition) -> None:
        taken, name = self._taken.setdefault(addition.place, _Taken()), log.path.name
        # The files of a provisional log are of this log alone; those of others may be of the journal's logs before it.
        claimers = (name,) if log.provisional else None
        self._places.setdefault(name, set()).add(addition.place)
        match addition:
            case AddFile():
                if addition.replaces:
                    _take_away(taken, addition.path, claimers, {"", addition.replaces})
                _put(taken, addition.path, name, addition.blob)
            case Move():
                blobs = _take_away(taken, addition.old, claimers)
                _put(taken, addition.new, name, blobs[-1] if blobs else "")
            case Removal():
                _take_away(taken, addition.path, claimers)  # if it settled, another log has it
            case AddNodes():
                _take_away(taken, addition.source)
                taken.nodes |= dict.fromkeys(names_of(addition.nodes), name)

    def _forget(self, log: str) -> None:
        """Forget a log that was removed, since git has all of it (or that was cut, and is read again)."""
        self._logs.pop(log, None)
        for place in self._places.pop(log, ()):
            taken = self._taken[place]
            for path in [path for path, claims in taken.files.items() if log in claims]:
                _take_away(taken, path, (log,))
            for node in [node for node, whose in taken.nodes.items() if whose == log]:
                del taken.nodes[node]
            if not taken.files and not taken.nodes:
                del self._taken[place]
                for places in self._places.values():
                    places.discard(place)


def _check_file(taken: _Taken, path: str, replaces: str, own: Collection[str]) -> None:
    # No blob: it was renamed after its log was removed. Only its own writer may replace the file of that name.
    blobs = {blob for log, blob in taken.files.get(path, {}).items() if log not in own}
    if blobs and not (replaces and blobs <= {"", replaces}):
        raise Exists(f"{path} exists already")
    if taken.folders[path] or any(folder in taken.files for folder in _folders(path)):
        raise Exists(f"{path} is in the way of another addition, or one in its way")


def _put(taken: _Taken, path: str, log: str, blob: str) -> None:
    if path not in taken.files:
        taken.folders.update(_folders(path))
    taken.files.setdefault(path, {})[log] = blob


def _take_away(
    taken: _Taken, path: str, logs: Container[str] | None = None, blobs: Container[str] | None = None
) -> list[str]:
    """Take away what some logs, or all, claim of a path by some blobs, or all; return the blobs."""
    claims = taken.files.get(path, {})
    gone = [log for log, blob in claims.items() if (logs is None or log in logs) and (blobs is None or blob in blobs)]
    removed_blobs = [claims.pop(log) for log in gone]
    if removed_blobs and not claims:
        del taken.files[path]
        taken.folders.subtract(_folders(path))
    return removed_blobs


def _folders(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))


# == journal ==========================================================================================================


__all__ = ["Journal", "JournalPosition", "StoredBody", "Wanted"]

#: Bytes of a log after which another follows, so that logs that git has can be removed.
FULL = 4 << 20
#: Bytes from which a log that git has all of is replaced: commits then read less.
WORTH = 256 << 10
#: Large bodies that are held open, so that they can be written again if others remove their files.
HELD_OPEN = 64
#: Descriptors reserved for locks, logs, git, the disk and bodies held open; drafts may use the others.
RESERVE = 100 + HELD_OPEN

#: Additions that are written again at a time: their bodies are in memory.
TOGETHER = 64

#: An addition to be confirmed, with its body if it is a file.
Wanted = tuple[Addition, StoredBody | None]
#: Additions that were written again: the old position, and the new one or the error.
Rewritten = dict[JournalPosition, JournalPosition | BaseException]


@dataclass(slots=True)
class Confirming:
    """An addition being confirmed: its body, as part of the record or in a file, then the outcome."""

    addition: Addition
    data: bytes = b""
    file: str = ""
    pending: PendingAddition | None = None
    end: int = 0
    error: BaseException | None = None
    #: It was confirmed before, and is written again: its name in one of the journal's own logs is its own.
    again: bool = False


class Journal:
    """The logs of one mount's process; safe for any thread."""

    #: Whether its files are provisional.
    provisional: ClassVar[bool] = False

    def __init__(self, archive: Archive, claims: Claims | None = None) -> None:
        self._archive = archive
        self.id = f"{compact_time(now())}-{os.getpid()}-{secrets.token_hex(4)}"
        self._folder = archive.journal / self.id
        self._claims = claims if claims is not None else Claims(archive)
        self._pendings = PendingIndex()
        self._state = threading.Lock()
        self._logs = self._files = self._number = 0
        self._segments: list[LogWriter] = []
        self._segments.append(self._next_segment())

    @classmethod
    def open(cls, archive: Archive, claims: Claims | None = None) -> Self:
        """Make a new journal of this process; the journals of one mount share `claims`. Raises OSError."""
        return cls(archive, claims)

    def make_folder(self) -> None:
        """Make the folder of all journals, if others removed it. Raises OSError."""
        with contextlib.suppress(FileExistsError):
            self._archive.journal.mkdir()

    def draft(self) -> int:
        """Return a descriptor of a new, unnamed file on the journal's disk. Raises OSError.

        The last descriptors of the process are reserved, so that open files can be confirmed.
        """
        fd = nameless(self._archive.journal)
        if fd >= resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVE:
            os.close(fd)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return fd

    def confirm(self, addition: Addition, body: StoredBody | None = None) -> JournalPosition:
        """Make an addition durable before returning. The caller holds the domain's lock, shared.

        Raises Exists when another pending addition of this version, of any mount, has the name; OSError when it could
        not be written, without any remains.
        """
        [outcome] = self.confirm_all([(addition, body)])
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def confirm_all(self, wanted: Sequence[Wanted]) -> list[JournalPosition | BaseException]:
        """Make several additions of one domain durable, at the cost of one; return the ticket or error of each.

        Each addition succeeds or fails by itself, unless the disk fails.
        """
        return self._confirm([self._with_body(addition, body) for addition, body in wanted])

    def _confirm(self, every: Sequence[Confirming]) -> list[JournalPosition | BaseException]:
        self._write([confirming for confirming in every if confirming.error is None])
        self._sync([confirming for confirming in every if confirming.error is None])
        failed = [confirming for confirming in every if confirming.error is not None]
        self._pendings.forget(confirming.pending for confirming in failed if confirming.pending is not None)
        for confirming in failed:
            if confirming.file:
                with contextlib.suppress(OSError):
                    (self._folder / confirming.file).unlink()
        return [_outcome(confirming) for confirming in every]

    def read_blob(self, blob: str) -> bytes | int | None:
        """Return a pending body: its bytes, or a descriptor of a large one that the caller closes; None once in git."""
        return self._pendings.read(blob, self._folder)

    def pending(self, domain: str | None = None) -> Sequence[JournalPosition]:
        """Return the additions that were confirmed here and are not released yet, in order."""
        return [pending.ticket for pending in self._pendings.of(domain) if pending.is_confirmed]

    def untaken(self, committed: Committed, waited: Collection[JournalPosition]) -> Sequence[JournalPosition]:
        """Return those of `waited`, confirmed before a commit, that it did not take in although it should have."""
        keys = {position.key for position in waited} - {(dropped.log, dropped.number) for dropped in committed.dropped}
        taken = {pending.ticket.key for pending in self._pendings.of(committed.domain) if _is_done(pending, committed)}
        return [position for position in waited if position.key not in taken & keys]

    def release(self, committed: Committed, besides: Collection[JournalPosition] = ()) -> Sequence[JournalPosition]:
        """Forget additions that are in git now, free their disk space, and return them. Raises OSError.

        Those of `besides` stay, although the commit has passed them.
        """
        damaged = {(dropped.log, dropped.number) for dropped in committed.dropped if dropped.damaged}
        kept = {position.key for position in besides}
        with self._claims.lock:
            passed = [pending for pending in self._pendings.of(committed.domain) if _is_done(pending, committed)]
            done = [pending for pending in passed if pending.ticket.key not in kept]
            for pending in done:
                pending.segment.damaged |= pending.ticket.key in damaged
            self._forget(done)
        return [pending.ticket for pending in done]

    def write_again(self, wanted: Mapping[JournalPosition, Addition]) -> Rewritten:
        """Write confirmed additions of one domain again that others removed from the journal.

        `wanted` has the addition to write for each old position. Returns the new position of each, or its error: a
        WebarcError where it is lost, an OSError where the disk did not take it. Those that were not written stay, under
        their old positions. The caller holds the domain's lock, alone.
        """
        keys = {position.key: addition for position, addition in wanted.items()}
        pendings = [pending for pending in self._pendings.of() if pending.ticket.key in keys]
        for pending in pendings:
            pending.segment.retired = True
        with self._claims.lock:
            self._claims.forget_all()  # without the names of the records that are gone
        outcomes: Rewritten = {}
        for first in range(0, len(pendings), TOGETHER):
            outcomes |= self._write_again(
                [(pending, keys[pending.ticket.key]) for pending in pendings[first : first + TOGETHER]]
            )
        return outcomes

    def forget(self, gone: Collection[JournalPosition], *, lost: bool) -> None:
        """Forget additions that neither git nor the journal has; the log of what is lost is set aside in the end."""
        keys = {position.key for position in gone}
        with self._claims.lock:
            pendings = [pending for pending in self._pendings.of() if pending.ticket.key in keys]
            for pending in pendings:
                pending.segment.damaged |= lost
            self._forget(pendings)

    def close(self) -> None:
        """End it. Uncommitted additions stay for the next mount or agent; without any, the journal is removed."""
        with self._claims.lock, self._state:
            left = self._pendings.logs()
            for segment in self._segments:
                if segment.id not in left:
                    segment.remove()
                segment.close()
            self._segments.clear()
            if not left:
                with contextlib.suppress(OSError):  # a confirm that was killed with its thread may have left a body
                    self._folder.rmdir()

    # -- writing -------------------------------------------------------------------------------------------------

    def _with_body(self, addition: Addition, body: StoredBody | None) -> Confirming:
        confirming = Confirming(addition)
        try:
            confirming.data, confirming.file = self._body(addition, body)
        except BaseException as error:
            confirming.error = error
        return confirming

    def _body(self, addition: Addition, body: StoredBody | None) -> tuple[bytes, str]:
        """Return the body for the record, or the file that it was stored in."""
        if isinstance(addition, AddNodes):
            body = StoredBody(len(addition.nodes), addition.nodes)
        elif isinstance(addition, AddFile) and body is None:
            raise ValueError("a file needs a body")
        if body is None:
            return b"", ""
        if body.size <= INLINE:
            data = read(body)
            if isinstance(addition, AddFile) and blob_id(data) != addition.blob:
                raise Damaged(f"{addition.path}: the body is not the one that was announced")
            return data, ""
        with self._state:
            self._files += 1
            file = f"b{self._files}"
        store(body, self._folder / file)
        return b"", file

    def _write(self, every: Sequence[Confirming]) -> None:
        """Claim the names of each and write its record; they are not durable yet."""
        if not every:
            return
        try:
            with self._claims.claiming(every[0].addition.place.domain):
                for confirming in every:
                    self._append(confirming)
        except BaseException as error:
            for confirming in every:
                confirming.error = confirming.error or error

    def _append(self, confirming: Confirming) -> None:
        try:
            self._claims.check(confirming.addition, self._own_logs() if confirming.again else ())
            segment = self._current()
            self._number += 1
            record = frame(self._number, confirming.addition, confirming.data, confirming.file)
            begin, confirming.end = segment.end, segment.append(record)
            self._claims.wrote(segment.path.name, begin, confirming.end, confirming.addition)
            ticket = JournalPosition(segment.id, self._number, confirming.addition)
            body = confirming.end - len(confirming.data), confirming.file, self._hold_open(confirming.file)
            confirming.pending = PendingAddition(ticket, segment, begin, confirming.end, *body)
            self._pendings.keep(confirming.pending)  # from now on its log must stay, though it is not confirmed yet
        except BaseException as error:
            confirming.error = error

    @staticmethod
    def _sync(every: Sequence[Confirming]) -> None:
        """Sync the records of all, log by log: the last log may have had room for some only."""
        logs = {
            confirming.pending.segment: confirming.end for confirming in every if confirming.pending is not None
        }  # the last end of each
        for segment, end in logs.items():
            try:
                segment.sync(end)
            except BaseException as error:
                for confirming in every:
                    if confirming.pending is not None and confirming.pending.segment is segment:
                        confirming.error = error

    def _current(self) -> LogWriter:
        """Return the log to write to: a new one if the last is full, or failed. Under the names lock."""
        last = self._segments[-1]
        if last.end >= FULL or last.failed:
            last = self._next_segment()
            with self._state:
                self._segments.append(last)
            self._claims.refresh()  # the rest of this batch is checked against the records there
        return last

    def _next_segment(self) -> LogWriter:
        self._logs += 1
        self.make_folder()
        name = f"{self.id}-{self._logs:06}"
        return LogWriter.create(self._archive.journal, name, provisional=self.provisional)

    def _hold_open(self, file: str) -> int:
        """Return a descriptor of a large body, as long as few are held; else -1."""
        if file and self._pendings.descriptors < HELD_OPEN:
            with contextlib.suppress(OSError):
                return os.open(self._folder / file, os.O_RDONLY | os.O_CLOEXEC)
        return -1

    # -- writing again ---------------------------------------------------------------------------------------------

    def _write_again(self, pendings: Sequence[tuple[PendingAddition, Addition]]) -> Rewritten:
        with contextlib.ExitStack() as opened:
            outcomes = self._confirm([self._found_again(pending, addition, opened) for pending, addition in pendings])
        together = [(old, new) for (old, _), new in zip(pendings, outcomes, strict=True)]
        with self._claims.lock:
            self._forget([old for old, new in together if isinstance(new, JournalPosition)])
        return {old.ticket: new for old, new in together}

    def _found_again(self, pending: PendingAddition, addition: Addition, opened: contextlib.ExitStack) -> Confirming:
        """Return an addition with the body that is still in reach, to be confirmed once more."""
        try:
            body = self._reach_body(pending, addition, opened) if isinstance(addition, AddFile) else None
        except (OSError, Damaged) as error:
            return Confirming(addition, error=Damaged(f"its bytes are gone: {error}"))
        confirming = self._with_body(addition, body)
        confirming.again = True
        return confirming

    def _reach_body(self, pending: PendingAddition, addition: AddFile, opened: contextlib.ExitStack) -> StoredBody:
        """Return the body of a pending file, from descriptors that outlive its names. Raises OSError, Damaged."""
        if pending.file:
            fd = open_body(pending, self._folder)
            opened.callback(os.close, fd)
            body = StoredBody(addition.size, fd=fd)
        else:
            data = os.pread(pending.segment.fd, addition.size, pending.offset)
            body = StoredBody(len(data), data)
        if blob_of(body) != addition.blob:
            raise Damaged("others wrote over them")
        return body

    def _own_logs(self) -> Collection[str]:
        return [segment.path.name for segment in self._segments]

    # -- releasing ----------------------------------------------------------------------------------------------

    def _forget(self, done: Sequence[PendingAddition]) -> None:
        """Forget additions, and free their space. Under the claims' lock."""
        self._pendings.forget(done)
        there = {segment.id for segment in {pending.segment for pending in done} if segment.is_there()}
        for pending in done:
            # In a copy of the archive the file may belong to an addition that its git lacks.
            if pending.file and pending.segment.id in there and not pending.segment.damaged:
                (self._folder / pending.file).unlink(missing_ok=True)
        self._drop_segments()

    def _drop_segments(self) -> None:
        """Remove logs that git has all of; the current one only from WORTH bytes on."""
        if self._segments and not self._segments[-1].is_there():
            self._segments[-1].retired = True
        if self._segments and self._segments[-1].end >= WORTH and not self._is_held(self._segments[-1]):
            following = self._next_segment()
            with self._state:
                self._segments.append(following)
        for segment in self._segments[:-1]:
            if not self._is_held(segment):
                segment.remove()
                with self._state:
                    self._segments.remove(segment)
                segment.close()

    def _is_held(self, segment: LogWriter) -> bool:
        return segment.id in self._pendings.logs()


def _outcome(confirming: Confirming) -> JournalPosition | BaseException:
    if confirming.error is not None:
        return confirming.error
    assert confirming.pending is not None
    return confirming.pending.ticket


def _is_done(pending: PendingAddition, committed: Committed) -> bool:
    log, number = pending.ticket.key
    spans = committed.damage.get(log, ())
    return number <= committed.upto.get(log, 0) and not any(a < pending.end and pending.begin < b for a, b in spans)


# == survey ===========================================================================================================


def find_on_disk(archive: Archive, positions: Iterable[JournalPosition]) -> set[tuple[str, int]]:
    """Return the keys of the additions that another process could still commit: record and body are in the journal."""
    wanted = {position.key: position for position in positions}
    on_disk = set()
    for log in sorted({log for log, _ in wanted}):
        reader = LogReader(log_path(archive, log))
        for record in _records(reader):
            position = wanted.get((log, record.number))
            if position is not None and record.addition == position.addition and _has_body(reader, record):
                on_disk.add(position.key)
    return on_disk


def _records(reader: LogReader) -> list[LogRecord]:
    try:
        return reader.more() or []
    except OSError:
        return []


def _has_body(reader: LogReader, record: LogRecord) -> bool:
    """Return whether the body of a record is there in full length; AddNodes was read with its nodes."""
    if not record.file or not isinstance(record.addition, AddFile):
        return True
    try:
        return (reader.bodies / record.file).stat().st_size == record.size
    except OSError:
        return False


# == provisional journal ==============================================================================================


class ProvisionalJournal(Journal):
    """The provisional files of one mount's process; safe for any thread."""

    provisional: ClassVar[bool] = True

    def __init__(self, archive: Archive, claims: Claims | None = None) -> None:
        super().__init__(archive, claims)
        self._states: dict[FileKey, PendingAddition] = {}
        self._full = FULL
        # Records that are written and not in `_states` yet: meanwhile the log is not replaced.
        self._under_way = 0
        self._ended = threading.Condition(self._state)

    def files(self) -> list[FileKey]:
        """Return the files."""
        with self._state:
            return list(self._states)

    def state(self, key: FileKey) -> AddFile | None:
        """Return the last confirmed state of a file; None if it is not provisional."""
        with self._state:
            pending = self._states.get(key)
        return _file(pending) if pending is not None else None

    @contextlib.contextmanager
    def body(self, key: FileKey) -> Iterator[StoredBody]:
        """Yield the bytes of the last confirmed state, with a descriptor for as long. Raises NotFound, OSError."""
        with self._state:
            pending = self._states.get(key)
            if pending is None:
                raise NotFound(f"{key[1]} is not provisional")
            size = _file(pending).size
            if pending.file:
                body = StoredBody(size, fd=open_body(pending, self._folder))
            else:
                body = StoredBody(size, os.pread(pending.segment.fd, size, pending.offset))
        try:
            yield body
        finally:
            if body.fd >= 0:
                os.close(body.fd)

    def remove(self, keys: Iterable[FileKey]) -> None:
        """Release files of one domain, since they were removed, or since another log has them.

        Raises nothing. A power cut or a full disk may bring them back, as any file system does whose folder was not
        synced; then they settle, as the same files if they had.
        """
        every: list[Confirming] = []
        has_files = False
        for place, path in keys:
            with self._state:
                pending = self._states.get((place, path))
            if pending is not None:
                file = _file(pending)
                has_files = has_files or bool(pending.file)
                every.append(Confirming(Removal(place, path, file.author, file.time)))
        with self._counted(every):
            self._write(every)
            if has_files:  # their bodies go, which a record that came back would need
                self._sync([confirming for confirming in every if confirming.error is None])
            for confirming in every:
                self._apply(confirming)

    # ----------------------------------------------------------------------------------------------------------------

    def _confirm(self, every: Sequence[Confirming]) -> list[JournalPosition | BaseException]:
        with self._counted(every):
            outcomes = super()._confirm(every)
            for confirming in every:
                if confirming.error is None:
                    self._apply(confirming)
        return outcomes

    @contextlib.contextmanager
    def _counted(self, every: Sequence[Confirming]) -> Iterator[None]:
        """End what `_append` began."""
        try:
            yield
        finally:
            with self._state:
                self._under_way -= sum(confirming.pending is not None for confirming in every)
                self._ended.notify_all()

    def _append(self, confirming: Confirming) -> None:
        confirming.again = isinstance(confirming.addition, Move)  # it may replace another file of its maker
        super()._append(confirming)
        if confirming.pending is not None:
            with self._state:
                self._under_way += 1

    def _apply(self, confirming: Confirming) -> None:
        """Change the states by a confirmed record."""
        addition, place = confirming.addition, confirming.addition.place
        gone: list[PendingAddition | None] = []
        with self._state:
            match addition:
                case AddFile():
                    assert confirming.pending is not None
                    gone.append(self._states.get((place, addition.path)))
                    self._states[place, addition.path] = confirming.pending
                case Move():
                    moved = self._states.pop((place, addition.old))
                    gone += [self._states.get((place, addition.new)), confirming.pending]
                    ticket = replace(moved.ticket, addition=replace(_file(moved), path=addition.new))
                    self._keep(moved, replace(moved, ticket=ticket))
                case Removal():
                    gone += [self._states.pop((place, addition.path), None), confirming.pending]
        self._let_go([pending for pending in gone if pending is not None])

    def _keep(self, old: PendingAddition, new: PendingAddition) -> None:
        """Note what and where the state of a file is now."""
        file = _file(new)
        self._states[file.place, file.path] = new
        self._pendings.replace(old, new)

    def _let_go(self, gone: Sequence[PendingAddition]) -> None:
        self._pendings.forget(gone)
        for pending in gone:
            if pending.file and pending.segment.is_there():  # else it may belong to a copy of the archive
                (self._folder / pending.file).unlink(missing_ok=True)

    # -- the log -----------------------------------------------------------------------------------------------------

    def _write(self, every: Sequence[Confirming]) -> None:
        with self._claims.lock:
            try:
                self._make_room()
            except BaseException as error:
                for confirming in every:
                    confirming.error = confirming.error or error
                return
            super()._write(every)

    def _current(self) -> LogWriter:
        return self._segments[-1]

    def _make_room(self) -> None:
        """Replace a log that failed or is full. Nobody else writes to it meanwhile. Raises OSError if it failed."""
        old = self._segments[-1]
        if old.end < self._full and not old.failed:
            return
        with self._state:
            while self._under_way:
                self._ended.wait()
        try:
            new = self._next_segment()
        except OSError:
            if old.failed:
                raise
            return
        try:
            copies = [(pending, self._copy(pending, new)) for pending in self._states.values()]
            new.sync(new.end)
        except BaseException:
            new.remove()
            new.close()
            raise
        with self._state:
            for pending, copy in copies:
                self._keep(pending, copy)
            self._segments[:] = [new]
            self._full = max(FULL, 2 * new.end)
            old.remove()
            old.close()
        self._claims.refresh()  # they know the new log, before more is written to it

    def _copy(self, pending: PendingAddition, new: LogWriter) -> PendingAddition:
        """Write the record of a state to another log."""
        file, begin, data = _file(pending), new.end, b""
        if not pending.file:
            data = os.pread(pending.segment.fd, file.size, pending.offset)
        elif pending.fd >= 0 and not (self._folder / pending.file).exists():  # others removed it
            store(StoredBody(file.size, fd=pending.fd), self._folder / pending.file)
        end = new.append(frame(pending.ticket.number, file, data, pending.file))
        ticket = replace(pending.ticket, log=new.id)
        return PendingAddition(ticket, new, begin, end, end - len(data), pending.file, pending.fd)


def _file(pending: PendingAddition) -> AddFile:
    addition = pending.ticket.addition
    assert isinstance(addition, AddFile)
    return addition
