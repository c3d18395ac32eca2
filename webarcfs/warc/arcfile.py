"""The form of ARC files, which crawlers wrote before WARC: the Internet Archive's versions 1 and 2.

A record is a line (URL, address, date, type, length; version 2 has five fields more) and the answer as it came. Without
warcio: as for WARC it stops at the first line that it cannot read, and takes the part of a cut record for the whole.
Writers disagree on the length of the first record, which describes the file, put blanks into URLs and types, and kept
answers of HTTP/0.9 servers, which have no head: all this is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from webarcfs.warc.bytestream import ByteStream
from webarcfs.warc.tolerant import Broken, Record

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
        return next((found.start() for found in _LINE.finditer(data) if _parsed(found[0])), -1)

    def record(self, stream: ByteStream) -> Record | Broken | None:
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
        return Record(fields, line.length, stream, self)

    def follows(self, stream: ByteStream) -> bool:
        """Return whether a record ends here."""
        for size in (1 << 11, _LONGEST_LINE + _MOST_BLANK):
            found = stream.peek(size)
            after = found.lstrip(b"\r\n\0")
            if len(found) - len(after) > _MOST_BLANK or not after:
                return not after
            line, end, _ = after.partition(b"\n")
            if end:
                return line.startswith(MAGIC) or _parsed(line + end) is not None
            if len(found) < size:
                return _BEGUN.match(after) is not None
        return False


def is_arc(start: bytes) -> bool:
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
