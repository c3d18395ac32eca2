"""`/about`, `/status.json`, `/news.atom`: the archive as a whole, for people, monitors and feed readers."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import format_time
from webarcfs.gate.reader_records import RecordHead
from webarcfs.room.pages import atom, rows
from webarcfs.room.services import Services
from webarcfs.room.views import AboutPage
from webarcfs.room.visit import Visit

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
    base = visit.base
    feed = atom.begun(f"{base}/news.atom", "Web archive", heads[0].released if heads else None)
    atom.link(feed, f"{base}/news.atom", "self")
    atom.link(feed, f"{base}/opensearch.xml", "search", "application/opensearchdescription+xml")
    for place, rel in ((pages.previous, "previous"), (pages.following, "next")):
        if place:
            atom.link(feed, f"{base}{place}", rel)
    for head in heads:
        _entry(feed, base, head)
    return atom.written(feed)


def _entry(feed: atom.Element, base: str, head: RecordHead) -> None:
    href = f"{base}{rows.record_href(head.id)}"
    entry = atom.entry(feed, f"{href}#{head.release_number}", head.title or head.domain, head.released)
    atom.author(entry, head.provenance or head.publication)
    atom.add(entry, "summary", f"{head.domain}, {format_time(head.date)} CET")
    atom.link(entry, href, "alternate", "text/html")
    atom.link(entry, f"{href}.xml", "alternate", "application/xml")
    atom.link(entry, f"{href}.json", "alternate", "application/json")
