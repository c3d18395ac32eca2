"""What crawls met unchanged, as webarc.db has it: a row for each crawl and block of URLs. Pure.

A block has the documents (and redirects) whose ids differ in their last ten bits alone. So all that was met of one URL
in a thousand crawls is in a thousand rows that lie side by side, and a crawl of a site adds a row for each thousand of
its URLs. The bytes of a row are zlib: a byte of spelling for each id, then the bytes of the times, which count from the
row's `base`: all first bytes, then all second ones, and so on.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from webarcfs.archive.model.errors import Damaged, DatabaseDamaged
from webarcfs.archive.model.met_list import NOT_MET, WIDTH, Met, inflated, planes

#: URLs of a block.
SIZE: Final = 1024
_BYTES: Final = SIZE * (WIDTH + 1)


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
            spellings[block] = bytearray([NOT_MET]) * SIZE
            times[block] = array("q", bytes(8 * SIZE))
        spellings[block][place] = each.spelling
        times[block][place] = each.time
    for block in sorted(spellings):
        yield _packed(block, spellings[block], times[block])


def _packed(number: int, spellings: bytearray, times: array[int]) -> Block:
    pairs = list(zip(times, spellings, strict=True))
    base = min(time for time, spelling in pairs if spelling != NOT_MET)
    counted = array("Q", [time - base if spelling != NOT_MET else 0 for time, spelling in pairs])
    return Block(number, base, zlib.compress(spellings + planes(counted)))


def unpacked(block: Block) -> bytes:
    """Return the bytes of a row, for `met_at`. Raises DatabaseDamaged."""
    try:
        return inflated(block.times, _BYTES)
    except Damaged as error:
        raise DatabaseDamaged(f"webarc.db: {error}; webarc-agent recover rebuilds it") from None


def met_at(base: int, raw: bytes, number: int) -> Met | None:
    """Return what the unpacked bytes of a row say of the URL with an id of its block."""
    place = number % SIZE
    if raw[place] == NOT_MET:
        return None
    return Met(base + int.from_bytes(raw[place + SIZE :: SIZE]), raw[place])
