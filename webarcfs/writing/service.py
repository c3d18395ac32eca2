"""The parts of a mount that accepts additions: a journal, the committer, the writer, and settling.

It starts when the process is the archive's owner and before anything is shown, so that the additions of dead mounts are
in git by then, or shown from the journal; it stops when no process can write any more. If the disk is full at the
start, it starts later.

A thread looks for provisional files whose time is over: they settle, become final additions, and are then committed. It
writes each to the mount's journal, as its close would have done without the time, and releases it in the journal of
provisional files after that; so a kill in between makes it settle twice, as the same file.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack

from webarcfs.archive.additions import commit_additions, waiting_additions
from webarcfs.archive.additions.journal import Claims, Journal, JournalPosition, ProvisionalJournal, StoredBody, Wanted
from webarcfs.archive.additions.journal_log import FileKey
from webarcfs.archive.config import settings_files
from webarcfs.archive.document.schemas import Schemas
from webarcfs.archive.model.additions import AddFile
from webarcfs.archive.model.arc_paths import is_lock
from webarcfs.archive.model.errors import Exists, NotFound, NotPermitted, ReadOnly, Stale, WebarcError
from webarcfs.archive.system.locks import Turnstile
from webarcfs.vfs.node import Folder
from webarcfs.vfs.overlay import LeftAdditions, Overlay
from webarcfs.vfs.view import View
from webarcfs.writing.confirmation import Committer, Confirmable, Lock, LockedHead
from webarcfs.writing.writer import Writer

# == settling =========================================================================================================


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
            _log.warning("%s is dropped: %s", where, error)
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
        there = waiting_additions.settle_requests(self._view.archive)
        for request in there - self._answered:
            self._overlay.makers.end(with_empty=False)
            number = self.settle()
            _log.info("%d additions settled since a backup or an export asked for it", number)
            waiting_additions.answer_request(self._view.archive, request, self._journal.id, number)
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


# == service ==========================================================================================================


#: Seconds between two checks for room, if there was none at the start.
_AGAIN = 1.0
#: The longest pause between two attempts.
_LONGEST = 300.0
#: A disk with less room than this, in bytes, is full, and the cause of any failure.
_FULL = 1 << 20


#: Makes the kernel look up a name of a folder again.
Tell = Callable[[Folder, str], None]


class Additions:
    """The additions of one mount, or of a server that has none. `writer` is None before `start`, and while the archive
    is not writable.

    With `final_at_once`, a closed file is final, whatever the settings say. Raises SettingsError for an invalid
    webarc.toml.
    """

    def __init__(self, view: View, *, final_at_once: bool = False) -> None:
        self._view = view
        self._overlay = view.overlay
        self._settings = settings_files.load(view.archive.settings)[0].mount
        self._settle = 0.0 if final_at_once else self._settings.settle
        self._lock = threading.Lock()
        self._journal: Journal | None = None
        self._provisional: ProvisionalJournal | None = None
        self._settler: Settler | None = None
        self._committer: Committer | None = None
        self._tell: Tell | None = None
        self._waits_for_room = False
        self._stopped = threading.Event()
        self._ended = False
        self.writer: Writer | None = None
        self._left = LeftAdditions(view.archive, view.overlay)
        #: What whoever mounts must know, a line each.
        self.notes: list[str] = []
        #: What is left outside of git in the end, a line each, for whoever unmounts.
        self.remains: list[str] = []

    def ready(self) -> Writer:
        """Return the writer. Raises ReadOnly if nothing can be written, OSError while the disk is full."""
        if self.writer is None and self._waits_for_room:
            raise OSError(errno.ENOSPC, "the disk was full at the start, and is still")
        if self.writer is None:
            raise ReadOnly("the archive cannot be written to; the log says why")
        return self.writer

    def start(self, tell: Tell | None = None) -> None:
        """Commit what dead mounts left, or show it, and accept additions, unless the archive is not writable.

        `tell` makes the kernel look up again what a writer changes.
        """
        self._tell = tell
        try:
            self._begin()
        except (OSError, WebarcError) as error:
            self._waits_for_room = self._is_full(error)
            until = " until its disk has room" * self._waits_for_room
            self.notes.append(f"nothing can be written{until}: {error}")
            _log.warning("%s", self.notes[0])
        self._left.show()
        self.notes += self._left.lines
        if self.writer is None and (self._waits_for_room or self._left.lines):
            self._overlay.begin(self, read_only=not self._waits_for_room)
        if self._waits_for_room or (self.writer is not None and self._left.lines):
            threading.Thread(target=self._wait_for_room, name="additions", daemon=True).start()

    def read_blob(self, blob: str) -> bytes | int | None:
        """Return a pending blob, from the journals of this mount or of dead ones.

        In the order in which an addition goes through them, so that it is in one of those that are not read yet.
        """
        for journal in (self._provisional, self._journal, self._left):
            body = journal.read_blob(blob) if journal is not None else None
            if body is not None:
                return body
        return None

    def _is_full(self, error: BaseException) -> bool:
        """Return whether an operation failed because the archive's disk has no room."""
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        return not self._has_room()

    def _has_room(self) -> bool:
        try:
            disk = os.statvfs(self._view.archive.root)
        except OSError:
            return True  # the archive is gone: another error
        return disk.f_bavail * disk.f_frsize >= _FULL

    def _wait_for_room(self) -> None:
        """Start, and commit what dead mounts left, as soon as possible."""
        pause = _AGAIN
        while not self._stopped.wait(pause):
            if not self._has_room():
                pause = _AGAIN
                continue
            try:
                self._commit_left() if self.writer is not None else self._begin()
            except (OSError, WebarcError) as error:
                _log.debug("nothing can be written yet: %s", error)
            if self.writer is not None and not self._left.settle():
                _log.info("the disk has room: additions are accepted")
                return
            pause = min(2 * pause, _LONGEST)

    def _commit_left(self) -> None:
        """Commit what dead mounts left. Raises OSError, WebarcError."""
        for committed in commit_additions.replay(self._view.archive):
            _log.info("%s: committed what an earlier mount had confirmed", committed.domain)
            for dropped in committed.dropped:
                _log.warning("%s: an addition was dropped (%s): %s", committed.domain, dropped.reason, dropped.addition)

    def _begin(self) -> None:
        """Make the writer and its parts. Raises OSError, WebarcError."""
        archive = self._view.archive
        self._commit_left()
        schemas = Schemas(archive.schemas, strict=self._settings.strict_schema)
        with self._lock, contextlib.ExitStack() as opened:
            claims = Claims(archive)
            journal = Journal.open(archive, claims)
            opened.callback(journal.close)
            provisional = ProvisionalJournal.open(archive, claims) if self._settle else None
            opened.callback(provisional.close if provisional is not None else lambda: None)
            if self._stopped.is_set():
                return
            opened.pop_all()
            self._journal, self._provisional = journal, provisional
            self._committer = Committer(archive, journal, self._overlay, self._settings.commit_interval)
            self._committer.start()
            self._overlay.begin(self, self._settle)
            self.writer = Writer(self._view, journal, self._committer, schemas, self._tell, provisional)
            if provisional is not None:
                self._settler = Settler(self.writer, provisional, self._view)
                self._settler.start()

    def stop(self) -> None:
        """Confirm and commit the rest."""
        self._stopped.set()
        with self._lock:
            if self._ended:
                return
            self._ended, journal, self._journal = True, self._journal, None
            if journal is not None and self.writer is not None and self._committer is not None:
                self._finish(self.writer, self._committer)
                journal.close()
            self._report_left()

    def _finish(self, writer: Writer, committer: Committer) -> None:
        """Confirm what is open, let all settle, and commit it."""
        writer.finish()
        if self._settler is not None:
            number = self._settler.stop()
            _log.info("%d additions settled with the end of the mount", number)
        committer.stop()
        self.remains += committer.remains
        if self._provisional is not None:
            self._provisional.close()

    def _report_left(self) -> None:
        """Report what dead mounts left, if it cannot be committed even now."""
        self._left.stop()
        if self._left.lines and self._has_room():
            with contextlib.suppress(OSError, WebarcError):
                self._commit_left()
        self._left.settle()
        for line in self._left.lines:
            _log.warning("%s", line)
            self.remains.append(line)


def show_left(view: View) -> list[str]:
    """Show what dead mounts left on a read-only mount; return a line for each domain."""
    left = LeftAdditions(view.archive, view.overlay)
    left.show()
    if left.lines:
        view.overlay.begin(left, read_only=True)
    return left.lines
