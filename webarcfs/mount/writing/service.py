"""The parts of a mount that accepts additions: a journal, the committer, the writer.

It starts when the process is the archive's owner and before anything is shown, so that the additions of dead mounts are
in git by then; it stops when no process can write any more. If the disk is full at the start, it starts later.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable

from webarcfs.archive.commit import commit_additions
from webarcfs.archive.config import settings_file
from webarcfs.archive.document.schemas import Schemas
from webarcfs.archive.journal.journal import Journal
from webarcfs.archive.model.errors import ReadOnly, WebarcError
from webarcfs.mount.writing.committer import Committer
from webarcfs.mount.writing.writer import Writer
from webarcfs.view.node import Folder
from webarcfs.view.tree.view import View

#: Seconds between two checks for room, if there was none at the start.
_AGAIN = 1.0
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
        self._committer: Committer | None = None
        self._tell: Tell | None = None
        self._waits_for_room = False
        self._stopped = threading.Event()
        self.writer: Writer | None = None
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
        """Commit what dead mounts left, and accept additions, unless the archive is not writable.

        `tell` makes the kernel look up again what a writer changes.
        """
        self._tell = tell
        try:
            self._begin()
        except (OSError, WebarcError) as error:
            self._waits_for_room = self._is_full(error)
            if not self._waits_for_room:
                _log.warning("nothing can be written through this mount: %s", error)
                return
            _log.warning("nothing can be written through this mount until its disk has room: %s", error)
            self._overlay.begin(self)
            threading.Thread(target=self._wait_for_room, name="additions", daemon=True).start()

    def read_blob(self, blob: str) -> bytes | int | None:
        """Return a pending blob from the journal; None without a journal."""
        return self._journal.read_blob(blob) if self._journal is not None else None

    def _is_full(self, error: BaseException) -> bool:
        """Return whether an operation failed because the archive's disk has no room."""
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        try:
            disk = os.statvfs(self._view.archive.root)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < _FULL

    def _wait_for_room(self) -> None:
        """Start as soon as possible."""
        while not self._stopped.wait(_AGAIN):
            try:
                self._begin()
            except (OSError, WebarcError) as error:
                _log.debug("nothing can be written through this mount yet: %s", error)
            else:
                _log.info("the disk has room: this mount can be written to")
                return

    def _begin(self) -> None:
        """Make the writer and its parts. Raises OSError, WebarcError."""
        archive = self._view.archive
        for committed in commit_additions.replay(archive):
            _log.info("%s: committed what an earlier mount had confirmed", committed.domain)
            for each in committed.dropped:
                _log.warning("%s: an addition was dropped (%s): %s", committed.domain, each.reason, each.addition)
        journal = Journal.open(archive)
        schemas = Schemas(archive.schemas, strict=self._settings.strict_schema)
        with self._lock:
            if self._stopped.is_set():
                journal.close()
                return
            self._journal = journal
            self._committer = Committer(archive, journal, self._overlay, self._settings.commit_interval)
            self._committer.start()
            self._overlay.begin(journal)
            self.writer = Writer(self._view, journal, self._committer, schemas, self._tell)

    def stop(self) -> None:
        """Confirm and commit the rest."""
        self._stopped.set()
        with self._lock:
            journal, self._journal = self._journal, None
            if journal is None or self.writer is None or self._committer is None:
                return
            self.writer.finish()
            self._committer.stop()
            self.remains = self._committer.remains
            journal.close()
