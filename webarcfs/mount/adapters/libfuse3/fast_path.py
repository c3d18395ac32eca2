"""Fast path: frequent requests are parsed and answered here, in the kernel's own format (linux/fuse.h).

Libfuse receives every request from the kernel; requests of a few kinds are then answered without it, since its way
through ctypes and back costs more than the work. All others are libfuse's. The layouts are those of protocol 7.31 and
later, whose structures only grow at their ends.

For opening and closing files this takes a third less of the processor.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from webarcfs.mount.adapters.libfuse3.operations import DeferredReply, Operations
from webarcfs.mount.adapters.requests import SLOW, errno_for
from webarcfs.vfs.node import Caller

Answer = bytes | int | BaseException
#: Calls a function that sends an answer, unless the session has ended.
ReplyLater = Callable[[Callable[[], None]], None]

# struct fuse_in_header: length, opcode, unique, nodeid, uid, gid; the process id and the padding are not read.
_HEADER: Final = Struct("=IIQQII")
_BODY: Final = 40
_OUT: Final = Struct("=IiQ")  # struct fuse_out_header: length, error, unique
_READ: Final = Struct("=QQI")  # struct fuse_read_in: handle, offset, size
_FLAGS: Final = Struct("=I")  # struct fuse_open_in begins so
_NUMBER: Final = Struct("=Q")  # struct fuse_release_in begins with the handle
#: struct fuse_write_in: handle, offset, size, flags of the write, owner of locks, flags of open(2).
_WRITE: Final = Struct("=QQIIQI")
_MAPPED: Final = 1  # FUSE_WRITE_CACHE: the data come from a mapped page
_WRITTEN: Final = 40  # its size; the data follow
_NAMED: Final = 8  # size of struct fuse_getxattr_in; the name follows
_CREATED: Final = 16  # size of struct fuse_create_in; the name follows
_WRITING: Final = 16
#: FUSE_FORGET: the kernel has dropped an inode. It needs no answer.
_FORGET: Final = 2
#: FUSE_INTERRUPT: a process no longer waits for an answer. It needs none itself. No operation here can be interrupted,
#: and libfuse would keep the interrupt for a request that may never pass through it.
_INTERRUPT: Final = 36
#: Up to this size, head and body of an answer are joined: cheaper than a writev of both.
_JOINED: Final = 16384

_log = logging.getLogger(__name__)


class FileInfoShim:
    """The members that operations read of libfuse's `struct fuse_file_info *`."""

    __slots__ = ("fh", "flags")

    def __init__(self, flags: int, fh: int) -> None:
        self.flags = flags
        self.fh = fh

    @property
    def contents(self) -> FileInfoShim:
        """Itself: a ctypes pointer has the structure as its `contents`."""
        return self


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of request: the operation's name, its parser, and the undo for an answer that the kernel rejects.

    `about` reads the name and the handle of one that writes.
    """

    name: str
    ask: Callable[[memoryview, int], Any]
    undone: Callable[[bytes], None] | None
    about: Callable[[memoryview], tuple[bytes, int]] | None


class FastPath:
    """The fast path of one session, whose requests come from the descriptor `fd`. Safe for any thread.

    `late` sends an answer from another thread, unless the session has ended by then. `slow` receives each slow
    request: operation, inode, and its beginning by the monotonic clock.
    """

    def __init__(
        self,
        fd: int,
        operations: Operations,
        late: ReplyLater,
        count: Callable[[str], None] | None = None,
        slow: Callable[[str, int, float], None] | None = None,
    ) -> None:
        self._fd = fd
        self._operations = operations
        self._late = late
        self._count = count
        self._slow = slow
        asked: Mapping[int, tuple[str, Callable[[memoryview, int], Any]]] = {
            1: ("lookup", self._lookup),
            3: ("getattr", self._getattr),
            14: ("open", self._open),
            15: ("read", self._read),
            18: ("release", self._release),
            39: ("ioctl", operations.ioctl),
            44: ("readdirplus", self._readdirplus),
        }
        if operations.writes:
            asked = {
                **asked,
                _WRITING: ("write", self._write),
                22: ("getxattr", self._getxattr),
                25: ("flush", self._flush),
                35: ("create", self._create),
            }
        self._kinds = {
            opcode: _Kind(name, ask, getattr(operations, f"{name}_undone", None), _ABOUT.get(name))
            for opcode, (name, ask) in asked.items()
        }

    def answer(self, request: memoryview) -> bool:
        """Answer a request, now or later; return False if its kind is libfuse's to answer."""
        length, opcode, unique, inode, _, _ = _HEADER.unpack_from(request)
        kind = self._kinds.get(opcode)
        if kind is None:
            return self._unanswered(request, opcode, inode)
        if opcode == _WRITING and length > len(request):
            return False  # only libfuse's buffer holds all of it
        answer: Any
        begun = time.monotonic()
        try:
            if self._count is not None:
                self._count(kind.name)
            answer = kind.ask(request, inode)
            if isinstance(answer, DeferredReply):
                note = self._noting(kind, request, inode)
                answer.start(lambda reply: self._late(lambda: self._finish(unique, kind, note(reply), inode, begun)))
                return True
        except BaseException as error:
            self._noting(kind, request, inode)(error)
            answer = errno_for(error, kind.name, inode)
        self._finish(unique, kind, answer, inode, begun)
        return True

    def _noting(self, kind: _Kind, request: memoryview, inode: int) -> Callable[[Answer], Answer]:
        """Return a function that notes a refusal, and returns the answer. It runs when the buffer is used again."""
        if kind.about is None:
            return lambda answer: answer
        uid = _HEADER.unpack_from(request)[4]
        name, handle = kind.about(request)
        operations, operation = self._operations, kind.name

        def note(answer: Answer) -> Answer:
            if isinstance(answer, BaseException):
                operations.refused(operation, uid, (inode, name, handle), answer)
            return answer

        return note

    def _unanswered(self, request: memoryview, opcode: int, inode: int) -> bool:
        """Handle a request that needs no answer; return False if it is libfuse's."""
        if opcode == _FORGET:
            try:
                self._operations.forget(inode, _NUMBER.unpack_from(request, _BODY)[0])
            except Exception:  # as in _take_back
                _log.exception("forgetting inode %d failed unexpectedly", inode)
        return opcode in (_FORGET, _INTERRUPT)

    def _finish(self, unique: int, kind: _Kind, answer: Answer, inode: int, begun: float) -> None:
        self._send(unique, kind, answer)
        if self._slow is not None and time.monotonic() - begun >= SLOW:
            self._slow(kind.name, inode, begun)

    def _send(self, unique: int, kind: _Kind, answer: Answer) -> None:
        if isinstance(answer, BaseException):
            answer = errno_for(answer, kind.name)
        try:
            if isinstance(answer, int):
                os.write(self._fd, _OUT.pack(_OUT.size, -answer, unique))
            elif len(answer) <= _JOINED:
                os.write(self._fd, _OUT.pack(_OUT.size + len(answer), 0, unique) + answer)
            else:
                os.writev(self._fd, (_OUT.pack(_OUT.size + len(answer), 0, unique), answer))
        except OSError:  # the process that waited was killed meanwhile, or the mount is gone
            if kind.undone is not None and isinstance(answer, bytes):
                self._take_back(kind.undone, answer)

    @staticmethod
    def _take_back(undone: Callable[[bytes], None], answer: bytes) -> None:
        """Undo an answer, and log any exception: a thread that ended would not pass its turn on, and all would wait."""
        try:
            undone(answer)
        except Exception:
            _log.exception("an answer that the kernel did not take was not taken back")

    # -- one parser for each kind of request ---------------------------------------------------------------------------

    def _lookup(self, request: memoryview, parent: int) -> Any:
        name = bytes(request[_BODY : _HEADER.unpack_from(request)[0] - 1])
        return self._operations.lookup(parent, name)

    def _getattr(self, _request: memoryview, inode: int) -> Any:
        return self._operations.getattr(inode, None)

    def _open(self, request: memoryview, inode: int) -> Any:
        flags = _FLAGS.unpack_from(request, _BODY)[0]
        uid, gid = _HEADER.unpack_from(request)[4:]
        return self._operations.open(Caller(uid, gid), inode, FileInfoShim(flags, 0))

    def _read(self, request: memoryview, inode: int) -> Any:
        handle, offset, size = _READ.unpack_from(request, _BODY)
        return self._operations.read(inode, size, offset, FileInfoShim(0, handle))

    def _release(self, request: memoryview, inode: int) -> Any:
        handle = _NUMBER.unpack_from(request, _BODY)[0]
        return self._operations.release(inode, FileInfoShim(0, handle)) if handle else 0  # most files have no handle

    def _readdirplus(self, request: memoryview, inode: int) -> Any:
        _, offset, size = _READ.unpack_from(request, _BODY)
        return self._operations.readdirplus(inode, size, offset, None)

    # -- requests that write -------------------------------------------------------------------------------------------

    def _create(self, request: memoryview, parent: int) -> Any:
        length, _, _, _, uid, gid = _HEADER.unpack_from(request)
        name = bytes(request[_BODY + _CREATED : length - 1])
        return self._operations.create(Caller(uid, gid), parent, name, 0, None)

    def _write(self, request: memoryview, _inode: int) -> Any:
        handle, offset, size, flags, _, opened = _WRITE.unpack_from(request, _BODY)
        data = bytes(request[_BODY + _WRITTEN : _BODY + _WRITTEN + size])
        return self._operations.take(handle, data, offset, bool(flags & _MAPPED), opened)

    def _flush(self, request: memoryview, inode: int) -> Any:
        return self._operations.flush(inode, FileInfoShim(0, _NUMBER.unpack_from(request, _BODY)[0]))

    def _getxattr(self, request: memoryview, inode: int) -> Any:
        length, _, _, _, uid, gid = _HEADER.unpack_from(request)
        name = bytes(request[_BODY + _NAMED : length - 1])
        return self._operations.getxattr(Caller(uid, gid), inode, name, _FLAGS.unpack_from(request, _BODY)[0])


def _about_create(request: memoryview) -> tuple[bytes, int]:
    return bytes(request[_BODY + _CREATED : _HEADER.unpack_from(request)[0] - 1]), 0


def _about_handle(request: memoryview) -> tuple[bytes, int]:
    return b"", _NUMBER.unpack_from(request, _BODY)[0]


#: Operation that writes → how to read the name and the handle that it is about.
_ABOUT: Final[Mapping[str, Callable[[memoryview], tuple[bytes, int]]]] = {
    "create": _about_create,
    "flush": _about_handle,
    "open": lambda _: (b"", 0),
    "write": _about_handle,
}
