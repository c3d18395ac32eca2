"""What a mount that takes additions has beside its view: a journal, the thread that commits, the writer.

Started when the mount is its archive's owner and before anything is shown, so that what dead mounts left is in git by
then; stopped when nobody can write any more.
"""

from __future__ import annotations

import logging
import threading

from webarcfs.archive import committing, config
from webarcfs.archive.errors import ReadOnly, WebarcError
from webarcfs.archive.journal import Journal
from webarcfs.archive.schemas import Schemas
from webarcfs.mount.committer import Committer
from webarcfs.mount.view import View
from webarcfs.mount.writing import Writer

_log = logging.getLogger(__name__)


class Additions:
    """The additions of one mount. `writer` is None while, or because, nothing can be written.

    Raises SettingsError when webarc.toml cannot be understood.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._settings = config.load(view.archive.settings)[0].mount
        self._lock = threading.Lock()
        self._journal: Journal | None = None
        self._committer: Committer | None = None
        self.writer: Writer | None = None

    def ready(self) -> Writer:
        """The writer. Raises ReadOnly when nothing can be written."""
        if self.writer is None:
            raise ReadOnly("the archive cannot be written to; the log says why")
        return self.writer

    def start(self) -> None:
        """Commit what dead mounts left, and take additions, unless the archive cannot be written to."""
        archive = self._view.archive
        try:
            for committed in committing.replay(archive):
                _log.info("%s: committed what an earlier mount had confirmed", committed.domain)
                for each in committed.dropped:
                    _log.warning("%s: an addition was dropped (%s): %s", committed.domain, each.reason, each.addition)
            self._journal = Journal.open(archive)
        except (OSError, WebarcError) as error:
            _log.warning("nothing can be written through this mount: %s", error)
            return
        schemas = Schemas(archive.schemas, strict=self._settings.strict_schema)
        self._committer = Committer(archive, self._journal, self._view.overlay, self._settings.commit_interval)
        self._committer.start()
        self._view.take_additions(self._journal)
        self.writer = Writer(self._view, self._journal, self._committer, schemas)

    def stop(self) -> None:
        """Confirm and commit what is left."""
        with self._lock:
            journal, self._journal = self._journal, None
            if journal is None or self.writer is None or self._committer is None:
                return
            self.writer.finish()
            self._committer.stop()
            journal.close()
