"""Applies changes in order of their paths to a tree: each folder is read once and written once. Pure.

It keeps the current folder and those above it in memory, whatever the number of folders and changes. The order is that
of the paths' bytes, in which git sorts an index; inside a folder it is git's order of a tree, where folders sort as if
their names ended in a slash (gitformat-index(5), git-mktree(1)).

Trees are git's bytes, read line by line, without an object for each name (gitformat: `<mode> <name>`, NUL, id).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from webarcfs.archive.model.errors import Damaged

# == tree lines, pure =================================================================================================


FILE: Final = b"100644"
FOLDER: Final = b"40000"
#: Modes of folders; old programs wrote the second.
FOLDERS: Final = (FOLDER, b"040000")
#: A pattern takes a fifth of the time of libgit2's calls for each line.
LINE: Final = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
#: Mode, name, and id in 20 bytes.
Line = tuple[bytes, bytes, bytes]
Pair = tuple[Line | None, Line | None]


def read_lines(raw: bytes, name: str) -> Iterator[Line]:
    """Yield the lines of a tree. Raises Damaged, with `name`, for any other data."""
    upto = 0
    for match in LINE.finditer(raw):
        mode, entry, oid = match.groups()
        upto += len(mode) + len(entry) + 22
        yield mode, entry, oid
    if upto != len(raw):  # the pattern skips lines that it does not match
        raise Damaged(f"{name} is no tree that can be read")


def key(line: Line) -> bytes:
    """Return git's sort key of a line: its name, that of a folder with a slash at the end."""
    return line[1] + b"/" if line[0] in FOLDERS else line[1]


def changed_lines(before: Iterator[Line], after: Iterator[Line]) -> Iterator[Pair]:
    """Yield the differences between two trees, in git's order: files are paired with files, folders with folders."""
    was, now = next(before, None), next(after, None)
    while was is not None and now is not None:
        first, second = key(was), key(now)
        if first == second:
            if was[2] != now[2]:
                yield was, now
            was, now = next(before, None), next(after, None)
        elif first < second:
            yield was, None
            was = next(before, None)
        else:
            yield None, now
            now = next(after, None)
    while was is not None:
        yield was, None
        was = next(before, None)
    while now is not None:
        yield None, now
        now = next(after, None)


# == tree stream, pure ================================================================================================


#: A path and the id of its blob in 20 bytes; an empty id removes the file or folder that `base` has there.
Change = tuple[bytes, bytes]
_Line = re.Match[bytes]


def changed_tree(
    base: str | None, changes: Iterable[Change], read: Callable[[str], bytes], store: Callable[[bytes], str]
) -> str | None:
    """Return the tree `base` with `changes`, in order of their paths, each path once; None when it becomes empty.

    A file replaces a folder of `base`, a folder any file; empty folders are removed. `read` returns git's bytes of a
    tree, `store` stores them, inner folders first. Raises Damaged when `base` cannot be read.
    """
    stack = [_Folder(b"", base, read)]
    above: list[bytes] = []
    for path, blob in changes:
        *folders, name = path.split(b"/")
        if folders != above:
            common = _common(above, folders)
            for _ in above[common:]:
                _leave(stack, store)
            for folder in folders[common:]:
                stack.append(_Folder(folder, stack[-1].enter(folder), read))
            above = folders
        stack[-1].put(name, blob)
    while len(stack) > 1:
        _leave(stack, store)
    return stack[0].end(store)


class _Folder:
    """An old folder, and its new form up to the current change."""

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
        # Files in the new form, each with its offset; the name of each is a prefix of the next one's. All other files
        # precede any folder of their name.
        self._files: list[tuple[bytes, int]] = []
        self._next()

    def put(self, name: bytes, blob: bytes) -> None:
        """Place a file, or with an empty `blob` drop the old file or folder."""
        if self._line is not None:
            self._pass(name)
            self._gone.add(name)
        if blob:
            self._remember(name)
            self._new += b"%s %s\0%s" % (FILE, name, blob)

    def enter(self, name: bytes) -> str | None:
        """Return the id of the old folder of that name, or None. It is removed unless `put_folder` puts one back."""
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
        """Store the new form and return its id; None when it is empty."""
        self._pass(None)
        if self._upto != len(self._old):
            raise Damaged(f"{self._base} is no tree that can be read")
        if self._new == self._old:
            return self._base
        return store(bytes(self._new)) if self._new else None

    def _pass(self, until: bytes | None) -> None:
        """Copy the old entries before `until`, in git's order."""
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
    """Return the number of equal names at the beginning of two paths."""
    for index, (name, beside) in enumerate(zip(one, other, strict=False)):
        if name != beside:
            return index
    return min(len(one), len(other))
