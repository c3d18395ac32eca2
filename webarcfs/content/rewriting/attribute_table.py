"""What each attribute means to the rewriter: the one table in htmlurls.py, and what only replay needs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from webarcfs.content.htmlurls import LINK_ATTRIBUTES, REQUISITE_RELS, SRCSETS, UNFOLLOWED
from webarcfs.content.rewriting.references import OF_BUTTON, Shape, Use, code


class Care(IntEnum):
    """What an attribute needs that is no plain reference; below 0, so that it is no code."""

    OUT = -1  #: its name gets a prefix, so that it is out of force
    READ = -2  #: its element's reader looks at it
    STYLE = -3  #: declarations of CSS
    TARGET = -4  #: the name of a window
    SRCDOC = -5  #: a page


#: Values of rel that ask for things ahead of time, or in another way that replay has no use for.
ASKING_RELS = frozenset(
    {
        "compression-dictionary", "dns-prefetch", "import", "modulepreload", "monetization", "preconnect", "prefetch",
        "prerender", "serviceworker", "subresource",
    }
)  # fmt: skip
#: Values of rel that some browsers load, although the crawl takes them for links.
LOADED_RELS = (REQUISITE_RELS | {"next", "search"}) - ASKING_RELS
#: Values of http-equiv that change what a browser may do, or let it ask for something.
DEAD_EQUIVS = frozenset(
    {
        "accept-ch", "content-security-policy", "content-security-policy-report-only", "delegate-ch", "origin-trial",
        "set-cookie", "x-content-security-policy", "x-dns-prefetch-control", "x-webkit-csp",
    }
)  # fmt: skip
#: Elements that change another one's attribute: SVG's animations.
ANIMATIONS = frozenset({"animate", "animatecolor", "animatemotion", "animatetransform", "set"})
#: Names of parameters of <object> that are references.
PARAMETERS = frozenset({"code", "filename", "movie", "src", "url"})
#: Elements whose content is no markup, in HTML.
RAW_ELEMENTS = frozenset(
    {"script", "style", "xmp", "iframe", "noembed", "noframes", "title", "textarea", "plaintext"}
)  # fmt: skip

_USES = {
    **dict.fromkeys(("a", "area"), Use.LINK),
    **dict.fromkeys(("form", "button", "isindex"), Use.FORM),
    **dict.fromkeys(("frame", "iframe", "portal", "fencedframe"), Use.FRAME),
    **dict.fromkeys(("object", "embed", "applet"), Use.OBJECT),
    **dict.fromkeys(("img", "image", "feimage", "mglyph", "input"), Use.IMAGE),
    "script": Use.SCRIPT,
    **{tag: Use.LINK for tag in UNFOLLOWED if tag.startswith("m") and tag not in ("mglyph", "model", "mpath")},
    **dict.fromkeys(("annotation", "annotation-xml", "semantics"), Use.LINK),
}
_IMAGES = frozenset({"background", "poster", "lowsrc", "dynsrc", "srcset"})
#: Presentation attributes of SVG that may have url() (SVG 2 section 6.6).
_PRESENTATION = (
    "style", "clip-path", "cursor", "fill", "filter", "marker", "marker-end", "marker-mid", "marker-start", "mask",
    "stroke",
)  # fmt: skip

Entries = Mapping[bytes, int]


def _everywhere() -> dict[bytes, int]:
    entries: dict[bytes, int] = {name.encode(): Care.STYLE for name in _PRESENTATION}
    entries.update(dict.fromkeys((b"attributionsrc", b"crossorigin", b"integrity"), Care.OUT))
    entries[b"xlink:href"] = code(Use.LINK)  # any element of MathML or XML may be a link by it
    return entries


#: The attributes of elements that the table does not name.
EVERYWHERE: Entries = _everywhere()


def _table() -> dict[bytes, dict[bytes, int]]:
    table: dict[bytes, dict[bytes, int]] = {}

    def put(tag: str, attribute: str, entry: int) -> None:
        table.setdefault(tag.encode(), dict(EVERYWHERE))[attribute.encode()] = entry

    named = [(row.tag, row.attribute) for row in LINK_ATTRIBUTES]
    named += [(tag, attribute) for tag, attributes in UNFOLLOWED.items() for attribute in attributes]
    for tag, attribute in named:
        if attribute != "longdesc":
            put(tag, attribute, code(_use(tag, attribute)))
    for tag, attributes in {**SRCSETS, "image": ("srcset",)}.items():
        for attribute in attributes:
            put(tag, attribute, code(Use.IMAGE, Shape.SRCSET))
    for tag in ("a", "area"):
        put(tag, "ping", Care.OUT)
    for tag in ("a", "area", "base", "form"):
        put(tag, "target", Care.TARGET)
    for tag in ("button", "input"):
        put(tag, "formaction", code(Use.FORM) | OF_BUTTON)
        put(tag, "formtarget", Care.TARGET)
    put("applet", "archive", code(Use.OBJECT, Shape.COMMAS))
    put("object", "archive", code(Use.OBJECT, Shape.COMMAS))
    put("base", "href", code(Use.BASE))
    put("iframe", "srcdoc", Care.SRCDOC)
    put("html", "manifest", Care.OUT)
    read = {
        "applet": ("codebase", "code", "archive", "object"), "object": ("codebase", "data", "archive"),
        "link": ("rel", "href", "as"), "meta": ("http-equiv", "content"), "param": ("name", "value"),
        "script": ("type",), **dict.fromkeys(ANIMATIONS, ("attributename",)),
    }  # fmt: skip
    for tag, attributes in read.items():
        for attribute in attributes:
            put(tag, attribute, Care.READ)
    return table


def _use(tag: str, attribute: str) -> Use:
    if attribute in _IMAGES:
        return Use.IMAGE
    return Use.FORM if attribute == "formaction" else _USES.get(tag, Use.OTHER)


#: Element → attribute → the code of its row, or the care that it needs.
TABLE: Mapping[bytes, Entries] = _table()
