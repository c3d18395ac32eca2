"""`/search`: words in what the reader may see: hits with snippets, facets, groups by snapshot; also as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.responses import Response

from webarcfs.archive.model.errors import BadCondition, NotFound, TooMany
from webarcfs.archive.model.metadata import CommitTag, from_epoch, parse_time
from webarcfs.room.pages import curves, finding, lists
from webarcfs.room.pages.search_question import LONGEST, NARROWING, STATES, question_of, searcher_of
from webarcfs.room.replay import memento
from webarcfs.room.replay.replay_url import calendar_path, record_path
from webarcfs.room.views import Change, Marked, PageLink, SnapshotRow
from webarcfs.room.visit import Services, Visit
from webarcfs.search.query_language import (
    All,
    Expression,
    ParsedSearch,
    Words,
    parse_whole_search,
)
from webarcfs.search.query_language import Any as AnyOf
from webarcfs.search.words import KINDS
from webarcfs.web import language as languages
from webarcfs.web.language import msgid, name_of_language, translate

if TYPE_CHECKING:
    from webarcfs.search.searching import Hit, Searcher, SearchQuestion, SnapshotHits


#: Hits of a page, groups of a page, and hits of a table that is taken away.
HITS, _GROUPS, _TABLE = 20, 10, 1_000
#: Collections whose hits are counted, each by a question of its own: the largest ones.
_COLLECTIONS = 5
#: A facet: its name in the URL, its label (a msgid), and its values with their counts.
Facet = tuple[str, str, list[tuple[PageLink, int]]]
#: Publications that a form offers: more than the first number are typed, and the second number of them suggested.
_CHOSEN, _SUGGESTED = 30, 200
_FIELDS = (
    "during",
    "at",
    "present",
    "past",
    "type",
    "language",
    "site",
    "publication",
    "collection",
    "role",
    "after",
    "before",
    "record",
    "sort",
    "group",
    "errors",
)
#: Facet of the index → its parameter and its label (a msgid).
_FACETS = {
    "year": ("during", "Captured in"),
    "kind": ("type", "Kind of file"),
    "domain": ("site", "Site"),
    "language": ("language", "Language"),
    "publication": ("publication", "Publication"),
    "role": ("role", "Pages and resources"),
}
_AT_PRESENT, _NONE_AT_PRESENT = msgid("%(count)s at present"), msgid("none at present")
_IN_PAST = msgid("%(count)s only in earlier versions")
#: Since when a hit has the words, on which day it had them, from when to when; the same of a search without words.
_SPANS = (
    msgid("Has the words since %(first)s"),
    msgid("Had the words on %(first)s"),
    msgid("Had the words from %(first)s to %(last)s"),
)
_SPANS_OF_CONDITIONS = (
    msgid("Fits since %(first)s"),
    msgid("Fitted on %(first)s"),
    msgid("Fitted from %(first)s to %(last)s"),
)
_SORTS = {"": "by relevance", "date": "newest first", "oldest": "oldest first", "url": "by URL"}
#: Languages that the form offers: those of which most archives have pages. Others are codes in the URL.
_LANGUAGES = (
    "ar", "bg", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hr", "hu", "it", "ja", "ko", "lt",
    "lv", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "tr", "uk", "vi", "zh",
)  # fmt: skip


# == the page =========================================================================================================


#: The values of a search without hits.
_NO_HITS: dict[str, Any] = {
    "fault": "", "total": 0, "shares": (), "is_exact": True, "is_of_the_past": False, "hits": (), "groups": (),
    "facets": (), "pages": None, "curve": None, "either": None, "suggestion": None, "states": (), "as_it_was": None,
    "sorts": (), "groupings": (), "exports": (), "missing": 0,
}  # fmt: skip


def search(visit: Visit, _: Mapping[str, str]) -> Response:
    """Show the hits of a search; without words, the form. A `fault` marks what is wrong with the words.

    `address` is the address that the words spell, if they do; it leads to its versions.
    """
    services = visit.services
    words = visit.parameter("q")[:LONGEST]
    fields = visit.given(_FIELDS)
    hits: dict[str, Any] = {}
    if words and services.has_search:
        try:
            hits = _answered(visit, words)
        except (BadCondition, NotFound, TooMany) as error:
            hits = {"fault": str(error)}
    url = finding.address_of(services, words)
    return visit.page(
        "search.html",
        words=words,
        fields=fields,
        has_index=services.has_search,
        address=None if url is None else PageLink(calendar_path(url), url),
        from_record=_record(visit, "from"),
        only_record=_record(visit, "record"),
        publications=_publications(services),
        languages=_languages(visit.language, fields.get("language", "")),
        kinds=sorted(KINDS),
        table_rows=_TABLE,
        **(_NO_HITS | hits),
    )


def _either(visit: Visit, words: str) -> PageLink | None:
    """Return the search for one of several plain words; None for a search that says more, or has one word."""
    plain = words.split()
    if len(plain) < 2 or any(not word.isalnum() or word in ("OR", "NOT") for word in plain):
        return None
    return PageLink(visit.with_parameters(q=" OR ".join(plain), page=None), "")


def _curve(visit: Visit, words: str, parsed: ParsedSearch) -> PageLink | None:
    """Return the curve of the words; None where they, or a choice, mean certain states alone."""
    if parsed.says_states or visit.given(("record", "collection")):
        return None
    return PageLink(curves.address([words], **visit.given(NARROWING)), "")


def _record(visit: Visit, name: str) -> tuple[SnapshotRow, PageLink] | None:
    """Return the record that a parameter names, with a link: to its crawl alone, or back to all crawls."""
    record_id = visit.parameter(name)
    head = visit.services.records.head(record_id) if record_id else None
    if head is None:
        return None
    changes: dict[str, str | None] = dict.fromkeys((*STATES, "page", "from"))
    if name == "from":
        changes["record"] = record_id
    return lists.snapshot_row(visit.services, head), PageLink(visit.with_parameters(**changes), "")


def _publications(services: Services) -> SimpleNamespace:
    """Return the publications that readers see: `names`, and whether these are all of them, few enough to choose."""
    names = sorted({group.publication for group in services.records.groups()})
    return SimpleNamespace(names=names[:_SUGGESTED], is_choice=len(names) <= _CHOSEN)


def _languages(of_page: str, chosen: str) -> list[tuple[str, str]]:
    """Return the languages of the form by their names: code and name."""
    codes = {*_LANGUAGES, *([chosen] if chosen else [])}
    return sorted(
        ((code, name_of_language(code, of_page)) for code in codes), key=lambda language: language[1].casefold()
    )


def _answered(visit: Visit, words: str) -> dict[str, Any]:
    parsed = parse_whole_search(words)  # so that a fault is marked at its place in what was typed
    services, searcher, question = visit.services, visit.services.searcher(), question_of(visit)
    is_grouped = visit.parameter("group") == "snapshot" and question.at is None
    offset = 0 if is_grouped else (lists.page_of(visit) - 1) * HITS
    question = replace(question, limit=1 if is_grouped else HITS, offset=offset)
    answer = searcher.ask(question)
    is_of_the_past = not answer.total and question.present
    if is_of_the_past:  # what the present does not have, the past may have
        question = replace(question, present=False)
        answer = searcher.ask(question)
    states = () if parsed.says_states else _states(visit, question)
    values: dict[str, Any] = {
        "total": answer.total,
        "is_exact": answer.is_exact,
        "is_of_the_past": is_of_the_past and answer.total > 0,
        "missing": answer.missing,
        "states": states,
        "groupings": () if question.at is not None else _groupings(visit),
    }
    if not answer.total:
        words_instead = answer.suggestion
        return values | {
            "suggestion": PageLink(visit.with_parameters(q=words_instead, page=None), words_instead)
            if words_instead
            else None,
            "either": _either(visit, words),
            "as_it_was": _as_it_was(visit, question),
        }
    values["curve"] = _curve(visit, words, parsed)
    if answer.in_present is not None and not is_of_the_past:
        values["shares"] = _shares(visit, question, answer.total, answer.in_present, states)
    if is_grouped:
        return values | _grouped(visit, question, parsed)
    taken = {"present": None} if is_of_the_past else {}
    return values | {
        "hits": [_hit(services, hit, parsed) for hit in answer.hits],
        "facets": _all_facets(visit, searcher, question, parsed),
        "pages": lists.pages_of(visit, answer.total, HITS)[0],
        "sorts": [
            PageLink(visit.with_parameters(sort=name, page=None), label, visit.parameter("sort") == name)
            for name, label in _SORTS.items()
        ],
        "exports": [
            PageLink(visit.with_parameters(f"/search.{kind}", page=None, group=None, **taken), kind.upper())
            for kind in ("csv", "json")
        ],
    }


def _grouped(visit: Visit, question: SearchQuestion, parsed: ParsedSearch) -> dict[str, Any]:
    """Return the hits by snapshot: a page of groups, and the way to more of them."""
    offset = (lists.page_of(visit) - 1) * _GROUPS
    groups = visit.services.searcher().by_snapshot(replace(question, limit=_GROUPS + 1, offset=offset))
    return {
        "groups": [_group(visit, group, parsed) for group in groups[:_GROUPS]],
        "pages": lists.pages_of(visit, offset + len(groups), _GROUPS)[0],
    }


def _shares(
    visit: Visit, question: SearchQuestion, total: int, in_present: int, states: Sequence[PageLink]
) -> list[PageLink]:
    """Return how many of the hits are at present, and how many in earlier versions alone.

    Each leads to the search of these, unless the question is of certain states itself, or all hits are of one kind.
    """
    language, past = visit.language, max(total - in_present, 0)
    if not in_present:
        at_present = translate(_NONE_AT_PRESENT, language)
    else:
        at_present = translate(_AT_PRESENT, language) % {"count": languages.number(in_present, language)}
    in_past = translate(_IN_PAST, language) % {"count": languages.number(past, language)}
    leads = bool(states and in_present and not question.record)
    return [
        PageLink(states[1].href if leads and not question.during else "", at_present),
        PageLink(states[2].href if leads and past else "", in_past),
    ]


def _hit(services: Services, hit: Hit, parsed: ParsedSearch) -> SimpleNamespace:
    """Return a hit: the span in which its URL has the words, and what became of it since.

    `calendar` has all versions of its URL. `span` says from when to when it has the words, or fits the conditions of a
    search without any. `since` is what became of the page after that; None where it still has them.
    """
    tag = CommitTag.parse(hit.commitTag)
    facts = services.gate.facts(tag.domain)
    head = memento.record_of(services, tag.domain, int(tag.crawl_time.timestamp()))
    newest = {from_epoch(snapshot.seq) for snapshot in facts.newest_at(len(facts.shown) - 1)}
    words_from, words_to = parse_time(hit.wordsFrom), parse_time(hit.wordsTo)
    since_when, on_a_day, between = _SPANS if _has_words(parsed.expression) else _SPANS_OF_CONDITIONS
    if words_to in newest:
        span, since = since_when, None
    else:
        span = on_a_day if words_from.date() == words_to.date() else between
        since = Change.CHANGED if parse_time(hit.last) in newest else Change.GONE
    return SimpleNamespace(
        href=lists.frame_of(tag, hit.url),
        calendar=calendar_path(hit.url),
        title=hit.title,
        url=hit.url,
        date=tag.crawl_time,
        mime_type=hit.mimeType,
        language=hit.language,
        size=hit.size,
        span=span,
        words_from=words_from,
        words_to=words_to,
        versions=hit.versions,
        of_versions=hit.ofVersions,
        since=since,
        snippet=Marked(hit.snippet.text, hit.snippet.marks),
        signature="" if head is None else head.signature,
        project="" if head is None else head.project,
        domain=tag.domain,
        record=None if head is None else PageLink(record_path(head.id), head.title or tag.domain),
    )


def _has_words(expression: Expression) -> bool:
    match expression:
        case Words():
            return True
        case All(inner) | AnyOf(inner):
            return any(map(_has_words, inner))
    return False


def _group(visit: Visit, group: SnapshotHits, parsed: ParsedSearch) -> SimpleNamespace:
    """Return the hits of one snapshot: how many, the first of them, and where all are."""
    services, tag = visit.services, CommitTag.parse(group.commitTag)
    head = memento.record_of(services, tag.domain, int(tag.crawl_time.timestamp()))
    return SimpleNamespace(
        anchor=re.sub(r"[^A-Za-z0-9]", "-", group.commitTag),
        title=tag.domain if head is None or not head.title else head.title,
        date=tag.crawl_time,
        domain=tag.domain,
        total=group.total,
        hits=[_hit(services, hit, parsed) for hit in group.hits],
        more=_in_state(visit, group=None, at=group.commitTag),
    )


def _in_state(visit: Visit, **changes: str | None) -> str:
    """Return the search with other states of the archive than now, and with other changes."""
    return visit.with_parameters("", **(dict.fromkeys((*STATES, "page")) | changes))


def _as_it_was(visit: Visit, question: SearchQuestion) -> PageLink | None:
    """Return the search of the state at the end of the span of time that was asked; None where none was."""
    end = question.during.rpartition("..")[2]
    return PageLink(_in_state(visit, at=end), end) if end else None


def _states(visit: Visit, question: SearchQuestion) -> tuple[PageLink, ...]:
    """Return the choice between all versions and the present."""
    is_part = question.present or question.past or question.at is not None
    is_all = not (is_part or question.during or question.record)
    return (
        PageLink(_in_state(visit), "all versions", is_all),
        PageLink(_in_state(visit, present="1"), "at present", question.present),
        PageLink(_in_state(visit, past="1", during=question.during or None), "only in earlier versions", question.past),
    )


def _groupings(visit: Visit) -> tuple[PageLink, ...]:
    is_grouped = visit.parameter("group") == "snapshot"
    return (
        PageLink(visit.with_parameters(group=None, page=None), "by URL", not is_grouped),
        PageLink(visit.with_parameters(group="snapshot", page=None), "by snapshot", is_grouped),
    )


def _all_facets(visit: Visit, searcher: Searcher, question: SearchQuestion, parsed: ParsedSearch) -> list[Facet]:
    facets = list(_facets(visit, searcher.facets(question), parsed))
    values = list(_in_collections(visit, searcher, question))
    return [*facets, ("collection", "Collection", values)] if values else facets


def _in_collections(visit: Visit, searcher: Searcher, question: SearchQuestion) -> Iterator[tuple[PageLink, int]]:
    """Yield the collections that have hits, of the largest ones; where one is chosen, that alone."""
    collections = visit.services.collections().by_name
    names = sorted(collections, key=lambda name: (-collections[name].count, name))[:_COLLECTIONS]
    for name in [question.collection] if question.collection else names:
        if name in collections and (count := searcher.count(replace(question, collection=name))):
            href = visit.with_parameters("", collection=None if question.collection else name, page=None)
            title = collections[name].collection.title_in(visit.language)
            yield PageLink(href, title, bool(question.collection)), count


def _facets(visit: Visit, counts: dict[str, list[tuple[str, int]]], parsed: ParsedSearch) -> Iterator[Facet]:
    """Yield the facets: the name in the URL, the label (a msgid), and the values with their counts.

    A year is a span in which pages were captured. It takes the place of the state or the record that was asked, and is
    no link where the words say what is asked.
    """
    for name, (parameter, label) in _FACETS.items():
        chosen = visit.parameter(parameter)
        values = []
        for value, count in counts.get(name, ()):
            here = value == chosen
            changed = None if here else value
            if parameter in STATES and parsed.says_states:
                href = ""
            elif parameter in STATES:
                href = _in_state(visit, **{parameter: changed})
            else:
                href = visit.with_parameters("", page=None, **{parameter: changed})
            values.append((PageLink(href, value, here), count))
        if values:
            yield parameter, label, values


# -- taken away --------------------------------------------------------------------------------------------------------


def exported(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return the hits as `csv` or `json`, 1,000 at most. `archived` is where each is read.

    Raises BadCondition, NotFound (also where the archive has no full-text index), Busy.
    """
    searcher = searcher_of(visit)
    answer = searcher.ask(replace(question_of(visit), limit=_TABLE))
    rows = [
        asdict(hit)
        | {
            "snippet": hit.snippet.text,
            "archived": visit.base + lists.frame_of(CommitTag.parse(hit.commitTag), hit.url),
        }
        for hit in answer.hits
    ]
    if path_params["kind"] == "json":
        output = {
            "total": answer.total,
            "exact": answer.is_exact,
            "inPresent": answer.in_present,
            "hits": rows,
            "suggestion": answer.suggestion,
        }
        return visit.file(json.dumps(output, ensure_ascii=False, indent=1).encode(), "application/json")
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return visit.file(text.getvalue().encode(), "text/csv; charset=utf-8")


def description(visit: Visit, _: Mapping[str, str]) -> Response:
    """Return the OpenSearch description, by which browsers add the search to theirs."""
    address = quote(visit.base, safe=":/[]")
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">'
        "<ShortName>Web archive</ShortName><Description>Words in archived pages</Description>"
        "<InputEncoding>UTF-8</InputEncoding>"
        f'<Url type="text/html" template="{address}/search?q={{searchTerms}}"/>'
        f'<Url type="application/json" template="{address}/search.json?q={{searchTerms}}"/>'
        "</OpenSearchDescription>\n"
    )
    return visit.file(text.encode(), "application/opensearchdescription+xml")
