"""Settling: provisional files whose time is over become final additions, which are then committed.

A thread looks for them. It writes each to the mount's journal, as its close would have done without the time, and lets
go of it in the journal of provisional files after that; so a kill in between makes it settle twice, as the same file.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Hashable, Sequence
from contextlib import ExitStack

from webarcfs.archive.commit import settle_requests
from webarcfs.archive.journal.journal import JournalPosition, StoredBody, Wanted
from webarcfs.archive.journal.provisional_journal import ProvisionalJournal
from webarcfs.archive.journal.provisional_states import FileKey
from webarcfs.archive.model.addition import AddFile
from webarcfs.archive.model.errors import Exists, NotFound, NotPermitted, Stale
from webarcfs.archive.model.name_rules import is_lock
from webarcfs.archive.system.locks import Turnstile
from webarcfs.mount.writing.confirm import Confirmable, Lock
from webarcfs.mount.writing.preconditions import LockedHead
from webarcfs.mount.writing.writer import Writer
from webarcfs.view.state.overlay import Overlay
from webarcfs.view.tree.view import View

#: Seconds between two looks.
TICK = 0.25
#: Seconds until it is tried again where the disk did not take a file.
AGAIN = 5.0
#: Files that settle at a time: their bodies are in memory or open.
TOGETHER = 64

_log = logging.getLogger(__name__)


class SettlingFile(Confirmable):
    """A provisional file that becomes final. `opened` holds its bytes."""

    def __init__(self, key: FileKey, journal: ProvisionalJournal, overlay: Overlay, opened: ExitStack) -> None:
        self.place, self.path = key
        self._journal = journal
        self._overlay = overlay
        self._opened = opened
        self._state: AddFile | None = None
        self._body = StoredBody(0, b"")
        #: Whether it is over: it is final, or cannot be, and then it is gone.
        self.is_over = self.is_gone = False

    @property
    def key(self) -> Hashable:
        """The file."""
        return self.place, self.path

    @property
    def locks(self) -> Sequence[Lock]:
        """None: nobody can open it any more."""
        return ()

    def prepare(self) -> bool:
        """Open its bytes. Raises OSError."""
        self._state = self._journal.state((self.place, self.path))
        if self._state is None or is_lock(self.path):
            self._let_go()
            return False
        try:
            self._body = self._opened.enter_context(self._journal.body((self.place, self.path)))
        except NotFound:
            return False
        return True

    def judged(self, main: LockedHead) -> Wanted:
        """Return the record. Raises Stale, Exists."""
        assert self._state is not None
        state = self._state
        main.check_free(self.place, self.path, {state.blob})
        # It replaces itself: the name is claimed for the provisional file.
        by, time = state.author, state.time
        return AddFile(self.place, self.path, state.blob, state.size, by, time, state.blob), self._body

    def confirmed(self, ticket: JournalPosition) -> None:
        """Let git have it."""
        self._overlay.settled(self.place, self.path, ticket.key)
        self.is_over = True

    def refused(self, error: BaseException) -> None:
        """Drop it where it can never be final. Otherwise it is tried again."""
        where = f"/{self.place.domain}/{self.place.arc}/{self.path}"
        if isinstance(error, Stale | Exists | NotPermitted | FileNotFoundError):  # its ARC, its name or its bytes went
            _log.warning("%s does not go on: %s", where, error)
            self._let_go()
        else:
            _log.error("%s is not final yet, and is tried again: %s", where, error)

    def _let_go(self) -> None:
        self._overlay.withdrawn(self.place, self.path)
        self.is_over = self.is_gone = True


class Settler(threading.Thread):
    """The thread of one mount."""

    def __init__(self, writer: Writer, journal: ProvisionalJournal, view: View) -> None:
        super().__init__(name="settler", daemon=True)
        self._writer = writer
        self._journal = journal
        self._view = view
        self._overlay = view.overlay
        self._not_before = 0.0
        self._answered: set[str] = set()
        self._stopped = threading.Event()

    def run(self) -> None:
        """Look repeatedly."""
        while not self._stopped.wait(TICK):
            try:
                self._writer.release_kept()
                self._answer()
                if time.monotonic() >= self._not_before:
                    self.settle()
            except Exception:
                _log.exception("additions did not settle; it is tried again")
                self._not_before = time.monotonic() + AGAIN

    def stop(self) -> int:
        """End the thread; let all closed files settle, and return how many there were.

        What the disk does not take stays in the journal of provisional files.
        """
        self._stopped.set()
        self.join()
        self._overlay.makers.end(with_empty=True)
        return self.settle()

    def _answer(self) -> None:
        """Let all files settle that are closed and not empty, if somebody asks for that."""
        there = settle_requests.requests(self._view.archive)
        for request in there - self._answered:
            self._overlay.makers.end(with_empty=False)
            number = self.settle()
            _log.info("%d additions settled since a backup or an export asked for it", number)
            settle_requests.answer(self._view.archive, request, self._journal.id, number)
        self._answered = there

    def settle(self) -> int:
        """Let the files settle whose time is over; return how many did."""
        due: dict[str, list[FileKey]] = {}
        for key in self._overlay.makers.due():
            due.setdefault(key[0].domain, []).append(key)
        number = 0
        for keys in due.values():
            for first in range(0, len(keys), TOGETHER):
                number += self._settle(keys[first : first + TOGETHER])
        return number

    def _settle(self, keys: Sequence[FileKey]) -> int:
        with ExitStack() as opened:
            files = [SettlingFile(key, self._journal, self._overlay, opened) for key in keys]
            outcomes = self._writer.confirmer.confirm(files)
        over = [file for file in files if file.is_over]
        with Turnstile(self._view.archive.lock(keys[0][0].domain)).shared():  # a publication may be reading them
            self._journal.remove([(file.place, file.path) for file in over])
        for file in over:
            if file.is_gone:
                self._writer.tell_of(file.place, file.path)
        if len(over) < len(files):
            self._not_before = time.monotonic() + AGAIN
        return sum(outcome is True for outcome in outcomes)
