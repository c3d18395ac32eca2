"""The URLs that a document refers to: to follow (links), and to be shown with (requisites). Pure.

References are first collected as written, each spelling once, and only then resolved, since resolving is expensive. No
content raises, and URLs other than http(s) are left out. In HTML and SVG a table of attributes says where URLs are;
elements that need more than that have readers. In a style sheet they are in `url()` and `@import`.

References become canonical URLs as browsers resolve them (url.spec.whatwg.org). urljoin followed by canonicalisation is
two thirds of the cost of extracting links, so the two are one step here: `canonical` resolves dot segments by itself,
and most references are plain names, which need neither.

links.db gets the links of a page with the words that name them: http, mail and image. Unlike `links`, which a crawl
follows, this part counts every occurrence of a link, and collects its text. The page streams through libxml2 without a
tree, so that a page of a million links takes no more memory than any other. Files for the appearance of a page (styles,
scripts, fonts) are no links, nor is a place on the same page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin

from lxml import etree

from webarcfs.archive.index.links import ArchivedLink, AskedKind
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.urls import canonical, joined
from webarcfs.content import text
from webarcfs.content.markup import PIECE, MarkupListener, stream_findings
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


# == css, pure ========================================================================================================


# Comments, namespaces and strings are matched so that a `url(` in them is not. No alternative backtracks (`*+`), which
# keeps the search linear on hostile input.
_TOKENS = re.compile(
    r"""
      /\*.*?(?:\*/|\Z)
    | @namespace[^;]*+
    | (?:url\(\s*+|@import\s*+)(?:"((?:[^"\\\n]|\\.)*+)"?+|'((?:[^'\\\n]|\\.)*+)'?+)
    | url\(\s*+((?:[^)"'\s\\]|\\.)(?:[^)\s\\]|\\.)*+)
    | "(?:[^"\\\n]|\\.)*+"?+
    | '(?:[^'\\\n]|\\.)*+'?+
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.IGNORECASE | re.DOTALL)


def references(text: str) -> Iterator[str]:
    """Yield the references of a style sheet, a <style> element or a style attribute, in order, as written."""
    for match in _TOKENS.finditer(text):
        if reference := match[1] or match[2] or match[3]:
            yield _ESCAPE.sub(_unescape, reference) if "\\" in reference else reference


def _unescape(match: re.Match[str]) -> str:
    """Resolve an escape (CSS Syntax section 4.3.7)."""
    if not match[1]:
        return "" if match[2] == "\n" else match[2]
    code = int(match[1], 16)
    return "\ufffd" if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code)


# == places of URLs, pure ==============================================================================================


#: Longer attributes are `data:` or nonsense.
LONGEST_LINK = 1 << 15


class LinkPurpose(StrEnum):
    """The purpose of a link: a click costs depth (/Cr-1.1/), a requisite belongs to the page, a sitemap lists pages.

    A feed that a page names is a sitemap as well.
    """

    LINK = "link"
    REQUISITE = "requisite"
    SITEMAP = "sitemap"


#: A link as written in the document.
Raw = tuple[str, LinkPurpose]
_Attributes = Mapping[str, str]


class LinkAttribute(NamedTuple):
    """An attribute with a URL, and its kind for the crawl.

    `shown` is the kind of link in links.db, named by the attribute `text`; None if it is no such link, or has a reader
    of its own.
    """

    tag: str
    attribute: str
    kind: LinkPurpose
    shown: AskedKind | None = None
    text: str = ""


#: Elements with a URL in an attribute. A form's action is not followed: sending a form is not reading.
LINK_ATTRIBUTES = (
    LinkAttribute("a", "href", LinkPurpose.LINK),  # named by its text
    LinkAttribute("a", "xlink:href", LinkPurpose.LINK),
    LinkAttribute("area", "href", LinkPurpose.LINK, AskedKind.HTTP, "alt"),
    LinkAttribute("img", "longdesc", LinkPurpose.LINK, AskedKind.HTTP, "alt"),
    LinkAttribute("img", "src", LinkPurpose.REQUISITE, AskedKind.IMAGE, "alt"),
    LinkAttribute("img", "lowsrc", LinkPurpose.REQUISITE, AskedKind.IMAGE, "alt"),
    LinkAttribute("img", "data-src", LinkPurpose.REQUISITE, AskedKind.IMAGE, "alt"),  # lazy loading
    LinkAttribute("source", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("script", "src", LinkPurpose.REQUISITE),
    LinkAttribute("frame", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("iframe", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("embed", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("video", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("video", "poster", LinkPurpose.REQUISITE, AskedKind.IMAGE, "title"),
    LinkAttribute("audio", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("track", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "label"),
    LinkAttribute("object", "data", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),  # `_object` reads it for the crawl
    LinkAttribute("bgsound", "src", LinkPurpose.REQUISITE),
    *(
        LinkAttribute(tag, "background", LinkPurpose.REQUISITE, AskedKind.IMAGE, "title")
        for tag in ("body", "table", "tr", "td", "th")
    ),
    LinkAttribute("image", "href", LinkPurpose.REQUISITE, AskedKind.IMAGE, "title"),  # SVG
    LinkAttribute("image", "xlink:href", LinkPurpose.REQUISITE, AskedKind.IMAGE, "title"),
    LinkAttribute("use", "href", LinkPurpose.REQUISITE),
    LinkAttribute("use", "xlink:href", LinkPurpose.REQUISITE),
)
#: Attributes with several images, by element.
SRCSETS: Mapping[str, tuple[str, ...]] = {
    "img": ("srcset", "data-srcset"),
    "source": ("srcset",),
    "link": ("imagesrcset",),
}

#: Further attributes with a URL, by element, which the crawl does not follow: a browser may load them or go there.
UNFOLLOWED: Mapping[str, tuple[str, ...]] = {
    "a": ("ping",),
    "applet": ("code", "archive", "object"),
    "area": ("ping",),
    "button": ("formaction",),
    "fencedframe": ("src",),
    "form": ("action",),
    "image": ("src", "lowsrc", "dynsrc"),  # HTML turns it into <img>
    "img": ("dynsrc",),
    "input": ("formaction", "src"),
    "isindex": ("action",),
    "mglyph": ("src", "href", "xlink:href"),
    "model": ("src",),
    "portal": ("src",),
    "script": ("href", "xlink:href"),
    **dict.fromkeys(("thead", "tbody", "tfoot"), ("background",)),
    # SVG: each may refer to an element of another document
    **dict.fromkeys(
        (
            "altglyph", "animate", "animatecolor", "animatemotion", "animatetransform", "color-profile", "cursor",
            "discard", "feimage", "filter", "font-face-uri", "glyphref", "lineargradient", "mpath", "pattern",
            "radialgradient", "set", "textpath", "tref",
        ),
        ("href", "xlink:href"),
    ),
    # MathML: each element may be a link
    **dict.fromkeys(
        (
            "annotation", "annotation-xml", "maction", "math", "menclose", "merror", "mfenced", "mfrac", "mi",
            "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "ms", "mspace", "msqrt",
            "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover", "semantics",
        ),
        ("href", "xlink:href"),
    ),
}  # fmt: skip

#: Values of rel that are no links at all, and those of a page's requisites.
NO_LINKS = frozenset({"dns-prefetch", "preconnect", "pingback"})
REQUISITE_RELS = frozenset(
    {
        "stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "fluid-icon",
        "apple-touch-startup-image", "manifest", "preload", "modulepreload",
    }
)  # fmt: skip
#: Types by which a page names its feeds (`<link rel=alternate type=…>`).
FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
#: The content of a refresh; its target is one of the three groups.
REFRESH = re.compile(r"\s*[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*))", re.IGNORECASE | re.DOTALL)


def _attributes_of(tag: str) -> Callable[[_Attributes], Iterable[Raw]]:
    rows = tuple((row.attribute, row.kind) for row in LINK_ATTRIBUTES if row.tag == tag)

    def read(attributes: _Attributes) -> Iterable[Raw]:
        return [(value, kind) for attribute, kind in rows if (value := attributes.get(attribute))]

    return read


def _with_srcsets(tag: str) -> Callable[[_Attributes], Iterable[Raw]]:
    plain = _attributes_of(tag)

    def read(attributes: _Attributes) -> Iterator[Raw]:
        yield from plain(attributes)
        for name in SRCSETS[tag]:
            if value := attributes.get(name):
                yield from _srcset(value)

    return read


def _link(attributes: _Attributes) -> Iterator[Raw]:
    rels = set(attributes.get("rel", "").lower().split())
    href = attributes.get("href")
    if href and not rels & NO_LINKS:
        lists = "sitemap" in rels or ("alternate" in rels and attributes.get("type", "").strip().lower() in FEED_TYPES)
        purpose = LinkPurpose.SITEMAP if lists else LinkPurpose.LINK
        yield href, LinkPurpose.REQUISITE if rels & REQUISITE_RELS else purpose
    for name in SRCSETS["link"]:
        yield from _srcset(attributes.get(name, ""))


def _meta(attributes: _Attributes) -> Iterator[Raw]:
    if attributes.get("http-equiv", "").strip().lower() == "refresh":
        yield refreshed(attributes.get("content", "")), LinkPurpose.LINK


def _input(attributes: _Attributes) -> Iterator[Raw]:
    if attributes.get("type", "").strip().lower() == "image":
        yield attributes.get("src", ""), LinkPurpose.REQUISITE


def _object(attributes: _Attributes) -> Iterator[Raw]:
    """Read <object> and <applet>: names relative to a codebase (HTML 4.01 section 13.3)."""
    names = [attributes.get("data", ""), attributes.get("code", ""), *attributes.get("archive", "").split(",")]
    codebase = attributes.get("codebase", "").strip()
    if codebase:
        codebase = codebase.rstrip("/") + "/"
    for name in filter(None, map(str.strip, names)):
        try:
            yield urljoin(codebase, name), LinkPurpose.REQUISITE
        except ValueError:
            continue


def styles(text: str) -> Iterator[Raw]:
    """Return the references of a style sheet, or of a part of one."""
    return ((reference, LinkPurpose.REQUISITE) for reference in references(text))


def _srcset(value: str) -> Iterator[Raw]:
    return ((candidate, LinkPurpose.REQUISITE) for candidate in candidates(value))


def candidates(value: str) -> Iterator[str]:
    """Yield the URLs of a srcset: `URL descriptor, URL descriptor, …`; a URL may contain commas, but not end in one
    (HTML 4.8.4.2.1)."""
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


#: The reader of each element that can contain links.
_READERS: dict[str, Callable[[_Attributes], Iterable[Raw]]] = {
    **{row.tag: _attributes_of(row.tag) for row in LINK_ATTRIBUTES},
    "img": _with_srcsets("img"),
    "source": _with_srcsets("source"),
    "link": _link,
    "meta": _meta,
    "input": _input,
    "object": _object,
    "applet": _object,
}
_TAGS = frozenset({*_READERS, "style", "base"})
_ENDING = frozenset({"style"})


class Links(MarkupListener[Raw]):
    """Finds a page's references; in style attributes only if it is `styled`. Values of <base> are added to `bases`."""

    def __init__(self, bases: list[str], *, styled: bool) -> None:
        super().__init__(None if styled else _TAGS, _ENDING)
        self._bases = bases
        self._styled = styled
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
        if self._styled and (style := attributes.get("style")):
            self.found += styles(style)

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

    def _end_style(self) -> None:
        if self._style is not None:
            self.found += styles("".join(self._style))
            self._style = None


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
_ANCHOR_ENDING = frozenset({"a", "script", "style"})

#: A link as written in the page: kind, URL, text, window.
_RawAnchor = tuple[AskedKind, str, str, str]


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


class _Reader(MarkupListener[_RawAnchor]):
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
        shown = (each for each in references(style) if not each.lower().partition("?")[0].endswith(_STYLES))
        self.found += ((AskedKind.IMAGE, reference, "", "") for reference in shown)


class _BaseReader(MarkupListener[_RawAnchor]):
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
