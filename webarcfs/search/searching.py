"""Searches an archive: a question in, hits with their snippets, counts, facets and other spellings out.

All versions are searched, unless one state is asked for, and a hit is a URL: its best version, with the snapshots in
which it has the words. All counts are of the documents that the asker may see, since what a reader may not see is left
out inside the query. Up to some thousand URLs are counted one by one; more are estimated, and the answer says so.

A snippet is the piece of a text around the words of a search, with the places of the words. Where a search finds
nothing, spellings that would find something are looked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from tantivy import Query

from webarcfs.access.access_rules import Standing, VersionSpan, VisibleSnapshot
from webarcfs.access.gate import Gate
from webarcfs.access.reader_collections import VisibleCollections
from webarcfs.archive.catalogue.catalogue import Catalogue, look_up_crawl
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import database
from webarcfs.archive.index.database import PathSpan, PathSpans, SourceSnapshot
from webarcfs.archive.model.errors import BadCondition, NotFound, TooMany
from webarcfs.archive.model.metadata import PAGE_ROLE, RESOURCE_ROLE, CommitTag, format_time, from_epoch
from webarcfs.archive.system import clocks
from webarcfs.search import generations
from webarcfs.search.capture_times import CaptureTimes
from webarcfs.search.collecting import SearchedCollections
from webarcfs.search.hits import Hit, HitOrder, SearchAnswer, SearchQuestion, SnapshotHits, Snippet
from webarcfs.search.index import STEMMERS, IndexReader, Match, stem
from webarcfs.search.query_language import (
    After,
    All,
    Any,
    AskedRole,
    Before,
    CollectionCondition,
    Expression,
    Language,
    Not,
    ParsedSearch,
    RoleCondition,
    Site,
    TypeCondition,
    Words,
    asks_for_a_role,
    parse_condition,
    parse_span,
    parse_whole_search,
    role_of,
)
from webarcfs.search.translation import Filter, Moment, ReadersView, Shown, Translator
from webarcfs.search.words import (
    CURRENT,
    ERROR_PAGE,
    RESOURCE,
    SHOWN,
    SNAPSHOT,
    IndexedDocument,
    TextWord,
    place_of,
    words_of,
)

#: What a search is asked and answers is part of this module for those who search.
__all__ = [
    "LENGTH", "Hit", "HitOrder", "SearchAnswer", "SearchQuestion", "Searcher", "SnapshotHits", "Snippet", "snippet",
    "wanted",
]  # fmt: skip

# == suggestions ======================================================================================================


#: Letters that a suggestion shares with the word, terms that are compared, and how like they must be.
_SHARED, _COMPARED, _ALIKE = 2, 5_000, 0.7
_MOST_WORDS = 8


def suggest(reader: IndexReader, expression: Expression, visible: Query) -> str:
    """Return words to search instead; empty if none are alike. Only documents of `visible` give words."""
    words = [word for word in _words(expression) if len(word.terms) == 1 and not word.beginning][:_MOST_WORDS]
    suggestions = []
    changed = False
    for word in words:
        term = word.terms[0]
        better = term if _has(reader, term, visible) else _nearest(reader, term, visible)
        changed |= better != term
        suggestions.append(better)
    return " ".join(suggestions) if changed else ""


def _words(expression: Expression) -> Iterator[Words]:
    match expression:
        case Words():
            yield expression
        case All(inner) | Any(inner):
            for operand in inner:
                yield from _words(operand)


def _has(reader: IndexReader, term: str, visible: Query) -> bool:
    similar_terms = reader.similar("body", term, visible, 1)
    return bool(similar_terms) and similar_terms[0][0] == term


def _nearest(reader: IndexReader, term: str, visible: Query) -> str:
    best, most = term, (_ALIKE, 0)
    for candidate, count in reader.similar("body", term[:_SHARED], visible, _COMPARED):
        clocks.check()
        if abs(len(candidate) - len(term)) <= _SHARED:
            weight = (SequenceMatcher(None, term, candidate).ratio(), count)
            if count and weight > most:
                best, most = candidate, weight
    return best


# == snippets, pure ===================================================================================================


#: Characters of a snippet, and those of a text in which words are looked for.
LENGTH, _LOOKED_AT = 240, 200_000
#: Found words that are weighed.
_MOST = 200


#: Whether a word is one that was searched.
Wanted = Callable[[TextWord, str], bool]


def wanted(expression: Expression, root: Callable[[str], str]) -> Wanted:
    """Return whether a word of a text is one of a search. `root` is the stem of a word in the language of the text."""
    words = list(_positive(expression))
    terms = {term for phrase in words for term in (phrase.terms[:-1] if phrase.beginning else phrase.terms)}
    beginnings = tuple(phrase.terms[-1] for phrase in words if phrase.beginning)
    roots = {root(phrase.natural) for phrase in words if phrase.natural} - {""}

    def is_wanted(word: TextWord, text: str) -> bool:
        if any(term in terms or (beginnings and term.startswith(beginnings)) for term in word.terms):
            return True
        return bool(roots) and root(text[word.begin : word.end]) in roots

    return is_wanted


def snippet(text: str, is_wanted: Wanted) -> Snippet:
    """Return the piece of a text with most different words of a search; its beginning without any."""
    text = text[:_LOOKED_AT]
    matches: list[tuple[int, int, str]] = []
    for word in words_of(text):
        if is_wanted(word, text):
            matches.append((word.begin, word.end, word.terms[0]))
            if len(matches) == _MOST:
                break
    begin = _best(matches)
    end = min(len(text), begin + LENGTH)
    begin, end = _at_words(text, begin, end)
    return _on_one_line(
        text, begin, end, [(first, last) for first, last, _ in matches if begin <= first and last <= end]
    )


def _is_slow(expression: Expression) -> bool:
    """Return whether the documents of a search are found slowly: those with words side by side, or with a beginning."""
    return any(len(words.terms) > 1 or words.beginning for words in _words(expression))


def _positive(expression: Expression) -> Iterator[Words]:
    match expression:
        case Words():
            yield expression
        case All(inner) | Any(inner):
            for operand in inner:
                yield from _positive(operand)
        case Not() | Site() | TypeCondition() | Language() | RoleCondition() | CollectionCondition():
            return
        case Before() | After():
            return


def _best(matches: list[tuple[int, int, str]]) -> int:
    """Return the place at which the snippet begins: a little before the words that lie closest together."""
    best, most = 0, -1
    for at, (begin, _, _) in enumerate(matches):
        inside = {term for first, last, term in matches[at : at + 40] if last <= begin + LENGTH - LENGTH // 4}
        if len(inside) > most:
            best, most = begin, len(inside)
    return max(0, best - LENGTH // 4) if matches else 0


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


# == searching ========================================================================================================


#: Most hits that can be reached by pages, and most values of a facet.
MOST_HITS, MOST_VALUES = 100_000, 20
#: Snapshots in which hits are listed where they are grouped so, and hits of each.
_GROUPS, _OF_EACH = 20, 3
#: Versions that are read from the index at a time, and a moment after all snapshots.
_AT_ONCE, _LATEST = 5_000, 1 << 40
#: Domains and moments that are counted for groups and years.
_COUNTED = 65_000
#: URLs that are counted exactly, and versions that are looked at one by one where it is slow to find them again.
MOST_EXACT, _ONE_BY_ONE = 10_000, 20_000
#: Years of a facet.
_MOST_YEARS = 60
#: The fields that are facets.
_FACETS = ("kind", "domain", "language", "publication", "extension")
#: Versions that are fetched for each URL of a page, and the fewest at a time: one URL may have hundreds of them.
_EACH_URL, _FEWEST = 4, 80


class Searcher:
    """Searches one archive, for one reader if there is a `gate`. For one thread; follows what is indexed meanwhile."""

    def __init__(
        self, archive: Archive, gate: Gate | None = None, collections: VisibleCollections | None = None
    ) -> None:
        """Raises NotFound without an index, Damaged, Busy. `collections` are those that a server's searches share."""
        self._collections = SearchedCollections(archive, gate, collections)
        self._archive = archive
        self._gate = gate
        self._reader = generations.opened(archive)
        self._known_snapshots: dict[str, list[SourceSnapshot]] = {}
        self._view = None if gate is None else ReadersView(gate)
        self._times = CaptureTimes(archive, self._view)

    def ask(self, question: SearchQuestion) -> SearchAnswer:
        """Return a page of hits. Raises BadCondition, NotFound for an unknown snapshot or record, TooMany."""
        asked = self._asked(question)
        page = self._page(asked, question)
        total = self._count_urls(asked, page.versions) if page.urls is None else page.urls
        with ExitStack() as stack:
            hits = tuple(self._hits(stack, asked, page.matches))
        suggestion = "" if page.versions else suggest(self._reader, asked.expression, asked.visible)
        in_present, is_exact = self._count_present(asked, total)
        return SearchAnswer(
            total.number, hits, suggestion, self.count_missing(), total.is_exact and is_exact, in_present
        )  # fmt: skip

    def count(self, question: SearchQuestion) -> int:
        """Return the number of hits; of more than `MOST_EXACT` URLs, about so many."""
        asked = self._asked(question)
        versions = self._reader.count(asked.query)
        return self._count_urls(asked, versions).number if versions else 0

    def count_versions(self, question: SearchQuestion) -> int:
        """Return the number of distinct versions that a question finds. `during:2024` alone means all of its span."""
        return self._reader.count(self._asked(question).query)

    def count_missing(self) -> int:
        """Return the number of snapshots of the archive that are not in the index yet."""
        return max(database.count_snapshots(self._archive.database) - self._reader.count_snapshots(), 0)

    def time_span(self, domain: str = "") -> tuple[int, int] | None:
        """Return the times of the first and the last snapshot that the asker may see; None without one.

        They are in seconds since 1970, of the snapshots of a domain, or of all.
        """
        self._know_all_snapshots()
        times = []
        for name in [domain] if domain else list(self._known_snapshots):
            clocks.check()
            if snapshots := self._snapshots(name):
                times += [snapshots[0].seq, snapshots[-1].seq]
        return (min(times), max(times)) if times else None

    def places(self, question: SearchQuestion) -> Iterator[tuple[str, str]]:
        """Yield commitTag and path of each hit: all that links and lists need."""
        asked = self._asked(question)
        upper = asked.moment.last
        page = self._page(asked, question)
        with ExitStack() as stack:
            spans = None if self._view is None else stack.enter_context(PathSpans(self._archive.database))
            for document in self._reader.page(page.versions, [match.address for match in page.matches]).plain():
                if spans is not None:
                    yield self._hit(asked, document, spans.of(document.path), None, with_text=False).place_of()
                    continue
                inside = [
                    snapshot.tag for snapshot in self._snapshots(document.domain)
                    if document.since <= snapshot.seq < document.until and (upper is None or snapshot.seq <= upper)
                ]  # fmt: skip
                yield inside[-1] if inside else _tag(document.domain, document.since), document.path

    def every_version(self, question: SearchQuestion) -> Iterator[tuple[str, int]]:
        """Yield path and beginning of each version that a question finds, however many there are, in no order.

        They are asked for by the moments at which they began, `_AT_ONCE` at a time: memory is flat.
        """
        asked, make = self._asked(question), Translator(self._reader.schema)
        waiting = [(0, _LATEST)]
        while waiting:
            clocks.check()
            first, last = waiting.pop()
            portion = make.all(asked.query, make.number("since", first, last))
            count = self._reader.count(portion)
            if count > _AT_ONCE and first < last:
                middle = (first + last) // 2
                waiting += [(middle + 1, last), (first, middle)]
                continue
            for offset in range(0, count, _AT_ONCE):
                for document in self._reader.documents(portion, _AT_ONCE, offset).plain():
                    yield document.path, document.since

    def span_of(self, question: SearchQuestion) -> tuple[int | None, int | None]:
        """Return the first and the last second whose captures a question means; None where there is no bound."""
        moment = self._asked(question).moment
        return moment.during[0] if moment.during is not None else None, moment.last

    # -- hits of a page, and numbers of URLs -------------------------------------------------------------------------

    def _page(self, asked: _Asked, question: SearchQuestion) -> _Page:
        """Return the best version of each URL of a page: a URL counts once, however many versions it has.

        Versions are fetched in order; where they are of too few URLs, more are fetched, without the URLs that are known
        by then. The number doubles each time, so that some rounds do, whatever one URL has.
        """
        wanted = question.offset + question.limit
        if wanted > MOST_HITS:
            raise TooMany(f"hits beyond the {MOST_HITS:,}th are not listed; narrow the search")
        by = {HitOrder.DATE: ("since", False), HitOrder.OLDEST: ("since", True), HitOrder.URL: ("rule_key", True)}
        order, ascending = by.get(question.sort, ("", False))
        if not asked.moment.ever:  # a state has one version of a URL
            matches = self._reader.best(asked.query, wanted, order, ascending=ascending)
            return _Page(matches.total, matches.ranked[question.offset :], _Number(matches.total))
        best: dict[int, Match] = {}
        at_once, query, versions, whole = max(wanted * _EACH_URL, _FEWEST), asked.query, None, None
        looked_at = _ONE_BY_ONE if _is_slow(asked.expression) else 0
        while True:
            clocks.check()
            matches = self._reader.best(query, at_once, order, ascending=ascending, looked_at=looked_at)
            if versions is None:
                versions, whole, looked_at = matches.total, matches.whole, 0
            for match in matches.ranked:
                known = best.setdefault(match.place, match)
                if match.value == known.value and match.since > known.since:
                    best[match.place] = match  # of two that are as good, the newer one
            is_all = len(matches.ranked) == matches.total
            if len(best) >= wanted or is_all:
                break
            query = asked.make.but(asked.query, asked.make.places(best))
            at_once *= 2
        urls = None
        if whole is not None:
            urls = _Number.of(*whole)
        elif is_all:
            urls = _Number(len(best), places=frozenset(best))
        return _Page(versions, list(best.values())[question.offset : wanted], urls)

    def _count_urls(self, asked: _Asked, versions: int) -> _Number:
        """Return the number of URLs that a question finds. `versions` is the number of their versions."""
        return self._urls_of(asked.query, versions) if asked.moment.ever else _Number(versions)

    def _urls_of(self, query: Query, versions: int) -> _Number:
        """Return the number of URLs of the versions of a query."""
        if versions <= MOST_EXACT:
            return _Number.of(*self._reader.places_of(query, versions))
        about, current = self._reader.count_places_and_current(query, versions)
        clocks.check()
        some = self._reader.places(query, MOST_EXACT) if about <= MOST_EXACT + MOST_EXACT // 10 else None
        if some is not None:
            return _Number.of(some, current)
        return _Number(max(about, MOST_EXACT + 1), is_exact=False, current=current)

    def _count_present(self, asked: _Asked, total: _Number) -> tuple[int | None, bool]:
        """Return how many of the URLs that are found have a hit at present, and whether that is exact."""
        if not asked.moment.ever:
            return None, True
        if not total.number:
            return 0, True
        if asked.is_all_of_time and total.current is not None and not asked.hides_snapshots:
            return total.current, True
        present = asked.of_state(Moment())
        in_all = self._reader.count(present)
        if asked.is_all_of_time or not in_all:  # what is at present is among all versions
            return in_all, True
        return self._count_both(asked, total, present, in_all)

    def _count_both(self, asked: _Asked, total: _Number, present: Query, in_all: int) -> tuple[int, bool]:
        """Return how many of the URLs that are found are among those of the present, and whether that is exact."""
        make = asked.make
        if in_all <= MOST_EXACT:
            present_places, _ = self._reader.places_of(present, in_all)
            if total.places is not None:
                return len(present_places & total.places), True
            both = self._reader.places(make.all(asked.query, make.places(present_places)), MOST_EXACT)
            return len(both or ()), True
        if total.places is not None:
            return self._reader.count(make.all(present, make.places(total.places))), True
        either, _ = self._reader.count_places_and_current(make.any(asked.query, present), total.number + in_all)
        return min(max(total.number + in_all - either, 0), in_all, total.number), False

    def facets(self, question: SearchQuestion) -> dict[str, list[tuple[str, int]]]:
        """Return the most frequent values of each facet, with the number of URLs that have it; years last.

        A URL counts for each value that one of its versions has, and in each year in which one was captured, so the
        sums may exceed the total. Of many versions the numbers are some per cent more or less. Of one state a URL
        counts in each year of which a snapshot has it as it is.
        """
        asked = self._asked(question)
        versions = self._reader.count(asked.query)
        facets = {name: self._facet(asked, name, versions) for name in _FACETS}
        if self._reader.frequency("mark", RESOURCE):
            roles = self._by_role(question, asked, versions)
            facets["role"] = [(str(role), count) for role, count in roles if count]
        facets["year"] = sorted(self._years(asked) if asked.moment.ever else self._years_of_state(asked))
        return facets

    def _years(self, asked: _Asked) -> Iterator[tuple[str, int]]:
        """Yield the years with the number of URLs that `during:` finds in each, the last ones if they are many."""
        earliest = self._reader.aggregate(asked.query, {"first": {"min": {"field": "captured"}}})["first"]["value"]
        latest = self._reader.last_capture()
        if earliest is None or latest is None:
            return
        first, last = from_epoch(earliest).year, from_epoch(latest).year
        for year in range(max(first, last - _MOST_YEARS + 1), last + 1):
            clocks.check()
            begin, end = parse_span(f"{year:04}")
            if asked.moment.during is not None:
                begin, end = max(begin, asked.moment.during[0]), min(end, asked.moment.during[1])
            if begin >= end:
                continue
            query = asked.in_parts(Moment(ever=True, during=(begin, end)))
            about = self._reader.count_places(query)
            if 0 < about <= MOST_EXACT:
                places = self._reader.places(query, MOST_EXACT)
                about = about if places is None else len(places)
            if about:
                yield str(year), about

    def _years_of_state(self, asked: _Asked) -> Iterator[tuple[str, int]]:
        """Yield the years with the number of URLs of a state that some snapshot of the year has as they are in it."""
        years: dict[str, int] = defaultdict(int)
        self._know_all_snapshots()
        for domain, begun, ended in asked.spans():
            of_year: dict[int, list[int]] = defaultdict(list)
            for snapshot in self._snapshots(domain):
                of_year[from_epoch(snapshot.seq).year].append(snapshot.seq)
            for year, seqs in of_year.items():
                clocks.check()
                years[str(year)] += _up_to(begun, max(seqs)) - _up_to(ended, min(seqs))
        return ((year, count) for year, count in years.items() if count)

    def _facet(self, asked: _Asked, name: str, versions: int) -> list[tuple[str, int]]:
        """Return the most frequent values of a field, with the number of URLs that have each."""
        wanted: dict[str, object] = {"terms": {"field": name, "size": MOST_VALUES}}
        if asked.moment.ever:
            clocks.check()
            of_places = {"terms": {"field": "place", "size": MOST_EXACT}}
            is_few = versions <= MOST_EXACT
            wanted["aggs"] = {"urls": of_places if is_few else {"cardinality": {"field": "place"}}}
        counts = []
        query = asked.query
        if name == "publication" and self._view is not None and (several := self._view.of_several()):
            of_several = asked.make.all(query, asked.make.terms("domain", several))
            query = asked.make.but(query, asked.make.terms("domain", several))
            counts = [*self._publications(asked, of_several)]
        for bucket in self._reader.aggregate(query, {name: wanted})[name]["buckets"]:
            number = bucket["doc_count"]
            if asked.moment.ever:
                number = len(bucket["urls"]["buckets"]) if is_few else round(bucket["urls"]["value"])
            if bucket["key"]:
                counts.append((str(bucket["key"]), int(number)))
        sums: Counter[str] = Counter()
        for value, count in counts:
            sums[value] += count
        return sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_VALUES]

    def _publications(self, asked: _Asked, of_several: Query) -> Iterator[tuple[str, int]]:
        """Yield publications with the number of URLs that a query has of each, on domains of several."""
        for publication in [] if self._view is None else self._view.publications():
            clocks.check()
            query = asked.make.all(of_several, self._stored_by(asked.make, publication))
            if versions := self._reader.count(query):
                yield publication, self._urls_of(query, versions).number

    def _by_role(self, question: SearchQuestion, asked: _Asked, versions: int) -> Iterator[tuple[AskedRole, int]]:
        """Yield the number of URLs by role. `versions` is that of the role that was asked: no query counts it again."""
        for role in (AskedRole.PAGE, AskedRole.RESOURCE):
            if asked.role is role:
                yield role, self._count_urls(asked, versions).number if versions else 0
            else:
                yield role, self.count(replace(question, role=role))

    def by_snapshot(self, question: SearchQuestion) -> list[SnapshotHits]:
        """Return the snapshots that have hits, newest first, with their numbers; the first ones with some hits."""
        if question.at is not None:
            raise BadCondition("one state is asked for: its hits are in no other snapshot")
        asked = self._asked(replace(question, present=False))
        if not asked.moment.ever:
            asked = self._asked(question, Moment(ever=True))
        counts: list[tuple[SourceSnapshot, int]] = []
        self._know_all_snapshots()
        for domain, begun, ended in asked.spans():
            for snapshot in self._snapshots(domain):
                clocks.check()
                count = _up_to(begun, snapshot.seq) - _up_to(ended, snapshot.seq)
                if count:
                    counts.append((snapshot, count))
        counts.sort(key=lambda pair: (-pair[0].seq, pair[0].domain))
        shown = counts[question.offset : question.offset + question.limit]
        groups = []
        for at, (snapshot, count) in enumerate(shown):
            hits: tuple[Hit, ...] = ()
            if at < _GROUPS:
                hits = self._hits_in(replace(question, limit=_OF_EACH, offset=0), asked.moment, snapshot)
            groups.append(SnapshotHits(snapshot.tag, count, hits))
        return groups

    # -- the question ------------------------------------------------------------------------------------------------

    def _asked(self, question: SearchQuestion, moment: Moment | None = None, within: str = "") -> _Asked:
        """Return a question as queries; of the states of a `moment` instead of its own, or of a domain alone."""
        if not self._reader.is_current:
            self._reader = generations.opened(self._archive)
            self._known_snapshots.clear()
        parsed = parse_whole_search(question.words)
        moment = moment or self._moment(question, parsed)
        shown = self._shown(moment)
        of_collection = self._collections.query
        make = Translator(self._reader.schema, exact=question.exact, of_all=shown.is_all, of_collection=of_collection)
        unasked = AskedRole.ANY if asks_for_a_role(parsed.expression) else AskedRole.PAGE
        role = role_of(question.role) if question.role else unasked
        if role is AskedRole.PAGE and not self._reader.frequency("mark", RESOURCE):
            role = AskedRole.ANY  # there is nothing to leave out
        of_role = make.role(role)
        narrowed = [make.query(parsed.expression), *self._narrowing(make, question)]
        narrowed += [] if role is AskedRole.ANY else [of_role]
        if within:
            narrowed.append(make.term("domain", within))
        parts = [*self._parts_of(make, question)]

        def of_state(state: Moment) -> Query:
            return self._in_state(make, make.all(*narrowed), state)

        present = self._places_at_present(of_state(Moment())) if question.past else ()

        def in_parts(state: Moment) -> Query:
            query = self._in_state(make, make.all(*narrowed, *parts), state)
            return make.but(query, make.places(present)) if present else query

        visible = self._in_state(make, of_role, moment)
        is_all_of_time = moment == Moment(ever=True) and not parts and not present
        return _Asked(
            self._reader, make, parsed.expression, in_parts(moment), visible, of_state, in_parts, moment, role,
            is_all_of_time, shown.hides_snapshots,
        )  # fmt: skip

    def _places_at_present(self, query: Query) -> Collection[int]:
        """Return the places of the hits of the present. Raises TooMany if they are too many to leave out."""
        pages = self._reader.count(query)  # a state has one version of a URL
        if pages > MOST_EXACT:
            raise TooMany(f"{pages:,} pages fit at present, too many to leave out; narrow the search")
        return self._reader.places_of(query, pages)[0]

    def _in_state(self, make: Translator, query: Query, moment: Moment) -> Query:
        """Return a query of the documents of another one that are in some state, and may be seen."""
        shown = self._shown(moment)
        if moment.during is not None:
            captured = self._times.within(self._reader, moment.during, self._shown(Moment(ever=True)))
            shown = replace(shown, captured=captured)
        return Filter(make, shown, has_forms=self._reader.frequency("mark", SHOWN) > 0).applied(query, moment)

    def _shown(self, moment: Moment) -> Shown:
        """Return what the asker sees in some state, whatever the span of time."""
        return Shown() if self._view is None else self._view.shown(replace(moment, during=None))

    def _narrowing(self, make: Translator, question: SearchQuestion) -> Iterator[Query]:
        unwanted = [make.term("mark", SNAPSHOT)]
        if not question.error_pages:
            unwanted.append(make.term("mark", ERROR_PAGE))
        yield make.but(Query.all_query(), *unwanted)
        if question.domain:
            yield make.term("domain", question.domain.lower())
        if question.publication:
            yield self._stored_by(make, question.publication)
        if question.collection:
            yield make.query(CollectionCondition(question.collection))
        if question.type:
            yield make.query(parse_condition("type", question.type))
        if question.language:
            yield make.query(parse_condition("lang", question.language))
        for name, value in (("site", question.site), ("after", question.after), ("before", question.before)):
            if value:
                yield make.query(parse_condition(name, value))

    def _stored_by(self, make: Translator, publication: str) -> Query:
        """Return the query of what a publication stored, as far as the asker may see the crawl that did it."""
        if self._view is None:
            return make.term("publication", publication)
        return self._view.stored_by(make, publication)

    def _parts_of(self, make: Translator, question: SearchQuestion) -> Iterator[Query]:
        """Yield what narrows a question to some snapshots."""
        if isinstance(question.at, CommitTag):
            yield make.term("domain", question.at.domain)
        if question.record:
            yield make.any(*(self._contained(make, domain, seq) for domain, seq in self._parts(question.record)))

    @staticmethod
    def _contained(make: Translator, domain: str, seq: int) -> Query:
        return make.all(make.term("domain", domain), make.contained(seq))

    def _parts(self, record_id: str) -> Iterator[tuple[str, int]]:
        """Yield domain and snapshot of each part of a record. Raises NotFound, also for one that is not released."""
        shown = None if self._gate is None else self._gate.records
        for part in look_up_crawl(self._archive, Catalogue(self._archive), record_id, shown).parts:
            yield part.tag.domain, int(part.tag.crawl_time.timestamp())

    def _moment(self, question: SearchQuestion, parsed: ParsedSearch) -> Moment:
        during = parsed.during
        if question.during:
            if during is not None:
                raise BadCondition("during: is given twice, in the words and beside them")
            during = parse_span(question.during)
        is_present = question.present or parsed.is_present
        states = [question.at is not None, parsed.at is not None, is_present]
        if sum([*states, during is not None or bool(question.record)]) > 1:
            raise BadCondition("the present, one state, a record, or a span of time: give one of them")
        if question.past and any(states):
            raise BadCondition("only in earlier versions, the present, or one state: give one of them")
        if during is not None:
            return Moment(ever=True, during=during)
        if isinstance(question.at, CommitTag):
            tag = question.at
            if str(tag) not in {snapshot.tag for snapshot in self._snapshots(tag.domain)}:
                raise NotFound(f"the archive has no snapshot {tag}")
            return Moment(int(tag.crawl_time.timestamp()))
        if question.at is not None:
            return Moment(int(question.at.timestamp()))
        if parsed.at is not None:
            return Moment(parsed.at)
        return Moment(ever=not is_present)

    # -- hits --------------------------------------------------------------------------------------------------------

    def _hits(self, stack: ExitStack, asked: _Asked, matches: Sequence[Match]) -> Iterator[Hit]:
        spans = stack.enter_context(PathSpans(self._archive.database))
        with_words = self._with_words(asked, matches)
        page = self._reader.page(len(matches), [match.address for match in matches])
        for document in page.with_text():
            words = with_words.get(place_of(document.path))
            yield self._hit(asked, document, spans.of(document.path), words, with_text=True)

    def _hits_in(self, question: SearchQuestion, moment: Moment, snapshot: SourceSnapshot) -> tuple[Hit, ...]:
        """Return some hits that a snapshot has."""
        asked = self._asked(question, replace(moment, seq=snapshot.seq, ever=False), snapshot.domain)
        with ExitStack() as stack:
            return tuple(self._hits(stack, asked, self._page(asked, question).matches))

    def _with_words(self, asked: _Asked, matches: Sequence[Match]) -> dict[int, _WithWords]:
        """Return, for the URLs of a page, how many versions have the words, the first and the last of them."""
        if not matches:
            return {}
        make, places = asked.make, [match.place for match in matches]
        ends = {"first": {"min": {"field": "since"}}, "last": {"max": {"field": "until"}}}
        wanted = {"place": {"terms": {"field": "place", "size": len(places)}, "aggs": ends}}
        query = make.all(asked.of_state(Moment(ever=True)), make.places(places))
        return {
            int(bucket["key"]): _WithWords(
                int(bucket["doc_count"]), int(bucket["first"]["value"]), int(bucket["last"]["value"])
            )
            for bucket in self._reader.aggregate(query, wanted)["place"]["buckets"]
        }

    def _hit(
        self,
        asked: _Asked,
        document: IndexedDocument,
        spans: Sequence[PathSpan],
        words: _WithWords | None,
        *,
        with_text: bool,
    ) -> Hit:
        clocks.check()
        versions = [VersionSpan(document.path, span.blob, span.since, span.until, span.stored) for span in spans]
        own_version = next((version for version in versions if version.first == document.since), None)
        snapshots = () if self._view is None else self._view.snapshots(document.domain)
        own = [] if own_version is None else self._seqs(document.domain, own_version, snapshots)
        if not own and own_version is not None and self._view is not None:
            # A reader whom a rule names sees it before its closure ends.
            closed = self._view.snapshots(document.domain, Standing.CLOSED)
            own = self._seqs(document.domain, own_version, closed)
        own = own or [document.since]
        upper = asked.moment.last
        shown = [seq for seq in own if upper is None or seq <= upper] or own[:1]
        every = self._ends(document.domain, versions, snapshots) or own
        with_words = own
        if words is not None:
            having = (version for version in versions if words.first <= version.first)
            having_them = [version for version in having if min(version.last, CURRENT) <= words.last]
            with_words = self._ends(document.domain, having_them, snapshots) or own
        text, piece = document.extracted, Snippet()
        if with_text:
            root: Callable[[str], str] = lambda word: stem(word, text.language) if text.language in STEMMERS else ""  # noqa: E731
            piece = snippet(text.body or text.description, wanted(asked.expression, root))
        at, since, until, first, last, words_from, words_to = (
            format_time(from_epoch(seq))
            for seq in (shown[-1], own[0], own[-1], every[0], every[-1], with_words[0], with_words[-1])
        )
        role = RESOURCE_ROLE if document.is_resource else PAGE_ROLE
        number = 1 if words is None else words.versions
        publication = document.publication
        if self._view is not None and own_version is not None:
            publication = self._view.publication_of(document.domain, own_version)
        return Hit(
            document.url, document.path, f"{at}@{document.domain}", document.title, document.mime_type, text.language,
            document.size, document.status, publication, role, since, until, first, last, words_from, words_to,
            number, max(number, self._count_between(document.domain, versions, with_words, snapshots)), piece,
        )  # fmt: skip

    def _count_between(
        self, domain: str, versions: Sequence[VersionSpan], ends: Sequence[int], snapshots: Sequence[VisibleSnapshot]
    ) -> int:
        """Return how many of some versions a snapshot has from the first to the last of some, as the asker sees it."""
        first, last = ends[0], ends[-1]
        near = [version for version in versions if version.first <= last and version.last > first]
        if self._view is None:
            return len(near)
        seqs = [snapshot.seq for snapshot in snapshots]
        number = 0
        for version in near:
            begin = bisect_left(seqs, max(first, version.first))
            end = bisect_left(seqs, min(last + 1, version.last))
            number += any(self._view.has(snapshot, domain, version) for snapshot in snapshots[begin:end])
        return number

    def _ends(self, domain: str, versions: Sequence[VersionSpan], snapshots: Sequence[VisibleSnapshot]) -> list[int]:
        """Return the first and the last snapshot that has one of some versions, which are in order; none without."""
        firsts = next((seqs for version in versions if (seqs := self._seqs(domain, version, snapshots))), [])
        lasts = next((seqs for version in reversed(versions) if (seqs := self._seqs(domain, version, snapshots))), [])
        return [firsts[0], lasts[-1]] if firsts and lasts else []

    def _seqs(self, domain: str, version: VersionSpan, snapshots: Sequence[VisibleSnapshot]) -> list[int]:
        """Return the snapshots that have a version, oldest first: of those that a reader sees, else of all."""
        if self._view is None:
            return [
                snapshot.seq for snapshot in self._snapshots(domain) if version.first <= snapshot.seq < version.last
            ]
        return [snapshot.seq for snapshot in snapshots if self._view.has(snapshot, domain, version)]

    def _know_all_snapshots(self) -> None:
        """Read the snapshots of all domains at once, for answers that need most of them."""
        snapshots_by_domain: dict[str, list[SourceSnapshot]] = defaultdict(list)
        for snapshot in database.snapshots(self._archive.database):
            snapshots_by_domain[snapshot.domain].append(snapshot)
        self._known_snapshots = snapshots_by_domain

    def _snapshots(self, domain: str) -> Sequence[SourceSnapshot]:
        """Return the snapshots of a domain that the asker may see, oldest first."""
        snapshots = self._known_snapshots.get(domain)
        if snapshots is None:
            snapshots = self._known_snapshots[domain] = database.snapshots(self._archive.database, domain)
        if self._view is None:
            return snapshots
        seen = {snapshot.seq for snapshot in self._view.snapshots(domain)}
        return [snapshot for snapshot in snapshots if snapshot.seq in seen]


@dataclass(frozen=True, slots=True)
class _Number:
    """A number of URLs, and their places if they were looked at. `current` of their versions no snapshot ended."""

    number: int
    is_exact: bool = True
    places: Set[int] | None = None
    current: int | None = None

    @classmethod
    def of(cls, places: Set[int], current: int) -> _Number:
        """Return the number of some places; so many that no query asks for each are counted alone."""
        return cls(len(places), places=places if len(places) <= MOST_EXACT else None, current=current)


@dataclass(frozen=True, slots=True)
class _WithWords:
    """The versions of a URL that have the words: how many, where the first begins and the last ends."""

    versions: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Page:
    """The best versions of the URLs of a page, the number of all versions, and that of all URLs if it is known."""

    versions: int
    matches: list[Match]
    urls: _Number | None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as queries of the index.

    `query` is that of the versions that are found, `visible` that of all that might be. `of_state` makes that of the
    words in other states, `in_parts` as well, in the snapshots of the question's record. `is_all_of_time`: no span of
    time and no record narrows the states. `hides_snapshots`: the asker may not see all.
    """

    reader: IndexReader
    make: Translator
    expression: Expression
    query: Query
    visible: Query
    of_state: Callable[[Moment], Query]
    in_parts: Callable[[Moment], Query]
    moment: Moment
    role: AskedRole
    is_all_of_time: bool
    hides_snapshots: bool

    def spans(self) -> Iterator[tuple[str, list[tuple[int, int]], list[tuple[int, int]]]]:
        """Yield for each domain the moments at which hits began and ended, each with their number."""
        inner = {name: {"terms": {"field": name, "size": _COUNTED}} for name in ("since", "until")}
        wanted = {"domain": {"terms": {"field": "domain", "size": _COUNTED}, "aggs": inner}}
        for bucket in self.reader.aggregate(self.query, wanted)["domain"]["buckets"]:
            moments = [
                [(int(moment["key"]), int(moment["doc_count"])) for moment in bucket[name]["buckets"]]
                for name in ("since", "until")
            ]
            yield str(bucket["key"]), moments[0], moments[1]


def _tag(domain: str, seq: int) -> str:
    return f"{format_time(from_epoch(seq))}@{domain}"


def _up_to(moments: Sequence[tuple[int, int]], seq: int) -> int:
    """Return the number at moments up to one, and at it."""
    return sum(count for moment, count in moments if moment <= seq)
