"""The journal of one mount: what was confirmed and is not in git yet.

`confirm` returns when the addition is on disk, `confirm_all` when several are, of which each may be refused. Threads
that confirm at once share one sync. A name is claimed and written under the domain's names lock, which is let go before
the sync; so mounts never confirm one name twice, and still sync together. The journal is a row of logs: a long one is
followed by another, and goes when git has all of it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.journal import bodies
from webarcfs.archive.journal.bodies import StoredBody
from webarcfs.archive.journal.log_format import INLINE, frame
from webarcfs.archive.journal.log_writer import LogWriter
from webarcfs.archive.journal.name_claims import Claims
from webarcfs.archive.journal.pending import JournalPosition, PendingAddition, PendingIndex
from webarcfs.archive.model.addition import AddFile, Addition, AddNodes, blob_id
from webarcfs.archive.model.committed import Committed
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import compact_time, now
from webarcfs.archive.system import locks

__all__ = ["Journal", "JournalPosition", "StoredBody", "Wanted"]

#: A log of this size is followed by another, so that what git has can go, in bytes.
FULL = 4 << 20
#: A log that git has all of is worth replacing from this size on: what commits read stays short.
WORTH = 256 << 10
#: Descriptors for locks, logs, git and the disk, when everything else is files that are being written.
RESERVE = 100

#: An addition to be confirmed, with its body, if it is a file.
Wanted = tuple[Addition, StoredBody | None]


@dataclass(slots=True)
class _Confirming:
    """An addition on its way into the journal: its body, as part of the record or in a file, then what became of it."""

    addition: Addition
    data: bytes = b""
    file: str = ""
    pending: PendingAddition | None = None
    end: int = 0
    error: BaseException | None = None


class Journal:
    """The logs of one mount's process; its methods may be called by any thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.id = f"{compact_time(now())}-{os.getpid()}-{secrets.token_hex(4)}"
        self._folder = archive.journal / self.id
        self._claiming = threading.Lock()
        self._claims = Claims(archive)
        self._pendings = PendingIndex()
        self._state = threading.Lock()
        self._logs = self._files = self._number = 0
        self._segments: list[LogWriter] = []
        self._segments.append(self._next_segment())

    @classmethod
    def open(cls, archive: Archive) -> Journal:
        """A new journal of this process. Raises OSError when none can be made."""
        return cls(archive)

    def draft(self) -> int:
        """A descriptor of a new file without a name, on the journal's disk. Raises OSError.

        The last descriptors that the process may have are not given away: what is open can be confirmed.
        """
        fd = bodies.nameless(self._archive.journal)
        if fd >= resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVE:
            os.close(fd)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return fd

    def confirm(self, addition: Addition, body: StoredBody | None = None) -> JournalPosition:
        """Make an addition durable: it is when this returns. The caller holds the domain's lock, shared.

        Raises Exists when another pending addition of this version, of any mount, has the name; OSError when it could
        not be written, and then nothing is left of it.
        """
        [found] = self.confirm_all([(addition, body)])
        if isinstance(found, BaseException):
            raise found
        return found

    def confirm_all(self, wanted: Sequence[Wanted]) -> list[JournalPosition | BaseException]:
        """The same for several additions of one domain, at the price of one: the ticket of each, or what it failed by.

        Each addition succeeds or fails by itself, unless the disk fails.
        """
        every = [self._with_body(addition, body) for addition, body in wanted]
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
        """A pending body: its bytes, or a descriptor of a large one that the caller closes; None once git has it."""
        return self._pendings.read(blob, self._folder)

    def pending(self, domain: str | None = None) -> Sequence[JournalPosition]:
        """What was confirmed here and is not released yet, in order."""
        return [each.ticket for each in self._pendings.of(domain)]

    def release(self, committed: Committed) -> Sequence[JournalPosition]:
        """Forget what is in git now, and give its disk space back; returns what was forgotten. Raises OSError."""
        damaged = {(each.log, each.number) for each in committed.dropped if each.damaged}
        with self._claiming:
            done = [pending for pending in self._pendings.of(committed.domain) if _is_done(pending, committed)]
            self._pendings.forget(done)
            for pending in done:
                pending.segment.damaged |= (pending.ticket.log, pending.ticket.number) in damaged
            for pending in done:
                if pending.file and not pending.segment.damaged:
                    (self._folder / pending.file).unlink(missing_ok=True)
            self._drop_segments()
        return [pending.ticket for pending in done]

    def close(self) -> None:
        """End it. What is not committed stays for the next mount or agent; a journal with nothing pending goes."""
        with self._claiming, self._state:
            left = self._pendings.logs()
            for segment in self._segments:
                if segment.id not in left:
                    segment.remove()
                segment.close()
            self._segments.clear()
            if not left:
                with contextlib.suppress(OSError):  # a body may be left by a confirm that was killed with its thread
                    self._folder.rmdir()

    # -- writing -------------------------------------------------------------------------------------------------

    def _with_body(self, addition: Addition, body: StoredBody | None) -> _Confirming:
        found = _Confirming(addition)
        try:
            found.data, found.file = self._body(addition, body)
        except BaseException as error:
            found.error = error
        return found

    def _body(self, addition: Addition, body: StoredBody | None) -> tuple[bytes, str]:
        """The body as it goes into the record, or the file that it was put in."""
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

    def _write(self, every: Sequence[_Confirming]) -> None:
        """Claim the names of each and write its record; they are not durable yet."""
        if not every:
            return
        try:
            with self._claiming, locks.exclusive(self._archive.names_lock(every[0].addition.place.domain)):
                self._claims.refresh()
                for each in every:
                    self._append(each)
        except BaseException as error:
            for each in every:
                each.error = each.error or error

    def _append(self, each: _Confirming) -> None:
        try:
            self._claims.check(each.addition)
            segment = self._current()
            self._number += 1
            record = frame(self._number, each.addition, each.data, each.file)
            begin, each.end = segment.end, segment.append(record)
            self._claims.wrote(segment.id, begin, each.end, each.addition)
            ticket = JournalPosition(segment.id, self._number, each.addition)
            each.pending = PendingAddition(ticket, segment, each.end - len(each.data), each.file)
            self._pendings.keep(each.pending)  # from now on its log may not go, though it is not confirmed yet
        except BaseException as error:
            each.error = error

    @staticmethod
    def _sync(every: Sequence[_Confirming]) -> None:
        """Make the records of all durable, log by log: there may have been room for some only in the last one."""
        logs = {each.pending.segment: each.end for each in every if each.pending is not None}  # the last end of each
        for segment, end in logs.items():
            try:
                segment.sync(end)
            except BaseException as error:
                for each in every:
                    if each.pending is not None and each.pending.segment is segment:
                        each.error = error

    def _current(self) -> LogWriter:
        """The log to write to: a new one where the last is full, or failed. Under the names lock."""
        last = self._segments[-1]
        if last.end >= FULL or last.failed:
            last = self._next_segment()
            with self._state:
                self._segments.append(last)
            self._claims.refresh()  # what follows in this batch is judged by what is written there
        return last

    def _next_segment(self) -> LogWriter:
        self._logs += 1
        return LogWriter.create(self._archive.journal, f"{self.id}-{self._logs:06}")

    # -- letting go ----------------------------------------------------------------------------------------------

    def _drop_segments(self) -> None:
        """Remove logs that git has all of; the one that is written to only if that is worth it."""
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


def _outcome(each: _Confirming) -> JournalPosition | BaseException:
    if each.error is not None:
        return each.error
    assert each.pending is not None
    return each.pending.ticket


def _is_done(pending: PendingAddition, committed: Committed) -> bool:
    return pending.ticket.number <= committed.upto.get(pending.ticket.log, 0)
