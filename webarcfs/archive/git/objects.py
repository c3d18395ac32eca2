"""The objects of a repository, read and written through pygit2: blobs, trees and commits, all immutable.

Objects are named by their 40 hex digits, paths are `str` (bytes that are not UTF-8 become surrogates). writing.py
writes many at once.

Detects that a repack removed packs of a repository. For one thread at a time; reads names and a time only.
"""

from __future__ import annotations

import errno
import gc
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import IOBase
from pathlib import Path
from typing import IO, Final, NamedTuple

import pygit2
from pygit2.enums import ConfigLevel, ObjectType, Option, RepositoryOpenFlag

from webarcfs.archive.git import git_command, tree_stream
from webarcfs.archive.git.git_command import fail
from webarcfs.archive.model import metadata
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged, NotFound, OtherFormat
from webarcfs.archive.model.metadata import CET
from webarcfs.archive.system.files import rewound

# == pack watch =======================================================================================================


class Packs:
    """The packs of one repository, as of the last check."""

    def __init__(self, repository: Path) -> None:
        self._folder = repository / "objects" / "pack"
        self._seen = self._look()

    def vanished(self) -> bool:
        """Return whether a pack was removed since the last check. Raises OSError without the folder."""
        if self._folder.stat().st_mtime_ns == self._seen[0]:
            return False
        before, self._seen = self._seen, self._look()
        return not before[1] <= self._seen[1]

    def _look(self) -> tuple[int, frozenset[str]]:
        """Return the time of the folder's last change, and the names."""
        try:
            time = self._folder.stat().st_mtime_ns  # first: the next check then detects a later change
            return time, frozenset(path.name for path in self._folder.glob("*.pack"))
        except OSError:
            return 0, frozenset()


# == objects ==========================================================================================================


_TRIES = 30  # to write an object
_READ_AT_ONCE = 1 << 16
_MAP_AT_ONCE = 1 << 20
_MAP_AT_MOST = 64 << 20
_CACHED_AT_MOST = 8 << 20
#: Trees of more names than this are cached: so many trees, of so many names in total.
_LARGE: Final = 64
_LARGE_TREES: Final = 8
_LARGE_AT_MOST: Final = 500_000
_TREE: Final = int(ObjectType.TREE)
_FILE: Final = tree_stream.FILE
_MODES = {True: tree_stream.FOLDER, False: _FILE}
#: The arguments of os.fsdecode: a walk decodes each name, and the call to it costs as much again.
_CODING: Final = sys.getfilesystemencoding()
_ERRORS: Final = sys.getfilesystemencodeerrors()
_LINE: Final = tree_stream.LINE
#: libgit2's messages for a repository with an unknown format.
_OTHER_FORMAT: Final = re.compile("unknown object format|unsupported extension|unsupported repository version")
_FOLDERS: Final = tree_stream.FOLDERS
_NO_LINE: Final = b"", b"", b""


class TreeEntry(NamedTuple):
    """One name in a tree: a blob (file) or a tree (folder). A tuple, since a walk makes thousands."""

    name: str
    oid: str
    is_tree: bool

    @property
    def is_document(self) -> bool:
        """Whether it is a file data.xml, which makes its folder an ARC."""
        return self.name == DATA_XML and not self.is_tree


@dataclass(frozen=True, slots=True)
class Difference:
    """A file that differs between two trees: its blob before and after, or None."""

    path: str
    old: str | None
    new: str | None


class Names:
    """The names in one tree, looked up one by one: a quarter of the memory of its entries."""

    def __init__(self, tree: pygit2.Tree) -> None:
        self._tree = tree

    def __len__(self) -> int:
        return len(self._tree)

    def find(self, name: str) -> TreeEntry | None:
        """Return the entry of a name, or None."""
        try:
            git_object = self._tree[name]
        except KeyError:
            return None
        return TreeEntry(name, str(git_object.id), git_object.type == _TREE)


class Objects:
    """The objects of the repository at `path`; several threads may read at once."""

    def __init__(self, path: Path) -> None:
        """Open the repository at `path`.

        Raises NotFound when there is none, OtherFormat for another format of git, Damaged for no repository.
        """
        _configure_library()
        self.path = path
        if not path.is_dir():
            raise NotFound(f"there is no repository {path}")
        self._objects = str(path / "objects")
        self._packs = Packs(path)
        self._lately_loose = False
        self._open()

    def _open(self) -> None:
        try:
            self._repo = pygit2.Repository(str(self.path), RepositoryOpenFlag.NO_SEARCH)
        except pygit2.GitError as error:
            if _OTHER_FORMAT.search(str(error)):
                raise OtherFormat(
                    f"{self.path} is a git repository of another format ({error}); the archive's have objects named by "
                    "SHA-1 and refs in files"
                ) from None
            raise Damaged(
                f"{self.path} cannot be opened as a git repository: {error}; `webarc-agent recover` repairs it, where"
                " it can"
            ) from None
        self._odb = self._repo.odb
        # Most objects are in packs, but libgit2 first looks for a loose file: two system calls for each object.
        self._packed = pygit2.Odb()
        self._packed.add_backend(pygit2.OdbBackendPack(self._objects), 1)
        # The former objects would hold its packs open.
        self._latest: tuple[str, pygit2.Tree] | None = None
        self._large: tuple[tuple[str, pygit2.Tree], ...] = ()

    def let_go(self) -> bool:
        """Close packs that a repack removed, which libgit2 never does; return whether any was. One thread only."""
        if vanished := self._packs.vanished():
            self._open()  # readers in other threads finish with the old objects
            gc.collect()  # only this frees a repository, which has reference cycles
        return vanished

    # -- reading -------------------------------------------------------------------------------------------------

    def entries(self, tree: str) -> list[TreeEntry]:
        """Return the entries of a tree, in git's order."""
        raw = self.read_tree(tree)
        entries: list[TreeEntry] = []
        size = 0
        lines: list[tuple[bytes, bytes, bytes]] = _LINE.findall(raw)
        for mode, name, oid in lines:
            is_tree = mode != _FILE and mode in _FOLDERS
            # As Entry(…), but without its Python function.
            entries.append(tuple.__new__(TreeEntry, (name.decode(_CODING, _ERRORS), oid.hex(), is_tree)))
            size += len(mode) + len(name) + 22  # and a space, a NUL and the id
        if size != len(raw):  # the pattern skips lines that it does not match
            raise Damaged(f"{self.path}: {tree} is no tree that can be read")
        return entries

    def each(self, tree: str) -> Iterator[TreeEntry]:
        """Yield the same entries."""
        for mode, name, oid in self._lines(tree):
            yield TreeEntry(name.decode(_CODING, _ERRORS), oid.hex(), mode in _FOLDERS)

    def names(self, tree: str) -> Names:
        """Return the names of a tree, to look up a few of them. Names with `/` are not allowed."""
        return Names(self._tree(tree))

    def find(self, tree: str, path: str) -> TreeEntry | None:
        """Return the entry at `path` below `tree`, or None."""
        entry = TreeEntry("", tree, True)
        for name in path.split("/") if path else []:
            if not entry.is_tree:
                return None
            try:
                git_object = self._tree(entry.oid)[name]
            except KeyError:
                return None
            entry = TreeEntry(name, str(git_object.id), git_object.type == _TREE)
        return entry

    def read(self, blob: str) -> bytes:
        """Return a blob's bytes. For a blob of any size, call `size` first, then `copy`."""
        kind, raw = self._raw(blob)
        if kind != ObjectType.BLOB:
            raise Damaged(f"{self.path}: {blob} is no blob")
        return raw

    def read_tree(self, tree: str) -> bytes:
        """Return a tree as git's bytes."""
        kind, raw = self._raw(tree)
        if kind != ObjectType.TREE:
            raise Damaged(f"{self.path}: {tree} is no tree")
        return raw

    def size(self, blob: str) -> int:
        """Return a blob's size in bytes, without reading the blob."""
        try:
            return int(self._odb.read_header(blob)[1])
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise Damaged(f"{self.path}: object {blob} cannot be read: {error}") from None

    def copy(self, blob: str, fd: int) -> None:
        """Write a blob of any size to the descriptor `fd`, in constant memory, in another process."""
        git_command.copy_blob(blob, self.path, fd)

    def differences(self, old: str | None, new: str | None, prefix: str = "") -> Iterator[Difference]:
        """Yield the files that differ between two trees, in order of path; equal subtrees cost nothing.

        It keeps the current folder and those above it in memory, as git's bytes.
        """
        stack = [(prefix, self._changed(old, new))]
        while stack:
            above, pairs = stack[-1]
            pair = next(pairs, None)
            if pair is None:
                stack.pop()
                continue
            was, now = pair
            mode, name, _ = was or now or _NO_LINE
            path = above + name.decode(_CODING, _ERRORS)
            was_id, now_id = was[2].hex() if was else None, now[2].hex() if now else None
            if mode in _FOLDERS:
                stack.append((f"{path}/", self._changed(was_id, now_id)))
            else:
                yield Difference(path, was_id, now_id)

    def _changed(self, old: str | None, new: str | None) -> Iterator[tree_stream.Pair]:
        """Return the lines that differ between two folders."""
        if old == new:
            return iter(())
        before, after = (self._lines(tree) if tree else iter(()) for tree in (old, new))
        return tree_stream.changed_lines(before, after)

    def _lines(self, tree: str) -> Iterator[tree_stream.Line]:
        return tree_stream.read_lines(self.read_tree(tree), f"{self.path}: {tree}")

    def _tree(self, oid: str) -> pygit2.Tree:
        """Return a tree. The latest one is cached: a search for a document is often followed by one for its neighbour.

        So are a few large ones: on the way to that neighbour they would be parsed again, name by name.
        """
        latest = self._latest
        if latest is not None and latest[0] == oid:
            return latest[1]
        large = self._large
        for known, tree in large:
            if known == oid:
                return tree
        loaded_tree = self._object(oid)
        if not isinstance(loaded_tree, pygit2.Tree):
            raise Damaged(f"{self.path}: {oid} is no tree")
        self._latest = oid, loaded_tree
        if len(loaded_tree) > _LARGE:
            room = _LARGE_AT_MOST - len(loaded_tree)
            kept: list[tuple[str, pygit2.Tree]] = [(oid, loaded_tree)]
            for cached in large[: _LARGE_TREES - 1]:
                room -= len(cached[1])
                if room >= 0:
                    kept.append(cached)
            self._large = tuple(kept)  # in one step: other threads may read it
        return loaded_tree

    def _object(self, oid: str) -> object:
        self._is_loose(oid)
        try:
            return self._repo[oid]
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise Damaged(f"{self.path}: object {oid} cannot be read: {error}") from None

    def _raw(self, oid: str) -> tuple[int, bytes]:
        if not self._lately_loose:
            try:
                kind, raw = self._packed.read(oid)
            except (KeyError, ValueError, pygit2.GitError):
                pass
            else:
                return kind, raw
        # No pack has it, it is damaged there, or the last one was loose: a vain search of all packs is expensive.
        self._lately_loose = self._is_loose(oid)
        try:
            kind, raw = self._odb.read(oid)
            return kind, raw
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise Damaged(f"{self.path}: object {oid} cannot be read: {error}") from None

    def _is_loose(self, oid: str) -> bool:
        """Return whether an object has a file of its own.

        Raises Damaged if that is cut off: libgit2 (1.7 to 1.9) would read it for ever.
        """
        loose = f"{self._objects}/{oid[:2]}/{oid[2:]}"
        try:
            file = open(loose, "rb", buffering=0)  # noqa: SIM115, PTH123 # a Path would double the cost
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Damaged(f"{self.path}: object {oid} cannot be read: {error}") from None
        with file:
            if not _is_whole(file):
                raise Damaged(f"{self.path}: object {oid} cannot be read: its file is cut off")
        return True

    # -- writing -------------------------------------------------------------------------------------------------

    def write_blob(self, body: bytes) -> str:
        """Store a blob; return its id."""
        return self._written(lambda: self._repo.create_blob(body))

    def write_stream(self, file: IOBase) -> str:
        """Store a whole file as a blob, in constant memory, with no filter of an attribute; return its id."""
        return self._written(lambda: self._repo.create_blob_fromiobase(rewound(file)))

    def write_tree(self, entries: Sequence[TreeEntry]) -> str:
        """Store a tree of these entries; return its id."""
        # Without TreeBuilder: it accepts names in UTF-8 only, and users may add files of any name.
        lines = sorted((os.fsencode(entry.name) + (b"/" if entry.is_tree else b""), entry) for entry in entries)
        return self.write_lines(
            b"%s %s\0%s" % (_MODES[entry.is_tree], os.fsencode(entry.name), bytes.fromhex(entry.oid))
            for _, entry in lines
        )

    def write_lines(self, lines: Iterable[bytes]) -> str:
        """Store a tree of git's lines, in git's order; return its id."""
        raw = b"".join(lines)
        return self._written(lambda: self._odb.write(ObjectType.TREE, raw))

    def write_commit(self, tree: str, parents: Sequence[str], message: str, author: tuple[str, str], when: int) -> str:
        """Store a commit; no ref moves. `author` is (name, mail), `when` seconds since 1970; times are in CET."""
        offset = int((CET.utcoffset(None)).total_seconds() // 60)
        wrote, committed = (pygit2.Signature(*who, when, offset) for who in (author, metadata.COMMITTER))
        return self._written(lambda: self._repo.create_commit(None, wrote, committed, message, tree, list(parents)))

    def _written(self, write: Callable[[], object]) -> str:
        """Return the id of what `write` stores. Raises OSError on a full disk, Damaged for libgit2's other errors."""
        for left in reversed(range(_TRIES)):
            try:
                return str(write())
            except (pygit2.GitError, OSError) as error:
                # A repack may remove a new, empty objects/xx/ before an object is renamed into it.
                if not left or os.strerror(errno.ENOENT) not in str(error):
                    fail(f"{self.path}: an object was not stored", str(error).encode(), self.path)
        raise AssertionError

    def edit(self, tree: str, changes: Mapping[str, str | None]) -> str:
        """Return `tree` with some files replaced: path → blob, or None to remove; empty folders are removed."""
        return self._edit(tree, changes) or self.write_tree([])

    def _edit(self, tree: str | None, changes: Mapping[str, str | None]) -> str | None:
        entries = {entry.name: entry for entry in self.entries(tree)} if tree else {}
        below: dict[str, dict[str, str | None]] = {}
        for path, blob in changes.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = blob
            elif blob is None:
                entries.pop(name, None)
            else:
                entries[name] = TreeEntry(name, blob, False)
        for name, inner in below.items():
            subtree = self._edit(_tree(entries.get(name)), inner)
            if subtree is not None:
                entries[name] = TreeEntry(name, subtree, True)
            elif name in entries and entries[name].is_tree:
                del entries[name]
        return self.write_tree(list(entries.values())) if entries else None


@cache
def _configure_library() -> None:
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)
    # As in git: `verify` finds what zlib's checksum misses. Hashing all that is read doubles its cost.
    pygit2.option(Option.ENABLE_STRICT_HASH_VERIFICATION, False)
    # Packs are mapped in small pieces, few at a time: by default all touched parts of a pack stay in memory.
    pygit2.option(Option.SET_MWINDOW_SIZE, _MAP_AT_ONCE)
    pygit2.option(Option.SET_MWINDOW_MAPPED_LIMIT, _MAP_AT_MOST)
    # Small trees stay in memory after a read, up to 256 MiB, to which libgit2 does not count the objects around them.
    pygit2.option(Option.SET_CACHE_MAX_SIZE, _CACHED_AT_MOST)
    # Only the repository's own settings, as in git_command; and a mount that was root may not read root's home.
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        pygit2.option(Option.SET_SEARCH_PATH, level, "")


def _tree(entry: TreeEntry | None) -> str | None:
    return entry.oid if entry is not None and entry.is_tree else None


def _is_whole(file: IO[bytes]) -> bool:
    """Return whether a zlib stream reaches its end; True for other data, for which libgit2 raises its own error."""
    stream = zlib.decompressobj()
    with suppress(zlib.error):
        while data := file.read(_READ_AT_ONCE):
            while data:
                stream.decompress(data, _READ_AT_ONCE)
                data = stream.unconsumed_tail
            if stream.eof:
                return True
        return False
    return True
