"""References in pages → canonical URLs, as browsers resolve them (url.spec.whatwg.org). Pure.

urljoin followed by canonicalisation is two thirds of the cost of extracting links, so the two are one step here:
`canonical` resolves dot segments by itself, and most references are plain names, which need neither.

The references of a style sheet: `url()` and `@import`. Pure.

The places of URLs in HTML and SVG: a table of attributes, and readers of elements that need more than that. Pure.

URLs are returned as written; outlinks.py resolves them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urljoin

from webarcfs.archive.index.links import AskedKind
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.urls import canonical, joined
from webarcfs.content.markup import MarkupListener

# == urlresolver, pure ================================================================================================


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


# == htmlurls, pure ===================================================================================================


#: Longer attributes are `data:` or nonsense.
LONGEST_LINK = 1 << 15


class LinkPurpose(StrEnum):
    """The purpose of a link: a click costs depth (/Cr-1.1/), a requisite belongs to the page."""

    LINK = "link"
    REQUISITE = "requisite"


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
        yield href, LinkPurpose.REQUISITE if rels & REQUISITE_RELS else LinkPurpose.LINK
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
