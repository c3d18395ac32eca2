"""The text of an HTML page as a browser shows it: without what is hidden, lines at blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from webarcfs.content.extractors.extracted import LONGEST, Extracted
from webarcfs.content.markup import Listener, told
from webarcfs.content.text import decoder

#: Elements whose content no browser shows as text, with scripts switched on.
_HIDDEN = frozenset(
    [
        "script",
        "style",
        "noscript",
        "template",
        "head",
        "iframe",
        "object",
        "noembed",
        "noframes",
        "audio",
        "video",
        "canvas",
        "datalist",
        "title",
    ]
)
_VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
        "param",
        "frame",
    ]
)
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "button",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "dir",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "frameset",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hgroup",
        "hr",
        "img",
        "input",
        "legend",
        "li",
        "main",
        "menu",
        "nav",
        "ol",
        "optgroup",
        "option",
        "p",
        "pre",
        "search",
        "section",
        "select",
        "summary",
        "table",
        "tbody",
        "td",
        "textarea",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_SAYS_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_DESCRIBES = frozenset(("description", "keywords", "author", "dc.description", "dc.subject", "og:description"))


class _Text(Listener[tuple[str, str]]):
    """Finds pieces of text, each with its part: body, heading, description, language."""

    def __init__(self) -> None:
        super().__init__(None, None)
        self._hidden = ""  # the outermost hidden element
        self._inside = 0  # elements of its name inside it, and itself
        self._heading = 0

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the beginning of an element."""
        if tag == "html" and "lang" in attributes:
            self.found.append(("language", attributes["lang"]))
        if self._hidden:
            self._inside += tag == self._hidden
            if tag == "meta":
                self._describe(attributes)
            return
        if tag in _HIDDEN or ("hidden" in attributes or _SAYS_HIDDEN.search(attributes.get("style", ""))):
            if tag not in _VOID:
                self._hidden, self._inside = tag, 1
            return
        if tag in _BLOCKS:
            self.found.append(("body", "\n"))
        if tag in _HEADINGS:
            self._heading += 1
        elif tag == "meta":
            self._describe(attributes)
        elif tag in ("img", "input", "area") and attributes.get("alt"):
            self.found.append(("description", attributes["alt"]))

    def ended(self, tag: str) -> None:
        """Handle the end of an element."""
        if self._hidden:
            self._inside -= tag == self._hidden
            if not self._inside or tag == "html":
                self._hidden = ""
            return
        if tag in _BLOCKS:
            self.found.append(("body", "\n"))
        if tag in _HEADINGS and self._heading:
            self._heading -= 1
            self.found.append(("heading", "\n"))

    def data(self, data: str) -> None:
        """Handle text between tags."""
        if not self._hidden:
            self.found.append(("body", data))
            if self._heading:
                self.found.append(("heading", data))

    def _describe(self, attributes: Mapping[str, str]) -> None:
        name = (attributes.get("name") or attributes.get("property") or "").lower()
        if name in _DESCRIBES:
            self.found.append(("description", attributes.get("content", "")))


def extract(chunks: Iterable[bytes], charset: str) -> Extracted:
    """Return the text of a page. `chunks` are its bytes; each iteration begins at their start. No content raises."""
    parts: dict[str, list[str]] = {"body": [], "heading": [], "description": [], "language": []}
    left = LONGEST
    for part, piece in told(_Text, lambda: _decoded(chunks, charset)):
        parts[part].append(piece[: max(left, 0)])
        left -= len(piece)
        if left < 0:
            break
    return Extracted(
        body="".join(parts["body"]),
        headings="".join(parts["heading"]),
        description="\n".join(parts["description"]),
        language=next(iter(parts["language"]), ""),
        fault="too-long" if left < 0 else "",
    )


def _decoded(chunks: Iterable[bytes], charset: str) -> Iterator[str]:
    decode = decoder(charset)
    for chunk in chain(chunks):
        yield decode.decode(chunk).replace("\0", "").replace("\ufeff", "")
    yield decode.decode(b"", final=True)
