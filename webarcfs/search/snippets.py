"""The piece of a text around the words of a search, with the places of the words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from webarcfs.search.query_language import After, All, Any, Before, Expression, Language, Not, Site, Type, Words
from webarcfs.search.words import Word, words_of

#: Characters of a snippet, and those of a text in which words are looked for.
LENGTH, _LOOKED_AT = 240, 200_000
#: Found words that are weighed.
_MOST = 200


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a text on one line, and the places (begin, end) of the words that were found in it."""

    text: str = ""
    marks: tuple[tuple[int, int], ...] = ()


#: Whether a word is one that was searched.
Wanted = Callable[[Word, str], bool]


def wanted(expression: Expression, root: Callable[[str], str]) -> Wanted:
    """Return whether a word of a text is one of a search. `root` is the stem of a word in the language of the text."""
    words = list(_positive(expression))
    terms = {term for each in words for term in (each.terms[:-1] if each.beginning else each.terms)}
    beginnings = tuple(each.terms[-1] for each in words if each.beginning)
    roots = {root(each.natural) for each in words if each.natural} - {""}

    def is_wanted(word: Word, text: str) -> bool:
        if any(term in terms or (beginnings and term.startswith(beginnings)) for term in word.terms):
            return True
        return bool(roots) and root(text[word.begin : word.end]) in roots

    return is_wanted


def snippet(text: str, is_wanted: Wanted) -> Snippet:
    """Return the piece of a text with most different words of a search; its beginning without any."""
    text = text[:_LOOKED_AT]
    found: list[tuple[int, int, str]] = []
    for word in words_of(text):
        if is_wanted(word, text):
            found.append((word.begin, word.end, word.terms[0]))
            if len(found) == _MOST:
                break
    begin = _best(found)
    end = min(len(text), begin + LENGTH)
    begin, end = _at_words(text, begin, end)
    return _on_one_line(text, begin, end, [(first, last) for first, last, _ in found if begin <= first and last <= end])


def _positive(expression: Expression) -> Iterator[Words]:
    match expression:
        case Words():
            yield expression
        case All(inner) | Any(inner):
            for each in inner:
                yield from _positive(each)
        case Not() | Site() | Type() | Language() | Before() | After():
            return


def _best(found: list[tuple[int, int, str]]) -> int:
    """Return the place at which the snippet begins: a little before the words that lie closest together."""
    best, most = 0, -1
    for at, (begin, _, _) in enumerate(found):
        inside = {term for first, last, term in found[at : at + 40] if last <= begin + LENGTH - LENGTH // 4}
        if len(inside) > most:
            best, most = begin, len(inside)
    return max(0, best - LENGTH // 4) if found else 0


def _at_words(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return the place without halves of words at both ends, unless they are long."""
    if begin:
        space = text.find(" ", begin, begin + LENGTH // 6)
        begin = space + 1 if space >= 0 else begin
    if end < len(text):
        space = text.rfind(" ", end - LENGTH // 6, end)
        end = space if space >= 0 else end
    return begin, end


def _on_one_line(text: str, begin: int, end: int, places: list[tuple[int, int]]) -> Snippet:
    """Return a piece with its white space folded, and the places in that."""
    parts: list[str] = ["… "] if begin else []
    marks, length, at = [], 2 if begin else 0, begin
    for first, last in [*places, (end, end)]:
        between = " ".join(text[at:first].split())
        if between and at > begin and text[at].isspace():
            between = f" {between}"
        if first < end and first > at and text[first - 1].isspace() and (between or at > begin):
            between += " "
        parts.append(between)
        length += len(between)
        word = "".join(text[first:last].split())
        if word:
            marks.append((length, length + len(word)))
            parts.append(word)
            length += len(word)
        at = last
    if end < len(text):
        parts.append(" …")
    return Snippet("".join(parts), tuple(marks))
