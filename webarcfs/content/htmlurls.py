"""Where HTML and SVG hold URLs: a table of attributes, and readers of the elements that hold more than that. Pure.

URLs are told as they are written; links.py resolves them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from urllib.parse import urljoin

from webarcfs.content import css
from webarcfs.content.markup import Listener

#: Longer attributes are `data:` or nonsense.
LONGEST_LINK = 1 << 15


class Kind(StrEnum):
    """What a link is for: a click costs depth (/Cr-1.1/), a requisite belongs to the page."""

    LINK = "link"
    REQUISITE = "requisite"


#: A link as it is written in the document.
Raw = tuple[str, Kind]
_Attributes = Mapping[str, str]

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


def _attributes_of(tag: str) -> Callable[[_Attributes], Iterable[Raw]]:
    rows = tuple((attribute, kind) for name, attribute, kind in _ATTRIBUTES if name == tag)

    def read(attributes: _Attributes) -> Iterable[Raw]:
        return [(value, kind) for attribute, kind in rows if (value := attributes.get(attribute))]

    return read


def _image(attributes: _Attributes) -> Iterator[Raw]:
    yield from _attributes_of_image(attributes)
    for name in ("srcset", "data-srcset"):
        if value := attributes.get(name):
            yield from _srcset(value)


def _source(attributes: _Attributes) -> Iterator[Raw]:
    yield from _attributes_of_source(attributes)
    yield from _srcset(attributes.get("srcset", ""))


def _link(attributes: _Attributes) -> Iterator[Raw]:
    rels = set(attributes.get("rel", "").lower().split())
    href = attributes.get("href")
    if href and not rels & NO_LINKS:
        yield href, Kind.REQUISITE if rels & REQUISITE_RELS else Kind.LINK
    yield from _srcset(attributes.get("imagesrcset", ""))


def _meta(attributes: _Attributes) -> Iterator[Raw]:
    if attributes.get("http-equiv", "").strip().lower() == "refresh":
        yield refreshed(attributes.get("content", "")), Kind.LINK


def _input(attributes: _Attributes) -> Iterator[Raw]:
    if attributes.get("type", "").strip().lower() == "image":
        yield attributes.get("src", ""), Kind.REQUISITE


def _object(attributes: _Attributes) -> Iterator[Raw]:
    """<object> and <applet>: names relative to a codebase (HTML 4.01 section 13.3)."""
    names = [attributes.get("data", ""), attributes.get("code", ""), *attributes.get("archive", "").split(",")]
    codebase = attributes.get("codebase", "").strip()
    if codebase:
        codebase = codebase.rstrip("/") + "/"
    for name in filter(None, map(str.strip, names)):
        try:
            yield urljoin(codebase, name), Kind.REQUISITE
        except ValueError:
            continue


def styles(text: str) -> Iterator[Raw]:
    """What a style sheet, or a piece of one, points to."""
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
_READERS: dict[str, Callable[[_Attributes], Iterable[Raw]]] = {
    **{tag: _attributes_of(tag) for tag, _, _ in _ATTRIBUTES},
    "img": _image,
    "source": _source,
    "link": _link,
    "meta": _meta,
    "input": _input,
    "object": _object,
    "applet": _object,
}
_TAGS = frozenset({*_READERS, "style", "base"})
_ENDING = frozenset({"style"})


class Links(Listener[Raw]):
    """Finds what a page points to; in style attributes only if it is `styled`. What <base> says goes into `bases`."""

    def __init__(self, bases: list[str], *, styled: bool) -> None:
        super().__init__(None if styled else _TAGS, _ENDING)
        self._bases = bases
        self._styled = styled
        self._style: list[str] | None = None  # of the style element that is open

    def opened(self, tag: str, attributes: _Attributes) -> None:
        """An element begins."""
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
        """An element ends."""
        if tag == "style":
            self._end_style()

    def data(self, data: str) -> None:
        """Text between tags."""
        if self._style is not None:
            self._style.append(data)

    def close(self) -> None:
        """The page ends."""
        self._end_style()

    def _end_style(self) -> None:
        if self._style is not None:
            self.found += styles("".join(self._style))
            self._style = None


def refreshed(content: str) -> str:
    """Where a `<meta http-equiv=refresh content=…>` leads; empty if nowhere."""
    match = _REFRESH.match(content[:LONGEST_LINK])
    return match[1] or match[2] or match[3] or "" if match else ""
