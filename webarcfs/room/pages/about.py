"""`/about`, `/status.json`, `/metrics`, `/news.atom`: the archive as a whole, for people, monitors and feed readers.

All feeds of the room and of the desk have their elements from here (RFC 4287).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import format_datetime
from importlib.metadata import PackageNotFoundError, version

from lxml import etree
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webarcfs.access.reader_stores import RecordHead
from webarcfs.archive.model.errors import NotFound, WebarcError
from webarcfs.archive.model.metadata import format_time, utc
from webarcfs.room.pages import lists
from webarcfs.room.replay.replay_url import record_path
from webarcfs.room.visit import Services, Visit
from webarcfs.web.exposition import MetricFamily, MetricKind, form_for, page
from webarcfs.web.ranges import entity_tag, whole

# == atom, pure =======================================================================================================


#: The media type of a feed, and what its elements are.
KIND = "application/atom+xml"
Element = etree._Element
_ATOM = "http://www.w3.org/2005/Atom"
#: Characters that XML has no place for.
_NOT_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF))


def begun(feed_id: str, title: str, updated: datetime | None) -> Element:
    """Return a feed without entries. `updated` is the time of its newest one, None without any."""
    feed = etree.Element(f"{{{_ATOM}}}feed", nsmap={None: _ATOM})  # type: ignore[dict-item] # lxml takes None for the default
    _head(feed, feed_id, title, updated)
    return feed


def add_entry(feed: Element, entry_id: str, title: str, updated: datetime | None) -> Element:
    """Return a new entry of a feed."""
    entry = etree.SubElement(feed, f"{{{_ATOM}}}entry")
    _head(entry, entry_id, title, updated)
    return entry


def author(parent: Element, name: str) -> None:
    """Say who wrote an entry, or a feed."""
    add(etree.SubElement(parent, f"{{{_ATOM}}}author"), "name", name)


def add(parent: Element, name: str, text: str) -> None:
    """Add an element with a text; characters that XML has no place for are left out."""
    etree.SubElement(parent, f"{{{_ATOM}}}{name}").text = text.translate(_NOT_XML)


def link(parent: Element, href: str, rel: str, kind: str = "") -> None:
    """Add a link."""
    etree.SubElement(parent, f"{{{_ATOM}}}link", {"href": href, "rel": rel} | ({"type": kind} if kind else {}))


def published(entry: Element, time: datetime) -> None:
    """Say when an entry was there first."""
    add(entry, "published", _time(time))


def written(feed: Element) -> bytes:
    """Return a feed as its document."""
    return etree.tostring(feed, xml_declaration=True, encoding="utf-8")


def _head(parent: Element, its_id: str, title: str, updated: datetime | None) -> None:
    add(parent, "id", its_id)
    add(parent, "title", title)
    add(parent, "updated", "1970-01-01T00:00:00Z" if updated is None else _time(updated))


def _time(time: datetime) -> str:
    return f"{utc(time).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


# == about ============================================================================================================


#: Entries of a page of the feed.
_ENTRIES = 50
_INTERFACES = (
    ("Memento TimeGate (RFC 7089)", "/web/<URL>"),
    ("Memento TimeMap", "/timemap/link/<URL>"),
    ("CDX", "/cdx?url=<URL>"),
    ("OpenSearch", "/opensearch.xml"),
    ("Atom", "/news.atom"),
)


def release() -> str:
    """Return the version of webarcfs."""
    try:
        return version("webarcfs")
    except PackageNotFoundError:
        return "unknown"


def about(visit: Visit, _: Mapping[str, str]) -> Response:
    """Show what the archive is, for readers."""
    records = visit.services.records
    groups = records.groups()
    return visit.page(
        "about.html",
        engine="pywb" if visit.origins.runs_scripts else "built-in",
        snapshots=sum(group.count for group in groups),
        publications=len({group.publication for group in groups}),
        domains=records.count_sites(),
        first=min((group.first for group in groups), default=None),
        last=max((group.last for group in groups), default=None),
        interfaces=_INTERFACES,
    )


def look_at(services: Services) -> None:
    """Read a little of each part that pages are made of. Raises what reading raises."""
    services.gate.rules()
    services.records.last_gone()
    with suppress(NotFound):  # nothing was crawled yet
        services.index.at("/")


_CRAWLS = MetricFamily("webarc_room_crawls", "Crawls that everybody may see.")
_PUBLICATIONS = MetricFamily("webarc_room_publications", "Publications with such crawls.")
_SITES = MetricFamily("webarc_room_sites", "Sites of which such crawls have a page.")
_LAST = MetricFamily("webarc_room_last_crawl_timestamp_seconds", "When the newest such crawl began.")
_BUILD = MetricFamily("webarc_build", "The version of webarcfs that reports.", MetricKind.INFO)


def metrics(visit: Visit, _: Mapping[str, str]) -> Response:
    """Return totals of what the public may see, for monitoring systems. Nothing is named."""
    records = visit.services.records
    groups = records.groups()
    values: dict[MetricFamily, float] = {
        _CRAWLS: sum(group.count for group in groups),
        _PUBLICATIONS: len({group.publication for group in groups}),
        _SITES: records.count_sites(),
    }
    if groups:
        values[_LAST] = max(group.last for group in groups).timestamp()
    samples = [(family, family.sample(value, {})) for family, value in values.items()]
    form = form_for(visit.request.headers.get("accept", ""))
    body = page([(_BUILD, _BUILD.sample(1, {"version": release()})), *samples], form)
    headers = {"Content-Type": form.content_type, "Cache-Control": "no-store", "Vary": "Accept"}
    return Response(body, headers=headers)


def status(visit: Visit, _: Mapping[str, str]) -> Response:
    """Return what monitors ask; 503 unless all is well. What cannot be decided is closed, and named here."""
    services, faults = visit.services, []
    counts: dict[str, object] = {}
    for name, look in (
        ("access", services.gate.rules),
        ("catalogue", lambda: counts.update(snapshots=sum(group.count for group in services.records.groups()))),
        ("database", lambda: services.index.at("/")),
    ):
        try:
            look()
        except (WebarcError, OSError) as error:
            faults.append(f"{name}: {type(error).__name__}")
    report: dict[str, object] = {
        "version": release(),
        "status": "faulty" if faults else "ok",
        "faults": faults,
        "search": services.has_search,
        **counts,
    }
    return JSONResponse(report, 503 if faults else 200, {"Cache-Control": "no-store"})


def news(visit: Visit, _: Mapping[str, str]) -> Response:
    """Return the released snapshots as an Atom feed (RFC 4287), newest first. Its order and ids follow the releases.

    A page has 50 of them and the address of the next (RFC 5005), so that a program finds all records from here. A
    program that has it gets 304, since feeds are asked for again and again. It is as of its last entry that changed, or
    of the last crawl that was taken from it.
    """
    services = visit.services
    pages, part = lists.pages_of(visit, services.records.count_open(), _ENTRIES)
    heads = services.records.released(part)
    base = visit.base
    changes = [head.updated for head in heads]
    feed = begun(f"{base}/news.atom", "Web archive", max(changes, default=None))
    author(feed, "Web archive")
    link(feed, f"{base}{visit.with_parameters()}", "self", KIND)
    link(feed, f"{base}/about", "alternate", "text/html")
    link(feed, f"{base}/opensearch.xml", "search", "application/opensearchdescription+xml")
    for place, rel in ((pages.previous, "previous"), (pages.following, "next")):
        if place:
            link(feed, f"{base}{place}", rel, KIND)
    for head, row in zip(heads, lists.snapshot_rows(services, heads), strict=True):
        _entry(feed, base, head, row.title)
    gone = services.records.last_gone()
    modified = max([*changes, *([gone] if gone else [])], default=None)
    body = written(feed)
    return answered(visit.request, body, entity_tag(body), modified, visit.caching)


def answered(request: Request, body: bytes, tag: str, modified: datetime | None, caching: str) -> Response:
    """Return the document of a feed, or 304 to a program that has it, by its tag or its date."""
    fields = [("Content-Type", KIND), ("ETag", tag), ("Cache-Control", caching)]
    if modified is not None:
        fields.append(("Last-Modified", format_datetime(utc(modified), usegmt=True)))
    return whole(request, 200, body, fields)


def _entry(feed: Element, base: str, head: RecordHead, title: str) -> None:
    href = f"{base}{record_path(head.id)}"
    entry = add_entry(feed, f"{href}#{head.release_number}", title or head.domain, head.updated)
    published(entry, head.released)
    author(entry, head.provenance or head.publication)
    add(entry, "summary", f"{head.domain}, {format_time(head.date)} CET")
    link(entry, href, "alternate", "text/html")
    link(entry, f"{href}.xml", "alternate", "application/xml")
    link(entry, f"{href}.json", "alternate", "application/json")
