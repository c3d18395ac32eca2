"""Queries webarc.db for users: with a condition and an order of theirs, nothing else (/Cl-6/, /Db-5.2/).

The condition is SQL from any user. So the connection is read-only, an authorizer allows reads of the view `metadata`
only and no function that reaches outside it, SQLite's own limits bound its size, and a clock bounds its time.

SQLite looks at the clock between two steps and between two rows, never inside a function. So the bounds of values and
patterns are such that none takes more than a second; `trim` with characters, which could take half a minute, is ours.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from webarcfs.archive.config.directory import sql
from webarcfs.archive.index.conditions import QUOTED, Condition, equalities, explain, unbalanced
from webarcfs.archive.index.sqlite_file import STEPS_BETWEEN_LOOKS, as_told_to_readers, rolled_back, version_of
from webarcfs.archive.model.errors import BadCondition, Busy, DatabaseDamaged, NotFound, TookTooLong
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, FIELDS, MetaData
from webarcfs.archive.system import clocks

#: Most seconds for an answer.
SECONDS = 30.0
_VIEW = "metadata"
_COMES_WITH_THE_VIEW = frozenset({"domain", "snapshot", "document", "version", "reader_snapshot", "wanted"})
#: Functions of a reader's view, for it alone.
_READERS_FUNCTIONS = frozenset({"saw", "permitted", "named"})
#: Prepares a connection for a reader: from then on `metadata` is a view of what the reader may see. It may leave out
#: rows that do not have the values of the mapping, by column.
Narrowed = Callable[[sqlite3.Connection, Mapping[str, str]], None]
_SELECT = re.compile(r"\bSELECT\b", re.IGNORECASE)
_ALLOWED = (
    "abs avg char coalesce count date datetime glob hex ifnull iif instr julianday length like likelihood "
    "likely lower ltrim max min nullif quote replace round rtrim sign strftime substr substring sum time total "
    "trim typeof unicode unixepoch unlikely upper"
)
_FUNCTIONS = frozenset(_ALLOWED.split())
_LIMITS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 65_536,
    sqlite3.SQLITE_LIMIT_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 1,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 250,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
#: Literals and comments of SQL, in which a word is no name of a column.
_TEXTS = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_STATUS = re.compile(r"\bstatus\b", re.IGNORECASE)
#: The implied condition if the status is not mentioned; nearly all documents fit.
_NO_ERROR_PAGES = "likelihood(status < 400, 0.99)"
_WITH = re.compile(r"\bWITH\b", re.IGNORECASE)


def ask(
    database: Path,
    where: str = "",
    order_by: str = "",
    limit: int | None = None,
    seconds: float = SECONDS,
    *,
    narrowed: Narrowed | None = None,
) -> Iterator[MetaData]:
    """Yield the rows of the view `metadata` for which `where` holds, in the order `order_by`, at most `limit`.

    `narrowed` leaves the rows that a reader may see; then a condition has no SELECT of its own, which could count rows.

    Raises BadCondition when SQLite rejects the condition or it reads more than the view, TookTooLong after `seconds`,
    NotFound without a database, Busy while another process writes to it for long, DatabaseDamaged when it cannot be
    read.
    """
    for row in _rows(database, "metadata/ask", Condition(where, order_by, limit), seconds, narrowed):
        yield MetaData.from_fields(dict(zip((*FIELDS, *CAPTURE_FIELDS), map(str, row), strict=True)))


def places(
    database: Path, condition: Condition, seconds: float = SECONDS, narrowed: Narrowed | None = None
) -> Iterator[tuple[str, str]]:
    """Yield only commitTag and path of the same rows, which is several times as fast."""
    for tag, path in _rows(database, "metadata/ask_places", condition, seconds, narrowed):
        yield str(tag), str(path)


def check(database: Path, condition: Condition, narrowed: Narrowed | None = None) -> None:
    """Check that SQLite accepts a condition, without running it. Raises as `ask` does before its first row."""
    for _ in _rows(database, "metadata/explain_places", condition, SECONDS, narrowed):
        pass


def _rows(
    database: Path, statement: str, condition: Condition, seconds: float, narrowed: Narrowed | None = None
) -> Iterator[tuple[Any, ...]]:
    text = _statement(statement, condition)
    if narrowed is not None and _SELECT.search(QUOTED.sub(" ", f"{condition.where}\n{condition.order_by}")):
        raise BadCondition("where snapshots or pages are hidden, a condition has no SELECT")
    if wrong := unbalanced(condition.where, condition.order_by):
        raise BadCondition("\n".join(wrong))
    with (
        closing(connected(database)) as connection,
        _interrupted_after(connection, seconds),
        _translated(database, condition, seconds),
    ):
        if narrowed is not None:
            narrowed(connection, equalities(condition.where))
        _fence(connection, seconds)
        if narrowed is not None:
            connection.set_authorizer(_allowed_to_readers)
        yield from connection.execute(text)


def _statement(name: str, condition: Condition) -> str:
    """Return the whole statement. A newline ends users' text, so that a comment of theirs cannot hide the rest."""
    where, order_by, limit = condition.where, condition.order_by, condition.limit
    if limit is not None and limit < 0:
        raise BadCondition(f"the limit {limit} is negative")
    for text in (where, order_by):
        if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
            raise BadCondition("it holds a NUL or what is no UTF-8")
        # A common table expression called "metadata" would be taken for the view by the authorizer.
        if _WITH.search(QUOTED.sub(" ", text)):
            raise BadCondition("WITH is not for conditions; select from the view metadata directly")
    parts = [sql(name)]
    wanted = [f"({where}\n)"] if where.strip() else []
    if not _STATUS.search(_TEXTS.sub(" ", where)):
        wanted.append(_NO_ERROR_PAGES)
    parts += [f"WHERE {' AND '.join(wanted)}"] if wanted else []
    parts += [f"ORDER BY {order_by}\n"] if order_by.strip() else []
    parts += [f"LIMIT {limit}"] if limit is not None else []
    return "\n".join(parts)


def connected(database: Path, *, of_one_thread: bool = True) -> sqlite3.Connection:
    """Open webarc.db for reading; roll back what a killed writer left, where this process may write.

    What it is asked ends with the deadline of the thread that asks.

    Raises NotFound, Busy, DatabaseDamaged.
    """
    if not database.is_file():
        raise NotFound(f"there is no {database} yet; a crawl makes it, or `webarc-agent recover`")
    place = f"{database.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(place, uri=True, check_same_thread=of_one_thread)
    connection.set_progress_handler(clocks.is_over, STEPS_BETWEEN_LOOKS)
    try:
        version = int(connection.execute(sql("schema_version")).fetchone()[0])
        if 0 < version < version_of("schema"):
            raise Busy(f"{database} is of an older webarcfs; the next crawl rebuilds it, or `webarc-agent recover`")
        if version > version_of("schema"):
            raise DatabaseDamaged(f"{database} is of a newer webarcfs; use that, or `webarc-agent recover`")
    except sqlite3.DatabaseError as error:
        connection.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK and rolled_back(database):
            return connected(database, of_one_thread=of_one_thread)
        raise as_told_to_readers(database, error) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _fence(connection: sqlite3.Connection, seconds: float) -> None:
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    end = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > end or clocks.is_over(), STEPS_BETWEEN_LOOKS)
    connection.set_authorizer(_allowed)
    for name, trim in _TRIMS.items():
        connection.create_function(name, 2, trim, deterministic=True)


@contextmanager
def _interrupted_after(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Interrupt a connection after some seconds: between two rows, where the steps of one row may take long."""

    def interrupt() -> None:
        with suppress(sqlite3.ProgrammingError):  # closed in this moment
            connection.interrupt()

    timer = threading.Timer(max(seconds, 0), interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _trim_start(text: object, characters: object) -> str | None:
    """Do what `ltrim(X, Y)` does, in linear time."""
    if text is None or characters is None:
        return None
    string, unwanted = _as_text(text), frozenset(_as_text(characters))
    return string[next((at for at, character in enumerate(string) if character not in unwanted), len(string)) :]


def _trim_end(text: object, characters: object) -> str | None:
    """Do what `rtrim(X, Y)` does, in linear time."""
    trimmed = _trim_start(None if text is None else _as_text(text)[::-1], characters)
    return None if trimmed is None else trimmed[::-1]


def _trim(text: object, characters: object) -> str | None:
    """Do what `trim(X, Y)` does, in linear time."""
    return _trim_end(_trim_start(text, characters), characters)


def _as_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


_TRIMS = {"ltrim": _trim_start, "rtrim": _trim_end, "trim": _trim}


def _allowed(action: int, first: str | None, second: str | None, _database: str | None, inside: str | None) -> int:
    """Authorize an access when SQLite compiles it; `inside` is the view that contains it."""
    if action == sqlite3.SQLITE_SELECT:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ and first == _VIEW:
        return sqlite3.SQLITE_OK
    # Without a column, the access needs only the number of the table's rows, also inside the view.
    if action == sqlite3.SQLITE_READ and first in _COMES_WITH_THE_VIEW and (inside == _VIEW or not second):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second in _READERS_FUNCTIONS and inside == _VIEW:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _allowed_to_readers(
    action: int, first: str | None, second: str | None, database: str | None, inside: str | None
) -> int:
    """Authorize an access of a reader's condition: the view of all, `main.metadata`, is not the reader's."""
    if action == sqlite3.SQLITE_READ and first == _VIEW and database != "temp":
        return sqlite3.SQLITE_DENY
    return _allowed(action, first, second, database, inside)


@contextmanager
def _translated(database: Path, condition: Condition, seconds: float) -> Iterator[None]:
    """Turn SQLite's errors into ours: BadCondition for the user's faults, else TookTooLong, Busy or DatabaseDamaged."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            clocks.check()
            raise TookTooLong(
                f"the answer took more than {seconds:g} s; narrow the condition or give a limit"
            ) from None
        if code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH):
            raise BadCondition(_explained(str(error), database, condition)) from None
        raise as_told_to_readers(database, error) from None
    except (sqlite3.Warning, sqlite3.ProgrammingError) as error:
        raise BadCondition(_explained(str(error), database, condition)) from None


def _explained(message: str, database: Path, condition: Condition) -> str:
    """Return SQLite's message with the place of the fault."""
    with closing(connected(database)) as connection:
        _fence(connection, SECONDS)

        def compiled(where: str, order_by: str) -> str:
            try:
                connection.execute(_statement("metadata/explain_places", Condition(where, order_by, 0)))
            except (sqlite3.Error, sqlite3.Warning) as error:
                return str(error)
            return ""

        return explain(message, condition.where, condition.order_by, compiled)
