"""The names that pending additions have taken, through any mount.

So a taken name is refused before anything is confirmed. Callers check the names that are in git already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.data_nodes import names_of
from webarcfs.archive.journal.log_reader import LogReader, log_ids, log_path
from webarcfs.archive.model.addition import AddFile, Addition, AddNodes, ArcVersion, Move
from webarcfs.archive.model.errors import Exists


@dataclass(slots=True)
class _Taken:
    """The names of one version of an ARC: file → (log, blob); folder → number of files below it; node → log."""

    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    folders: Counter[str] = field(default_factory=Counter)
    nodes: dict[str, str] = field(default_factory=dict)


class Claims:
    """The pending names of an archive, read from the logs. For one thread at a time, which holds the names lock."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._logs: dict[str, LogReader] = {}
        self._taken: dict[ArcVersion, _Taken] = {}
        self._places: dict[str, set[ArcVersion]] = {}

    def refresh(self) -> None:
        """Read the records that were written since the last call."""
        found = log_ids(self._archive)
        for gone in self._logs.keys() - found:
            self._forget(gone)
        for name in found:
            log = self._logs.get(name)
            if log is None:
                log = self._logs[name] = LogReader(log_path(self._archive, name))
            self._read(log)

    def wrote(self, log: str, begin: int, end: int, addition: Addition) -> None:
        """Note a record of our own mount, between two offsets of a log: it need not be read from there."""
        known = self._logs.get(log)
        if known is not None and known.end == begin:
            self._apply(log, addition)
            known.end = end

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
                self._forget(log.id)
                log = self._logs[log.id] = LogReader(log.path)
                records = log.more() or []
        except FileNotFoundError:
            return
        for record in records:
            self._apply(log.id, record.addition)

    def _apply(self, log: str, addition: Addition) -> None:
        taken = self._taken.setdefault(addition.place, _Taken())
        self._places.setdefault(log, set()).add(addition.place)
        match addition:
            case AddFile():
                _put(taken, addition.path, (log, addition.blob))
            case Move():
                _, blob = taken.files.get(addition.old, ("", ""))
                _pop(taken, addition.old)
                _put(taken, addition.new, (log, blob))
            case AddNodes():
                _pop(taken, addition.source)
                taken.nodes |= dict.fromkeys(names_of(addition.nodes), log)

    def _forget(self, log: str) -> None:
        """Forget a log that was removed, since git has all of it (or that was cut, and is read again)."""
        self._logs.pop(log, None)
        for place in self._places.pop(log, ()):
            taken = self._taken[place]
            for name in [name for name, (whose, _) in taken.files.items() if whose == log]:
                _pop(taken, name)
            for node in [node for node, whose in taken.nodes.items() if whose == log]:
                del taken.nodes[node]
            if not taken.files and not taken.nodes:
                del self._taken[place]
                for places in self._places.values():
                    places.discard(place)


def _check_file(taken: _Taken, path: str, replaces: str, own: Collection[str]) -> None:
    log, blob = taken.files.get(path, ("", ""))
    # No blob: it was renamed after its log was removed. Only its own writer may replace the file of that name.
    if path in taken.files and log not in own and not (replaces and blob in ("", replaces)):
        raise Exists(f"{path} exists already")
    if taken.folders[path] or any(folder in taken.files for folder in _folders(path)):
        raise Exists(f"{path} is in the way of another addition, or one in its way")


def _put(taken: _Taken, path: str, claim: tuple[str, str]) -> None:
    if path not in taken.files:
        taken.folders.update(_folders(path))
    taken.files[path] = claim


def _pop(taken: _Taken, path: str) -> None:
    if taken.files.pop(path, None) is not None:
        taken.folders.subtract(_folders(path))


def _folders(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))
