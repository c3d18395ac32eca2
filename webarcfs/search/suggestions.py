"""Spellings that would find something, where a search finds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from tantivy import Query

from webarcfs.archive.system import deadline
from webarcfs.search.index import IndexReader
from webarcfs.search.query_language import All, Any, Expression, Words

#: Letters that a suggestion shares with the word, terms that are compared, and how like they must be.
_SHARED, _COMPARED, _ALIKE = 2, 5_000, 0.7
_MOST_WORDS = 8


def suggestion(reader: IndexReader, expression: Expression, visible: Query) -> str:
    """Return words to search instead; empty if none are alike. Only documents of `visible` give words."""
    words = [each for each in _words(expression) if len(each.terms) == 1 and not each.beginning][:_MOST_WORDS]
    found = []
    changed = False
    for each in words:
        term = each.terms[0]
        better = term if _has(reader, term, visible) else _nearest(reader, term, visible)
        changed |= better != term
        found.append(better)
    return " ".join(found) if changed else ""


def _words(expression: Expression) -> Iterator[Words]:
    match expression:
        case Words():
            yield expression
        case All(inner) | Any(inner):
            for each in inner:
                yield from _words(each)


def _has(reader: IndexReader, term: str, visible: Query) -> bool:
    found = reader.similar("body", term, visible, 1)
    return bool(found) and found[0][0] == term


def _nearest(reader: IndexReader, term: str, visible: Query) -> str:
    best, most = term, (_ALIKE, 0)
    for each, count in reader.similar("body", term[:_SHARED], visible, _COMPARED):
        deadline.check()
        if abs(len(each) - len(term)) <= _SHARED:
            weight = (SequenceMatcher(None, term, each).ratio(), count)
            if count and weight > most:
                best, most = each, weight
    return best
