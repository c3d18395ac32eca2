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

#: Bytes of a log after which another follows, so that logs that git has can be removed.
FULL = 4 << 20
#: Bytes from which a log that git has all of is replaced: commits then read less.
WORTH = 256 << 10
#: Descriptors reserved for locks, logs, git and the disk; drafts may use the others.
RESERVE = 100

#: An addition to be confirmed, with its body if it is a file.
Wanted = tuple[Addition, StoredBody | None]


@dataclass(slots=True)
class _Confirming:
    """An addition being confirmed: its body, as part of the record or in a file, then the outcome."""

    addition: Addition
    data: bytes = b""
    file: str = ""
    pending: PendingAddition | None = None
    end: int = 0
    error: BaseException | None = None


class Journal:
    """The logs of one mount's process; safe for any thread."""

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
        """Make a new journal of this process. Raises OSError."""
        return cls(archive)

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
        """Return a pending body: its bytes, or a descriptor of a large one that the caller closes; None once in git."""
        return self._pendings.read(blob, self._folder)

    def pending(self, domain: str | None = None) -> Sequence[JournalPosition]:
        """Return the additions that were confirmed here and are not released yet, in order."""
        return [each.ticket for each in self._pendings.of(domain)]

    def release(self, committed: Committed) -> Sequence[JournalPosition]:
        """Forget additions that are in git now, free their disk space, and return them. Raises OSError."""
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
        """End it. Uncommitted additions stay for the next mount or agent; without any, the journal is removed."""
        with self._claiming, self._state:
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

    def _with_body(self, addition: Addition, body: StoredBody | None) -> _Confirming:
        found = _Confirming(addition)
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
            self._pendings.keep(each.pending)  # from now on its log must stay, though it is not confirmed yet
        except BaseException as error:
            each.error = error

    @staticmethod
    def _sync(every: Sequence[_Confirming]) -> None:
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
        return LogWriter.create(self._archive.journal, f"{self.id}-{self._logs:06}")

    # -- letting go ----------------------------------------------------------------------------------------------

    def _drop_segments(self) -> None:
        """Remove logs that git has all of; the current one only from WORTH bytes on."""
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
