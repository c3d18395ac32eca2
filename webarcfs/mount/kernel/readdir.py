"""Answers readdir and readdirplus: as many entries of a folder as fit.

When one ARC of a large folder changed, the kernel reads the whole folder again. Unchanged entries are sent as names
without attributes, and no node is read for them; the kernel keeps the attributes that it has. A listing that began
before a publication continues with its names. For a name whose node changed it sends the name only: the kernel has
dropped the old node already, and would keep it for good if it received it again.

Replies are in the kernel's own format (linux/fuse.h, protocol 7.31 and later). This interface is the same for all
versions of libfuse, and packing it costs a tenth of filling a ctypes structure, which matters for a listing of 60,000
entries.

A listing under way keeps the names of its folder when the reader began, so that a long listing shows one state. The
kernel reads a folder in pieces and, since opendir is not implemented, without a handle; the offset that it sends back
identifies the listing and the place in it. Memory only, safe for any thread. The names of the latest listings are kept;
an evicted one is restarted at the same place.
"""

from __future__ import annotations

import itertools
import os
import stat
import sys
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final

from webarcfs.archive.model.errors import NotADirectory, NotFound, WebarcError
from webarcfs.archive.system.cache import Cache
from webarcfs.mount.kernel.inode_table import Inodes, LazyFile, ListedEntry, ino_of, nodeid, undo
from webarcfs.vfs.node import FILE, FOLDER, Attrs, Folder, Node, NodeKind

# == protocol, pure ===================================================================================================


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


def entry_size(name: bytes) -> int:
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


# == listing snapshots ================================================================================================


#: Names that are kept in total, about 8 bytes each.
HELD: Final = 500_000
#: Weight, in names, of the folder that is kept with a listing, including its data: a few KB.
_FOLDER: Final = 500
#: The first names of every listing: the folder itself and its parent.
DOTS: Final = (".", "..")
_PLACE_BITS: Final = 32
#: Set in the offset after the last name: the reader has read all names.
END: Final = 1 << 31
_PLACE: Final = END - 1
_NUMBERS: Final = (1 << 30) - 1


class FolderListing:
    """The names of a folder, and the folder at that time."""

    __slots__ = ("folder", "names", "number")

    def __init__(self, number: int, folder: Folder, names: tuple[str, ...]) -> None:
        self.number = number
        self.folder = folder
        self.names = names

    def offset(self, place: int) -> int:
        """Return the offset by which the kernel continues at `place`."""
        return self.number << _PLACE_BITS | place | (END if place == len(self.names) else 0)


class Listings:
    """The listings of one mount."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._held: Cache[int, FolderListing] = Cache(HELD, lambda listing: len(listing.names) + _FOLDER)

    def at(self, folder: Folder, offset: int) -> tuple[FolderListing, int]:
        """Return the listing and the place in it that an offset means; offset 0 begins one."""
        number = offset >> _PLACE_BITS or (next(self._numbers) & _NUMBERS) + 1
        if offset:
            listing = self._held.get(number, lambda: folder.in_force(lambda now: _begun(number, now)))
        else:
            listing = self._held.keep(number, folder.in_force(lambda now: _begun(number, now)))
        return listing, offset & _PLACE


def _begun(number: int, folder: Folder) -> FolderListing:
    return FolderListing(number, folder, (*DOTS, *folder.names()))


# == readdir ==========================================================================================================


#: The arguments of os.fsencode: a walk encodes each name, and the call to it costs as much again.
_CODING: Final = sys.getfilesystemencoding()
_ERRORS: Final = sys.getfilesystemencodeerrors()

#: Returns the entry of a node under a name in the folder of an inode, and counts the lookup.
Tell = Callable[[Node, int, str], bytes]


class _ListingCursor:
    """A listing under way: the folder's inode, the current folder, the listing, and whether the two agree."""

    __slots__ = ("agree", "folder", "inode", "listing")

    def __init__(self, inode: int, folder: Folder, listing: FolderListing) -> None:
        self.inode = inode
        self.folder = folder
        self.listing = listing
        self.agree = folder is listing.folder or folder == listing.folder

    def is_same(self, name: str, stamp: str | None) -> bool:
        """Return whether a listed name with that stamp is the same node in the current folder."""
        return self.agree or (stamp is not None and stamp == self.folder.stamp(name))


class Lister:
    """Lists the folders of one mount."""

    def __init__(self, inodes: Inodes, tell: Tell, owned: Owned) -> None:
        self._inodes = inodes
        self._tell = tell
        self._owned = owned
        self._listings = Listings()

    def names(self, inode: int, size: int, offset: int) -> bytes:
        """Return the answer to readdir. Raises NotADirectory, and the folder's errors."""
        return b"".join(self._pieces(inode, size, offset, plus=False))

    def nodes(self, inode: int, size: int, offset: int) -> bytes:
        """Return the answer to readdirplus; the kernel then knows its nodes. Raises the same errors."""
        return b"".join(self._pieces(inode, size, offset, plus=True))

    def _pieces(self, inode: int, size: int, offset: int, *, plus: bool) -> list[bytes]:
        folder = self._inodes.node(inode)
        if not isinstance(folder, Folder):
            raise NotADirectory(f"inode {inode}")
        listing, place = self._listings.at(folder, offset)
        return self._packed(_ListingCursor(inode, folder, listing), place, size, plus=plus)

    def _packed(self, going: _ListingCursor, place: int, size: int, *, plus: bool) -> list[bytes]:
        pieces: list[bytes] = []
        listing, names = going.listing, going.listing.names
        head = ENTRY_SIZE if plus else 0
        while place < len(names):
            name = names[place]
            raw = name.encode(_CODING, _ERRORS)
            room = head + entry_size(raw)
            if room > size:
                return pieces
            place += 1
            try:
                following = listing.offset(place)
                pieces.append(
                    self._node(going, name, raw, following) if plus else self._name(going, name, raw, following)
                )
            except NotFound:  # it was renamed since the listing began; an error would hide the names after it
                continue
            except BaseException:  # the kernel receives none of the entries
                if plus:
                    undo(self._inodes, nodeids(b"".join(pieces)))
                raise
            size -= room
        self._inodes.retain_listed(going.inode, names[len(DOTS) :])
        return pieces

    def _name(self, going: _ListingCursor, name: str, raw: bytes, following: int) -> bytes:
        if name in DOTS:
            return dirent(raw, self._dot(going.inode, name), FOLDER, following)
        node = _listed(going.listing.folder, name)
        return dirent(raw, node.ino, node.kind, following)

    def _node(self, going: _ListingCursor, name: str, raw: bytes, following: int) -> bytes:
        if name in DOTS:
            return direntplus(None, self._name(going, name, raw, following))
        inode, folder = going.inode, going.listing.folder
        child_attrs = folder.child_attrs(name) if going.agree else None
        if child_attrs is not None:
            entry = self._owned.entry(
                self._inodes.add_briefed(LazyFile(folder, name), child_attrs.ino, inode), child_attrs
            )
            return direntplus(entry, dirent(raw, child_attrs.ino, child_attrs.kind, following))
        stamp = folder.stamp(name)
        if not going.is_same(name, stamp):
            return direntplus(None, self._name(going, name, raw, following))
        listed_entry = self._inodes.told(inode, name, stamp) if stamp is not None else None
        if listed_entry is not None:
            return direntplus(None, dirent(raw, listed_entry.ino, listed_entry.kind, following))
        node = _listed(folder, name)
        ino, kind = node.ino, node.kind
        try:
            entry = self._tell(node, inode, name)
        except WebarcError:  # a lookup of the name returns the error
            return direntplus(None, dirent(raw, ino, kind, following))
        if stamp is not None:
            self._inodes.remember(inode, name, ListedEntry(stamp, ino, kind, nodeid(node)))
        return direntplus(entry, dirent(raw, ino, kind, following))

    def _dot(self, inode: int, name: str) -> int:
        return ino_of(inode if name == "." else self._inodes.parent(inode))


def _listed(folder: Folder, name: str) -> Node:
    """Return the node of a listed name; from the folder's current state if it was removed since (`in_force`)."""
    try:
        return folder.listed(name)
    except NotFound:
        return folder.in_force(lambda now: now.listed(name))
