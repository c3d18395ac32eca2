"""Reads HTTP responses in WARC records (ISO 28500): the head as received, its fields, the body as a stream.

A head stays the bytes that the server sent.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from webarcfs.warc.fields import base32

#: Longest head of a response that is read, in bytes.
LONGEST_HEAD = 1 << 20
#: Field of a record in a job's WARC whose body is stored without the codings in its head (imports).
DECODED = "webarcfs-decoded"
# One length, even if repeated (RFC 9110 section 8.6).
_CONTENT_LENGTH = re.compile(r"[ \t]*([0-9]+)(?:[ \t]*,[ \t]*\1)*[ \t]*", re.ASCII)
#: Replaces any length at least as large: no body is.
_BEYOND = 10**18
# As browsers and wget read it: some servers leave no blank before their reason.
_STATUS = re.compile(r"([0-9]{1,3})|([0-9]{3})[A-Za-z].*", re.ASCII)
# Of the first byte to the last.
_WHOLE_RANGE = re.compile(r"bytes[ \t]+0-([0-9]{1,18})/([0-9]{1,18})", re.ASCII | re.IGNORECASE)
_OK, _PARTIAL = 200, 206


class Readable(Protocol):
    """The source of a body."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; empty at the end."""

    def readline(self, size: int, /) -> bytes:
        """Return a line of at most `size` bytes, its end included."""


@dataclass(frozen=True, slots=True)
class Head:
    """A response's head: its bytes, and its fields by name in lower case (the first of each; RFC 9110 section 5)."""

    raw: bytes
    status: int
    fields: dict[str, str]

    def get(self, name: str) -> str:
        """Return a field's value, or an empty text."""
        return self.fields.get(name, "")

    @property
    def content_type(self) -> str:
        """Content-Type as sent."""
        return self.get("content-type")

    @property
    def forbids_sniffing(self) -> bool:
        """Whether the declared type holds whatever the body is (Fetch Standard, "determine nosniff")."""
        return self.get("x-content-type-options").partition(",")[0].strip().lower() == "nosniff"

    @property
    def length(self) -> int | None:
        """Content-Length, if it gives the length of the body (RFC 9112 section 6.3); else None."""
        if self.get("transfer-encoding") or not (found := _CONTENT_LENGTH.fullmatch(self.get("content-length"))):
            return None
        digits = found[1].lstrip("0") or "0"
        return int(digits) if len(digits) < len(str(_BEYOND)) else _BEYOND

    @property
    def document_status(self) -> int:
        """The status of the document: 200 for a 206 that says that it is the whole. The head stays as it was sent."""
        found = _WHOLE_RANGE.fullmatch(self.get("content-range")) if self.status == _PARTIAL else None
        return _OK if found is not None and int(found[1]) + 1 == int(found[2]) else self.status

    @property
    def has_bad_length(self) -> bool:
        """Whether Content-Length is invalid: the program that fetched the body cannot know its end."""
        says = self.fields.get("content-length")
        return says is not None and not self.get("transfer-encoding") and not _CONTENT_LENGTH.fullmatch(says)


@dataclass(frozen=True, slots=True)
class Response:
    """A response record. `stream` is the body as sent, valid until the next record is read."""

    offset: int
    url: str
    date: datetime
    head: Head
    stream: Readable
    size: int  # bytes of the body as sent that are in the record
    decoded: bool = False  # whether the body has no codings any more (`writer.py`)
    address: str = ""  # the server's, if the record has it: wget's records do, except those of a proxy


def parse_head(raw: bytes) -> Head | None:
    """Parse a head, as leniently as browsers do; return None when it does not start with a status line."""
    lines = raw.decode("latin-1").replace("\r\n", "\n").split("\n")
    words = lines[0].split(None, 2)
    status = _STATUS.fullmatch(words[1]) if len(words) > 1 and words[0].upper().startswith("HTTP/") else None
    if status is None:
        return None
    fields: dict[str, str] = {}
    name = ""
    for line in lines[1:]:
        if line[:1] in (" ", "\t") and name:  # obsolete line folding, RFC 9112 section 5.2
            fields[name] += " " + line.strip()
            continue
        name, colon, value = line.partition(":")
        name = name.strip().lower()
        if colon and name not in fields:
            fields[name] = value.strip()
        else:
            name = ""  # what goes on a line that is no field, or a second one of its name, is none either
    return Head(raw, int(status[1] or status[2]), fields)


def is_whole(head: Head, size: int) -> bool:
    """Return whether the body of a 206, of `size` bytes as sent, is the whole document.

    Browsers ask for videos and audio as the range from their first byte on.
    """
    found = _WHOLE_RANGE.fullmatch(head.get("content-range"))
    if head.status != _PARTIAL or found is None or int(found[1]) + 1 != int(found[2]):
        return False
    is_coded = bool(head.get("transfer-encoding") or head.get("content-encoding"))
    return is_coded or size == int(found[2])


def read_head(stream: Readable) -> bytes:
    """Return the head of a response as received, the empty line included, up to its limit."""
    lines = []
    size = 0
    while size < LONGEST_HEAD:
        line = stream.readline(LONGEST_HEAD)
        lines.append(line)
        size += len(line)
        if line in (b"\r\n", b"\n", b"", b"\r\r\n"):  # the last of a server that took its head for text
            break
    return b"".join(lines)


class Hashed:
    """A body as sent, hashed while it is read."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._sha1 = hashlib.sha1(usedforsecurity=False)

    def read(self, size: int) -> bytes:
        """Return the next bytes, `size` at most."""
        data = self._stream.read(size)
        self._sha1.update(data)
        return data

    def readline(self, size: int) -> bytes:
        """Return the next line, `size` bytes of it at most."""
        data = self._stream.readline(size)
        self._sha1.update(data)
        return data

    def finish(self) -> None:
        """Read the rest, after the last chunk."""
        while self.read(1 << 16):
            pass

    def digest(self) -> str:
        """Return the SHA-1 of all bytes read, in the form of WARC files and crawl.log."""
        return base32(self._sha1.digest())
