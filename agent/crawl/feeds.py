"""Reads the items of a feed: RSS of any version, Atom, JSON Feed, and sitemaps, which news sites have as feeds. Pure.

An item is the page that it links to. Its id says nothing: servers make ids up, and change them. Where an item has no
link, an id that is a URL, then what it encloses takes its place; else it has no page, and is counted. The links of the
feed itself, such as that to its site, are no items. Relative links follow `xml:base`.

A `FeedReader` is a `SitemapReader`: it takes the bytes of a response piece by piece, and no content raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, ClassVar

from lxml import etree

from agent.crawl.sitemaps import Listing, SitemapReader, XmlListing
from webarcfs.content import mimetype, text
from webarcfs.content.outlinks import LONGEST_LINK, bare, resolver

#: Unpacked bytes of a JSON Feed that are read: it is parsed as a whole, and takes some times as many.
LONGEST_JSON = 8 << 20
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
_WHOLE_URL = re.compile(r"https?://\S", re.IGNORECASE)
_JSON_FEED = re.compile(r"https?://(?:www\.)?jsonfeed\.org/version/", re.IGNORECASE)
_PAGES = frozenset({"", "text/html", "application/xhtml+xml"})
#: Root of a feed → the element of an item.
_ITEMS = {"rss": "item", "RDF": "item", "feed": "entry", "urlset": "url"}
# What an item has, best first: a page, another form of it, an id that is a URL, what is content elsewhere, a file.
_PAGE, _FORM, _ID, _CONTENT, _FILE = range(5)


class FeedReader(SitemapReader):
    """Reads one feed. `url` is its canonical URL, `most` the number of items that are wanted."""

    def __init__(self, url: str, content_type: str, most: int) -> None:
        super().__init__(url, content_type, most)
        self._url = url
        self._items: _FeedItems | None = None
        self._json: bytearray | None = None
        #: Items without a page.
        self.unlinked = 0

    def close(self) -> Listing:
        """Return what was listed."""
        listing = super().close()
        if self._items is not None:
            self.unlinked = self._items.unlinked
        if self._json is None:
            return listing
        return self._of_json(bytes(self._json))

    @property
    def _is_over(self) -> bool:
        return super()._is_over if self._json is None else len(self._json) > LONGEST_JSON

    def _take(self, data: bytes) -> None:
        if self._json is None:
            super()._take(data)
            return
        self._json += data[: LONGEST_JSON + 1 - len(self._json)]

    def _decide(self) -> None:
        start = self._start
        super()._decide()
        if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            self._json = bytearray(start[: LONGEST_JSON + 1])

    def _new_xml(self) -> XmlListing:
        self._items = _FeedItems(self._url)
        return self._items

    def _of_json(self, data: bytes) -> Listing:
        """Return the items of a JSON Feed; nothing of what is none, or too long."""
        try:
            feed = json.loads(data.decode(text.decode_charset(data[: mimetype.SAMPLE], "charset=utf-8"), "replace"))
        except (ValueError, RecursionError):
            return Listing()
        items = feed.get("items") if isinstance(feed, dict) else None
        if not isinstance(items, list) or not _JSON_FEED.match(str(feed.get("version", ""))):
            return Listing()
        resolve = resolver(self._url, "utf-8")
        for item in items:
            found = next((url for raw in _urls_of(item) if (url := resolve(bare(raw))) is not None), None)
            if found is None:
                self.unlinked += 1
            elif found not in self._pages and len(self._pages) >= self._most:
                self._is_cut = True
                break
            else:
                self._pages[found] = None
        return Listing(tuple(self._pages), (), True, self._is_cut)


def read_feed(pieces: Iterable[bytes], url: str, most: int, content_type: str = "") -> tuple[Listing, int]:
    """Return the items that the pieces of a response list, and how many more have no page."""
    reader = FeedReader(url, content_type, most)
    for piece in pieces:
        reader.feed(piece)
    listing = reader.close()
    return listing, reader.unlinked


def _urls_of(item: Any) -> Iterator[str]:
    """Yield what may be the page of an item of a JSON Feed, best first."""
    if not isinstance(item, dict):
        return
    files = item.get("attachments")
    first = files[0].get("url") if isinstance(files, list) and files and isinstance(files[0], dict) else None
    name = item.get("id")
    identity = name if isinstance(name, str) and _WHOLE_URL.match(name) else None
    for value in (item.get("url"), item.get("external_url"), identity, first):
        if isinstance(value, str) and 0 < len(value) < LONGEST_LINK:
            yield value.strip()


class _FeedItems(XmlListing):
    """Finds the pages of a feed's items while its XML passes."""

    roots: ClassVar[frozenset[str]] = frozenset(_ITEMS)

    def __init__(self, url: str) -> None:
        super().__init__()
        self._resolve = resolver(url, "utf-8")
        self._outer: list[tuple[int, Any]] = []  # where xml:base changed: how deep, and what held outside
        self._item = 0  # how many elements are open inside of which it lies; 0: none is open
        self._found: dict[int, str] = {}
        #: Items without a page.
        self.unlinked = 0

    def _begin(self, name: str, element: etree._Element) -> None:
        depth = len(self._open)
        with suppress(UnicodeDecodeError):  # see `XmlListing._of`
            base = (element.get(_XML_BASE) or "").strip()
            if base and len(base) < LONGEST_LINK and (url := self._resolve(bare(base))) is not None:
                self._outer.append((depth, self._resolve))
                self._resolve = resolver(url, "utf-8")
            if not self._item and name == _ITEMS.get(self._open[0]):
                self._item, self._found = depth, {}
                self._offer(_ID, element.get(_ABOUT) or "")

    def _of(self, name: str, element: etree._Element) -> Iterator[tuple[str, bool]]:
        depth = len(self._open) + 1
        with suppress(UnicodeDecodeError):
            if self._item and depth == self._item + 1:
                self._take(name, element)
        if self._item and depth == self._item:
            self._item = 0
            if self._found:
                yield self._found[min(self._found)], False
            else:
                self.unlinked += 1
        if self._outer and self._outer[-1][0] == depth:
            self._resolve = self._outer.pop()[1]

    def _take(self, name: str, element: etree._Element) -> None:
        """Take what an item has in itself; what lies deeper is of others, as the `source` of an entry."""
        written = element.text or ""
        if name == "link":
            relations = set((element.get("rel") or "alternate").lower().split())
            kind = (element.get("type") or "").partition(";")[0].strip().lower()
            if "alternate" in relations:
                self._offer(_PAGE if kind in _PAGES else _FORM, element.get("href") or written)
            elif "enclosure" in relations:
                self._offer(_FILE, element.get("href") or "")
        elif name == "loc":
            self._offer(_PAGE, written)
        elif name in ("guid", "id"):
            is_url = (element.get("isPermaLink") or "true").lower() != "false" and _WHOLE_URL.match(written.strip())
            self._offer(_ID, written if is_url else "")
        elif name == "content":
            self._offer(_CONTENT, element.get("src") or "")
        elif name == "enclosure":
            self._offer(_FILE, element.get("url") or "")

    def _offer(self, rank: int, raw: str) -> None:
        raw = bare(raw.strip())
        if rank not in self._found and len(raw) < LONGEST_LINK and (url := self._resolve(raw)) is not None:
            self._found[rank] = url
