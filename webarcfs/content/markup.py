"""HTML as events for a listener, start tags, end tags and text, in time linear in the page. Pure.

libxml2 sends them, without a tree: a tree ends 256 levels deep, and the time for its attributes is quadratic. So would
be the time for the list of open elements, which libxml2 searches for most end tags. So a tokenizer of our own, which
has no such list, reads a page that is nested deeper than DEEPEST (old pages do not end their <font>).

The tokenizer follows HTML's section 13.2.5, without a tree, so that depth and numbers cost nothing by themselves: each
character is read a bounded number of times. Two constructs need a tree, and are left out: CDATA in drawings, and
scripts that write scripts inside of a comment.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar, cast

from lxml import etree

# == tokens, pure =====================================================================================================


_SPACE = r" \t\n\f\r"
# A value in quotes must end, or the tag has no end either; no quantifier backtracks.
_ATTRIBUTE = rf"""
    ([^{_SPACE}/>][^{_SPACE}/>=]*+)
    (?: [{_SPACE}]*+ = [{_SPACE}]*+ (?: "([^"]*+)" | '([^']*+)' | ([^{_SPACE}>"'][^{_SPACE}>]*+) | (?=>|\Z) )
      | (?! [{_SPACE}]*+ = ) )
"""
_ATTRIBUTES = re.compile(_ATTRIBUTE, re.VERBOSE)
_PLAIN_ATTRIBUTE = re.sub(r"\((?=\[)", "(?:", _ATTRIBUTE)
_TAG = re.compile(rf"<(/?)([A-Za-z][^{_SPACE}/>]*+) ( (?: [{_SPACE}/]++ | {_PLAIN_ATTRIBUTE} )*+ ) >", re.VERBOSE)
_TAG_BEGIN = re.compile("</?[A-Za-z]")
_COMMENT_END = re.compile("--!?>")
# Elements whose content is text, whatever tags it contains; in two of them with references (`&amp;`).
_RAW = ("script", "style", "xmp", "iframe", "noembed", "noframes", "title", "textarea")
_WITH_REFERENCES = ("title", "textarea")
_RAW_END = {tag: re.compile(rf"</{tag}(?=[{_SPACE}/>])", re.IGNORECASE) for tag in _RAW}
_LONGEST_REFERENCE = 33
# Beyond Unicode's last number. Python refuses to read longer ones.
_LONG_NUMBER = re.compile(r"&#(?:0*[1-9][0-9]{7,}|[xX]0*[1-9A-Fa-f][0-9A-Fa-f]{6,});?|&#[xX]?0{20,}")


class Hears(Protocol):
    """The receiver of the events."""

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle a start tag; names are in lower case."""

    def ended(self, tag: str) -> None:
        """Handle an end tag, whether the element was open or not."""

    def data(self, data: str) -> None:
        """Handle text between tags."""

    def close(self) -> None:
        """Handle the end of the page."""


class Tokenizer:
    """A tokenizer that sends events to `hears` as it is fed. Call `close` at the end of the page."""

    def __init__(self, hears: Hears) -> None:
        self._hears = hears
        self._text = ""
        self._more: list[str] = []
        self._left = 0  # characters to wait for before the next attempt
        self._raw = ""  # the open element whose content is text

    def feed(self, text: str) -> None:
        """Read the next piece of the page."""
        self._more.append(text)
        self._left -= len(text)
        if self._left <= 0:
            self._look(last=False)

    def close(self) -> None:
        """End the page, with all that is still open."""
        self._look(last=True)
        self._hears.close()

    def _look(self, *, last: bool) -> None:
        text = "".join((self._text, *self._more))
        self._more.clear()
        at = 0
        while at < len(text):
            end = self._raw_text(text, at, last) if self._raw else self._token(text, at, last)
            if end < 0:
                break
            at = end
        # The next attempt waits for twice the text: so an endless token costs no more than its length.
        self._text = "" if last else text[at:]
        self._left = len(self._text)

    def _token(self, text: str, at: int, last: bool) -> int:
        """Send the event of the token at `at`; return its end, or -1 if that is not known yet."""
        if text[at] != "<":
            end = text.find("<", at)
            if end < 0:
                reference = -1 if last else text.find("&", max(at, len(text) - _LONGEST_REFERENCE))
                end = len(text) if reference < 0 else reference
            if end > at:
                self._hears.data(_unescaped(text[at:end]))
            return end if end > at else -1
        if match := _TAG.match(text, at):
            self._tag(match)
            return match.end()
        if _TAG_BEGIN.match(text, at):
            return -1  # it has no end yet
        if not last and len(text) < at + 4:
            return -1
        return self._other(text, at)

    def _other(self, text: str, at: int) -> int:
        """Skip a comment or declaration, or send a `<` that begins neither."""
        if text.startswith("<!--", at):
            end = _COMMENT_END.search(text, at + 2)
            return end.end() if end else -1
        if text.startswith(("<!", "<?", "</"), at):
            return text.find(">", at) + 1 or -1
        self._hears.data("<")
        return at + 1

    def _tag(self, match: re.Match[str]) -> None:
        tag = match[2].lower()
        if match[1]:
            self._hears.ended(tag)
            return
        attributes: dict[str, str] = {}
        for name, double, single, plain in _ATTRIBUTES.findall(match[3]) if match[3] else ():
            attributes.setdefault(name.lower(), _unescaped(double or single or plain))
        self._hears.opened(tag, attributes)
        if tag in _RAW_END:
            self._raw = tag

    def _raw_text(self, text: str, at: int, last: bool) -> int:
        end = _RAW_END[self._raw].search(text, at)
        if end is None and not last:
            return -1
        until = end.start() if end else len(text)
        if until > at:
            self._hears.data(_unescaped(text[at:until]) if self._raw in _WITH_REFERENCES else text[at:until])
        self._raw = ""
        return until


def _unescaped(text: str) -> str:
    if "&" not in text:
        return text
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text) if "&#" in text else text)


# == markup, pure =====================================================================================================


#: Levels of elements up to which libxml2 reads a page.
DEEPEST = 256
#: Characters that are parsed at once.
PIECE = 1 << 16
# Characters between two checks whether the page is too deep for libxml2.
_FED_AT_ONCE = 1 << 13
T = TypeVar("T")


class MarkupListener(Generic[T]):
    """Receives the events of a page, and adds its findings to `found`."""

    #: Whether it needs `data`. One that does not may get it all the same; libxml2 is asked for none.
    hears_text = True

    def __init__(self, opening: Container[str] | None, ending: Container[str] | None) -> None:
        """`opening` and `ending` are the tags for which `opened` and `ended` are called; None: for all."""
        self.found: list[T] = []
        #: The page is nested deeper than DEEPEST; the rest of it is ignored.
        self.too_deep = False
        self._opening = opening
        self._ending = ending
        self._depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the beginning of an element, from libxml2."""
        self._depth += 1
        if self._depth > DEEPEST:
            self.too_deep = True  # not raised: lxml leaks the document of a target that raises
        elif self._opening is None or tag in self._opening:
            self.opened(tag, attributes)

    def end(self, tag: str) -> None:
        """Handle the end of an element, from libxml2: each element has one, even without an end tag."""
        self._depth -= 1
        if self._ending is None or tag in self._ending:
            self.ended(tag)

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the beginning of an element; names are in lower case."""

    def ended(self, tag: str) -> None:
        """Handle the end of an element."""

    def data(self, data: str) -> None:
        """Handle text between tags."""

    def close(self) -> None:
        """Handle the end of the page."""


class _WithoutText(Generic[T]):
    """The events of a listener but for the text: a page has more pieces of text than elements, and each is a call."""

    def __init__(self, listener: MarkupListener[T]) -> None:
        self.start, self.end, self.close = listener.start, listener.end, listener.close


def stream_findings(listener: Callable[[], MarkupListener[T]], pieces: Callable[[], Iterable[str]]) -> Iterator[T]:
    """Yield a listener's findings in a page, while the page streams; no content raises.

    `pieces` returns the page's text from its start, without NULs; it is called again, for another listener, if the page
    is deep, or libxml2 stops.
    """
    first, count = listener(), 0
    try:
        for finding in _parsed(first, pieces()):
            count += 1
            yield finding
        if not first.too_deep:
            return
    except etree.LxmlError:
        pass  # libxml2 has stopped
    for finding in _tokenized(listener(), pieces()):
        count -= 1
        if count < 0:
            yield finding


def _parsed(listener: MarkupListener[T], pieces: Iterable[str]) -> Iterator[T]:
    """Yield the findings up to the page's end, or up to where it is too deep."""
    target = listener if listener.hears_text else _WithoutText(listener)
    parser = etree.HTMLParser(target=cast(Any, target), encoding="utf-8")
    try:
        for piece in pieces:
            for begin in range(0, len(piece), _FED_AT_ONCE):
                parser.feed(piece[begin : begin + _FED_AT_ONCE].encode("utf-8", "replace"))
                if listener.too_deep:
                    return
            yield from _drained(listener)
        parser.close()
        yield from _drained(listener)
    finally:
        # Also after a caller stopped early: only this makes lxml free the document.
        with suppress(etree.LxmlError):
            parser.close()


def _tokenized(listener: MarkupListener[T], pieces: Iterable[str]) -> Iterator[T]:
    tokens = Tokenizer(listener)
    for piece in pieces:
        tokens.feed(piece)
        yield from _drained(listener)
    tokens.close()
    yield from _drained(listener)


def _drained(listener: MarkupListener[T]) -> list[T]:
    findings, listener.found = listener.found, []
    return findings
