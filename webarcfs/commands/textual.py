"""Texts for people: differences in the visible text of pages, and tables of statistics."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from lxml import etree
from lxml import html as lxml_html

from webarcfs.archive.history.statistics import Statistics

#: Elements after which a line of a shown page ends.
_BLOCK_NAMES = (
    "address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header "
    "hr li main nav ol p pre section table tbody td tfoot th thead title tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_UNSEEN = frozenset(["script", "style", "template", "noscript"])
_SPACE = re.compile(r"\s+")


def difference(old: bytes, new: bytes, names: tuple[str, str], *, ignore_space: bool) -> Iterator[str]:
    """Yield the lines of a unified diff of the visible text of two bodies; for equal texts, a line that says so."""
    before, after = lines(old), lines(new)
    if ignore_space:
        before, after = ([folded for line in text if (folded := _folded(line))] for text in (before, after))
    found = list(difflib.unified_diff(before, after, *names, lineterm=""))
    if found:
        yield from found
    else:
        yield "the same text; " + ("nothing differs" if old == new else "what differs is not shown by the page")


def lines(body: bytes) -> list[str]:
    """Return a body's visible lines: the text of HTML by its blocks, other text unchanged; bytes are counted."""
    if b"\0" in body[:4096] and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return [f"{len(body)} bytes that are no text"]
    if re.search(rb"<(?:!doctype\s+html|html|head|body)\b", body[:4096], re.IGNORECASE):
        return _of_html(body)
    try:
        return body.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return body.decode("windows-1252", "replace").splitlines()


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
    return [line for line in map(_folded, "".join(text).split("\n")) if line]


def _folded(line: str) -> str:
    return _SPACE.sub(" ", line).strip()


def statistics_table(tags: Sequence[str], figures: Sequence[Statistics]) -> Iterator[str]:
    """Yield one snapshot's statistics, or two side by side with their differences."""
    for tag, each in zip(tags, figures, strict=True):
        errors = f", and {each.error_pages:,} error pages" if each.error_pages else ""
        yield f"{tag}: {each.documents:,} documents, {each.bytes:,} bytes{errors}"
    for title in ("types", "extensions"):
        tables = [getattr(each, title) for each in figures]
        yield ""
        yield f"{title:40}" + "".join(f"{'documents':>12}{'bytes':>16}" for _ in tables)
        for key in sorted({key for table in tables for key in table}, key=lambda key: (-_most(tables, key), key)):
            cells = [table.get(key, (0, 0)) for table in tables]
            note = ""
            if len(cells) == 2:
                note = (
                    "  new" if not cells[0][0] else "  gone" if not cells[1][0] else _change(cells[0][0], cells[1][0])
                )
            yield f"{key:40}" + "".join(f"{count:>12,}{size:>16,}" for count, size in cells) + note


def _most(tables: Sequence[dict[str, tuple[int, int]]], key: str) -> int:
    return max(table.get(key, (0, 0))[0] for table in tables)


def _change(old: int, new: int) -> str:
    return "" if old == new else f"  {new - old:+,}"
