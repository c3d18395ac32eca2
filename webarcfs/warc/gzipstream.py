"""What unpacks gzip, a record or a whole file a member (RFC 1952; WARC 1.1, annex D)."""

from __future__ import annotations

import zlib
from typing import IO

from webarcfs.warc.bytestream import BOMB_FACTOR, BOMB_SIZE, CHUNK, Packing

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
        found = self._input.find(MAGIC)
        passed = self._input[:found] if found >= 0 else self._input
        if passed.strip(b"\0"):
            self.breaks.append(self.out)
        if found < 0:
            keep = 0 if self._input_end >= self.size else len(MAGIC) - 1
            self._input = self._input[len(self._input) - keep :]
            return False if self._feed() else self._no_more()
        self._input = self._input[found:]
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
