"""The URLs that a document refers to: to follow (links), and to be shown with (requisites). Pure.

htmlurls.py has the rules for HTML; those for feeds are here. References are first collected as written, each spelling
once, and only then resolved, since resolving is expensive. No content raises, and URLs other than http(s) are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from lxml import etree

from webarcfs.content.htmlurls import LONGEST_LINK, Kind, Links, Raw, styles
from webarcfs.content.markup import PIECE, told
from webarcfs.content.text import CAREFUL_XML, HTML_TYPES, decoder, is_xml
from webarcfs.content.urlresolver import resolver

#: Most bytes of a body that are parsed: the bound of the memory.
LONGEST_BODY = 8 << 20
#: Most different links of one document (the sitemaps protocol allows 50,000 in one file).
MOST_LINKS = 100_000
_SPACE = "".join(map(chr, range(0x21)))
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"


class Link(NamedTuple):
    """A canonical URL in a document."""

    url: str
    kind: Kind


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
    found: Iterable[Raw]
    bases: list[str] = []
    if mime_type in HTML_TYPES or mime_type == "image/svg+xml":
        found = _html(text, bases)
    elif is_xml(mime_type):
        found = _feed(text.encode("utf-8", "replace"), bases)
    elif mime_type == "text/css":
        found = styles(text)
    else:
        return PageLinks()
    distinct = _distinct(found)
    resolve = resolver(url, charset)
    if bases and (based := resolve(bare(bases[0]))):
        resolve = resolver(based, charset)
    links: dict[Link, None] = {}
    for raw, kind in distinct:
        if target := resolve(raw):
            links[Link(target, kind)] = None
    return PageLinks(tuple(links), len(body) >= LONGEST_BODY or len(distinct) >= MOST_LINKS)


def _distinct(found: Iterable[Raw]) -> dict[Raw, None]:
    """Return each spelling once, without its fragment, up to the limit."""
    distinct: dict[Raw, None] = {}
    for raw, kind in found:
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
    return told(lambda: Links(bases, styled=styled), lambda: (text[at : at + PIECE] for at in pieces))


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
                    yield value, Kind.LINK


def _parse(data: bytes, parser: etree.XMLParser) -> etree._Element | None:
    try:
        root: etree._Element | None = etree.fromstring(data, parser)
    except etree.LxmlError:
        return None
    return root
