"""The parts of a mount that accepts additions: a journal, the committer, the writer.

It starts when the process is the archive's owner and before anything is shown, so that the additions of dead mounts are
in git by then, or shown from the journal; it stops when no process can write any more. If the disk is full at the
start, it starts later.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
from collections.abc import Callable

from webarcfs.archive.commit import commit_additions
from webarcfs.archive.config import settings_file
from webarcfs.archive.document.schemas import Schemas
from webarcfs.archive.journal.journal import Journal
from webarcfs.archive.journal.name_claims import Claims
from webarcfs.archive.journal.provisional_journal import ProvisionalJournal
from webarcfs.archive.model.errors import ReadOnly, WebarcError
from webarcfs.mount.lifetime.settling import Settler
from webarcfs.mount.writing.committer import Committer
from webarcfs.mount.writing.writer import Writer
from webarcfs.view.node import Folder
from webarcfs.view.state.left_additions import LeftAdditions
from webarcfs.view.tree.view import View

#: Seconds between two checks for room, if there was none at the start.
_AGAIN = 1.0
#: The longest pause between two attempts.
_LONGEST = 300.0
#: A disk with less room than this, in bytes, is full, and the cause of any failure.
_FULL = 1 << 20

_log = logging.getLogger(__name__)
#: Makes the kernel look up a name of a folder again.
Tell = Callable[[Folder, str], None]


class Additions:
    """The additions of one mount. `writer` is None before `start`, and while the archive is not writable.

    Raises SettingsError for an invalid webarc.toml.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._overlay = view.overlay
        self._settings = settings_file.load(view.archive.settings)[0].mount
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
            raise OSError(errno.ENOSPC, "the disk was full when the archive was mounted, and is still")
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
            self.notes.append(f"nothing can be written through this mount{until}: {error}")
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
                _log.debug("nothing can be written through this mount yet: %s", error)
            if self.writer is not None and not self._left.settle():
                _log.info("the disk has room: this mount can be written to")
                return
            pause = min(2 * pause, _LONGEST)

    def _commit_left(self) -> None:
        """Commit what dead mounts left. Raises OSError, WebarcError."""
        for committed in commit_additions.replay(self._view.archive):
            _log.info("%s: committed what an earlier mount had confirmed", committed.domain)
            for each in committed.dropped:
                _log.warning("%s: an addition was dropped (%s): %s", committed.domain, each.reason, each.addition)

    def _begin(self) -> None:
        """Make the writer and its parts. Raises OSError, WebarcError."""
        archive = self._view.archive
        self._commit_left()
        schemas = Schemas(archive.schemas, strict=self._settings.strict_schema)
        with self._lock, contextlib.ExitStack() as opened:
            claims = Claims(archive)
            journal = Journal.open(archive, claims)
            opened.callback(journal.close)
            provisional = ProvisionalJournal.open(archive, claims) if self._settings.settle else None
            opened.callback(provisional.close if provisional is not None else lambda: None)
            if self._stopped.is_set():
                return
            opened.pop_all()
            self._journal, self._provisional = journal, provisional
            self._committer = Committer(archive, journal, self._overlay, self._settings.commit_interval)
            self._committer.start()
            self._overlay.begin(self, self._settings.settle)
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
