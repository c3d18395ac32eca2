"""The URLs that a document refers to: to follow (links), and to be shown with (requisites). Pure.

References are first collected as written, each spelling once, and only then resolved, since resolving is expensive. No
content raises, and URLs other than http(s) are left out. In HTML and SVG reference_table.py says where URLs are;
elements that need more than that have readers. Style sheets are read by the tokens that replay rewrites.

References become canonical URLs as browsers resolve them (url.spec.whatwg.org). urljoin followed by canonicalisation is
two thirds of the cost of extracting links, so the two are one step here: `canonical` resolves dot segments by itself,
and most references are plain names, which need neither.

links.db gets the links of a page with the words that name them: http, mail and image. Unlike `links`, which a crawl
follows, this part counts every occurrence of a link, and collects its text. The page streams through libxml2 without a
tree, so that a page of a million links takes no more memory than any other. Files for the appearance of a page (styles,
scripts, fonts) are no links, nor is a place on the same page.

A page goes on by itself by the field Refresh, or by `<meta http-equiv=refresh>`. Both are read as browsers do (HTML
Standard, "shared declarative refresh steps"). To a crawl they are links on any page. On the page of a start URL, one
that goes on within seconds is that URL's redirect. A refresh inside of `<noscript>` is not for browsers with scripts,
and is only a link.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import chain, groupby
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin

from lxml import etree

from webarcfs.archive.index.links import ArchivedLink, AskedKind
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.url_lists import target_of, without_fragment
from webarcfs.archive.model.urls import canonical, joined
from webarcfs.content import css_references, text
from webarcfs.content.markup import PIECE, MarkupListener, Tokenizer, stream_findings
from webarcfs.content.mimetype import UNKNOWN_TYPES
from webarcfs.content.reference_table import (
    INSTRUCTION,
    LAZY,
    LAZY_TAGS,
    LINK_ATTRIBUTES,
    MOST_INNER,
    NO_LINKS,
    PARAMETERS,
    PRESENTATION,
    PSEUDO_ATTRIBUTE,
    REFRESH,
    REQUISITE_RELS,
    SRCSETS,
    LazyTarget,
    LinkPurpose,
    NamedAs,
    candidates,
    has_function,
    lazy_urls,
    lazy_values,
    may_have_background,
)
from webarcfs.content.references import Use
from webarcfs.content.references import joined as rebased
from webarcfs.content.scripted_pages import needs_browser
from webarcfs.content.text import CAREFUL_XML, HTML_TYPES, decoder, is_xml

# == resolving, pure ===================================================================================================


# A relative reference in canonical form: no scheme, no dot segment, nothing to escape or to unescape.
_SEGMENT = r"[A-Za-z0-9_~-][A-Za-z0-9\-._~!*'();@&=+$,]*"
_PLAIN = re.compile(rf"/?+(?!\?)(?:{_SEGMENT}/)*+(?:{_SEGMENT})?+(?:\?[A-Za-z0-9\-._~!*'();:@&=+$,/?]*+)?+")
_NOT_ASCII = re.compile("[^\0-\x7f]+")
_CACHED_LENGTH = 512


def resolver(base: str, charset: str) -> Callable[[str], str | None]:
    """Return a function from references without fragment to canonical URLs; None for empty or other than http(s) ones.

    `base` is the canonical URL that they are relative to, `charset` the page's encoding.
    """
    scheme, _, rest = base.partition("://")
    domain, _, path = rest.partition("?")[0].partition("/")
    origin = f"{scheme}://{domain}"
    folder = f"{origin}/{path}"[: len(origin) + 1 + path.rfind("/") + 1]

    def resolve(raw: str) -> str | None:
        if not raw:
            return None
        if _PLAIN.fullmatch(raw):
            return (origin if raw[0] == "/" else folder) + raw
        return _canonical(joined(base, _as_ascii_query(raw, charset)))

    return resolve


def based_resolver(url: str, charset: str, base: str) -> Callable[[str], str | None]:
    """Return the resolver of the page of a URL; `base` is its first `<base href>`, as written, or empty."""
    resolve = resolver(url, charset)
    based = resolve(bare(base))
    return resolver(based, charset) if based else resolve


def _as_ascii_query(text: str, charset: str) -> str:
    """Escape non-ASCII in the query in the page's encoding (url.spec.whatwg.org, "query state").

    There, UTF-16 and UTF-32 count as UTF-8.
    """
    head, mark, query = text.partition("?")
    if not query.isascii() and not charset.startswith("utf"):
        query = _NOT_ASCII.sub(lambda match: _escaped(match[0], charset), query)
    return head + mark + query


def _escaped(text: str, charset: str) -> str:
    try:
        return quote(text.encode(charset, "xmlcharrefreplace"), safe="")
    except (LookupError, ValueError):
        return text


def _canonical(text: str) -> str | None:
    # Menus repeat the same few hundred URLs on every page; very long ones would only fill the cache.
    return _cached(text) if len(text) <= _CACHED_LENGTH else _or_none(text)


def _or_none(text: str) -> str | None:
    try:
        return canonical(text)
    except (UrlRefused, ValueError):
        return None


_cached = lru_cache(maxsize=8192)(_or_none)


# == places of URLs, pure ==============================================================================================


#: Longer attributes are `data:` or nonsense.
LONGEST_LINK = 1 << 15
#: A link as written in the document: its text, its purpose, and as what it is named.
Raw = tuple[str, LinkPurpose, NamedAs]
_Attributes = Mapping[str, str]
_Reader = Callable[[_Attributes], Iterable[Raw]]
_NOTHING = NamedAs.NOTHING
# What a value with a reference of CSS contains, however it is written.
_IS_STYLED = re.compile(r"[(\\]")
#: What pages with such a value outside of <style> contain, in lower case.
_FUNCTIONS = (b"url(", b"image-set(", b"src(")
# An attribute that may have such a value: in quotes, with a parenthesis, an escape or a character reference; or without
# quotes. Text about code has functions as well, and is not worth a look at every attribute of its page.
_STYLED_VALUE = re.compile(
    rb"(?:%s)\s*+=\s*+(?:\"[^\"(\\&]*+[(\\&]|'[^'(\\&]*+[(\\&]|[^\s\"'>])"
    % b"|".join(name.encode() for name in PRESENTATION)
)


def references(sheet: str) -> Iterator[str]:
    """Yield the references of a style sheet, a <style> element or a style attribute, in order, as written."""
    return (reference for _, reference in css_references.written(sheet))


# Types by which a page names its feeds (`<link rel=alternate type=…>`).
_FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})


def styles(sheet: str) -> Iterator[Raw]:
    """Yield the references of a style sheet, or of a part of one."""
    for use, reference in css_references.written(sheet):
        yield reference, LinkPurpose.REQUISITE, NamedAs.SHEET if use is Use.STYLE else NamedAs.NOTHING


def _loaded(url: str, named: NamedAs = NamedAs.NOTHING) -> Raw:
    return url, LinkPurpose.REQUISITE, named


def _attributes_of(tag: str) -> _Reader:
    rows = tuple((row.attribute, row.kind) for row in LINK_ATTRIBUTES if row.tag == tag)
    sets = SRCSETS.get(tag, ())

    # A list, since a generator takes twice as long: most of a page's elements with links are `<a>`.
    def read(attributes: _Attributes) -> list[Raw]:
        return [(value, kind, _NOTHING) for attribute, kind in rows if (value := attributes.get(attribute))]

    def read_all(attributes: _Attributes) -> Iterator[Raw]:
        yield from read(attributes)
        for attribute in sets:
            if value := attributes.get(attribute):
                yield from map(_loaded, candidates(value))

    return read_all if sets else read


def _link(attributes: _Attributes) -> Iterator[Raw]:
    rels = set(attributes.get("rel", "").lower().split())
    href = attributes.get("href")
    if href and not rels & NO_LINKS:
        lists = "sitemap" in rels or ("alternate" in rels and attributes.get("type", "").strip().lower() in _FEED_TYPES)
        purpose = LinkPurpose.SITEMAP if lists else LinkPurpose.LINK
        yield href, LinkPurpose.REQUISITE if rels & REQUISITE_RELS else purpose, _named(rels, attributes)
    for name in SRCSETS["link"]:
        yield from map(_loaded, candidates(attributes.get(name, "")))


def _named(rels: set[str], attributes: _Attributes) -> NamedAs:
    if "stylesheet" in rels or ("preload" in rels and attributes.get("as", "").strip().lower() == "style"):
        return NamedAs.SHEET
    return NamedAs.MANIFEST if "manifest" in rels else NamedAs.NOTHING


def _meta(attributes: _Attributes) -> Iterator[Raw]:
    if attributes.get("http-equiv", "").strip().lower() == "refresh":
        yield refreshed(attributes.get("content", "")), LinkPurpose.LINK, NamedAs.NOTHING


def _input(attributes: _Attributes) -> Iterator[Raw]:
    if attributes.get("type", "").strip().lower() == "image":
        yield _loaded(attributes.get("src", ""))


def _param(attributes: _Attributes) -> Iterator[Raw]:
    if attributes.get("name", "").strip().lower() in PARAMETERS:
        yield _loaded(attributes.get("value", ""))


def _object(attributes: _Attributes) -> Iterator[Raw]:
    """Read <object> and <applet>: names relative to a codebase (HTML 4.01 section 13.3)."""
    names = [
        *(attributes.get(name, "") for name in ("data", "code", "object")),
        *attributes.get("archive", "").split(","),
    ]
    codebase = attributes.get("codebase", "").strip()
    if codebase:
        codebase = codebase.rstrip("/") + "/"
    for name in filter(None, map(str.strip, names)):
        try:
            yield _loaded(urljoin(codebase, name))
        except ValueError:
            continue


def _lazy(tag: str, attributes: _Attributes) -> Iterator[Raw]:
    """Yield what scripts load by attributes of their own."""
    for name, target, value in lazy_values(tag, attributes):
        if target is LazyTarget.STYLE and has_function(value):
            yield from styles(value)
        else:
            yield from map(_loaded, lazy_urls(name, target, value))


#: The reader of each element that can contain links.
_READERS: dict[str, _Reader] = {
    **{tag: _attributes_of(tag) for tag in {*(row.tag for row in LINK_ATTRIBUTES), *SRCSETS}},
    "link": _link,
    "meta": _meta,
    "input": _input,
    "param": _param,
    "object": _object,
    "applet": _object,
}
_LAZY_TAGS = frozenset().union(*LAZY_TAGS.values())
_TAGS = frozenset({*_READERS, *_LAZY_TAGS, "style", "base"})
_ENDING = frozenset({"style"})


class Links(MarkupListener[Raw]):
    """Finds a page's references; in style attributes only if it is `styled`. Values of <base> are added to `bases`.

    `depth` is the number of pages around a page that is the value of a srcdoc. `has_sheets`: <style> elements may have
    references.
    """

    def __init__(self, bases: list[str], *, styled: bool, depth: int = 0, has_sheets: bool = True) -> None:
        super().__init__(None if styled else _TAGS, _ENDING)
        self.hears_text = has_sheets
        self._bases = bases
        self._styled = styled
        self._depth_inside = depth
        self._style: list[str] | None = None  # of the open style element

    def opened(self, tag: str, attributes: _Attributes) -> None:
        """Handle the beginning of an element."""
        reader = _READERS.get(tag)
        if reader is not None:
            self.found += reader(attributes)
        elif tag == "style":
            self._style = []
        elif tag == "base" and (base := attributes.get("href")):
            self._bases.append(base)
        if tag == "iframe" and (page := attributes.get("srcdoc")):
            self.found += _inner(page, self._depth_inside + 1)
        if self._styled or tag in _LAZY_TAGS:
            self._look_at_all(tag, attributes)

    def ended(self, tag: str) -> None:
        """Handle the end of an element."""
        if tag == "style":
            self._end_style()

    def data(self, data: str) -> None:
        """Handle text between tags."""
        if self._style is not None:
            self._style.append(data)

    def close(self) -> None:
        """Handle the end of the page."""
        self._end_style()

    def _look_at_all(self, tag: str, attributes: _Attributes) -> None:
        is_lazy = False
        for name, value in attributes.items():
            if name in LAZY:
                is_lazy = True
            elif name in _STYLED and value and _IS_STYLED.search(value):
                self.found += styles(value)
        if is_lazy:
            self.found += _lazy(tag, attributes)

    def _end_style(self) -> None:
        if self._style is not None:
            self.found += styles("".join(self._style))
            self._style = None


_STYLED = frozenset(PRESENTATION)


def _inner(page: str, depth: int) -> Iterable[Raw]:
    """Return the references of the page of a srcdoc; those that it has a base for are relative to that."""
    if depth > MOST_INNER:
        return ()
    bases: list[str] = []
    found = list(_html(page, bases, depth))
    if not bases:
        return found
    return [(rebased(bases[0], raw), kind, named) for raw, kind, named in found]


def refreshed(content: str) -> str:
    """Return the target of a `<meta http-equiv=refresh content=…>`; empty if there is none."""
    match = REFRESH.match(content[:LONGEST_LINK])
    return match[1] or match[2] or match[3] or "" if match else ""


# == outlinks, pure ===================================================================================================


#: Most bytes of a body that are parsed: the bound of the memory.
LONGEST_BODY = 8 << 20
#: Most different links of one document (the sitemaps protocol allows 50,000 in one file).
MOST_LINKS = 100_000
_SPACE = "".join(map(chr, range(0x21)))
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"


class Link(NamedTuple):
    """A canonical URL in a document, and as what the document names it."""

    url: str
    kind: LinkPurpose
    named: NamedAs = NamedAs.NOTHING


class PageLinks(NamedTuple):
    """The links of a document, each URL once per kind, in the order of their first occurrence; `is_cut` if a limit may
    have hidden more. `needs_browser`: it is a page that shows little until its scripts run.
    """

    links: tuple[Link, ...] = ()
    is_cut: bool = False
    needs_browser: bool = False


#: The type of an application's manifest, and those of style sheets as browsers take them where one is named.
MANIFEST = "application/manifest+json"
SHEET = "text/css"
_SHEET_TYPES = frozenset({"", SHEET, *UNKNOWN_TYPES, "application/x-unknown-content-type"})


def links_of(body: bytes, url: str, mime_type: str, charset: str) -> list[Link]:
    """Return the links of a document; the parameters are those of `find`."""
    return list(find(body, url, mime_type, charset).links)


def read_as(mime_type: str, declared: str, named: NamedAs, *, nosniff: bool = False) -> str:
    """Return the type as which a document is read for links.

    `mime_type` is what its bytes and its head say, `declared` the type that the server named, `named` what a page named
    it. A named style sheet is read as one as browsers do: where no type is declared, and whatever is declared for a
    page in quirks mode of the same origin; never against `nosniff`.
    """
    if named is NamedAs.MANIFEST:
        return MANIFEST
    is_sheet = not nosniff and (named is NamedAs.QUIRKS_SHEET or (named is NamedAs.SHEET and declared in _SHEET_TYPES))
    return SHEET if is_sheet else mime_type


def may_have_links(mime_type: str) -> bool:
    """Return whether `find` reads documents of this type."""
    return mime_type in HTML_TYPES or mime_type in ("image/svg+xml", SHEET, MANIFEST) or _is_xml(mime_type)


def _is_xml(mime_type: str) -> bool:
    return is_xml(mime_type) or mime_type == "text/xsl"


def find(body: bytes, url: str, mime_type: str, charset: str) -> PageLinks:
    """Find the links of a document.

    `body` is without content encoding, `url` its canonical URL, `charset` the result of `text.decode_charset`.
    """
    text = text_of(body, charset)
    raw_links: Iterable[Raw]
    bases: list[str] = []
    if mime_type == "text/html":
        raw_links = _html(text, bases)
    elif mime_type in HTML_TYPES or mime_type == "image/svg+xml":
        raw_links = chain(_instructions(text), _html(text, bases))
    elif _is_xml(mime_type):
        raw_links = chain(_instructions(text), _feed(text.encode("utf-8", "replace"), bases))
    elif mime_type == SHEET:
        raw_links = styles(text)
    elif mime_type == MANIFEST:
        raw_links = _manifest(text)
    else:
        return PageLinks()
    distinct = _distinct(raw_links)
    resolve = based_resolver(url, charset, "".join(bases[:1]))
    origin = _origin(url) if mime_type == "text/html" and is_quirky(text) else ""
    links: dict[tuple[str, LinkPurpose], NamedAs] = {}
    for raw, kind, named in distinct:
        if target := resolve(raw):
            if named is _NOTHING:
                links.setdefault((target, kind), named)
                continue
            if named is NamedAs.SHEET and origin and _origin(target) == origin:
                named = NamedAs.QUIRKS_SHEET  # noqa: PLW2901 # the same link, seen in its page
            links[target, kind] = links.get((target, kind)) or named
    # As Link(…), but without its Python function: pages have hundreds.
    found = tuple([tuple.__new__(Link, (target, kind, named)) for (target, kind), named in links.items()])
    is_cut = len(body) >= LONGEST_BODY or len(distinct) >= MOST_LINKS
    return PageLinks(found, is_cut, mime_type in HTML_TYPES and _needs_browser(text, found, mime_type))


#: Links from which on a page is not looked at for words: their texts are enough of them.
_ENOUGH_LINKS = 20
# To ignore case by a flag would take ten times as long.
_SCRIPT = re.compile("<[sS][cC][rR][iI][pP][tT]")


def _needs_browser(text: str, links: tuple[Link, ...], mime_type: str) -> bool:
    """Return whether a page needs a browser. Most are known by their links, which are found already."""
    if sum(link.kind is LinkPurpose.LINK for link in links) >= _ENOUGH_LINKS:
        return False
    return _SCRIPT.search(text) is not None and needs_browser(text, is_xhtml=mime_type != "text/html")


def text_of(body: bytes, charset: str) -> str:
    """Return the text of a document's first LONGEST_BODY bytes, as it is parsed."""
    return decoder(charset).decode(body[:LONGEST_BODY]).replace("\0", "").removeprefix("\ufeff")


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def _distinct(raw_links: Iterable[Raw]) -> dict[Raw, None]:
    """Return each spelling once, without its fragment, up to the limit."""
    distinct: dict[Raw, None] = {}
    for raw, kind, named in raw_links:
        if len(raw) >= LONGEST_LINK:
            continue
        is_bare = "#" not in raw and raw[:1] not in _SPACE and raw[-1:] not in _SPACE
        distinct[raw if is_bare else bare(raw), kind, named] = None
        if len(distinct) >= MOST_LINKS:
            break
    return distinct


def bare(raw: str) -> str:
    """Return `raw` without its fragment and surrounding white space."""
    return raw.partition("#")[0].strip(_SPACE)


# --- HTML


#: Characters within which a page's doctype is looked for.
_DOCTYPE_WITHIN = 4096
_DOCTYPE = re.compile(
    r"(?:\s++|<!--(?:(?!-->).)*+-->|<\?[^>]*+>)*+<!doctype\s++html\b\s*+(?:public\s*+[\"']([^\"'>]*+)[\"']\s*+([\"'])?)?",
    re.IGNORECASE | re.DOTALL,
)
# Public identifiers that mean quirks mode (HTML 13.2.6.4.1); the second ones only without a system identifier.
_QUIRKY = re.compile(
    r"-//(?:ietf//dtd html|w3c//dtd html (?:3|4\.0 |experimental)|w3o//dtd|netscape|microsoft|sun)", re.I
)
_HALF_QUIRKY = re.compile(r"-//w3c//dtd html 4\.01 (?:frameset|transitional)//", re.IGNORECASE)


def is_quirky(text: str) -> bool:
    """Return whether browsers show a page in quirks mode, as its beginning says."""
    match = _DOCTYPE.match(text, 0, _DOCTYPE_WITHIN)
    if match is None:
        return True
    identifier = match[1] or ""
    return bool(_QUIRKY.match(identifier)) or (not match[2] and bool(_HALF_QUIRKY.match(identifier)))


_HAS_BACKGROUND = re.compile(rb"""<body(?=\s)[^<>]*?[\s"'/]background\s*=""")
_BODY = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|textarea|title)\b.*?(?:</\1|\Z)|(<body\s[^<>]*+>)", re.IGNORECASE | re.DOTALL
)


def _html(text: str, bases: list[str], depth: int = 0) -> Iterator[Raw]:
    """Yield the links of a page; each non-empty <base href> is appended to `bases`."""
    # Most pages have nothing of that in their attributes, and need no search for it.
    low = text.encode("utf-8", "replace").lower()  # bytes, which take a third of the time
    has_functions = any(function in low for function in _FUNCTIONS)
    styled = (has_functions and _STYLED_VALUE.search(low) is not None) or may_have_background(low)
    has_sheets = b"<style" in low and (has_functions or b"@import" in low or b"\\" in low)
    pieces = range(0, len(text), PIECE)
    found = stream_findings(
        lambda: Links(bases, styled=styled, depth=depth, has_sheets=has_sheets),
        lambda: (text[at : at + PIECE] for at in pieces),
    )
    return chain(found, _bodies(text)) if b"background" in low and _HAS_BACKGROUND.search(low) else found


def _bodies(text: str) -> Iterator[Raw]:
    """Yield the backgrounds of a body: browsers take them from a tag that comes late as well, and libxml2 does not."""
    for match in _BODY.finditer(text):
        if match[2]:
            listener = Links([], styled=False)
            tokens = Tokenizer(listener)
            tokens.feed(match[2])
            tokens.close()
            yield from listener.found


# --- XML


_SVG = "http://www.w3.org/2000/svg"
_XHTML = "http://www.w3.org/1999/xhtml"
_XSL = "http://www.w3.org/1999/XSL/Transform"
# What an attribute's value in XSLT has that is a template of values, and no URL yet.
_TEMPLATE = "{"
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
#: Characters within which a document's instructions are looked for.
_INSTRUCTIONS_WITHIN = 1 << 16
# What does not end is read to the end, so that each character is read once; behind an instruction without an end none
# can have one.
_INSTRUCTION = re.compile(rf"{INSTRUCTION}|<!--(?:(?!-->).)*+(?:-->|\Z)|<(?:\?xml-stylesheet|[A-Za-z_:])", re.DOTALL)
_PSEUDO = re.compile(PSEUDO_ATTRIBUTE)
# Elements of feeds and sitemaps with a URL: links, and what a reader of feeds shows with them.
_LINKING = ("link", "loc", "enclosure", "player")
_IMAGES = ("image", "thumbnail", "logo", "icon", "content", "url")
_NO_IMAGES = ("video", "audio", "document", "executable")


def _instructions(text: str) -> Iterator[Raw]:
    """Yield the style sheets that precede the root of XML, of CSS and of XSLT."""
    for match in _INSTRUCTION.finditer(text, 0, _INSTRUCTIONS_WITHIN):
        if match[1] is None:
            if match[0].startswith("<!"):
                continue
            return
        pseudo: dict[str, str] = {}
        for name, double, single in _PSEUDO.findall(match[1]):
            pseudo.setdefault(name, double or single)
        if href := pseudo.get("href"):
            yield _loaded(href, NamedAs.SHEET if pseudo.get("type", SHEET) in ("", SHEET) else NamedAs.NOTHING)


def _feed(data: bytes, bases: list[str]) -> Iterator[Raw]:
    """Yield the links of RSS, Atom, sitemaps and other XML; the root's xml:base is appended to `bases`."""
    # Without collect_ids=False: with it lxml reads the DTD that a document names, though load_dtd is off.
    root = _parse(data, etree.XMLParser(**CAREFUL_XML))
    if root is None:
        return iter(())
    with suppress(UnicodeDecodeError):
        bases.append(root.get(_XML_BASE, ""))
    return chain(_entries(root), _embedded(root))


def _is_transformation(root: etree._Element) -> bool:
    return str(root.tag).startswith(f"{{{_XSL}}}")


def _entries(root: etree._Element) -> Iterator[Raw]:
    is_sheet = _is_transformation(root)
    for element in root.iter(*(f"{{*}}{name}" for name in (*_LINKING, *_IMAGES))):
        # libxml2 accepts lone surrogates in broken XML (`&#xD800;`), which are no text.
        with suppress(UnicodeDecodeError):
            yield from (entry for entry in _entry(element) if not (is_sheet and _TEMPLATE in entry[0]))


def _entry(element: etree._Element) -> Iterable[Raw]:
    namespace, _, name = str(element.tag).rpartition("}")
    if namespace[1:] in (_XHTML, _SVG) and name != "link":
        return ()  # a page in a feed
    href, url, text = element.get("href"), element.get("url"), element.text
    if name in _LINKING:
        return [(value, LinkPurpose.LINK, NamedAs.NOTHING) for value in (href, url, text) if value]
    if name == "content":
        value, kind = url or element.get("src"), element.get("type", "image/")
        is_image = element.get("medium", "image") not in _NO_IMAGES and kind.startswith("image/")
        return [(value, LinkPurpose.REQUISITE if is_image else LinkPurpose.LINK, NamedAs.NOTHING)] if value else ()
    if name == "url":
        parent = element.getparent()
        is_of_image = parent is not None and str(parent.tag).rpartition("}")[2] == "image"
        return [_loaded(text)] if text and is_of_image else ()
    values = (text,) if name in ("logo", "icon") else (href, url)
    return [_loaded(value) for value in values if value]


def _embedded(root: etree._Element) -> Iterator[Raw]:
    """Yield the references of XHTML and SVG in other XML, and those of style sheets of XSLT."""
    wanted = [f"{{{_XHTML}}}*", f"{{{_SVG}}}*"]
    is_sheet = _is_transformation(root)
    if is_sheet:
        wanted += [f"{{{_XSL}}}import", f"{{{_XSL}}}include", "{}*"]
    for element in root.iter(*wanted):
        with suppress(UnicodeDecodeError):
            namespace, _, name = str(element.tag).rpartition("}")
            if namespace[1:] == _XSL:
                yield _loaded(element.get("href", ""))
                continue
            attributes = {
                "xlink:href" if key == _XLINK_HREF else str(key): str(value)
                for key, value in element.attrib.items()
                if not (is_sheet and _TEMPLATE in str(value))
            }
            yield from _of_element(name.lower(), attributes, element.text or "")


def _of_element(tag: str, attributes: _Attributes, text: str) -> Iterable[Raw]:
    listener = Links([], styled=True)
    listener.opened(tag, attributes)
    if tag == "style":
        listener.data(text)
    listener.close()
    return listener.found


def _parse(data: bytes, parser: etree.XMLParser) -> etree._Element | None:
    try:
        root: etree._Element | None = etree.fromstring(data, parser)
    except etree.LxmlError:
        return None
    return root


# --- manifests


#: Members of a manifest that are lists of images (Web Application Manifest sections 1.6 and 3).
_IMAGE_LISTS = ("icons", "screenshots")


def _manifest(text: str) -> Iterator[Raw]:
    """Yield the images of a manifest."""
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(manifest, dict):
        return
    shortcuts = manifest.get("shortcuts")
    holders = [manifest, *(shortcuts if isinstance(shortcuts, list) else ())]
    for holder in holders:
        for member in _IMAGE_LISTS:
            images = holder.get(member) if isinstance(holder, dict) else None
            for image in images if isinstance(images, list) else ():
                if isinstance(image, dict) and isinstance(src := image.get("src"), str):
                    yield _loaded(src)


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
_WITH_LINKS = frozenset({*_ATTRIBUTES, *SRCSETS, *_LAZY_TAGS})
#: Longest name of a window.
_LONGEST_WINDOW = 64
#: Elements of which a lazy source is no image.
_NO_PICTURES = frozenset({"audio", "embed", "iframe", "source", "video"})
_ANCHOR_ENDING = frozenset({"a", "script", "style"})

#: A link as written in the page: kind, URL, text, window.
_RawAnchor = tuple[AskedKind, str, str, str]


def anchors_of(chunks: Iterable[bytes], url: str, charset: str, base: str = "") -> Iterator[ArchivedLink]:
    """Yield each occurrence of a link in a page, in the order of the page; no content raises.

    `chunks` are its bytes, iterated a second time if it is deeply nested, `url` its canonical URL, `charset` the result
    of `text.decode_charset`, `base` that of `base_of`.
    """
    resolve = based_resolver(url, charset, base)
    for kind, raw, name, window in stream_findings(_AnchorReader, lambda: _pieces(chunks, charset)):
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


class _AnchorReader(MarkupListener[_RawAnchor]):
    """Finds links as written."""

    def __init__(self) -> None:
        super().__init__(None, _ANCHOR_ENDING)  # any element may have a style
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
        if tag in _WITH_LINKS:
            self._attributes(tag, attributes)
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

    def _attributes(self, tag: str, attributes: Mapping[str, str]) -> None:
        for attribute, kind, name in _ATTRIBUTES.get(tag, ()):
            if value := attributes.get(attribute):
                window = attributes.get("target", "") if tag == "area" else ""
                self.found.append((kind, value, attributes.get(name, ""), window))
        for attribute in SRCSETS.get(tag, ()):
            name = attributes.get("alt", "")
            value = attributes.get(attribute, "")[:LONGEST_SRCSET]
            self.found += ((AskedKind.IMAGE, candidate, name, "") for candidate in candidates(value))
        if tag not in _LAZY_TAGS:
            return
        for lazy, target, value in lazy_values(tag, attributes):
            if target is not LazyTarget.STYLE:
                kind = AskedKind.HTTP if tag in _NO_PICTURES and target is LazyTarget.SRC else AskedKind.IMAGE
                name = attributes.get("alt") or attributes.get("title", "")
                self.found += ((kind, url, name, "") for url in lazy_urls(lazy, target, value[:LONGEST_SRCSET]))

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
        shown = (each for each in references(style) if not each.lower().partition("?")[0].endswith(_STYLES))
        self.found += ((AskedKind.IMAGE, reference, "", "") for reference in shown)


class _BaseReader(MarkupListener[_RawAnchor]):
    """Finds the bases of a page."""

    hears_text = False

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


# == forwarding, pure =================================================================================================


#: Seconds after which a page that goes on is still a redirect and not a page to read.
LONGEST_STAY = 5
_SECONDS = re.compile(r"\s*(?:(\d{1,9})|(?=\.))", re.ASCII)
_FORWARDING_TAGS = frozenset({"base", "meta", "noscript"})


def field_target(url: str, refresh: str) -> str:
    """Return the URL in the field Refresh of the response of a URL; empty if it has none."""
    return without_fragment(target_of(url, bare(refreshed(refresh)))) if _SECONDS.match(refresh) else ""


def field_link(url: str, refresh: str) -> tuple[Link, ...]:
    """Return the URL in the field Refresh as a link, if there is one."""
    target = field_target(url, refresh)
    return (Link(target, LinkPurpose.LINK),) if target else ()


def forward_of(url: str, refresh: str, body: bytes, mime_type: str, charset: str) -> str:
    """Return where a page goes on within seconds; empty if it stays, or if it goes on to itself.

    `refresh` is its field of that name; the other parameters are those of `outlinks.find`.
    """
    if is_quick(refresh) and (target := field_target(url, refresh)):
        return target if target != url else ""
    if mime_type not in HTML_TYPES:
        return ""
    text = text_of(body, charset)
    if "http-equiv" not in text.lower():
        return ""
    bases: list[str] = []
    pieces = range(0, len(text), PIECE)
    contents = stream_findings(lambda: _Refreshes(bases), lambda: (text[at : at + PIECE] for at in pieces))
    content = next(contents, "")  # `bases` are those before it
    target = based_resolver(url, charset, "".join(bases[:1]))(bare(refreshed(content))) or ""
    return target if target != url else ""


def is_quick(refresh: str) -> bool:
    """Return whether a refresh goes on within seconds."""
    match = _SECONDS.match(refresh)
    return match is not None and int(match[1] or 0) <= LONGEST_STAY


class _Refreshes(MarkupListener[str]):
    """Finds what a page's quick refreshes say. Values of <base> are added to `bases`."""

    hears_text = False

    def __init__(self, bases: list[str]) -> None:
        super().__init__(_FORWARDING_TAGS, frozenset({"noscript"}))
        self._bases = bases
        self._without_scripts = 0

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the beginning of an element."""
        if tag == "noscript":
            self._without_scripts += 1
        elif tag == "base" and (base := attributes.get("href")):
            self._bases.append(base)
        elif tag == "meta" and attributes.get("http-equiv", "").strip().lower() == "refresh":
            content = attributes.get("content", "")
            if not self._without_scripts and is_quick(content) and refreshed(content):
                self.found.append(content)

    def ended(self, tag: str) -> None:
        """Handle the end of an element."""
        if tag == "noscript":
            self._without_scripts = max(self._without_scripts - 1, 0)  # end tags may have no start
