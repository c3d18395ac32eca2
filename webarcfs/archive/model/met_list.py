"""The list of a crawl: which URLs it met unchanged, and when. Pure.

The list has a number for each ARC of the tree that the crawl's publication saw, in that tree's own order, then one for
each line of its lists of redirects. So no URL stands in it; two digests tell of which URLs it is. A number is either
nothing (the crawl stored this version itself, or did not meet the URL), or a time in seconds, with the spelling of the
URL that was asked for, since several URLs share a place (`arc_paths`).

In bytes: a line in ASCII (form, earliest time in seconds since 1970, then number and digest of ARCs and of redirects),
then zlib: a byte of spelling for each number, then the five bytes of each, the first bytes of all of them first. Such a
number is the difference to the time of the one before it, as neighbours are fetched one after the other; its last bit
is the sign. A URL takes two or three bytes.
"""

from __future__ import annotations

import hashlib
import re
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from webarcfs.archive.model.arc_paths import DIRECTORY_INDEX
from webarcfs.archive.model.errors import Damaged

#: Most numbers of a list that is read.
MOST: Final = 50_000_000
_FORM: Final = b"webarcfs-met-1"
_LINE = re.compile(rb"%s (-?\d{1,12}) (\d{1,8}) ([0-9a-f]{16}) (\d{1,8}) ([0-9a-f]{16})\n" % _FORM)
_LONGEST_LINE: Final = 100
#: Bytes of a number: half of their values are enough for the years 1 to 9999.
WIDTH: Final = 5
_DIGITS: Final = 16
#: The first and last second of the years 1 to 9999, but for a day at each end: CET is not UTC.
_FIRST, _LAST = -62135596800 + 86400, 253402300799 - 86400
#: The spelling of what was not met.
NOT_MET: Final = 0xFF
#: Bits of a spelling: the URL has http, not https; its last segment is written as `index.html`, not left empty.
HTTP: Final = 1
INDEX: Final = 2
_SPELLINGS: Final = bytes({NOT_MET, *range(HTTP + INDEX + 1)})


class Met(NamedTuple):
    """A crawl met a URL unchanged at this time (seconds since 1970), asking for it in this spelling."""

    time: int
    spelling: int = 0


@dataclass(slots=True)
class MetColumn:
    """The numbers of ARCs or of redirects, in their order. `names` digests what they are of."""

    times: array[int] = field(default_factory=lambda: array("q"))
    spellings: bytearray = field(default_factory=bytearray)
    names: str = ""

    def __len__(self) -> int:
        return len(self.spellings)

    def __iter__(self) -> Iterator[Met | None]:
        for time, spelling in zip(self.times, self.spellings, strict=True):
            yield None if spelling == NOT_MET else Met(time, spelling)

    def along(self, names: Iterable[str]) -> Iterator[tuple[str, Met | None]]:
        """Yield each name with its number. Raises Damaged at the end, or before it, if the list is of other names."""
        digest, numbers = _Digest(), iter(self)
        for name in names:
            digest.add(name)
            if digest.count > len(self):
                break
            yield name, next(numbers)
        if digest.count != len(self) or str(digest) != self.names:
            raise Damaged(f"the list of what a crawl met is not of these {digest.count} URLs; it has {len(self)}")


@dataclass(frozen=True, slots=True)
class MetList:
    """What a crawl met unchanged: of the ARCs and of the redirects that its publication saw."""

    arcs: MetColumn
    redirects: MetColumn


class ColumnWriter:
    """Makes a column, name by name, in their order."""

    def __init__(self) -> None:
        self._column, self._digest = MetColumn(), _Digest()

    def add(self, name: str, met: Met | None) -> None:
        """Add a name with what was met of it."""
        self._digest.add(name)
        self._column.times.append(0 if met is None else met.time)
        self._column.spellings.append(NOT_MET if met is None else met.spelling)

    def column(self) -> MetColumn:
        """Return the column."""
        self._column.names = str(self._digest)
        return self._column


def column(rows: Iterable[tuple[str, Met | None]]) -> MetColumn:
    """Return a column of names, in their order, with what was met."""
    writer = ColumnWriter()
    for name, met in rows:
        writer.add(name, met)
    return writer.column()


def write(met: MetList) -> bytes:
    """Return the bytes of a list."""
    columns = met.arcs, met.redirects
    earliest = min((each.time for part in columns for each in part if each is not None), default=0)
    told = b" ".join(b"%d %s" % (len(part), part.names.encode()) for part in columns)
    spellings = met.arcs.spellings + met.redirects.spellings
    differences = array("Q")
    last = earliest
    for each in (*met.arcs, *met.redirects):
        time = last if each is None else each.time
        differences.append((time - last) * 2 if time >= last else (last - time) * 2 - 1)
        last = time
    return b"%s %d %s\n" % (_FORM, earliest, told) + zlib.compress(spellings + planes(differences), 9)


def read(raw: bytes) -> MetList:
    """Return the inverse of `write`. Raises Damaged for anything else, whatever it unpacks to."""
    match = _LINE.match(raw[:_LONGEST_LINE])
    if match is None:
        raise Damaged("this is no list of what a crawl met")
    earliest, arcs, of_arcs, redirects, of_redirects = match.groups()
    counts = int(arcs), int(redirects)
    number = sum(counts)
    if number > MOST:
        raise Damaged(f"a list of what a crawl met has {number} numbers; at most {MOST} are read")
    unpacked = inflated(raw[match.end() :], number * (WIDTH + 1))
    spellings = unpacked[:number]
    if spellings.translate(None, _SPELLINGS):
        raise Damaged("a list of what a crawl met has a spelling that no URL has")
    times = _times(unpacked[number:], number, int(earliest))
    names = of_arcs.decode(), of_redirects.decode()
    spans = slice(0, counts[0]), slice(counts[0], number)
    columns = [
        MetColumn(times[span], bytearray(spellings[span]), name) for span, name in zip(spans, names, strict=True)
    ]
    return MetList(*columns)


def spelling_of(url: str) -> int:
    """Return in which of its spellings a canonical URL stands for its place."""
    path = url.partition("?")[0]
    return HTTP * url.startswith("http:") + INDEX * path.endswith(f"/{DIRECTORY_INDEX}")


def spelled(url: str, spelling: int) -> str:
    """Return the URL of the same place in another spelling."""
    _, _, rest = url.partition("://")
    path, mark, query = rest.partition("?")
    folder = path.removesuffix(DIRECTORY_INDEX)
    if folder.endswith("/"):
        path = folder + DIRECTORY_INDEX * bool(spelling & INDEX)
    return f"{'http' if spelling & HTTP else 'https'}://{path}{mark}{query}"


class _Digest:
    """Counts and digests names."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.count = 0

    def add(self, name: str) -> None:
        self._digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
        self.count += 1

    def __str__(self) -> str:
        return self._digest.hexdigest()[:_DIGITS]


def planes(numbers: array[int]) -> bytes:
    """Return the last five bytes of each number, the first bytes of all of them first."""
    raw = _highest_first(array("Q", numbers)).tobytes()
    return b"".join(raw[at::8] for at in range(8 - WIDTH, 8))


def inflated(packed: bytes, size: int) -> bytes:
    """Unpack `size` bytes. Raises Damaged if they are more or less."""
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(packed, size + 1)
    except zlib.error as error:
        raise Damaged(f"a list of what a crawl met cannot be unpacked: {error}") from None
    if len(unpacked) != size or not unpacker.eof or unpacker.unused_data:
        raise Damaged(f"a list of what a crawl met does not unpack to {size} bytes")
    return unpacked


def _times(packed: bytes, number: int, earliest: int) -> array[int]:
    spread = bytearray(8 * number)
    for at in range(WIDTH):
        spread[8 - WIDTH + at :: 8] = packed[at * number : (at + 1) * number]
    differences = array("Q")
    differences.frombytes(spread)
    times, last = array("q"), earliest
    for difference in _highest_first(differences):
        last += -((difference + 1) >> 1) if difference & 1 else difference >> 1
        times.append(last)
    if number and not _FIRST <= min(times) <= max(times) <= _LAST:
        raise Damaged("a list of what a crawl met has a time that is none")
    return times


def _highest_first(numbers: array[int]) -> array[int]:
    """Swap the bytes of numbers, unless the machine has the highest one first."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
