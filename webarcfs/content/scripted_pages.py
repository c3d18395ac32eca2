"""Whether a page shows little until its scripts run, so that only a browser can show what it is about. Pure.

Such a page has a script and fewer than ENOUGH visible words, or an empty element that a framework fills and fewer than
ENOUGH_BESIDE_ROOT words. Words are counted as a reader without scripts would see them: not those of `<noscript>`, of a
`<template>`, of a title, or of an element that is hidden. Pictures, frames and fields of forms count for words, since a
page can be about them alone. Scripts written without spaces count by two letters.

A set of frames is a page of other pages, and a page that goes on by itself is a redirect: both need no browser. A page
whose script goes elsewhere needs one, as nothing else knows where it leads.

The page is read only until it has enough words, which most pages have within their first kilobytes. No tree is built,
and each character is read once, whatever the page is made of.
"""

from __future__ import annotations

import re
from typing import Final

from webarcfs.content.reference_table import REFRESH
from webarcfs.content.text import SCRIPT_TYPES

#: Visible words from which on a page says something without its scripts.
ENOUGH: Final = 10
#: The same for a page with an empty element that a framework fills: it may have a static head and foot around that.
ENOUGH_BESIDE_ROOT: Final = 40

#: What a picture, a frame or a field counts for. A single picture may be the sign that something loads.
_WORTH: Final = {
    "img": 3, "image": 3, "video": 5, "audio": 5, "object": 5, "embed": 5, "iframe": ENOUGH, "input": 2, "select": 2,
    "textarea": 2,
}  # fmt: skip
#: Those that show something only with one of these attributes.
_SOURCES: Final = {
    "img": ("src", "srcset"), "image": ("href", "xlink:href"), "video": ("src", "poster"), "audio": ("src",),
    "object": ("data",), "embed": ("src",), "iframe": ("src", "srcdoc"),
}  # fmt: skip
#: Elements whose content is text that nobody sees, whatever tags it contains.
_UNSEEN_TEXT: Final = frozenset({"script", "style", "title", "iframe", "noembed", "noframes", "textarea"})
#: Elements whose content is markup that nobody sees while scripts run.
_UNSEEN: Final = frozenset({"noscript", "template"})
_EMPTY: Final = frozenset(
    {
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
    }
)  # fmt: skip
#: Names of elements that frameworks fill: of React, Vue, Next, Nuxt, Gatsby, Svelte, Quasar and others.
_ROOT_IDS: Final = frozenset(
    {
        "app", "root", "__next", "__nuxt", "___gatsby", "svelte", "q-app", "react-root", "react-app", "app-root",
        "vue-app", "main-app", "spa-root", "swagger-ui", "redoc",
    }
)  # fmt: skip
#: Custom elements that are whole applications (`<app-root>` of Angular).
_ROOT_TAG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*-(?:root|app)")
#: Types of `<script>` that run; `module` does, and none is JavaScript.
_RUNS: Final = SCRIPT_TYPES | {"", "module"}

# Letters of scripts that put no spaces between words: of Thailand, Laos, Burma, Cambodia, Japan, China and Korea.
_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_UNSPACED}]{{1,2}}|[^\W_{_UNSPACED}][^\W{_UNSPACED}]*+")
_SPACE: Final = r"\t\n\f\r "
# A token always matches, so nothing is read twice: what has no end reaches to the end of the page.
_TOKEN: Final = re.compile(
    rf"(?P<text>[^<]++)"
    rf"|<!--(?:-?>|.*?(?:--!?>|\Z))"
    rf"|<(?P<end>/?)(?P<tag>[A-Za-z][^{_SPACE}/>]*+)"
    rf"(?P<rest>(?:[^>=]++|=[{_SPACE}]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|))*+)(?:>|\Z)"
    rf"|<[!?/][^>]*+(?:>|\Z)"
    rf"|<",
    re.DOTALL,
)
_ATTRIBUTE: Final = re.compile(
    rf"([^{_SPACE}/>=\"']++)(?:[{_SPACE}]*+=[{_SPACE}]*+(?:\"([^\"]*+)\"?|'([^']*+)'?|([^{_SPACE}>]*+)))?"
)
_RAW_END: Final = {tag: re.compile(rf"</{tag}(?=[{_SPACE}/>])", re.IGNORECASE) for tag in _UNSEEN_TEXT}
_HIDDEN: Final = re.compile(r"display\s*+:\s*+none|visibility\s*+:\s*+hidden", re.IGNORECASE)
# What a start tag has that may hide its element.
_MAY_HIDE: Final = re.compile("hidden|none", re.IGNORECASE)
#: Characters of a piece of text in which words are counted, and of the values of a tag that are read.
_MOST_COUNTED: Final = 4096


def needs_browser(text: str, *, is_xhtml: bool = False) -> bool:
    """Return whether a page, whose text this is, shows little until its scripts run.

    `is_xhtml`: its server says that it is XML, where an element may end with `/>`.
    """
    return _Scan(text, is_xhtml=is_xhtml).needs_browser()


class _Scan:
    """Reads a page until it has enough words."""

    def __init__(self, text: str, *, is_xhtml: bool) -> None:
        self._text = text
        self._is_xhtml = is_xhtml
        self._words = 0
        self._has_script = False
        self._has_root = False
        self._goes_on = False  # a set of frames, or a redirect
        self._unseen = ""  # the tag of the open element that nobody sees
        self._depth = 0  # how many elements of that tag are open in it, and it
        self._root = ""  # the tag of an element that a framework fills, as long as nothing stands in it

    def needs_browser(self) -> bool:
        """Return whether the page needs a browser."""
        at, text = 0, self._text
        # A root counts only up to its own bound, so the page is read that far once it has enough words for others.
        while at < len(text) and self._words < ENOUGH_BESIDE_ROOT and not self._goes_on:
            match = _TOKEN.match(text, at)
            if match is None:  # never: a character is always a token
                break
            at = match.end()
            kind = match.lastgroup
            if kind == "text":
                self._count(match["text"])
            elif kind == "rest":
                tag = match["tag"].lower()
                if match["end"]:
                    self._close(tag)
                else:
                    at = self._open(tag, match["rest"], at)
        if self._goes_on or not self._has_script:
            return False
        return self._words < (ENOUGH_BESIDE_ROOT if self._has_root else ENOUGH)

    def _count(self, text: str) -> None:
        if self._unseen:
            return
        if self._root and not text.isspace():
            self._root = ""
        for _ in _WORD.finditer(text, 0, _MOST_COUNTED):
            self._words += 1
            if self._words >= ENOUGH_BESIDE_ROOT:
                return

    def _close(self, tag: str) -> None:
        if tag == self._unseen:
            self._depth -= 1
            if not self._depth:
                self._unseen = ""
        elif tag == self._root:
            self._has_root, self._root = True, ""

    def _open(self, tag: str, rest: str, at: int) -> int:
        """Handle a start tag; return where reading goes on."""
        closes_itself = self._is_xhtml and rest.endswith("/")
        if self._unseen:
            self._depth += tag == self._unseen and not closes_itself
            return at if closes_itself else self._behind(tag, at)
        self._root = ""
        if tag == "script":
            self._see_script(rest, at, closes_itself=closes_itself)
        elif tag == "frameset" or (tag == "meta" and _is_redirect(rest)):
            self._goes_on = True
        elif not (_MAY_HIDE.search(rest) and _is_hidden(rest)):
            self._see(tag, rest, closes_itself=closes_itself)
        elif tag not in _EMPTY and not closes_itself:
            self._unseen, self._depth = tag, 1
        return at if closes_itself else self._behind(tag, at)

    def _behind(self, tag: str, at: int) -> int:
        """Return where the content of an element ends whose tags are none; else where it begins."""
        if tag not in _UNSEEN_TEXT or (self._unseen == tag and self._depth == 0):
            return at
        end = _RAW_END[tag].search(self._text, at)
        return end.start() if end else len(self._text)

    def _see_script(self, rest: str, at: int, *, closes_itself: bool) -> None:
        if self._has_script:
            return
        attributes = _attributes(rest)
        if attributes.get("type", "").partition(";")[0].strip().lower() in _RUNS:
            is_empty = closes_itself or self._text.startswith("</", at)
            self._has_script = bool(attributes.get("src")) or not is_empty

    def _see(self, tag: str, rest: str, *, closes_itself: bool) -> None:
        if tag in _WORTH:
            self._words += _worth(tag, rest)
        elif tag in _UNSEEN:
            if not closes_itself and "shadowrootmode" not in rest.lower():
                self._unseen, self._depth = tag, 1
        elif _ROOT_TAG.fullmatch(tag) or ("id" in rest.lower() and _attributes(rest).get("id") in _ROOT_IDS):
            self._has_root = self._has_root or closes_itself
            self._root = "" if closes_itself else tag


def _attributes(rest: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for name, double, single, plain in _ATTRIBUTE.findall(rest[:_MOST_COUNTED]):
        attributes.setdefault(name.lower(), double or single or plain)
    return attributes


def _is_redirect(rest: str) -> bool:
    """Return whether a `<meta>` goes on to another page."""
    if "refresh" not in rest.lower():
        return False
    attributes = _attributes(rest)
    if attributes.get("http-equiv", "").strip().lower() != "refresh":
        return False
    match = REFRESH.match(attributes.get("content", ""))
    return match is not None and bool(match[1] or match[2] or match[3])


def _is_hidden(rest: str) -> bool:
    attributes = _attributes(rest)
    return "hidden" in attributes or _HIDDEN.search(attributes.get("style", "")) is not None


def _worth(tag: str, rest: str) -> int:
    """Return what an element counts for: nothing without a source, for a field nobody sees, or a dot of a counter."""
    attributes = _attributes(rest)
    if tag == "input" and attributes.get("type", "").strip().lower() == "hidden":
        return 0
    if attributes.get("width") in {"0", "1"} or attributes.get("height") in {"0", "1"}:
        return 0
    sources = [attributes.get(name, "") for name in _SOURCES.get(tag, ())]
    if tag in _SOURCES and not any(source and not source.startswith(("data:", "about:")) for source in sources):
        return 0
    return _WORTH[tag]
