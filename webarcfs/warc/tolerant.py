"""Splits foreign WARC files (ISO 28500, versions 0.17 to 1.1) into records, and skips all other bytes.

Without warcio, which stops at the first broken record and returns the part of a cut one as if it were complete: here a
record counts if its block has its declared length and digest, and another record or the end of the file follows it.
`arcfile.py` has the form of ARC files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from webarcfs.warc.bytestream import ByteStream
from webarcfs.warc.fields import declared_digest

#: Longest head of a record that is read, in bytes.
LONGEST_HEAD = 1 << 18
#: Broken records after which the rest of a file is skipped: each may need a search through all of it.
MOST_BROKEN = 1000
_VERSION = re.compile(rb"WARC/(0\.1[78]|1\.\d)[ \t]*\r?\n")
_START = re.compile(rb"(?<=\n)WARC/[01]\.\d{1,3}[ \t]*\r?\n")
_CHUNK = 1 << 16
_ENDS = b"\r\n\0"

Complain = Callable[[str, int], None]


class RecordForm(Protocol):
    """The form of a format's records."""

    def find(self, data: bytes) -> int:
        """Return where a record starts in `data`, behind the end of a line; -1 without one."""

    def record(self, stream: ByteStream) -> Record | Broken | None:
        """Return the record that begins here, its head read; None for what is part of the format, and no record."""

    def follows(self, stream: ByteStream) -> bool:
        """Return whether a record ends here: another one or the end of the file follows."""


class Record:
    """A record: its fields as WARC names them, in lower case, and its block, which is read as a file.

    A caller that relies on the block reads it to its end and calls `whole`.
    """

    def __init__(self, fields: dict[str, str], length: int, stream: ByteStream, form: RecordForm) -> None:
        self.fields = fields
        self.length = length
        self._stream = stream
        self._form = form
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
            self._whole = not self._left and self._form.follows(self._stream) and not self._stream.broken_before(end)
            if self._declared is not None and self._hash is not None:
                self._whole = self._whole and self._hash.digest() == self._declared.value
        return self._whole


@dataclass(frozen=True, slots=True)
class Broken:
    """What is wrong with a record whose head cannot be used."""

    what: str


def records(stream: ByteStream, form: RecordForm, complain: Complain) -> Iterator[Record]:
    """Yield the records of a file in order; `complain` receives each fault and its byte (after unpacking)."""
    broken = 0
    while stream.skip_blank():
        begin = stream.position
        if not stream.mark():
            complain("damaged compressed data", begin)
        found = form.record(stream)
        if found is None:
            continue
        if isinstance(found, Record):
            yield found
            if found.whole():
                continue
            found = Broken("a record that is cut off, damaged, or not what its length or digest says")
        broken += 1
        complain(found.what, begin)
        if broken > MOST_BROKEN:
            complain("so many broken records that the rest was left", begin)
            return
        if not stream.resync(begin, form.find):
            break
    if not stream.mark():
        complain("damaged compressed data", stream.position)
    if stream.cut and not broken:
        complain("the file ends in the middle of its compressed data", stream.position)


class WarcForm:
    """The form of WARC records."""

    def find(self, data: bytes) -> int:
        """Return where a record starts in `data`, behind the end of a line; -1 without one."""
        found = _START.search(data)
        return found.start() if found else -1

    def record(self, stream: ByteStream) -> Record | Broken:
        """Return the record that begins here, its head read."""
        if not _VERSION.fullmatch(stream.readline(64)):
            return Broken("no WARC record")
        fields: dict[str, str] = {}
        name, size = "", 0
        while (line := stream.readline(LONGEST_HEAD)).strip(b"\r\n"):
            size += len(line)
            if size > LONGEST_HEAD:
                return Broken("a record whose head does not end")
            text = line.decode("utf-8", "replace")
            if text[0] in " \t" and name:
                fields[name] += f" {text.strip()}"
                continue
            name, _, value = text.partition(":")
            name = name.strip().lower()
            name = name if fields.setdefault(name, value.strip()) is not None else ""
        if not line.endswith(b"\n"):
            return Broken("a record whose head is cut off")
        length = fields.get("content-length", "")
        if not (length.isascii() and length.isdecimal() and len(length) < 19):
            return Broken("a record without a length")
        if stream.rest is not None and int(length) > stream.rest:
            return Broken("a record that is cut off")
        return Record(fields, int(length), stream, self)

    def follows(self, stream: ByteStream) -> bool:
        """Return whether a record ends here."""
        after = stream.peek(64).lstrip(_ENDS)
        return after.startswith(b"WARC/") or b"WARC/".startswith(after)
