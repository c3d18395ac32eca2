"""Opens the files of other crawlers and splits them into records: WARC (ISO 28500, versions 0.17 to 1.1) and ARC.

What packs a file, and which form its records have, is recognised by its first bytes. Names are not reliable: files are
renamed, and a `.gz` file may contain any format.

All bytes that are no record are skipped. Without warcio, which stops at the first broken record (in ARC, at the first
line that it cannot read) and returns the part of a cut one as if it were complete. Here a record of WARC counts if its
block has its declared length and digest, and another record or the end of the file follows it.

ARC is what crawlers wrote before WARC: the Internet Archive's versions 1 and 2. A record is a line (URL, address, date,
type, length; version 2 has five fields more) and the answer as it came. Writers disagree on the length of the first
record, which describes the file, put blanks into URLs and types, and kept answers of HTTP/0.9 servers, which have no
head: all this is read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Protocol
from urllib.parse import quote

from webarcfs.warc import bytestream
from webarcfs.warc.bytestream import ByteStream, Packing, TextMode
from webarcfs.warc.http_response import declared_digest

# == tolerant =========================================================================================================


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

    def record(self, stream: ByteStream) -> ReadRecord | Broken | None:
        """Return the record that begins here, its head read; None for what is part of the format, and no record."""

    def follows(self, stream: ByteStream) -> bool:
        """Return whether a record ends here: another one or the end of the file follows."""


class ReadRecord:
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


def records(stream: ByteStream, form: RecordForm, complain: Complain) -> Iterator[ReadRecord]:
    """Yield the records of a file in order; `complain` receives each fault and its byte (after unpacking)."""
    broken = 0
    while stream.skip_blank():
        begin = stream.position
        if not stream.mark():
            complain("damaged compressed data", begin)
        record = form.record(stream)
        if record is None:
            continue
        if isinstance(record, ReadRecord):
            yield record
            if record.whole():
                continue
            record = Broken("a record that is cut off, damaged, or not what its length or digest says")
        broken += 1
        complain(record.what, begin)
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
        match = _START.search(data)
        return match.start() if match else -1

    def record(self, stream: ByteStream) -> ReadRecord | Broken:
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
        return ReadRecord(fields, int(length), stream, self)

    def follows(self, stream: ByteStream) -> bool:
        """Return whether a record ends here."""
        after = stream.peek(64).lstrip(_ENDS)
        return after.startswith(b"WARC/") or b"WARC/".startswith(after)


# == arcfile ==========================================================================================================


#: The first bytes of an ARC file.
MAGIC = b"filedesc://"
_LONGEST_LINE = 1 << 16
_MOST_BLANK = 64
_LINE = re.compile(rb"(?<=\n)[a-z][a-z0-9+.-]{1,30}:[^\n]*\n")
_URL = re.compile(rb"[a-z][a-z0-9+.-]{1,30}:")
_BEGUN = re.compile(rb"[a-z][a-z0-9+.-]{0,30}(:|\Z)")
_ADDRESS = re.compile(rb"[0-9A-Fa-f.:]{2,45}|-")
_DATE = re.compile(rb"(?:19|20)\d{10,16}")
_LENGTH = re.compile(rb"\d{1,18}")
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True)
class _Line:
    """What the line of a record says."""

    url: bytes
    address: str
    date: str
    type: str
    length: int


class ArcForm:
    """The form of ARC records, as WARC names their fields."""

    def find(self, data: bytes) -> int:
        """Return where a record starts in `data`, behind the end of a line; -1 without one."""
        return next((match.start() for match in _LINE.finditer(data) if _parsed(match[0])), -1)

    def record(self, stream: ByteStream) -> ReadRecord | Broken | None:
        """Return the record that begins here, its line read; None for the description of the file."""
        text = stream.readline(_LONGEST_LINE)
        line = _parsed(text)
        if text.startswith(MAGIC):
            _skip_description(stream, line.length if line else 0)
            return None
        if line is None:
            return Broken("no ARC record" if text.endswith(b"\n") else "a record whose line is cut off, or endless")
        if stream.rest is not None and line.length > stream.rest:
            return Broken("a record that is cut off")
        fields = {
            "warc-type": "response" if _has_head(stream, line) else "resource",
            "warc-target-uri": _text_of(line.url),
            "warc-date": line.date,
            "warc-ip-address": line.address,
            "content-type": line.type,
        }
        return ReadRecord(fields, line.length, stream, self)

    def follows(self, stream: ByteStream) -> bool:
        """Return whether a record ends here."""
        for size in (1 << 11, _LONGEST_LINE + _MOST_BLANK):
            ahead = stream.peek(size)
            after = ahead.lstrip(b"\r\n\0")
            if len(ahead) - len(after) > _MOST_BLANK or not after:
                return not after
            line, end, _ = after.partition(b"\n")
            if end:
                return line.startswith(MAGIC) or _parsed(line + end) is not None
            if len(ahead) < size:
                return _BEGUN.match(after) is not None
        return False


def is_arc_file(start: bytes) -> bool:
    """Return whether a file begins so: with its description, or, as a part of one does, with a record."""
    start = start.lstrip(b"\r\n\0")
    line, end, _ = start.partition(b"\n")
    return start.startswith(MAGIC) or _parsed(line + end) is not None


def _parsed(text: bytes) -> _Line | None:
    """Return the fields of a line, found from its end, since a URL or a type may have blanks in it."""
    words = text.rstrip(b"\r\n").split(b" ")
    if not text.endswith(b"\n") or not _URL.match(text) or not _LENGTH.fullmatch(words[-1]):
        return None
    for place in range(len(words) - 2, 1, -1):
        if _DATE.fullmatch(words[place]) and _ADDRESS.fullmatch(words[place - 1]):
            return _Line(
                b" ".join(words[: place - 1]),
                words[place - 1].decode("ascii"),
                words[place].decode("ascii")[:14].ljust(14, "0"),
                b" ".join(words[place + 1 : -1]).decode("latin-1"),
                int(words[-1]),
            )
    return None


def _skip_description(stream: ByteStream, length: int) -> None:
    """Skip the block of the first record: its length is that of some of its lines, of all, or of a line end more."""
    length = max(length - 2, 0)
    while length and (data := stream.read(length)):
        length -= len(data)
    while (line := stream.peekline(_LONGEST_LINE)) and not (_BEGUN if line[-1:] != b"\n" else _URL).match(line):
        stream.readline(_LONGEST_LINE)


def _has_head(stream: ByteStream, line: _Line) -> bool:
    """Return whether an answer begins with a status line; those of other protocols than HTTP are as they are."""
    if not line.url.startswith(b"http") or not line.length:
        return True
    return stream.peek(min(line.length, 5)).upper() == b"HTTP/"


def _text_of(url: bytes) -> str:
    """Return a URL as text: blanks, and bytes that are no UTF-8, percent-encoded."""
    try:
        return url.decode("utf-8").replace(" ", "%20")
    except UnicodeDecodeError:
        return quote(url, safe=_PRINTABLE)


# == foreignfile ======================================================================================================


_SAMPLE = 1 << 12
_DOUBLED = re.compile(rb"\s*WARC/\d\.\d{1,3}[ \t]*\r\r\n")


def stream_of(file: IO[bytes], size: int | None = None) -> ByteStream:
    """Return a seekable file as a stream; `size` is its size, where it cannot be asked for cheaply."""
    size = file.seek(0, 2) if size is None else size
    file.seek(0)
    start = file.read(64)
    file.seek(0)
    if start.startswith(bytestream.MAGIC):
        return ByteStream(bytestream.Gzip(file, size))
    if bytestream.is_zstd(start):
        return ByteStream(bytestream.Zstd(file, size))
    return ByteStream(TextMode(file, size) if _DOUBLED.match(start) else Packing(file, size))


def records_of(stream: ByteStream, complain: Complain) -> Iterator[ReadRecord]:
    """Yield the records of a WARC or ARC file in order; `complain` receives each fault and its byte."""
    is_arc = is_arc_file(stream.peek(_SAMPLE))
    return records(stream, ArcForm() if is_arc else WarcForm(), complain)
