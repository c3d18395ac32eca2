"""Splits foreign WARC files (ISO 28500, versions 0.17 to 1.1) into records, and skips all other bytes.

Without warcio, which stops at the first broken record and returns the part of a cut one as if it were complete: here a
record counts if its block has its declared length and digest, and another record or the end of the file follows it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from webarcfs.warc.fields import declared_digest
from webarcfs.warc.gzipstream import GzipStream

#: Longest head of a record that is read, in bytes.
LONGEST_HEAD = 1 << 18
#: Broken records after which the rest of a file is skipped: each may need a search through all of it.
MOST_BROKEN = 1000
_VERSION = re.compile(rb"WARC/(0\.1[78]|1\.\d)[ \t]*\r?\n")
_CHUNK = 1 << 16
_ENDS = b"\r\n\0"

Complain = Callable[[str, int], None]


class WarcRecord:
    """A record: its fields by name in lower case, and its block, which is read as a file.

    A caller that relies on the block reads it to its end and calls `whole`.
    """

    def __init__(self, fields: dict[str, str], length: int, stream: GzipStream) -> None:
        self.fields = fields
        self.length = length
        self._stream = stream
        self._left = length
        self._whole: bool | None = None
        self._declared = declared_digest(fields.get("warc-block-digest", ""))
        self._hash = hashlib.new(self._declared.algorithm, usedforsecurity=False) if self._declared else None

    @property
    def type(self) -> str:
        """WARC-Type, in lower case."""
        return self.fields.get("warc-type", "").lower()

    @property
    def is_verified(self) -> bool:
        """Whether `whole` compares the block with a digest."""
        return self._declared is not None

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes of the rest of the block."""
        return self._taken(self._stream.read(min(size, self._left)))

    def readline(self, size: int = -1) -> bytes:
        """Return the next line of the block."""
        limit = self._left if size < 0 else min(size, self._left)
        return self._taken(self._stream.readline(min(limit, LONGEST_HEAD)))

    def _taken(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._hash is not None:
            self._hash.update(data)
        return data

    def whole(self) -> bool:
        """Return whether the block is complete, matches its digest, and the record ends at its declared length.

        Reads the rest.
        """
        if self._whole is None:
            while self._left and self.read(_CHUNK):
                pass
            end = self._stream.position
            after = self._stream.peek(64).lstrip(_ENDS)
            follows = after.startswith(b"WARC/") or b"WARC/".startswith(after)
            self._whole = not self._left and follows and not any(each < end for each in self._stream.breaks)
            if self._declared is not None and self._hash is not None:
                self._whole = self._whole and self._hash.digest() == self._declared.value
        return self._whole


@dataclass(frozen=True, slots=True)
class _Broken:
    what: str


def records(stream: GzipStream, complain: Complain) -> Iterator[WarcRecord]:
    """Yield the records of a file in order; `complain` receives each fault and its byte (after unpacking)."""
    broken = 0
    while stream.skip_blank():
        begin = stream.position
        if not stream.mark():
            complain("damaged compressed data", begin)
        found = _record(stream)
        if isinstance(found, WarcRecord):
            yield found
            if found.whole():
                continue
            found = _Broken("a record that is cut off, damaged, or not what its length or digest says")
        broken += 1
        complain(found.what, begin)
        if broken > MOST_BROKEN:
            complain("so many broken records that the rest was left", begin)
            return
        if not stream.resync(begin):
            break
    if not stream.mark():
        complain("damaged compressed data", stream.position)
    if stream.cut and not broken:
        complain("the file ends in the middle of its compressed data", stream.position)


def _record(stream: GzipStream) -> WarcRecord | _Broken:
    if not _VERSION.fullmatch(stream.readline(64)):
        return _Broken("no WARC record")
    fields: dict[str, str] = {}
    name, size = "", 0
    while (line := stream.readline(LONGEST_HEAD)).strip(b"\r\n"):
        size += len(line)
        if size > LONGEST_HEAD:
            return _Broken("a record whose head does not end")
        text = line.decode("utf-8", "replace")
        if text[0] in " \t" and name:
            fields[name] += f" {text.strip()}"
            continue
        name, _, value = text.partition(":")
        name = name.strip().lower()
        name = name if fields.setdefault(name, value.strip()) is not None else ""
    if not line.endswith(b"\n"):
        return _Broken("a record whose head is cut off")
    length = fields.get("content-length", "")
    if not (length.isascii() and length.isdecimal() and len(length) < 19):
        return _Broken("a record without a length")
    if not stream.gzip and stream.position + int(length) > stream.size:
        return _Broken("a record that is cut off")
    return WarcRecord(fields, int(length), stream)
