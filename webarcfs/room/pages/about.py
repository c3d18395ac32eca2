"""`/about`, `/status.json`, `/news.atom`: the archive as a whole, for people, monitors and feed readers.

All feeds of the room and of the desk have their elements from here (RFC 4287).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from lxml import etree
from starlette.responses import JSONResponse, Response

from webarcfs.access.reader_stores import RecordHead
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import format_time, utc
from webarcfs.room.pages import lists
from webarcfs.room.replay.headers import whole
from webarcfs.room.replay.replay_url import record_path
from webarcfs.room.visit import Visit

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


def written(feed: Element) -> bytes:
    """Return a feed as its document."""
    return etree.tostring(feed, xml_declaration=True, encoding="utf-8")


def _head(parent: Element, its_id: str, title: str, updated: datetime | None) -> None:
    add(parent, "id", its_id)
    add(parent, "title", title)
    time = None if updated is None else utc(updated).replace(tzinfo=None)
    add(parent, "updated", "1970-01-01T00:00:00Z" if time is None else f"{time.isoformat(timespec='seconds')}Z")


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
    program that has it gets 304, since feeds are asked for again and again.
    """
    services = visit.services
    pages, part = lists.pages_of(visit, services.records.count_open(), _ENTRIES)
    heads = services.records.released(part)
    base = visit.base
    feed = begun(f"{base}/news.atom", "Web archive", heads[0].released if heads else None)
    link(feed, f"{base}/news.atom", "self")
    link(feed, f"{base}/opensearch.xml", "search", "application/opensearchdescription+xml")
    for place, rel in ((pages.previous, "previous"), (pages.following, "next")):
        if place:
            link(feed, f"{base}{place}", rel)
    for head in heads:
        _entry(feed, base, head)
    body = written(feed)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    fields = [("Content-Type", KIND), ("ETag", etag), ("Cache-Control", visit.caching)]
    return whole(visit.request, 200, body, fields)


def _entry(feed: Element, base: str, head: RecordHead) -> None:
    href = f"{base}{record_path(head.id)}"
    entry = add_entry(feed, f"{href}#{head.release_number}", head.title or head.domain, head.released)
    author(entry, head.provenance or head.publication)
    add(entry, "summary", f"{head.domain}, {format_time(head.date)} CET")
    link(entry, href, "alternate", "text/html")
    link(entry, f"{href}.xml", "alternate", "application/xml")
    link(entry, f"{href}.json", "alternate", "application/json")
