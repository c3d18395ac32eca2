"""The confirmed additions that git does not have yet, by log, domain and blob. Memory only, safe for any thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.journal.log_writer import LogWriter
from webarcfs.archive.model.addition import AddFile, Addition


@dataclass(frozen=True, slots=True)
class JournalPosition:
    """A confirmed addition with its place: its log and its number there."""

    log: str
    number: int
    addition: Addition

    @property
    def key(self) -> tuple[str, int]:
        """Its log and number, which tell it from all others."""
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
            held = [each for key, each in self._held.items() if domain in (None, key[1])]
            return sorted((each for some in held for each in some.values()), key=lambda each: each.ticket.number)

    def logs(self) -> set[str]:
        """Return the logs with pending additions."""
        with self._lock:
            return {log for log, _ in self._held}

    def read(self, blob: str, folder: Path) -> bytes | int | None:
        """Return a body: its bytes, or a descriptor of its file in `folder`, which the caller closes; None if unknown.

        Its source exists as long as the read takes: nothing is forgotten meanwhile.
        """
        with self._lock:
            found = next(iter(self._bodies.get(blob, {}).values()), None)
            if found is None:
                return None
            if found.file:
                return open_body(found, folder)
            addition = found.ticket.addition
            assert isinstance(addition, AddFile)
            return os.pread(found.segment.fd, addition.size, found.offset)

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
