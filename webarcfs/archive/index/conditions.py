"""Conditions in one text, `… ORDER BY … LIMIT n`, where the last two are optional, and as file names; and their faults.

They are split here, and interpreted by SQLite (query.py). A fault is SQLite's message, with the place marked, and a
suggestion. SQLite names the word at the fault, which may occur in a condition several times, or be one of ours after
it. So the condition is compiled again, cut at each of them: up to the place of the fault SQLite reads on to the cut.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from webarcfs.archive.model.errors import BadCondition
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, FIELDS

# == condition errors =================================================================================================


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
class Condition:
    """The parts of a condition; `limit` is None without one."""

    where: str
    order_by: str = ""
    limit: int | None = None


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
