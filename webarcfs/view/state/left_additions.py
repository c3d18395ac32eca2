"""Shows the confirmed additions of dead mounts that could not be committed: on a full disk, or a read-only one.

They are read from the journal, which takes no room, and laid over the states as this mount's own are. Which of them
can be shown is decided as a commit decides it. When git has them, or their log is gone, the states show them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from webarcfs.archive.commit.placement import AdditionTree
from webarcfs.archive.commit.waiting import Waiting, read_progress, read_waiting, say_waiting
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.journal.log_format import LogRecord
from webarcfs.archive.journal.log_reader import PROVISIONAL, SUFFIX, LogReader
from webarcfs.archive.model.addition import AddFile, AddNodes, ArcVersion, Move, blob_id
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.view.state.overlay import Overlay, PendingFile

#: Seconds between two looks whether git has them by now.
_AGAIN = 1.0

_log = logging.getLogger(__name__)


class LeftAdditions:
    """The additions that dead mounts left. One thread calls `show` once, then any thread the others."""

    def __init__(self, archive: Archive, overlay: Overlay) -> None:
        self._archive = archive
        self._overlay = overlay
        self._bodies: dict[str, Waiting] = {}
        #: Domain → log → the numbers that are shown.
        self._shown: dict[str, dict[str, set[int]]] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    @property
    def lines(self) -> list[str]:
        """What waits, a line for each domain."""
        with self._lock:
            counts = {domain: sum(map(len, logs.values())) for domain, logs in self._shown.items()}
        return [say_waiting(domain, number) for domain, number in sorted(counts.items())]

    def show(self) -> None:
        """Lay what waits over the states, and follow it from then on."""
        try:
            left = read_waiting(self._archive, of_dead=True)
        except OSError as error:
            _log.error("the journal cannot be read: %s", error)
            return
        for domain, waiting in left.items():
            try:
                self._show(domain, waiting)
            except (WebarcError, OSError) as error:
                _log.error("%s: additions that wait in the journal cannot be shown: %s", domain, error)
        for line in self.lines:
            _log.warning("%s", line)
        if self._shown:
            threading.Thread(target=self._follow, name="left additions", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()

    def read_blob(self, blob: str) -> bytes | int | None:
        """Return a body: its bytes, or a descriptor that the caller closes; None once git has it."""
        waiting = self._bodies.get(blob)
        if waiting is None:
            return None
        log, record = waiting
        for reader in (log, LogReader(log.path.with_suffix(SUFFIX))):  # a log of provisional files is renamed
            with contextlib.suppress(FileNotFoundError):
                body = reader.body(record)
                return os.open(body, os.O_RDONLY | os.O_CLOEXEC) if isinstance(body, Path) else body
        return None

    def settle(self) -> bool:
        """Note what git has by now; return whether anything still waits."""
        with self._lock:
            for domain, logs in list(self._shown.items()):
                self._settle(domain, logs)
            return bool(self._shown)

    def _settle(self, domain: str, logs: dict[str, set[int]]) -> None:
        progress: Mapping[str, int] | None = None
        for log, numbers in list(logs.items()):
            settled = set(numbers)
            if any((self._archive.journal / f"{log}{suffix}").exists() for suffix in (SUFFIX, PROVISIONAL)):
                progress = progress if progress is not None else read_progress(self._archive, domain)
                settled = {number for number in numbers if number <= progress.get(log, 0)}
            numbers.difference_update(settled)
            self._overlay.committed(domain, {(log, number) for number in settled})
            if not numbers:
                del logs[log]
        if not logs:
            del self._shown[domain]
            _log.info("%s: what waited in the journal is committed", domain)

    def _follow(self) -> None:
        while not self._stopped.wait(_AGAIN):
            try:
                if not self.settle():
                    return
            except Exception:
                _log.exception("looking for additions that were committed failed; it is tried again")

    # -- laying them over the states -------------------------------------------------------------------------------

    def _show(self, domain: str, waiting: list[Waiting]) -> None:
        store = Repository(self._archive.repository(domain))
        head = store.head()
        if head is None:
            raise Damaged(f"{domain} has no state")
        shown = _ShownTree(store, head.tree, self._overlay)
        for log, record in waiting:
            try:
                if isinstance(record.addition, AddFile):
                    _check_body(log, record)
                shown.place(log, record)
            except (WebarcError, OSError) as error:
                _log.error("%s: addition %d of %s is not shown: %s", domain, record.number, log.id, error)
                continue
            if isinstance(record.addition, AddFile):
                self._bodies[record.addition.blob] = log, record
            self._shown.setdefault(domain, {}).setdefault(log.id, set()).add(record.number)


class _ShownTree:
    """The tree that a commit of the additions would make, as far as the overlay needs it."""

    def __init__(self, store: Repository, tree: str, overlay: Overlay) -> None:
        self._store = store
        self._overlay = overlay
        self._documents: dict[str, bytes] = {}
        self._sizes: dict[str, int] = {}
        self._nodes: dict[ArcVersion, tuple[bytes, ...]] = {}
        self._ground = AdditionTree(store, tree, self._keep)

    def _keep(self, document: bytes) -> str:
        blob = blob_id(document)
        self._documents[blob] = document
        return blob

    def place(self, log: LogReader, record: LogRecord) -> None:
        """Show an addition. Raises the reason why a commit would refuse it."""
        addition, number = record.addition, (log.id, record.number)
        place = addition.place
        self._ground.judge(addition)
        self._ground.place(addition)
        match addition:
            case AddFile():
                self._sizes[addition.blob] = addition.size
                self._overlay.confirmed(place, addition.path, PendingFile(addition.blob, addition.size, number))
                self._overlay.with_folders(place, addition.path)
            case Move():
                blob = self._ground.tree.blob(f"{place.arc}/{addition.new}") or ""
                size = self._sizes.get(blob)
                moved = PendingFile(blob, self._store.size(blob) if size is None else size, number)
                self._overlay.moved(place, addition.old, addition.new, moved)
                self._overlay.with_folders(place, addition.new)
            case AddNodes():
                blob = self._ground.tree.blob(f"{place.arc}/{DATA_XML}") or ""
                document = self._documents[blob]
                nodes = self._nodes[place] = (*self._nodes.get(place, ()), addition.nodes)
                self._overlay.confirmed(place, DATA_XML, PendingFile(blob, len(document), number, document, nodes))
                if addition.source:
                    self._overlay.gone(place, addition.source, number)


def _check_body(log: LogReader, record: LogRecord) -> None:
    """Raise Damaged, OSError for a body that is not there in full length."""
    body = log.body(record)
    size = body.stat().st_size if isinstance(body, Path) else len(body)
    if size != record.size:
        raise Damaged("its body in the journal is damaged")
