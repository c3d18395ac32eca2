"""Searches an archive: a question in, hits with their snippets, counts, facets and other spellings out.

By default a hit is a URL as it is at present. All counts are of the documents that the asker may see, since what a
reader may not see is left out inside the query.

A snippet is the piece of a text around the words of a search, with the places of the words. Where a search finds
nothing, spellings that would find something are looked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import SequenceMatcher
from enum import StrEnum

from tantivy import Query

from webarcfs.access.access_rules import Standing, VersionSpan
from webarcfs.access.gate import Gate
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import database
from webarcfs.archive.index.database import PathSpan, PathSpans, SourceSnapshot
from webarcfs.archive.model.errors import BadCondition, NotFound, TooMany
from webarcfs.archive.model.metadata import PAGE_ROLE, RESOURCE_ROLE, CommitTag, format_time, from_epoch
from webarcfs.archive.system import clocks
from webarcfs.search import generations
from webarcfs.search.index import STEMMERS, HitPage, IndexReader, stem
from webarcfs.search.query_language import (
    After,
    All,
    Any,
    AskedRole,
    Before,
    Expression,
    Language,
    Not,
    RoleCondition,
    Site,
    TypeCondition,
    Words,
    asks_for_a_role,
    parse_search,
    role_of,
)
from webarcfs.search.translation import Filter, Moment, ReadersView, Shown, Translator
from webarcfs.search.words import ERROR_PAGE, RESOURCE, SHOWN, SNAPSHOT, IndexedDocument, TextWord, words_of

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


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a text on one line, and the places (begin, end) of the words that were found in it."""

    text: str = ""
    marks: tuple[tuple[int, int], ...] = ()


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


def _positive(expression: Expression) -> Iterator[Words]:
    match expression:
        case Words():
            yield expression
        case All(inner) | Any(inner):
            for operand in inner:
                yield from _positive(operand)
        case Not() | Site() | TypeCondition() | Language() | RoleCondition() | Before() | After():
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
_AT_ONCE, _LATEST = 20_000, 1 << 40
#: Domains and moments that are counted for groups and years.
_COUNTED = 65_000


class HitOrder(StrEnum):
    """An order of hits."""

    RELEVANCE = "relevance"
    DATE = "date"  # newest first
    OLDEST = "oldest"
    URL = "url"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuestion:
    """A search, and what narrows it. `words` is in the language of query_language.py.

    Of the states of the archive it means the present; with `at` that of a snapshot, or of all domains at a time; with
    `record` the snapshots of a record; with `all_versions` all of them. Texts that are empty narrow nothing. Without a
    `role`, and without one in the words, it means pages.
    """

    words: str
    at: CommitTag | datetime | None = None
    record: str = ""
    all_versions: bool = False
    domain: str = ""
    publication: str = ""
    type: str = ""
    language: str = ""
    role: str = ""
    error_pages: bool = False
    exact: bool = False
    sort: HitOrder = HitOrder.RELEVANCE
    limit: int = 20
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found, as it is in the snapshot `commitTag`.

    `since` and `until` are the first and the last snapshot that have it so, `first` and `last` those that have anything
    at its URL. Times are CET. The names are those of the output.
    """

    url: str
    path: str
    commitTag: str  # noqa: N815 # as in other outputs
    title: str
    mimeType: str  # noqa: N815
    language: str
    size: int
    status: int
    publication: str
    role: str
    since: str
    until: str
    first: str
    last: str
    snippet: Snippet = field(default_factory=Snippet)

    def place_of(self) -> tuple[str, str]:
        """Return the snapshot and the path at which a mount has it."""
        return self.commitTag, self.path


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """A page of hits, the number of all, and spellings that would find more where nothing was found.

    `missing` are snapshots of the archive that are not in the index yet.
    """

    total: int
    hits: tuple[Hit, ...]
    suggestion: str = ""
    missing: int = 0


@dataclass(frozen=True, slots=True)
class SnapshotHits:
    """The number of hits in a snapshot, and the first of them."""

    commitTag: str  # noqa: N815
    total: int
    hits: tuple[Hit, ...] = ()


class Searcher:
    """Searches one archive, for one reader if there is a `gate`. For one thread; follows what is indexed meanwhile."""

    def __init__(self, archive: Archive, gate: Gate | None = None) -> None:
        """Raises NotFound without an index, Damaged, Busy."""
        self._archive = archive
        self._gate = gate
        self._reader = generations.opened(archive)
        self._known_snapshots: dict[str, list[SourceSnapshot]] = {}
        self._view = None if gate is None else ReadersView(gate)

    def ask(self, question: SearchQuestion) -> SearchAnswer:
        """Return a page of hits. Raises BadCondition, NotFound for an unknown snapshot or record, TooMany."""
        if question.offset + question.limit > MOST_HITS:
            raise TooMany(f"hits beyond the {MOST_HITS:,}th are not listed; narrow the search")
        asked = self._asked(question)
        page = asked.page(question)
        with ExitStack() as stack:
            hits = tuple(self._hits(stack, asked, page))
        suggestion = "" if page.total else suggest(self._reader, asked.expression, asked.visible)
        return SearchAnswer(page.total, hits, suggestion, self.missing())

    def missing(self) -> int:
        """Return the number of snapshots that are not indexed yet."""
        return max(database.count_snapshots(self._archive.database) - self._reader.count_snapshots(), 0)

    def count(self, question: SearchQuestion) -> int:
        """Return the number of hits."""
        return self._reader.count(self._asked(question).query)

    def places(self, question: SearchQuestion) -> Iterator[tuple[str, str]]:
        """Yield commitTag and path of each hit: all that links and lists need."""
        asked = self._asked(question)
        upper = asked.moment.seq
        with ExitStack() as stack:
            spans = None if self._view is None else stack.enter_context(PathSpans(self._archive.database))
            for document in asked.page(question).plain():
                if spans is not None:
                    yield self._hit(asked, document, spans.of(document.path), with_text=False).place_of()
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

    def facets(self, question: SearchQuestion) -> dict[str, list[tuple[str, int]]]:
        """Return the most frequent values of each facet, with the number of hits; years last.

        A version counts in each year of which a snapshot has it, so the years' sum may exceed the total.
        """
        asked = self._asked(question)
        terms = {
            name: {"terms": {"field": name, "size": MOST_VALUES}}
            for name in ("kind", "domain", "language", "publication", "extension")
        }
        wanted = terms | {"total": {"value_count": {"field": "since"}}}
        aggregates = self._reader.aggregate(asked.query, wanted)
        facets = {
            name: [
                (str(bucket["key"]), int(bucket["doc_count"]))
                for bucket in aggregates[name]["buckets"]
                if bucket["key"]
            ]
            for name in terms
        }
        if self._reader.frequency("mark", RESOURCE):
            roles = self._by_role(question, asked.role, int(aggregates["total"]["value"]))
            facets["role"] = [(str(role), count) for role, count in roles if count]
        years: dict[str, int] = defaultdict(int)
        self._know_all_snapshots()
        for domain, begun, ended in asked.spans():
            of_year: dict[int, list[int]] = defaultdict(list)
            for snapshot in self._snapshots(domain):
                of_year[from_epoch(snapshot.seq).year].append(snapshot.seq)
            for year, seqs in of_year.items():
                clocks.check()
                years[str(year)] += _up_to(begun, max(seqs)) - _up_to(ended, min(seqs))
        facets["year"] = sorted((year, count) for year, count in years.items() if count)
        return facets

    def _by_role(self, question: SearchQuestion, asked: AskedRole, total: int) -> Iterator[tuple[AskedRole, int]]:
        """Yield the number of hits by role. `total` is that of the role that was asked: no query counts it again."""
        if asked is AskedRole.RESOURCE:
            yield AskedRole.PAGE, self.count(replace(question, role=AskedRole.PAGE))
            yield AskedRole.RESOURCE, total
            return
        resources = self.count(replace(question, role=AskedRole.RESOURCE))
        pages = total if asked is AskedRole.PAGE else max(total - resources, 0)  # what shows may change meanwhile
        yield AskedRole.PAGE, pages
        yield AskedRole.RESOURCE, resources

    def by_snapshot(self, question: SearchQuestion) -> list[SnapshotHits]:
        """Return the snapshots that have hits, newest first, with their numbers; the first ones with some hits."""
        asked = self._asked(replace(question, all_versions=True))
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
                tag = CommitTag.parse(snapshot.tag)
                hits = self.ask(replace(question, at=tag, all_versions=False, limit=_OF_EACH, offset=0)).hits
            groups.append(SnapshotHits(snapshot.tag, count, hits))
        return groups

    # -- the question ------------------------------------------------------------------------------------------------

    def _asked(self, question: SearchQuestion) -> _Asked:
        if not self._reader.is_current:
            self._reader = generations.opened(self._archive)
            self._known_snapshots.clear()
        expression = parse_search(question.words)
        moment = self._moment(question)
        shown = Shown() if self._view is None else self._view.shown(moment)
        make = Translator(self._reader.schema, exact=question.exact, of_all=shown.is_all)
        unasked = AskedRole.ANY if asks_for_a_role(expression) else AskedRole.PAGE
        role = role_of(question.role) if question.role else unasked
        if role is AskedRole.PAGE and not self._reader.frequency("mark", RESOURCE):
            role = AskedRole.ANY  # there is nothing to leave out
        of_role = make.role(role)
        narrowed = [make.query(expression), *self._narrowing(make, question)]
        narrowed += [] if role is AskedRole.ANY else [of_role]
        filter_ = Filter(make, shown, has_forms=self._reader.frequency("mark", SHOWN) > 0)
        return _Asked(
            self._reader,
            expression,
            filter_.applied(make.all(*narrowed), moment),
            filter_.applied(of_role, moment),
            moment,
            role,
        )

    def _narrowing(self, make: Translator, question: SearchQuestion) -> Iterator[Query]:
        unwanted = [make.term("mark", SNAPSHOT)]
        if not question.error_pages:
            unwanted.append(make.term("mark", ERROR_PAGE))
        yield make.but(Query.all_query(), *unwanted)
        for name, value in (("domain", question.domain), ("publication", question.publication)):
            if value:
                yield make.term(name, value.lower() if name == "domain" else value)
        if question.type:
            yield make.query(parse_search(f"type:{question.type}"))
        if question.language:
            yield make.query(parse_search(f"lang:{question.language}"))
        if isinstance(question.at, CommitTag):
            yield make.term("domain", question.at.domain)
        if question.record:
            yield make.any(*(self._contained(make, domain, seq) for domain, seq in self._parts(question.record)))

    @staticmethod
    def _contained(make: Translator, domain: str, seq: int) -> Query:
        return make.all(
            make.term("domain", domain), make.number("since", None, seq), make.number("until", seq + 1, None)
        )

    def _parts(self, record_id: str) -> Iterator[tuple[str, int]]:
        """Yield domain and snapshot of each part of a record. Raises NotFound, also for one that is not released."""
        if self._gate is None:
            record = Catalogue(self._archive).read(record_id)[0]
        else:
            shown = next((record for record in self._gate.records() if record.id == record_id), None)
            if shown is None:
                raise NotFound(f"there is no record {record_id!r}")
            record = shown
        for part in record.parts:
            yield part.tag.domain, int(part.tag.crawl_time.timestamp())

    def _moment(self, question: SearchQuestion) -> Moment:
        given = [question.at is not None, bool(question.record), question.all_versions]
        if sum(given) > 1:
            raise BadCondition("one state, a record, or all versions: give one of them")
        if isinstance(question.at, CommitTag):
            tag = question.at
            if str(tag) not in {snapshot.tag for snapshot in self._snapshots(tag.domain)}:
                raise NotFound(f"the archive has no snapshot {tag}")
            return Moment(int(tag.crawl_time.timestamp()))
        if question.at is not None:
            return Moment(int(question.at.timestamp()))
        return Moment(ever=question.all_versions or bool(question.record))

    # -- hits --------------------------------------------------------------------------------------------------------

    def _hits(self, stack: ExitStack, asked: _Asked, page: HitPage) -> Iterator[Hit]:
        spans = stack.enter_context(PathSpans(self._archive.database))
        for document in page.with_text():
            yield self._hit(asked, document, spans.of(document.path), with_text=True)

    def _hit(self, asked: _Asked, document: IndexedDocument, spans: Sequence[PathSpan], *, with_text: bool) -> Hit:
        clocks.check()
        versions = [VersionSpan(document.path, span.blob, span.since, span.until, span.stored) for span in spans]
        own_version = next((version for version in versions if version.first == document.since), None)
        own = [] if own_version is None else self._seqs(document.domain, own_version)
        if not own and own_version is not None:  # a reader whom a rule names sees it before its closure ends
            own = self._seqs(document.domain, own_version, Standing.CLOSED)
        own = own or [document.since]
        upper = asked.moment.seq
        shown = [seq for seq in own if upper is None or seq <= upper] or own
        every = sorted({seq for version in versions for seq in self._seqs(document.domain, version)}) or own
        text, piece = document.extracted, Snippet()
        if with_text:
            root: Callable[[str], str] = lambda word: stem(word, text.language) if text.language in STEMMERS else ""  # noqa: E731
            piece = snippet(text.body or text.description, wanted(asked.expression, root))
        at, since, until, first, last = (
            format_time(from_epoch(seq)) for seq in (shown[-1], own[0], own[-1], every[0], every[-1])
        )
        role = RESOURCE_ROLE if document.is_resource else PAGE_ROLE
        return Hit(
            document.url, document.path, f"{at}@{document.domain}", document.title, document.mime_type, text.language,
            document.size, document.status, document.publication, role, since, until, first, last, piece,
        )  # fmt: skip

    def _seqs(self, domain: str, version: VersionSpan, standing: Standing = Standing.OPEN) -> list[int]:
        """Return the snapshots of a standing, to the asker, that have a version, oldest first."""
        if self._view is None:
            return [
                snapshot.seq for snapshot in self._snapshots(domain) if version.first <= snapshot.seq < version.last
            ]
        return [
            snapshot.seq
            for snapshot in self._view.snapshots(domain, standing)
            if self._view.has(snapshot, domain, version)
        ]

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
class _Asked:
    """A question as a query of the index; `visible` is that of all documents that might be found."""

    reader: IndexReader
    expression: Expression
    query: Query
    visible: Query
    moment: Moment
    role: AskedRole

    def page(self, question: SearchQuestion) -> HitPage:
        """Return the documents of the question's page."""
        by = {HitOrder.DATE: ("since", False), HitOrder.OLDEST: ("since", True), HitOrder.URL: ("rule_key", True)}
        order, ascending = by.get(question.sort, ("", False))
        return self.reader.documents(self.query, question.limit, question.offset, order, ascending=ascending)

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
