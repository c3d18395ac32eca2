"""Expressions of a search as queries of the index, for documents and for those that a state or a reader allows.

The filters inside a query are the versions of a state of the archive, and those that a reader may see. They agree with
the gate, for each version, and count what they show. What a reader sees is gathered from the gate, and again when
something may have changed. Nothing is reindexed when a record is released or a page withheld, since a filter names
snapshots and keys of URLs:

- Versions that began in a hidden snapshot are left out of the present; those that it ended are in it.
- A version is hidden for ever if its span lies between two open snapshots; such spans are listed, or given as numbers
  where they are many.
- A version with words that a browser showed is left out where the crawl that recorded them is hidden: it may be seen
  through a later one, and its words may not.
- On a domain whose publications saw only parts of its trees, and some of whose snapshots are hidden, the versions are
  asked one by one, and named.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tantivy import FieldType, Occur, Query, Schema

from webarcfs.access import access_rules
from webarcfs.access.access_rules import (
    Access,
    AccessRule,
    AccessRules,
    Open,
    Saw,
    Standing,
    VersionSpan,
    VisibleSnapshot,
    VisibleSpans,
    weight,
)
from webarcfs.access.gate import Gate
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.index import database
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.system import clocks
from webarcfs.search.index import FIELDS, STEMMERS, STEMS, stem, stem_term
from webarcfs.search.query_language import (
    After,
    All,
    Any,
    AskedRole,
    Before,
    CollectionCondition,
    DocumentPart,
    Expression,
    Language,
    Not,
    RoleCondition,
    Site,
    TypeCondition,
    Words,
)
from webarcfs.search.words import CURRENT, KINDS, LATER_PART, RESOURCE, WORDLESS, began, ended, key, span
from webarcfs.search.words import shown as shown_mark

# == translation ======================================================================================================


#: The weight of a word in each part; of another form of it, half of that.
_WEIGHTS = {
    DocumentPart.TITLE: 4.0,
    DocumentPart.HEADINGS: 2.0,
    DocumentPart.TEXT: 1.0,
    DocumentPart.DESCRIPTION: 1.0,
    DocumentPart.URL: 0.5,
}
_STEM_WEIGHT = 0.5
#: The parts of which other forms are found.
_STEMMED = (DocumentPart.TEXT, DocumentPart.TITLE, DocumentPart.DESCRIPTION)
#: More values than this are one query of a set, which looks each up once.
_FEW = 4


class Translator:
    """Makes queries for one index. `languages` are those in which other forms of words are searched."""

    def __init__(
        self,
        schema: Schema,
        languages: Iterable[str] = STEMMERS,
        *,
        exact: bool = False,
        of_all: bool = True,
        of_collection: Callable[[Translator, str], Query] = lambda _, __: Query.empty_query(),
    ) -> None:
        """With `exact`, only the words as they are written are found.

        Without `of_all`, a document's score comes from itself alone: which words it has, and in which parts. The usual
        one (BM25) depends on how frequent the words are in all documents, and how long these are; also in those that
        the asker may not see, which the order would show. `of_collection` returns the query of a collection.
        """
        self._schema = schema
        self._of_collection = of_collection
        self._of_all = of_all
        self._languages = () if exact else tuple(languages)

    def query(self, expression: Expression) -> Query:  # noqa: PLR0911 # a line for each kind of expression
        """Return the query of an expression."""
        match expression:
            case Words():
                return self._words(expression)
            case Site(place):
                return self.term("site", place)
            case TypeCondition(name):
                return self._type(name)
            case Language(code):
                return self.term("language", code)
            case RoleCondition(role):
                return self.role(role)
            case CollectionCondition(name):
                return self._of_collection(self, name)
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
        wanted = [self.query(expression) for expression in inner if not isinstance(expression, Not)]
        unwanted = [self.query(negation.inner) for negation in inner if isinstance(negation, Not)]
        return self.but(self.all(*wanted), *unwanted)

    # -- words -------------------------------------------------------------------------------------------------------

    def _words(self, words: Words) -> Query:
        parts = list(_WEIGHTS) if words.part is DocumentPart.ANYWHERE else [words.part]
        queries = [Query.boost_query(self._in_part(words, part), _WEIGHTS[part]) for part in parts]
        if words.natural and words.part in (DocumentPart.ANYWHERE, DocumentPart.TEXT):
            queries += [Query.boost_query(self._scored(query), _STEM_WEIGHT) for query in self._other_forms(words)]
        return queries[0] if len(queries) == 1 else self.any(*queries)

    def _in_part(self, words: Words, part: DocumentPart) -> Query:
        """Return the query of words in one part. An address counts for `anywhere` where there are no other words."""
        query = self._scored(self._in_field(FIELDS[part], words))
        is_address = part is DocumentPart.URL and words.part is DocumentPart.ANYWHERE
        return self.all(query, self.term("mark", WORDLESS)) if is_address else query

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

    def role(self, role: AskedRole) -> Query:
        """Return the query of the documents of a role."""
        if role is AskedRole.ANY:
            return Query.all_query()
        resources = self.term("mark", RESOURCE)
        return resources if role is AskedRole.RESOURCE else self.but(Query.all_query(), resources)

    # -- terms and numbers -------------------------------------------------------------------------------------------

    def term(self, field: str, value: str) -> Query:
        """Return the query of one value, without weight."""
        return Query.const_score_query(Query.term_query(self._schema, field, value, "basic"), 0.0)

    def terms(self, field: str, values: Sequence[str]) -> Query:
        """Return the query of any of some values, without weight."""
        if not values:
            return Query.empty_query()
        if len(values) <= _FEW:
            return self.any(*(self.term(field, value) for value in values))
        return Query.const_score_query(Query.term_set_query(self._schema, field, [*values]), 0.0)

    def places(self, places: Iterable[int]) -> Query:
        """Return the query of the versions at any of some places, without weight."""
        numbers = [*places]
        if not numbers:
            return Query.empty_query()
        return Query.const_score_query(Query.term_set_query(self._schema, "place", numbers), 0.0)

    def urls(self, urls: Iterable[UrlKey]) -> Query:
        """Return the query of the versions of some URLs, without weight."""
        queries = [
            self.prefix("rule_key", url.key) if url.is_beginning else self.term("rule_key", url.key) for url in urls
        ]
        return Query.const_score_query(self.any(*queries), 0.0)

    def prefix(self, field: str, value: str) -> Query:
        """Return the query of all terms that begin so."""
        return Query.fuzzy_term_query(self._schema, field, value, distance=0, prefix=True)

    def contained(self, seq: int) -> Query:
        """Return the query of what a snapshot has, whatever its domain."""
        return self.all(self.number("since", None, seq), self.number("until", seq + 1, None))

    def number(self, field: str, least: int | None, most: int | None) -> Query:
        """Return the query of numbers from `least` to `most`, without weight."""
        query = Query.range_query(self._schema, field, FieldType.Integer, least, most)
        return Query.const_score_query(query, 0.0)

    @staticmethod
    def all(*queries: Query) -> Query:
        """Return the query of what all of them have; of everything without any."""
        if not queries:
            return Query.all_query()
        return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Must, query) for query in queries])

    @staticmethod
    def any(*queries: Query) -> Query:
        """Return the query of what one of them has; of nothing without any."""
        if not queries:
            return Query.empty_query()
        return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])

    @staticmethod
    def best_of(*queries: Query) -> Query:
        """Return the query of what one of them has, with the best weight that one gives it."""
        return queries[0] if len(queries) == 1 else Query.disjunction_max_query([*queries])

    @staticmethod
    def but(query: Query, *unwanted: Query) -> Query:
        """Return the query of what the first has, and none of the others."""
        if not unwanted:
            return query
        return Query.boolean_query([(Occur.Must, query), *((Occur.MustNot, other) for other in unwanted)])


_CJK = 0x3000


def _as_pairs(terms: tuple[str, ...]) -> list[tuple[int, str]]:
    """Return the terms of a phrase with their places, but for the last character of each run of pairs.

    In a document it is alone only at the end of a run.
    """
    return [(at, term) for at, term in enumerate(terms) if not (at and _ends_pair(terms[at - 1], term))]


def _ends_pair(pair: str, term: str) -> bool:
    return len(term) == 1 and ord(term) > _CJK and len(pair) == len("京都") and pair[1] == term


# == visible ==========================================================================================================


#: Snapshots of a run whose spans are listed one by one.
_LISTED = 16
#: Spans of time that are compared; more hidden snapshots are looked up by their marks.
_SPANS = 32
#: States whose hidden snapshots are remembered.
_STATES = 64


@dataclass(frozen=True, slots=True)
class Moment:
    """A state of the archive: the present, that at a time (`seq`, seconds since 1970), or with `ever` all states.

    With `during`, a span of time from the first second on, before the last, only versions that were captured in it:
    stored, or met unchanged, by a crawl that the asker may see.
    """

    seq: int | None = None
    ever: bool = False
    during: tuple[int, int] | None = None

    @property
    def last(self) -> int | None:
        """The last second of which it speaks; None if that is now."""
        return self.during[1] - 1 if self.during is not None and self.seq is None else self.seq


class UrlKey(NamedTuple):
    """The key of a URL, as access rules have it, or the beginning of the keys of some."""

    key: str
    is_beginning: bool = False


@dataclass(frozen=True, slots=True)
class Trees:
    """All versions in the trees of some snapshots that lie in a span of time.

    They are of `domains`, or with `are_others` of all but those. Of those that are there at some time of the span,
    `marks` are not in these trees, nor are `runs` (as those of `Between`), and the `carried` ones, by their keys, were
    not captured.
    """

    domains: tuple[str, ...]
    are_others: bool
    marks: tuple[str, ...]
    runs: tuple[tuple[str, int, int, int], ...]
    carried: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CapturedWithin:
    """The versions that were captured in a span of time: from `begin` on, before `end`, in seconds since 1970.

    They are those that visible crawls stored in it, those in `trees`, and those with the keys `met`. Of some domains
    and URLs, `asked_domains` and `asked_urls`, they are those with the keys `asked` alone.
    """

    begin: int
    end: int
    met: tuple[str, ...] = ()
    trees: Trees | None = None
    asked: tuple[str, ...] = ()
    asked_domains: tuple[str, ...] = ()
    asked_urls: tuple[UrlKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """The versions of a domain that a reader sees, by their keys in the index, where they are asked one by one."""

    domain: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Late:
    """The hidden snapshots at a state's end, by domain and time, and their spans of time if these say the same."""

    snapshots: tuple[tuple[str, int], ...]
    spans: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True, slots=True)
class Between:
    """The hidden snapshots before open ones: marks of the spans of versions, and of long runs domain, begin and end.

    The end is the open snapshot that follows.
    """

    marks: tuple[str, ...]
    runs: tuple[tuple[str, int, int, int], ...]


@dataclass(slots=True)
class SnapshotMemory:
    """What is found out about snapshots once, and asked with each search; shared by all that show the same ones."""

    late: dict[tuple[int, tuple[Standing, ...]], Late] = field(default_factory=dict)
    between: dict[tuple[Standing, ...], Between] = field(default_factory=dict)
    #: The marks of versions with words that browsers showed in hidden crawls.
    forms: dict[tuple[Standing, ...], tuple[str, ...]] = field(default_factory=dict)
    #: The times of all snapshots, in order, and the number of snapshots at each.
    times: tuple[list[int], Counter[int]] | None = None
    #: All hidden snapshots.
    hidden: dict[tuple[Standing, ...], Late] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a reader sees: the snapshots of the domains where something is hidden, and versions by name.

    `others` are the times of the snapshots of all other domains, in order, in seconds since 1970. `shared` are domains
    whose versions are all named; `of_shared` has their snapshots. `rules` are those in force for the `reader` at `now`.
    `captured` is what the crawls that they see captured in the span of time of the question; None without one.
    """

    snapshots: Mapping[str, Sequence[VisibleSnapshot]] = field(default_factory=dict)
    others: Sequence[int] = ()
    shared: tuple[Named, ...] = ()
    rules: tuple[AccessRule, ...] = ()
    reader: str = ""
    remembered: SnapshotMemory = field(default_factory=SnapshotMemory, repr=False, compare=False)
    of_shared: Mapping[str, Sequence[VisibleSnapshot]] = field(default_factory=dict)
    captured: CapturedWithin | None = None

    @property
    def is_all(self) -> bool:
        """Whether nothing is hidden."""
        return not self.hides_snapshots and not self.rules

    @property
    def hides_snapshots(self) -> bool:
        """Whether some snapshot, or a part of one, is hidden."""
        return bool(self.snapshots or self.shared)


class Filter:
    """Makes the query of a state, for a reader or (without `shown`) for those who may see all."""

    def __init__(self, translator: Translator, shown: Shown | None = None, *, has_forms: bool = True) -> None:
        """`has_forms`: the index has versions with words that browsers showed."""
        self._make = translator
        self._shown = shown or Shown()
        self._has_forms = has_forms

    def applied(self, query: Query, moment: Moment) -> Query:
        """Return a query of the documents of another one that are in a state and may be seen."""
        shown, make = self._shown, self._make
        if (moment.during is None) is not (shown.captured is None):
            raise ValueError("what was captured in the span of time is to be given, and nothing without one")
        seen = self._state(query, moment, (Standing.OPEN,))
        named = self._decided(
            [rule for rule in shown.rules if rule.access is Access.ALLOW and rule.user == shown.reader]
        )
        if named is not None and shown.reader:
            closed = self._state(make.all(query, named), moment, (Standing.OPEN, Standing.CLOSED))
            seen = make.best_of(seen, closed)
        taken = self._decided([rule for rule in shown.rules if rule.access is not Access.ALLOW])
        return seen if taken is None else make.but(seen, taken)

    # -- states ------------------------------------------------------------------------------------------------------

    def _state(self, query: Query, moment: Moment, visible: tuple[Standing, ...]) -> Query:
        make, shared = self._make, self._shown.shared
        if self._shown.captured is not None:
            query = self._captured(query, self._shown.captured, visible)
        in_state = self._ever(query, visible) if moment.ever else self._at(query, moment.seq, visible)
        if shared:
            keys = make.terms("key", [key for named in shared for key in named.keys])
            in_state = make.but(in_state, make.terms("domain", [named.domain for named in shared]))
            in_state = make.any(in_state, make.all(query, keys))
        forms = self._hidden_forms(visible)
        return make.but(in_state, make.terms("mark", forms)) if forms else in_state

    def _captured(self, query: Query, captured: CapturedWithin, visible: tuple[Standing, ...]) -> Query:
        """Return the query of the documents of another one that were captured in the span of time.

        The other one is a part of each alternative, which then looks at its documents alone: Tantivy goes through the
        whole index for alternatives that stand by themselves. A document has its weight once, whichever it fits.
        """
        make, hidden = self._make, self._hidden(visible)
        unwanted = [make.term("mark", LATER_PART)]
        if hidden.spans is None:
            unwanted.append(make.terms("mark", [began(*snapshot) for snapshot in hidden.snapshots]))
        else:
            unwanted += [make.number("since", *bounds) for bounds in hidden.spans]
        stored = make.all(query, make.number("captured", captured.begin, captured.end - 1))
        alternatives = [make.but(stored, *unwanted)]
        if captured.trees is not None:
            alternatives.append(self._in_trees(query, captured, captured.trees))
        if captured.met:
            alternatives.append(make.all(query, make.terms("key", captured.met)))
        apart = [make.terms("domain", captured.asked_domains)] if captured.asked_domains else []
        apart += [make.urls(captured.asked_urls)] if captured.asked_urls else []
        alternatives = [make.but(alternative, *apart) for alternative in alternatives]
        if captured.asked:
            alternatives.append(make.all(query, make.terms("key", captured.asked)))
        return make.best_of(*alternatives)

    def _in_trees(self, query: Query, captured: CapturedWithin, trees: Trees) -> Query:
        """Return the query of the documents of another one that are in the trees."""
        make = self._make
        wanted = [query, make.number("since", None, captured.end - 1), make.number("until", captured.begin + 1, None)]
        unwanted = [self._run(*run) for run in trees.runs]
        domains = make.terms("domain", trees.domains)
        if not trees.are_others:
            wanted.append(domains)
        elif trees.domains:
            unwanted.append(domains)
        unwanted += [make.terms("mark", trees.marks)] if trees.marks else []
        unwanted += [make.terms("key", trees.carried)] if trees.carried else []
        return make.but(make.all(*wanted), *unwanted)

    def _run(self, domain: str, begin: int, end: int, following: int) -> Query:
        """Return the query of the versions that only a run of snapshots has."""
        make = self._make
        return make.all(
            make.term("domain", domain), make.number("since", begin, end), make.number("until", None, following)
        )

    def _hidden(self, visible: tuple[Standing, ...]) -> Late:
        """Return all hidden snapshots."""
        remembered = self._shown.remembered.hidden
        if visible not in remembered:
            hidden = [
                (domain, snapshot.seq)
                for domain, snapshots in self._shown.snapshots.items()
                for snapshot in snapshots
                if snapshot.standing not in visible
            ]
            remembered[visible] = Late(tuple(hidden), self._spans(Counter(seq for _, seq in hidden)))
        return remembered[visible]

    def _hidden_forms(self, visible: tuple[Standing, ...]) -> tuple[str, ...]:
        if not self._has_forms:
            return ()
        remembered = self._shown.remembered.forms
        if visible not in remembered:
            remembered[visible] = tuple(
                shown_mark(domain, snapshot.seq)
                for of_domains in (self._shown.snapshots, self._shown.of_shared)
                for domain, snapshots in of_domains.items()
                for snapshot in snapshots
                if snapshot.standing not in visible
            )
        return remembered[visible]

    def _at(self, query: Query, seq: int | None, visible: tuple[Standing, ...]) -> Query:
        make = self._make
        last = CURRENT - 1 if seq is None else seq
        late = self._late(last, visible)
        if late.spans is None:
            marks = [ended(*snapshot) for snapshot in late.snapshots]
            gone = [make.but(make.number("until", None, last), make.terms("mark", marks))]
            hidden = [make.terms("mark", [began(*snapshot) for snapshot in late.snapshots])]
        else:
            lower = [None, *(end + 1 for _, end in late.spans)]
            upper = [*(begin - 1 for begin, _ in late.spans), last]
            gone = [make.number("until", least, most) for least, most in zip(lower, upper, strict=True)]
            hidden = [make.number("since", *bounds) for bounds in late.spans]
        if seq is not None:
            query = make.all(query, make.number("since", None, seq))
        return make.but(query, *gone, *hidden)

    def _late(self, last: int, visible: tuple[Standing, ...]) -> Late:
        """Return the hidden snapshots at the end of the state `last`: what ended there is shown, what began not."""
        remembered = self._shown.remembered.late
        known = remembered.get((last, visible))
        if known is not None:
            return known
        late: list[tuple[str, int]] = []
        for domain, snapshots in self._shown.snapshots.items():
            for at in range(bisect_right(snapshots, last, key=_seq) - 1, -1, -1):
                if snapshots[at].standing in visible:
                    break
                late.append((domain, snapshots[at].seq))
        hidden = Late(tuple(late), self._spans(Counter(seq for _, seq in late)))
        if len(remembered) < _STATES:
            remembered[last, visible] = hidden
        return hidden

    def _spans(self, hidden: Counter[int]) -> tuple[tuple[int, int], ...] | None:
        """Return spans of time in which all snapshots of all domains are these hidden ones; None if they are many.

        Numbers are compared faster than marks are looked up: snapshots that wait were mostly made one after the other.
        """
        times, counts = self._times()
        if any(counts[seq] != count for seq, count in hidden.items()):
            return None  # another snapshot was made at the same time
        spans: list[tuple[int, int]] = []
        last = None
        for seq in sorted(hidden):
            place = bisect_left(times, seq)
            if last is not None and place == last + 1:
                spans[-1] = (spans[-1][0], seq)
            elif len(spans) == _SPANS:
                return None
            else:
                spans.append((seq, seq))
            last = place
        return tuple(spans)

    def _times(self) -> tuple[list[int], Counter[int]]:
        remembered = self._shown.remembered
        if remembered.times is None:
            counts = Counter(snapshot.seq for snapshots in self._shown.snapshots.values() for snapshot in snapshots)
            counts.update(self._shown.others)
            remembered.times = sorted(counts), counts
        return remembered.times

    def _ever(self, query: Query, visible: tuple[Standing, ...]) -> Query:
        make = self._make
        late, between = self._late(CURRENT - 1, visible), self._between(visible)
        unwanted = [self._run(*run) for run in between.runs]
        marks = [*between.marks]
        if late.spans is None:
            marks += [began(*snapshot) for snapshot in late.snapshots]
        else:
            unwanted += [make.number("since", *bounds) for bounds in late.spans]
        return make.but(query, *([make.terms("mark", marks)] if marks else []), *unwanted)

    def _between(self, visible: tuple[Standing, ...]) -> Between:
        remembered = self._shown.remembered.between
        if visible not in remembered:
            marks: list[str] = []
            long: list[tuple[str, int, int, int]] = []
            for domain, snapshots in self._shown.snapshots.items():
                for run, following in _hidden_runs(snapshots, visible):
                    if len(run) <= _LISTED:
                        ends = [*run, following]
                        marks += [span(domain, begin, end) for at, begin in enumerate(run) for end in ends[at + 1 :]]
                    else:
                        long.append((domain, run[0], run[-1], following))
            remembered[visible] = Between(tuple(marks), tuple(long))
        return remembered[visible]

    # -- access rules ------------------------------------------------------------------------------------------------

    def _decided(self, wanted: Sequence[AccessRule]) -> Query | None:
        """Return the query of the documents about which one of these rules decides; None without any."""
        make, queries = self._make, []
        for rule in wanted:
            stronger = [
                other for other in self._shown.rules
                if other not in wanted and weight(other) > weight(rule) and _may_meet(other, rule)
            ]  # fmt: skip
            queries.append(make.but(self._rule(rule), *map(self._rule, stronger)))
        return make.any(*queries) if queries else None

    def _rule(self, rule: AccessRule) -> Query:
        make = self._make
        beginnings = rule.beginnings()
        keys = (
            [make.term("rule_key", rule.prefix)]
            if not beginnings
            else [make.prefix("rule_key", beginning) for beginning in beginnings]
        )
        query = make.any(*keys)
        if rule.after is not None or rule.before is not None:
            least, most = (None if limit is None else int(limit.timestamp()) for limit in (rule.after, rule.before))
            query = make.all(query, make.number("captured", least, most))
        return Query.const_score_query(query, 0.0)


def _seq(snapshot: VisibleSnapshot) -> int:
    return snapshot.seq


def _hidden_runs(
    snapshots: Sequence[VisibleSnapshot], visible: tuple[Standing, ...]
) -> Iterator[tuple[list[int], int]]:
    """Yield the runs of hidden snapshots, each with the open one that follows."""
    run: list[int] = []
    for snapshot in snapshots:
        if snapshot.standing not in visible:
            run.append(snapshot.seq)
        elif run:
            yield run, snapshot.seq
            run = []


def in_force(rules: AccessRules, reader: str, now: float) -> tuple[AccessRule, ...]:
    """Return the rules that hold for a reader at a time, in seconds since 1970."""
    return tuple(
        rule
        for rule in rules.rules
        if (not rule.user or rule.user == reader) and (rule.lapses is None or now < rule.lapses.timestamp())
    )


def _may_meet(one: AccessRule, other: AccessRule) -> bool:
    """Return whether some URL may fit both."""
    short, long = sorted((one.prefix.rstrip(",)"), other.prefix.rstrip(",)")), key=len)
    return long.startswith(short)


# == readers ==========================================================================================================


_NEVER = 1 << 62
#: Moments whose named versions are remembered.
_MOMENTS = 64


@dataclass(slots=True)
class _Known:
    """What the gate said in one state of the archive, by domain."""

    snapshots: dict[str, list[VisibleSnapshot]]
    saw: dict[str, Saw]
    named: OrderedDict[Moment, tuple[Named, ...]] = field(default_factory=OrderedDict)
    shown: dict[tuple[Moment, tuple[AccessRule, ...]], Shown] = field(default_factory=dict)
    remembered: SnapshotMemory = field(default_factory=SnapshotMemory)
    #: Of domains with several publications: the keys of versions by the publication that stored them, to the reader.
    stored_by: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    @property
    def ends(self) -> float:
        """When the first closure ends, in seconds since 1970."""
        closure_ends = [
            snapshot.until
            for all_of_it in self.snapshots.values()
            for snapshot in all_of_it
            if snapshot.until is not None
        ]
        return min((end.timestamp() for end in closure_ends), default=float("inf"))


class ReadersView:
    """What the reader of a gate sees. For one thread."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._catalogue = Catalogue(gate.archive)
        self._state: object = None
        self._known = _Known({}, {})

    def shown(self, moment: Moment) -> Shown:
        """Return what filters need. Raises what the gate raises: what cannot be decided is closed."""
        rules = in_force(self._gate.rules(), self._gate.reader.name, self._gate.now().timestamp())
        known = self._current()
        key = (moment, rules)
        if key in known.shown:
            return known.shown[key]
        hidden = {domain: snapshots for domain, snapshots in known.snapshots.items() if not _is_open(snapshots)}
        shared = {domain for domain, snapshots in hidden.items() if _is_of_several(snapshots)}
        if moment not in known.named:
            named = (Named(domain, tuple(self._keys(domain, moment))) for domain in sorted(shared))
            known.named[moment] = tuple(named)
            while len(known.named) > _MOMENTS:
                known.named.popitem(last=False)
        plain = {domain: snapshots for domain, snapshots in hidden.items() if domain not in shared}
        others = sorted(
            snapshot.seq
            for domain, snapshots in known.snapshots.items()
            if domain not in plain
            for snapshot in snapshots
        )
        if len(known.shown) >= _MOMENTS:
            known.shown.clear()
        reader_view = known.shown[key] = Shown(
            plain, others, known.named[moment], rules, self._gate.reader.name, known.remembered,
            {domain: hidden[domain] for domain in shared},
        )  # fmt: skip
        return reader_view

    def snapshots(self, domain: str, standing: Standing = Standing.OPEN) -> Sequence[VisibleSnapshot]:
        """Return the snapshots of a domain of a standing, oldest first."""
        return [snapshot for snapshot in self._current().snapshots.get(domain, []) if snapshot.standing is standing]

    def is_open(self, url: str, time: int) -> bool:
        """Return whether the access rules let the reader see a capture of a URL at a time, in seconds since 1970."""
        return isinstance(self._gate.with_rules(Open(time), url, from_epoch(time)), Open)

    def has(self, snapshot: VisibleSnapshot, domain: str, version: VersionSpan) -> bool:
        """Return whether a snapshot of a domain contains a version, as its publication saw it."""
        is_there = version.first <= snapshot.seq < version.last
        return is_there and (not snapshot.seen or self._saw(domain)(snapshot, version))

    # -- publications ------------------------------------------------------------------------------------------------

    def of_several(self) -> tuple[str, ...]:
        """Return the domains of several publications of which something is hidden.

        There the index may name a publication that the reader does not know: one whose hidden crawl stored a version.
        """
        snapshots = self._current().snapshots
        return tuple(
            sorted(domain for domain, known in snapshots.items() if not _is_open(known) and _is_of_several(known))
        )

    def publication_of(self, domain: str, version: VersionSpan) -> str:
        """Return the publication that stored a version, to the reader (`access_rules.publication_of`)."""
        return access_rules.publication_of(self._current().snapshots.get(domain, []), version, self._saw(domain))

    def stored_by(self, make: Translator, publication: str) -> Query:
        """Return the query of the versions that a publication stored, to the reader."""
        own, several = make.term("publication", publication), self.of_several()
        if not several:
            return own
        keys = [name for domain in several for name in self._by_publication(domain).get(publication, ())]
        return make.any(make.but(own, make.terms("domain", several)), make.terms("key", keys))

    def publications(self) -> list[str]:
        """Return the publications that stored versions of the domains of several, to the reader."""
        return sorted({name for domain in self.of_several() for name in self._by_publication(domain) if name})

    def _by_publication(self, domain: str) -> dict[str, list[str]]:
        known = self._current().stored_by
        if domain not in known:
            keys: dict[str, list[str]] = {}
            for held in database.versions_of(self._gate.archive.database, domain):
                clocks.check()
                version = VersionSpan(held.path, held.blob, held.first, held.last, held.stored)
                keys.setdefault(self.publication_of(domain, version), []).append(key(held.path, held.first))
            known[domain] = keys
        return known[domain]

    def _saw(self, domain: str) -> Saw:
        known = self._known
        if domain not in known.saw:
            known.saw[domain] = self._gate.saw(domain)
        return known.saw[domain]

    def _current(self) -> _Known:
        archive = self._gate.archive
        try:
            status = os.stat(archive.changes)  # noqa: PTH116 # asked for each search
            feed = (status.st_ino, status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            feed = (0, 0, 0)
        state = (feed, self._catalogue.state())
        if state != self._state or self._gate.now().timestamp() >= self._known.ends:
            domains = database.domains(archive.database)
            self._known = _Known({domain: self._gate.snapshots(domain) for domain in domains}, {})
            self._state = state
        return self._known

    def _keys(self, domain: str, moment: Moment) -> Iterator[str]:
        """Yield the keys of the versions of a domain that a state has for the reader."""
        snapshots, saw = self._known.snapshots[domain], self._saw(domain)
        versions = (
            VersionSpan(held.path, held.blob, held.first, held.last, held.stored)
            for held in database.versions_of(self._gate.archive.database, domain)
        )
        if moment.ever:
            scope = VisibleSpans(snapshots, saw)
            yield from (key(version.path, version.first) for version in versions if scope.shows(version))
            return
        # Of each publication its newest snapshot, and of these for each path the newest one.
        newest = access_rules.newest_open(snapshots, _NEVER if moment.seq is None else moment.seq)
        best: dict[str, tuple[int, str]] = {}
        for version in versions:
            for snapshot in newest:
                if self.has(snapshot, domain, version):
                    best[version.path] = max(
                        best.get(version.path, (0, "")), (snapshot.seq, key(version.path, version.first))
                    )
                    break
        yield from (name for _, name in best.values())


def _is_of_several(snapshots: Sequence[VisibleSnapshot]) -> bool:
    """Whether a reader's state is put together from several publications', or from less than a domain has."""
    return any(snapshot.seen for snapshot in snapshots) or len({snapshot.publication for snapshot in snapshots}) > 1


def _is_open(snapshots: Sequence[VisibleSnapshot]) -> bool:
    return all(snapshot.standing is Standing.OPEN for snapshot in snapshots)
