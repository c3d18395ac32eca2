"""Counts what a capture contains, by the difference to a capture that was counted: the cost follows the change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history.versions import arcs, described, leads_to_arcs
from webarcfs.archive.model.arc_paths import is_data_file
from webarcfs.archive.model.errors import InvalidDocument
from webarcfs.archive.model.metadata import CommitTag

#: The extension of a file without one.
NONE = "(none)"


@dataclass(frozen=True, slots=True)
class Count:
    """The documents of a capture: their bytes and number, the folders above them, and their number by extension."""

    bytes: int = 0
    files: int = 0
    folders: int = 0
    extensions: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Count) -> Count:
        extensions = Counter(self.extensions)
        extensions.update(other.extensions)
        kept = {name: number for name, number in sorted(extensions.items()) if number}
        return Count(self.bytes + other.bytes, self.files + other.files, self.folders + other.folders, kept)


def difference(store: Repository, old: str | None, new: str | None) -> Count:
    """Return by how much the tree `new` exceeds the tree `old`; numbers may be negative."""
    size, files, extensions = 0, 0, Counter[str]()
    changed: set[str] = set()
    for each in store.differences(old, new):
        folder, _, name = each.path.rpartition("/")
        if not is_data_file(name):
            continue
        extension = name.rpartition(".")[2] if "." in name else NONE
        for blob, sign in ((each.old, -1), (each.new, 1)):
            if blob is not None:
                size += sign * store.size(blob)
                files += sign
                extensions[extension] += sign
        if each.old is None or each.new is None:
            changed |= _above(folder)
    folders = sum(_holds(store, new, path) - _holds(store, old, path) for path in changed)
    return Count(size, files, folders, {name: number for name, number in extensions.items() if number})


def stored(store: Repository, tree: str, tags: Set[CommitTag]) -> Count:
    """Return the count of the documents of a tree that some crawls stored: of what a publication saw in layout 1."""
    size, extensions = 0, Counter[str]()
    above: set[str] = set()
    for arc in arcs(store, tree):
        try:
            is_own = described(store, arc).commit_tag in tags
        except InvalidDocument:
            is_own = False
        if is_own and arc.data is not None:
            size += store.size(arc.data.oid)
            extensions[arc.data.name.rpartition(".")[2] if "." in arc.data.name else NONE] += 1
            above |= _above(arc.path)
    return Count(size, extensions.total(), len(above), dict(extensions))


def _above(arc: str) -> set[str]:
    """Return the folders above an ARC."""
    parts = arc.split("/")[:-1]
    return {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}


def _holds(store: Repository, tree: str | None, path: str) -> bool:
    """Return whether a folder has ARCs below it."""
    entry = store.find(tree, path) if tree is not None else None
    if entry is None or not entry.is_tree:
        return False
    return any(each.is_tree and leads_to_arcs(store, each.oid) for each in store.each(entry.oid))


def written(extensions: Mapping[str, int]) -> str:
    """Return the numbers by extension as a field has them: `html 12, png 3`, most files first."""
    return ", ".join(
        f"{name} {number}" for name, number in sorted(extensions.items(), key=lambda each: (-each[1], each))
    )


def parsed(text: str) -> dict[str, int]:
    """Return the inverse of `written`; words that are no such pair are left out."""
    pairs = (pair.rpartition(" ") for pair in text.split(", ") if pair)
    return {name: int(number) for name, _, number in pairs if name and number.isdecimal()}
