"""Listings under way: what a folder held when somebody began to read it, so that a long listing is one state
throughout.

The kernel asks for a folder in pieces and, since opendir is not answered, without a handle; the offset that it hands
back names the listing and the place in it. Memory only, safe for any thread. The names of the last listings are kept;
one that was pushed out is begun anew at the same place.
"""

from __future__ import annotations

import itertools
from typing import Final

from webarcfs.archive.system.cache import Cache
from webarcfs.view.node import Folder

#: Names that are kept in all, about 8 bytes each.
HELD: Final = 500_000
#: As many names does the folder weigh that is kept with them, with all that it holds: a few KB.
_FOLDER: Final = 500
#: What every listing begins with: the folder itself and the one above it.
DOTS: Final = (".", "..")
_PLACE_BITS: Final = 32
#: Set in the offset behind the last name: who goes on from there has read all, whatever the listing was.
END: Final = 1 << 31
_PLACE: Final = END - 1
_NUMBERS: Final = (1 << 30) - 1


class Listing:
    """The names of a folder and the folder as it was then."""

    __slots__ = ("folder", "names", "number")

    def __init__(self, number: int, folder: Folder, names: tuple[str, ...]) -> None:
        self.number = number
        self.folder = folder
        self.names = names

    def offset(self, place: int) -> int:
        """What the kernel hands back to go on at `place`."""
        return self.number << _PLACE_BITS | place | (END if place == len(self.names) else 0)


class Listings:
    """The listings of one mount."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._held: Cache[int, Listing] = Cache(HELD, lambda listing: len(listing.names) + _FOLDER)

    def at(self, folder: Folder, offset: int) -> tuple[Listing, int]:
        """The listing and the place in it that an offset means; offset 0 begins one."""
        number = offset >> _PLACE_BITS or (next(self._numbers) & _NUMBERS) + 1
        if offset:
            listing = self._held.get(number, lambda: folder.in_force(lambda now: _begun(number, now)))
        else:
            listing = self._held.keep(number, folder.in_force(lambda now: _begun(number, now)))
        return listing, offset & _PLACE


def _begun(number: int, folder: Folder) -> Listing:
    return Listing(number, folder, (*DOTS, *folder.names()))
