"""libfuse 3's low-level API as ctypes declares it: the library, its structures and functions, without any logic.

Loaded once, before the fork; any thread may call the functions (ctypes releases the interpreter lock meanwhile).
Replies are sent in the kernel's own format (readdir.py), because libfuse's structures for them, the bit fields of
`fuse_file_info` above all, changed their layout between 3.10 and 3.17; the structures declared here did not.
x86_64 and aarch64.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any

from webarcfs.archive.model.errors import MountFailed

#: File of the library → lowest and highest version with a known layout.
KNOWN: Mapping[str, tuple[int, int]] = {"libfuse3.so.3": (310, 316), "libfuse3.so.4": (317, 317)}
_MACHINES = ("x86_64", "aarch64")

#: Bit of setattr's `to_set` for the size; offset of st_size in struct stat, on both machines.
SET_SIZE = 1 << 3
_ST_SIZE = 48
#: Smallest size in bytes of the buffer for a request (FUSE_MIN_READ_BUFFER).
_LEAST = 8192

#: Capabilities of `ConnInfo.want` (fuse_common.h).
CAP_READDIRPLUS = 1 << 13
CAP_READDIRPLUS_AUTO = 1 << 14
CAP_NO_OPEN = 1 << 17
CAP_CACHE_SYMLINKS = 1 << 23
CAP_NO_OPENDIR = 1 << 24


class Args(ctypes.Structure):
    """struct fuse_args."""

    _fields_ = [("argc", c_int), ("argv", POINTER(c_char_p)), ("allocated", c_int)]


class Buf(ctypes.Structure):
    """struct fuse_buf, with room for the member that 3.17 appended."""

    _fields_ = [
        ("size", c_size_t),
        ("flags", c_int),
        ("mem", c_void_p),
        ("fd", c_int),
        ("pos", c_int64),
        ("mem_size", c_size_t),
    ]


class ConnInfo(ctypes.Structure):
    """struct fuse_conn_info, its first members."""

    _fields_ = [
        (name, c_uint) for name in ("proto_major", "proto_minor", "max_write", "max_read", "max_readahead", "capable")
    ] + [("want", c_uint)]


class FileInfo(ctypes.Structure):
    """struct fuse_file_info: the members that are read here; the other bits are left alone.

    `writepage`: the write comes from a mapped page, and the handle is any of the file's.
    """

    _fields_ = [("flags", c_int), ("writepage", c_uint32, 1), ("more", c_uint32 * 2), ("fh", c_uint64)]


class Ctx(ctypes.Structure):
    """struct fuse_ctx."""

    _fields_ = [("uid", c_uint32), ("gid", c_uint32), ("pid", c_int), ("umask", c_uint32)]


class ForgetData(ctypes.Structure):
    """struct fuse_forget_data."""

    _fields_ = [("ino", c_uint64), ("nlookup", c_uint64)]


class _Version(ctypes.Structure):
    """struct libfuse_version (3.17)."""

    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("hotfix", c_uint32), ("padding", c_uint32)]


_REQ, _INO, _FI = c_void_p, c_uint64, POINTER(FileInfo)

#: struct fuse_lowlevel_ops, in its order: operation → types of its arguments.
OPERATIONS: Mapping[str, Sequence[Any]] = {
    "init": (c_void_p, POINTER(ConnInfo)),
    "destroy": (c_void_p,),
    "lookup": (_REQ, _INO, c_char_p),
    "forget": (_REQ, _INO, c_uint64),
    "getattr": (_REQ, _INO, _FI),
    "setattr": (_REQ, _INO, c_void_p, c_int, _FI),
    "readlink": (_REQ, _INO),
    "mknod": (_REQ, _INO, c_char_p, c_uint, c_uint64),
    "mkdir": (_REQ, _INO, c_char_p, c_uint),
    "unlink": (_REQ, _INO, c_char_p),
    "rmdir": (_REQ, _INO, c_char_p),
    "symlink": (_REQ, c_char_p, _INO, c_char_p),
    "rename": (_REQ, _INO, c_char_p, _INO, c_char_p, c_uint),
    "link": (_REQ, _INO, _INO, c_char_p),
    "open": (_REQ, _INO, _FI),
    "read": (_REQ, _INO, c_size_t, c_int64, _FI),
    "write": (_REQ, _INO, c_void_p, c_size_t, c_int64, _FI),
    "flush": (_REQ, _INO, _FI),
    "release": (_REQ, _INO, _FI),
    "fsync": (_REQ, _INO, c_int, _FI),
    "opendir": (_REQ, _INO, _FI),
    "readdir": (_REQ, _INO, c_size_t, c_int64, _FI),
    "releasedir": (_REQ, _INO, _FI),
    "fsyncdir": (_REQ, _INO, c_int, _FI),
    "statfs": (_REQ, _INO),
    "setxattr": (_REQ, _INO, c_char_p, c_void_p, c_size_t, c_int),
    "getxattr": (_REQ, _INO, c_char_p, c_size_t),
    "listxattr": (_REQ, _INO, c_size_t),
    "removexattr": (_REQ, _INO, c_char_p),
    "access": (_REQ, _INO, c_int),
    "create": (_REQ, _INO, c_char_p, c_uint, _FI),
    "getlk": (_REQ, _INO, _FI, c_void_p),
    "setlk": (_REQ, _INO, _FI, c_void_p, c_int),
    "bmap": (_REQ, _INO, c_size_t, c_uint64),
    "ioctl": (_REQ, _INO, c_uint, c_void_p, _FI, c_uint, c_void_p, c_size_t, c_size_t),
    "poll": (_REQ, _INO, _FI, c_void_p),
    "write_buf": (_REQ, _INO, c_void_p, c_int64, _FI),
    "retrieve_reply": (_REQ, c_void_p, _INO, c_int64, c_void_p),
    "forget_multi": (_REQ, c_size_t, POINTER(ForgetData)),
    "flock": (_REQ, _INO, _FI, c_int),
    "fallocate": (_REQ, _INO, c_int, c_int64, c_int64, _FI),
    "readdirplus": (_REQ, _INO, c_size_t, c_int64, _FI),
    "copy_file_range": (_REQ, _INO, c_int64, _FI, _INO, c_int64, _FI, c_size_t, c_int),
    "lseek": (_REQ, _INO, c_int64, c_int, _FI),
}
_KINDS = {name: ctypes.CFUNCTYPE(None, *types) for name, types in OPERATIONS.items()}


class Ops(ctypes.Structure):
    """struct fuse_lowlevel_ops. libfuse answers an operation that is not set with ENOSYS."""

    _fields_ = [*_KINDS.items()]


#: Function → type of its result, types of its arguments.
_FUNCTIONS: Mapping[str, tuple[Any, Sequence[Any]]] = {
    "fuse_version": (c_int, ()),
    "fuse_session_new": (c_void_p, (POINTER(Args), POINTER(Ops), c_size_t, c_void_p)),
    "fuse_session_mount": (c_int, (c_void_p, c_char_p)),
    "fuse_session_unmount": (None, (c_void_p,)),
    "fuse_session_destroy": (None, (c_void_p,)),
    "fuse_session_exited": (c_int, (c_void_p,)),
    "fuse_session_fd": (c_int, (c_void_p,)),
    "fuse_session_receive_buf": (c_int, (c_void_p, POINTER(Buf))),
    "fuse_session_process_buf": (None, (c_void_p, POINTER(Buf))),
    "fuse_req_ctx": (POINTER(Ctx), (_REQ,)),
    "fuse_reply_err": (c_int, (_REQ, c_int)),
    "fuse_reply_none": (None, (_REQ,)),
    "fuse_reply_buf": (c_int, (_REQ, c_char_p, c_size_t)),
    "fuse_lowlevel_notify_inval_inode": (c_int, (c_void_p, _INO, c_int64, c_int64)),
    "fuse_lowlevel_notify_inval_entry": (c_int, (c_void_p, _INO, c_char_p, c_size_t)),
}


@cache
def load(file: str | None = None) -> Any:
    """Return the library with its functions declared; `file` replaces the known file names.

    Raises MountFailed without a library of a known layout.
    """
    if not sys.platform.startswith("linux") or platform.machine() not in _MACHINES:
        raise MountFailed(f"the binding libfuse3 is for Linux on {' and '.join(_MACHINES)}; use -o binding=fusepy")
    library, name = _opened([file] if file else list(KNOWN))
    version = library.fuse_version()
    lowest, highest = KNOWN.get(name, (310, 316))
    if not lowest <= version <= highest:
        raise MountFailed(
            f"{name} (Debian's package libfuse3-3) is of version {version // 100}.{version % 100}, which is not known "
            "here; use -o binding=fusepy"
        )
    for function, (result, arguments) in _FUNCTIONS.items():
        declared = getattr(library, function, None)
        if declared is not None:
            declared.restype, declared.argtypes = result, arguments
    return library


def _opened(names: Sequence[str]) -> tuple[Any, str]:
    for name in names:
        try:
            return ctypes.CDLL(name), name
        except OSError:
            continue
    raise MountFailed("libfuse 3 cannot be loaded; install its library: apt install libfuse3-3")


def new_session(arguments: Sequence[bytes], operations: Mapping[str, Callable[..., None]]) -> tuple[int | None, object]:
    """Return a session (None if libfuse rejects the arguments) and the objects to keep alive as long as it lives."""
    library = load()
    argv = (c_char_p * len(arguments))(*arguments)
    args = Args(len(arguments), argv, 0)
    ops = Ops(**{name: _KINDS[name](function) for name, function in operations.items()})
    size = ctypes.sizeof(Ops)
    if hasattr(library, "fuse_session_new_versioned"):  # 3.17 made the old name a macro
        version = _Version(library.fuse_version() // 100, library.fuse_version() % 100)
        new = library.fuse_session_new_versioned
        new.restype, new.argtypes = c_void_p, (POINTER(Args), POINTER(Ops), c_size_t, POINTER(_Version), c_void_p)
        return new(args, ops, size, version, None), (argv, args, ops, version)
    return library.fuse_session_new(args, ops, size, None), (argv, args, ops)


def caller(request: int) -> tuple[int, int]:
    """Return uid and gid of the process that sent a request."""
    context = load().fuse_req_ctx(request).contents
    return context.uid, context.gid


def memory(address: int, size: int) -> bytes:
    """Return `size` bytes of memory at `address`: the data of a write."""
    return ctypes.string_at(address, size) if size else b""


def size_of_stat(address: int) -> int:
    """Return st_size of the struct stat at `address`."""
    return c_int64.from_address(address + _ST_SIZE).value


class RequestBuffer:
    """One thread's buffer for requests; libfuse allocates it with the first request."""

    def __init__(self, session: int, shortcut: Callable[[memoryview], bool]) -> None:
        """`shortcut` answers a request, or returns False to leave it to libfuse."""
        self._session = session
        self._shortcut = shortcut
        self._buffer = Buf()
        self._library = load()
        self._size = 0
        self._seen = 0
        self._view = memoryview(b"")

    def receive(self) -> bool:
        """Wait for a request and receive it. Returns False at the end of the session."""
        self._size = self._library.fuse_session_receive_buf(self._session, self._buffer)
        if self._size > 0:  # almost always: skip the call below
            return True
        return self._size == -errno.EINTR and not self._library.fuse_session_exited(self._session)

    def process(self) -> bool:
        """Answer the received request. Returns False at the end of the session."""
        if self._size > 0 and not self._shortcut(self._begin()):
            self._library.fuse_session_process_buf(self._session, self._buffer)
            return not self._library.fuse_session_exited(self._session)
        return True

    def _begin(self) -> memoryview:
        """Return the first bytes of the request, in libfuse's buffer."""
        address = self._buffer.mem
        if address != self._seen:
            self._seen = address
            self._view = memoryview((ctypes.c_char * _LEAST).from_address(address)).cast("B")
        return self._view

    def __enter__(self) -> RequestBuffer:
        return self

    def __exit__(self, *_: object) -> None:
        free = ctypes.CDLL(None).free
        free.restype, free.argtypes = None, (c_void_p,)
        free(self._buffer.mem)
