"""Answers readdir and readdirplus: as many entries of a folder as fit, each behind what tells the kernel of its node.

When one ARC of a large folder changed, the kernel asks for the whole folder again. What it was told of the others is
remembered with the folder and told again, without a look at what they hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from webarcfs.archive.errors import NotADirectory, WebarcError
from webarcfs.mount import wire
from webarcfs.mount.base import Folder, Kind, Node
from webarcfs.mount.inodes import Inodes, Told
from webarcfs.mount.listings import DOTS, Listing, Listings

#: Tells the kernel of a node under a name in the folder of an inode: the entry that says so.
Tell = Callable[[Node, int, str], bytes]
#: Packs one entry of a folder: its inode, the listing, the name, the same as bytes, the offset behind it.
_Pack = Callable[[int, Listing, str, bytes, int], bytes]


class Lister:
    """Lists the folders of one mount."""

    def __init__(self, inodes: Inodes, tell: Tell) -> None:
        self._inodes = inodes
        self._tell = tell
        self._listings = Listings()

    def names(self, inode: int, size: int, offset: int) -> bytes:
        """The answer to readdir. Raises NotADirectory, and whatever the folder raises."""
        return b"".join(self._pieces(inode, size, offset, self._name))

    def nodes(self, inode: int, size: int, offset: int) -> bytes:
        """The answer to readdirplus, whose nodes the kernel knows from then on. Raises the same."""
        return b"".join(self._pieces(inode, size, offset, self._node))

    def _pieces(self, inode: int, size: int, offset: int, pack: _Pack) -> Iterator[bytes]:
        folder = self._inodes.node(inode)
        if not isinstance(folder, Folder):
            raise NotADirectory(f"inode {inode}")
        listing, place = self._listings.at(folder, offset)
        names = listing.names
        head = wire.ENTRY_SIZE if pack == self._node else 0
        while place < len(names):
            name = names[place]
            raw = os.fsencode(name)
            size -= head + wire.room(raw)
            if size < 0:
                return
            place += 1
            yield pack(inode, listing, name, raw, listing.offset(place))
        self._inodes.keep_told(inode, names[len(DOTS) :])

    def _name(self, inode: int, listing: Listing, name: str, raw: bytes, following: int) -> bytes:
        if name in DOTS:
            return wire.dirent(raw, self._dot(inode, name), Kind.FOLDER, following)
        node = listing.folder.listed(name)
        return wire.dirent(raw, node.ino, node.kind, following)

    def _node(self, inode: int, listing: Listing, name: str, raw: bytes, following: int) -> bytes:
        if name in DOTS:
            return wire.direntplus(None, self._name(inode, listing, name, raw, following))
        stamp = listing.folder.stamp(name)
        told = self._inodes.tell_again(inode, name, stamp) if stamp is not None else None
        if told is None:
            node = listing.folder.listed(name)
            try:
                entry = self._tell(node, inode, name)
            except WebarcError:  # whoever looks the name up is told
                return wire.direntplus(None, wire.dirent(raw, node.ino, node.kind, following))
            told = Told(stamp or "", node.ino, node.kind, entry)
            if stamp is not None:
                self._inodes.remember(inode, name, told)
        return wire.direntplus(told.entry, wire.dirent(raw, told.ino, told.kind, following))

    def _dot(self, inode: int, name: str) -> int:
        return self._inodes.ino(inode if name == "." else self._inodes.parent(inode))
