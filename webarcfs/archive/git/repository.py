"""The git store: one bare repository for each domain; its objects, its refs, its states, its creation, copy and check.

Objects are read and written through pygit2: blobs, trees and commits, all immutable, named by their 40 hex digits.
Paths are `str` (bytes that are not UTF-8 become surrogates). `git fast-import` writes many at once (writing.py), and
refs move in transactions of `git update-ref`, so that a publication is one compare-and-swap (/Ar-5…9/). Several threads
may read a `Repository` at once; it holds no lock and caches nothing that can change.

Whether a repack removed packs is detected by names and a time only, for one thread at a time.

A copy for backups is made by git's own transfer, which sends missing objects only. No ref of the copy is ever deleted,
and one moves only if the original's moved. Checksums are read past the kernel's cache, from the disk itself.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import os
import re
import shutil
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import IOBase
from pathlib import Path
from typing import IO, Final, NamedTuple

import pygit2
from pygit2.enums import ConfigLevel, ObjectType, Option, RepositoryOpenFlag

from webarcfs.archive.git import git_command, writing
from webarcfs.archive.git.git_command import fail, reason
from webarcfs.archive.git.writing import BIG_FILE, FastImport, Rewriting
from webarcfs.archive.model import metadata
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Busy, Damaged, NotFound, OtherFormat
from webarcfs.archive.model.metadata import CET
from webarcfs.archive.system.cache import Cache
from webarcfs.archive.system.files import rewound, sync_folder, sync_tree

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

    def identity(self) -> list[tuple[int, int, int]]:
        """Return a value that changes when packs come or go, here or in git's alternates, or a folder is replaced."""
        folders = [self._folder]
        with suppress(OSError):
            lines = (self._folder.parent / "info" / "alternates").read_bytes().splitlines()
            folders += [Path(os.fsdecode(line), "pack") for line in lines]
        identities = []
        for folder in folders:
            with suppress(OSError):
                status = folder.stat()
                identities.append((status.st_dev, status.st_ino, status.st_mtime_ns))
        return identities

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
_HASHED_AT_ONCE = 4 << 20
_HASHED_PIECE = 1 << 18
_MAP_AT_MOST = 64 << 20
_CACHED_AT_MOST = 8 << 20
#: Trees of more names than this are cached: so many trees, of so many names in total.
_LARGE: Final = 64
_LARGE_TREES: Final = 8
_LARGE_AT_MOST: Final = 500_000
_TREE: Final = int(ObjectType.TREE)
_KIND_NAMES: Final = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_FILE: Final = writing.FILE
_MODES = {True: writing.FOLDER, False: _FILE}
#: The arguments of os.fsdecode: a walk decodes each name, and the call to it costs as much again.
_CODING: Final = sys.getfilesystemencoding()
_ERRORS: Final = sys.getfilesystemencodeerrors()
_LINE: Final = writing.LINE
#: libgit2's messages for a repository with an unknown format.
_OTHER_FORMAT: Final = re.compile("unknown object format|unsupported extension|unsupported repository version")
_FOLDERS: Final = writing.FOLDERS
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


def is_arc(entries: Iterable[TreeEntry]) -> bool:
    """Return whether a folder with these entries is an ARC."""
    return any(entry.is_document for entry in entries)


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
        self._opening = threading.Lock()
        self._open()

    def _open(self) -> None:
        self._opened = self._packs.identity()  # first: a later change is then noticed
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

    def _has_other_packs(self) -> bool:
        """Open the packs anew if any came or went since: what was damaged may be back. Return whether that was so."""
        with self._opening:
            if self._packs.identity() == self._opened:
                return False
            self._open()
            return True

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

    def read_short(self, blob: str, most: int) -> bytes:
        """Return a blob's bytes; none of one that is longer than `most`, or without a name. Raises Damaged."""
        return self.read(blob) if blob and self.size(blob) <= most else b""

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
            if not isinstance(error, KeyError) and self._has_other_packs():
                return self.size(blob)
            raise Damaged(f"{self.path}: object {blob} cannot be read: {error}") from None

    def find_blob(self, oid: str) -> int | None:
        """Return the size of a blob; None without such an object, or for another kind of it. Raises Damaged."""
        if oid not in self._odb and not self._has_other_packs():
            return None
        try:
            kind, size = self._odb.read_header(oid)[:2]
        except KeyError:
            return None
        except (ValueError, pygit2.GitError) as error:
            raise Damaged(f"{self.path}: object {oid} cannot be read: {error}") from None
        return int(size) if kind == pygit2.GIT_OBJECT_BLOB else None

    def copy(self, blob: str, fd: int) -> None:
        """Write a blob of any size to the descriptor `fd`, in constant memory, in another process."""
        git_command.copy_blob(blob, self.path, fd)

    def digest(self, blob: str) -> bytes:
        """Return the SHA-1 of a blob's bytes, in flat memory; no file is made, however large the blob is."""
        digest = hashlib.sha1(usedforsecurity=False)
        if self.size(blob) <= _HASHED_AT_ONCE:
            digest.update(self.read(blob))
            return digest.digest()
        self._hash(blob, digest)
        return digest.digest()

    def _hash(self, blob: str, digest: hashlib._Hash) -> None:
        """Add the bytes of a large blob to a digest."""
        receiver, sender = os.pipe()
        with ThreadPoolExecutor(1) as thread, open(receiver, "rb") as pipe:  # noqa: PTH123 # a descriptor
            sent = thread.submit(self._send, blob, sender)
            while part := pipe.read(_HASHED_PIECE):
                digest.update(part)
            sent.result()

    def is_sound(self, oid: str) -> bool:
        """Return whether an object can be read, and has the bytes that its id names. A large blob takes no memory."""
        try:
            kind, size = self._odb.read_header(oid)
            digest = hashlib.sha1(b"%s %d\0" % (_KIND_NAMES[kind], size), usedforsecurity=False)
            if kind == ObjectType.BLOB and size > _HASHED_AT_ONCE:
                self._hash(oid, digest)
            else:
                digest.update(self._raw(oid)[1])
        except (KeyError, ValueError, pygit2.GitError, Damaged):
            return False
        return digest.hexdigest() == oid

    def add_to(self, pack: writing.Pack, oid: str) -> None:
        """Add an object to a pack, as it is read here. Raises Damaged."""
        kind, raw = self._raw(oid)
        if pack.add(_KIND_NAMES[kind].decode("ascii"), raw) != oid:
            raise Damaged(f"{self.path}: object {oid} has other bytes than its id names")

    def _send(self, blob: str, sender: int) -> None:
        try:
            self.copy(blob, sender)
        finally:
            os.close(sender)

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

    def _changed(self, old: str | None, new: str | None) -> Iterator[writing.Pair]:
        """Return the lines that differ between two folders."""
        if old == new:
            return iter(())
        before, after = (self._lines(tree) if tree else iter(()) for tree in (old, new))
        return writing.changed_lines(before, after)

    def _lines(self, tree: str) -> Iterator[writing.Line]:
        return writing.read_lines(self.read_tree(tree), f"{self.path}: {tree}")

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
            # Of a missing object libgit2 looks for new packs by itself, but a pack that it has open hides others.
            if not isinstance(error, KeyError) and self._has_other_packs():
                return self._object(oid)
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
            if not isinstance(error, KeyError) and self._has_other_packs():
                return self._raw(oid)
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


# == repository =======================================================================================================


MAIN = "refs/heads/main"
CRAWLS = "refs/crawls/"
PUBLICATIONS = "refs/publications/"
#: Prefix, followed by the time of a crawl: the tree that its publication saw, if less than the crawl's commit contains.
SEEN = "refs/seen/"
#: Prefix, followed by the time of a crawl: the list of what it met unchanged (`webarcfs.archive.model.url_lists`).
MET = "refs/met/"
#: Prefix of derived forms of documents.
FORMS = "refs/forms/"
INCOMING = "refs/incoming/"

#: Milliseconds for which git waits for another git that holds a ref's lock. Its default of 100 is too short while that
#: git syncs on a busy disk, perhaps one whose caller was killed, and whose lock on the domain is gone.
_PATIENT = ("-c", "core.filesRefLockTimeout=1000")
_MENDED = "`webarc-agent recover` repairs it, where it can"
_COMMIT: Final = int(ObjectType.COMMIT)
_NO_OBJECT = "0" * 40
# git_command.environment makes the refs files: git 2.39 has no option for that, and no other format.
_INIT = ("init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--object-format=sha1")
#: Settings of a new repository beside the defaults.
CONFIG = {
    "core.fsync": "all",  # git 2.39 syncs neither refs nor loose objects by default
    "core.bigFileThreshold": str(BIG_FILE),
    "core.logAllRefUpdates": "false",
    "gc.auto": "0",  # webarcfs repacks, under the domain's lock
}


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with its parsed message. `time` is seconds since 1970."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    message: metadata.CommitMessage
    time: int


@dataclass(frozen=True, slots=True)
class PlainCommit:
    """A commit that is not of a domain. `time` is seconds since 1970."""

    tree: str
    parents: tuple[str, ...]
    message: str
    author: str
    time: int

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0]


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """One step of a transaction: move `ref` from `old` to `new`; None means "does not exist", before or after."""

    ref: str
    new: str | None
    old: str | None


class Repository(Objects):
    """The repository of one domain."""

    #: The latest commit of main: its message may have thousands of lines, and each addition reads it.
    _newest: Commit | None = None

    @classmethod
    def create(cls, path: Path) -> Repository:
        """Make an empty bare repository at `path` in one step; one that another process made meanwhile is kept."""
        scratch = path.with_name(f".new-{os.getpid()}-{path.name}")
        shutil.rmtree(scratch, ignore_errors=True)
        _write_empty(scratch)
        sync_tree(scratch)
        try:
            scratch.rename(path)
        except OSError:
            shutil.rmtree(scratch)
            if not path.is_dir():
                raise
        sync_folder(path.parent)
        return cls(path)

    # -- refs ----------------------------------------------------------------------------------------------------

    def ref(self, name: str) -> str | None:
        """Return the target of `name`, read from disk now; None when there is no such ref."""
        try:
            return str(self._repo.lookup_reference(name).target)
        except KeyError:
            return None
        except (pygit2.GitError, ValueError) as error:
            raise Damaged(f"{self.path}: {name} cannot be read: {error}; {_MENDED}") from None

    def refs(self, prefix: str) -> dict[str, str]:
        """Return all refs whose names start with `prefix`, in order of name, without the prefix."""
        targets = ((name, self.ref(prefix + name)) for name in self.ref_names(prefix))
        return {name: oid for name, oid in targets if oid is not None}

    def ref_names(self, prefix: str) -> list[str]:
        """Return the names of these refs, in order and without the prefix; no ref is read. Raises Damaged."""
        # Libgit2 reads packed-refs first, then lists files: a ref packed in between would be in neither.
        while True:
            packed = self._packed_refs()
            try:
                names = self._repo.listall_references()
            except pygit2.GitError as error:
                raise Damaged(f"{self.path}: its refs cannot be listed: {error}; {_MENDED}") from None
            if self._packed_refs() == packed:
                return sorted(name[len(prefix) :] for name in names if name.startswith(prefix))

    def _packed_refs(self) -> tuple[int, int, int] | None:
        """Return a value that changes whenever refs are packed."""
        try:
            status = os.stat(f"{self.path}/packed-refs")  # noqa: PTH116 # a Path would double the cost
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def update_refs(self, updates: Sequence[RefUpdate]) -> None:
        """Move all refs or none; they have moved on disk when this returns. After a power cut some may have moved.

        Raises Busy when a ref does not have its old value, OSError on a full disk, Damaged otherwise.
        """
        git_command.sync_packs(self.path)
        commands = "\n".join(["start", *(_ref_command(update) for update in updates), "prepare", "commit", ""])
        while True:
            done = git_command.run([*_PATIENT, "update-ref", "--stdin"], self.path, commands.encode(), check=False)
            if not done.returncode:
                git_command.sync_refs(self.path, [update.ref for update in updates])
                return
            if not self._drop_left_lock(done.stderr):
                break
        rivalry = b"cannot lock ref" in done.stderr and b"No space left" not in done.stderr
        if rivalry and git_command.lock_in_the_way(done.stderr) is None:
            raise Busy(f"{self.path}: refs were not moved: {reason(done.stderr)}")
        fail(f"{self.path}: refs were not moved", done.stderr, self.path)

    def _drop_left_lock(self, stderr: bytes) -> bool:
        """Remove the lock file that git reports, if a killed git left it; return whether it is gone."""
        lock = git_command.lock_in_the_way(stderr)
        if lock is None:
            return False
        git_command.remove_left_locks(self.path)
        return not (self.path / lock).exists()

    # -- states ------------------------------------------------------------------------------------------------------

    def commit(self, oid: str) -> Commit:
        """Return the commit `oid`. Raises Damaged for another object, or a message that is not ours."""
        git_object = self._object(oid)
        if not isinstance(git_object, pygit2.Commit):
            raise Damaged(f"{self.path}: {oid} is no commit")
        parents = tuple(str(parent) for parent in git_object.parent_ids)
        return Commit(
            str(git_object.id),
            str(git_object.tree_id),
            parents,
            metadata.parse_message(git_object.message),
            git_object.commit_time,
        )

    def plain_commit(self, oid: str) -> PlainCommit:
        """Return a commit whose message may be of any kind. Raises Damaged for another object."""
        git_object = self._object(oid)
        if not isinstance(git_object, pygit2.Commit):
            raise Damaged(f"{self.path}: {oid} is no commit")
        parents = tuple(str(parent) for parent in git_object.parent_ids)
        return PlainCommit(
            str(git_object.tree_id), parents, git_object.message, git_object.author.name, git_object.commit_time
        )

    def tree_at(self, oid: str) -> str:
        """Return the tree of a commit of any kind. Raises Damaged for another object."""
        return self.plain_commit(oid).tree

    def tree_of(self, ref: str) -> tuple[str, str] | None:
        """Return commit and tree of a ref whose commits are of any kind; None without the ref."""
        oid = self.ref(ref)
        return None if oid is None else (oid, self.tree_at(oid))

    def commit_of(self, tag: metadata.CommitTag) -> str:
        """Return the commit of a snapshot. Raises NotFound for an unknown tag."""
        oid = self.ref(CRAWLS + metadata.compact_time(tag.crawl_time))
        if oid is None:
            raise NotFound(f"there is no snapshot {tag}")
        return oid

    def snapshot_tree(self, tag: metadata.CommitTag) -> str:
        """Return the tree of a snapshot. Raises NotFound for an unknown tag."""
        return self.commit(self.commit_of(tag)).tree

    def head(self) -> Commit | None:
        """Return the newest state; None before the first crawl."""
        oid, newest = self.ref(MAIN), self._newest
        if oid is None or (newest is not None and newest.oid == oid):
            return newest if oid else None
        newest = self._newest = self.commit(oid)
        return newest

    def history(self, oid: str | None) -> Iterator[Commit]:
        """Yield the commit `oid` and its ancestors, newest first; history is linear."""
        while oid is not None:
            commit = self.commit(oid)
            yield commit
            oid = commit.parents[0] if commit.parents else None

    def ids(self) -> Iterator[str]:
        """Yield the names of all objects, unordered, some twice. Raises Damaged where the index of a pack is."""
        try:
            for oid in self._odb:
                yield str(oid)
        except (ValueError, pygit2.GitError) as error:
            raise Damaged(f"{self.path}: its objects cannot be listed: {error}") from None

    def is_commit(self, oid: str) -> bool:
        """Return whether an object is a commit, without reading it. Raises Damaged."""
        try:
            kind: int = self._odb.read_header(oid)[0]
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise Damaged(f"{self.path}: object {oid} cannot be read: {error}") from None
        return kind == _COMMIT

    # -- publishing and upkeep ---------------------------------------------------------------------------------------

    def importer(self, tree: str | None) -> FastImport:
        """Return an importer of many files into `tree`; None for an empty one."""
        return FastImport(self.path, tree, self.read_tree)

    def files(self, tree: str, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield path and blob of each file below a tree, with `prefix` before the paths."""
        for entry in self.each(tree):
            path = f"{prefix}/{entry.name}"
            if entry.is_tree:
                yield from self.files(entry.oid, path)
            else:
                yield path, entry.oid

    def rewriting(self, tree: str | None) -> Rewriting:
        """Return a rewriter for many changes to `tree`, of files that are in the repository."""
        return Rewriting(self.path, tree, self.read_tree)

    def drop_scratch(self) -> None:
        """Remove remains of crashes: locks, scratch refs, unfinished packs, crash reports. Call it under the lock."""
        git_command.remove_left_locks(self.path)
        stale = self.refs(INCOMING)
        if stale:
            self.update_refs([RefUpdate(INCOMING + name, None, oid) for name, oid in stale.items()])
        for pattern in ("fast_import_crash_*", "objects/pack/tmp_*", "objects/pack/*.keep", "objects/??/tmp_obj_*"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)

    def check(self) -> list[str]:
        """Return the findings of `git fsck`, a line each; none for a sound repository."""
        code, findings = self._fsck()
        if code < 0:
            # git 2.39 reads beyond a commit-graph whose table of ids is damaged, and crashes (SIGBUS).
            without, others = self._fsck("-c", "core.commitGraph=false")
            what = "the commit-graph" if without >= 0 else "an object"
            findings = [*findings, f"git crashed by signal {-code}: {what} is damaged", *others]
        return findings or ([f"it ended with {code}, and did not say why"] if code else [])

    def _fsck(self, *settings: str) -> tuple[int, list[str]]:
        arguments = [*settings, "fsck", "--full", "--strict", "--no-dangling", "--no-progress"]
        done = git_command.run(arguments, self.path, check=False)
        lines = (done.stderr + done.stdout).decode("utf-8", "replace").splitlines()
        return done.returncode, [line for line in lines if not line.startswith("notice:")]


#: By file system: the files of an empty repository as git made one there, each behind the folders (None) above it. Git
#: notes what the file system can do.
_EMPTY: Final[Cache[int, dict[str, bytes | None]]] = Cache(16)


def _write_empty(folder: Path) -> None:
    """Write the files of an empty repository: git makes the first of a file system, and a crawl may make thousands."""
    file_system = folder.parent.stat().st_dev
    files = _EMPTY.held(file_system)
    if files is not None:
        folder.mkdir()
        for name, content in files.items():
            if content is None:
                (folder / name).mkdir()
            else:
                (folder / name).write_bytes(content)
        return
    git_command.run([*_INIT, str(folder)])
    for key, value in CONFIG.items():
        git_command.run(["config", "--file", str(folder / "config"), key, value])
    paths = sorted(folder.rglob("*"))
    made = {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in paths}
    _EMPTY.keep(file_system, made)  # in one step, after all was read: a part would be taken for the whole


def _ref_command(update: RefUpdate) -> str:
    if update.new is None:
        return f"delete {update.ref} {update.old or ''}".rstrip()
    return f"update {update.ref} {update.new} {update.old or _NO_OBJECT}"


# == transfer =========================================================================================================


#: The refs to copy: all but scratch refs of publications under way.
_REFS = tuple(f"{prefix}*" for prefix in ("refs/heads/", CRAWLS, PUBLICATIONS, SEEN, MET, FORMS, "refs/additions/"))
#: From this number of packs on, the small ones are merged.
_MANY_PACKS = 20


#: Git's files that end in a checksum of the bytes before it (gitformat-pack(5), gitformat-commit-graph(5)).
_SUMMED = (
    *(f"objects/pack/*.{kind}" for kind in ("pack", "idx", "rev", "bitmap", "mtimes")),
    "objects/pack/multi-pack-index",
    "objects/info/commit-graph",
    "objects/info/commit-graphs/*.graph",
)
_CHECKSUM = 20  # bytes, SHA-1
_SUMMED_AT_ONCE = 1 << 20


def fetch(source: Path, copy: Repository, refs: Sequence[str] = _REFS) -> None:
    """Update `copy` from the repository `source`, all refs in one transaction. Raises OSError, Damaged."""
    settings = ["-c", "fetch.unpackLimit=1", "-c", "pack.compression=1", "-c", "protocol.version=2"]
    git_command.remove_left_locks(copy.path)  # left by a killed backup
    command = ["fetch", "--quiet", "--atomic", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"]
    git_command.run([*settings, *command, str(source), *(f"+{ref}:{ref}" for ref in refs)], copy.path)


def differing(source: Repository, copy: Repository) -> list[str]:
    """Return the refs of `source` that `copy` lacks, or has with another target."""
    theirs = copy.refs("refs/")
    ours = source.refs("refs/")
    return [name for name, oid in ours.items() if not name.startswith(INCOMING) and theirs.get(name) != oid]


def rotten(repository: Path) -> list[str]:
    """Return the files of a repository that do not match their checksum, a line each.

    They are all read from the disk, and nothing is unpacked. Loose objects are left out: a copy has none.
    """
    findings = []
    for path in sorted(path for pattern in _SUMMED for path in repository.glob(pattern)):
        if not _fits(path):
            findings.append(f"{path.relative_to(repository)}: it does not fit its checksum")
    return findings


def _fits(path: Path) -> bool:
    digest, buffer = hashlib.sha1(usedforsecurity=False), memoryview(bytearray(_SUMMED_AT_ONCE))
    try:
        with path.open("rb", buffering=0) as file:
            left = os.fstat(file.fileno()).st_size - _CHECKSUM
            # Bytes in the page cache would say nothing of the disk; and other programs need that memory.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while left > 0:
                read = file.readinto(buffer[: min(left, _SUMMED_AT_ONCE)])
                if not read:
                    return False  # it was truncated just now
                digest.update(buffer[:read])
                left -= read
            same = file.read() == digest.digest()
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return same
    except OSError:
        return False  # the disk cannot even read it


def copy_objects(source: Path, oids: Iterable[str], pack: Path) -> frozenset[str]:
    """Write objects of the repository `source` into a pack of their own at `pack`, with its index beside it.

    Return their ids, which the pack's bytes gave, and nobody's word. Raises OSError on a full disk, else Damaged.
    """
    index = pack.with_suffix(".idx")
    for path in (pack, index):
        path.unlink(missing_ok=True)
    with pack.open("xb") as file:
        git_command.pack_objects(source, "".join(f"{oid}\n" for oid in oids).encode(), file.fileno())
        os.fsync(file.fileno())
    git_command.index_pack(pack)
    return ids_in(index)


def ids_in(index: Path) -> frozenset[str]:
    """Return the ids in the index of a pack; as many as can be read of a damaged one."""
    try:
        done = git_command.run(["show-index"], Path("/"), index.read_bytes(), check=False)
    except OSError:
        return frozenset()
    lines = (line.split() for line in done.stdout.decode("ascii", "replace").splitlines())
    return frozenset(words[1] for words in lines if len(words) > 1 and len(words[1]) == len(_NO_OBJECT))


def absent(repository: Path, oids: Iterable[str]) -> frozenset[str]:
    """Return those of the objects that a repository does not have. None is read."""
    listed = "".join(f"{oid}\n" for oid in oids).encode()
    done = git_command.run(["cat-file", "--batch-check=%(objectname)"], repository, listed)
    return frozenset(line.split()[0] for line in done.stdout.decode("ascii").splitlines() if line.endswith(" missing"))


def reachable(repository: Path, oids: Iterable[str]) -> frozenset[str]:
    """Return these objects, and all that they lead to. Raises Damaged where one of them cannot be read."""
    listed = "".join(f"{oid}\n" for oid in oids).encode()
    arguments = ["rev-list", "--objects", "--no-object-names", "--stdin"]
    return frozenset(git_command.run(arguments, repository, listed).stdout.decode("ascii").split())


def connected(store: Repository) -> list[str]:
    """Return the findings of `git fsck --connectivity-only`, a line each: every object reachable from a ref exists."""
    done = git_command.run(["fsck", "--connectivity-only", "--no-dangling", "--no-progress"], store.path, check=False)
    lines = (done.stderr + done.stdout).decode("utf-8", "replace").splitlines()
    findings = [line for line in lines if not line.startswith("notice:")]
    return findings if findings or not done.returncode else [reason(done.stderr)]


def tidy(store: Repository) -> None:
    """Merge small packs after many transfers (git-repack(1), `--geometric`)."""
    if sum(1 for _ in (store.path / "objects" / "pack").glob("*.pack")) > _MANY_PACKS:
        git_command.run(["repack", "-d", "-q", "--geometric=2"], store.path)
