"""The attributes of elements that hold URLs, one table for the crawl, for links.db and for replay. Pure.

What the crawl fetches and what replay rewrites are both read off this table, so that neither knows an attribute that
the other does not.

From some attributes scripts load images, frames and media when a reader scrolls near them (lazy loading).

The crawl runs no script, and neither does the built-in engine of the reading room. So the crawl takes what these
attributes name as a part of the page, and the shown page has it where the script would put it. The names are those of
lazysizes, vanilla-lazyload, lozad, bLazy, Unveil, jQuery's Lazy Load, Swiper, Slick, Flickity, of the plug-ins of
WordPress, and of services that rewrite pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from webarcfs.archive.index.links import AskedKind

# == reference table, pure ============================================================================================


class LinkPurpose(StrEnum):
    """The purpose of a link: a click costs depth (/Cr-1.1/), a requisite belongs to the page, a sitemap lists pages.

    A feed that a page names is a sitemap as well.
    """

    LINK = "link"
    REQUISITE = "requisite"
    SITEMAP = "sitemap"


class NamedAs(StrEnum):
    """As what a document names another one. It decides how the other one is read where its type does not."""

    NOTHING = ""
    SHEET = "sheet"  #: a style sheet: link, @import, xml-stylesheet
    QUIRKS_SHEET = "quirks-sheet"  #: a style sheet of the same origin, named by a page in quirks mode
    MANIFEST = "manifest"  #: the manifest of a web application


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


#: SVG's elements that may show an element of another document.
_DRAWN: Final = (
    "use", "feimage", "filter", "pattern", "lineargradient", "radialgradient", "textpath", "mpath", "tref", "cursor",
    "font-face-uri", "color-profile",
)  # fmt: skip
#: MathML's elements: each may be a link.
MATHML: Final = (
    "annotation", "annotation-xml", "maction", "math", "menclose", "merror", "mfenced", "mfrac", "mi",
    "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "ms", "mspace", "msqrt",
    "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover", "semantics",
)  # fmt: skip
_HREFS: Final = ("href", "xlink:href")

#: Elements with a URL in an attribute. A form's action is not followed: sending a form is not reading.
LINK_ATTRIBUTES: Final = (
    LinkAttribute("a", "href", LinkPurpose.LINK),  # named by its text
    LinkAttribute("a", "xlink:href", LinkPurpose.LINK),
    LinkAttribute("area", "href", LinkPurpose.LINK, AskedKind.HTTP, "alt"),
    LinkAttribute("img", "longdesc", LinkPurpose.LINK, AskedKind.HTTP, "alt"),
    LinkAttribute("img", "src", LinkPurpose.REQUISITE, AskedKind.IMAGE, "alt"),
    LinkAttribute("img", "lowsrc", LinkPurpose.REQUISITE, AskedKind.IMAGE, "alt"),
    LinkAttribute("source", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("script", "src", LinkPurpose.REQUISITE),
    *(LinkAttribute("script", href, LinkPurpose.REQUISITE) for href in _HREFS),  # SVG
    LinkAttribute("frame", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("iframe", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("fencedframe", "src", LinkPurpose.REQUISITE),
    LinkAttribute("portal", "src", LinkPurpose.REQUISITE),
    LinkAttribute("embed", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("model", "src", LinkPurpose.REQUISITE),
    LinkAttribute("video", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("video", "poster", LinkPurpose.REQUISITE, AskedKind.IMAGE, "title"),
    LinkAttribute("audio", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),
    LinkAttribute("track", "src", LinkPurpose.REQUISITE, AskedKind.HTTP, "label"),
    LinkAttribute("object", "data", LinkPurpose.REQUISITE, AskedKind.HTTP, "title"),  # has a reader for the crawl
    LinkAttribute("bgsound", "src", LinkPurpose.REQUISITE),
    *(
        LinkAttribute(tag, "background", LinkPurpose.REQUISITE, AskedKind.IMAGE, "title")
        for tag in ("body", "table", "thead", "tbody", "tfoot", "tr", "td", "th")
    ),
    LinkAttribute("image", "src", LinkPurpose.REQUISITE, AskedKind.IMAGE, "alt"),  # HTML turns it into <img>
    *(LinkAttribute("image", href, LinkPurpose.REQUISITE, AskedKind.IMAGE, "title") for href in _HREFS),  # SVG
    *(LinkAttribute(tag, href, LinkPurpose.REQUISITE) for tag in _DRAWN for href in _HREFS),
    *(LinkAttribute(tag, href, LinkPurpose.LINK) for tag in MATHML for href in _HREFS),
)
#: Attributes with several images, by element.
SRCSETS: Final[Mapping[str, tuple[str, ...]]] = {
    "img": ("srcset",),
    "image": ("srcset",),
    "source": ("srcset",),
    "link": ("imagesrcset",),
}

#: Further attributes with a URL, by element, which the crawl does not follow: no browser asks for them by itself.
UNFOLLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    "a": ("ping",),
    "applet": ("code", "archive", "object"),  # has a reader for the crawl
    "area": ("ping",),
    "button": ("formaction",),
    "form": ("action",),
    "image": ("lowsrc", "dynsrc"),
    "img": ("dynsrc",),
    "input": ("formaction", "src"),  # of an image, which has a reader for the crawl
    "isindex": ("action",),
    "mglyph": ("src", *_HREFS),
    **dict.fromkeys(
        (
            "altglyph", "animate", "animatecolor", "animatemotion", "animatetransform", "discard", "glyphref", "set",
        ),
        _HREFS,
    ),
}  # fmt: skip

#: Presentation attributes of SVG that may have url() (SVG 2 section 6.6), and the one that holds declarations.
PRESENTATION: Final = (
    "style", "clip-path", "cursor", "fill", "filter", "marker", "marker-end", "marker-mid", "marker-start", "mask",
    "stroke",
)  # fmt: skip
#: Names of parameters of <object> that are references.
PARAMETERS: Final = frozenset({"code", "filename", "movie", "src", "url"})
#: Pages in pages in pages, by srcdoc, that are read.
MOST_INNER: Final = 5

#: Values of rel that are no links at all, and those of a page's requisites.
NO_LINKS: Final = frozenset({"dns-prefetch", "preconnect", "pingback"})
REQUISITE_RELS: Final = frozenset(
    {
        "stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "fluid-icon",
        "apple-touch-startup-image", "manifest", "preload", "modulepreload",
    }
)  # fmt: skip
#: The content of a refresh; its target is one of the three groups.
REFRESH: Final = re.compile(
    r"\s*+[\d.]*+\s*[;,\s]\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*))", re.IGNORECASE | re.DOTALL
)
#: An instruction for a style sheet ends at its first `?>`, whatever quotes are open.
INSTRUCTION: Final = r"<\?xml-stylesheet((?:[^?]++|\?(?!>))*+)\?>"
#: What its pseudo attributes say is certain only where all of them are plain.
PSEUDO_ATTRIBUTE: Final = r"""[ \t\r\n]++([a-z]+)[ \t\r\n]*+=[ \t\r\n]*+(?:"([^"<&]*+)"|'([^'<&]*+)')"""

_SRCSET_SPACE = " \t\n\f\r"
#: A candidate of a srcset: a URL, which may contain commas, but neither begins nor ends with one (HTML 4.8.4.2.1).
CANDIDATE: Final = re.compile(rf"[{_SRCSET_SPACE},]*+([^{_SRCSET_SPACE}]++)")
#: The descriptors of a candidate whose URL does not end with a comma.
DESCRIPTORS: Final = re.compile(r"(?:[^,(]++|\([^)]*+(?:\)|\Z))*+")


def candidates(value: str) -> Iterator[str]:
    """Yield the URLs of a srcset: `URL descriptor, URL descriptor, …`."""
    at = 0
    while match := CANDIDATE.match(value, at):
        word = match[1]
        url = word.rstrip(",")
        if url:
            yield url
        at = match.end()
        if len(url) == len(word):
            descriptors = DESCRIPTORS.match(value, at)
            at = descriptors.end() if descriptors else len(value)


# == lazy images, pure ================================================================================================


class LazyTarget(StrEnum):
    """The attribute of a browser that a script sets from a lazy one."""

    SRC = "src"
    SRCSET = "srcset"
    POSTER = "poster"
    STYLE = "style"  #: the background of an element


_SOURCES = (
    "data-src", "data-lazy-src", "data-original", "data-lazy", "data-lazyload", "data-lazyload-src", "data-orig-src",
    "data-original-src", "data-real-src", "data-actualsrc", "data-defer-src", "data-echo", "data-normal", "data-cfsrc",
    "data-rocket-src", "data-litespeed-src", "data-wpfc-original-src", "data-pagespeed-lazy-src", "data-ezsrc",
    "data-nitro-lazy-src", "nitro-lazy-src", "data-flickity-lazyload", "data-flickity-lazyload-src", "data-img-src",
    "data-image-src", "data-lazy-img", "data-ks-lazyload", "data-ks-lazyload-custom", "data-iesrc", "data-hi-res-src",
    "data-src-retina", "data-retina", "data-src-webp", "data-src-small", "data-src-medium", "data-src-large",
    "data-large-src", "lazy-src", "lazysrc", "real_src",
)  # fmt: skip
_SETS = (
    "data-srcset", "data-lazy-srcset", "data-original-set", "data-lazyload-srcset", "data-original-srcset",
    "data-orig-srcset", "data-defer-srcset", "data-rocket-srcset", "data-litespeed-srcset",
    "data-wpfc-original-srcset", "data-pagespeed-lazy-srcset", "data-ezsrcset", "data-nitro-lazy-srcset",
    "nitro-lazy-srcset", "data-flickity-lazyload-srcset", "data-srcset-webp", "lazy-srcset",
)  # fmt: skip
_POSTERS = ("data-poster", "data-lazy-poster", "data-original-poster")
_BACKGROUNDS = (
    "data-bg", "data-background-image", "data-background", "data-bg-image", "data-bg-src", "data-bg-img", "data-bg-url",
    "data-lazy-bg", "data-lazy-background", "data-lazy-background-image", "data-bg-multi", "data-bg-set", "data-bgset",
    "data-bg-hidpi", "data-bg-multi-hidpi", "data-background-image-set", "data-echo-background", "data-setbg",
    "data-back", "data-bg-webp", "data-flickity-bg-lazyload", "data-nitro-lazy-bg", "nitro-lazy-bg",
    "data-parallax-image", "data-vc-parallax-image",
)  # fmt: skip
#: Lazy attribute → the attribute that it stands for, those that are preferred for showing first.
LAZY: Final[Mapping[str, LazyTarget]] = {
    **dict.fromkeys(_SOURCES, LazyTarget.SRC),
    **dict.fromkeys(_SETS, LazyTarget.SRCSET),
    **dict.fromkeys(_POSTERS, LazyTarget.POSTER),
    **dict.fromkeys(_BACKGROUNDS, LazyTarget.STYLE),
}
#: The elements on which scripts look for each; a background may be that of any element.
LAZY_TAGS: Final[Mapping[LazyTarget, frozenset[str]]] = {
    LazyTarget.SRC: frozenset({"img", "image", "source", "iframe", "video", "audio", "embed", "input"}),
    LazyTarget.SRCSET: frozenset({"img", "image", "source"}),
    LazyTarget.POSTER: frozenset({"video"}),
}
# Every lazy background has this or `-lazy-b` in its name. So few other names have it (`data-bs-toggle` has not) that
# most pages need no search for one. It begins with letters, since a search for these is as fast as for a word.
_BACKGROUND = re.compile(rb"data-(?:bg|back|setbg|echo-background|flickity-bg|(?:vc-)?parallax-image)")

#: Longest lazy attribute that is read.
LONGEST_LAZY: Final = 1 << 15
_LONGEST_NAME = 255
# What these attributes hold that is no URL: switches, numbers, templates, JSON.
_NO_URL = re.compile(r"(?:true|false|yes|no|on|off|auto|lazy|loaded|none|null|undefined|\d*|[{\[<].*)\Z", re.I | re.S)
_IMAGE_END = r"\.(?:avif|bmp|gif|ico|jpe?g|jxl|png|svg|webp)(?:[?#]|\Z)"
# A background may be the name of a colour, or of a class.
_PLACE = re.compile(rf"(?:https?:)?//|\.{{0,2}}/|[^\s,]*{_IMAGE_END}", re.IGNORECASE)
_MARKED = re.compile(r"\[[^\[\]]*+\]")
_FUNCTION = re.compile(r"(?:url|image-set|src)\(", re.IGNORECASE)
_NO_PLACE = re.compile(r"(?:data|about|javascript|blob):|#|\Z", re.IGNORECASE)
# The names of images that stand where another one will be. An image that is none of them, and has a lazy attribute, is
# replaced by the script as well; but it is shown as it came, since it may be all that the archive has.
_PLACEHOLDER = re.compile(
    r"[-_.\w]*?(?:blank|spacer|place-?holder|load(?:ing|er)|lazy|trans|pixel|1x1|1px|clear|gr[ae]y|dot|empty|null"
    r"|fallback|grid|wait|spinner)[-_.\w]*\.(?:gif|png|svg|jpe?g|webp|avif)\Z",
    re.IGNORECASE,
)
_CSS_UNSAFE = re.compile(r'["\\\n\r\f]')


def may_have_background(low: bytes) -> bool:
    """Return whether a page, in lower case, may have a lazy background."""
    return b"-lazy-b" in low or _BACKGROUND.search(low) is not None


def lazy_values(tag: str, attributes: Mapping[str, str]) -> Iterator[tuple[str, LazyTarget, str]]:
    """Yield each lazy attribute of an element: its name, what it stands for, and its value if that may be a URL."""
    for name, value in attributes.items():
        target = LAZY.get(name)
        if target is None or not value or len(value) > LONGEST_LAZY or _NO_URL.match(value.strip()):
            continue
        if target is LazyTarget.STYLE or tag in LAZY_TAGS[target]:
            yield name, target, value


def lazy_urls(name: str, target: LazyTarget, value: str) -> Iterator[str]:
    """Yield the URLs of a lazy attribute that hold no function of CSS."""
    if target is LazyTarget.SRCSET:
        yield from candidates(value)
    elif target is LazyTarget.STYLE:
        yield from _background_urls(name, value)
    else:
        yield value


def has_function(value: str) -> bool:
    """Return whether a lazy background is a value of CSS, such as `url(a.png), url(b.png)`."""
    return _FUNCTION.search(value) is not None


def _background_urls(name: str, value: str) -> Iterator[str]:
    if has_function(value):
        return
    if name.endswith("set"):
        for part in _MARKED.sub(" ", value).split("|"):
            yield from candidates(part)
        return
    for separator in ("|", ","):
        parts = [part.strip() for part in value.split(separator)]
        if all(_PLACE.match(part) for part in parts):
            yield from parts
            return
    if _PLACE.match(value.strip()):
        yield value


def is_placeholder(value: str) -> bool:
    """Return whether an image's address is none, or that of an image that stands where another one will be."""
    text = value.strip()
    if _NO_PLACE.match(text):
        return True
    name = text.partition("#")[0].partition("?")[0].rpartition("/")[2]
    return len(name) <= _LONGEST_NAME and _PLACEHOLDER.match(name) is not None


def shown_attributes(tag: str, attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes that an element gets from its lazy ones, where it has none or a placeholder.

    The value of `style` is what is added to the element's own. Other names of `attributes` are ignored.
    """
    offered: dict[LazyTarget, tuple[str, str]] = {}
    for name, target, value in sorted(lazy_values(tag, attributes), key=lambda lazy: _ORDER[lazy[0]]):
        offered.setdefault(target, (name, value))
    shown: dict[str, str] = {}
    for target in (LazyTarget.SRCSET, LazyTarget.SRC, LazyTarget.POSTER):
        if target in offered and _may_show(target, attributes):
            shown[target] = offered[target][1]
    if LazyTarget.SRC in shown and LazyTarget.SRCSET not in shown and _has_dead_set(attributes):
        # A set takes precedence over the source, also one of a placeholder.
        shown[LazyTarget.SRCSET] = next(iter(candidates(shown[LazyTarget.SRC].replace(" ", "%20"))), "")
    if LazyTarget.STYLE in offered and "background" not in attributes.get("style", "").lower():
        style = _background(*offered[LazyTarget.STYLE])
        shown.update({LazyTarget.STYLE.value: style} if style else {})
    return {str(name): value for name, value in shown.items() if value}


_ORDER = {name: number for number, name in enumerate(LAZY)}


def _may_show(target: LazyTarget, attributes: Mapping[str, str]) -> bool:
    own = attributes.get(target, "")
    if target is LazyTarget.SRCSET:
        return all(map(is_placeholder, candidates(own)))
    if target is LazyTarget.SRC and "srcset" in attributes and not _has_dead_set(attributes):
        return False
    return is_placeholder(own)


def _has_dead_set(attributes: Mapping[str, str]) -> bool:
    return "srcset" in attributes and all(map(is_placeholder, candidates(attributes["srcset"])))


def _background(name: str, value: str) -> str:
    """Return the declaration of a background."""
    if has_function(value):
        is_bare_set = name in ("data-bg-set", "data-background-image-set") and "image-set(" not in value.lower()
        return f"background-image:image-set({value})" if is_bare_set else f"background-image:{value}"
    urls = list(_background_urls(name, value))
    if name.endswith("set"):
        urls = urls[-1:]
    return "background-image:" + ",".join(f'url("{_css_string(url.strip())}")' for url in urls) if urls else ""


def _css_string(text: str) -> str:
    return _CSS_UNSAFE.sub(lambda match: f"\\{ord(match[0]):x} ", text)
