"""The provisional files of one mount: confirmed and durable, but their maker may still change or remove them.

One log has the last state of each; git has none. A file leaves it when it settles, since the mount's journal has it by
then, or when it is removed. When much of the log is of the past, the last states move to another one. A log and its
successor may both be there after a crash: they have the same states.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from webarcfs.archive.additions import journal
from webarcfs.archive.additions.journal import (
    Claims,
    Confirming,
    Journal,
    JournalPosition,
    PendingAddition,
    StoredBody,
    open_body,
)
from webarcfs.archive.additions.journal_log import FileKey, LogWriter, frame
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.additions import AddFile, Move, Removal
from webarcfs.archive.model.errors import NotFound


class ProvisionalJournal(Journal):
    """The provisional files of one mount's process; safe for any thread."""

    provisional: ClassVar[bool] = True

    def __init__(self, archive: Archive, claims: Claims | None = None) -> None:
        super().__init__(archive, claims)
        self._states: dict[FileKey, PendingAddition] = {}
        self._full = journal.FULL
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
            self._full = max(journal.FULL, 2 * new.end)
            old.remove()
            old.close()
        self._claims.refresh()  # they know the new log, before more is written to it

    def _copy(self, pending: PendingAddition, new: LogWriter) -> PendingAddition:
        """Write the record of a state to another log."""
        file, begin, data = _file(pending), new.end, b""
        if not pending.file:
            data = os.pread(pending.segment.fd, file.size, pending.offset)
        elif pending.fd >= 0 and not (self._folder / pending.file).exists():  # others removed it
            journal.store(StoredBody(file.size, fd=pending.fd), self._folder / pending.file)
        end = new.append(frame(pending.ticket.number, file, data, pending.file))
        ticket = replace(pending.ticket, log=new.id)
        return PendingAddition(ticket, new, begin, end, end - len(data), pending.file, pending.fd)


def _file(pending: PendingAddition) -> AddFile:
    addition = pending.ticket.addition
    assert isinstance(addition, AddFile)
    return addition
