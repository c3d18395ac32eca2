"""What crawls met unchanged, as webarc.db has it: a row for each crawl and block of URLs. Pure.

A block has the documents (and redirects) whose ids differ in their last ten bits alone. So all that was met of one URL
in a thousand crawls is in a thousand rows that lie side by side, and a crawl of a site adds a row for each thousand of
its URLs. The bytes of a row are zlib: a byte of spelling for each id, then the bytes of the times, which count from the
row's `base`: all first bytes, then all second ones, and so on.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from webarcfs.archive.model.errors import DatabaseDamaged
from webarcfs.archive.model.met_list import Met

#: URLs of a block.
SIZE: Final = 1024
_NOT_MET: Final = 0xFF
_WIDTH: Final = 5
_BYTES: Final = SIZE * (_WIDTH + 1)


@dataclass(frozen=True, slots=True)
class Block:
    """What one crawl met of the URLs of one block: its number, the earliest time, the packed times."""

    number: int
    base: int
    times: bytes


def blocks_of(met: Iterable[tuple[int, Met]]) -> Iterator[Block]:
    """Yield the blocks of what a crawl met: pairs of id and Met, in any order. A block without any has no row."""
    spellings: dict[int, bytearray] = {}
    times: dict[int, array[int]] = {}
    for number, each in met:
        block, place = divmod(number, SIZE)
        if block not in spellings:
            spellings[block] = bytearray([_NOT_MET]) * SIZE
            times[block] = array("q", bytes(8 * SIZE))
        spellings[block][place] = each.spelling
        times[block][place] = each.time
    for block in sorted(spellings):
        yield _packed(block, spellings[block], times[block])


def _packed(number: int, spellings: bytearray, times: array[int]) -> Block:
    pairs = list(zip(times, spellings, strict=True))
    base = min(time for time, spelling in pairs if spelling != _NOT_MET)
    counted = array("Q", [time - base if spelling != _NOT_MET else 0 for time, spelling in pairs])
    if sys.byteorder == "little":
        counted.byteswap()  # the highest byte first
    raw = counted.tobytes()
    return Block(number, base, zlib.compress(b"".join([spellings, *(raw[at::8] for at in range(8 - _WIDTH, 8))])))


def met_in(block: Block, number: int) -> Met | None:
    """Return what a row says of the URL with an id of its block. Raises DatabaseDamaged."""
    return met_at(block.base, unpacked(block), number)


def unpacked(block: Block) -> bytes:
    """Return the bytes of a row, for `met_at`. Raises DatabaseDamaged."""
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(block.times, _BYTES + 1)
    except zlib.error as error:
        raise DatabaseDamaged(f"webarc.db has a row of times that cannot be unpacked: {error}") from None
    if len(raw) != _BYTES:
        raise DatabaseDamaged("webarc.db has a row of times that is not whole")
    return raw


def met_at(base: int, raw: bytes, number: int) -> Met | None:
    """Return what the unpacked bytes of a row say of the URL with an id of its block."""
    place = number % SIZE
    if raw[place] == _NOT_MET:
        return None
    return Met(base + int.from_bytes(raw[place + SIZE :: SIZE]), raw[place])
