"""A tree made of another one and changes in order of their paths: each folder is read once and written once. Pure.

In memory are the folder that is at work and those above it, as git's bytes, whatever the number of folders and changes.
The order is that of the paths' bytes, in which git sorts an index; for the names of one folder it is git's order of a
tree, where folders sort as if their names ended in a slash (gitformat-index(5), git-mktree(1)).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from webarcfs.archive.git.tree_lines import FILE, FOLDER, FOLDERS, LINE
from webarcfs.archive.model.errors import Damaged

#: A path and the id of its blob in 20 bytes; empty where what `base` has there, file or folder, is to go.
Change = tuple[bytes, bytes]
_Line = re.Match[bytes]


def changed(
    base: str | None, changes: Iterable[Change], read: Callable[[str], bytes], store: Callable[[bytes], str]
) -> str | None:
    """The tree `base` with `changes`, in order of their paths, each path once; None when nothing is left.

    A file takes the place of a folder that `base` has, a folder that of any file; folders left empty go. `read` gives
    git's bytes of a tree, `store` takes them, inner folders first. Raises Damaged when `base` cannot be read.
    """
    stack = [_Folder(b"", base, read)]
    above: list[bytes] = []
    for path, blob in changes:
        *folders, name = path.split(b"/")
        if folders != above:
            common = _common(above, folders)
            for _ in above[common:]:
                _leave(stack, store)
            for each in folders[common:]:
                stack.append(_Folder(each, stack[-1].enter(each), read))
            above = folders
        stack[-1].put(name, blob)
    while len(stack) > 1:
        _leave(stack, store)
    return stack[0].end(store)


class _Folder:
    """A folder as it was, of which the lines up to the change at hand lie in its new form."""

    __slots__ = ("_base", "_files", "_gone", "_line", "_lines", "_new", "_old", "_upto", "name")

    def __init__(self, name: bytes, base: str | None, read: Callable[[str], bytes]) -> None:
        self.name = name
        self._base = base
        self._old = read(base) if base else b""
        self._new = bytearray()
        self._lines = LINE.finditer(self._old)
        self._upto = 0
        self._line: _Line | None = None
        self._gone: set[bytes] = set()
        # Files in the new form, each with its place; the name of each is a beginning of the next one's. All others
        # lie before any folder of their name.
        self._files: list[tuple[bytes, int]] = []
        self._next()

    def put(self, name: bytes, blob: bytes) -> None:
        """Place a file, or with an empty `blob` drop what was there."""
        if self._line is not None:
            self._pass(name)
            self._gone.add(name)
        if blob:
            self._remember(name)
            self._new += b"%s %s\0%s" % (FILE, name, blob)

    def enter(self, name: bytes) -> str | None:
        """The id of the folder of that name as it was; None when there was none. It goes, unless one is put back."""
        self._pass(name + b"/")
        line = self._line
        if line is None or line[2] != name or line[1] not in FOLDERS:
            return None
        self._next()
        return None if name in self._gone else line[3].hex()

    def put_folder(self, name: bytes, tree: str) -> None:
        """Place a folder that was entered."""
        while self._files and not name.startswith(self._files[-1][0]):
            self._files.pop()
        if self._files and self._files[-1][0] == name:
            start = self._files.pop()[1]
            del self._new[start : start + len(FILE) + len(name) + 22]
        self._new += b"%s %s\0%s" % (FOLDER, name, bytes.fromhex(tree))

    def end(self, store: Callable[[bytes], str]) -> str | None:
        """The id of the new form; None when nothing is in it."""
        self._pass(None)
        if self._upto != len(self._old):
            raise Damaged(f"{self._base} is no tree that can be read")
        if self._new == self._old:
            return self._base
        return store(bytes(self._new)) if self._new else None

    def _pass(self, until: bytes | None) -> None:
        """Take over what was there before `until`, as git sorts it."""
        while (line := self._line) is not None:
            mode, name = line[1], line[2]
            is_folder = mode in FOLDERS
            if until is not None and (name + b"/" if is_folder else name) >= until:
                if is_folder or name != until:
                    return
                self._next()  # a change takes the file's place
                continue
            if name not in self._gone:
                if not is_folder:
                    self._remember(name)
                self._new += line[0]
            self._next()

    def _next(self) -> None:
        if self._line is not None:
            self._upto = self._line.end()
        line = self._line = next(self._lines, None)
        if line is not None and line.start() != self._upto:
            raise Damaged(f"{self._base} is no tree that can be read")

    def _remember(self, name: bytes) -> None:
        while self._files and not name.startswith(self._files[-1][0]):
            self._files.pop()
        self._files.append((name, len(self._new)))


def _leave(stack: list[_Folder], store: Callable[[bytes], str]) -> None:
    inner = stack.pop()
    tree = inner.end(store)
    if tree is not None:
        stack[-1].put_folder(inner.name, tree)


def _common(one: list[bytes], other: list[bytes]) -> int:
    """How many names two paths begin with alike."""
    for index, (each, beside) in enumerate(zip(one, other, strict=False)):
        if each != beside:
            return index
    return min(len(one), len(other))
