"""The lists of URLs that crawls leave: redirects of a domain, and what a crawl met unchanged. Pure.

The redirects of a domain are lists of lines below `%redirects/` in its tree. A line is `URL TAB STATUS TAB TARGET TAB
TIME`. URL and TARGET are canonical and have a scheme, TARGET also a fragment; TIME is UTC (`YYYY-MM-DDThh:mm:ssZ`),
when the server first sent this status with this target. The list of a URL is `%redirects/<xx>/<yy>`, by the first four
hex digits of the SHA-256 of the URL, sorted by URL: so a change rewrites a list of a few lines. No document can have
that path: in the name of an ARC, two hex digits follow a `%`.

The list of a crawl says which URLs it met unchanged, and when. It has a number for each ARC of the tree that the
crawl's publication saw, in that tree's own order, then one for each line of its lists of redirects. So it contains no
URL; two digests identify its URLs. A number is either nothing (the crawl stored this version itself, or did not meet
the URL), or a time in seconds, with the spelling of the URL that was asked for, since several URLs share a place
(`arc_paths`).

In bytes, the list of a crawl is a line in ASCII (form, earliest time in seconds since 1970, then number and digest of
ARCs and of redirects), then zlib: a byte of spelling for each number, then the five bytes of each, the first bytes of
all of them first. Such a number is the difference to the time of the one before it, as neighbours are fetched one after
the other; its last bit is the sign. A URL takes two or three bytes.

webarc.db has a row for each crawl and block of URLs that it met. A block has the documents (and redirects) whose ids
differ in their last ten bits alone. So all that was met of one URL in a thousand crawls is in a thousand rows that lie
side by side, and a crawl of a site adds a row for each thousand of its URLs. The bytes of a row are zlib: a byte of
spelling for each id, then the bytes of the times, which count from the row's `base`: all first bytes, then all second
ones, and so on.
"""

from __future__ import annotations

import hashlib
import re
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, NamedTuple

from webarcfs.archive.model.arc_paths import DIRECTORY_INDEX
from webarcfs.archive.model.errors import Damaged, DatabaseDamaged, UrlRefused
from webarcfs.archive.model.metadata import format_utc
from webarcfs.archive.model.urls import canonical, joined

# == redirects, pure ==================================================================================================


#: The folder of the lists, in the root of a domain's tree.
REDIRECTS = "%redirects"
#: HTTP statuses of redirects (RFC 9110 section 15.4).
STATUSES = frozenset({301, 302, 303, 307, 308})
#: Longest URL and longest target, in characters; a redirect with a longer one is not kept.
LONGEST_TARGET = 2_000
#: Length of a chain of redirects that is followed, as browsers do (the WHATWG Fetch standard, HTTP-redirect fetch).
LONGEST_CHAIN = 20
#: Most lines of one list; an honest site has one or two in each.
MOST_LINES = 2_000

_LINE = re.compile(r"(https?://[^\s]+)\t(\d{3})\t(https?://[^\s]+)\t(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)", re.ASCII)
_FRAGMENT = re.compile(rb"[^A-Za-z0-9\-._~!*'();:@&=+$,/?%]|%(?![0-9A-Fa-f]{2})")
#: C0 controls and the space, which browsers take off a URL's ends; other blanks are escaped.
_BLANKS = "".join(map(chr, range(0x21)))
_PLACE = re.compile(rf"{REDIRECTS}/[0-9a-f]{{2}}/[0-9a-f]{{2}}")


@dataclass(frozen=True, slots=True, order=True)
class Redirect:
    """One redirect: a line of a list. `time` is UTC."""

    url: str
    status: int
    target: str
    time: datetime

    def leads_as(self, other: Redirect) -> bool:
        """Return whether both say the same: status and target."""
        return (self.url, self.status, self.target) == (other.url, other.status, other.target)

    @property
    def is_to_itself(self) -> bool:
        """Whether it leads to its own URL: evidence that the server sent it, and nothing to follow."""
        return without_fragment(self.target) == self.url

    def __str__(self) -> str:
        return f"{self.url}\t{self.status}\t{self.target}\t{format_utc(self.time)}"


def place_of(url: str) -> str:
    """Return the path of the list of a canonical URL, in the tree of its domain."""
    digest = hashlib.sha256(url.encode()).hexdigest()
    return f"{REDIRECTS}/{digest[:2]}/{digest[2:4]}"


def is_place(path: str) -> bool:
    """Return whether a list may have this path in the tree of a domain."""
    return _PLACE.fullmatch(path) is not None


def is_inside(path: str) -> bool:
    """Return whether a path in the tree of a domain belongs to the redirects."""
    return path == REDIRECTS or path.startswith(f"{REDIRECTS}/")


def write_list(redirects: Iterable[Redirect]) -> bytes:
    """Return a list: the lines of redirects, sorted."""
    return b"".join(f"{redirect}\n".encode() for redirect in sorted(redirects))


def read_list(raw: bytes, place: str = "") -> list[Redirect]:
    """Return the redirects of a list, sorted by URL, each URL once.

    Raises Damaged for anything that `write_list` does not write; with `place`, also for a URL of another list.
    """
    try:
        lines = raw.decode("ascii").split("\n")
        redirects = [_read_line(line) for line in lines[:-1]]
    except ValueError as error:
        raise Damaged(f"no list of redirects: {error}") from None
    if lines[-1]:
        raise Damaged("no list of redirects: its last line has no end")
    if any(one.url >= other.url for one, other in pairwise(redirects)):
        raise Damaged("no list of redirects: its lines are not sorted by URL")
    if place and (strange := next((redirect.url for redirect in redirects if place_of(redirect.url) != place), None)):
        raise Damaged(f"{strange} does not belong into this list")
    return redirects


def _read_line(line: str) -> Redirect:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"{line[:200]!r} is no URL, status, target and time")
    url, status, target, time = match.groups()
    if int(status) not in STATUSES:
        raise ValueError(f"{status} is no status of a redirect")
    return Redirect(url, int(status), target, datetime.fromisoformat(time).astimezone(UTC))


def target_of(url: str, location: str) -> str:
    """Return the target of a redirect from `url`, by its header Location: canonical, with its fragment.

    A relative one is resolved as browsers do; one without a fragment has that of `url` (RFC 9110 section 10.2.2), which
    has none here. Bytes that are not UTF-8 stay those bytes, escaped.
    Returns an empty string where it is no URL that can be archived.
    """
    text = _decoded(location.encode("latin-1", "replace")).strip(_BLANKS)
    if not text:
        return ""
    try:
        address, sign, fragment = text.partition("#")
        target = canonical(joined(url, address))
    except (UrlRefused, ValueError):
        return ""
    return target + (f"#{_escaped(fragment)}" if sign and fragment else "")


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeError:
        return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw)


def _escaped(fragment: str) -> str:
    """Return a fragment with escapes where RFC 3986 section 3.5 needs them."""
    raw = _FRAGMENT.sub(lambda match: b"".join(b"%%%02X" % byte for byte in match[0]), fragment.encode())
    return raw.decode("ascii")


def is_too_long(url: str) -> bool:
    """Return whether a URL or a target is too long to be kept."""
    return len(url) > LONGEST_TARGET


def without_fragment(target: str) -> str:
    """Return the URL that a target asks a server for."""
    return target.partition("#")[0]


# == met list, pure ===================================================================================================


#: Most numbers of a list that is read.
MOST: Final = 50_000_000
_FORM: Final = b"webarcfs-met-1"
_MET_LIST_LINE = re.compile(rb"%s (-?\d{1,12}) (\d{1,8}) ([0-9a-f]{16}) (\d{1,8}) ([0-9a-f]{16})\n" % _FORM)
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


def write_met_list(met: MetList) -> bytes:
    """Return the bytes of a list."""
    columns = met.arcs, met.redirects
    earliest = min((meeting.time for column in columns for meeting in column if meeting is not None), default=0)
    digests = b" ".join(b"%d %s" % (len(column), column.names.encode()) for column in columns)
    spellings = met.arcs.spellings + met.redirects.spellings
    differences = array("Q")
    last = earliest
    for meeting in (*met.arcs, *met.redirects):
        time = last if meeting is None else meeting.time
        differences.append((time - last) * 2 if time >= last else (last - time) * 2 - 1)
        last = time
    return b"%s %d %s\n" % (_FORM, earliest, digests) + zlib.compress(spellings + planes(differences), 9)


def read_met_list(raw: bytes) -> MetList:
    """Return the inverse of `write`. Raises Damaged for anything else, whatever it unpacks to."""
    match = _MET_LIST_LINE.match(raw[:_LONGEST_LINE])
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
    """Return in which of its spellings a canonical URL has its place."""
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


# == met blocks, pure =================================================================================================


#: URLs of a block.
SIZE: Final = 1024
_BYTES: Final = SIZE * (WIDTH + 1)


@dataclass(frozen=True, slots=True)
class MetBlock:
    """What one crawl met of the URLs of one block: its number, the earliest time, the packed times."""

    number: int
    base: int
    times: bytes


def blocks_of(met: Iterable[tuple[int, Met]]) -> Iterator[MetBlock]:
    """Yield the blocks of what a crawl met: pairs of id and Met, in any order. A block without any has no row."""
    spellings: dict[int, bytearray] = {}
    times: dict[int, array[int]] = {}
    for number, meeting in met:
        block, place = divmod(number, SIZE)
        if block not in spellings:
            spellings[block] = bytearray([NOT_MET]) * SIZE
            times[block] = array("q", bytes(8 * SIZE))
        spellings[block][place] = meeting.spelling
        times[block][place] = meeting.time
    for block in sorted(spellings):
        yield _packed(block, spellings[block], times[block])


def _packed(number: int, spellings: bytearray, times: array[int]) -> MetBlock:
    pairs = list(zip(times, spellings, strict=True))
    base = min(time for time, spelling in pairs if spelling != NOT_MET)
    counted = array("Q", [time - base if spelling != NOT_MET else 0 for time, spelling in pairs])
    return MetBlock(number, base, zlib.compress(spellings + planes(counted)))


def unpacked(block: MetBlock) -> bytes:
    """Return the bytes of a row, for `meetings_of`. Raises DatabaseDamaged."""
    try:
        return inflated(block.times, _BYTES)
    except Damaged as error:
        raise DatabaseDamaged(f"webarc.db: {error}; webarc-agent recover rebuilds it") from None


def met_in(block: MetBlock) -> Iterator[tuple[int, Met]]:
    """Yield the ids of a block that were met, with what was met of each. Raises DatabaseDamaged."""
    raw = unpacked(block)
    for place in range(SIZE):
        if raw[place] != NOT_MET:
            yield block.number * SIZE + place, Met(block.base + int.from_bytes(raw[place + SIZE :: SIZE]), raw[place])


def extent_of(block: MetBlock) -> tuple[int, int, int]:
    """Return how many ids of a block were met, the earliest time and the latest. Raises DatabaseDamaged."""
    raw = unpacked(block)
    latest = max(zip(*(raw[SIZE * (at + 1) : SIZE * (at + 2)] for at in range(WIDTH)), strict=True))
    return SIZE - raw[:SIZE].count(NOT_MET), block.base, block.base + int.from_bytes(bytes(latest))


def meetings_of(rows: Iterable[tuple[int, int, bytes]], number: int) -> list[tuple[int, int, int]]:
    """Return what crawls met of the URL with an id: snapshot, time and spelling, in the order of the rows.

    `rows` are those of its block: snapshot, earliest time, unpacked bytes. Plain tuples: datasets ask this of each URL.
    """
    place = number % SIZE
    return [
        (seq, base + int.from_bytes(raw[place + SIZE :: SIZE]), raw[place])
        for seq, base, raw in rows
        if raw[place] != NOT_MET
    ]
