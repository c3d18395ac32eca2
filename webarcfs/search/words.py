"""Text as words, the same for documents and for questions. Pure.

A word is a run of letters, digits and the marks on them. Case, accents and forms of one letter make no difference
(Unicode's NFKD without marks, and case folding). Chinese, Japanese and Korean text, which has no spaces, becomes pairs
of neighbours, and its last character alone: so each run of it is found as a phrase of pairs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

#: Characters of a word that count: the rest of a longer one is left out, of documents and questions.
LONGEST_WORD = 200
#: Latin, Greek and Cyrillic accents, and vowels of Hebrew and Arabic; marks of other scripts are letters, and stay.
_ACCENTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]+"
)
#: Invisible: joiners, soft hyphens, marks of direction.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200c-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]+"
)
#: Between two parts of a Persian word stands a space, or this non-joiner.
_PERSIAN = re.compile("(?<=[\u0600-\u06ff])\u200c")
_WITHOUT_SPACES = (
    "\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_CJK = re.compile(f"[{_WITHOUT_SPACES}]+")
_ASCII_WORDS = str.maketrans({number: " " for number in range(128) if not chr(number).isalnum()})


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text: its terms, as the index has them, and its place in the text."""

    terms: tuple[str, ...]
    begin: int
    end: int


def terms_of(text: str) -> str:
    """Return the terms of a text, in order, with spaces between: what the index is given."""
    if text.isascii():
        plain = text.translate(_ASCII_WORDS).lower()
        return plain if len(plain) <= LONGEST_WORD else " ".join(each[:LONGEST_WORD] for each in plain.split())
    plain = _folded(text)
    runs = _runs(plain)
    if _CJK.search(plain) is None:
        return " ".join([each[:LONGEST_WORD] for each in runs])
    return " ".join(term for run in runs for term in _terms(run))


def words_of(text: str) -> Iterator[Word]:
    """Yield the words of a text with their places, to mark them in it."""
    for found in _written().finditer(text):
        terms = terms_of(found[0]).split()
        if terms:
            yield Word(tuple(terms), found.start(), found.end())


def natural(text: str) -> str:
    """Return the words of a text in lower case with their accents, with spaces between: what stemmers need."""
    if text.isascii():
        return terms_of(text)
    plain = unicodedata.normalize("NFC", _INVISIBLE.sub("", text)).lower()
    return " ".join(each[:LONGEST_WORD] for each in _runs(plain))


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", _INVISIBLE.sub("", _PERSIAN.sub(" ", text))).casefold()
    # Folding may bring accents back (of a capital İ), and only composed syllables are Korean ones.
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", plain)))


def _runs(text: str) -> list[str]:
    return _pattern().findall(text)


def _terms(run: str) -> Iterator[str]:
    """Yield the terms of a run of word characters."""
    end = 0
    for found in _CJK.finditer(run):
        if found.start() > end:
            yield run[end : found.start()][:LONGEST_WORD]
        chars = found[0]
        yield from (chars[at : at + 2] for at in range(len(chars)))
        end = found.end()
    if end < len(run):
        yield run[end:][:LONGEST_WORD]


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    """Return the pattern of a run of word characters. Python's \\w has no marks, and the underscore."""
    return re.compile(f"(?:[^\\W_]|[{_marks()}])+")


@lru_cache(maxsize=1)
def _written() -> re.Pattern[str]:
    """Return the same for a text that is not folded yet: also signs that become letters, as № and ㈀ do."""
    signs = "".join(chr(each) for span in _SIGNS for each in span if _is_sign(chr(each)))
    return re.compile(f"(?:[^\\W_]|[{_marks()}{signs}])+")


def _marks() -> str:
    marks = ["\u00ad"]
    first = None
    for number in range(0x300, 0x11A00):
        is_mark = unicodedata.category(chr(number))[0] == "M" or number in (0x200C, 0x200D)
        if is_mark and first is None:
            first = number
        elif not is_mark and first is not None:
            marks.append(f"{chr(first)}-{chr(number - 1)}")
            first = None
    return "".join(marks)


#: Where Unicode has signs that stand for letters.
_SIGNS = (range(0x80, 0x3400), range(0xF900, 0x10000), range(0x1F100, 0x1F300))


def _is_sign(char: str) -> bool:
    """Return whether a character is no letter, and becomes letters or digits when it is folded."""
    return re.match(r"\w", char) is None and re.search(r"[^\W_]", unicodedata.normalize("NFKD", char)) is not None
