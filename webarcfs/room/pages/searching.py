"""`/search`: words in what the reader may see: hits with snippets, facets, groups by snapshot; also as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.responses import Response

from webarcfs.archive.catalogue.catalogue import ShownSelection
from webarcfs.archive.model.errors import BadCondition, Damaged, NotFound, TooMany
from webarcfs.archive.model.metadata import CommitTag, parse_moment, parse_time
from webarcfs.room.pages import lists
from webarcfs.room.replay.replay_url import calendar_path, record_path
from webarcfs.room.views import Marked, PageLink
from webarcfs.room.visit import Services, Visit
from webarcfs.search.query_language import AskedRole, parse_search

if TYPE_CHECKING:
    from webarcfs.search.searching import Hit, Searcher, SearchQuestion


#: Hits of a page, groups of a page, and hits of a table that is taken away.
HITS, _GROUPS, _TABLE = 20, 10, 1_000
#: Collections whose hits are counted, each by a question of its own: the largest ones.
_COLLECTIONS = 5
#: A facet: its name in the URL, its label (a msgid), and its values with their counts.
Facet = tuple[str, str, list[tuple[PageLink, int]]]
#: Longest search, in characters.
_LONGEST = 2_000
_FIELDS = (
    "site",
    "type",
    "language",
    "role",
    "publication",
    "collection",
    "after",
    "before",
    "at",
    "record",
    "sort",
    "group",
    "errors",
    "all",
    "present",
    "during",
)
#: Facet of the index → its parameter and its label (a msgid).
_FACETS = {
    "kind": ("type", "Kind of file"),
    "domain": ("site", "Site"),
    "language": ("language", "Language"),
    "publication": ("publication", "Publication"),
    "role": ("role", "Pages and resources"),
    "year": ("", "Year"),
}
_SORTS = {"": "by relevance", "date": "newest first", "oldest": "oldest first", "url": "by URL"}


#: The values of a search without hits.
_NO_HITS: dict[str, Any] = {
    "fault": "", "total": 0, "hits": (), "groups": (), "facets": (), "pages": None, "suggestion": None, "sorts": (),
    "groupings": (), "exports": (), "missing": 0,
}  # fmt: skip


def search(visit: Visit, _: Mapping[str, str]) -> Response:
    """Show the hits of a search; without words, the form. A `fault` marks what is wrong with the words."""
    services = visit.services
    words = visit.parameter("q")[:_LONGEST]
    fields = {name: visit.parameter(name) for name in _FIELDS if visit.parameter(name)}
    head = services.records.head(visit.parameter("from")) if visit.parameter("from") else None
    hits: dict[str, Any] = {}
    if words and services.has_search:
        try:
            hits = _answered(visit, words)
        except (BadCondition, NotFound, TooMany) as error:
            hits = {"fault": str(error)}
    return visit.page(
        "search.html",
        words=words,
        fields=fields,
        has_index=services.has_search,
        from_record=None if head is None else lists.snapshot_row(services, head),
        publications=sorted({group.publication for group in services.records.groups()}),
        snapshots=list(_snapshots(visit)),
        **(_NO_HITS | hits),
    )


def _answered(visit: Visit, words: str) -> dict[str, Any]:
    parse_search(words)  # so that a fault is marked at its place in what was typed
    services, question = visit.services, question_of(visit)
    searcher = services.searcher()
    if visit.parameter("group") == "snapshot":
        number = lists.page_of(visit)
        asked = replace(question, limit=_GROUPS + 1, offset=(number - 1) * _GROUPS)
        groups = searcher.by_snapshot(asked)
        answer = searcher.ask(replace(question, limit=1))
        pages, _ = lists.pages_of(visit, (number - 1) * _GROUPS + len(groups), _GROUPS)
        return {
            "total": answer.total,
            "groups": [_group(services, visit, group.commitTag, group.total, group.hits) for group in groups[:_GROUPS]],
            "pages": pages,
            "groupings": _groupings(visit),
            "missing": answer.missing,
        }
    offset = (lists.page_of(visit) - 1) * HITS
    answer = searcher.ask(replace(question, limit=HITS, offset=offset))
    pages, _ = lists.pages_of(visit, answer.total, HITS)
    suggestion = None
    if answer.suggestion:
        suggestion = PageLink(visit.with_parameters(q=answer.suggestion, page=None), answer.suggestion)
    return {
        "total": answer.total,
        "hits": [_hit(services, hit) for hit in answer.hits],
        "facets": _all_facets(visit, searcher, question) if answer.total else (),
        "pages": pages,
        "suggestion": suggestion,
        "sorts": [
            PageLink(visit.with_parameters(sort=name, page=None), label, visit.parameter("sort") == name)
            for name, label in _SORTS.items()
        ],
        "groupings": _groupings(visit),
        "exports": [
            PageLink(visit.with_parameters(f"/search.{kind}", page=None), kind.upper()) for kind in ("csv", "json")
        ],
        "missing": answer.missing,
    }


def question_of(visit: Visit) -> SearchQuestion:
    """Return the question of a request. Raises BadCondition, NotFound."""
    from webarcfs.search.searching import HitOrder, SearchQuestion  # noqa: PLC0415 # of the extra `search`

    sort, role = visit.parameter("sort"), visit.parameter("role")
    records = visit.parameters().get("record", [])
    at = _at(visit.parameter("at"))
    return SearchQuestion(
        words=visit.parameter("q")[:_LONGEST],
        site=visit.parameter("site"),
        after=visit.parameter("after"),
        before=visit.parameter("before"),
        during=visit.parameter("during"),
        at=at,
        record=records[-1] if records and at is None else "",
        present=visit.parameter("present") == "1" and not records and at is None,
        publication=visit.parameter("publication"),
        collection=visit.parameter("collection"),
        type=visit.parameter("type"),
        language=visit.parameter("language"),
        role=role if role in set(AskedRole) else "",
        error_pages=visit.parameter("errors") == "1",
        sort=HitOrder(sort) if sort in set(HitOrder) else HitOrder.RELEVANCE,
    )


def _at(text: str) -> CommitTag | datetime | None:
    try:
        return parse_moment(text) if text else None
    except Damaged:
        raise BadCondition(f"{text!r} is no time and no snapshot") from None


def _snapshots(visit: Visit) -> Iterator[tuple[str, str, bool]]:
    chosen = set(visit.parameters().get("record", []))
    for record in visit.services.records.listed(ShownSelection(), slice(0, lists.ROWS)):
        if record.closed_until is None:
            yield record.id, f"{record.title or record.domain}", record.id in chosen


def _hit(services: Services, hit: Hit) -> SimpleNamespace:
    """Return a hit. `calendar` has the versions of its URL; `first` and `last` are snapshots that have the URL."""
    tag = CommitTag.parse(hit.commitTag)
    record_id = services.gate.facts(tag.domain).records.get(int(tag.crawl_time.timestamp()))
    head = None if record_id is None else services.records.head(record_id)
    return SimpleNamespace(
        href=lists.frame_of(tag, hit.url),
        calendar=calendar_path(hit.url),
        title=hit.title,
        url=hit.url,
        mime_type=hit.mimeType,
        language=hit.language,
        size=hit.size,
        first=parse_time(hit.first),
        last=parse_time(hit.last),
        snippet=Marked(hit.snippet.text, hit.snippet.marks),
        signature="" if head is None else head.signature,
        project="" if head is None else head.project,
        domain=tag.domain,
        record=None if head is None else PageLink(record_path(head.id), head.title or tag.domain),
    )


def _group(services: Services, visit: Visit, tag_text: str, total: int, hits: Iterable[Hit]) -> SimpleNamespace:
    """Return the hits of one snapshot: how many, the first of them, and where all are."""
    tag = CommitTag.parse(tag_text)
    record_id = services.gate.facts(tag.domain).records.get(int(tag.crawl_time.timestamp()))
    head = None if record_id is None else services.records.head(record_id)
    return SimpleNamespace(
        anchor=re.sub(r"[^A-Za-z0-9]", "-", tag_text),
        title=tag.domain if head is None or not head.title else head.title,
        date=tag.crawl_time,
        domain=tag.domain,
        total=total,
        hits=[_hit(services, hit) for hit in hits],
        more=visit.with_parameters(at=tag_text, group=None, page=None, record=None),
    )


def _groupings(visit: Visit) -> tuple[PageLink, ...]:
    is_grouped = visit.parameter("group") == "snapshot"
    return (
        PageLink(visit.with_parameters(group=None, page=None), "by URL", not is_grouped),
        PageLink(visit.with_parameters(group="snapshot", page=None), "by snapshot", is_grouped),
    )


def _all_facets(visit: Visit, searcher: Searcher, question: SearchQuestion) -> list[Facet]:
    facets = list(_facets(visit, searcher.facets(question)))
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


def _facets(visit: Visit, counts: dict[str, list[tuple[str, int]]]) -> Iterator[Facet]:
    """Yield the facets: the name in the URL, the label (a msgid), and the values with their counts."""
    for name, (parameter, label) in _FACETS.items():
        chosen = visit.parameter(parameter) if parameter else ""
        values = []
        for value, count in counts.get(name, ()):
            here = value == chosen
            changes: dict[str, str | int | None] = {parameter: None if here else value, "page": None}
            href = visit.with_parameters("", **changes) if parameter else ""
            values.append((PageLink(href, value, here), count))
        if len(values) > 1 or chosen:
            yield parameter, label, values


# -- taken away --------------------------------------------------------------------------------------------------------


def exported(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return the hits as `csv` or `json`, 1,000 at most. `archived` is where each is read.

    Raises BadCondition, NotFound (also where the archive has no full-text index), Busy.
    """
    if not visit.services.has_search:
        raise NotFound("this archive has no full-text index, so nothing can be searched")
    question = replace(question_of(visit), limit=_TABLE)
    answer = visit.services.searcher().ask(question)
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
