"""SQLite's errors as ours, for the databases that derive from git: the message says how to get a new one."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from webarcfs.archive.errors import Busy, DatabaseDamaged

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
