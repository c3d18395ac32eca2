"""HTML as events for a listener, start tags, end tags and text, in time linear in the page. Pure.

libxml2 sends them, without a tree: a tree ends 256 levels deep, and the time for its attributes is quadratic. So would
be the time for the list of open elements, which libxml2 searches for most end tags. So tokens.py, which has no such
list, reads a page that is nested deeper than DEEPEST (old pages do not end their <font>).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

from lxml import etree

from webarcfs.content.tokens import Tokens

#: Levels of elements up to which libxml2 reads a page.
DEEPEST = 256
#: Characters that are parsed at once.
PIECE = 1 << 16
# Characters between two checks whether the page is too deep for libxml2.
_FED_AT_ONCE = 1 << 13
T = TypeVar("T")


class Listener(Generic[T]):
    """Receives the events of a page, and adds its findings to `found`."""

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


def told(listener: Callable[[], Listener[T]], pieces: Callable[[], Iterable[str]]) -> Iterator[T]:
    """Yield a listener's findings in a page, while the page streams; no content raises.

    `pieces` returns the page's text from its start, without NULs; it is called again, for another listener, if the page
    is deep, or libxml2 stops.
    """
    first, count = listener(), 0
    try:
        for each in _parsed(first, pieces()):
            count += 1
            yield each
        if not first.too_deep:
            return
    except etree.LxmlError:
        pass  # libxml2 has stopped
    for each in _tokenized(listener(), pieces()):
        count -= 1
        if count < 0:
            yield each


def _parsed(listener: Listener[T], pieces: Iterable[str]) -> Iterator[T]:
    """Yield the findings up to the page's end, or up to where it is too deep."""
    parser = etree.HTMLParser(target=cast(Any, listener), encoding="utf-8")
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


def _tokenized(listener: Listener[T], pieces: Iterable[str]) -> Iterator[T]:
    tokens = Tokens(listener)
    for piece in pieces:
        tokens.feed(piece)
        yield from _drained(listener)
    tokens.close()
    yield from _drained(listener)


def _drained(listener: Listener[T]) -> list[T]:
    found, listener.found = listener.found, []
    return found
