"""Conditions in one text, `… ORDER BY … LIMIT n`, where the last two are optional, and as file names.

Split here, interpreted by SQLite (query.py). Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from webarcfs.archive.index.condition_errors import QUOTED
from webarcfs.archive.model.errors import BadCondition

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
    if found := _LIMIT.search(words):
        number = _NUMBER.fullmatch(words, found.end())
        if number is None:
            raise BadCondition("after LIMIT comes a number, and nothing after that")
        end, limit = found.start(), int(number[1])
    order = _ORDER_BY.search(words, 0, end)
    if order is None:
        return Condition(text[:end].strip(), "", limit)
    return Condition(text[: order.start()].strip(), text[order.end() : end].strip(), limit)


def equalities(where: str) -> dict[str, str]:
    """Return the text that each of the columns must equal: of terms `column = 'text'` joined by AND.

    Nothing of a condition that has any other term: what is returned holds for each row of the answer.
    """
    columns = {each.lower(): each for each in COLUMNS}
    found: dict[str, str] = {}
    at = 0
    while (term := _EQUALITY.match(where, at)) and (column := columns.get(term[1].lower())):
        found.setdefault(column, term[2].replace("''", "'"))
        if term.end() == len(where):
            return found
        joined = _AND.match(where, term.end())
        if joined is None:
            break
        at = joined.end()
    return {}


def from_name(name: str) -> str:
    """Return the text of a file's name: `%2F` is a slash, `%252F` is `%2F`; any other `%` means itself.

    So `LIKE '%25%'` is literal, and every text has a name.
    """
    return _SLASH.sub(lambda found: "/" if len(found[0]) <= 3 else f"%{found[0][3:]}", name)


def open_quote(text: str) -> str:
    """Return the unclosed quote, `'` or `"`, inside which a text ends; empty if there is none.

    Text after a slash there depends on that quote only: `open_quote(f"{quote}/{more}")`.
    """
    never_closed = _OPENS.search(QUOTED.sub(" ", text))
    return never_closed[0] if never_closed and never_closed[0] in "'\"" else ""


def to_name(text: str) -> str:
    """Return the name of a text: the inverse of `from_name`."""
    return _SLASH.sub(lambda found: "%2F" if found[0] == "/" else f"%25{found[0][1:]}", text)


def _outside(text: str) -> str:
    """Return `text` with blanks for quoted text, comments and brackets; each character keeps its position."""
    depth, shown = 0, []
    for char in QUOTED.sub(lambda found: " " * len(found[0]), text):
        depth = max(0, depth - (char == ")"))
        shown.append(" " if depth or char == ")" else char)
        depth += char == "("
    return "".join(shown)
