"""The journal of one mount: confirmed additions that git does not have yet.

`confirm` returns when the addition is on disk, `confirm_all` when several are, each of which may be refused. Threads
that confirm at once share one sync. A name is claimed and written under the domain's names lock, which is released
before the sync; so mounts never confirm one name twice, and still sync together. The journal is a sequence of logs: a
full one is followed by another, and is removed when git has all of it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import secrets
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.journal import bodies
from webarcfs.archive.journal.bodies import StoredBody
from webarcfs.archive.journal.log_format import INLINE, frame
from webarcfs.archive.journal.log_writer import LogWriter
from webarcfs.archive.journal.name_claims import Claims
from webarcfs.archive.journal.pending import JournalPosition, PendingAddition, PendingIndex, open_body
from webarcfs.archive.model.addition import AddFile, Addition, AddNodes, blob_id
from webarcfs.archive.model.committed import Committed
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import compact_time, now

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

    #: Whether its files are provisional (provisional_journal.py).
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
        fd = bodies.nameless(self._archive.journal)
        if fd >= resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVE:
            os.close(fd)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return fd

    def confirm(self, addition: Addition, body: StoredBody | None = None) -> JournalPosition:
        """Make an addition durable before returning. The caller holds the domain's lock, shared.

        Raises Exists when another pending addition of this version, of any mount, has the name; OSError when it could
        not be written, without any remains.
        """
        [found] = self.confirm_all([(addition, body)])
        if isinstance(found, BaseException):
            raise found
        return found

    def confirm_all(self, wanted: Sequence[Wanted]) -> list[JournalPosition | BaseException]:
        """Make several additions of one domain durable, at the cost of one; return the ticket or error of each.

        Each addition succeeds or fails by itself, unless the disk fails.
        """
        return self._confirm([self._with_body(addition, body) for addition, body in wanted])

    def _confirm(self, every: Sequence[Confirming]) -> list[JournalPosition | BaseException]:
        self._write([each for each in every if each.error is None])
        self._sync([each for each in every if each.error is None])
        failed = [each for each in every if each.error is not None]
        self._pendings.forget(each.pending for each in failed if each.pending is not None)
        for each in failed:
            if each.file:
                with contextlib.suppress(OSError):
                    (self._folder / each.file).unlink()
        return [_outcome(each) for each in every]

    def read_blob(self, blob: str) -> bytes | int | None:
        """Return a pending body: its bytes, or a descriptor of a large one that the caller closes; None once in git."""
        return self._pendings.read(blob, self._folder)

    def pending(self, domain: str | None = None) -> Sequence[JournalPosition]:
        """Return the additions that were confirmed here and are not released yet, in order."""
        return [each.ticket for each in self._pendings.of(domain) if each.is_confirmed]

    def untaken(self, committed: Committed, waited: Collection[JournalPosition]) -> Sequence[JournalPosition]:
        """Return those of `waited`, confirmed before a commit, that it did not take in although it should have."""
        keys = {position.key for position in waited} - {(each.log, each.number) for each in committed.dropped}
        taken = {each.ticket.key for each in self._pendings.of(committed.domain) if _is_done(each, committed)}
        return [position for position in waited if position.key not in taken & keys]

    def release(self, committed: Committed, besides: Collection[JournalPosition] = ()) -> Sequence[JournalPosition]:
        """Forget additions that are in git now, free their disk space, and return them. Raises OSError.

        Those of `besides` stay, although the commit has passed them.
        """
        damaged = {(each.log, each.number) for each in committed.dropped if each.damaged}
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
        pendings = [each for each in self._pendings.of() if each.ticket.key in keys]
        for pending in pendings:
            pending.segment.retired = True
        with self._claims.lock:
            self._claims.forget_all()  # without the names of the records that are gone
        outcomes: Rewritten = {}
        for first in range(0, len(pendings), TOGETHER):
            outcomes |= self._write_again(
                [(each, keys[each.ticket.key]) for each in pendings[first : first + TOGETHER]]
            )
        return outcomes

    def forget(self, gone: Collection[JournalPosition], *, lost: bool) -> None:
        """Forget additions that neither git nor the journal has; the log of what is lost is set aside in the end."""
        keys = {position.key for position in gone}
        with self._claims.lock:
            pendings = [each for each in self._pendings.of() if each.ticket.key in keys]
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
        found = Confirming(addition)
        try:
            found.data, found.file = self._body(addition, body)
        except BaseException as error:
            found.error = error
        return found

    def _body(self, addition: Addition, body: StoredBody | None) -> tuple[bytes, str]:
        """Return the body for the record, or the file that it was stored in."""
        if isinstance(addition, AddNodes):
            body = StoredBody(len(addition.nodes), addition.nodes)
        elif isinstance(addition, AddFile) and body is None:
            raise ValueError("a file needs a body")
        if body is None:
            return b"", ""
        if body.size <= INLINE:
            data = bodies.read(body)
            if isinstance(addition, AddFile) and blob_id(data) != addition.blob:
                raise Damaged(f"{addition.path}: the body is not the one that was announced")
            return data, ""
        with self._state:
            self._files += 1
            file = f"b{self._files}"
        bodies.store(body, self._folder / file)
        return b"", file

    def _write(self, every: Sequence[Confirming]) -> None:
        """Claim the names of each and write its record; they are not durable yet."""
        if not every:
            return
        try:
            with self._claims.claiming(every[0].addition.place.domain):
                for each in every:
                    self._append(each)
        except BaseException as error:
            for each in every:
                each.error = each.error or error

    def _append(self, each: Confirming) -> None:
        try:
            self._claims.check(each.addition, self._own_logs() if each.again else ())
            segment = self._current()
            self._number += 1
            record = frame(self._number, each.addition, each.data, each.file)
            begin, each.end = segment.end, segment.append(record)
            self._claims.wrote(segment.path.name, begin, each.end, each.addition)
            ticket = JournalPosition(segment.id, self._number, each.addition)
            body = each.end - len(each.data), each.file, self._hold_open(each.file)
            each.pending = PendingAddition(ticket, segment, begin, each.end, *body)
            self._pendings.keep(each.pending)  # from now on its log must stay, though it is not confirmed yet
        except BaseException as error:
            each.error = error

    @staticmethod
    def _sync(every: Sequence[Confirming]) -> None:
        """Sync the records of all, log by log: the last log may have had room for some only."""
        logs = {each.pending.segment: each.end for each in every if each.pending is not None}  # the last end of each
        for segment, end in logs.items():
            try:
                segment.sync(end)
            except BaseException as error:
                for each in every:
                    if each.pending is not None and each.pending.segment is segment:
                        each.error = error

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
        if bodies.blob_of(body) != addition.blob:
            raise Damaged("others wrote over them")
        return body

    def _own_logs(self) -> Collection[str]:
        return [segment.path.name for segment in self._segments]

    # -- letting go ----------------------------------------------------------------------------------------------

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


def _outcome(each: Confirming) -> JournalPosition | BaseException:
    if each.error is not None:
        return each.error
    assert each.pending is not None
    return each.pending.ticket


def _is_done(pending: PendingAddition, committed: Committed) -> bool:
    log, number = pending.ticket.key
    spans = committed.damage.get(log, ())
    return number <= committed.upto.get(log, 0) and not any(a < pending.end and pending.begin < b for a, b in spans)
