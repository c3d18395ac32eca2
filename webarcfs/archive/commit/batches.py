"""Groups pending additions into commits: one for each author, as far as their order allows. Pure.

A commit rewrites the trees above the ARCs; so authors that alternate must not cause a commit for each addition.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from webarcfs.archive.model.addition import AddFile, Addition, AddNodes, Author, Move, Removal

#: Most additions in one commit: its message has a line for each.
MOST = 20_000


@dataclass(slots=True)
class _Group:
    author: Author
    items: list[int] = field(default_factory=list)


def groups(additions: Sequence[Addition]) -> list[list[int]]:
    """Return the indexes of `additions`, grouped by commit and author; two that touch one name keep their order."""
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


def newest(additions: Iterable[Addition]) -> dict[int, Addition]:
    """Return the additions to commit, by index: of several versions of a file by one writer, only the last.

    It inherits `replaces` of the first, since git may have that blob and none in between.
    """
    wanted: dict[int, Addition] = {}
    files: dict[Hashable, tuple[int, AddFile]] = {}
    for index, addition in enumerate(additions):
        match addition:
            case AddFile():
                name = addition.place, addition.path
                last = files.get(name)
                if last is not None and addition.replaces == last[1].blob:
                    before = wanted.pop(last[0])
                    assert isinstance(before, AddFile)
                    wanted[index] = replace(addition, replaces=before.replaces)
                else:
                    wanted[index] = addition
                files[name] = index, addition
            case Move():
                files.pop((addition.place, addition.old), None)
                wanted[index] = addition
            case AddNodes():
                files.pop((addition.place, addition.source), None)
                wanted[index] = addition
            case Removal():
                pass  # a log of provisional files is committed as their last states
    return wanted


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
        case Removal():
            yield place, addition.path
