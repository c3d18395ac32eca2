"""The differences of two sequences of texts, such as the lines of a page or the words of a line, in bounded time.

libgit2 compares them by xdiff. It ends a search that takes long with more differences than there need be, where
difflib's time grows with the square of the length and more. 5,000 lines take 0.1 s at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pygit2
from pygit2.enums import DiffOption


class Block(NamedTuple):
    """The texts from `old` up to `old_end` became those from `new` up to `new_end`; or both are equal."""

    is_equal: bool
    old: int
    old_end: int
    new: int
    new_end: int


def blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
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
            yield Block(True, old_at, old_begin, new_at, new_begin)
        old_at, new_at = old_begin + hunk.old_lines, new_begin + hunk.new_lines
        yield Block(False, old_begin, old_at, new_begin, new_at)
    if old_at < len(old):
        yield Block(True, old_at, len(old), new_at, len(new))
