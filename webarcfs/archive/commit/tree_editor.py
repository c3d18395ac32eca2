"""A domain's tree while additions are put into it: folders are read when they are looked at, and written once.

So many additions cost what they change, however large the folders around them are. Trees are handled as git's bytes: a
folder of 60,000 ARCs must not become 60,000 objects for each commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from webarcfs.archive.model.arc_paths import DATA_XML

FOLDER = b"40000"
FILE = b"100644"
_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0([\0-\xff]{20})", re.DOTALL)
_DATA_XML = DATA_XML.encode()


class TreeFolder:
    """One folder: name → (mode, id in 20 bytes), and those folders inside that were looked at."""

    __slots__ = ("changed", "entries", "inside", "leads")

    def __init__(self, raw: bytes = b"") -> None:
        self.entries = {match[2]: (match[1], match[3]) for match in _ENTRY.finditer(raw)}
        self.inside: dict[bytes, TreeFolder] = {}
        self.changed = False
        self.leads: bool | None = None

    def is_folder(self, name: bytes) -> bool:
        """Whether it has a folder of that name."""
        found = self.entries.get(name)
        return name in self.inside or (found is not None and found[0] == FOLDER)

    def is_file(self, name: bytes) -> bool:
        """Whether it has a file of that name."""
        return name in self.entries and not self.is_folder(name)

    @property
    def is_arc(self) -> bool:
        """Whether it is an ARC."""
        return self.is_file(_DATA_XML)


class LazyTree:
    """The tree `tree`, read with `read` (id → git's bytes of a tree). For one thread at a time."""

    def __init__(self, read: Callable[[str], bytes], tree: str) -> None:
        self._read = read
        self._tree = tree
        self._root = TreeFolder(read(tree))

    def folder(self, path: str) -> TreeFolder | None:
        """The folder at `path`; None when there is none."""
        folder: TreeFolder | None = self._root
        for name in os.fsencode(path).split(b"/") if path else []:
            folder = self.inside(folder, name) if folder is not None else None
        return folder

    def blob(self, path: str) -> str | None:
        """The blob at `path`; None when there is no file."""
        above, _, name = path.rpartition("/")
        folder = self.folder(above)
        raw = os.fsencode(name)
        return folder.entries[raw][1].hex() if folder is not None and folder.is_file(raw) else None

    def put(self, path: str, blob: str) -> None:
        """Place a file; the folders above it are made."""
        *above, name = os.fsencode(path).split(b"/")
        folder = self._root
        folder.changed = True
        for each in above:
            inner = self.inside(folder, each)
            if inner is None:
                inner = folder.inside[each] = TreeFolder()
                folder.entries[each] = (FOLDER, b"")
            folder = inner
            folder.changed = True
        folder.entries[name] = (FILE, bytes.fromhex(blob))

    def remove(self, path: str) -> None:
        """Take a file away, and folders that are left empty."""
        folder, row = self._root, []
        *above, name = os.fsencode(path).split(b"/")
        for each in above:
            inner = self.inside(folder, each)
            if inner is None:
                return
            row.append((folder, each))
            folder = inner
        if folder.entries.pop(name, None) is None:
            return
        folder.changed = True
        for outer, each in reversed(row):
            outer.changed = True
            if not outer.inside[each].entries:
                del outer.inside[each], outer.entries[each]

    def write(self, store: Callable[[str, bytes], str]) -> str:
        """Store what changed with `store` (path, git's bytes → id), inner folders first; returns the root's id."""
        if self._root.changed:
            self._tree = _write(self._root, "", store)
        return self._tree

    def leads_to_arcs(self, folder: TreeFolder) -> bool:
        """Whether a folder is an ARC or has one inside; additions never change that, so it is looked at once."""
        if folder.leads is None:
            inner = (self.inside(folder, name) for name, (mode, _) in folder.entries.items() if mode == FOLDER)
            folder.leads = folder.is_arc or any(each is not None and self.leads_to_arcs(each) for each in inner)
        return folder.leads

    def inside(self, folder: TreeFolder, name: bytes) -> TreeFolder | None:
        """The folder `name` in a folder of this tree; None when there is none."""
        inner = folder.inside.get(name)
        if inner is None and folder.is_folder(name):
            inner = folder.inside[name] = TreeFolder(self._read(folder.entries[name][1].hex()))
        return inner


def _write(folder: TreeFolder, path: str, store: Callable[[str, bytes], str]) -> str:
    for name, inner in folder.inside.items():
        if inner.changed:
            oid = _write(inner, f"{path}{os.fsdecode(name)}/", store)
            folder.entries[name] = (FOLDER, bytes.fromhex(oid))
    folder.changed = False
    return store(path.rstrip("/"), serialised(folder))


def serialised(folder: TreeFolder) -> bytes:
    """Git's bytes of a tree: entries in the order of their names, folders as if their names ended in a slash."""
    rows = sorted((name + b"/" if mode == FOLDER else name, mode, oid) for name, (mode, oid) in folder.entries.items())
    return b"".join(b"%s %s\0%s" % (mode, key[:-1] if mode == FOLDER else key, oid) for key, mode, oid in rows)
