"""The logs of a journal: their format, and how they are read and written.

A log is a line that names the format, then records with length and checksum. An incomplete record at the end, cut off
by a crash, is none; a damaged record is skipped, since the next one can be found by its mark.

A log's name is `<journal>-<count>.log`: a journal begins another log after a full one. Large bodies are in the folder
`<journal>`. The owner of a log holds a lock on it (flock) while it lives, and alone writes it; its threads that wait
for the disk share one sync. Logs of all journals are read up to the last complete record.

A log of provisional files has another version, so that older programs leave it alone. Only the last state of each file
counts in it. It is called `<journal>-<count>.provisional`, and is committed by nobody. When its owner is dead they have
settled: whoever replays it gives it the other suffix first.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.additions import AddFile, Addition, AddNodes, ArcVersion, Move, Removal, decode, encode
from webarcfs.archive.model.arc_paths import is_lock
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.system.files import sync_folder, write_all_at
from webarcfs.archive.system.processes import lives

# == log format, pure =================================================================================================


#: The first line of a log; the number is the format's version.
HEADER: Final = b"webarcfs journal 1\n"
#: The first line of a log of provisional files.
PROVISIONAL_HEADER: Final = b"webarcfs journal 2\n"
_FORMAT: Final = b"webarcfs journal "
_MARK: Final = b"WAR\x1e"
_FRAME: Final = len(_MARK) + 8
#: Bodies up to this size are part of their record; larger ones are files beside the log.
INLINE: Final = 64 * 1024
#: A longer length is damage.
LONGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One addition in a log. Its body is at `offset` of the log, or in the file `file` beside it."""

    number: int
    addition: Addition
    offset: int
    size: int
    file: str = ""


@dataclass(frozen=True, slots=True)
class Scan:
    """Part of a log: its records, the offset after the last of them, and damaged spans.

    `tail` classifies the bytes after it: none, the beginning of a record ("torn"), or other bytes ("damaged").
    """

    records: tuple[LogRecord, ...]
    end: int
    damage: tuple[tuple[int, int], ...]
    tail: str


def is_newer(head: bytes) -> bool:
    """Return whether a newer version of this program wrote a log that begins so."""
    return head.startswith(_FORMAT) and not head.startswith((HEADER, PROVISIONAL_HEADER))


def frame(number: int, addition: Addition, body: bytes = b"", file: str = "") -> bytes:
    """Return a record with `body` inside it, or in `file`. For AddNodes, the nodes are the body."""
    payload = b"%d %s %s\n%s" % (number, file.encode("ascii") or b"-", encode(addition), body)
    length = len(payload).to_bytes(4, "little")
    return _MARK + length + zlib.crc32(length + payload).to_bytes(4, "little") + payload


def scan(data: bytes, start: int) -> Scan:
    """Read the records of `data`, which is at offset `start` of a log and begins with a record."""
    records: list[LogRecord] = []
    damage: list[tuple[int, int]] = []
    at = 0
    while at < len(data):
        record_and_end = _record(data, at, start)
        if record_and_end is None:
            next_at = _next_record(data, at, start)
            if next_at is None:
                break
            damage.append((start + at, start + next_at))
            at = next_at
        else:
            record, at = record_and_end
            records.append(record)
    return Scan(tuple(records), start + at, tuple(damage), _tail(data[at:]))


def _record(data: bytes, at: int, start: int) -> tuple[LogRecord, int] | None:
    """Return the record at `at` and the offset after it; None for an incomplete or damaged one."""
    body = at + _FRAME
    if data[at : at + len(_MARK)] != _MARK or body > len(data):
        return None
    length, check = data[at + 4 : at + 8], int.from_bytes(data[at + 8 : at + 12], "little")
    end = body + int.from_bytes(length, "little")
    if end - body > LONGEST or end > len(data):
        return None
    payload = data[body:end]
    if zlib.crc32(length + payload) != check:
        return None
    try:
        return _read(payload, start + body), end
    except (Damaged, ValueError):
        return None


def _read(payload: bytes, start: int) -> LogRecord:
    line, newline, body = payload.partition(b"\n")
    number, file, text = line.split(b" ", 2)
    name = "" if file == b"-" else file.decode("ascii")
    addition = decode(text, body)
    size = addition.size if isinstance(addition, AddFile) else len(body)
    if not newline or (isinstance(addition, AddFile) and not name and len(body) != addition.size):
        raise Damaged("a record without its body")
    return LogRecord(int(number), addition, start + len(line) + 1, size, name)


def _next_record(data: bytes, at: int, start: int) -> int | None:
    """Return the offset of the next sound record after damage at `at`, or None."""
    while (at := data.find(_MARK, at + 1)) >= 0:
        if _record(data, at, start) is not None:
            return at
    return None


def _tail(rest: bytes) -> str:
    """Classify the bytes after the last record; a file system may leave zeros where data were not written yet."""
    if not rest:
        return ""
    if not rest.strip(b"\0") or len(rest) < _FRAME:
        return "torn"
    length = int.from_bytes(rest[4:8], "little")
    cut = rest.startswith(_MARK) and length <= LONGEST and _FRAME + length > len(rest)
    return "torn" if cut else "damaged"


def with_nodes(record: LogRecord, nodes: bytes) -> LogRecord:
    """Return a record of AddNodes with its nodes, which were in a file."""
    addition = record.addition
    assert isinstance(addition, AddNodes)
    whole = AddNodes(addition.place, nodes, addition.author, addition.time, addition.source)
    return LogRecord(record.number, whole, record.offset, len(nodes), record.file)


# == provisional states, pure =========================================================================================


#: A provisional file: the ARC, and the path in it.
FileKey = tuple[ArcVersion, str]


def last_states(records: Iterable[LogRecord]) -> list[LogRecord]:
    """Return for each file that is left its last state, under its last name, in the order of their numbers.

    Locks are left out: nobody keeps them.
    """
    states: dict[FileKey, LogRecord] = {}
    for record in records:
        addition = record.addition
        match addition:
            case AddFile():
                # Git has none of the states before.
                states[addition.place, addition.path] = replace(record, addition=replace(addition, replaces=""))
            case Move():
                moved = states.pop((addition.place, addition.old), None)
                if moved is not None:
                    states[addition.place, addition.new] = renamed(moved, addition.new)
            case Removal():
                states.pop((addition.place, addition.path), None)
            case AddNodes():
                pass  # a document is never provisional
    kept = (record for (_, path), record in states.items() if not is_lock(path))
    return sorted(kept, key=lambda record: record.number)


def renamed(record: LogRecord, path: str) -> LogRecord:
    """Return the record of a file under another name."""
    assert isinstance(record.addition, AddFile)
    return replace(record, addition=replace(record.addition, path=path))


# == log reader =======================================================================================================


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
            scanned = scan(_log_reader_read(fd, self.end, size), self.end)
        finally:
            os.close(fd)
        self.end, self.tail = scanned.end, scanned.tail
        self.damage.extend(scanned.damage)
        return [self._whole(record) for record in scanned.records]

    @property
    def may_change(self) -> bool:
        """Whether its files are provisional still: their mount still has them."""
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
        self.newer = is_newer(head)
        self.provisional = head.startswith(PROVISIONAL_HEADER)
        if not head.startswith(HEADER) and not self.provisional:
            self.tail = "torn" if HEADER.startswith(head) or not head.strip(b"\0") else "damaged"
            return False
        self.end = len(HEADER)
        return True

    def _whole(self, record: LogRecord) -> LogRecord:
        if record.file and isinstance(record.addition, AddNodes):
            try:
                return with_nodes(record, (self.bodies / record.file).read_bytes())
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


def _log_reader_read(fd: int, start: int, end: int) -> bytes:
    return b"".join(_chunks(fd, start, end))


def _chunks(fd: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (chunk := os.pread(fd, end - start, start)):
        yield chunk
        start += len(chunk)


# == log writer =======================================================================================================


class LogWriter:
    """An open log, held by flock until it is closed."""

    def __init__(self, path: Path, fd: int, end: int) -> None:
        self.path, self.fd, self.end = path, fd, end
        self.id = path.stem
        #: Part of it could not be read: at the end it is set aside, for repair.
        self.damaged = False
        #: It lost records through others: nothing more is written to it.
        self.retired = False
        self._synced = end
        self._syncing = False
        self._failure: OSError | None = None
        self._changed = threading.Condition()

    @classmethod
    def create(cls, folder: Path, name: str, *, provisional: bool = False) -> LogWriter:
        """Make a new log, on disk and locked before any other process can find it. Raises OSError."""
        path, scratch = folder / f"{name}{PROVISIONAL if provisional else SUFFIX}", folder / f".{name}.new"
        header = PROVISIONAL_HEADER if provisional else HEADER
        fd = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            write_all_at(fd, header, 0)
            os.fsync(fd)
            scratch.rename(path)
            sync_folder(folder)
        except BaseException:
            for leftover in (scratch, path):
                leftover.unlink(missing_ok=True)
            os.close(fd)
            raise
        return cls(path, fd, len(header))

    @property
    def failed(self) -> bool:
        """Whether a sync failed, or others damaged it: its confirmed additions stay, nothing more is written to it."""
        return self._failure is not None or self.retired

    def is_synced(self, end: int) -> bool:
        """Return whether all bytes up to `end` are on disk."""
        return self._synced >= end

    def is_there(self) -> bool:
        """Return whether it is still the file at its path: others may have removed it, or put back a copy."""
        try:
            return os.path.samestat(os.fstat(self.fd), self.path.stat())
        except OSError:
            return False

    def append(self, record: bytes) -> int:
        """Write a record; `sync` with the returned offset makes it durable. Raises OSError, without any remains."""
        with self._changed:
            if self._failure is not None:
                raise self._again()
            try:
                write_all_at(self.fd, record, self.end)
            except BaseException:
                self._cut(self.end)
                raise
            self.end += len(record)
            return self.end

    def sync(self, end: int) -> None:
        """Return when all bytes up to `end` are on disk. Raises OSError on failure, and cuts them off."""
        with self._changed:
            while self._synced < end:
                if self._failure is not None:
                    raise self._again()
                if self._syncing:
                    self._changed.wait()
                else:
                    self._sync()

    def _sync(self) -> None:
        """Sync the log as it is now, for all waiting threads; the lock is released meanwhile."""
        self._syncing, upto = True, self.end
        self._changed.release()
        failure = None
        try:
            os.fdatasync(self.fd)
            self._check_there()
        except OSError as error:
            failure = error
        finally:
            self._changed.acquire()
            self._syncing = False
            self._changed.notify_all()
        if failure is None:
            self._synced = upto
        else:
            # The content of the disk is unknown now; it was never confirmed, so no reader may find it.
            self._failure = failure
            self._cut(self._synced)

    def _check_there(self) -> None:
        """Raise EIO unless the log is still at its path: in another file, no reader would find its records.

        The archive may have been removed, or restored from a copy, while this process had the log open.
        """
        if not self.is_there():
            raise OSError(errno.EIO, "the journal was removed or replaced while it was written to")

    def _cut(self, end: int) -> None:
        self.end = end
        with contextlib.suppress(OSError):
            os.ftruncate(self.fd, end)
            os.fdatasync(self.fd)

    def _again(self) -> OSError:
        """Return the failure, for each thread that it affects."""
        assert self._failure is not None
        return OSError(self._failure.errno, f"{self.path}: {self._failure.strerror}")

    def remove(self) -> None:
        """Remove the file: git has all of it. It is durable on return: its marks may be dropped then.

        Another file at its path stays: that of a copy of the archive may have additions that its git lacks.
        """
        if not self.is_there():
            return
        if self.damaged:
            self.path.rename(self.path.with_suffix(SET_ASIDE))
        else:
            self.path.unlink(missing_ok=True)
        sync_folder(self.path.parent)

    def close(self) -> None:
        """Close and unlock it."""
        os.close(self.fd)
