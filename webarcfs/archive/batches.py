"""Which pending additions make which commit: one for each author, as far as their order allows. Pure.

A commit writes the trees above the ARCs anew; so authors that take turns must not make a commit for each addition.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from webarcfs.archive.additions import AddFile, Addition, AddNodes, Author, Move

#: Additions in one commit at most: its message has a line for each.
MOST = 20_000


@dataclass(slots=True)
class _Group:
    author: Author
    items: list[int] = field(default_factory=list)


def groups(additions: Sequence[Addition]) -> list[list[int]]:
    """Indexes of `additions`, in commits, each of one author; two that touch one name keep their order."""
    made: list[_Group] = []
    last: dict[Author, int] = {}
    touched: dict[Hashable, int] = {}
    for index, addition in enumerate(additions):
        names = list(_names(addition))
        earliest = max((touched.get(name, 0) for name in names), default=0)
        number = last.get(addition.author, -1)
        if number < earliest or number < 0 or len(made[number].items) >= MOST:
            number = len(made)
            made.append(_Group(addition.author))
            last[addition.author] = number
        made[number].items.append(index)
        touched |= dict.fromkeys(names, number)
    return [group.items for group in made]


def superseded(additions: Iterable[Addition]) -> set[int]:
    """Indexes of files that their writer confirmed again later, with other bytes: only the last one is wanted."""
    gone: set[int] = set()
    newest: dict[Hashable, tuple[int, str]] = {}
    for index, addition in enumerate(additions):
        match addition:
            case AddFile():
                name = addition.place, addition.path
                before = newest.get(name)
                if before is not None and addition.replaces == before[1]:
                    gone.add(before[0])
                newest[name] = index, addition.blob
            case Move():
                newest.pop((addition.place, addition.old), None)
            case AddNodes():
                newest.pop((addition.place, addition.source), None)
    return gone


def _names(addition: Addition) -> Iterator[Hashable]:
    place = addition.place
    match addition:
        case AddFile():
            yield place, addition.path
        case Move():
            yield place, addition.old
            yield place, addition.new
        case AddNodes():
            yield place, "data.xml"
            yield place, addition.source
