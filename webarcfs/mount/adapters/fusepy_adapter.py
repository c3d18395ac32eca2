"""Adapter on fusepy, libfuse 2's high-level API: it turns paths into nodes, and nodes into replies.

libfuse calls from any number of threads of its own, several at once. This API has one inode per path, so the kernel
would mix the pages of an old and a new version of a file: files are therefore opened with direct I/O, and neither names
nor attributes are cached. The handle of an open file keeps its node, and with it its version.

The operations of a mount that accepts additions follow those that read. The kernel caches nothing that needs
invalidation: so a close simply waits for the journal, where the low-level adapter replies later.

`serve` is libfuse 2's own loop, with its options, and names as bytes of the disk. It runs in the main thread; libfuse
starts the threads that call the operations.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import itertools
import os
import signal
import stat
import threading
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
    WebarcError,
)
from webarcfs.mount.adapters.binding import PID, AdapterContext
from webarcfs.mount.adapters.requests import REFUSED, STATS, Refusals, SlowRequests, errno_for
from webarcfs.mount.options import escaped
from webarcfs.vfs.content import Content
from webarcfs.vfs.node import Attrs, Caller, File, Folder, Node, NodeKind
from webarcfs.vfs.root import Symlink, Tree
from webarcfs.writing.drafts import DraftFile, Opened
from webarcfs.writing.service import Additions
from webarcfs.writing.writer import Writer

# == operations =======================================================================================================


# ruff: noqa: D102 # the methods are fusepy's operations; SEMANTICS.md specifies their answers


#: st_blksize; also the largest read that the kernel requests.
BLOCK = 128 * 1024
_TYPES = {NodeKind.FILE: stat.S_IFREG, NodeKind.FOLDER: stat.S_IFDIR, NodeKind.LINK: stat.S_IFLNK}
_STATVFS = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail", "f_namemax")


@dataclass(slots=True)
class Handle:
    """An open file or folder: the node as it was at open, and a file's content."""

    node: Node
    content: Content | None = None


class FusepyOperations(fuse.Operations):  # type: ignore[misc] # fusepy has no types
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


# == write operations =================================================================================================


# ruff: noqa: D102 # the methods are fusepy's operations; SEMANTICS.md specifies their answers


#: Flags by which libfuse creates a file for mknod(2); the kernel never sends exactly these.
_MKNOD = os.O_CREAT | os.O_EXCL | os.O_WRONLY
#: Operations that write, by what their arguments are about: an open file, a new or old name, a node.
_OF_HANDLE = frozenset(("write", "flush", "fsync", "release", "truncate"))
_OF_NAME = frozenset(("create", "mkdir", "mknod", "symlink", "link", "unlink", "rmdir", "rename"))
_OF_NODE = frozenset(("open", "truncate", "fsyncdir", "chmod", "chown", "utimens", "setxattr", "removexattr"))


class FusepyWritingOperations(FusepyOperations):
    """The operations of one mount."""

    def __init__(self, mount: AdapterContext, additions: Additions) -> None:
        super().__init__(mount)
        self._additions = additions
        self._opened: dict[int, Opened] = {}

    @property
    def _writer(self) -> Writer:
        return self._additions.ready()

    def _note_refusal(self, op: str, args: tuple[Any, ...], error: BaseException) -> None:
        opened = self._opened.get(args[-1].fh) if op in _OF_HANDLE and hasattr(args[-1], "fh") else None
        with contextlib.suppress(WebarcError):  # what it is about is no longer there
            if opened is not None:
                self._refusals.note(op, opened.draft.maker, (opened, ""), error)
            elif op in _OF_NAME:
                folder, _, name = args[op == "rename"].rpartition("/")
                self._refusals.note(op, caller().uid, (self._tree.find(folder), name), error)
            elif op in _OF_NODE and args[0] is not None:
                self._refusals.note(op, caller().uid, (self._tree.find(args[0]), ""), error)

    # -- names -------------------------------------------------------------------------------------------------------

    def create(self, path: str, _mode: int, fi: Any) -> int:  # type: ignore[override]
        folder, _slash, name = path.rpartition("/")
        is_mknod = fi.flags == _MKNOD  # libfuse closes it at once
        opened, node = (self._writer.make if is_mknod else self._writer.create)(self._looked_up(folder), name, caller())
        if is_mknod:
            self._writer.confirm(opened)
        return self._keep(opened, node, fi)

    def mkdir(self, path: str, _mode: int) -> None:
        folder, _slash, name = path.rpartition("/")
        self._writer.names.mkdir(self._looked_up(folder), name, caller())

    def rename(self, old: str, new: str) -> None:
        (folder, _, name), (target, _, new_name) = old.rpartition("/"), new.rpartition("/")
        self._writer.names.rename((self._tree.find(folder), name), (self._tree.find(target), new_name), 0, caller())

    def _may_change(self, path: str, *_: Any) -> None:
        self._writer.names.may_change(self._tree.find(path), caller())

    chmod = chown = utimens = _may_change

    def truncate(self, path: str, length: int, fi: Any = None) -> None:
        opened = self._opened.get(fi.fh) if fi is not None else None
        if opened is not None:
            self._writer.truncate(opened, length)
            return
        node = self._draft(self._tree.find(path))
        if not isinstance(node, DraftFile):
            raise node.refusal()
        kept = self._writer.cut(node.draft, length)
        if kept is not None:
            self._writer.release(kept)

    def unlink(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self._writer.names.unlink(self._tree.find(folder), name, caller())

    def rmdir(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self._writer.names.rmdir(self._tree.find(folder), name, caller())

    def _draft(self, node: Node) -> Node:
        """Return the draft of a version whose maker has it open for writing; else the node itself."""
        return self._writer.files.open_draft(node, caller()) or node

    def setxattr(self, path: str, name: str, *_: Any) -> None:
        node = self._tree.find(path)
        if not name.startswith("user.") or self._writer.names.is_recent(node):
            raise NotSupported(name)
        raise node.refusal()

    removexattr = setxattr

    # -- contents ----------------------------------------------------------------------------------------------------

    def open(self, path: str, fi: Any) -> int:
        if fi.flags & os.O_ACCMODE == os.O_RDONLY and not fi.flags & os.O_TRUNC:
            return super().open(path, fi)
        node = self._looked_up(path)
        if fi.flags & os.O_ACCMODE == os.O_RDONLY:
            raise node.refusal()
        node = self._draft(node)
        return self._keep(self._writer.open(node, fi.flags, caller()), node, fi)

    def read(self, path: str, size: int, offset: int, fi: Any) -> bytes:
        opened = self._opened.get(fi.fh)
        return opened.draft.read(offset, size) if opened else super().read(path, size, offset, fi)

    def write(self, _path: str, data: bytes, offset: int, fi: Any) -> int:
        # The kernel computes its own offset from the size that it knows, which other writers may have changed since.
        opened = self._opened[fi.fh]
        written = self._writer.write(opened, data, None if fi.flags & os.O_APPEND else offset)
        if fi.flags & os.O_DSYNC:  # the flags of this write; O_SYNC includes it
            self._writer.confirm(opened)
        return written

    def flush(self, path: str, fi: Any) -> int:
        opened = self._opened.get(fi.fh)
        if opened is not None:
            self._writer.closing(opened)
        return self.fsync(path, 0, fi)

    def fsync(self, _path: str, _data: int, fi: Any) -> int:
        opened = self._opened.get(fi.fh)
        if opened is not None and not self._writer.is_confirmed(opened):
            self._writer.confirm(opened)
        return 0

    def fsyncdir(self, path: str, _data: int, fh: int) -> int:
        done = threading.Event()
        failures: list[BaseException] = []

        def finish(error: BaseException | None) -> None:
            failures.extend([error] if error else [])
            done.set()

        handle = self._handles.get(fh)
        self._writer.sync_folder(handle.node if handle else self._tree.find(path), finish)
        done.wait()
        if failures:
            raise failures[0]
        return 0

    def release(self, path: str, fi: Any) -> int:
        opened = self._opened.pop(fi.fh, None)
        if opened is None:
            return super().release(path, fi)
        del self._handles[fi.fh]
        self._writer.release(opened)
        return 0

    def _keep(self, opened: Opened, node: Any, fi: Any) -> int:
        fi.fh = self._open(Handle(node))
        self._opened[fi.fh] = opened
        fi.direct_io = 1
        return 0


# == session ==========================================================================================================


_CODEC = "webarcfs-filenames"


def serve(mount: AdapterContext) -> None:
    """Mount, and answer requests until the mount is unmounted. Raises RuntimeError if libfuse could not mount."""
    # fusepy decodes names strictly: a name that is not UTF-8 would be an error instead of ENOENT.
    codecs.register(lambda name: _FILENAMES if name == _CODEC.replace("-", "_") else None)
    try:
        fuse.FUSE(
            FusepyWritingOperations(mount, mount.additions) if mount.additions is not None else FusepyOperations(mount),
            os.fspath(mount.point),
            raw_fi=True,
            encoding=_CODEC,
            foreground=True,
            use_ino=True,
            attr_timeout=0,
            entry_timeout=0,
            negative_timeout=0,
            nonempty=True,
            hard_remove=True,  # else libfuse renames open files that are removed or replaced, unseen by the mount
            big_writes=True,
            atomic_o_trunc=True,
            **{name: escaped(value) for name, value in mount.options.items()},
        )
    finally:
        # libfuse makes it deadly again when it ends: the last commit must survive a git that dies on a full disk.
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _encode(text: str, _errors: str = "strict") -> tuple[bytes, int]:
    return text.encode("utf-8", "surrogateescape"), len(text)


def _decode(raw: Any, _errors: str = "strict") -> tuple[str, int]:
    return bytes(raw).decode("utf-8", "surrogateescape"), len(raw)


_FILENAMES = codecs.CodecInfo(_encode, _decode, name=_CODEC)
