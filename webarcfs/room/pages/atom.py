"""The elements of Atom feeds (RFC 4287), for all feeds of the room and of the desk. Pure."""

from __future__ import annotations

from datetime import datetime

from lxml import etree

from webarcfs.archive.model.metadata import utc

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


def entry(feed: Element, entry_id: str, title: str, updated: datetime | None) -> Element:
    """Return a new entry of a feed."""
    made = etree.SubElement(feed, f"{{{_ATOM}}}entry")
    _head(made, entry_id, title, updated)
    return made


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
