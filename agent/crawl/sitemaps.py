"""Reads what lists the pages of a site: sitemaps and indexes of sitemaps (sitemaps.org), and feeds. Pure.

A `SitemapReader` takes the bytes of a response piece by piece, packed by gzip or not, and never holds all of them: a
sitemap may unpack to far more than it is. No content raises. What is no list of pages is told apart by its first
element, or its first line, since many servers answer a page of HTML to any request.

A feed is RSS of any version, Atom, JSON Feed, or a sitemap, which news sites have as feeds.

An item is the page that it links to. Its id says nothing: servers make ids up, and change them. Where an item has no
link, an id that is a URL, then what it encloses takes its place; else it has no page, and is counted. The links of the
feed itself, such as that to its site, are no items. Relative links follow `xml:base`.

A `FeedReader` is a `SitemapReader` that yields items.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum, auto
from typing import Any, ClassVar, NamedTuple, cast

from lxml import etree

from webarcfs.content import mimetype, text
from webarcfs.content.outlinks import LONGEST_LINK, bare, resolver
from webarcfs.content.text import CAREFUL_XML

# == sitemaps, pure ===================================================================================================


#: Unpacked bytes of a sitemap that are read; the protocol allows 50 MB.
LONGEST_SITEMAP = 64 << 20
#: Sitemaps and feeds of one host that a crawl reads as such, and how many indexes may lead to one.
MOST_SITEMAPS, MOST_NESTED = 1_000, 5
#: URLs of one sitemap that are taken where no setting says how many.
MOST_LISTED = 1_000_000
#: The name under which a sitemap is looked for where robots.txt names none.
USUAL_PLACE = "/sitemap.xml"

_GZIP = b"\x1f\x8b"
_PIECE = 1 << 16
#: Bytes at the beginning that decide on the encoding and the kind.
_SAMPLE = 1 << 12
_NO_PAGES = frozenset({"self", "hub", "edit", "replies", "service", "http://schemas.google.com/g/2005#feed", "first",
                       "search", "icon", "stylesheet"})  # fmt: skip
#: Relations of a feed's link to more of the same feed (RFC 5005).
_MORE = frozenset({"next", "prev", "previous", "last", "prev-archive", "next-archive", "current"})
_LINE = re.compile(r"https?://\S+", re.IGNORECASE)
#: Elements that may be open inside one another, and characters of a line of text; more of them end the reading.
_DEEPEST, _LONGEST_LINE = 64, LONGEST_LINK
#: Elements of XML that are read: the bound of the time.
_MOST_ELEMENTS = 1_500_000
# An ampersand that begins no entity: libxml2 would lose the name behind it, and many sitemaps have them in URLs.
_STRAY = re.compile(r"&(?!#?\w{1,31};)")
_ENTITY_TAIL = re.compile(r"&#?\w{0,31}\Z")


class Listing(NamedTuple):
    """What a sitemap or feed lists: canonical URLs of pages and of further sitemaps, each once.

    `is_sitemap`: it is one. `is_cut`: a limit may have hidden more.
    """

    pages: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()
    is_sitemap: bool = False
    is_cut: bool = False


class _Kind(Enum):
    UNKNOWN = auto()
    XML = auto()
    LINES = auto()
    NONE = auto()


class SitemapReader:
    """Reads one response. `url` is its canonical URL, `most` the number of URLs that are wanted."""

    def __init__(self, url: str, content_type: str, most: int) -> None:
        self._resolve = resolver(url, "utf-8")
        self._content_type = content_type
        self._most = most
        self._kind = _Kind.UNKNOWN
        self._start = b""  # until the kind is known
        self._unpacking: _Unpacking | None = None
        self._is_first, self._first = True, b""
        self._left = LONGEST_SITEMAP
        self._decoder: codecs.IncrementalDecoder | None = None
        self._xml: XmlListing | None = None
        self._line = ""
        self._pages: dict[str, None] = {}
        self._maps: dict[str, None] = {}
        self._is_cut = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes, as they are after the response's Content-Encoding was undone."""
        if self._is_first:
            self._first += data
            if len(self._first) < len(_GZIP):
                return
            self._is_first, data = False, self._first
            if data.startswith(_GZIP):
                self._unpacking = _Unpacking()
        if self._unpacking is None:
            self._take(data)
            return
        for piece in self._unpacking.pieces(data):
            if self._is_over:
                return
            self._take(piece)
        self._is_cut = self._is_cut or self._unpacking.is_broken

    def close(self) -> Listing:
        """Return what was listed."""
        if self._kind is _Kind.UNKNOWN and self._start:
            self._decide()
        self._is_cut = self._is_cut or (self._unpacking is not None and self._unpacking.is_open)
        if self._kind is _Kind.LINES and not self._is_over and not self._is_cut:  # a line that is cut is no URL
            self._lines("\n")
        if self._xml is not None and not self._is_over:
            self._found(self._xml.close())
        is_sitemap = self._kind is _Kind.LINES or (self._xml is not None and self._xml.is_sitemap)
        if not is_sitemap:
            return Listing()
        return Listing(tuple(self._pages), tuple(self._maps), True, self._is_cut)

    @property
    def _is_over(self) -> bool:
        return self._kind is _Kind.NONE or self._left <= 0 or len(self._pages) + len(self._maps) >= self._most

    def _take(self, data: bytes) -> None:
        if not data or self._kind is _Kind.NONE:
            return
        if self._is_over:
            self._is_cut = True
            return
        if len(data) > self._left:
            data, self._is_cut = data[: self._left], True
        self._left -= len(data)
        if self._kind is _Kind.UNKNOWN:
            self._start += data
            if len(self._start) >= _SAMPLE:
                self._decide()
        else:
            self._read(data)

    def _decide(self) -> None:
        start, self._start = self._start, b""
        charset = text.decode_charset(start[: mimetype.SAMPLE], self._content_type)
        self._decoder = text.decoder(charset)
        begin = text.decoder(charset).decode(start[:_SAMPLE]).lstrip("\ufeff\0 \t\r\n")
        if begin.startswith("<"):
            self._kind, self._xml = _Kind.XML, self._new_xml()
        elif _LINE.match(begin):
            self._kind = _Kind.LINES
        else:
            self._kind = _Kind.NONE
            return
        self._read(start)

    def _new_xml(self) -> XmlListing:
        return XmlListing()

    def _read(self, data: bytes) -> None:
        """Read bytes of a known kind, in pieces, so that the end is noticed soon."""
        assert self._decoder is not None
        for at in range(0, len(data), _PIECE):
            if self._is_over:
                self._is_cut = True
                return
            piece = self._decoder.decode(data[at : at + _PIECE]).replace("\0", "").replace("\ufeff", "")
            if self._kind is _Kind.LINES:
                self._lines(piece)
            elif self._xml is not None:
                self._found(self._xml.feed(piece))
                self._is_cut = self._is_cut or self._xml.is_broken
                if self._xml.is_other:
                    self._kind = _Kind.NONE

    def _lines(self, piece: str) -> None:
        *lines, rest = (self._line + piece).replace("\r", "\n").split("\n")
        self._line = rest[:_LONGEST_LINE]
        self._found((line.strip(), False) for line in lines if _LINE.match(line.strip()))

    def _found(self, references: Iterable[tuple[str, bool]]) -> None:
        for raw, is_map in references:
            if len(raw) >= LONGEST_LINK or (url := self._resolve(bare(raw))) is None:
                continue
            if len(self._pages) + len(self._maps) >= self._most:
                self._is_cut = True
                return
            (self._maps if is_map else self._pages)[url] = None


class _Unpacking:
    """Undoes gzip, of several members too, a bounded piece at a time. What is broken ends it."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(31)
        self.is_broken = False
        #: Whether the end has not come.
        self.is_open = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield what the next bytes unpack to. The caller may stop early, and then gives no more."""
        while data and not self.is_broken:
            try:
                piece = self._stream.decompress(data, _PIECE)
            except zlib.error:
                self.is_broken = True
                return
            data, self.is_open = self._stream.unconsumed_tail, not self._stream.eof
            if self._stream.eof:
                data = self._stream.unused_data
                if data and not data.startswith(_GZIP[: len(data)]):
                    data = b""  # bytes behind the end are no part of it
                self._stream = zlib.decompressobj(31)
            elif not piece and not data:
                return
            yield piece


class XmlListing:
    """Finds the references of a sitemap or a feed while its XML passes; elements that were read are dropped."""

    #: Names of the first element of what is read.
    roots: ClassVar[frozenset[str]] = frozenset({"urlset", "sitemapindex", "rss", "feed", "RDF"})

    def __init__(self) -> None:
        # Without collect_ids=False: with it lxml reads the DTD that a document names, though load_dtd is off.
        self._parser = etree.XMLPullParser(events=("start", "end"), **CAREFUL_XML)
        self._open: list[str] = []
        self._elements = 0
        self._tail = ""  # what may be the beginning of an entity
        #: Whether nothing more can be read: its XML is beyond repair, or nested too deeply.
        self.is_broken = False
        self.is_sitemap = False
        self.is_other = False

    def feed(self, piece: str) -> list[tuple[str, bool]]:
        """Return the references that a piece of the document completes: as written, and whether it is a sitemap's."""
        if self.is_broken or self.is_other:
            return []
        piece, self._tail = self._tail + piece, ""
        if tail := _ENTITY_TAIL.search(piece[-40:]):
            piece, self._tail = piece[: -len(tail[0])], tail[0]
        try:
            self._parser.feed(_STRAY.sub("&amp;", piece).encode("utf-8", "replace"))
            return list(self._references())
        except etree.LxmlError:
            self.is_broken = True  # nothing can be read behind it
            return []

    def close(self) -> list[tuple[str, bool]]:
        """Return the references that the end completes."""
        if self.is_broken or self.is_other:
            return []
        try:
            self._parser.close()
        except etree.LxmlError:
            self.is_broken = True
        with suppress(etree.LxmlError):
            return list(self._references())
        return []

    def _references(self) -> Iterator[tuple[str, bool]]:
        for event, element in cast(Iterator[tuple[str, etree._Element]], self._parser.read_events()):
            name = element.tag.rpartition("}")[2]
            if event == "start":
                if not self._open:
                    self.is_sitemap, self.is_other = name in self.roots, name not in self.roots
                self._elements += 1
                if self.is_other or len(self._open) >= _DEEPEST or self._elements > _MOST_ELEMENTS:
                    self.is_broken = True
                    return
                self._open.append(name)
                self._begin(name, element)
                continue
            del self._open[-1:]
            yield from self._of(name, element)
            element.clear()
            parent = element.getparent()
            if parent is not None:
                parent.remove(element)

    def _begin(self, name: str, element: etree._Element) -> None:
        """Take note of an element that begins, with its attributes; it is the last of `_open`."""

    def _of(self, name: str, element: etree._Element) -> Iterator[tuple[str, bool]]:
        """Yield what an element that ends refers to; it is no more in `_open`."""
        try:
            if name == "loc":
                if value := (element.text or "").strip():
                    yield value, self._open[-1:] == ["sitemap"]
            elif name == "link":
                relations = set((element.get("rel") or "alternate").lower().split())
                value = (element.get("href") or element.text or "").strip()
                if value and not relations & _NO_PAGES:
                    yield value, bool(relations & _MORE)
            elif name == "enclosure" and (value := (element.get("url") or "").strip()):
                yield value, False
        except UnicodeDecodeError:
            return  # libxml2 accepts lone surrogates in broken XML (`&#xD800;`), which are no text


def read_listing(pieces: Iterable[bytes], url: str, content_type: str = "", most: int = 50_000) -> Listing:
    """Return what the pieces of a response list."""
    reader = SitemapReader(url, content_type, most)
    for piece in pieces:
        reader.feed(piece)
    return reader.close()


# == feeds, pure ======================================================================================================


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
