"""Which URLs a document points to: to read on with (links), and to be shown with (requisites). Pure.

htmlurls.py says what counts in HTML; feeds are here. What is found is first collected as it is written, each spelling
once, and only then resolved, since resolving is what costs. Nothing that a page holds raises, and what is no http(s)
URL is left out.
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

#: How many bytes of a body are parsed: what bounds the memory.
LONGEST_BODY = 8 << 20
#: How many different links are taken from one document (the sitemaps protocol allows 50,000 in one file).
MOST_LINKS = 100_000
_SPACE = "".join(map(chr, range(0x21)))
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"


class Link(NamedTuple):
    """A canonical URL that a document points to."""

    url: str
    kind: Kind


class PageLinks(NamedTuple):
    """The links of a document, each URL once per kind, in the order of their first appearance; `is_cut` if it may have
    more than were looked for.
    """

    links: tuple[Link, ...] = ()
    is_cut: bool = False


def links_of(body: bytes, url: str, mime_type: str, charset: str) -> list[Link]:
    """The links of a document; the parameters are `find`'s."""
    return list(find(body, url, mime_type, charset).links)


def find(body: bytes, url: str, mime_type: str, charset: str) -> PageLinks:
    """The links of a document.

    `body` is without content encoding, `url` its canonical URL, `charset` what `text.decode_charset` says.
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
    """Each spelling once, without its fragment, up to the bound."""
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
    """`raw` without fragment and the white space around it."""
    return raw.partition("#")[0].strip(_SPACE)


# --- HTML


def _html(text: str, bases: list[str]) -> Iterator[Raw]:
    """The links of a page; `bases` is given each <base href> that is not empty, the first one first."""
    # Most pages have no URL in a style attribute, and need not be searched for them.
    styled = "url(" in text.lower()
    pieces = range(0, len(text), PIECE)
    return told(lambda: Links(bases, styled=styled), lambda: (text[at : at + PIECE] for at in pieces))


# --- feeds


def _feed(data: bytes, bases: list[str]) -> Iterator[Raw]:
    """The links of RSS, Atom and sitemaps; `bases` is given xml:base of the root."""
    root = _parse(data, etree.XMLParser(collect_ids=False, **CAREFUL_XML))
    if root is None:
        return iter(())
    with suppress(UnicodeDecodeError):
        bases.append(root.get(_XML_BASE, ""))
    return _entries(root)


def _entries(root: etree._Element) -> Iterator[Raw]:
    for element in root.iter("{*}link", "{*}loc", "{*}enclosure"):
        # libxml2 lets broken XML have lone surrogates (`&#xD800;`), which are no text.
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
