"""Adapter on fusepy, libfuse 2's high-level API: it turns paths into nodes, and nodes into replies.

libfuse calls from threads of its own, several at once. This API has one inode per path, so the kernel would mix the
pages of an old and a new version of a file: files are therefore opened with direct I/O, and neither names nor
attributes are cached. The handle of an open file keeps its node, and with it its version.
"""

# ruff: noqa: D102 # the methods are fusepy's operations; SEMANTICS.md specifies their answers
from __future__ import annotations

import errno
import itertools
import os
import stat
import time
from dataclasses import dataclass
from typing import Any

import fuse

from webarcfs.archive.model.errors import (
    Exists,
    IsADirectory,
    LookAgain,
    NoAttribute,
    NotADirectory,
    NotALink,
    NotFound,
    NotSupported,
    Stale,
)
from webarcfs.mount.adapters.binding import PID, AdapterContext
from webarcfs.mount.adapters.errno_map import errno_for
from webarcfs.mount.adapters.refusals import REFUSED, Refusals
from webarcfs.mount.adapters.request_stats import STATS
from webarcfs.mount.adapters.slow_requests import SlowRequests
from webarcfs.view.caller import Caller
from webarcfs.view.content import Content
from webarcfs.view.node import Attrs, File, Folder, Node, NodeKind
from webarcfs.view.tree.root import Tree
from webarcfs.view.tree.symlink import Symlink

#: st_blksize; also the largest read that the kernel requests.
BLOCK = 128 * 1024
_TYPES = {NodeKind.FILE: stat.S_IFREG, NodeKind.FOLDER: stat.S_IFDIR, NodeKind.LINK: stat.S_IFLNK}
_STATVFS = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail", "f_namemax")


@dataclass(slots=True)
class Handle:
    """An open file or folder: the node as it was at open, and a file's content."""

    node: Node
    content: Content | None = None


class Operations(fuse.Operations):  # type: ignore[misc] # fusepy has no types
    """The operations of one mount. The kernel handles those that are None here."""

    use_ns = True
    #: Open files need no path: a rename onto data.xml may have given the name to another file.
    flag_nullpath_ok = True
    access = bmap = ioctl = lock = None
    flush: Any = None
    fsync: Any = None
    fsyncdir: Any = None

    def __init__(self, mount: AdapterContext) -> None:
        self._mount = mount
        self._tree: Tree = mount.tree
        self._handles: dict[int, Handle] = {}
        self._numbers = itertools.count(1)
        self._refusals = Refusals()
        self._slow = SlowRequests(lambda path: str(path or "an open file"))

    def __call__(self, op: str, *args: Any) -> Any:
        """Dispatch every operation, and turn every exception into an errno."""
        begun, where = time.monotonic(), args[0] if args else ""
        try:
            if self._mount.requests:
                self._mount.requests.count(op)
            return getattr(self, op)(*args)
        except BaseException as error:
            self._note_refusal(op, args, error)
            raise fuse.FuseOSError(errno_for(error, op, where)) from None
        finally:
            self._slow.note(op, where, begun)

    def _note_refusal(self, op: str, args: tuple[Any, ...], error: BaseException) -> None:
        """Note why an operation that writes failed, for its user."""

    def init(self, _path: str) -> None:
        self._mount.live(None, None)

    # -- reading -----------------------------------------------------------------------------------------------------

    def getattr(self, path: str, fi: Any = None) -> dict[str, int]:
        node = self._tree.find(path) if fi is None else self._handles[fi.fh].node
        try:
            return self._stat(node.attrs())
        except Stale:  # an addition replaced it after the lookup, and git never stored that version
            return self._stat(self._tree.find(path).attrs())

    def readlink(self, path: str) -> str:
        node = self._tree.find(path)
        if not isinstance(node, Symlink):
            raise NotALink(path)
        return node.target

    def opendir(self, path: str) -> int:
        node = self._looked_up(path)
        if not isinstance(node, Folder):
            raise NotADirectory(path)
        return self._open(Handle(node))

    def readdir(self, _path: str, fh: int) -> list[tuple[str, dict[str, int] | None, int]]:
        node = self._handles[fh].node
        assert isinstance(node, Folder)
        children = node.in_force(lambda folder: list(folder.children()))
        listed = [(name, {"st_ino": child.ino, "st_mode": _TYPES[child.kind]}, 0) for name, child in children]
        return [(".", {"st_ino": node.ino, "st_mode": stat.S_IFDIR}, 0), ("..", None, 0), *listed]

    def releasedir(self, _path: str, fh: int) -> None:
        del self._handles[fh]

    def open(self, path: str, fi: Any) -> int:
        node = self._looked_up(path)
        if (fi.flags & os.O_ACCMODE) != os.O_RDONLY or fi.flags & os.O_TRUNC:
            raise node.refusal()
        if not isinstance(node, File):
            raise IsADirectory(path)
        fi.fh = self._open(Handle(node, node.open()))
        fi.direct_io = 1
        return 0

    def read(self, _path: str, size: int, offset: int, fi: Any) -> bytes:
        content = self._handles[fi.fh].content
        assert content is not None
        return content.read(offset, size)

    def release(self, _path: str, fi: Any) -> int:
        handle = self._handles.pop(fi.fh)
        if handle.content is not None:
            handle.content.close()
        return 0

    def listxattr(self, path: str) -> list[str]:
        node = self._tree.find(path)
        return [*node.xattrs(), *[REFUSED] * (self._refusals.of(node, caller().uid) is not None)]

    def getxattr(self, path: str, name: str) -> bytes:
        node = self._tree.find(path)
        if not name.startswith("user."):
            # After this answer, ls and cp stop asking for access control lists and capabilities.
            raise NotSupported(name)
        if node is self._tree.root and name == PID:
            return b"%d" % os.getpid()
        if node is self._tree.root and name == STATS and self._mount.requests:
            return str(self._mount.requests).encode()
        value = self._refusals.of(node, caller().uid) if name == REFUSED else node.xattrs().get(name)
        if value is None:
            raise NoAttribute(name)
        return value

    def statfs(self, _path: str) -> dict[str, int]:
        below = os.statvfs(self._mount.archive.root)
        return {name: getattr(below, name) for name in _STATVFS}

    # -- attempts to write: all refused (SEMANTICS.md) ---------------------------------------------------------------

    def _refuse_change(self, path: str, *_: Any) -> None:
        raise self._tree.find(path).refusal()

    chmod = chown = truncate = unlink = rmdir = utimens = removexattr = setxattr = _refuse_change

    def _refuse_new(self, path: str, *_: Any) -> None:
        folder, _slash, name = path.rpartition("/")
        parent = self._tree.find(folder)
        try:
            self._tree.child(parent, name)
        except NotFound:
            raise parent.refusal() from None
        raise Exists(path)

    create = mkdir = mknod = symlink = _refuse_new

    def link(self, new: str, _old: str) -> None:
        self._refuse_new(new)

    def rename(self, old: str, new: str) -> None:
        node = self._tree.find(old)
        parent = self._tree.find(new.rpartition("/")[0])
        raise (parent if parent.old else node).refusal()

    def write(self, *_: Any) -> int:
        raise OSError(errno.EBADF, "no file is open for writing")

    # ----------------------------------------------------------------------------------------------------------------

    def _looked_up(self, path: str) -> Node:
        """Return the node that the kernel has just looked up by this path.

        Raises Stale if it was removed since: the kernel then looks again. ENOENT would reach the program, even one that
        may create the file.
        """
        try:
            return self._tree.find(path)
        except NotFound as error:
            raise LookAgain(str(error)) from None

    def _open(self, handle: Handle) -> int:
        number = next(self._numbers)
        self._handles[number] = handle
        return number

    def _stat(self, attrs: Attrs) -> dict[str, int]:
        time = attrs.mtime * 10**9
        return {
            "st_mode": _TYPES[attrs.kind] | attrs.mode(self._mount.folder_mode),
            "st_ino": attrs.ino,
            "st_nlink": attrs.nlink,
            "st_size": attrs.size,
            "st_blocks": -(-attrs.size // 512),
            "st_blksize": BLOCK,
            "st_uid": self._mount.uid if attrs.owner is None else attrs.owner,
            "st_gid": self._mount.gid,
            "st_mtime": time,
            "st_ctime": time,
            "st_atime": time,
        }


def caller() -> Caller:
    """Return the user of the process that sent the request of this thread."""
    uid, gid, _pid = fuse.fuse_get_context()
    return Caller(uid, gid)
