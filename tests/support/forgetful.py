"""A file system that forgets what was not synced: to see what an archive is after a power cut.

It lives in memory (fusepy). Names and bytes are kept apart from what fsync has made safe; `Forgetful.cut` ends it at
once, amid whatever is going on, and keeps what a disk might have had then. Two models of a disk:

- `ordered`: names change in order, as in the journals of ext4 and xfs. Any fsync makes all earlier changes of names
  safe; of later ones the disk has the first few, or none.
- `posix`: only what the standard promises. fsync of a folder makes the names in it safe, and nothing else does; of all
  other changes of names the disk has any, whatever their order (btrfs comes near that).

In both a file's bytes are safe after an fsync of that file and not before; of later writes the disk has any, or none.
With `some`, chance decides what it has beyond what is safe; else it has nothing of that. The power is away for an hour:
all times are that much older afterwards. There is no O_TMPFILE, as with many file systems; flock, links and shared
mappings work.

`python -m tests.support.forgetful POINT STATE` is the file system: it begins with what is in the file STATE, and puts
there what is left.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import pickle
import random
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fuse

from tests.support.mounts import DETACH, run
from tests.support.waiting import eventually

CUT = "user.cut"
MODELS = ("ordered", "posix")
_HIDDEN = ".fuse_hidden"
_AWAY = 3600 * 10**9
_numbers = itertools.count(1)


@dataclass(eq=False)
class Node:
    """A file or a folder: as it is seen, and what of it is safe."""

    mode: int
    uid: int = 0
    gid: int = 0
    mtime: int = 0
    links: int = 1
    data: bytearray = field(default_factory=bytearray)
    safe: bytearray = field(default_factory=bytearray)
    #: Writes (offset, bytes) and truncations (size) since the last fsync.
    later: list[tuple[int, bytes] | int] = field(default_factory=list)
    names: dict[str, Node] = field(default_factory=dict)
    #: Name → what a disk has for it, and the change that it comes from.
    safe_names: dict[str, tuple[Node | None, int]] = field(default_factory=dict)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


@dataclass(frozen=True, eq=False)
class Change:
    """A change of names, all of it or nothing: a rename has two."""

    number: int
    names: tuple[tuple[Node, str, Node | None], ...]


class Disk:
    """The tree, and which changes of names are not safe yet."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.changes: list[Change] = []

    def change(self, *names: tuple[Node, str, Node | None]) -> None:
        """Change names."""
        for folder, name, node in names:
            folder.mtime = time.time_ns()
            if node is None:
                del folder.names[name]
            else:
                folder.names[name] = node
        self.noted(*names)

    def noted(self, *names: tuple[Node, str, Node | None]) -> None:
        """Names have been changed."""
        self.changes.append(Change(next(_numbers), names))

    def sync(self, node: Node, model: str) -> None:
        """fsync(2)."""
        for each in node.later:
            _apply(node.safe, each)
        node.later.clear()
        safe = [
            change
            for change in self.changes
            if model == "ordered" or any(folder is node for folder, _, _ in change.names)
        ]
        for change in safe:
            _keep(change)
            self.changes.remove(change)

    def cut(self, model: str, chance: random.Random | None) -> Node:
        """What a disk has now. Without `chance`, only what is safe."""
        if chance is not None:
            kept = self.changes[: chance.randrange(len(self.changes) + 1)] if model == "ordered" else self.changes
            for change in kept:
                if model == "ordered" or chance.random() < 0.5:
                    _keep(change)
        return _survivor(self.root, chance, {})


def _keep(change: Change) -> None:
    for folder, name, node in change.names:
        if folder.safe_names.get(name, (None, 0))[1] < change.number:
            folder.safe_names[name] = node, change.number


def _apply(data: bytearray, later: tuple[int, bytes] | int) -> None:
    if isinstance(later, int):
        del data[later:]
        data.extend(bytes(later - len(data)))
    else:
        at, piece = later
        data.extend(bytes(max(0, at - len(data))))
        data[at : at + len(piece)] = piece


def _survivor(node: Node, chance: random.Random | None, known: dict[Node, Node]) -> Node:
    if node in known:
        known[node].links += 1
        return known[node]
    new = known[node] = Node(node.mode, node.uid, node.gid, node.mtime - _AWAY)
    if node.is_folder:
        for name, (inner, _) in node.safe_names.items():
            if inner is not None:
                new.names[name] = _survivor(inner, chance, known)
        new.safe_names = {name: (inner, 0) for name, inner in new.names.items()}
    else:
        new.safe = bytearray(node.safe)
        for each in node.later if chance is not None else ():
            if chance.random() < 0.5:
                _apply(new.safe, each)
        new.data = bytearray(new.safe)
    return new


class Operations(fuse.Operations):  # type: ignore[misc] # fusepy has no types
    """What the kernel asks; one thing at a time."""

    use_ns = True

    def __init__(self, state: Path, model: str) -> None:
        self._state = state
        self._model = model
        sys.setrecursionlimit(100_000)
        found = (
            pickle.loads(state.read_bytes()) if state.exists() else Node(stat.S_IFDIR | 0o755, os.getuid(), os.getgid())
        )
        self._disk = Disk(found)
        self._handles: dict[int, Node] = {}
        self._hidden: tuple[Node, str] | None = None

    def __call__(self, operation: str, *arguments: Any) -> Any:
        if not hasattr(self, operation):
            raise OSError(errno.ENOSYS, operation)
        if self._hidden is not None:
            hidden, self._hidden = self._hidden, None
            if operation != "rename" or self._spot(arguments[1]) != hidden:
                self._disk.noted((*hidden, None))
        return getattr(self, operation)(*arguments)

    def _node(self, path: str | None, handle: int | None = None) -> Node:
        if handle is not None and handle in self._handles:
            return self._handles[handle]
        node = self._disk.root
        for name in (path or "").split("/"):
            if name and name not in node.names:
                raise OSError(errno.ENOENT, path)
            node = node.names[name] if name else node
        return node

    def _spot(self, path: str) -> tuple[Node, str]:
        folder, _, name = path.rpartition("/")
        return self._node(folder), name

    def _made(self, mode: int) -> Node:
        uid, gid, _ = fuse.fuse_get_context()
        return Node(mode, uid, gid, time.time_ns())

    def _opened(self, node: Node) -> int:
        handle = next(_numbers)
        self._handles[handle] = node
        return handle

    # -- names -------------------------------------------------------------------------------------------------------

    def getattr(self, path: str | None, fh: int | None = None) -> dict[str, int]:
        node = self._node(path, fh)
        size = len(node.data)
        times = {"st_atime": node.mtime, "st_mtime": node.mtime, "st_ctime": node.mtime}
        owner = {"st_mode": node.mode, "st_uid": node.uid, "st_gid": node.gid, "st_nlink": node.links}
        return times | owner | {"st_size": size, "st_blocks": -(-size // 512)}

    def readdir(self, path: str, _fh: int) -> list[str]:
        return [".", "..", *(name for name in self._node(path).names if not name.startswith(_HIDDEN))]

    def create(self, path: str, mode: int) -> int:
        node = self._made(stat.S_IFREG | stat.S_IMODE(mode))
        self._disk.change((*self._spot(path), node))
        return self._opened(node)

    def mkdir(self, path: str, mode: int) -> None:
        self._disk.change((*self._spot(path), self._made(stat.S_IFDIR | stat.S_IMODE(mode))))

    def unlink(self, path: str) -> None:
        folder, name = self._spot(path)
        if name.startswith(_HIDDEN):
            del folder.names[name]
        else:
            self._node(path).links -= 1
            self._disk.change((folder, name, None))

    def rmdir(self, path: str) -> None:
        if self._node(path).names:
            raise OSError(errno.ENOTEMPTY, path)
        self._disk.change((*self._spot(path), None))

    def rename(self, old: str, new: str) -> None:
        node, (folder, name) = self._node(old), self._spot(new)
        if name.startswith(_HIDDEN):
            # libfuse's way to remove a file that is open, or to have another renamed onto it, which comes next then.
            above, old_name = self._hidden = self._spot(old)
            folder.names[name] = above.names.pop(old_name)
            node.links -= 1
            return
        over = folder.names.get(name)
        if over is node:
            return
        if over is not None and over.names:
            raise OSError(errno.ENOTEMPTY, new)
        if over is not None:
            over.links -= 1
        self._disk.change((folder, name, node), (*self._spot(old), None))

    def link(self, target: str, source: str) -> None:
        node = self._node(source)
        node.links += 1
        self._disk.change((*self._spot(target), node))

    # -- what is in them ---------------------------------------------------------------------------------------------

    def open(self, path: str, flags: int) -> int:
        if flags & os.O_TRUNC:
            self.truncate(path, 0)
        return self._opened(self._node(path))

    def read(self, path: str | None, size: int, offset: int, fh: int) -> bytes:
        return bytes(self._node(path, fh).data[offset : offset + size])

    def write(self, path: str | None, data: bytes, offset: int, fh: int) -> int:
        self._write(self._node(path, fh), (offset, data))
        return len(data)

    def truncate(self, path: str | None, length: int, fh: int | None = None) -> None:
        self._write(self._node(path, fh), length)

    def _write(self, node: Node, what: tuple[int, bytes] | int) -> None:
        _apply(node.data, what)
        node.later.append(what)
        node.mtime = time.time_ns()

    def release(self, _path: str | None, fh: int) -> None:
        self._handles.pop(fh, None)

    def flush(self, _path: str | None, _fh: int) -> None:
        """Nothing is safe by a close."""

    def fsync(self, path: str | None, _datasync: int, fh: int) -> None:
        self._disk.sync(self._node(path, fh), self._model)

    def fsyncdir(self, path: str, _datasync: int, _fh: int) -> None:
        self._disk.sync(self._node(path), self._model)

    # -- the rest ----------------------------------------------------------------------------------------------------

    def chmod(self, path: str, mode: int) -> None:
        node = self._node(path)
        node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(mode)

    def chown(self, path: str, uid: int, gid: int) -> None:
        node = self._node(path)
        node.uid, node.gid = (node.uid if uid < 0 else uid), (node.gid if gid < 0 else gid)

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> None:
        self._node(path).mtime = times[1] if times else time.time_ns()

    def statfs(self, _path: str) -> dict[str, int]:
        blocks = {"f_blocks": 1 << 20, "f_bfree": 1 << 20, "f_bavail": 1 << 20}
        return blocks | {"f_bsize": 4096, "f_frsize": 4096, "f_namemax": 255}

    def access(self, _path: str, _mode: int) -> None:
        """The kernel checks permissions."""

    def setxattr(self, _path: str, name: str, value: bytes, _options: int, _position: int = 0) -> None:
        if name != CUT:
            raise OSError(errno.EOPNOTSUPP, name)
        chance = random.Random(value) if value else None
        left = self._disk.cut(self._model, chance)
        self._state.write_bytes(pickle.dumps(left))
        os._exit(0)

    def getxattr(self, _path: str, name: str, _position: int = 0) -> bytes:
        raise OSError(errno.ENODATA, name)


class Forgetful:
    """Such a file system, mounted on `point`; `state` is a file elsewhere that keeps it over a cut."""

    def __init__(self, point: Path, state: Path, model: str) -> None:
        point.mkdir(exist_ok=True)
        self.point = point
        command = [sys.executable, "-m", "tests.support.forgetful", str(point), str(state), model]
        self._process = subprocess.Popen(command, cwd=Path(__file__).parent.parent.parent)
        try:
            eventually(lambda: self._process.poll() is not None or os.path.ismount(point), 60)
            assert self._process.poll() is None
        except BaseException:
            self.clear()
            raise

    def cut(self, seed: bytes = b"") -> None:
        """Power is gone, from one moment to the next. Whoever has a file open there gets errors from now on."""
        with contextlib.suppress(OSError):
            os.setxattr(self.point, CUT, seed)
        self._process.wait(60)

    def clear(self) -> None:
        """No mount and no process is left."""
        self._process.kill()
        self._process.wait()
        run(*DETACH, self.point)


@contextlib.contextmanager
def forgetful(point: Path, state: Path, model: str) -> Iterator[Forgetful]:
    """One that is gone afterwards."""
    disk = Forgetful(point, state, model)
    try:
        yield disk
    finally:
        disk.clear()


def main() -> None:
    """Be one."""
    point, state, model = sys.argv[1:]
    # Only root may let others in, unless /etc/fuse.conf says otherwise.
    others = {"allow_other": os.geteuid() == 0}
    options = {"foreground": True, "nothreads": True, "default_permissions": True, **others}
    more = {"big_writes": True, "fsname": "forgetful"}
    fuse.FUSE(Operations(Path(state), model), point, **options, **more)


if __name__ == "__main__":
    main()
