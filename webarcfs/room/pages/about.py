"""`/about`, `/status.json`, `/news.atom`: the archive as a whole, for people, monitors and feed readers."""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from lxml import etree

from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import format_time, utc
from webarcfs.gate.reader_records import RecordHead
from webarcfs.room.pages import rows
from webarcfs.room.services import Services
from webarcfs.room.views import AboutPage
from webarcfs.room.visit import Visit

_ATOM = "http://www.w3.org/2005/Atom"
#: Entries of a page of the feed.
_ENTRIES = 50
_NOT_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 65534, 65535))
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


def about(visit: Visit) -> AboutPage:
    """Return what the archive is, for readers."""
    heads = visit.services.records.all()
    return AboutPage(
        version=release(),
        engine="pywb" if visit.origins.runs_scripts else "built-in",
        snapshots=len(heads),
        publications=len({each.publication for each in heads}),
        domains=len({tag.domain for each in heads for tag in each.tags}),
        first=min((each.date for each in heads), default=None),
        last=max((each.date for each in heads), default=None),
        interfaces=_INTERFACES,
    )


def status(services: Services) -> tuple[dict[str, object], bool]:
    """Return what monitors ask, and whether all is well: what cannot be decided is closed, and said here."""
    faults = []
    counts: dict[str, object] = {}
    for name, look in (
        ("access", services.gate.rules),
        ("catalogue", lambda: counts.update(snapshots=len(services.records.all()))),
        ("database", lambda: services.index.at("/")),
    ):
        try:
            look()
        except (WebarcError, OSError) as error:
            faults.append(f"{name}: {type(error).__name__}")
    said: dict[str, object] = {
        "version": release(),
        "status": "faulty" if faults else "ok",
        "faults": faults,
        "search": services.has_search,
        **counts,
    }
    return said, not faults


def news(visit: Visit) -> bytes:
    """Return the released snapshots as an Atom feed (RFC 4287), newest first. Its order and ids follow the releases.

    A page has 50 of them and the address of the next (RFC 5005), so that a program finds all records from here.
    """
    services = visit.services
    shown = (each for each in services.records.all() if each.closed_until is None)
    released = sorted(shown, key=lambda each: (each.released, each.number), reverse=True)
    pages, part = rows.pages_of(visit, len(released), _ENTRIES)
    heads = released[part]
    base = visit.origins.base or str(visit.request.base_url).rstrip("/")
    feed = etree.Element(f"{{{_ATOM}}}feed", nsmap={None: _ATOM})  # type: ignore[dict-item] # lxml takes None for the default
    _add(feed, "id", f"{base}/news.atom")
    _add(feed, "title", "Web archive")
    _add(feed, "updated", _time(heads[0].released if heads else None))
    _link(feed, f"{base}/news.atom", "self")
    _link(feed, f"{base}/opensearch.xml", "search", "application/opensearchdescription+xml")
    for place, rel in ((pages.previous, "previous"), (pages.following, "next")):
        if place:
            _link(feed, f"{base}{place}", rel)
    for head in heads:
        _entry(feed, base, head)
    return etree.tostring(feed, xml_declaration=True, encoding="utf-8")


def _entry(feed: etree._Element, base: str, head: RecordHead) -> None:
    entry = etree.SubElement(feed, f"{{{_ATOM}}}entry")
    _add(entry, "id", f"{base}{rows.record_href(head.id)}#{head.release_number}")
    _add(entry, "title", head.title or head.domain)
    _add(entry, "updated", _time(head.released))
    author = etree.SubElement(entry, f"{{{_ATOM}}}author")
    _add(author, "name", head.provenance or head.publication)
    _add(entry, "summary", f"{head.domain}, {format_time(head.date)} CET")
    href = f"{base}{rows.record_href(head.id)}"
    _link(entry, href, "alternate", "text/html")
    _link(entry, f"{href}.xml", "alternate", "application/xml")
    _link(entry, f"{href}.json", "alternate", "application/json")


def _add(parent: etree._Element, name: str, text: str) -> None:
    etree.SubElement(parent, f"{{{_ATOM}}}{name}").text = text.translate(_NOT_XML)


def _link(parent: etree._Element, href: str, rel: str, kind: str = "") -> None:
    etree.SubElement(parent, f"{{{_ATOM}}}link", {"href": href, "rel": rel} | ({"type": kind} if kind else {}))


def _time(time: datetime | None) -> str:
    return "1970-01-01T00:00:00Z" if time is None else utc(time).replace(tzinfo=None).isoformat() + "Z"
