"""The journal of one mount: what was confirmed and is not in git yet (DESIGN.md section 5, "Durability").

`confirm` returns when the addition is on disk. Threads that confirm together share one sync. A name is claimed and
written under the domain's names lock, which is let go before the sync; so mounts never confirm one name twice, and
still sync together. The journal is a row of logs: a long one is followed by another, and goes when git has all of it.
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

from webarcfs.archive import bodies, locks
from webarcfs.archive.additions import AddFile, Addition, AddNodes, blob_id
from webarcfs.archive.bodies import Body
from webarcfs.archive.claims import Claims
from webarcfs.archive.committing import Committed
from webarcfs.archive.directory import Archive
from webarcfs.archive.errors import Damaged
from webarcfs.archive.model import compact_time, now
from webarcfs.archive.records import INLINE, frame
from webarcfs.archive.segment import Segment

__all__ = ["Body", "Journal", "Ticket"]

#: A log of this size is followed by another, so that what git has can go, in bytes.
FULL = 4 << 20
#: A log that git has all of is worth replacing from this size on: what commits read stays short.
WORTH = 256 << 10
#: Descriptors for locks, logs, git and the disk, when everything else is files that are being written.
RESERVE = 100


@dataclass(frozen=True, slots=True)
class Ticket:
    """A confirmed addition, and where it stands: its log and its number there."""

    log: str
    number: int
    addition: Addition


@dataclass(frozen=True, slots=True)
class _Pending:
    ticket: Ticket
    segment: Segment
    offset: int
    file: str


class Journal:
    """The logs of one mount's process; its methods may be called by any thread."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.id = f"{compact_time(now())}-{os.getpid()}-{secrets.token_hex(4)}"
        self._folder = archive.journal / self.id
        self._claiming = threading.Lock()
        self._claims = Claims(archive)
        self._state = threading.Lock()
        self._logs = self._files = self._number = 0
        self._segments: list[Segment] = []
        self._pending: dict[tuple[str, str], dict[int, _Pending]] = {}
        self._bodies: dict[str, dict[tuple[str, int], _Pending]] = {}
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

    def confirm(self, addition: Addition, body: Body | None = None) -> Ticket:
        """Make an addition durable: it is when this returns. The caller holds the domain's lock, shared.

        Raises Exists when another pending addition of this version, of any mount, has the name; OSError when it could
        not be written, and then nothing is left of it.
        """
        data, file = self._body(addition, body)
        pending = None
        try:
            pending, end = self._write(addition, data, file)
            pending.segment.sync(end)
        except BaseException:
            if pending is not None:
                with self._state:
                    self._forget(pending)
            if file:
                with contextlib.suppress(OSError):
                    (self._folder / file).unlink()
            raise
        return pending.ticket

    def read_blob(self, blob: str) -> bytes | int | None:
        """A pending body: its bytes, or a descriptor of a large one that the caller closes; None once git has it."""
        with self._state:
            found = next(iter(self._bodies.get(blob, {}).values()), None)
            if found is None:
                return None
            if found.file:
                return os.open(self._folder / found.file, os.O_RDONLY | os.O_CLOEXEC)
            addition = found.ticket.addition
            assert isinstance(addition, AddFile)
            return os.pread(found.segment.fd, addition.size, found.offset)

    def pending(self, domain: str | None = None) -> Sequence[Ticket]:
        """What was confirmed here and is not released yet, in order."""
        with self._state:
            held = [each for key, each in self._pending.items() if domain in (None, key[1])]
            found = (pending.ticket for each in held for pending in each.values())
            return sorted(found, key=lambda ticket: ticket.number)

    def release(self, committed: Committed) -> Sequence[Ticket]:
        """Forget what is in git now, and give its disk space back; returns what was forgotten. Raises OSError."""
        damaged = {(each.log, each.number) for each in committed.dropped if each.damaged}
        with self._claiming:
            with self._state:
                done = [pending for pending in self._of(committed.domain) if _is_done(pending, committed)]
                for pending in done:
                    self._forget(pending)
                    pending.segment.damaged |= (pending.ticket.log, pending.ticket.number) in damaged
            for pending in done:
                if pending.file and not pending.segment.damaged:
                    (self._folder / pending.file).unlink(missing_ok=True)
            self._drop_segments()
        return [pending.ticket for pending in done]

    def close(self) -> None:
        """End it. What is not committed stays for the next mount or agent; a journal with nothing pending goes."""
        with self._claiming, self._state:
            left = {log for log, _ in self._pending}
            for segment in self._segments:
                if segment.id not in left:
                    segment.remove()
                segment.close()
            self._segments.clear()
            if not left:
                with contextlib.suppress(OSError):  # a body may be left by a confirm that was killed with its thread
                    self._folder.rmdir()

    # -- writing -------------------------------------------------------------------------------------------------

    def _body(self, addition: Addition, body: Body | None) -> tuple[bytes, str]:
        """The body as it goes into the record, or the file that it was put in."""
        if isinstance(addition, AddNodes):
            body = Body(len(addition.nodes), addition.nodes)
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

    def _write(self, addition: Addition, data: bytes, file: str) -> tuple[_Pending, int]:
        """Claim the names and write the record; it is not durable yet. Returns it with the offset of its end."""
        with self._claiming, locks.exclusive(self._archive.names_lock(addition.place.domain)):
            self._claims.refresh()
            self._claims.check(addition)
            segment = self._current()
            self._number += 1
            record = frame(self._number, addition, data, file)
            begin, end = segment.end, segment.append(record)
            self._claims.wrote(segment.id, begin, end, addition)
            pending = _Pending(Ticket(segment.id, self._number, addition), segment, end - len(data), file)
            self._keep(pending)  # from now on its log may not go, though it is not confirmed yet
        return pending, end

    def _current(self) -> Segment:
        """The log to write to: a new one where the last is full, or failed."""
        last = self._segments[-1]
        if last.end >= FULL or last.failed:
            last = self._next_segment()
            with self._state:
                self._segments.append(last)
        return last

    def _next_segment(self) -> Segment:
        self._logs += 1
        return Segment.create(self._archive.journal, f"{self.id}-{self._logs:06}")

    def _keep(self, pending: _Pending) -> None:
        ticket = pending.ticket
        key = ticket.log, ticket.addition.place.domain
        with self._state:
            self._pending.setdefault(key, {})[ticket.number] = pending
            if isinstance(ticket.addition, AddFile):
                self._bodies.setdefault(ticket.addition.blob, {})[ticket.log, ticket.number] = pending

    # -- letting go ----------------------------------------------------------------------------------------------

    def _of(self, domain: str) -> list[_Pending]:
        found = [each for key, each in self._pending.items() if key[1] == domain]
        return sorted((pending for each in found for pending in each.values()), key=lambda each: each.ticket.number)

    def _forget(self, pending: _Pending) -> None:
        ticket = pending.ticket
        key = ticket.log, ticket.addition.place.domain
        held = self._pending.get(key, {})
        held.pop(ticket.number, None)
        if not held:
            self._pending.pop(key, None)
        if isinstance(ticket.addition, AddFile):
            same = self._bodies.get(ticket.addition.blob, {})
            same.pop((ticket.log, ticket.number), None)
            if not same:
                self._bodies.pop(ticket.addition.blob, None)

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

    def _is_held(self, segment: Segment) -> bool:
        with self._state:
            return any(log == segment.id for log, _ in self._pending)


def _is_done(pending: _Pending, committed: Committed) -> bool:
    return pending.ticket.number <= committed.upto.get(pending.ticket.log, 0)
