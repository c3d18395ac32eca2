"""Databases that derive from git: opens and removes them, and turns SQLite's errors into ours, with a remedy.

sqlite_utils is imported where a database is opened, and without numpy. The library needs .1 s to import. A process that
opens no database, as the one that reads a crawl's results, does without it. It also imports numpy wherever that is
installed, as by the extra `plot`, for types that nobody stores here: as long again.
"""

from __future__ import annotations

import errno
import re
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from webarcfs.archive.config.directory import sql
from webarcfs.archive.model.errors import Busy, DatabaseDamaged, DatabaseOutdated, TookTooLong, WebarcError
from webarcfs.archive.system import clocks

if TYPE_CHECKING:
    from sqlite_utils import Database

_VERSION = re.compile(r"\buser_version = (\d+);")


@cache
def version_of(schema: str) -> int:
    """Return the version that the file of a schema gives its database: one of another version is rebuilt."""
    return int(_VERSION.findall(sql(schema))[0])


#: Held by a thread while it reads a database that another process writes. Locks of files belong to processes
#: (fcntl(2)), and SQLite lends that of one thread to all others: among several that read, some thread would always have
#: it, and the writer would wait until all are idle (sqlite.org/lockingv3, section 5.1).
IN_TURN = threading.Lock()
#: Seconds that a writer waits for another.
PATIENCE = 60.0
#: Steps of SQLite's machine between two looks at the time.
STEPS_BETWEEN_LOOKS = 10_000
_NUMPY = "numpy"
#: One thread at a time hides numpy: a second one would take the mark of the first for numpy, or remove it.
_importing = threading.Lock()


class SqliteFile:
    """A database at `path` for its one writer, with the statements of `sql/`. A context manager, for one thread."""

    def __init__(
        self,
        path: Path,
        isolation_level: Literal["IMMEDIATE"] | None,
        *,
        of_one_thread: bool = True,
        patience: float | None = None,
    ) -> None:
        """Open or make it. It waits for other processes for `patience` seconds. Raises the errors of `translated`."""
        self._path = path
        self._patience = PATIENCE if patience is None else patience
        with self._translated():
            self._connection = sqlite3.connect(
                path, timeout=self._patience, isolation_level=isolation_level, check_same_thread=of_one_thread
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._connection.close()

    def check(self) -> list[str]:
        """Return SQLite's findings about the file, a line each; none for a sound one."""
        with self._translated():
            lines = [str(row[0]) for row in self._connection.execute(sql("check_database"))]
        return [line for line in lines if line != "ok"]

    def has_all_of(self, schema: str) -> bool:
        """Return whether it has the tables and indexes of its schema: some program may have dropped one."""
        with closing(sqlite3.connect(":memory:")) as fresh, self._translated():
            fresh.executescript(sql(schema))
            wanted, present = (
                {str(row[0]) for row in connection.execute(sql("select_schema"))}
                for connection in (fresh, self._connection)
            )
        return wanted <= present

    def _ready(self, schema: str) -> None:
        """Give an empty database its schema. Raises DatabaseOutdated for another version."""
        file_version, version = self._one("schema_version"), version_of(schema)
        if file_version == 0 and not self._one("count_tables"):
            self._connection.executescript(sql(schema))
        elif file_version != version:
            raise DatabaseOutdated(
                f"{self._path} is of version {file_version}, not {version}; run `webarc-agent recover`"
            )

    def _copy_from(self, path: Path, schema: str) -> None:
        """Take over all that a file has, if it is of this version, and can be read; else nothing."""
        address = f"{path.absolute().as_uri()}?mode=ro"
        with (
            suppress(sqlite3.Error),
            closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=self._patience)) as file,
        ):
            file.execute(
                sql("begin_reading")
            )  # from the first read on nobody writes to it, and the copy waits for nobody
            if file.execute(sql("schema_version")).fetchone()[0] == version_of(schema):
                file.backup(self._connection)

    def _run(self, statement: str, **values: Any) -> sqlite3.Cursor:
        return self._connection.execute(sql(statement), values)

    def _one(self, statement: str) -> Any:
        return self._run(statement).fetchone()[0]

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self._path)


def queries_of(connection: sqlite3.Connection) -> Database:
    """Return the library's view of a connection: its queries return rows as dicts. For any thread."""
    with _importing:
        hides_numpy = "sqlite_utils" not in sys.modules and _NUMPY not in sys.modules
        if hides_numpy:
            sys.modules[_NUMPY] = None  # type: ignore[assignment] # an import of it fails then, as where it is missing
        try:
            from sqlite_utils import Database  # noqa: PLC0415 # for the reason above
        finally:
            if hides_numpy:
                del sys.modules[_NUMPY]
    return Database(connection)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raises OSError (ENOSPC, EIO, EACCES), Busy or DatabaseDamaged for SQLite's errors of the file at `path`.

    Of a question that was ended with the deadline of its thread, it raises what the deadline raises.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without its extended part
        if code == sqlite3.SQLITE_INTERRUPT:
            clocks.check()
            raise TookTooLong(f"{path}: {error}") from None
        if code == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, f"{path}: {error}") from None
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise Busy(f"{path}: another process has been writing to it for too long; try again") from None
        if code == sqlite3.SQLITE_CANTOPEN:  # a folder is missing, or too many files are open: the file may be sound
            raise OSError(errno.EIO, f"{path}: {error}") from None
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise OSError(errno.EACCES, f"{path}: {error}") from None
        raise DatabaseDamaged(f"{path}: {error}; `webarc-agent recover` rebuilds it from git") from None


def as_told_to_readers(path: Path, error: sqlite3.DatabaseError) -> WebarcError:
    """Return the error for a user who may only read: Busy or DatabaseDamaged, with a remedy.

    Of a question that was ended with the deadline of its thread, it raises what the deadline raises.

    Only who may write can roll back what a killed writer left (sqlite.org/lockingv3, "hot journal"), which takes a
    moment; that is no reason to rebuild the database.
    """
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code & 0xFF == sqlite3.SQLITE_INTERRUPT:
        clocks.check()
        return TookTooLong(f"{path}: {error}")
    if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Busy(f"{path} is being written to; try again")
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:
        mended = "the next `webarc-agent crawl` or `start` puts it right, and so does `webarc-agent verify`"
        return DatabaseDamaged(f"{path} was being written to by a process that was killed; {mended}")
    return DatabaseDamaged(f"{path}: {error}; `webarc-agent recover` rebuilds it from git")


def rolled_back(path: Path) -> bool:
    """Roll back what a killed writer left, if this process may write to the database; return whether that is done."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0)) as connection:
            connection.execute(sql("schema_version")).fetchone()
    except sqlite3.Error:
        return False  # this user may only read, or another process does it at the moment
    return True


def remove(path: Path) -> None:
    """Remove a database whose writer may have been killed: SQLite would apply its journal to the next one."""
    path.unlink(missing_ok=True)
    journal(path).unlink(missing_ok=True)


def journal(path: Path) -> Path:
    """Return the path of SQLite's rollback journal; it remains after a writer was killed."""
    return path.with_name(f"{path.name}-journal")
