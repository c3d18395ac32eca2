"""The visible text of a body in lines, for comparisons by people, and the differences of two such sequences.

HTML has lines by its blocks; other text is as it is. Compared are sequences of texts, such as the lines of a page or
the words of a line, in bounded time: by libgit2's xdiff. It ends a search that takes long with more differences than
there need be, where difflib's time grows with the square of the length and more. 5,000 lines take 0.1 s at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pygit2
from lxml import etree
from lxml import html as lxml_html
from pygit2.enums import DiffOption

# == visible lines, pure ==============================================================================================


#: Elements after which a line of a shown page ends.
_BLOCK_NAMES = (
    "address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header "
    "hr li main nav ol p pre section table tbody td tfoot th thead title tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_UNSEEN = frozenset(["script", "style", "template", "noscript"])
_SPACE = re.compile(r"\s+")


def is_binary(body: bytes) -> bool:
    """Return whether a body is no text: it has NULs, and is not UTF-16."""
    return b"\0" in body[:4096] and not body.startswith((b"\xff\xfe", b"\xfe\xff"))


def lines(body: bytes) -> list[str]:
    """Return a body's visible lines: the text of HTML by its blocks, other text unchanged; bytes are counted."""
    if is_binary(body):
        return [f"{len(body)} bytes that are no text"]
    if re.search(rb"<(?:!doctype\s+html|html|head|body)\b", body[:4096], re.IGNORECASE):
        return _of_html(body)
    try:
        return body.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return body.decode("windows-1252", "replace").splitlines()


def shown_lines(text: str) -> list[str]:
    """Return the lines of a text that a browser showed."""
    return [line for line in map(folded, text.split("\n")) if line]


def compared_lines(bodies: tuple[bytes, bytes], shown: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Return the lines by which two versions of a page are compared.

    That is what browsers showed, where there is that of both versions. Where their bodies are the same, only that can
    differ, so it is taken for one of them as well. Else it is what the bodies say: a crawl without a browser tells
    nothing of what a browser would show.
    """
    both, is_same = all(shown), bodies[0] == bodies[1]
    old, new = (
        shown_lines(text) if text and (both or is_same) else lines(body)
        for body, text in zip(bodies, shown, strict=True)
    )
    return old, new


def _of_html(body: bytes) -> list[str]:
    try:
        root = lxml_html.document_fromstring(body, parser=lxml_html.HTMLParser(no_network=True, huge_tree=False))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return body.decode("utf-8", "replace").splitlines()
    text: list[str] = []
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        seen = isinstance(element.tag, str) and element.tag not in _UNSEEN
        if event == "start" and seen:
            text.append("\n" if element.tag in _BLOCKS else "")
            text.append(_SPACE.sub(" ", element.text or ""))
        elif event != "start":
            text.append("\n" if seen and element.tag in _BLOCKS else "")
            text.append(_SPACE.sub(" ", element.tail or ""))
    return [line for line in map(folded, "".join(text).split("\n")) if line]


def folded(line: str) -> str:
    """Return a line with its white space folded."""
    return _SPACE.sub(" ", line).strip()


# == line differences =================================================================================================


class ChangedLines(NamedTuple):
    """The texts from `old` up to `old_end` became those from `new` up to `new_end`; or both are equal."""

    is_equal: bool
    old: int
    old_end: int
    new: int
    new_end: int


def blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[ChangedLines]:
    """Yield the blocks of two sequences, equal ones and others in turn; together they are both sequences."""
    numbers: dict[str, int] = {}
    a, b = ("".join(f"{numbers.setdefault(text, len(numbers))}\n" for text in side).encode() for side in (old, new))
    patch = pygit2.Patch.create_from(a, b, flag=DiffOption.FORCE_TEXT, context_lines=0, interhunk_lines=0)
    old_at = new_at = 0
    for hunk in patch.hunks:
        # git names the line before a hunk that has no lines on that side.
        old_begin = hunk.old_start - (hunk.old_lines > 0)
        new_begin = hunk.new_start - (hunk.new_lines > 0)
        if old_begin > old_at:
            yield ChangedLines(True, old_at, old_begin, new_at, new_begin)
        old_at, new_at = old_begin + hunk.old_lines, new_begin + hunk.new_lines
        yield ChangedLines(False, old_begin, old_at, new_begin, new_at)
    if old_at < len(old):
        yield ChangedLines(True, old_at, len(old), new_at, len(new))
