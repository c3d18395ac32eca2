"""Answers readdir and readdirplus: as many entries of a folder as fit.

When one ARC of a large folder changed, the kernel reads the whole folder again. Unchanged entries are sent as names
without attributes, and no node is read for them; the kernel keeps the attributes that it has.
A listing that began before a publication continues with its names. For a name whose node changed it sends the name
only: the kernel has dropped the old node already, and would keep it for good if it received it again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from webarcfs.archive.model.errors import NotADirectory, NotFound, WebarcError
from webarcfs.mount.kernel import protocol
from webarcfs.mount.kernel.inode_table import Inodes, LazyFile, ListedEntry, ino_of, nodeid, undo
from webarcfs.mount.kernel.listing_snapshots import DOTS, Listing, Listings
from webarcfs.view.node import FOLDER, Folder, Node

#: The arguments of os.fsencode: a walk encodes each name, and the call to it costs as much again.
_CODING: Final = sys.getfilesystemencoding()
_ERRORS: Final = sys.getfilesystemencodeerrors()

#: Returns the entry of a node under a name in the folder of an inode, and counts the lookup.
Tell = Callable[[Node, int, str], bytes]


class _ListingCursor:
    """A listing under way: the folder's inode, the current folder, the listing, and whether the two agree."""

    __slots__ = ("agree", "folder", "inode", "listing")

    def __init__(self, inode: int, folder: Folder, listing: Listing) -> None:
        self.inode = inode
        self.folder = folder
        self.listing = listing
        self.agree = folder is listing.folder or folder == listing.folder

    def is_same(self, name: str, stamp: str | None) -> bool:
        """Return whether a listed name with that stamp is the same node in the current folder."""
        return self.agree or (stamp is not None and stamp == self.folder.stamp(name))


class Lister:
    """Lists the folders of one mount."""

    def __init__(self, inodes: Inodes, tell: Tell, owned: protocol.Owned) -> None:
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
        head = protocol.ENTRY_SIZE if plus else 0
        while place < len(names):
            name = names[place]
            raw = name.encode(_CODING, _ERRORS)
            room = head + protocol.room(raw)
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
                    undo(self._inodes, protocol.nodeids(b"".join(pieces)))
                raise
            size -= room
        self._inodes.retain_listed(going.inode, names[len(DOTS) :])
        return pieces

    def _name(self, going: _ListingCursor, name: str, raw: bytes, following: int) -> bytes:
        if name in DOTS:
            return protocol.dirent(raw, self._dot(going.inode, name), FOLDER, following)
        node = _listed(going.listing.folder, name)
        return protocol.dirent(raw, node.ino, node.kind, following)

    def _node(self, going: _ListingCursor, name: str, raw: bytes, following: int) -> bytes:
        if name in DOTS:
            return protocol.direntplus(None, self._name(going, name, raw, following))
        inode, folder = going.inode, going.listing.folder
        child_attrs = folder.child_attrs(name) if going.agree else None
        if child_attrs is not None:
            entry = self._owned.entry(
                self._inodes.add_briefed(LazyFile(folder, name), child_attrs.ino, inode), child_attrs
            )
            return protocol.direntplus(entry, protocol.dirent(raw, child_attrs.ino, child_attrs.kind, following))
        stamp = folder.stamp(name)
        if not going.is_same(name, stamp):
            return protocol.direntplus(None, self._name(going, name, raw, following))
        told = self._inodes.told(inode, name, stamp) if stamp is not None else None
        if told is not None:
            return protocol.direntplus(None, protocol.dirent(raw, told.ino, told.kind, following))
        node = _listed(folder, name)
        ino, kind = node.ino, node.kind
        try:
            entry = self._tell(node, inode, name)
        except WebarcError:  # a lookup of the name returns the error
            return protocol.direntplus(None, protocol.dirent(raw, ino, kind, following))
        if stamp is not None:
            self._inodes.remember(inode, name, ListedEntry(stamp, ino, kind, nodeid(node)))
        return protocol.direntplus(entry, protocol.dirent(raw, ino, kind, following))

    def _dot(self, inode: int, name: str) -> int:
        return ino_of(inode if name == "." else self._inodes.parent(inode))


def _listed(folder: Folder, name: str) -> Node:
    """Return the node of a listed name; from the folder's current state if it was removed since (`in_force`)."""
    try:
        return folder.listed(name)
    except NotFound:
        return folder.in_force(lambda now: now.listed(name))
