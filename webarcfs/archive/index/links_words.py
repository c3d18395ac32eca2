"""Links as values: their kinds, and the words that name them with case and accents folded. Pure."""

from __future__ import annotations

import re
import unicodedata
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

#: Characters of a word that count, and the most different words of one text: they bound the rows.
LONGEST_WORD = 64
MOST_WORDS = 64
_WORD = re.compile(r"[^\W_]+")


class AskedKind(IntEnum):
    """The kind of a link's target; links.db stores the numbers."""

    HTTP = 1
    MAIL = 2
    IMAGE = 3

    __hash__ = int.__hash__  # an enum's own is a Python function, and links are looked up by the million


class ArchivedLink(NamedTuple):
    """A link of a page: its target (a canonical URL, or `mailto:` and an address), and the text that names it.

    `window` is what HTML calls the target of a link: the name of the window or frame that it opens in.
    """

    kind: AskedKind
    target: str
    text: str
    window: str = ""


def words_of(text: str) -> tuple[str, ...]:
    """Return the different words of a text, without case and accents, in order: `Über-Größe` is `uber` and `grosse`."""
    folded = _folded(text)
    words = _WORD.findall(folded)
    if len(folded) > LONGEST_WORD:
        words = [word[:LONGEST_WORD] for word in words]
    return tuple(dict.fromkeys(words))[:MOST_WORDS]


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return "".join(map(_plain, unicodedata.normalize("NFKC", text))).casefold()


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    """Return a character without its accents; empty for a mark alone. NFKD puts marks after their character."""
    # Only for scripts whose accents people omit in a search: marks of Indic scripts are vowels.
    return "".join(each for each in unicodedata.normalize("NFKD", char) if not "\u0300" <= each <= "\u036f")
