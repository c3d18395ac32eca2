"""Expressions of a search as queries of the index, for documents and for those that a state or a reader allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tantivy import FieldType, Occur, Query, Schema

from webarcfs.search.index import FIELDS, STEMMERS, STEMS, stem, stem_term
from webarcfs.search.kinds import KINDS
from webarcfs.search.query_language import (
    After,
    All,
    Any,
    Before,
    Expression,
    Language,
    Not,
    Part,
    Site,
    Type,
    Words,
)

#: The weight of a word in each part; of another form of it, half of that.
_WEIGHTS = {Part.TITLE: 4.0, Part.HEADINGS: 2.0, Part.TEXT: 1.0, Part.DESCRIPTION: 1.0, Part.URL: 0.5}
_STEM_WEIGHT = 0.5
#: The parts of which other forms are found.
_STEMMED = (Part.TEXT, Part.TITLE, Part.DESCRIPTION)
#: More values than this are one query of a set, which looks each up once.
_FEW = 4


class Translator:
    """Makes queries for one index. `languages` are those in which other forms of words are searched."""

    def __init__(
        self, schema: Schema, languages: Iterable[str] = STEMMERS, *, exact: bool = False, of_all: bool = True
    ) -> None:
        """With `exact`, only the words as they are written are found.

        Without `of_all`, a document's score comes from itself alone: which words it has, and in which parts. The usual
        one (BM25) depends on how frequent the words are in all documents, and how long these are; also in those that
        the asker may not see, which the order would tell.
        """
        self._schema = schema
        self._of_all = of_all
        self._languages = () if exact else tuple(languages)

    def query(self, expression: Expression) -> Query:  # noqa: PLR0911 # a line for each kind of expression
        """Return the query of an expression."""
        match expression:
            case Words():
                return self._words(expression)
            case Site(place):
                return self.term("site", place)
            case Type(name):
                return self._type(name)
            case Language(code):
                return self.term("language", code)
            case Before(time):
                return self.number("since", None, int(time.timestamp()) - 1)
            case After(time):
                return self.number("since", int(time.timestamp()), None)
            case Not(inner):
                return self.but(Query.all_query(), self.query(inner))
            case Any(inner):
                return self.any(*map(self.query, inner))
            case All(inner):
                return self._together(inner)

    def _together(self, inner: Sequence[Expression]) -> Query:
        wanted = [self.query(each) for each in inner if not isinstance(each, Not)]
        unwanted = [self.query(each.inner) for each in inner if isinstance(each, Not)]
        return self.but(self.all(*wanted), *unwanted)

    # -- words -------------------------------------------------------------------------------------------------------

    def _words(self, words: Words) -> Query:
        parts = list(_WEIGHTS) if words.part is Part.ANYWHERE else [words.part]
        found = [Query.boost_query(self._scored(self._in_field(FIELDS[part], words)), _WEIGHTS[part]) for part in parts]
        if words.natural and words.part in (Part.ANYWHERE, Part.TEXT):
            found += [Query.boost_query(self._scored(each), _STEM_WEIGHT) for each in self._other_forms(words)]
        return found[0] if len(found) == 1 else self.any(*found)

    def _scored(self, query: Query) -> Query:
        return query if self._of_all else Query.const_score_query(query, 1.0)

    def _other_forms(self, words: Words) -> Iterator[Query]:
        """Yield the queries of other forms of a word, by the languages of documents.

        A word that is its own stem is in its own fields alone, so a stem is looked for there, too.
        """
        roots: dict[str, list[str]] = {}
        for language in self._languages:
            if root := stem(words.natural, language):
                roots.setdefault(root, []).append(language)
                yield Query.term_query(self._schema, STEMS, stem_term(language, root), "freq")
        for root, languages in roots.items():
            if words.terms != (root,):
                places = [Query.term_query(self._schema, FIELDS[part], root) for part in _STEMMED]
                yield self.all(self.any(*places), self.terms("language", languages))

    def _in_field(self, field: str, words: Words) -> Query:
        terms = words.terms
        if words.beginning and len(terms) == 1:
            return Query.const_score_query(self.prefix(field, terms[0]), 1.0)
        if words.beginning:
            return Query.phrase_prefix_query(self._schema, field, [*terms])
        if len(terms) == 1 and len(terms[0]) == 1 and ord(terms[0]) > _CJK:  # each pair that begins with it
            return Query.const_score_query(self.prefix(field, terms[0]), 1.0)
        placed = _as_pairs(terms)
        if len(placed) == 1:
            return Query.term_query(self._schema, field, terms[0])
        return Query.phrase_query(self._schema, field, [*placed])

    def _type(self, name: str) -> Query:
        if name in KINDS:
            return self.term("kind", name)
        if name.endswith("/*"):
            return self.prefix("type", name[:-1])
        return self.term("type", name)

    # -- terms and numbers -------------------------------------------------------------------------------------------

    def term(self, field: str, value: str) -> Query:
        """Return the query of one value, without weight."""
        return Query.const_score_query(Query.term_query(self._schema, field, value, "basic"), 0.0)

    def terms(self, field: str, values: Sequence[str]) -> Query:
        """Return the query of any of some values, without weight."""
        if not values:
            return Query.empty_query()
        if len(values) <= _FEW:
            return self.any(*(self.term(field, each) for each in values))
        return Query.const_score_query(Query.term_set_query(self._schema, field, [*values]), 0.0)

    def prefix(self, field: str, value: str) -> Query:
        """Return the query of all terms that begin so."""
        return Query.fuzzy_term_query(self._schema, field, value, distance=0, prefix=True)

    def number(self, field: str, least: int | None, most: int | None) -> Query:
        """Return the query of numbers from `least` to `most`, without weight."""
        found = Query.range_query(self._schema, field, FieldType.Integer, least, most)
        return Query.const_score_query(found, 0.0)

    @staticmethod
    def all(*queries: Query) -> Query:
        """Return the query of what all of them have; of everything without any."""
        if not queries:
            return Query.all_query()
        return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Must, each) for each in queries])

    @staticmethod
    def any(*queries: Query) -> Query:
        """Return the query of what one of them has; of nothing without any."""
        if not queries:
            return Query.empty_query()
        return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, each) for each in queries])

    @staticmethod
    def but(query: Query, *unwanted: Query) -> Query:
        """Return the query of what the first has, and none of the others."""
        if not unwanted:
            return query
        return Query.boolean_query([(Occur.Must, query), *((Occur.MustNot, each) for each in unwanted)])


_CJK = 0x3000


def _as_pairs(terms: tuple[str, ...]) -> list[tuple[int, str]]:
    """Return the terms of a phrase with their places, but for the last character of each run of pairs.

    In a document it stands alone only at the end of a run.
    """
    return [(at, term) for at, term in enumerate(terms) if not (at and _ends_pair(terms[at - 1], term))]


def _ends_pair(pair: str, term: str) -> bool:
    return len(term) == 1 and ord(term) > _CJK and len(pair) == len("京都") and pair[1] == term
