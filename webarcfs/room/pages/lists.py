"""`/` and `/publication/<name>`: what the archive has, from the fonds down to snapshots.

Several pages share the row of a snapshot, and the way through a long list.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import attrgetter
from types import SimpleNamespace
from urllib.parse import quote, urlencode

from starlette.responses import Response

from webarcfs.access.reader_collections import VisibleCollection
from webarcfs.access.reader_stores import RecordHead
from webarcfs.access.visible_captures import VisibleCapture
from webarcfs.archive.catalogue.catalogue import MOST_WORDS, ShownGroup, ShownSelection
from webarcfs.archive.config.collection_files import read_picture
from webarcfs.archive.index.database import Span
from webarcfs.archive.model.arc_paths import arc_path
from webarcfs.archive.model.errors import NotFound, UrlRefused, UsageError
from webarcfs.archive.model.metadata import CommitTag, format_time
from webarcfs.archive.model.url_lists import without_fragment
from webarcfs.archive.model.urls import surt
from webarcfs.content.text import HTML_TYPES
from webarcfs.room.replay.headers import policy_of_bytes
from webarcfs.room.replay.replay_url import (
    Modifier,
    collection_path,
    digits_of,
    publication_path,
    record_path,
    replay_path,
)
from webarcfs.room.views import CollectionCard, PageLink, Pages, SnapshotRow
from webarcfs.room.visit import Services, Visit
from webarcfs.web.ranges import entity_tag, whole
from webarcfs.web.rendering import paragraphs
from webarcfs.web.table_files import TableFile

# == rows =============================================================================================================


#: Rows of a page of a list, and links of a row of them.
ROWS, MOST_NAMED = 50, 30
#: Captures of a host, in order of their URLs, among which its first page is looked for.
_LOOKED_THROUGH = 200
#: Redirects in a row that are followed for a title, its letters, and the status from which a page is an error's.
_LONGEST_WAY, _LONGEST_TITLE, _FIRST_ERROR = 3, 160, 400


def save_link(services: Services, url: str) -> PageLink | None:
    """Return where staff may save a page that the archive does not have, and the desk's address; None without a desk.

    The room only links there. What may not be shown is like what is not there, here as well.
    """
    address = services.settings().save.address
    if not address or not url.startswith(("http://", "https://")):
        return None
    return PageLink(f"{address}/save?{urlencode({'url': url})}", address)


def snapshot_rows(services: Services, heads: Sequence[RecordHead]) -> list[SnapshotRow]:
    """Return the rows of snapshots. Each leads to its first page, and has its title, only where that may be seen."""
    first_pages = _first_pages(services, heads)
    return [_row(head, first_pages.get(head.id, _FirstPage())) for head in heads]


def snapshot_row(services: Services, head: RecordHead) -> SnapshotRow:
    """Return the row of one snapshot."""
    return snapshot_rows(services, [head])[0]


def _row(head: RecordHead, first_page: _FirstPage) -> SnapshotRow:
    sites = sites_of(head)
    return SnapshotRow(
        href=record_path(head.id),
        start=first_page.href,
        number=head.number,
        title=head.title or first_page.title,
        publication=head.publication,
        signature=head.signature,
        provenance=head.provenance,
        project=head.project,
        domains=sites,
        resource_hosts=len(head.resource_domains.difference(sites)),
        is_occasion=head.is_occasion,
        reason=head.occasion if head.is_occasion else "",
        date=head.date,
        complete=head.complete,
        documents=head.documents,
        bytes=head.bytes,
        closed_until=head.closed_until,
    )


def sites_of(head: RecordHead) -> tuple[str, ...]:
    """Return the domains of a snapshot that it has pages of; all of them where it has pages of none."""
    every = dict.fromkeys(tag.domain for tag in head.tags)
    return tuple(domain for domain in every if domain not in head.resource_domains) or tuple(every)


@dataclass(frozen=True, slots=True)
class _FirstPage:
    """The first start page of a snapshot: the path of its frame, and its title as far as the reader may see it."""

    href: str = ""
    title: str = ""


def _first_pages(services: Services, heads: Iterable[RecordHead]) -> dict[str, _FirstPage]:
    """Return the first start pages of snapshots, by the ids of their records; none of closed ones.

    That is the first URL of `start_urls`. The database is asked once for all of them, and once more for each step of
    redirects, however many there are.
    """
    open_ones = [head for head in heads if head.closed_until is None and head.tags]
    named, roots = dict[str, str](), dict[str, str]()
    for head in open_ones:
        sites = sites_of(head)
        urls = (url for url in publication_urls(services, head.publication) if _domain(url) in sites)
        url = next(urls, "")
        (named if url else roots)[head.id] = url or f"http://{sites[0]}/"
    asked = {head.id: head for head in open_ones if head.id in roots or not head.title}
    captures = _captured(
        services, {asked[record_id]: url for record_id, url in (named | roots).items() if record_id in asked}
    )
    for record_id in roots:
        capture = captures.get(record_id)
        if capture is not None:
            named[record_id] = roots[record_id] if capture.is_redirect else capture.url
        else:
            named[record_id] = root_of(services, _tag_of(asked[record_id], roots[record_id]))
    others = {asked[record_id]: named[record_id] for record_id, url in roots.items()
              if record_id not in captures and named[record_id] != url}  # fmt: skip
    captures |= _captured(services, others)
    titles = _titles(
        services, {head: captures[head.id] for head in open_ones if head.id in captures and not head.title}
    )
    return {
        head.id: _FirstPage(frame_of(_tag_of(head, named[head.id]), named[head.id]), titles.get(head.id, ""))
        for head in open_ones
    }


def _captured(services: Services, wanted: Mapping[RecordHead, str]) -> dict[str, VisibleCapture]:
    """Return what the reader sees of a URL in each of some snapshots, by the ids of their records."""
    if not wanted:
        return {}
    places = [(url, int(_tag_of(head, url).crawl_time.timestamp())) for head, url in wanted.items()]
    captures = zip(wanted, services.captures.in_snapshots(places), strict=True)
    return {head.id: capture for head, capture in captures if isinstance(capture, VisibleCapture)}


def _titles(services: Services, captures: Mapping[RecordHead, VisibleCapture]) -> dict[str, str]:
    """Return the titles of pages, and of those to which redirects led in the same crawl; by the ids of records."""
    titles: dict[str, str] = {}
    for _ in range(_LONGEST_WAY + 1):
        targets: dict[RecordHead, str] = {}
        for head, capture in captures.items():
            target = without_fragment(capture.target)
            if not capture.is_redirect:
                titles[head.id] = "" if capture.status >= _FIRST_ERROR else short(capture.title, _LONGEST_TITLE)
            elif _domain(target) in {tag.domain for tag in head.tags} and _has_place(target):
                targets[head] = target
        by_id = _captured(services, targets)
        captures = {head: by_id[head.id] for head in targets if head.id in by_id}
    return titles


def _has_place(url: str) -> bool:
    """Return whether an archive can have a URL: a redirect may lead to any."""
    try:
        arc_path(url)
    except UrlRefused:
        return False
    return True


def short(text: str, most: int) -> str:
    """Return a text on one line; a long one ends with an ellipsis."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[:most].rstrip()}…"


def _tag_of(head: RecordHead, url: str) -> CommitTag:
    """Return the snapshot of a record that has the host of a URL."""
    return next(tag for tag in head.tags if tag.domain == _domain(url))


def start_urls(services: Services, head: RecordHead) -> list[tuple[str, str]]:
    """Return the start pages of a snapshot on its domains: URL, and path of the frame.

    That is each URL of the publication whose domain the snapshot has; else the root of its domains with pages.
    """
    sites = set(sites_of(head))
    tags = {tag.domain: tag for tag in head.tags if tag.domain in sites}
    urls = [url for url in publication_urls(services, head.publication) if _domain(url) in tags]
    for domain, tag in tags.items():
        if not any(_domain(url) == domain for url in urls):
            urls.append(root_of(services, tag))
    return [(url, frame_of(tags[_domain(url)], url)) for url in urls]


def publication_urls(services: Services, publication: str) -> tuple[str, ...]:
    """Return the start URLs of a publication, as webarc.toml has them now; none for an unlisted one."""
    for listed_publication in services.settings().publications:
        if listed_publication.name == publication:
            return listed_publication.urls
    return ()


def publication_description(services: Services, publication: str) -> str:
    """Return what a publication is, for people; empty where nobody says so."""
    return next(
        (
            listed_publication.description
            for listed_publication in services.settings().publications
            if listed_publication.name == publication
        ),
        "",
    )


def root_of(services: Services, tag: CommitTag, *, has_pages: bool = True) -> str:
    """Return the URL of the first page of a domain: with the scheme that the snapshot has.

    Where the snapshot has single pages alone, it is the first of these, if one is among the first captures. A domain
    that only has resources of other pages is not looked through.
    """
    seq = int(tag.crawl_time.timestamp())
    root = f"http://{tag.domain}/"
    (own,) = services.captures.in_snapshots([(root, seq)])  # this reads no other version of the page
    if isinstance(own, VisibleCapture):
        return root if own.is_redirect else own.url
    state = services.captures.state(root, seq)
    if state.capture is not None:
        return root if state.capture.is_redirect else state.capture.url
    if state.closed is not None or not has_pages:
        return root
    low = surt(root)
    captures = islice(services.captures.below(Span(low, f"{low}\U0010ffff")), _LOOKED_THROUGH)
    pages = (capture.url for capture in captures if capture.since <= seq < capture.until and _is_page(capture))
    return next(pages, root)


def _is_page(capture: VisibleCapture) -> bool:
    return capture.mime_type in HTML_TYPES and not capture.is_redirect and not capture.is_resource


def frame_of(tag: CommitTag, url: str) -> str:
    """Return the path of the frame of a URL in a snapshot."""
    return replay_path(digits_of(int(tag.crawl_time.timestamp())), Modifier.FRAME, url)


def _domain(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


def page_in(text: str) -> int:
    """Return the number of a page that a text asks for, from 1; the first for any other text."""
    return min(max(int(text), 1), 1_000_000) if text.isascii() and text.isdecimal() and len(text) < 8 else 1


def page_of(visit: Visit) -> int:
    """Return the number of the page that is asked for, from 1."""
    return page_in(visit.parameter("page"))


def pages_of(visit: Visit, total: int, rows: int = ROWS, *, name: str = "page", place: str = "") -> tuple[Pages, slice]:
    """Return the way through a list of `total` rows, and the part of it that is asked for by the parameter `name`.

    `place` is where the list is in its page, as a fragment of the URL.
    """

    def to(page: int) -> str:
        return visit.with_parameters(**{name: page if page > 1 else None}) + place

    return way_through(page_in(visit.parameter(name)), total, rows, to)


def way_through(page: int, total: int, rows: int, to: Callable[[int], str]) -> tuple[Pages, slice]:
    """Return the way through a list, and the part of it that is on a page. `to` returns where another page is."""
    last_page = max(-(-total // rows), 1)
    page = min(page, last_page)
    begin, end = (page - 1) * rows, min(page * rows, total)
    before, after = to(page - 1) if page > 1 else "", to(page + 1) if page < last_page else ""
    return Pages(begin + 1 if total else 0, end, total, before, after), slice(begin, end)


# == lists ============================================================================================================


_OCCASION, _REGULAR = "occasion", "regular"
#: Filters of the list: parameter → label, and the value of a group of snapshots.
_FILTERS: dict[str, tuple[str, Callable[[ShownGroup], str]]] = {
    "signature": ("Call number", attrgetter("signature")),
    "publication": ("Publication", attrgetter("publication")),
    "project": ("Project", attrgetter("project")),
    "type": ("Type", lambda group: _OCCASION if group.is_occasion else _REGULAR),
    "year": ("Year", attrgetter("year")),
}
#: Values of a filter that are offered.
_MOST_VALUES = 30


def home(visit: Visit, _: Mapping[str, str]) -> Response:
    """Show the first page: fonds with their publications; or snapshots, where something chooses them."""
    services = visit.services
    groups = services.records.groups()
    query = " ".join(visit.parameter("q").split()[:MOST_WORDS])  # the page shows the words that count
    chosen = visit.given(_FILTERS)
    matching = [group for group in groups if _fits(group, chosen)]
    if query and matching:
        matching = services.records.groups(_selection(query, chosen))
    publications = {group.publication for group in groups}
    as_list = bool(query or chosen or visit.parameter("all") or len(publications) == 1)
    shown: list[SnapshotRow] = []
    pages = None
    if as_list:
        pages, part = pages_of(visit, _total(matching))
        heads = []
        if matching:
            is_oldest = visit.parameter("order") == "oldest"
            heads = services.records.listed(_selection(query, chosen), part, oldest=is_oldest)
        shown = snapshot_rows(services, heads)
    total = _total(groups)
    is_first = not (query or chosen or visit.parameter("all") or page_of(visit) > 1)
    collections_by_title = _by_title(visit) if is_first else []
    return visit.page(
        "home.html",
        query=query,
        fonds=() if as_list else _fonds(services, groups),
        collections=[_card(visit, visible) for visible in collections_by_title[:_FIRST_COLLECTIONS]],
        total_collections=len(collections_by_title),
        rows=shown,
        pages=pages,
        filters=list(_choices(visit, matching if query else groups, chosen)) if total > 1 else (),
        order=_orders(visit) if as_list else (),
        total_snapshots=total,
        chosen=urlencode({name: visit.parameter(name) for name in ("q", *_FILTERS, "order") if visit.parameter(name)}),
    )


def publication(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Show a publication: its snapshots, newest first. Raises NotFound, also for one of which readers see nothing."""
    services, name = visit.services, path_params["name"]
    years = services.records.years_of(name)
    if not years:
        raise NotFound(f"there is no publication {name!r}")
    pages, part = pages_of(visit, sum(years.values()))
    heads = services.records.of_publication(name, part)
    return visit.page(
        "publication.html",
        name=name,
        description=publication_description(services, name),
        rows=snapshot_rows(services, heads),
        pages=pages,
        counts_by_year=list(years.items()),
        collections=links_to_collections(visit, name),
        compare=list(_comparisons(services, heads)),
        search=f"/search?publication={quote(name, safe='')}" if services.has_search else "",
    )


def _comparisons(services: Services, heads: Sequence[RecordHead]) -> Iterator[SimpleNamespace]:
    """Yield where each open crawl of a page is compared with the open one before it, and when it was."""
    open_ones = [head for head in heads if head.closed_until is None]
    older = services.records.beside(open_ones[-1].id, only_open=True) if open_ones else None
    for newer, before in pairwise([*open_ones, *([older] if older is not None else [])]):
        href = f"/compare/{quote(before.id, safe='')}..{quote(newer.id, safe='')}"
        yield SimpleNamespace(href=href, date=newer.date)


# == collections ======================================================================================================


#: Collections that the first page names, and letters of the beginning of a text.
_FIRST_COLLECTIONS, _LEAD = 6, 280


def _by_title(visit: Visit) -> list[VisibleCollection]:
    """Return the collections that readers see, in order of their titles in the language of the visit."""

    def title(visible: VisibleCollection) -> tuple[str, str]:
        return visible.collection.title_in(visit.language).casefold(), visible.collection.name

    return sorted(visit.services.collections().by_name.values(), key=title)


def _card(visit: Visit, visible: VisibleCollection) -> CollectionCard:
    """Return a collection as lists have it."""
    collection = visible.collection
    lead = next(iter(paragraphs(collection.text_in(visit.language))), "")
    return CollectionCard(
        href=collection_path(collection.name),
        title=collection.title_in(visit.language),
        lead=short(lead, _LEAD),
        count=visible.count,
        first=visible.first,
        last=visible.last,
        picture=f"{collection_path(collection.name)}/picture" if collection.picture else "",
        picture_text=collection.picture_text_in(visit.language),
    )


def collections(visit: Visit, _: Mapping[str, str]) -> Response:
    """Show the collections that have something for readers, by their titles."""
    by_title = _by_title(visit)
    pages, part = pages_of(visit, len(by_title))
    return visit.page("collections.html", cards=[_card(visit, visible) for visible in by_title[part]], pages=pages)


def collection(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Show a collection: its text, and its crawls, newest first. Raises NotFound for one without any for readers."""
    services, visible = visit.services, _collection_of(visit, path_params["name"])
    pages, part = pages_of(visit, visible.count)
    heads = services.records.collected(visible.publications, visible.numbers, part)
    return visit.page(
        "collection.html",
        card=_card(visit, visible),
        text=visible.collection.text_in(visit.language),
        publications=[PageLink(publication_path(name), name) for name in visible.publications[:MOST_NAMED]],
        more_publications=max(len(visible.publications) - MOST_NAMED, 0),
        rows=snapshot_rows(services, heads),
        pages=pages,
        search=f"/search?collection={quote(visible.collection.name, safe='')}" if services.has_search else "",
    )


def collection_picture(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return the picture of a collection. It is a document of its own that runs nothing. Raises NotFound."""
    visible = _collection_of(visit, path_params["name"])
    try:
        body, mime_type = read_picture(visit.services.archive, visible.collection.picture)
    except UsageError as error:
        raise NotFound(str(error)) from None
    return whole(visit.request, 200, body, [
        ("Content-Type", mime_type), ("ETag", entity_tag(body)), ("Cache-Control", visit.caching),
        ("Content-Security-Policy", policy_of_bytes()),
    ])  # fmt: skip


def _collection_of(visit: Visit, name: str) -> VisibleCollection:
    visible = visit.services.collections().by_name.get(name)
    if visible is None:
        raise NotFound(f"there is no collection {name!r}")
    return visible


def links_to_collections(visit: Visit, publication: str, number: int = 0) -> list[PageLink]:
    """Return links to the collections that a publication or a crawl belongs to."""
    return [
        PageLink(collection_path(visible.collection.name), visible.collection.title_in(visit.language))
        for visible in visit.services.collections().of(publication, number)[:MOST_NAMED]
    ]


# == taken away =======================================================================================================


#: Crawls that are read at once for a file.
_PART = 1_000


def taken_crawls(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return the crawls that the filters of the first page choose as a file, all of them. Raises TooMany."""
    records = visit.services.records
    chosen = visit.given(_FILTERS)
    query = " ".join(visit.parameter("q").split()[:MOST_WORDS])
    is_oldest = visit.parameter("order") == "oldest"
    if not any(_fits(group, chosen) for group in records.groups()):
        return _crawls_file(visit, (), path_params["kind"])
    selection = _selection(query, chosen)
    heads = _in_parts(lambda part: records.listed(selection, part, oldest=is_oldest))
    return _crawls_file(visit, heads, path_params["kind"])


def taken_collection(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return the crawls of a collection as a file, all of them. Raises NotFound, TooMany."""
    visible, records = _collection_of(visit, path_params["name"]), visit.services.records
    heads = _in_parts(lambda part: records.collected(visible.publications, visible.numbers, part))
    return _crawls_file(visit, heads, path_params["kind"])


def taken_collections(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return the collections that have something for readers as a file."""
    columns = ("name", "title", "crawls", "first", "last", "address")
    rows = (
        (
            visible.collection.name, visible.collection.title_in(visit.language), visible.count,
            format_time(visible.first), format_time(visible.last),
            visit.base + collection_path(visible.collection.name),
        )
        for visible in _by_title(visit)
    )  # fmt: skip
    return visit.table(TableFile(columns, rows), path_params["kind"])


def _in_parts(read: Callable[[slice], list[RecordHead]]) -> Iterator[RecordHead]:
    begin = 0
    while heads := read(slice(begin, begin + _PART)):
        yield from heads
        begin += _PART


def _crawls_file(visit: Visit, heads: Iterable[RecordHead], kind: str) -> Response:
    columns = ("number", "date", "publication", "title", "call_number", "project", "hosts", "type", "occasion",
               "complete", "documents", "bytes", "embargo_until", "address")  # fmt: skip
    rows = (
        (
            head.number, format_time(head.date), head.publication, head.title, head.signature, head.project,
            " ".join(sites_of(head)), _OCCASION if head.is_occasion else _REGULAR,
            head.occasion if head.is_occasion else "", head.complete, head.documents, head.bytes,
            "" if head.closed_until is None else format_time(head.closed_until), visit.base + record_path(head.id),
        )
        for head in heads
    )  # fmt: skip
    return visit.table(TableFile(columns, rows), kind)


# == filters ==========================================================================================================


def _fits(group: ShownGroup, chosen: Mapping[str, str]) -> bool:
    return all(value == _FILTERS[name][1](group) for name, value in chosen.items())


def _selection(query: str, chosen: Mapping[str, str]) -> ShownSelection:
    """Return what the filters and words of a request choose. Some record has the values of its filters."""
    kind = chosen.get("type")
    return ShownSelection(
        words=query,
        signature=chosen.get("signature", ""),
        publication=chosen.get("publication", ""),
        project=chosen.get("project", ""),
        is_occasion=None if kind is None else kind == _OCCASION,
        year=chosen.get("year", ""),
    )


def _total(groups: Iterable[ShownGroup]) -> int:
    return sum(group.count for group in groups)


def _fonds(services: Services, groups: Sequence[ShownGroup]) -> list[tuple[str, list[SimpleNamespace]]]:
    """Return the signatures with their publications: of each what it is, and its newest snapshot and the next to it."""
    by_publication: dict[str, list[ShownGroup]] = defaultdict(list)
    for group in groups:
        by_publication[group.publication].append(group)
    newest = services.records.newest(by_publication, 2)
    rows = iter(snapshot_rows(services, [head for heads in newest.values() for head in heads]))
    rows_by_name = {name: [next(rows) for _ in heads] for name, heads in newest.items()}
    by_signature: dict[str, list[SimpleNamespace]] = defaultdict(list)
    for name, heads in sorted(newest.items()):
        signature = heads[0].signature
        by_signature["" if signature == name else signature].append(
            SimpleNamespace(
                href=publication_path(name),
                name=name,
                description=publication_description(services, name),
                count=_total(by_publication[name]),
                first=min(group.first for group in by_publication[name]),
                newest=rows_by_name[name][0],
                next_to_newest=rows_by_name[name][1] if len(heads) > 1 else None,
            )
        )
    return sorted(by_signature.items(), key=lambda fonds: fonds[0])


def _choices(
    visit: Visit, groups: Sequence[ShownGroup], chosen: dict[str, str]
) -> Iterator[tuple[str, str, str, list[PageLink]]]:
    """Yield the filters: the name in the URL, the label (a msgid), the chosen value, and all values as links."""
    for name, (label, value_of) in _FILTERS.items():
        counts: Counter[str] = Counter()
        for group in groups:
            counts[value_of(group)] += group.count
        counts.pop("", None)
        value = chosen.get(name, "")
        if len(counts) < 2 and not value:
            continue
        frequent = sorted(counts, key=lambda option: (-counts[option], option))[:_MOST_VALUES]
        links = [
            PageLink(
                visit.with_parameters("/", page=None, **{name: None if option == value else option}),
                option,
                option == value,
            )
            for option in sorted(frequent, reverse=name == "year")
        ]
        yield name, label, value, links


def _orders(visit: Visit) -> tuple[PageLink, ...]:
    now = visit.parameter("order")
    return (
        PageLink(visit.with_parameters(order=None, page=None), "newest first", now != "oldest"),
        PageLink(visit.with_parameters(order="oldest", page=None), "oldest first", now == "oldest"),
    )
