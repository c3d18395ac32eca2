"""The links of a page with the words that name them, for links.db: http, mail and image. Pure.

Unlike `links`, which a crawl goes on with, this counts each time that a page says a link, and listens to what it says.
The page streams through libxml2 and no tree of it is made, so that one of a million links takes no more memory than
another. What makes a page look as it does (styles, scripts, fonts) is no link, nor is a place on the same page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from urllib.parse import unquote

from webarcfs.archive.index.links_words import ArchivedLink, AskedKind
from webarcfs.content import css, text
from webarcfs.content.htmlurls import (
    LINK_ATTRIBUTES,
    LONGEST_LINK,
    NO_LINKS,
    REQUISITE_RELS,
    SRCSETS,
    Kind,
    candidates,
    refreshed,
)
from webarcfs.content.markup import PIECE, Listener, told
from webarcfs.content.outlinks import bare
from webarcfs.content.urlresolver import resolver

#: How many bytes of a page are read.
LONGEST_PAGE = 64 << 20
#: How much of a <style> element is looked at.
LONGEST_STYLE = 1 << 20
#: How much of a srcset is looked at.
LONGEST_SRCSET = 1 << 17
# Text that cannot be in a title of text.LONGEST_TITLE characters any more, however much white space is in it.
_ENOUGH_TEXT = 4 * text.LONGEST_TITLE
_ADDRESS = re.compile(r"[^@\s]{1,64}@[^@\s/?#&]{1,255}")
_BASE = re.compile(rb"<base\b", re.IGNORECASE)
_STYLES = (".css", ".woff", ".woff2", ".ttf", ".otf", ".eot")

# Of each element the attributes that hold a link, its kind, and the attribute that names it; what is shown comes first.
_ROWS = sorted(LINK_ATTRIBUTES, key=lambda row: (row.tag, row.kind is Kind.LINK))
_ATTRIBUTES: Mapping[str, tuple[tuple[str, AskedKind, str], ...]] = {
    tag: tuple((row.attribute, row.shown, row.text) for row in rows if row.shown is not None)
    for tag, rows in groupby(_ROWS, key=lambda row: row.tag)
}
_ENDING = frozenset({"a", "script", "style"})

#: A link as it is written in the page.
_Raw = tuple[AskedKind, str, str]


def anchors_of(chunks: Iterable[bytes], url: str, charset: str, base: str = "") -> Iterator[ArchivedLink]:
    """Each link of a page each time it is there, in the order of the page; nothing that the page holds raises.

    `chunks` are its bytes, which are gone through once more if it is nested deeply, `url` its canonical URL, `charset`
    what `text.decode_charset` says, `base` what `base_of` says.
    """
    resolve = resolver(url, charset)
    if base and (based := resolve(bare(base))):
        resolve = resolver(based, charset)
    for kind, raw, name in told(_Reader, lambda: _pieces(chunks, charset)):
        if len(raw) >= LONGEST_LINK:
            continue
        if raw.lstrip()[:7].lower() == "mailto:":
            for address in _addresses(raw):
                yield ArchivedLink(AskedKind.MAIL, f"mailto:{address}", text.fold(name))
        elif target := resolve(bare(raw)):
            yield ArchivedLink(kind, target, text.fold(name))


def may_have_base(body: bytes) -> bool:
    """Whether it is worth while to look for a base in a page."""
    return _BASE.search(body) is not None


def base_of(chunks: Iterable[bytes], charset: str) -> str:
    """The first <base href> of a page, as it is written; empty if it has none."""
    for _, base, _ in told(_BaseReader, lambda: _pieces(chunks, charset)):
        return base
    return ""


def _addresses(raw: str) -> Iterator[str]:
    """The addresses of `mailto:one@e.org,two@e.org?subject=…` (RFC 6068), the domain in lower case."""
    for part in bare(raw).partition(":")[2].partition("?")[0].split(","):
        address = text.fold(unquote(part))
        if _ADDRESS.fullmatch(address):
            local, _, domain = address.rpartition("@")
            yield f"{local}@{domain.lower()}"


class _Reader(Listener[_Raw]):
    """Finds links as they are written."""

    def __init__(self) -> None:
        super().__init__(None, _ENDING)  # any element may have a style
        self._anchor: str | None = None  # the href of the <a> that is open
        self._title = ""
        self._text: list[str] = []
        self._length = 0
        self._style: list[str] | None = None
        self._script = False

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        if tag == "a":
            self._open(attributes)
        elif tag == "link":
            self._link(attributes)
        elif tag == "style":
            self._style, self._length = [], 0
        elif tag == "script":
            self._script = True
        elif tag == "meta" and attributes.get("http-equiv", "").strip().lower() == "refresh":
            self.found.append((AskedKind.HTTP, refreshed(attributes.get("content", "")), ""))
        elif tag == "input" and attributes.get("type", "").strip().lower() == "image":
            self.found.append((AskedKind.IMAGE, attributes.get("src", ""), attributes.get("alt", "")))
        for attribute, kind, name in _ATTRIBUTES.get(tag, ()):
            if value := attributes.get(attribute):
                self.found.append((kind, value, attributes.get(name, "")))
        for attribute in SRCSETS.get(tag, ()):
            name = attributes.get("alt", "")
            value = attributes.get(attribute, "")[:LONGEST_SRCSET]
            self.found += ((AskedKind.IMAGE, each, name) for each in candidates(value))
        if self._anchor is not None and (alt := attributes.get("alt")):
            self._say(f" {alt} ")
        if (style := attributes.get("style")) and "(" in style:
            self._styles(style[:LONGEST_STYLE])

    def ended(self, tag: str) -> None:
        """An element ends."""
        if tag == "a":
            self._close()
        elif tag == "script":
            self._script = False
        elif tag == "style" and self._style is not None:
            self._styles("".join(self._style))
            self._style = None

    def data(self, data: str) -> None:
        """Text between tags."""
        if self._style is not None:
            if self._length < LONGEST_STYLE:
                self._style.append(data)
                self._length += len(data)
        elif self._anchor is not None and not self._script:
            self._say(data)

    def close(self) -> None:
        """The page ends."""
        self._close()

    def _open(self, attributes: Mapping[str, str]) -> None:
        self._close()  # links do not nest; whoever forgot to end one has ended it here
        href = attributes.get("href") or attributes.get("xlink:href")
        if href:
            self._anchor, self._title, self._text, self._length = href, attributes.get("title", ""), [], 0

    def _say(self, data: str) -> None:
        if self._length < _ENOUGH_TEXT:
            self._text.append(data[:_ENOUGH_TEXT])
            self._length += len(data)

    def _close(self) -> None:
        if self._anchor is not None:
            said = "".join(self._text)
            self.found.append((AskedKind.HTTP, self._anchor, said if said.strip() else self._title))
            self._anchor = None

    def _link(self, attributes: Mapping[str, str]) -> None:
        rels = set(attributes.get("rel", "").lower().split())
        if (href := attributes.get("href")) and not rels & NO_LINKS:
            if any("icon" in rel for rel in rels):
                self.found.append((AskedKind.IMAGE, href, attributes.get("title", "")))
            elif not rels & REQUISITE_RELS:
                self.found.append((AskedKind.HTTP, href, attributes.get("title", "")))

    def _styles(self, style: str) -> None:
        references = (each for each in css.references(style) if not each.lower().partition("?")[0].endswith(_STYLES))
        self.found += ((AskedKind.IMAGE, reference, "") for reference in references)


class _BaseReader(Listener[_Raw]):
    """Finds the bases that a page names."""

    def __init__(self) -> None:
        super().__init__(("base",), ())

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        if tag == "base" and (href := attributes.get("href")):
            self.found.append((AskedKind.HTTP, href, ""))


def _pieces(chunks: Iterable[bytes], charset: str) -> Iterator[str]:
    """The text of a page, up to the bound."""
    decode = text.decoder(charset).decode
    left = LONGEST_PAGE
    for chunk in chunks:
        for at in range(0, min(len(chunk), left), PIECE):
            yield decode(chunk[at : at + min(PIECE, left)]).replace("\0", "").replace("\ufeff", "")
            left -= PIECE
        if left <= 0:
            break
