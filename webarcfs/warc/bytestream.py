"""A foreign file as one stream of bytes, however it is packed: whole, cut off, or damaged in places.

It reads forwards, and returns to a possible next record when one proves to be broken. What unpacks a file is a
`Packing`: damage in it loses the rest of one piece (a gzip member, a zstd frame), and the next one is searched. The one
for gzip is here: a record or a whole file is a member (RFC 1952; WARC 1.1, annex D).

zstd is unpacked a record or more a frame, with a dictionary at the start of the file or without one.

The form is `.warc.zst` (IIPC, "Zstandard Compression for WARC Files"; RFC 8878). The library unpacks block by block: so
it never gets more than one frame, and never gives more than 128 KiB at once, however well they are packed.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import IO, Any

from webarcfs.archive.model.errors import Damaged, UsageError

# == bytestream =======================================================================================================


CHUNK = 1 << 16
#: Of the line that a record begins with, in bytes.
_LONGEST_START = 1 << 12
#: A piece that grows beyond this size by more than this factor is an attack on the disk; so is a body (`decoding.py`).
BOMB_SIZE = 1 << 28
BOMB_FACTOR = 200


class Packing:
    """How the bytes of `file` are packed; the file must be seekable. This one: not at all.

    `breaks` are the positions (of decoded bytes) at which some were lost to damage; `cut` is True if the file ends
    inside a piece. `starts` has position and place in the file of each piece.
    """

    #: Whether a position is a place in the file.
    is_plain = True

    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file = file
        self.size = size
        self.out = 0  # the position after all bytes that `more` returned
        self.breaks: list[int] = []
        self.cut = False
        self.starts: list[tuple[int, int]] = []

    def more(self) -> bytes:
        """Return the next decoded bytes, CHUNK or two of them at most; none at the end."""
        data = self.file.read(CHUNK)
        self.out += len(data)
        return data

    def after(self, begin: int) -> tuple[int, int] | None:
        """Return position and place of the first piece after the position `begin`, if it was seen."""
        return (
            (begin + 1, begin + 1)
            if self.is_plain
            else next((start for start in self.starts if start[0] > begin), None)
        )

    def go_to(self, position: int, place: int) -> None:
        """Continue at a place in the file, which is that position."""
        self.out = position
        self.starts = []
        self._enter(place)

    def _enter(self, place: int) -> None:
        self.file.seek(place)


class TextMode(Packing):
    """What a program wrote that took it for text: each line feed became two bytes, so that heads end in `\\r\\r\\n`.

    The lengths in the records are those before that, and hold again when it is undone.
    """

    is_plain = False

    def __init__(self, file: IO[bytes], size: int) -> None:
        super().__init__(file, size)
        self._kept = b""  # the last byte, where its line feed may follow

    def more(self) -> bytes:
        """Return the next bytes as they were; none at the end."""
        while read := self.file.read(CHUNK):
            data = self._kept + read
            self._kept = data[-1:] if data.endswith(b"\r") else b""
            data = data[: len(data) - len(self._kept)].replace(b"\r\n", b"\n")
            if data:
                self.out += len(data)
                return data
        data, self._kept = self._kept, b""
        self.out += len(data)
        return data


class ByteStream:
    """Reads what `packing` unpacks, from its start. `position` counts decoded bytes."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self.position = 0
        self._buffer = bytearray()

    @property
    def taken(self) -> int:
        """The number of bytes of the file that were read."""
        return min(self._packing.file.tell(), self._packing.size)

    @property
    def cut(self) -> bool:
        """Whether the file ends in the middle of what packs it."""
        return self._packing.cut

    @property
    def rest(self) -> int | None:
        """The number of bytes to the end, if that can be known."""
        return self._packing.size - self.position if self._packing.is_plain else None

    def broken_before(self, end: int) -> bool:
        """Whether bytes after the last `mark`, and before `end`, were lost to damage."""
        return any(position < end for position in self._packing.breaks)

    def peek(self, size: int) -> bytes:
        """Return the next bytes without consuming them; fewer only at the end."""
        while len(self._buffer) < size and (more := self._packing.more()):
            self._buffer += more
        return bytes(self._buffer[:size])

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end."""
        if not self._buffer:
            self._buffer += self._packing.more()
        data = bytes(self._buffer[:size])
        self._skip(len(data))
        return data

    def peekline(self, limit: int) -> bytes:
        """Return the next line with its end without consuming it, or the first `limit` bytes of a longer one."""
        size = 256
        while True:
            peeked = self.peek(min(size, limit))
            end = peeked.find(b"\n") + 1
            if end or len(peeked) < size or size >= limit:
                return peeked[:end] if end else peeked
            size *= 2

    def readline(self, limit: int) -> bytes:
        """Return a line with its end, or the first `limit` bytes of a longer one."""
        line = self.peekline(limit)
        self._skip(len(line))
        return line

    def skip_blank(self) -> bool:
        """Skip line ends and padding; return False at the end of the file."""
        while data := self.peek(CHUNK):
            blank = len(data) - len(data.lstrip(b"\r\n\0"))
            self._skip(blank)
            if blank < len(data):
                return True
        return False

    def mark(self) -> bool:
        """Begin a record: `resync` will not go back further. Returns False if bytes before it were damaged."""
        packing = self._packing
        later = [position for position in packing.breaks if position > self.position]
        damaged = len(later) < len(packing.breaks)
        packing.breaks = later
        packing.starts = [start for start in packing.starts if start[0] > self.position]
        return not damaged

    def resync(self, begin: int, find: Callable[[bytes], int]) -> bool:
        """Go to the next possible record after the broken one at `begin`; return False without one.

        `find` returns where a record starts in its argument, behind the end of a line; -1 without one.
        """
        piece = self._packing.after(begin)
        if piece:
            self._buffer.clear()
            self.position = piece[0]
            self._packing.go_to(*piece)
        before = b"\n" if piece and not self._packing.is_plain else b""  # pieces begin with records
        while data := before + self.peek(CHUNK):
            if (start := find(data)) >= 0:
                self._skip(start - len(before))
                return True
            size = len(data) - len(before)
            self._skip(max(size - _LONGEST_START, 1) if size >= CHUNK else size)
            before = b""
        return False

    def _skip(self, size: int) -> None:
        del self._buffer[:size]
        self.position += size


# == gzipstream =======================================================================================================


#: The first bytes of a gzip member, and zlib's constant for members.
MAGIC = b"\x1f\x8b\x08"
GZIP = zlib.MAX_WBITS | 16


class Gzip(Packing):
    """Unpacks the members of a file; skips whatever lies between them."""

    is_plain = False

    def __init__(self, file: IO[bytes], size: int) -> None:
        super().__init__(file, size)
        self._input = b""
        self._input_end = file.tell()  # the place in the file after `_input`
        self._member: zlib._Decompress | None = None
        self._member_start = 0
        self._member_out = 0

    def more(self) -> bytes:
        """Return the next decoded bytes; none at the end."""
        while self._input or self._feed():
            if self._member is None and not self._open_member():
                continue
            try:
                data = self._inflate()
            except zlib.error:
                self._leave()
                continue
            if data:
                self.out += len(data)
                return data
        self.cut = self.cut or self._member is not None
        self._member = None
        return b""

    def _inflate(self) -> bytes:
        member = self._member
        assert member is not None
        data = member.decompress(self._input, CHUNK)
        self._input = member.unconsumed_tail
        self._member_out += len(data)
        packed = self._input_end - len(self._input) - self._member_start
        if self._member_out > BOMB_SIZE and self._member_out > packed * BOMB_FACTOR:
            raise zlib.error
        if member.eof:
            self._input, self._member = member.unused_data, None
        return data

    def _leave(self) -> None:
        """Leave a damaged member, and search the next one in what may be no part of it."""
        self.breaks.append(self.out)
        self._enter(self._member_start + 1)

    def _open_member(self) -> bool:
        """Begin the next member in the input; skip other bytes. Returns False if more input is needed."""
        while len(self._input) < len(MAGIC) and self._feed():
            pass
        offset = self._input.find(MAGIC)
        passed = self._input[:offset] if offset >= 0 else self._input
        if passed.strip(b"\0"):
            self.breaks.append(self.out)
        if offset < 0:
            keep = 0 if self._input_end >= self.size else len(MAGIC) - 1
            self._input = self._input[len(self._input) - keep :]
            return False if self._feed() else self._no_more()
        self._input = self._input[offset:]
        self._member = zlib.decompressobj(GZIP)
        self._member_start = self._input_end - len(self._input)
        self._member_out = 0
        self.starts.append((self.out, self._member_start))
        return True

    def _no_more(self) -> bool:
        self._input = b""
        return False

    def _feed(self) -> bool:
        data = self.file.read(CHUNK)
        self._input += data
        self._input_end = self.file.tell()
        return bool(data)

    def _enter(self, place: int) -> None:
        self.file.seek(place)
        self._input, self._input_end, self._member = b"", place, None


# == zstdstream =======================================================================================================


#: The first bytes of a frame; of a skippable frame; of the one with the dictionary.
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_DICTIONARY = b"\x5d\x2a\x4d\x18"
_START = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")
_LONGEST_HEADER = 18
#: The largest dictionary, packed or not, and the largest window: as large as `zstd` has it; the form asks for 8 MiB.
_LARGEST_DICTIONARY = 1 << 23
_LARGEST_WINDOW = 1 << 27
_RAW, _RLE, _PACKED = range(3)
#: A frame of at most this size is given only when its end proves it whole: what damage makes of one spoils no other.
_HELD = 1 << 20


def is_zstd(start: bytes) -> bool:
    """Return whether a file with these first bytes is packed by zstd."""
    return start.startswith(ZSTD_MAGIC) or _SKIPPABLE.match(start) is not None


class Zstd(Packing):
    """Unpacks the frames of a file; skips whatever lies between them.

    Raises UsageError without the library, Damaged without the dictionary.
    """

    is_plain = False

    def __init__(self, file: IO[bytes], size: int) -> None:
        super().__init__(file, size)
        try:
            import zstandard  # noqa: PLC0415 # of the extra `exchange`
        except ImportError:
            raise UsageError("it is packed by zstd; pip install 'webarcfs[exchange]' brings what reads that") from None
        self._library: Any = zstandard
        self._dictionary = self._read_dictionary()
        try:
            self._decompressor = self._library.ZstdDecompressor(
                dict_data=self._dictionary, max_window_size=_LARGEST_WINDOW
            )
        except self._library.ZstdError as error:
            raise Damaged(f"its dictionary is damaged: {error}") from None
        self._frame: Any = None
        self._frame_start = 0
        self._frame_out = 0
        self._has_checksum = False
        self._needs_dictionary()

    def more(self) -> bytes:
        """Return the next decoded bytes; none at the end."""
        held = b""
        while self._frame is not None or self._open_frame():
            try:
                held += self._block()
            except EOFError:
                if not self._search(self._frame_start):
                    self.breaks.pop()
                    self.cut = True
                held = b""
                continue
            except (self._library.ZstdError, ValueError):
                self._search(self._frame_start)
                held = b""
                continue
            if held and (self._frame is None or self._frame_out > _HELD):
                self.out += len(held)
                return held
        return b""

    def _block(self) -> bytes:
        """Return what the next block holds. Raises EOFError where the file ends, ValueError for what is none."""
        head = self._exactly(3)
        bits = int.from_bytes(head, "little")
        kind, size = bits >> 1 & 3, bits >> 3
        if kind > _PACKED or size > 1 << 17:
            raise ValueError
        data: bytes = self._frame.decompress(head + self._exactly(1 if kind == _RLE else size))
        self._frame_out += len(data)
        if self._frame_out > BOMB_SIZE and self._frame_out > (self.file.tell() - self._frame_start) * BOMB_FACTOR:
            raise ValueError
        if bits & 1:
            data += self._frame.decompress(self._exactly(4)) if self._has_checksum else b""
            if not self._frame.eof:
                raise ValueError
            self._frame = None
        return data

    def _open_frame(self) -> bool:
        """Begin the next frame; skip skippable ones and other bytes. Returns False at the end of the file."""
        while True:
            place = self.file.tell()
            head = self.file.read(_LONGEST_HEADER)
            if len(head) < len(ZSTD_MAGIC):
                self._passed(head)
                return False
            if _SKIPPABLE.match(head):
                self.file.seek(place + 8 + int.from_bytes(head[4:8], "little"))
                continue
            if head.startswith(ZSTD_MAGIC) and self._begin(place, head):
                return True
            self._search(place)

    def _begin(self, place: int, head: bytes) -> bool:
        try:
            parameters = self._library.get_frame_parameters(head)
            size = self._library.frame_header_size(head)
            self._frame = self._decompressor.decompressobj()
            self._frame.decompress(head[:size])
        except self._library.ZstdError:
            self._frame = None
            return False
        self._has_checksum = parameters.has_checksum
        self._frame_start, self._frame_out = place, 0
        self.file.seek(place + size)
        self.starts.append((self.out, place))
        return True

    def _search(self, place: int) -> bool:
        """Go to what may be the next frame after the one at `place`, which is none; return False without one."""
        self.breaks.append(self.out)
        self._enter(place + 1)
        while data := self.file.read(CHUNK):
            start = self.file.tell() - len(data)
            if match := _START.search(data):
                self.file.seek(start + match.start())
                return True
            if len(data) == CHUNK:
                self.file.seek(-len(ZSTD_MAGIC) + 1, 1)
        return False

    def _passed(self, data: bytes) -> None:
        if data.strip(b"\0"):
            self.breaks.append(self.out)

    def _enter(self, place: int) -> None:
        self.file.seek(place)
        self._frame = None

    def _exactly(self, size: int) -> bytes:
        data = self.file.read(size)
        if len(data) < size:
            raise EOFError
        return data

    # -- the dictionary ------------------------------------------------------------------------------------------------

    def _read_dictionary(self) -> Any:
        """Return the dictionary at the start of the file, or None."""
        head = self.file.read(8)
        size = int.from_bytes(head[4:], "little")
        if not head.startswith(_DICTIONARY):
            self.file.seek(0)
            return None
        data = self.file.read(min(size, _LARGEST_DICTIONARY + 1))
        if len(data) < size or size > _LARGEST_DICTIONARY:
            raise Damaged(f"its dictionary of {size} bytes is cut off, or larger than {_LARGEST_DICTIONARY} bytes")
        try:
            if data.startswith(ZSTD_MAGIC):
                reader = self._library.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).stream_reader(data)
                data = reader.read(_LARGEST_DICTIONARY + 1)
            if len(data) > _LARGEST_DICTIONARY:
                raise Damaged(f"its dictionary is larger than {_LARGEST_DICTIONARY} bytes")
            return self._library.ZstdCompressionDict(data, dict_type=self._library.DICT_TYPE_FULLDICT)
        except (self._library.ZstdError, ValueError) as error:
            raise Damaged(f"its dictionary is damaged: {error}") from None

    def _needs_dictionary(self) -> None:
        """Raise Damaged if the first frame was made with another dictionary than that of the file."""
        place = self.file.tell()
        while _SKIPPABLE.match(head := self.file.read(_LONGEST_HEADER)):
            place += 8 + int.from_bytes(head[4:8], "little")
            self.file.seek(place)
        self.file.seek(place)
        try:
            wanted = self._library.get_frame_parameters(head).dict_id
        except self._library.ZstdError:
            return
        if wanted and wanted != (self._dictionary.dict_id() if self._dictionary else 0):
            raise Damaged(
                f"it was packed with the dictionary {wanted}, which is not in it; whoever made it has that, and "
                "`zstd -d -D DICTIONARY` unpacks it"
            )
