"""Replies in the kernel's own format (linux/fuse.h, protocol 7.31 and later). Pure.

This interface is the same for all versions of libfuse, and packing it costs a tenth of filling a ctypes structure,
which matters for a listing of 60,000 entries.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from struct import Struct
from typing import Final

from webarcfs.view.node import FILE, FOLDER, Attrs, NodeKind

#: st_blksize.
BLOCK: Final = 128 * 1024
#: Seconds for which the kernel may keep what is not invalidated: for ever.
ALWAYS: Final = 10**9
#: Flags of an answer to open.
DIRECT_IO: Final = 1 << 0
KEEP_CACHE: Final = 1 << 1
NOFLUSH: Final = 1 << 5

TYPES: Final = {NodeKind.FILE: stat.S_IFREG, NodeKind.FOLDER: stat.S_IFDIR, NodeKind.LINK: stat.S_IFLNK}
_DIRENT_FILE: Final = stat.S_IFREG >> 12
_DIRENT_FOLDER: Final = stat.S_IFDIR >> 12
_DIRENT_LINK: Final = stat.S_IFLNK >> 12

_TIMES_AND_ATTR: Final = "QQQqqq10I"
_ENTRY: Final = Struct("=QQQQII" + _TIMES_AND_ATTR)
# An entry in two parts: the members of one node, and those that most nodes of a kind share.
_NODE: Final = Struct("=QQQQIIQQQqqq")
_SHARED: Final = Struct("=10I")
_ATTR: Final = Struct("=QII" + _TIMES_AND_ATTR)
_DIRENT: Final = Struct("=QQII")
_OPEN: Final = Struct("=QII")
_XATTR: Final = Struct("=II")
_NUMBER: Final = Struct("=Q")
_STATFS: Final = Struct("=5Q4I24x")
#: Bytes of struct fuse_entry_out.
ENTRY_SIZE: Final = _ENTRY.size
_UNKNOWN: Final = bytes(ENTRY_SIZE)
#: The padding of a name, so that the next entry begins at a multiple of eight.
_PADDING: Final = tuple(bytes(-size % 8) for size in range(8))


class Owned:
    """Packs structures with the owner, which is the same for all nodes of a mount."""

    def __init__(self, uid: int, gid: int, folder_mode: int = NodeKind.FOLDER.value) -> None:
        self._uid = uid
        self._gid = gid
        self._modes = {
            (kind, writable): TYPES[kind] | Attrs(kind, 0, 0, 0, writable=writable).mode(folder_mode)
            for kind in NodeKind
            for writable in (False, True)
        }
        self._of_files = self._tail(self._modes[FILE, False], 1, uid)
        self._of_documents = self._tail(self._modes[FILE, True], 1, uid)
        self._of_folders = self._tail(self._modes[FOLDER, False], 1, uid)

    def _tail(self, mode: int, nlink: int, uid: int) -> bytes:
        """Return the members of an entry after the times."""
        return _SHARED.pack(0, 0, 0, mode, nlink, uid, self._gid, 0, BLOCK, 0)

    def entry(self, nodeid: int, attrs: Attrs, attr_valid: int = ALWAYS, valid: int = ALWAYS) -> bytes:
        """struct fuse_entry_out of an existing name; the kernel may keep it for `valid` seconds."""
        # Without _attr: a listing packs thousands.
        size, time = attrs.size, attrs.mtime
        tail, blocks = self._last(attrs), -(-size // 512)
        return _NODE.pack(nodeid, 0, valid, attr_valid, 0, 0, attrs.ino, size, blocks, time, time, time) + tail

    def _last(self, attrs: Attrs) -> bytes:
        if attrs.owner is None and attrs.nlink == 1:
            if attrs.kind is FILE:
                return self._of_documents if attrs.writable else self._of_files
            if attrs.kind is FOLDER:  # `writable` concerns files only
                return self._of_folders
        owner = self._uid if attrs.owner is None else attrs.owner
        return self._tail(self._modes[attrs.kind, attrs.writable], attrs.nlink, owner)

    def attr(self, attrs: Attrs, valid: int = ALWAYS) -> bytes:
        """struct fuse_attr_out."""
        return _ATTR.pack(valid, 0, 0, *self._attr(attrs))

    def _attr(self, attrs: Attrs) -> tuple[int, ...]:
        time, size = attrs.mtime, attrs.size
        times = (time, time, time, 0, 0, 0)
        uid = self._uid if attrs.owner is None else attrs.owner
        owner = (self._modes[attrs.kind, attrs.writable], attrs.nlink, uid, self._gid, 0, BLOCK, 0)
        return (attrs.ino, size, -(-size // 512), *times, *owner)


def no_entry() -> bytes:
    """struct fuse_entry_out of a missing name; the kernel caches that until it is invalidated."""
    return _ENTRY.pack(0, 0, ALWAYS, *(0,) * (2 + 1 + 6 + 10))


def dirent(name: bytes, ino: int, kind: NodeKind, following: int) -> bytes:
    """struct fuse_dirent; `following` is the offset of the entry after it."""
    size = len(name)
    mode = _DIRENT_FILE if kind is FILE else _DIRENT_FOLDER if kind is FOLDER else _DIRENT_LINK
    return _DIRENT.pack(ino, following, size, mode) + name + _PADDING[size & 7]


def room(name: bytes) -> int:
    """Return the size of a name's entry in a listing, without the ENTRY_SIZE of its node's attributes."""
    size = len(name)
    return _DIRENT.size + size + -size % 8


def direntplus(entry: bytes | None, dirent: bytes) -> bytes:
    """struct fuse_direntplus; without `entry` the kernel receives the name only."""
    return (entry or _UNKNOWN) + dirent


def nodeids(listing: bytes) -> Iterator[int]:
    """Yield the inodes that a listing of struct fuse_direntplus made known."""
    at = 0
    while at < len(listing):
        nodeid = _ENTRY.unpack_from(listing, at)[0]
        if nodeid:
            yield nodeid
        size = _DIRENT.unpack_from(listing, at + _ENTRY.size)[2]
        at += _ENTRY.size + _DIRENT.size + size + -size % 8


def first_number(reply: bytes) -> int:
    """Return the inode of an entry, or the handle of an answer to open."""
    number: int = _NUMBER.unpack_from(reply)[0]
    return number


def handle_of_create(reply: bytes) -> int:
    """Return the handle of an answer to create: an entry, then the answer to open."""
    return first_number(reply[_ENTRY.size :])


def opened(handle: int, flags: int) -> bytes:
    """struct fuse_open_out."""
    return _OPEN.pack(handle, flags, 0)


def written(size: int) -> bytes:
    """struct fuse_write_out."""
    return _XATTR.pack(size, 0)


def size_of_xattr(size: int) -> bytes:
    """struct fuse_getxattr_out."""
    return _XATTR.pack(size, 0)


def statfs(below: os.statvfs_result) -> bytes:
    """struct fuse_statfs_out."""
    counts = (below.f_blocks, below.f_bfree, below.f_bavail, below.f_files, below.f_ffree)
    return _STATFS.pack(*counts, below.f_bsize, below.f_namemax, below.f_frsize, 0)
