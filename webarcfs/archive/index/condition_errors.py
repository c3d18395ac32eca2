"""Explains faults of conditions: SQLite's message, with the place marked, and a suggestion.

SQLite names the word at the fault, which may occur in a condition several times, or be one of ours after it. So the
condition is compiled again, cut at each of them: up to the place of the fault SQLite reads on to the cut.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator

from webarcfs.archive.model.metadata import CAPTURE_FIELDS, FIELDS

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
    if found := _UNRECOGNIZED.search(message):
        lines = _of_token(found[1], where, order_by)
    elif found := _NEAR.search(message):
        lines += _of_syntax(found[1], where, order_by, compiled)
    elif message.startswith("incomplete input"):
        lines += [*_marked(order_by or where, len(order_by or where)), "it ends too early"]
    elif message.startswith("You can only execute one statement"):
        lines += _first(re.compile(";"), where, order_by)
    elif "number of bindings" in message:
        lines = ["a name behind ?, :, @ or $ stands for nothing here", *_first(re.compile(r"[?:@$]"), where, order_by)]
    elif found := _NAME.search(message):
        lines += _of_name(found[1], where, order_by)
    if "prohibited" in message or "not authorized" in message:
        lines[0] += ": a condition may use the columns of the view metadata and plain functions, nothing else"
    if message.startswith("no such column"):
        close = difflib.get_close_matches(found[1] if found else "", _COLUMNS, 1, 0.5)
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
                told = text[at : at + len(token)]
                never = ["this quote is never closed"] if told[0] in "'\"`[" and not text.startswith(token, at) else []
                short = told.partition("\n")[0][:60]
                return [f'unrecognized token: "{short}"', *_marked(text, at), *never]
    return ["unrecognized token"]


def _of_name(name: str, where: str, order_by: str) -> list[str]:
    """Return the first place of a name outside of literals and comments: the fault is the same at each."""
    for wanted in (name, *reversed(name.split("."))):
        found = _first(re.compile(rf"(?<![\w.]){re.escape(wanted)}(?!\w)", re.IGNORECASE), where, order_by)
        if found:
            return found
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
