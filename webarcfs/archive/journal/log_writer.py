"""One log of a journal, as its owner writes it; threads that wait for the disk share one sync."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from pathlib import Path

from webarcfs.archive.journal.log_format import HEADER
from webarcfs.archive.journal.log_reader import SET_ASIDE, SUFFIX
from webarcfs.archive.system.fsync import sync_folder, write_all_at


class LogWriter:
    """An open log, held by flock until it is closed."""

    def __init__(self, path: Path, fd: int, end: int) -> None:
        self.path, self.fd, self.end = path, fd, end
        self.id = path.name.removesuffix(SUFFIX)
        #: Something in it could not be read: it is set aside in the end, for somebody who can.
        self.damaged = False
        self._synced = end
        self._syncing = False
        self._failure: OSError | None = None
        self._changed = threading.Condition()

    @classmethod
    def create(cls, folder: Path, name: str) -> LogWriter:
        """A new log, on disk and locked before anybody else can find it. Raises OSError."""
        path, scratch = folder / f"{name}{SUFFIX}", folder / f".{name}.new"
        fd = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            write_all_at(fd, HEADER, 0)
            os.fsync(fd)
            scratch.rename(path)
            sync_folder(folder)
        except BaseException:
            for each in (scratch, path):
                each.unlink(missing_ok=True)
            os.close(fd)
            raise
        return cls(path, fd, len(HEADER))

    @property
    def failed(self) -> bool:
        """Whether a sync failed: what it holds that was confirmed stays, nothing more is written to it."""
        return self._failure is not None

    def append(self, record: bytes) -> int:
        """Write a record; `sync` with the offset returned makes it durable. Raises OSError, leaving nothing."""
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
        """Return when all up to `end` is on disk. Raises OSError when it did not get there, and takes it back."""
        with self._changed:
            while self._synced < end:
                if self._failure is not None:
                    raise self._again()
                if self._syncing:
                    self._changed.wait()
                else:
                    self._sync()

    def _sync(self) -> None:
        """Sync what there is now, for all who wait; the lock is let go meanwhile."""
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
            # What is on disk now is not known; nobody was told that it is there, so nobody may find it.
            self._failure = failure
            self._cut(self._synced)

    def _check_there(self) -> None:
        """Raise EIO unless the log is the one that its path leads to: nobody finds what is in another one.

        The archive may have been removed, or put back from a copy, while this process had the log open.
        """
        try:
            there = os.path.samestat(os.fstat(self.fd), self.path.stat())
        except FileNotFoundError:
            there = False
        if not there:
            raise OSError(errno.EIO, "the journal was removed or replaced while it was written to")

    def _cut(self, end: int) -> None:
        self.end = end
        with contextlib.suppress(OSError):
            os.ftruncate(self.fd, end)
            os.fdatasync(self.fd)

    def _again(self) -> OSError:
        """The failure, for each thread that it hits."""
        assert self._failure is not None
        return OSError(self._failure.errno, f"{self.path}: {self._failure.strerror}")

    def remove(self) -> None:
        """Remove the file; git has all of it. Durable when it returns: its marks may be dropped then."""
        if self.damaged:
            self.path.rename(self.path.with_suffix(SET_ASIDE))
        else:
            self.path.unlink(missing_ok=True)
        sync_folder(self.path.parent)

    def close(self) -> None:
        """Let go of it."""
        os.close(self.fd)
