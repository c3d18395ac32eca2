"""The git store: one bare repository a domain. The only module that touches pygit2.

Reading goes through pygit2, in this process; writing many objects goes through `git fast-import`, and refs move in
transactions of `git update-ref`, so that a publication is one compare-and-swap (/Ar-5…9/, DESIGN.md section 6).
Objects are named by their 40 hex digits, paths are `str` (bytes that are no UTF-8 travel as surrogates).

A `Store` may be read by several threads at once; it holds no lock and caches nothing that can change.
"""

from __future__ import annotations

import errno
import gc
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pygit2
from pygit2.enums import ConfigLevel, ObjectType, Option, RepositoryOpenFlag

from webarcfs.archive import commits, gitprocess
from webarcfs.archive.errors import Busy, Damaged, NotFound
from webarcfs.archive.gitprocess import fail, reason
from webarcfs.archive.importer import BIG_FILE, Importer
from webarcfs.archive.model import CET
from webarcfs.archive.repacks import Packs

MAIN = "refs/heads/main"
CRAWLS = "refs/crawls/"
PUBLICATIONS = "refs/publications/"
INCOMING = "refs/incoming/"

_LOCK_IN_THE_WAY = re.compile(rb"Unable to create '([^'\n]+\.lock)': File exists")
_STALE = 60.0  # seconds
_NO_OBJECT = "0" * 40
_TRIES = 30  # of writing an object
_MAP_AT_ONCE = 1 << 20
_MAP_AT_MOST = 64 << 20
_TREE = int(ObjectType.TREE)
_MODES = {True: b"40000", False: b"100644"}
_CONFIG = {
    "core.fsync": "all",  # git 2.39 syncs neither refs nor loose objects by default
    "core.bigFileThreshold": str(BIG_FILE),
    "core.logAllRefUpdates": "false",
    "gc.auto": "0",  # maintenance is ours, under the domain's lock
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a tree: a blob (file) or a tree (folder)."""

    name: str
    oid: str
    is_tree: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """A file that differs between two trees: the blob before and after, None where there is none."""

    path: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, its message read. `time` is seconds since 1970."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    message: commits.Message
    time: int


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """One step of a transaction: move `ref` from `old` to `new`; None for "does not exist", before or after."""

    ref: str
    new: str | None
    old: str | None


class Store:
    """The repository of one domain."""

    def __init__(self, path: Path) -> None:
        """Open the repository at `path`. Raises NotFound when there is none, Damaged when it is not one."""
        _configure_library()
        self.path = path
        if not path.is_dir():
            raise NotFound(f"there is no repository {path}")
        self._packs = Packs(path)
        self._open()

    def _open(self) -> None:
        try:
            self._repo = pygit2.Repository(str(self.path), RepositoryOpenFlag.NO_SEARCH)
        except pygit2.GitError as error:
            raise Damaged(f"{self.path} cannot be opened as a git repository: {error}") from None
        self._odb = self._repo.odb

    def let_go(self) -> bool:
        """Close packs that a repack removed, which libgit2 never does; whether there were any. One thread at a time."""
        if vanished := self._packs.vanished():
            self._open()  # readers in other threads finish with what they have
            gc.collect()  # a repository is a knot of references that only this undoes
        return vanished

    @classmethod
    def create(cls, path: Path) -> Store:
        """Make an empty bare repository at `path` in one step; one that somebody else made meanwhile is as good."""
        scratch = path.with_name(f".new-{os.getpid()}-{path.name}")
        shutil.rmtree(scratch, ignore_errors=True)
        gitprocess.run(["init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(scratch)])
        for key, value in _CONFIG.items():
            gitprocess.run(["config", "--file", str(scratch / "config"), key, value])
        try:
            scratch.rename(path)
        except OSError:
            shutil.rmtree(scratch)
            if not path.is_dir():
                raise
        return cls(path)

    # -- refs ----------------------------------------------------------------------------------------------------

    def ref(self, name: str) -> str | None:
        """What `name` points to, read from disk now; None when there is no such ref."""
        try:
            return str(self._repo.lookup_reference(name).target)
        except KeyError:
            return None
        except (pygit2.GitError, ValueError) as error:
            raise Damaged(f"{self.path}: {name} cannot be read: {error}") from None

    def refs(self, prefix: str) -> dict[str, str]:
        """All refs whose names start with `prefix`, in order of name, without the prefix."""
        names = sorted(name for name in self._repo.listall_references() if name.startswith(prefix))
        found = ((name, self.ref(name)) for name in names)
        return {name[len(prefix) :]: oid for name, oid in found if oid is not None}

    def update_refs(self, updates: Sequence[RefUpdate]) -> None:
        """Move all refs or none.

        Raises Busy when one of them is not where it was thought to be, OSError on a full disk, Damaged otherwise.
        """
        commands = "\n".join(["start", *(_ref_command(update) for update in updates), "prepare", "commit", ""])
        while True:
            done = gitprocess.run(["update-ref", "--stdin"], self.path, commands.encode(), check=False)
            if not done.returncode:
                return
            if not self._drop_stale_lock(done.stderr):
                break
        if b"cannot lock ref" in done.stderr and b"No space left" not in done.stderr:
            raise Busy(f"{self.path}: refs were not moved: {reason(done.stderr)}")
        fail(f"{self.path}: refs were not moved", done.stderr, self.path)

    def _drop_stale_lock(self, stderr: bytes) -> bool:
        """Remove the lock file that git fell over, if a crash left it; git itself holds one for milliseconds."""
        match = _LOCK_IN_THE_WAY.search(stderr)
        lock = self.path / os.fsdecode(match[1]) if match else None
        try:
            if lock is None or time.time() - lock.stat().st_mtime < _STALE:
                return False
            lock.unlink()
        except FileNotFoundError:
            pass  # its holder was done just now
        return True

    # -- objects -------------------------------------------------------------------------------------------------

    def entries(self, tree: str) -> list[Entry]:
        """What lies in a tree, in git's order."""
        found = self._tree(tree)
        return [Entry(os.fsdecode(each.raw_name or b""), str(each.id), each.type == _TREE) for each in found]

    def find(self, tree: str, path: str) -> Entry | None:
        """The entry at `path` below `tree`; None when there is none."""
        entry = Entry("", tree, True)
        for name in path.split("/") if path else []:
            if not entry.is_tree:
                return None
            try:
                found = self._tree(entry.oid)[name]
            except KeyError:
                return None
            entry = Entry(name, str(found.id), found.type == _TREE)
        return entry

    def read(self, blob: str) -> bytes:
        """A blob's bytes. For what may be big, `size` first, then `copy`."""
        kind, raw = self._raw(blob)
        if kind != ObjectType.BLOB:
            raise Damaged(f"{self.path}: {blob} is no blob")
        return raw

    def read_tree(self, tree: str) -> bytes:
        """A tree as git's bytes."""
        kind, raw = self._raw(tree)
        if kind != ObjectType.TREE:
            raise Damaged(f"{self.path}: {tree} is no tree")
        return raw

    def size(self, blob: str) -> int:
        """A blob's size in bytes, without reading the blob."""
        try:
            return int(self._odb.read_header(pygit2.Oid(hex=blob))[1])
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise Damaged(f"{self.path}: object {blob} cannot be read: {error}") from None

    def copy(self, blob: str, fd: int) -> None:
        """Write a blob of any size to the descriptor `fd`, in flat memory, in another process."""
        done = gitprocess.run(["cat-file", "blob", blob], self.path, check=False, stdout=fd)
        if done.returncode:
            raise Damaged(f"{self.path}: blob {blob} cannot be read: {reason(done.stderr)}")

    def commit(self, oid: str) -> Commit:
        """The commit `oid`. Raises Damaged when it is none, or its message is not ours."""
        found = self._object(oid)
        if not isinstance(found, pygit2.Commit):
            raise Damaged(f"{self.path}: {oid} is no commit")
        parents = tuple(str(parent) for parent in found.parent_ids)
        return Commit(str(found.id), str(found.tree_id), parents, commits.parse(found.message), found.commit_time)

    def head(self) -> Commit | None:
        """The newest state; None before the first crawl."""
        oid = self.ref(MAIN)
        return None if oid is None else self.commit(oid)

    def history(self, oid: str | None) -> Iterator[Commit]:
        """The commit `oid` and its ancestors, newest first; history is linear."""
        while oid is not None:
            commit = self.commit(oid)
            yield commit
            oid = commit.parents[0] if commit.parents else None

    def differences(self, old: str | None, new: str | None, prefix: str = "") -> Iterator[Difference]:
        """The files that differ between two trees, in order of path; equal subtrees cost nothing."""
        if old == new:
            return
        before = {entry.name: entry for entry in self.entries(old)} if old else {}
        after = {entry.name: entry for entry in self.entries(new)} if new else {}
        for name in sorted(before.keys() | after.keys()):
            was, now = before.get(name), after.get(name)
            if was == now:
                continue
            path = f"{prefix}{name}"
            old_blob, new_blob = _blob(was), _blob(now)
            if old_blob != new_blob:
                yield Difference(path, old_blob, new_blob)
            yield from self.differences(_tree(was), _tree(now), f"{path}/")

    def _tree(self, oid: str) -> pygit2.Tree:
        found = self._object(oid)
        if not isinstance(found, pygit2.Tree):
            raise Damaged(f"{self.path}: {oid} is no tree")
        return found

    def _object(self, oid: str) -> object:
        try:
            return self._repo[oid]
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise Damaged(f"{self.path}: object {oid} cannot be read: {error}") from None

    def _raw(self, oid: str) -> tuple[int, bytes]:
        try:
            kind, raw = self._odb.read(oid)
            return kind, raw
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise Damaged(f"{self.path}: object {oid} cannot be read: {error}") from None

    # -- writing -------------------------------------------------------------------------------------------------

    def write_blob(self, body: bytes) -> str:
        """Store a blob."""
        return self._written(lambda: self._repo.create_blob(body))

    def write_tree(self, entries: Sequence[Entry]) -> str:
        """Store a tree of these entries."""
        # Not by TreeBuilder: it takes names in UTF-8 only, and users may add files of any name.
        lines = sorted((os.fsencode(entry.name) + (b"/" if entry.is_tree else b""), entry) for entry in entries)
        raw = b"".join(
            b"%s %s\0%s" % (_MODES[entry.is_tree], os.fsencode(entry.name), bytes.fromhex(entry.oid))
            for _, entry in lines
        )
        return self._written(lambda: self._odb.write(ObjectType.TREE, raw))

    def write_commit(self, tree: str, parents: Sequence[str], message: str, author: tuple[str, str], when: int) -> str:
        """Store a commit; no ref moves. `author` is (name, mail), `when` seconds since 1970; times are in CET."""
        offset = int((CET.utcoffset(None)).total_seconds() // 60)
        wrote, committed = (pygit2.Signature(*who, when, offset) for who in (author, commits.COMMITTER))
        return self._written(lambda: self._repo.create_commit(None, wrote, committed, message, tree, list(parents)))

    def _written(self, write: Callable[[], object]) -> str:
        """What `write` stores. Libgit2's errors of writing as ours: OSError on a full disk, Damaged otherwise."""
        for left in reversed(range(_TRIES)):
            try:
                return str(write())
            except (pygit2.GitError, OSError) as error:
                # A repack may remove an empty objects/xx/ between its making and the moment an object is renamed there.
                if not left or os.strerror(errno.ENOENT) not in str(error):
                    fail(f"{self.path}: an object was not stored", str(error).encode(), self.path)
        raise AssertionError

    def edit(self, tree: str, changes: Mapping[str, str | None]) -> str:
        """`tree` with some files replaced: path → blob, or None to remove; folders left empty go."""
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
                entries[name] = Entry(name, blob, False)
        for name, inner in below.items():
            subtree = self._edit(_tree(entries.get(name)), inner)
            if subtree is not None:
                entries[name] = Entry(name, subtree, True)
            elif name in entries and entries[name].is_tree:
                del entries[name]
        return self.write_tree(list(entries.values())) if entries else None

    def importer(self, ref: str, base: str | None) -> Importer:
        """A stream of changes on top of commit `base`, to be committed on the scratch ref `ref`."""
        return Importer(self.path, ref, base)

    def scratch_tree(self, ref: str) -> str:
        """The tree that an importer left on `ref` (its commit has no message of ours)."""
        oid = self.ref(ref)
        if oid is None:
            raise Damaged(f"{self.path}: git fast-import left no {ref}")
        return str(self._repo[oid].peel(pygit2.Tree).id)

    def drop_scratch(self) -> None:
        """Remove what killed imports left: scratch refs, unfinished packs, crash reports. Call it under the lock."""
        stale = self.refs(INCOMING)
        if stale:
            self.update_refs([RefUpdate(INCOMING + name, None, oid) for name, oid in stale.items()])
        for pattern in ("fast_import_crash_*", "objects/pack/tmp_*", "objects/pack/*.keep", "objects/??/tmp_obj_*"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)

    def check(self) -> list[str]:
        """What `git fsck` finds wrong, a line each; an empty list is a sound repository."""
        done = gitprocess.run(["fsck", "--full", "--strict", "--no-dangling", "--no-progress"], self.path, check=False)
        lines = (done.stderr + done.stdout).decode("utf-8", "replace").splitlines()
        return [line for line in lines if not line.startswith("notice:")]


@cache
def _configure_library() -> None:
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)
    # Packs are mapped in small pieces, and few at a time: by default all that was touched of a pack stays in memory.
    pygit2.option(Option.SET_MWINDOW_SIZE, _MAP_AT_ONCE)
    pygit2.option(Option.SET_MWINDOW_MAPPED_LIMIT, _MAP_AT_MOST)
    # The repository's own settings only, as gitprocess has it; and a mount that was root may not look into root's home.
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        pygit2.option(Option.SET_SEARCH_PATH, level, "")


def _ref_command(update: RefUpdate) -> str:
    if update.new is None:
        return f"delete {update.ref} {update.old or ''}".rstrip()
    return f"update {update.ref} {update.new} {update.old or _NO_OBJECT}"


def _blob(entry: Entry | None) -> str | None:
    return None if entry is None or entry.is_tree else entry.oid


def _tree(entry: Entry | None) -> str | None:
    return entry.oid if entry is not None and entry.is_tree else None
