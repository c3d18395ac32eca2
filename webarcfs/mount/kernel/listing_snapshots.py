"""Listings under way: the names of a folder when a reader began, so that a long listing shows one state.

The kernel reads a folder in pieces and, since opendir is not implemented, without a handle; the offset that it sends
back identifies the listing and the place in it. Memory only, safe for any thread. The names of the latest listings are
kept; an evicted one is restarted at the same place.
"""

from __future__ import annotations

import itertools
from typing import Final

from webarcfs.archive.system.cache import Cache
from webarcfs.view.node import Folder

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


class Listing:
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
        self._held: Cache[int, Listing] = Cache(HELD, lambda listing: len(listing.names) + _FOLDER)

    def at(self, folder: Folder, offset: int) -> tuple[Listing, int]:
        """Return the listing and the place in it that an offset means; offset 0 begins one."""
        number = offset >> _PLACE_BITS or (next(self._numbers) & _NUMBERS) + 1
        if offset:
            listing = self._held.get(number, lambda: folder.in_force(lambda now: _begun(number, now)))
        else:
            listing = self._held.keep(number, folder.in_force(lambda now: _begun(number, now)))
        return listing, offset & _PLACE


def _begun(number: int, folder: Folder) -> Listing:
    return Listing(number, folder, (*DOTS, *folder.names()))
