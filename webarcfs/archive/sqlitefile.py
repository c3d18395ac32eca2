"""SQLite's errors as ours, for the databases that derive from git: the message says how to get a new one."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from webarcfs.archive.errors import Busy, DatabaseDamaged, WebarcError

#: Seconds that a writer waits for another.
PATIENCE = 60.0


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raises OSError (ENOSPC, EACCES), Busy or DatabaseDamaged for what SQLite says of the file at `path`."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without its extended part
        if code == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, f"{path}: {error}") from None
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise Busy(f"{path}: another process has been at it for {PATIENCE:g} s") from None
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise OSError(errno.EACCES, f"{path}: {error}") from None
        raise DatabaseDamaged(f"{path}: {error}; `webarc-agent recover` makes it anew from git") from None


def as_told_to_readers(path: Path, error: sqlite3.DatabaseError) -> WebarcError:
    """What somebody is told who may only read: Busy or DatabaseDamaged, and what to do.

    What a killed writer left half must be played back by one who may write (sqlite.org/lockingv3, "hot journal"), which
    takes a moment; nobody shall make anew what only waits for that.
    """
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Busy(f"{path} is being written to; try again")
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:
        mended = "the next `webarc-agent crawl` or `start` puts it right, and so does `webarc-agent verify`"
        return DatabaseDamaged(f"{path} was being written to by a process that was killed; {mended}")
    return DatabaseDamaged(f"{path}: {error}; `webarc-agent recover` makes it anew from git")
