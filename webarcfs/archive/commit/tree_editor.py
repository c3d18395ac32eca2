"""A domain's tree while additions are put into it: folders are read on first access, and written once.

So many additions cost what they change, however large the folders around them are. Trees are kept as git's bytes: a
commit must not make 60,000 objects of a folder of 60,000 ARCs.
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
    """One folder: name → (mode, id in 20 bytes), and the inner folders read so far."""

    __slots__ = ("changed", "entries", "inside", "leads")

    def __init__(self, raw: bytes = b"") -> None:
        self.entries = {match[2]: (match[1], match[3]) for match in _ENTRY.finditer(raw)}
        self.inside: dict[bytes, TreeFolder] = {}
        self.changed = False
        self.leads: bool | None = None

    def is_folder(self, name: bytes) -> bool:
        """Return whether it contains a folder of that name."""
        found = self.entries.get(name)
        return name in self.inside or (found is not None and found[0] == FOLDER)

    def is_file(self, name: bytes) -> bool:
        """Return whether it contains a file of that name."""
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
        """Return the folder at `path`, or None."""
        folder: TreeFolder | None = self._root
        for name in os.fsencode(path).split(b"/") if path else []:
            folder = self.inside(folder, name) if folder is not None else None
        return folder

    def blob(self, path: str) -> str | None:
        """Return the blob at `path`; None if there is no file."""
        above, _, name = path.rpartition("/")
        folder = self.folder(above)
        raw = os.fsencode(name)
        return folder.entries[raw][1].hex() if folder is not None and folder.is_file(raw) else None

    def put(self, path: str, blob: str) -> None:
        """Place a file; make the folders above it."""
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
        """Remove a file, and folders that become empty."""
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
        """Store the changes with `store` (path, git's bytes → id), inner folders first; return the root's id."""
        if self._root.changed:
            self._tree = _write(self._root, "", store)
        return self._tree

    def leads_to_arcs(self, folder: TreeFolder) -> bool:
        """Return whether a folder is an ARC or contains one; computed once, since additions never change it."""
        if folder.leads is None:
            inner = (self.inside(folder, name) for name, (mode, _) in folder.entries.items() if mode == FOLDER)
            folder.leads = folder.is_arc or any(each is not None and self.leads_to_arcs(each) for each in inner)
        return folder.leads

    def inside(self, folder: TreeFolder, name: bytes) -> TreeFolder | None:
        """Return the folder `name` in a folder of this tree, or None."""
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
    """Return git's bytes of a tree: entries in the order of their names, folders as if their names ended in a slash."""
    rows = sorted((name + b"/" if mode == FOLDER else name, mode, oid) for name, (mode, oid) in folder.entries.items())
    return b"".join(b"%s %s\0%s" % (mode, key[:-1] if mode == FOLDER else key, oid) for key, mode, oid in rows)
