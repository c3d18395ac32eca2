"""A WARC file as one stream of bytes: plain, gzip a record, or gzip as a whole; whole, cut off, or damaged in places.

It reads forwards, and goes back to a possible next record when one proves to be broken. Damage in a gzip file loses the
rest of its member: the next one is searched.
"""

from __future__ import annotations

import re
import zlib
from typing import IO

_CHUNK = 1 << 16
#: The first bytes of a gzip member, and zlib's constant for members.
MAGIC = b"\x1f\x8b\x08"
GZIP = zlib.MAX_WBITS | 16
_RECORD = re.compile(rb"(?:\A|\n)(?=WARC/[01]\.\d{1,3}[ \t]*\r?\n)")
_LONGEST_START = 32


class GzipStream:
    """Reads `file`, which must be seekable, from its start.

    `position` counts decoded bytes; `breaks` are the positions at which some were lost to damage; `cut` is True if the
    file ends inside a gzip member.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.gzip = file.read(len(MAGIC)) == MAGIC
        self.size = file.seek(0, 2)
        file.seek(0)
        self.position = 0
        self.breaks: list[int] = []
        self.cut = False
        self._buffer = bytearray()
        self._input = b""
        self._input_end = 0  # offset in the file after `_input`
        self._member: zlib._Decompress | None = None
        self._member_start = 0
        self._starts: list[tuple[int, int]] = []  # of members: position, offset in the file

    @property
    def taken(self) -> int:
        """The number of bytes of the file that were read."""
        return min(self._file.tell(), self.size)

    def peek(self, size: int) -> bytes:
        """Return the next bytes without consuming them; fewer only at the end."""
        while len(self._buffer) < size and (more := self._more()):
            self._buffer += more
        return bytes(self._buffer[:size])

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end."""
        if not self._buffer:
            self._buffer += self._more()
        data = bytes(self._buffer[:size])
        self._skip(len(data))
        return data

    def readline(self, limit: int) -> bytes:
        """Return a line with its end, or the first `limit` bytes of a longer one."""
        size = 256
        while True:
            found = self.peek(min(size, limit))
            end = found.find(b"\n") + 1
            if end or len(found) < size or size >= limit:
                line = found[:end] if end else found
                self._skip(len(line))
                return line
            size *= 2

    def skip_blank(self) -> bool:
        """Skip line ends and padding; return False at the end of the file."""
        while data := self.peek(_CHUNK):
            blank = len(data) - len(data.lstrip(b"\r\n\0"))
            self._skip(blank)
            if blank < len(data):
                return True
        return False

    def mark(self) -> bool:
        """Begin a record: `resync` will not go back further. Returns False if bytes before it were damaged."""
        later = [each for each in self.breaks if each > self.position]
        damaged = len(later) < len(self.breaks)
        self.breaks = later
        self._starts = [each for each in self._starts if each[0] > self.position]
        return not damaged

    def resync(self, begin: int) -> bool:
        """Go to the next possible record after the broken one at `begin`; return False without one."""
        if not self.gzip:
            self._file.seek(begin + 1)
            self._buffer.clear()
            self.position = begin + 1
        elif later := [each for each in self._starts if each[0] > begin]:
            self.position, place = later[0]
            self._buffer.clear()
            self._go_to(place)
            self._starts = []
        while data := self.peek(_CHUNK):
            if found := _RECORD.search(data):
                self._skip(found.end())
                return True
            self._skip(max(len(data) - _LONGEST_START, 1) if len(data) == _CHUNK else len(data))
        return False

    def _skip(self, size: int) -> None:
        del self._buffer[:size]
        self.position += size

    def _more(self) -> bytes:
        if not self.gzip:
            return self._file.read(_CHUNK)
        while self._input or self._feed():
            if self._member is None and not self._open_member():
                continue
            try:
                data = self._inflate()
            except zlib.error:
                self._break()
                self._go_to(self._member_start + 1)
                continue
            if data:
                return data
        self.cut = self.cut or self._member is not None
        self._member = None
        return b""

    def _inflate(self) -> bytes:
        member = self._member
        assert member is not None
        data = member.decompress(self._input, _CHUNK)
        self._input = member.unconsumed_tail
        if member.eof:
            self._input, self._member = member.unused_data, None
        return data

    def _open_member(self) -> bool:
        """Begin the next member in the input; skip other bytes. Returns False if more input is needed."""
        while len(self._input) < len(MAGIC) and self._feed():
            pass
        found = self._input.find(MAGIC)
        passed = self._input[:found] if found >= 0 else self._input
        if passed.strip(b"\0"):
            self._break()
        if found < 0:
            keep = 0 if self._at_end() else len(MAGIC) - 1
            self._input = self._input[len(self._input) - keep :]
            return False if self._feed() else self._no_more()
        self._input = self._input[found:]
        self._member = zlib.decompressobj(GZIP)
        self._member_start = self._input_end - len(self._input)
        self._starts.append((self.position + len(self._buffer), self._member_start))
        return True

    def _break(self) -> None:
        self.breaks.append(self.position + len(self._buffer))

    def _no_more(self) -> bool:
        self._input = b""
        return False

    def _at_end(self) -> bool:
        return self._input_end >= self.size

    def _feed(self) -> bool:
        data = self._file.read(_CHUNK)
        self._input += data
        self._input_end = self._file.tell()
        return bool(data)

    def _go_to(self, place: int) -> None:
        self._file.seek(place)
        self._input, self._input_end, self._member = b"", place, None
