"""Writes one log of a journal, for its owner; threads that wait for the disk share one sync."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from pathlib import Path

from webarcfs.archive.journal.log_format import HEADER, PROVISIONAL_HEADER
from webarcfs.archive.journal.log_reader import PROVISIONAL, SET_ASIDE, SUFFIX
from webarcfs.archive.system.fsync import sync_folder, write_all_at


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
            for each in (scratch, path):
                each.unlink(missing_ok=True)
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
