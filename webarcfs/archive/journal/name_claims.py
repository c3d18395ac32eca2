"""The names that pending and provisional additions have taken, through any mount.

So a taken name is refused before anything is confirmed. Callers check the names that are in git already.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_nodes import names_of
from webarcfs.archive.journal.log_reader import PROVISIONAL, SUFFIX, LogReader, log_names
from webarcfs.archive.model.addition import AddFile, Addition, AddNodes, ArcVersion, Move, Removal
from webarcfs.archive.model.errors import Exists
from webarcfs.archive.system import locks


@dataclass(slots=True)
class _Taken:
    """The names of one version of an ARC: file → log → blob; folder → number of files below it; node → log.

    A log is named by its file. A file that settles is in two logs for a while, which are read in any order.
    """

    files: dict[str, dict[str, str]] = field(default_factory=dict)
    folders: Counter[str] = field(default_factory=Counter)
    nodes: dict[str, str] = field(default_factory=dict)


class Claims:
    """The pending names of an archive, read from the logs. The journals of one mount share it."""

    def __init__(self, archive: Archive) -> None:
        #: Held by the one thread that uses it.
        self.lock = threading.RLock()
        self._archive = archive
        self._logs: dict[str, LogReader] = {}
        self._taken: dict[ArcVersion, _Taken] = {}
        self._places: dict[str, set[ArcVersion]] = {}

    @contextmanager
    def claiming(self, domain: str) -> Iterator[None]:
        """Let no other thread or mount claim a name of the domain meanwhile. What they claimed before is known."""
        with self.lock, locks.exclusive(self._archive.names_lock(domain)):
            self.refresh()
            yield

    def refresh(self) -> None:
        """Read the records that were written since the last call."""
        found = log_names(self._archive, SUFFIX, PROVISIONAL)
        if self._logs.keys() - found:
            # Another one may have taken its place while the folder was read.
            found = log_names(self._archive, SUFFIX, PROVISIONAL)
        for gone in self._logs.keys() - found:
            self._forget(gone)
        for name in found:
            log = self._logs.get(name)
            if log is None:
                log = self._logs[name] = LogReader(self._archive.journal / name)
            self._read(log)

    def wrote(self, log: str, begin: int, end: int, addition: Addition) -> None:
        """Note a record of our own mount, between two offsets of a log: it need not be read from there."""
        known = self._logs.get(log)
        if known is not None and known.end == begin:
            self._apply(known, addition)
            known.end = end

    def forget_all(self) -> None:
        """Forget all names; the next refresh reads the logs again."""
        self._logs.clear()
        self._taken.clear()
        self._places.clear()

    def check(self, addition: Addition, own: Collection[str] = ()) -> None:
        """Raises Exists when another addition has taken a name of `addition`, outside of the logs `own`."""
        taken = self._taken.get(addition.place)
        if taken is None:
            return
        match addition:
            case AddFile():
                _check_file(taken, addition.path, addition.replaces, own)
            case Move():
                _check_file(taken, addition.new, "", own)
            case AddNodes():
                for name in names_of(addition.nodes):
                    if taken.nodes.get(name, "") not in ("", *own):
                        raise Exists(f"data.xml has a data node {name} already")

    def _read(self, log: LogReader) -> None:
        try:
            records = log.more()
            if records is None:  # a failed sync was cut off
                self._forget(log.path.name)
                log = self._logs[log.path.name] = LogReader(log.path)
                records = log.more() or []
        except FileNotFoundError:
            return
        for record in records:
            self._apply(log, record.addition)

    def _apply(self, log: LogReader, addition: Addition) -> None:
        taken, name = self._taken.setdefault(addition.place, _Taken()), log.path.name
        # The files of a provisional log are of this log alone; those of others may be of the journal's logs before it.
        claimers = (name,) if log.provisional else None
        self._places.setdefault(name, set()).add(addition.place)
        match addition:
            case AddFile():
                if addition.replaces:
                    _take_away(taken, addition.path, claimers, {"", addition.replaces})
                _put(taken, addition.path, name, addition.blob)
            case Move():
                blobs = _take_away(taken, addition.old, claimers)
                _put(taken, addition.new, name, blobs[-1] if blobs else "")
            case Removal():
                _take_away(taken, addition.path, claimers)  # if it settled, another log has it
            case AddNodes():
                _take_away(taken, addition.source)
                taken.nodes |= dict.fromkeys(names_of(addition.nodes), name)

    def _forget(self, log: str) -> None:
        """Forget a log that was removed, since git has all of it (or that was cut, and is read again)."""
        self._logs.pop(log, None)
        for place in self._places.pop(log, ()):
            taken = self._taken[place]
            for path in [path for path, claims in taken.files.items() if log in claims]:
                _take_away(taken, path, (log,))
            for node in [node for node, whose in taken.nodes.items() if whose == log]:
                del taken.nodes[node]
            if not taken.files and not taken.nodes:
                del self._taken[place]
                for places in self._places.values():
                    places.discard(place)


def _check_file(taken: _Taken, path: str, replaces: str, own: Collection[str]) -> None:
    # No blob: it was renamed after its log was removed. Only its own writer may replace the file of that name.
    blobs = {blob for log, blob in taken.files.get(path, {}).items() if log not in own}
    if blobs and not (replaces and blobs <= {"", replaces}):
        raise Exists(f"{path} exists already")
    if taken.folders[path] or any(folder in taken.files for folder in _folders(path)):
        raise Exists(f"{path} is in the way of another addition, or one in its way")


def _put(taken: _Taken, path: str, log: str, blob: str) -> None:
    if path not in taken.files:
        taken.folders.update(_folders(path))
    taken.files.setdefault(path, {})[log] = blob


def _take_away(
    taken: _Taken, path: str, logs: Container[str] | None = None, blobs: Container[str] | None = None
) -> list[str]:
    """Take away what some logs, or all, claim of a path by some blobs, or all; return the blobs."""
    claims = taken.files.get(path, {})
    gone = [log for log, blob in claims.items() if (logs is None or log in logs) and (blobs is None or blob in blobs)]
    found = [claims.pop(log) for log in gone]
    if found and not claims:
        del taken.files[path]
        taken.folders.subtract(_folders(path))
    return found


def _folders(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))
