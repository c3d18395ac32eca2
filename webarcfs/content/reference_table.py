"""The attributes of elements that hold URLs, one table for the crawl, for links.db and for replay. Pure.

What the crawl fetches and what replay rewrites are both read off this table, so that neither knows an attribute that
the other does not. `lazy_images.py` has the attributes that scripts load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from webarcfs.archive.index.links import AskedKind


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
