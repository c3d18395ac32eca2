"""What unpacks zstd, a record or more a frame, with a dictionary at the start of the file or without one.

The form is `.warc.zst` (IIPC, "Zstandard Compression for WARC Files"; RFC 8878). The library unpacks block by block: so
it never gets more than one frame, and never gives more than 128 KiB at once, however well they are packed.
"""

from __future__ import annotations

import re
from typing import IO, Any

from webarcfs.archive.model.errors import Damaged, UsageError
from webarcfs.warc.bytestream import BOMB_FACTOR, BOMB_SIZE, CHUNK, Packing

#: The first bytes of a frame; of a skippable frame; of the one with the dictionary.
MAGIC = b"\x28\xb5\x2f\xfd"
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
    return start.startswith(MAGIC) or _SKIPPABLE.match(start) is not None


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
            if len(head) < len(MAGIC):
                self._passed(head)
                return False
            if _SKIPPABLE.match(head):
                self.file.seek(place + 8 + int.from_bytes(head[4:8], "little"))
                continue
            if head.startswith(MAGIC) and self._begin(place, head):
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
                self.file.seek(-len(MAGIC) + 1, 1)
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
            if data.startswith(MAGIC):
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
