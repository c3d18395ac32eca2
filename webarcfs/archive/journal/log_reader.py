"""Reads the logs of all journals, up to the last complete record.

A log's name is `<journal>-<count>.log`: a journal begins another log after a full one. Large bodies are in the folder
`<journal>`. The owner of a log holds a lock on it (flock) while it lives.

A log of provisional files is called `<journal>-<count>.provisional`, and is committed by nobody. When its owner is dead
they have settled: whoever replays it gives it the other suffix first.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.journal import log_format
from webarcfs.archive.journal.log_format import HEADER, PROVISIONAL_HEADER, LogRecord
from webarcfs.archive.journal.provisional_states import last_states
from webarcfs.archive.model.addition import AddNodes
from webarcfs.archive.system.processes import lives

SUFFIX = ".log"
#: Suffix of a log of provisional files.
PROVISIONAL = ".provisional"
#: Suffix of a damaged log, when all its readable additions are in git.
SET_ASIDE = ".damaged"
#: The beginning of a log's name, finished or not: its journal's time and process.
_OWNER = re.compile(r"\.?\d+T\d+-(\d+)-")
_BETWEEN_LOOKS = 0.01  # seconds
_HEAD = 64  # bytes, enough to recognise the format


@dataclass(slots=True)
class LogReader:
    """One log, read incrementally."""

    path: Path
    newer: bool = False
    #: Whether its files are, or were, provisional: only the last state of each counts (`left`).
    provisional: bool = False
    end: int = 0
    damage: list[tuple[int, int]] = field(default_factory=list)
    tail: str = ""
    _seen: bool = False

    @property
    def id(self) -> str:
        """Its name without suffix, as in marks and tickets."""
        return self.path.stem

    @property
    def bodies(self) -> Path:
        """The folder of its journal's large bodies."""
        return self.path.with_name(journal_of(self.id))

    def more(self) -> list[LogRecord] | None:
        """Return the records since the last call; None if the log became shorter, and must be read again.

        Raises FileNotFoundError when it is gone.
        """
        if 0 < self.end == os.stat(self.path).st_size:  # noqa: PTH116 # for each addition: most logs did not change
            self.tail = ""
            return []
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            if size < self.end:
                return None
            if self.end == 0 and not self._begin(os.pread(fd, _HEAD, 0)):
                return []
            found = log_format.scan(_read(fd, self.end, size), self.end)
        finally:
            os.close(fd)
        self.end, self.tail = found.end, found.tail
        self.damage.extend(found.damage)
        return [self._whole(record) for record in found.records]

    @property
    def may_change(self) -> bool:
        """Whether its files are provisional still: their mount goes on with them."""
        return self.path.suffix == PROVISIONAL

    def left(self, records: list[LogRecord]) -> list[LogRecord]:
        """Return what all `records` of this log come to: of provisional files only the last states."""
        return last_states(records) if self.provisional else records

    def was_cut(self) -> bool:
        """Return whether it is shorter than what was read of it: the sync of its end failed."""
        try:
            return self.path.stat().st_size < self.end
        except FileNotFoundError:
            return False

    def body(self, record: LogRecord) -> Path | bytes:
        """Return a record's body: its file, or its bytes. Raises OSError, FileNotFoundError when the log is gone."""
        if record.file:
            return self.bodies / record.file
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(fd, record.size, record.offset)
        finally:
            os.close(fd)

    def _begin(self, head: bytes) -> bool:
        """Return whether the log is readable, from its first bytes."""
        self.newer = log_format.is_newer(head)
        self.provisional = head.startswith(PROVISIONAL_HEADER)
        if not head.startswith(HEADER) and not self.provisional:
            self.tail = "torn" if HEADER.startswith(head) or not head.strip(b"\0") else "damaged"
            return False
        self.end = len(HEADER)
        return True

    def _whole(self, record: LogRecord) -> LogRecord:
        if record.file and isinstance(record.addition, AddNodes):
            try:
                return log_format.with_nodes(record, (self.bodies / record.file).read_bytes())
            except FileNotFoundError:
                return record  # it is in git already, and its body was removed
        return record


def log_names(archive: Archive, *suffixes: str) -> list[str]:
    """Return the names of the logs of all journals, each journal's in order. Logs that disappear meanwhile are done."""
    names = os.listdir(archive.journal)  # noqa: PTH208 # for each addition, and Paths cost more than all of it
    return sorted(name for name in names if name.endswith(suffixes) and not name.startswith("."))


def log_path(archive: Archive, log: str) -> Path:
    """Return the path of a log that is to be committed."""
    return archive.journal / f"{log}{SUFFIX}"


def all_logs(archive: Archive) -> list[LogReader]:
    """Return readers of the logs that are to be committed."""
    return [LogReader(archive.journal / name) for name in log_names(archive, SUFFIX)]


def provisional_logs(archive: Archive) -> list[LogReader]:
    """Return readers of the logs of provisional files."""
    return [LogReader(archive.journal / name) for name in log_names(archive, PROVISIONAL)]


def journal_of(log: str) -> str:
    """Return the journal of a log."""
    return log.rpartition("-")[0]


def take(path: Path) -> int | None:
    """Return a descriptor that locks a dead owner's log; None when its owner lives, or the log is gone."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    if os.fstat(fd).st_nlink == 0:
        os.close(fd)
        return None
    return fd


def take_from_dead(path: Path, until: float) -> int | None:
    """Lock a log as `take` does, but wait, until the monotonic time `until`, for a dead owner's child.

    A killed process may have forked a child, which holds its locks until it executes its program: for moments, or
    longer on a busy machine. An owner in another PID namespace looks dead; then the wait is in vain, and harmless.
    """
    while (fd := take(path)) is None and _is_dead(path) and time.monotonic() < until:
        time.sleep(_BETWEEN_LOOKS)
    return fd


def _is_dead(path: Path) -> bool:
    """Return whether a log exists whose owner, given in its name, does not run."""
    match = _OWNER.match(path.name)
    return match is not None and not lives(int(match[1])) and path.exists()


def _read(fd: int, start: int, end: int) -> bytes:
    return b"".join(_chunks(fd, start, end))


def _chunks(fd: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (chunk := os.pread(fd, end - start, start)):
        yield chunk
        start += len(chunk)
