"""HTML as a listener hears it, start tags, end tags and text, in time that grows as the page does. Pure.

libxml2 tells it, without a tree: a tree ends 256 levels deep, and its attributes cost their number's square. The list
of open elements is left to grow like that, since libxml2 looks through it for most end tags. So a page that is nested
deeper than DEEPEST (old pages do not end their <font>) is read by tokens.py, which keeps no such list.
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
# Of these, so many before it is looked whether the page is too deep for libxml2.
_FED_AT_ONCE = 1 << 13
T = TypeVar("T")


class Listener(Generic[T]):
    """Hears a page, and puts into `found` what is to be told of it."""

    def __init__(self, opening: Container[str] | None, ending: Container[str] | None) -> None:
        """`opening` and `ending` are the tags of which `opened` and `ended` must hear; None: of all."""
        self.found: list[T] = []
        #: The page is nested deeper than DEEPEST; the rest of it goes unheard.
        self.too_deep = False
        self._opening = opening
        self._ending = ending
        self._depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins, as libxml2 says."""
        self._depth += 1
        if self._depth > DEEPEST:
            self.too_deep = True  # not raised: lxml does not free the document of a target that raises
        elif self._opening is None or tag in self._opening:
            self.opened(tag, attributes)

    def end(self, tag: str) -> None:
        """An element ends, as libxml2 says: each one does, also where the page has no end tag."""
        self._depth -= 1
        if self._ending is None or tag in self._ending:
            self.ended(tag)

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins; names are in lower case."""

    def ended(self, tag: str) -> None:
        """An element ends."""

    def data(self, data: str) -> None:
        """Text between tags."""

    def close(self) -> None:
        """The page ends."""


def told(listener: Callable[[], Listener[T]], pieces: Callable[[], Iterable[str]]) -> Iterator[T]:
    """What a listener finds in a page, while the page streams by; nothing that the page holds raises.

    `pieces` gives the page's text from its start, without NULs; a second time, to another listener, where it is deep,
    or libxml2 does not go on.
    """
    first, count = listener(), 0
    try:
        for each in _parsed(first, pieces()):
            count += 1
            yield each
        if not first.too_deep:
            return
    except etree.LxmlError:
        pass  # libxml2 does not go on
    for each in _tokenized(listener(), pieces()):
        count -= 1
        if count < 0:
            yield each


def _parsed(listener: Listener[T], pieces: Iterable[str]) -> Iterator[T]:
    """What is found up to the page's end, or up to where it is too deep."""
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
        # Also of a page whose rest nobody asks for: lxml frees its document only with this.
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
