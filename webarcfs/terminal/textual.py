"""Texts for people: differences in the visible text of pages, and tables of statistics."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from webarcfs.archive.history.statistics import Statistics
from webarcfs.content.visible_lines import folded, lines


def difference(old: bytes, new: bytes, names: tuple[str, str], *, ignore_space: bool) -> Iterator[str]:
    """Yield the lines of a unified diff of the visible text of two bodies; for equal texts, a line that says so."""
    before, after = lines(old), lines(new)
    if ignore_space:
        before, after = ([text_line for line in text if (text_line := folded(line))] for text in (before, after))
    found = list(difflib.unified_diff(before, after, *names, lineterm=""))
    if found:
        yield from found
    else:
        yield "the same text; " + ("nothing differs" if old == new else "what differs is not shown by the page")


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
