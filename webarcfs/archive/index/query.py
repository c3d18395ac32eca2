"""Queries webarc.db for users: with a condition and an order of theirs, nothing else (/Cl-6/, /Db-5.2/).

The condition is SQL from any user. So the connection is read-only, an authorizer allows reads of the view `metadata`
only and no function that reaches outside it, SQLite's own limits bound its size, and a clock bounds its time.

SQLite looks at the clock between two steps and between two rows, never inside a function. So the bounds of values and
patterns are such that none takes more than a second; `trim` with characters, which could take half a minute, is ours.

A condition is one text, `… ORDER BY … LIMIT n`, where the last two are optional, and may be the name of a file.

It is split here, and interpreted by SQLite. A fault is SQLite's message, with the place marked, and a
suggestion. SQLite names the word at the fault, which may occur in a condition several times, or be one of ours after
it. So the condition is compiled again, cut at each of them: up to the place of the fault SQLite reads on to the cut.
"""

from __future__ import annotations

import difflib
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webarcfs.archive.config.directory import sql
from webarcfs.archive.index.sqlite_file import STEPS_BETWEEN_LOOKS, as_told_to_readers, rolled_back, version_of
from webarcfs.archive.model.errors import BadCondition, Busy, DatabaseDamaged, NotFound, TookTooLong
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, FIELDS, MetaData
from webarcfs.archive.system import clocks

# == condition errors, pure ===========================================================================================


#: Text that SQLite does not read as words: literals, quoted names, comments (sqlite.org/lang_expr, lang_comment). An
#: unclosed bracket extends to the end, so that no other one is searched: a condition may be a million of them.
QUOTED = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*(?:\]|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)""", re.DOTALL
)
_NEAR = re.compile(r'near "(.*)": syntax error', re.DOTALL)
_UNRECOGNIZED = re.compile(r'unrecognized token: "(.*)"', re.DOTALL)
_NAME = re.compile(
    r"(?:no such (?:column|function|table): |ambiguous column name: |to use function: |"
    r"arguments to function |misuse of (?:aggregate|window function)(?: function)?:? |access to )([^\s()]+)"
)
_COLUMNS = (*FIELDS, *CAPTURE_FIELDS)
_BRACKET = re.compile("[()]")
# Not a word of SQL: SQLite stops at it wherever it reads it.
_CUT = "\x01"
_MOST_PLACES = 100
_BEFORE, _BEHIND = 70, 30
_LONGEST = 300

#: Compiles a condition and an order, and returns SQLite's message; an empty text if there is none.
Compile = Callable[[str, str], str]


def explain(message: str, where: str, order_by: str, compiled: Compile) -> str:
    """Return SQLite's message with help: the place in the condition, a similar column, what is allowed."""
    lines = [message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"]
    if match := _UNRECOGNIZED.search(message):
        lines = _of_token(match[1], where, order_by)
    elif match := _NEAR.search(message):
        lines += _of_syntax(match[1], where, order_by, compiled)
    elif message.startswith("incomplete input"):
        lines += [*_marked(order_by or where, len(order_by or where)), "it ends too early"]
    elif message.startswith("You can only execute one statement"):
        lines += _first(re.compile(";"), where, order_by)
    elif "number of bindings" in message:
        lines = ["a name behind ?, :, @ or $ stands for nothing here", *_first(re.compile(r"[?:@$]"), where, order_by)]
    elif match := _NAME.search(message):
        lines += _of_name(match[1], where, order_by)
    if "prohibited" in message or "not authorized" in message:
        lines[0] += ": a condition may use the columns of the view metadata and plain functions, nothing else"
    if message.startswith("no such column"):
        close = difflib.get_close_matches(match[1] if match else "", _COLUMNS, 1, 0.5)
        lines.append(f"did you mean {close[0]}?" if close else f"the columns are {', '.join(_COLUMNS)}")
        lines.append("a text stands in single quotes: mimeType = 'text/html'")
    return "\n".join(lines)


def unbalanced(where: str, order_by: str) -> list[str]:
    """Report the first `)` that no `(` of its part opened, or an unclosed `/*`; return an empty list if there is none.

    SQLite cannot find them: it reads the condition inside a bracket of ours, and its order before a limit of ours.
    """
    for text in (where, order_by):
        depth = 0
        for bracket in _BRACKET.finditer(_blanked(text)):
            depth += 1 if bracket[0] == "(" else -1
            if depth < 0:
                return ["a ) closes what was not opened", *_marked(text, bracket.start())]
        for quoted in QUOTED.finditer(text):
            if quoted[0].startswith("/*") and not quoted[0].endswith("*/", 2):
                return ["this comment is never closed", *_marked(text, quoted.start())]
    return []


def _of_syntax(token: str, where: str, order_by: str, compiled: Compile) -> list[str]:
    """Return the place of the word that SQLite names: the last one at which it complains of a cut."""
    places = [(part, at) for part, text in enumerate((where, order_by)) for at in _ends_and(token, text)]
    if len(places) > _MOST_PLACES:
        return []
    reached = None
    for part, at in places:
        cut = (where, order_by[:at] + _CUT) if part else (where[:at] + _CUT, order_by)
        if _CUT in compiled(*cut):
            reached = part, at
    if reached is None:
        return []
    part, at = reached
    text = (where, order_by)[part]
    return [*_marked(text, at), *(["it ends too early"] if at == len(text) else [])]


def _ends_and(token: str, text: str) -> Iterator[int]:
    """Yield the places of `token` in a text, and its end, after which a word of ours follows."""
    if token:
        yield from (match.start() for match in re.finditer(re.escape(token), text))
    if text:
        yield len(text)


def _of_token(token: str, where: str, order_by: str) -> list[str]:
    """Return the place of what SQLite cannot read as a word: mostly an unclosed quote, which extends to the end."""
    for text in (where, order_by):
        for at in range(len(text)):
            if text[at] == token[:1] and (text.startswith(token, at) or token.startswith(text[at:])):
                excerpt = text[at : at + len(token)]
                never = (
                    ["this quote is never closed"] if excerpt[0] in "'\"`[" and not text.startswith(token, at) else []
                )
                short = excerpt.partition("\n")[0][:60]
                return [f'unrecognized token: "{short}"', *_marked(text, at), *never]
    return ["unrecognized token"]


def _of_name(name: str, where: str, order_by: str) -> list[str]:
    """Return the first place of a name outside of literals and comments: the fault is the same at each."""
    for wanted in (name, *reversed(name.split("."))):
        lines = _first(re.compile(rf"(?<![\w.]){re.escape(wanted)}(?!\w)", re.IGNORECASE), where, order_by)
        if lines:
            return lines
    return []


def _first(pattern: re.Pattern[str], where: str, order_by: str) -> list[str]:
    for text in (where, order_by):
        if match := pattern.search(_blanked(text)):
            return _marked(text, match.start())
    return []


def _blanked(text: str) -> str:
    """Return a text with spaces in place of what SQLite does not read as words."""
    return QUOTED.sub(lambda match: " " * len(match[0]), text)


def _marked(text: str, at: int) -> list[str]:
    """Return the line of a text around a place, and a mark below it."""
    start = max(text.rfind("\n", 0, at) + 1, at - _BEFORE)
    end = text.find("\n", at)
    end = min(len(text) if end < 0 else end, at + _BEHIND)
    shown = re.sub(r"[\x00-\x1f\x7f]", " ", text[start:end])
    return [f"  {shown}", f"  {' ' * (at - start)}^"]


# == condition, pure ==================================================================================================


_ORDER_BY = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)
_LIMIT = re.compile(r"\bLIMIT\b", re.IGNORECASE)
_NUMBER = re.compile(r"\s*([0-9]{1,12})\s*")
# A slash, and its escaped forms at any depth.
_SLASH = re.compile(r"/|%(?:25)*2[Ff]")
# The beginning of quoted text; SQLite reads from the first that is never closed to the end of all.
_OPENS = re.compile(r"""['"`\[]""")


#: The columns whose values a question may be narrowed to before anything else is asked.
COLUMNS = ("url", "path", "domain", "commitTag")
_EQUALITY = re.compile(r"\s*([A-Za-z]+)\s*==?\s*'([^']*(?:''[^']*)*)'\s*", re.ASCII)
_AND = re.compile(r"AND\b", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class DocumentOrigin:
    """Where documents come from: the domain that they are of, the publication whose crawl stored them; empty: any."""

    domain: str = ""
    publication: str = ""

    @property
    def is_any(self) -> bool:
        """Whether it leaves out nothing."""
        return not self.domain and not self.publication


ANY_ORIGIN = DocumentOrigin()


@dataclass(frozen=True, slots=True)
class Condition:
    """The parts of a condition; `limit` is None without one. `origin` is not in its text: an option gives it."""

    where: str
    order_by: str = ""
    limit: int | None = None
    origin: DocumentOrigin = ANY_ORIGIN


def parse(text: str) -> Condition:
    """Split a condition. Raises BadCondition for a limit that is no number; SQLite checks the rest."""
    words = _outside(text)
    end, limit = len(text), None
    if match := _LIMIT.search(words):
        number = _NUMBER.fullmatch(words, match.end())
        if number is None:
            raise BadCondition("after LIMIT comes a number, and nothing after that")
        end, limit = match.start(), int(number[1])
    order = _ORDER_BY.search(words, 0, end)
    if order is None:
        return Condition(text[:end].strip(), "", limit)
    return Condition(text[: order.start()].strip(), text[order.end() : end].strip(), limit)


def equalities(where: str) -> dict[str, str]:
    """Return the text that each of the columns must equal: of terms `column = 'text'` joined by AND.

    Nothing of a condition that has any other term: what is returned holds for each row of the answer.
    """
    columns = {column.lower(): column for column in COLUMNS}
    values: dict[str, str] = {}
    at = 0
    while (term := _EQUALITY.match(where, at)) and (column := columns.get(term[1].lower())):
        values.setdefault(column, term[2].replace("''", "'"))
        if term.end() == len(where):
            return values
        joined = _AND.match(where, term.end())
        if joined is None:
            break
        at = joined.end()
    return {}


def from_name(name: str) -> str:
    """Return the text of a file's name: `%2F` is a slash, `%252F` is `%2F`; any other `%` means itself.

    So `LIKE '%25%'` is literal, and every text has a name.
    """
    return _SLASH.sub(lambda match: "/" if len(match[0]) <= 3 else f"%{match[0][3:]}", name)


def open_quote(text: str) -> str:
    """Return the unclosed quote, `'` or `"`, inside which a text ends; empty if there is none.

    Text after a slash there depends on that quote only: `open_quote(f"{quote}/{more}")`.
    """
    never_closed = _OPENS.search(QUOTED.sub(" ", text))
    return never_closed[0] if never_closed and never_closed[0] in "'\"" else ""


def to_name(text: str) -> str:
    """Return the name of a text: the inverse of `from_name`."""
    return _SLASH.sub(lambda match: "%2F" if match[0] == "/" else f"%25{match[0][1:]}", text)


def _outside(text: str) -> str:
    """Return `text` with blanks for quoted text, comments and brackets; each character keeps its position."""
    depth, shown = 0, []
    for char in QUOTED.sub(lambda match: " " * len(match[0]), text):
        depth = max(0, depth - (char == ")"))
        shown.append(" " if depth or char == ")" else char)
        depth += char == "("
    return "".join(shown)


# == query ============================================================================================================


#: Most seconds for an answer.
SECONDS = 30.0
_VIEW = "metadata"
_COMES_WITH_THE_VIEW = frozenset({"domain", "snapshot", "document", "version", "reader_snapshot", "wanted"})
#: Functions of a reader's view, for it alone.
_READERS_FUNCTIONS = frozenset({"saw", "permitted", "named"})
#: Prepares a connection for a reader: from then on `metadata` is a view of what the reader may see, of one origin. It
#: may leave out rows that do not have the values of the mapping, by column.
Narrowed = Callable[[sqlite3.Connection, Mapping[str, str], DocumentOrigin], None]
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
    origin: DocumentOrigin = ANY_ORIGIN,
) -> Iterator[MetaData]:
    """Yield the rows of the view `metadata` for which `where` holds, in the order `order_by`, at most `limit`.

    `narrowed` leaves the rows that a reader may see; then a condition has no SELECT of its own, which could count rows.
    `origin` leaves the rows that come from there.

    Raises BadCondition when SQLite rejects the condition or it reads more than the view, TookTooLong after `seconds`,
    NotFound without a database, Busy while another process writes to it for long, DatabaseDamaged when it cannot be
    read.
    """
    for row in _rows(database, "metadata/ask", Condition(where, order_by, limit, origin), seconds, narrowed):
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
            narrowed(connection, equalities(condition.where), condition.origin)
        elif not condition.origin.is_any:
            _show_origin(connection, condition.origin)
        _fence(connection, seconds)
        if narrowed is not None:
            connection.set_authorizer(_allowed_to_readers)
        yield from connection.execute(text)


def _show_origin(connection: sqlite3.Connection, origin: DocumentOrigin) -> None:
    """Make the view `metadata` of a connection that of what comes from somewhere."""
    connection.execute(sql("gate/wanted"))
    connection.execute(sql("gate/insert_wanted"), wanted_values({}, origin))
    domain = sql("gate/equal_domain") if origin.domain else ""
    publication = sql("metadata/stored_by") if origin.publication else ""
    connection.execute(f"{sql('metadata/origin_view')}{domain}{publication}")


def wanted_values(equal: Mapping[str, str], origin: DocumentOrigin) -> dict[str, str | None]:
    """Return the row of the table of values to which a question is narrowed."""
    values = {column: equal.get(column) for column in COLUMNS}
    return values | {"domain": origin.domain or values["domain"], "publication": origin.publication}


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
