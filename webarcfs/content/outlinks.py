"""The URLs that a document refers to: to follow (links), and to be shown with (requisites). Pure.

html_urls.py has the rules for HTML; those for feeds are here. References are first collected as written, each spelling
once, and only then resolved, since resolving is expensive. No content raises, and URLs other than http(s) are left out.

The links of a page with the words that name them, for links.db: http, mail and image. Pure.

Unlike `links`, which a crawl follows, this module counts every occurrence of a link, and collects its text. The page
streams through libxml2 without a tree, so that a page of a million links takes no more memory than any other. Files for
the appearance of a page (styles, scripts, fonts) are no links, nor is a place on the same page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from typing import NamedTuple
from urllib.parse import unquote

from lxml import etree

from webarcfs.archive.index.links import ArchivedLink, AskedKind
from webarcfs.content import html_urls, text
from webarcfs.content.html_urls import (
    LINK_ATTRIBUTES,
    LONGEST_LINK,
    NO_LINKS,
    REQUISITE_RELS,
    SRCSETS,
    LinkPurpose,
    Links,
    Raw,
    candidates,
    refreshed,
    resolver,
    styles,
)
from webarcfs.content.markup import PIECE, MarkupListener, stream_findings
from webarcfs.content.text import CAREFUL_XML, HTML_TYPES, decoder, is_xml

# == outlinks, pure ===================================================================================================


#: Most bytes of a body that are parsed: the bound of the memory.
LONGEST_BODY = 8 << 20
#: Most different links of one document (the sitemaps protocol allows 50,000 in one file).
MOST_LINKS = 100_000
_SPACE = "".join(map(chr, range(0x21)))
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"


class Link(NamedTuple):
    """A canonical URL in a document."""

    url: str
    kind: LinkPurpose


class PageLinks(NamedTuple):
    """The links of a document, each URL once per kind, in the order of their first occurrence; `is_cut` if a limit may
    have hidden more.
    """

    links: tuple[Link, ...] = ()
    is_cut: bool = False


def links_of(body: bytes, url: str, mime_type: str, charset: str) -> list[Link]:
    """Return the links of a document; the parameters are those of `find`."""
    return list(find(body, url, mime_type, charset).links)


def may_have_links(mime_type: str) -> bool:
    """Return whether `find` reads documents of this type."""
    return mime_type in HTML_TYPES or mime_type in ("image/svg+xml", "text/css") or is_xml(mime_type)


def find(body: bytes, url: str, mime_type: str, charset: str) -> PageLinks:
    """Find the links of a document.

    `body` is without content encoding, `url` its canonical URL, `charset` the result of `text.decode_charset`.
    """
    text = decoder(charset).decode(body[:LONGEST_BODY]).replace("\0", "").removeprefix("\ufeff")
    raw_links: Iterable[Raw]
    bases: list[str] = []
    if mime_type in HTML_TYPES or mime_type == "image/svg+xml":
        raw_links = _html(text, bases)
    elif is_xml(mime_type):
        raw_links = _feed(text.encode("utf-8", "replace"), bases)
    elif mime_type == "text/css":
        raw_links = styles(text)
    else:
        return PageLinks()
    distinct = _distinct(raw_links)
    resolve = resolver(url, charset)
    if bases and (based := resolve(bare(bases[0]))):
        resolve = resolver(based, charset)
    links: dict[Link, None] = {}
    for raw, kind in distinct:
        if target := resolve(raw):
            links[Link(target, kind)] = None
    return PageLinks(tuple(links), len(body) >= LONGEST_BODY or len(distinct) >= MOST_LINKS)


def _distinct(raw_links: Iterable[Raw]) -> dict[Raw, None]:
    """Return each spelling once, without its fragment, up to the limit."""
    distinct: dict[Raw, None] = {}
    for raw, kind in raw_links:
        if len(raw) >= LONGEST_LINK:
            continue
        is_bare = "#" not in raw and raw[:1] not in _SPACE and raw[-1:] not in _SPACE
        distinct[raw if is_bare else bare(raw), kind] = None
        if len(distinct) >= MOST_LINKS:
            break
    return distinct


def bare(raw: str) -> str:
    """Return `raw` without its fragment and surrounding white space."""
    return raw.partition("#")[0].strip(_SPACE)


# --- HTML


def _html(text: str, bases: list[str]) -> Iterator[Raw]:
    """Yield the links of a page; each non-empty <base href> is appended to `bases`."""
    # Most pages have no URL in a style attribute, and need no search for one.
    styled = "url(" in text.lower()
    pieces = range(0, len(text), PIECE)
    return stream_findings(lambda: Links(bases, styled=styled), lambda: (text[at : at + PIECE] for at in pieces))


# --- feeds


def _feed(data: bytes, bases: list[str]) -> Iterator[Raw]:
    """Yield the links of RSS, Atom and sitemaps; the root's xml:base is appended to `bases`."""
    # Without collect_ids=False: with it lxml reads the DTD that a document names, though load_dtd is off.
    root = _parse(data, etree.XMLParser(**CAREFUL_XML))
    if root is None:
        return iter(())
    with suppress(UnicodeDecodeError):
        bases.append(root.get(_XML_BASE, ""))
    return _entries(root)


def _entries(root: etree._Element) -> Iterator[Raw]:
    for element in root.iter("{*}link", "{*}loc", "{*}enclosure"):
        # libxml2 accepts lone surrogates in broken XML (`&#xD800;`), which are no text.
        with suppress(UnicodeDecodeError):
            for value in (element.get("href"), element.get("url"), element.text):
                if value:
                    yield value, LinkPurpose.LINK


def _parse(data: bytes, parser: etree.XMLParser) -> etree._Element | None:
    try:
        root: etree._Element | None = etree.fromstring(data, parser)
    except etree.LxmlError:
        return None
    return root


# == anchors, pure ====================================================================================================


#: Most bytes of a page that are read.
LONGEST_PAGE = 64 << 20
#: Most bytes of a <style> element that are searched.
LONGEST_STYLE = 1 << 20
#: Most bytes of a srcset that are searched.
LONGEST_SRCSET = 1 << 17
# Text beyond this cannot be in a title of text.LONGEST_TITLE characters, however much white space precedes it.
_ENOUGH_TEXT = 4 * text.LONGEST_TITLE
_ADDRESS = re.compile(r"[^@\s]{1,64}@[^@\s/?#&]{1,255}")
_BASE = re.compile(rb"<base\b", re.IGNORECASE)
_STYLES = (".css", ".woff", ".woff2", ".ttf", ".otf", ".eot")

# Of each element the attributes with a link, its kind, and the attribute that names it; visible ones come first.
_ROWS = sorted(LINK_ATTRIBUTES, key=lambda row: (row.tag, row.kind is LinkPurpose.LINK))
_ATTRIBUTES: Mapping[str, tuple[tuple[str, AskedKind, str], ...]] = {
    tag: tuple((row.attribute, row.shown, row.text) for row in rows if row.shown is not None)
    for tag, rows in groupby(_ROWS, key=lambda row: row.tag)
}
#: Longest name of a window.
_LONGEST_WINDOW = 64
_ENDING = frozenset({"a", "script", "style"})

#: A link as written in the page: kind, URL, text, window.
_Raw = tuple[AskedKind, str, str, str]


def anchors_of(chunks: Iterable[bytes], url: str, charset: str, base: str = "") -> Iterator[ArchivedLink]:
    """Yield each occurrence of a link in a page, in the order of the page; no content raises.

    `chunks` are its bytes, iterated a second time if it is deeply nested, `url` its canonical URL, `charset` the result
    of `text.decode_charset`, `base` that of `base_of`.
    """
    resolve = resolver(url, charset)
    if base and (based := resolve(bare(base))):
        resolve = resolver(based, charset)
    for kind, raw, name, window in stream_findings(_Reader, lambda: _pieces(chunks, charset)):
        if len(raw) >= LONGEST_LINK:
            continue
        if raw.lstrip()[:7].lower() == "mailto:":
            for address in _addresses(raw):
                yield ArchivedLink(AskedKind.MAIL, f"mailto:{address}", text.fold(name), _name(window))
        elif target := resolve(bare(raw)):
            yield ArchivedLink(kind, target, text.fold(name), _name(window))


def _name(window: str) -> str:
    return text.fold(window)[:_LONGEST_WINDOW] if window else ""


def may_have_base(body: bytes) -> bool:
    """Return whether a page may contain a base, cheaply."""
    return _BASE.search(body) is not None


def base_of(chunks: Iterable[bytes], charset: str) -> str:
    """Return the first <base href> of a page, as written; empty if there is none."""
    for _, base, *_ in stream_findings(_BaseReader, lambda: _pieces(chunks, charset)):
        return base
    return ""


def _addresses(raw: str) -> Iterator[str]:
    """Yield the addresses of `mailto:one@e.org,two@e.org?subject=…` (RFC 6068), the domain in lower case."""
    for part in bare(raw).partition(":")[2].partition("?")[0].split(","):
        address = text.fold(unquote(part))
        if _ADDRESS.fullmatch(address):
            local, _, domain = address.rpartition("@")
            yield f"{local}@{domain.lower()}"


class _Reader(MarkupListener[_Raw]):
    """Finds links as written."""

    def __init__(self) -> None:
        super().__init__(None, _ENDING)  # any element may have a style
        self._anchor: str | None = None  # the href of the <a> that is open
        self._title = self._window = ""
        self._text: list[str] = []
        self._length = 0
        self._style: list[str] | None = None
        self._script = False

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the beginning of an element."""
        if tag == "a":
            self._open(attributes)
        elif tag == "link":
            self._link(attributes)
        elif tag == "style":
            self._style, self._length = [], 0
        elif tag == "script":
            self._script = True
        elif tag == "meta" and attributes.get("http-equiv", "").strip().lower() == "refresh":
            self.found.append((AskedKind.HTTP, refreshed(attributes.get("content", "")), "", ""))
        elif tag == "input" and attributes.get("type", "").strip().lower() == "image":
            self.found.append((AskedKind.IMAGE, attributes.get("src", ""), attributes.get("alt", ""), ""))
        for attribute, kind, name in _ATTRIBUTES.get(tag, ()):
            if value := attributes.get(attribute):
                window = attributes.get("target", "") if tag == "area" else ""
                self.found.append((kind, value, attributes.get(name, ""), window))
        for attribute in SRCSETS.get(tag, ()):
            name = attributes.get("alt", "")
            value = attributes.get(attribute, "")[:LONGEST_SRCSET]
            self.found += ((AskedKind.IMAGE, candidate, name, "") for candidate in candidates(value))
        if self._anchor is not None and (alt := attributes.get("alt")):
            self._say(f" {alt} ")
        if (style := attributes.get("style")) and "(" in style:
            self._styles(style[:LONGEST_STYLE])

    def ended(self, tag: str) -> None:
        """Handle the end of an element."""
        if tag == "a":
            self._close()
        elif tag == "script":
            self._script = False
        elif tag == "style" and self._style is not None:
            self._styles("".join(self._style))
            self._style = None

    def data(self, data: str) -> None:
        """Handle text between tags."""
        if self._style is not None:
            if self._length < LONGEST_STYLE:
                self._style.append(data)
                self._length += len(data)
        elif self._anchor is not None and not self._script:
            self._say(data)

    def close(self) -> None:
        """Handle the end of the page."""
        self._close()

    def _open(self, attributes: Mapping[str, str]) -> None:
        self._close()  # links do not nest; a missing end tag is here
        href = attributes.get("href") or attributes.get("xlink:href")
        if href:
            self._anchor, self._title, self._text, self._length = href, attributes.get("title", ""), [], 0
            self._window = attributes.get("target", "")

    def _say(self, data: str) -> None:
        if self._length < _ENOUGH_TEXT:
            self._text.append(data[:_ENOUGH_TEXT])
            self._length += len(data)

    def _close(self) -> None:
        if self._anchor is not None:
            anchor_text = "".join(self._text)
            self.found.append(
                (AskedKind.HTTP, self._anchor, anchor_text if anchor_text.strip() else self._title, self._window)
            )
            self._anchor = None

    def _link(self, attributes: Mapping[str, str]) -> None:
        rels = set(attributes.get("rel", "").lower().split())
        if (href := attributes.get("href")) and not rels & NO_LINKS:
            if any("icon" in rel for rel in rels):
                self.found.append((AskedKind.IMAGE, href, attributes.get("title", ""), ""))
            elif not rels & REQUISITE_RELS:
                self.found.append((AskedKind.HTTP, href, attributes.get("title", ""), ""))

    def _styles(self, style: str) -> None:
        references = (
            reference
            for reference in html_urls.references(style)
            if not reference.lower().partition("?")[0].endswith(_STYLES)
        )
        self.found += ((AskedKind.IMAGE, reference, "", "") for reference in references)


class _BaseReader(MarkupListener[_Raw]):
    """Finds the bases of a page."""

    def __init__(self) -> None:
        super().__init__(("base",), ())

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the beginning of an element."""
        if tag == "base" and (href := attributes.get("href")):
            self.found.append((AskedKind.HTTP, href, "", ""))


def _pieces(chunks: Iterable[bytes], charset: str) -> Iterator[str]:
    """Yield the text of a page, up to the limit."""
    decode = text.decoder(charset).decode
    left = LONGEST_PAGE
    for chunk in chunks:
        for at in range(0, min(len(chunk), left), PIECE):
            yield decode(chunk[at : at + min(PIECE, left)]).replace("\0", "").replace("\ufeff", "")
            left -= PIECE
        if left <= 0:
            break
