"""Which URLs a document points to: to read on with (links), and to be shown with (requisites). Pure.

A table says what counts in HTML; feeds follow. What is found is first collected as it is written, each spelling once,
and only then resolved, since resolving is what costs. Nothing that a page holds raises, and what is no http(s) URL is
left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from itertools import chain
from typing import NamedTuple
from urllib.parse import urljoin

from lxml import etree

from agent import css
from agent.resolve import resolver
from agent.text import HTML_TYPES, decoder, is_xml

#: How many bytes of a body are parsed: what bounds the memory.
LONGEST_BODY = 8 << 20
#: How many different links are taken from one document (the sitemaps protocol allows 50,000 in one file).
MOST_LINKS = 100_000
#: Longer attributes are `data:` or nonsense.
LONGEST_LINK = 1 << 15


class Kind(StrEnum):
    """What a link is for: a click costs depth (/Cr-1.1/), a requisite belongs to the page."""

    LINK = "link"
    REQUISITE = "requisite"


class Link(NamedTuple):
    """A canonical URL that a document points to."""

    url: str
    kind: Kind


#: A link as it is written in the document.
Raw = tuple[str, Kind]

# Elements that hold a URL in an attribute. A form's action is not followed: sending a form is not reading.
_ATTRIBUTES: tuple[tuple[str, str, Kind], ...] = (
    ("a", "href", Kind.LINK),
    ("a", "xlink:href", Kind.LINK),
    ("area", "href", Kind.LINK),
    ("img", "longdesc", Kind.LINK),
    ("img", "src", Kind.REQUISITE),
    ("img", "lowsrc", Kind.REQUISITE),
    ("img", "data-src", Kind.REQUISITE),  # lazy loading
    ("source", "src", Kind.REQUISITE),
    ("script", "src", Kind.REQUISITE),
    ("frame", "src", Kind.REQUISITE),
    ("iframe", "src", Kind.REQUISITE),
    ("embed", "src", Kind.REQUISITE),
    ("video", "src", Kind.REQUISITE),
    ("video", "poster", Kind.REQUISITE),
    ("audio", "src", Kind.REQUISITE),
    ("track", "src", Kind.REQUISITE),
    ("bgsound", "src", Kind.REQUISITE),
    ("body", "background", Kind.REQUISITE),
    ("table", "background", Kind.REQUISITE),
    ("tr", "background", Kind.REQUISITE),
    ("td", "background", Kind.REQUISITE),
    ("th", "background", Kind.REQUISITE),
    ("image", "href", Kind.REQUISITE),  # SVG
    ("image", "xlink:href", Kind.REQUISITE),
    ("use", "href", Kind.REQUISITE),
    ("use", "xlink:href", Kind.REQUISITE),
)

#: Values of rel that are no links at all, and those of what a page is shown with.
NO_LINKS = frozenset({"dns-prefetch", "preconnect", "pingback"})
REQUISITE_RELS = frozenset(
    {
        "stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "fluid-icon",
        "apple-touch-startup-image", "manifest", "preload", "modulepreload",
    }
)  # fmt: skip
_REFRESH = re.compile(r"\s*[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*))", re.IGNORECASE | re.DOTALL)

_SPACE = "".join(map(chr, range(0x21)))
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"


def links_of(body: bytes, url: str, mime_type: str, charset: str) -> list[Link]:
    """The links of a document, each URL once per kind, in the order of their first appearance.

    `body` is without content encoding, `url` its canonical URL, `charset` what `text.decode_charset` says.
    """
    text = decoder(charset).decode(body[:LONGEST_BODY]).replace("\0", "").removeprefix("\ufeff")
    found: Iterable[Raw]
    base = ""
    if mime_type in HTML_TYPES or mime_type == "image/svg+xml":
        base, found = _html(text.encode("utf-8", "replace"))
    elif is_xml(mime_type):
        base, found = _feed(text.encode("utf-8", "replace"))
    elif mime_type == "text/css":
        found = _styles(text)
    else:
        return []
    resolve = resolver(url, charset)
    if based := resolve(bare(base)):
        resolve = resolver(based, charset)
    links: dict[Link, None] = {}
    for raw, kind in _distinct(found):
        if target := resolve(raw):
            links[Link(target, kind)] = None
    return list(links)


def _distinct(found: Iterable[Raw]) -> Iterable[Raw]:
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


def refreshed(content: str) -> str:
    """Where a `<meta http-equiv=refresh content=…>` leads; empty if nowhere."""
    match = _REFRESH.match(content[:LONGEST_LINK])
    return match[1] or match[2] or match[3] or "" if match else ""


def bare(raw: str) -> str:
    """`raw` without fragment and the white space around it."""
    return raw.partition("#")[0].strip(_SPACE)


# --- HTML


def _html(data: bytes) -> tuple[str, Iterator[Raw]]:
    """The base (the first <base href>, or empty) and the links of a page."""
    parser = etree.HTMLParser(encoding="utf-8", collect_ids=False)
    root = _parse(data, parser)
    if root is None:
        return "", iter(())
    # What follows `</html>` is a tree of its own to libxml2, and part of the page to browsers.
    trees = [root, *root.itersiblings()]
    # Most pages have neither a base nor a URL in a style attribute, and need not be searched for them.
    lowered = data.lower()
    bases = (base.get("href", "") for tree in trees for base in tree.iter("base")) if b"<base" in lowered else iter(())
    return next(filter(None, bases), ""), chain.from_iterable(_walk(tree, styled=b"url(" in lowered) for tree in trees)


def _walk(root: etree._Element, styled: bool) -> Iterator[Raw]:
    elements = root.iter(etree.Element) if styled else root.iter(*_TAGS)
    for element in elements:
        reader = _READERS.get(element.tag)
        if reader is not None:
            yield from reader(element)
        if styled and (style := element.get("style")):
            yield from _styles(style)


def _attributes_of(tag: str) -> Callable[[etree._Element], Iterable[Raw]]:
    rows = tuple((attribute, kind) for name, attribute, kind in _ATTRIBUTES if name == tag)

    def read(element: etree._Element) -> Iterable[Raw]:
        return [(value, kind) for attribute, kind in rows if (value := element.get(attribute))]

    return read


def _image(element: etree._Element) -> Iterator[Raw]:
    yield from _attributes_of_image(element)
    for name in ("srcset", "data-srcset"):
        if value := element.get(name):
            yield from _srcset(value)


def _source(element: etree._Element) -> Iterator[Raw]:
    yield from _attributes_of_source(element)
    yield from _srcset(element.get("srcset", ""))


def _link(element: etree._Element) -> Iterator[Raw]:
    rels = set(element.get("rel", "").lower().split())
    href = element.get("href")
    if href and not rels & NO_LINKS:
        yield href, Kind.REQUISITE if rels & REQUISITE_RELS else Kind.LINK
    yield from _srcset(element.get("imagesrcset", ""))


def _meta(element: etree._Element) -> Iterator[Raw]:
    if element.get("http-equiv", "").strip().lower() == "refresh":
        yield refreshed(element.get("content", "")), Kind.LINK


def _input(element: etree._Element) -> Iterator[Raw]:
    if element.get("type", "").strip().lower() == "image":
        yield element.get("src", ""), Kind.REQUISITE


def _object(element: etree._Element) -> Iterator[Raw]:
    """<object> and <applet>: names relative to a codebase (HTML 4.01 section 13.3)."""
    names = [element.get("data", ""), element.get("code", ""), *element.get("archive", "").split(",")]
    codebase = element.get("codebase", "").strip()
    if codebase:
        codebase = codebase.rstrip("/") + "/"
    for name in filter(None, map(str.strip, names)):
        try:
            yield urljoin(codebase, name), Kind.REQUISITE
        except ValueError:
            continue


def _style(element: etree._Element) -> Iterator[Raw]:
    return _styles(element.text or "")


def _styles(text: str) -> Iterator[Raw]:
    return ((reference, Kind.REQUISITE) for reference in css.references(text))


def _srcset(value: str) -> Iterator[Raw]:
    return ((candidate, Kind.REQUISITE) for candidate in candidates(value))


def candidates(value: str) -> Iterator[str]:
    """Of srcset: `URL descriptor, URL descriptor, …`; a URL may hold commas, but not end in one (HTML 4.8.4.2.1)."""
    in_descriptor = False
    for word in value.split():
        text = word
        if in_descriptor:
            _, comma, text = word.partition(",")
            if not comma:
                continue
        if url := text.strip(","):
            yield url
        in_descriptor = bool(url) and not text.endswith(",")


_attributes_of_image = _attributes_of("img")
_attributes_of_source = _attributes_of("source")

#: The reader of each element that can hold links.
_READERS: dict[str, Callable[[etree._Element], Iterable[Raw]]] = {
    **{tag: _attributes_of(tag) for tag, _, _ in _ATTRIBUTES},
    "img": _image,
    "source": _source,
    "link": _link,
    "meta": _meta,
    "input": _input,
    "object": _object,
    "applet": _object,
    "style": _style,
}
_TAGS = tuple(_READERS)


# --- feeds


def _feed(data: bytes) -> tuple[str, Iterator[Raw]]:
    """The base (xml:base of the root) and the links of RSS, Atom and sitemaps."""
    parser = etree.XMLParser(
        encoding="utf-8",
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        collect_ids=False,
    )
    root = _parse(data, parser)
    if root is None:
        return "", iter(())
    with suppress(UnicodeDecodeError):
        return root.get(_XML_BASE, ""), _entries(root)
    return "", _entries(root)


def _entries(root: etree._Element) -> Iterator[Raw]:
    for element in root.iter("{*}link", "{*}loc", "{*}enclosure"):
        # libxml2 lets broken XML have lone surrogates (`&#xD800;`), which are no text.
        with suppress(UnicodeDecodeError):
            for value in (element.get("href"), element.get("url"), element.text):
                if value:
                    yield value, Kind.LINK


def _parse(data: bytes, parser: etree.HTMLParser | etree.XMLParser) -> etree._Element | None:
    try:
        root: etree._Element | None = etree.fromstring(data, parser)
    except etree.LxmlError:
        return None
    return root
