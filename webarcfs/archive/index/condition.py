"""Conditions as people write them in one piece, `… ORDER BY … LIMIT n` with or without the last two, and as file names.

Taken apart here, understood by SQLite (asking.py). Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from webarcfs.archive.index.condition_errors import QUOTED
from webarcfs.archive.model.errors import BadCondition

_ORDER_BY = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)
_LIMIT = re.compile(r"\bLIMIT\b", re.IGNORECASE)
_NUMBER = re.compile(r"\s*([0-9]{1,12})\s*")
# A slash, and what stands for one, however often it was written around.
_SLASH = re.compile(r"/|%(?:25)*2[Ff]")
# What begins something quoted; SQLite reads the first that is never closed to the end of all.
_OPENS = re.compile(r"""['"`\[]""")


@dataclass(frozen=True, slots=True)
class Condition:
    """The parts of a condition; without a limit it is None."""

    where: str
    order_by: str = ""
    limit: int | None = None


def parse(text: str) -> Condition:
    """Take a condition apart. Raises BadCondition for a limit that is no number; the rest is SQLite's to judge."""
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


def from_name(name: str) -> str:
    """The text that a file's name stands for: `%2F` is a slash, `%252F` is `%2F`; no other `%` means anything.

    So `LIKE '%25%'` is what it looks like, and every text has a name.
    """
    return _SLASH.sub(lambda found: "/" if len(found[0]) <= 3 else f"%{found[0][3:]}", name)


def open_quote(text: str) -> str:
    """The quote, `'` or `"`, within which a text ends: what is not closed yet. Empty when there is none.

    What follows a slash there is judged by that quote alone: `open_quote(f"{quote}/{more}")`.
    """
    never_closed = _OPENS.search(QUOTED.sub(" ", text))
    return never_closed[0] if never_closed and never_closed[0] in "'\"" else ""


def to_name(text: str) -> str:
    """A name for a text: what `from_name` turns into it."""
    return _SLASH.sub(lambda found: "%2F" if found[0] == "/" else f"%25{found[0][1:]}", text)


def _outside(text: str) -> str:
    """`text` with blanks for what is quoted, a comment, or in brackets; each character stays in its place."""
    depth, shown = 0, []
    for char in QUOTED.sub(lambda found: " " * len(found[0]), text):
        depth = max(0, depth - (char == ")"))
        shown.append(" " if depth or char == ")" else char)
        depth += char == "("
    return "".join(shown)
