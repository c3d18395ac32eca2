"""Adapter on libfuse 3's low-level API: it turns inodes into nodes, and nodes into the kernel's own bytes.

A file's inode is one version of it for ever, so the kernel keeps names, attributes, listings and pages without asking,
until invalidation.py drops what a publication changed. Several threads bring requests (session.py); none waits for
that. On a read-only mount not even open arrives here: the version is then the one that the kernel looked up.

What the kernel asks for all the same, on a writable mount: an open and a release for each file; a getattr of an inode
after its first read, since it forgets the atime whenever it reads from us; an ioctl where a program asks whether a file
is a terminal. For the reason of a refusal, what a request that writes is about is read from the arguments of libfuse's
callbacks.

Slow answers have threads of their own: closes wait for the journal and for invalidations by the kernel; conditions take
any time. A request thread must not wait for an invalidation: the kernel holds it back until the requests in that folder
are answered. Nor may a worker, if a rename is queued behind it: the kernel holds a rename's folder until its answer.
Renames therefore have a thread of their own, which notifies the kernel only after the answer.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

from webarcfs.archive.model.errors import Exists, IsADirectory, NoAttribute, NotALink, NotFound, NotSupported
from webarcfs.mount.adapters.binding import PID, AdapterContext
from webarcfs.mount.adapters.requests import REFUSED, STATS, Refusals
from webarcfs.mount.kernel import readdir
from webarcfs.mount.kernel.inode_table import Inodes, OpenContents, undo
from webarcfs.mount.kernel.readdir import ALWAYS, END, Lister
from webarcfs.vfs.content import Content, Small
from webarcfs.vfs.node import Attrs, Caller, File, Folder, Node
from webarcfs.vfs.root import Symlink, Table, Tree
from webarcfs.writing.drafts import DraftFile

# == refused requests =================================================================================================


#: An inode, the name in it (or none), the handle (or 0).
Subject = tuple[int, bytes, int]


def _name_in(parent: int, name: bytes, *_: Any) -> Subject:
    return parent, name, 0


def _second_name(_first: Any, parent: int, name: bytes, *_: Any) -> Subject:
    return parent, name, 0


def _new_name(_parent: int, _name: bytes, new_parent: int, new_name: bytes, *_: Any) -> Subject:
    return new_parent, new_name, 0


def _file(inode: int, *rest: Any) -> Subject:
    return inode, b"", rest[-1].contents.fh if rest and rest[-1] else 0


def _inode(inode: int, *_: Any) -> Subject:
    return inode, b"", 0


#: Operation → what its arguments, without the request, are about.
SUBJECTS: Mapping[str, Callable[..., Subject]] = {
    "create": _name_in,
    "mkdir": _name_in,
    "mknod": _name_in,
    "unlink": _name_in,
    "rmdir": _name_in,
    "symlink": _second_name,
    "link": _second_name,
    "rename": _new_name,
    "open": _inode,
    "setattr": _file,
    "write": _file,
    "fallocate": _file,
    "flush": _file,
    "fsync": _file,
    "fsyncdir": _inode,
    "setxattr": _inode,
    "removexattr": _inode,
}


# == workers ==========================================================================================================


#: Sends an answer; any thread may call it, once.
Answer = Callable[[bytes | int | BaseException], None]

#: Concurrent closes: one for each large file, and one for all others of a domain (write_operations.py).
THREADS = 16
#: Requests that wait for the answer to a condition; most of them wait for their turn (query_answers.py).
ASKING = 64

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeferredReply:
    """An answer that is sent later: `start` returns at once."""

    start: Callable[[Answer], None]


class Workers:
    """The threads of one mount, started on demand."""

    def __init__(self) -> None:
        self._closes = ThreadPoolExecutor(THREADS, "closes")
        self._renames = ThreadPoolExecutor(1, "renames")
        self._asking = ThreadPoolExecutor(ASKING, "asking")

    def close(self, work: Callable[[], None]) -> DeferredReply:
        """Run `work`; the answer is 0, or the exception that it raised."""
        return DeferredReply(lambda answer: self._submit(self._closes, answer, work))

    def ask(self, work: Callable[[], bytes]) -> DeferredReply:
        """Run `work`; the answer is its result or exception. It must not wait for a notification of the kernel."""
        return DeferredReply(lambda answer: self._submit(self._asking, answer, work))

    def rename(self, work: Callable[[], Callable[[], None]]) -> DeferredReply:
        """Run `work`, which holds a folder in the kernel; call its result after the answer."""
        return DeferredReply(lambda answer: self._submit(self._renames, answer, lambda: self._renamed(work)))

    def _renamed(self, work: Callable[[], Callable[[], None]]) -> None:
        self._closes.submit(_safely, work())

    def release(self, work: Callable[[], None]) -> None:
        """Run `work` without an answer."""
        self._closes.submit(_safely, work)

    def stop(self) -> None:
        """Finish all work; conditions that wait for their turn get no answer."""
        self._asking.shutdown(cancel_futures=True)
        self._renames.shutdown()
        self._closes.shutdown()

    @staticmethod
    def _submit(executor: ThreadPoolExecutor, answer: Answer, work: Callable[[], bytes | None]) -> None:
        executor.submit(_safely, lambda: _answered(answer, work))


def _answered(answer: Answer, work: Callable[[], bytes | None]) -> None:
    try:
        reply = work()
    except BaseException as error:
        answer(error)
        return
    answer(0 if reply is None else reply)


def _safely(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        _log.exception("failed unexpectedly")


# == operations =======================================================================================================


# ruff: noqa: D102 # the methods are the operations of libfuse; SEMANTICS.md specifies their answers


#: Operations whose first argument is the caller.
CALLED = frozenset(
    ("create", "getxattr", "listxattr", "mkdir", "mknod", "open", "rename", "rmdir", "setattr", "unlink")
)

#: The answer to open where no handle is needed: the inode identifies the version.
_OPENED = readdir.opened(0, readdir.KEEP_CACHE | readdir.NOFLUSH)


class Operations:
    """The operations of one mount: each returns its answer as bytes, or raises.

    Those in `CALLED` take the caller as their first argument.
    """

    #: Whether the mount accepts writes.
    writes: ClassVar[bool] = False

    def __init__(
        self, mount: AdapterContext, inodes: Inodes, workers: Workers, hand_over: Callable[[], None] | None = None
    ) -> None:
        self._mount = mount
        self._inodes = inodes
        self._workers = workers
        self._read_only = bool(mount.options.get("ro"))
        self._owned = readdir.Owned(mount.uid, mount.gid, mount.folder_mode)
        self._lister = Lister(inodes, self._entry, self._owned)
        self._numbers = itertools.count(1)
        self._handles: dict[int, Content] = {}
        self._kept = OpenContents()
        self._refusals = Refusals()
        # Called before work that may take long: another thread then receives requests.
        self._hand_over: Callable[[], None] = hand_over or _go_on

    # -- names -------------------------------------------------------------------------------------------------------

    def lookup(self, parent: int, name: bytes) -> bytes | DeferredReply:
        folder, text = self._inodes.node(parent), os.fsdecode(name)
        if _is_slow(folder, text):
            return self._workers.ask(lambda: self._lookup(folder, parent, text))
        if isinstance(folder, Table):
            self._hand_over()  # taking over a domain may wait for its lock
        return self._lookup(folder, parent, text)

    def _lookup(self, folder: Node, parent: int, name: str) -> bytes:
        names_cacheable = not isinstance(folder, Folder) or folder.names_cacheable
        try:
            node = Tree.child(folder, name)
        except NotFound:
            if not names_cacheable:
                raise  # the kernel does not cache an error
            return readdir.no_entry()
        return self._entry(node, parent, name, ALWAYS if names_cacheable else 0)

    def _entry(self, node: Node, parent: int, name: str, valid: int = ALWAYS) -> bytes:
        """Return the entry of a node; the kernel may keep the name for `valid` seconds."""
        attrs = node.attrs()  # first: if it raises, the node must not be counted
        return self._owned.entry(self._inodes.add(node, parent, name), attrs, _valid(node, attrs), valid)

    def lookup_undone(self, reply: bytes) -> None:
        """Undo a lookup whose answer the kernel rejected: the calling process was killed meanwhile."""
        undo(self._inodes, [readdir.first_number(reply)])

    def forget(self, inode: int, lookups: int) -> None:
        if self._inodes.forget(inode, lookups):
            self._kept.forget(inode)

    def getattr(self, inode: int, _fi: Any) -> bytes:
        node = self._inodes.node(inode)
        attrs = node.attrs()
        return self._owned.attr(attrs, _valid(node, attrs))

    def readlink(self, inode: int) -> bytes:
        node = self._inodes.node(inode)
        if not isinstance(node, Symlink):
            raise NotALink(f"inode {inode}")
        return os.fsencode(node.target)

    # -- folders -----------------------------------------------------------------------------------------------------

    def opendir(self, _inode: int, _fi: Any) -> int:
        return errno.ENOSYS  # from now on the kernel opens folders without a request, and keeps their listings

    def readdir(self, inode: int, size: int, offset: int, _fi: Any) -> bytes | DeferredReply:
        if offset & END:
            return b""
        if _is_slow(self._inodes.node(inode)):
            return self._workers.ask(lambda: self._lister.names(inode, size, offset))
        return self._lister.names(inode, size, offset)

    def readdirplus(self, inode: int, size: int, offset: int, _fi: Any) -> bytes | DeferredReply:
        if offset & END:  # the kernel always sends one more request after the last entry
            return b""
        if _is_slow(self._inodes.node(inode)):
            return self._workers.ask(lambda: self._lister.nodes(inode, size, offset))
        return self._lister.nodes(inode, size, offset)

    def readdirplus_undone(self, reply: bytes) -> None:
        """Undo an answer that the kernel rejected."""
        undo(self._inodes, readdir.nodeids(reply))

    # -- contents ----------------------------------------------------------------------------------------------------

    def open(self, _caller: Caller, inode: int, fi: Any) -> bytes | int | DeferredReply:
        node = self._inodes.named(inode)
        if (fi.contents.flags & os.O_ACCMODE) != os.O_RDONLY or fi.contents.flags & os.O_TRUNC:
            raise node.refusal()
        if not isinstance(node, File):
            raise IsADirectory(f"inode {inode}")
        if self._read_only:
            return errno.ENOSYS  # from now on the kernel opens files without a request
        content = node.open()
        if isinstance(content, Small):  # each read opens it again; there is no handle to keep or release
            content.close()
            return _OPENED
        handle = next(self._numbers)
        self._handles[handle] = content
        return readdir.opened(handle, readdir.KEEP_CACHE | readdir.NOFLUSH)

    def open_undone(self, reply: bytes) -> None:
        """Undo an answer that the kernel rejected."""
        handle = readdir.first_number(reply)
        if handle:
            self._handles.pop(handle).close()

    def read(self, inode: int, size: int, offset: int, fi: Any) -> bytes:
        content = self._handles.get(fi.contents.fh)
        if content is not None:
            self._hand_over()  # the read may have to fetch the whole file from git
            return content.read(offset, size)
        node = self._inodes.node(inode)
        if not isinstance(node, File):
            raise IsADirectory(f"inode {inode}")
        return self._kept.read(inode, node, offset, size)

    def flush(self, _inode: int, _fi: Any) -> int | DeferredReply:
        return errno.ENOSYS if self._read_only else 0

    def release(self, _inode: int, fi: Any) -> int:
        handle = fi.contents.fh
        content = self._handles.pop(handle, None) if handle else None
        if content is not None:
            content.close()
        return 0

    def ioctl(self, *_: Any) -> int:
        return errno.ENOTTY

    # -- attributes --------------------------------------------------------------------------------------------------

    def statfs(self, _inode: int) -> bytes:
        return readdir.statfs(os.statvfs(self._mount.archive.root))

    def getxattr(self, caller: Caller, inode: int, name: bytes, size: int) -> bytes | int:
        text = os.fsdecode(name)
        node = self._inodes.node(inode)
        if not text.startswith("user."):
            # After this answer, ls and cp stop asking for access control lists and capabilities.
            raise NotSupported(text)
        value = self._of_root(text) if node is self._mount.tree.root else None
        value = self._refusals.of(node, caller.uid) if text == REFUSED else value
        value = node.xattrs().get(text) if value is None else value
        if value is None:
            raise NoAttribute(text)
        return _sized(value, size)

    def listxattr(self, caller: Caller, inode: int, size: int) -> bytes | int:
        node = self._inodes.node(inode)
        names = [*node.xattrs(), *[REFUSED] * (self._refusals.of(node, caller.uid) is not None)]
        return _sized(b"".join(os.fsencode(name) + b"\0" for name in names), size)

    def refused(self, operation: str, uid: int, subject: Subject, error: BaseException) -> None:
        """Note why a request that writes failed, for that user."""

    def _of_root(self, name: str) -> bytes | None:
        if name == PID:
            return b"%d" % os.getpid()
        return str(self._mount.requests).encode() if name == STATS and self._mount.requests else None

    # -- attempts to write: all refused (SEMANTICS.md) ---------------------------------------------------------------

    # One method each, though they are alike: a compiled class cannot alias methods (compiled/loader.py).

    def setattr(self, _caller: Caller, inode: int, _attr: int, _to_set: int, _fi: Any) -> bytes:
        raise self._inodes.node(inode).refusal()

    def setxattr(self, inode: int, _name: bytes, *_: Any) -> bytes:
        raise self._inodes.node(inode).refusal()

    def removexattr(self, inode: int, _name: bytes) -> bytes:
        raise self._inodes.node(inode).refusal()

    def unlink(self, _caller: Caller, parent: int, name: bytes) -> bytes | int | DeferredReply:
        raise Tree.child(self._known(parent, name), os.fsdecode(name)).refusal()

    def rmdir(self, _caller: Caller, parent: int, name: bytes) -> bytes | int | DeferredReply:
        raise Tree.child(self._known(parent, name), os.fsdecode(name)).refusal()

    def create(self, _caller: Caller, parent: int, name: bytes, _mode: int, _fi: Any) -> bytes:
        return self._refuse_new(parent, name)

    def mkdir(self, _caller: Caller, parent: int, name: bytes, _mode: int) -> bytes:
        return self._refuse_new(parent, name)

    def mknod(self, _caller: Caller, parent: int, name: bytes, _mode: int, _device: int) -> bytes:
        return self._refuse_new(parent, name)

    def _refuse_new(self, parent: int, name: bytes) -> bytes:
        folder = self._known(parent, name)
        try:
            Tree.child(folder, os.fsdecode(name))
        except NotFound:
            raise folder.refusal() from None
        raise Exists(os.fsdecode(name))

    def symlink(self, _target: bytes, parent: int, name: bytes) -> bytes:
        return self._refuse_new(parent, name)

    def link(self, _inode: int, parent: int, name: bytes) -> bytes:
        return self._refuse_new(parent, name)

    def rename(  # libfuse's arguments
        self, _caller: Caller, parent: int, name: bytes, new_parent: int, _new_name: bytes, _flags: int
    ) -> bytes | DeferredReply:
        node = Tree.child(self._known(parent, name), os.fsdecode(name))
        target = self._inodes.node(new_parent)
        raise (target if target.old else node).refusal()

    def write(self, _inode: int, _address: int, _size: int, _offset: int, _fi: Any) -> bytes | int | DeferredReply:
        return errno.EBADF

    def take(self, _handle: int, _data: bytes, _offset: int, _mapped: bool, _flags: int) -> bytes | int | DeferredReply:
        """Write `_data`; `_mapped`: it comes from a mapped page, by any handle of the file. `_flags` are open(2)'s."""
        return errno.EBADF

    def _known(self, folder: int, name: bytes) -> Node:
        """Return the folder of a name to be changed. Raises its refusal where a lookup would take long."""
        node = self._inodes.node(folder)
        if _is_slow(node, os.fsdecode(name)):
            raise node.refusal()
        return node


def _is_slow(folder: Node, name: str = "") -> bool:
    return isinstance(folder, Folder) and folder.is_slow(name)


def _go_on() -> None:
    """Keep the turn: no other thread waits for it."""


def _valid(node: Node, attrs: Attrs) -> int:
    """Return the seconds for which the kernel may keep a node's attributes."""
    if node.attrs_cacheable and attrs.owner is None:
        return ALWAYS
    # A draft changes only through the kernel, and all its handles share one inode: the kernel keeps its size itself.
    return ALWAYS if isinstance(node, DraftFile) else 0


def _sized(value: bytes, size: int) -> bytes | int:
    """Return a value for a buffer of `size` bytes, or ERANGE; for size 0, the value's size."""
    if size == 0:
        return readdir.size_of_xattr(len(value))
    return value if len(value) <= size else errno.ERANGE
