"""HTTP responses in WARC records (ISO 28500): the head as received, its fields, the body as a stream.

A received head stays the bytes that the server sent. Dates and digests in fields of records are brought to one form, so
that they can be compared.

For a body without codings a head is made: what the server sent, without what is no longer true. Content-Encoding,
Transfer-Encoding and fields of the connection are left out; Content-Length is that of the body. Where no head is kept,
or none that can be read, one is made that says no more than what is known.

The values of fields that may have secrets can be blanked: cookies, and what HTTP's authentication sends.

A value becomes as many asterisks, so that sizes and all else stay. Lines are read as leniently as by any program that
takes them for fields: a line that continues another one is a part of its value, and a lone CR ends a line as well.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final, Protocol

from webarcfs.archive.model.metadata import CET, now

# == fields ===========================================================================================================


_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?"
    r"(?:Z|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>[0-5]\d))?)?)?)?"
    r"|(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)",
    re.ASCII,
)
# ClueWeb09 has the day of the year where that of the month belongs: 2009-03-84T12:35:08-0700.
_DAY_OF_YEAR = re.compile(r"(\d{4}-(\d\d))-(3[2-9]|[4-9]\d|\d{3})(?=T)", re.ASCII)
_FRACTION = re.compile(r"T\d\d:\d\d:\d\d\.(\d{1,9})", re.ASCII | re.IGNORECASE)
_LEAP_SECOND = re.compile(r"(T\d\d:\d\d):60", re.ASCII)
_OLDEST = datetime(1990, 1, 1, tzinfo=CET)  # the web is no older
_CLOCK_SKEW = timedelta(days=1)
#: Writers' algorithms, and the size of their digests in bytes.
_DIGESTS = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}
_HEX = re.compile(r"[0-9a-fA-F]{40}")


def parse_date(text: str) -> datetime | None:
    """Return a WARC-Date (1.0; 1.1 with fractions of a second, or without smaller parts), to the second, in CET.

    Also in the forms that other writers gave it: with an offset, a leap second, or a day of the year. None for an
    invalid one, one before the web, or one in the future.
    """
    text, leap = _LEAP_SECOND.subn(r"\1:59", _DAY_OF_YEAR.sub(_with_day_of_month, text.strip().upper()))
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    sign, hours, minutes = match["sign"], int(match["hours"] or 0), int(match["minutes"] or 0)
    east = timedelta(hours=hours, minutes=minutes) * (-1 if sign == "-" else 1)
    parts = [int(part) for part in (*match.groups()[:6], *match.groups()[9:]) if part is not None]
    try:
        date = datetime(*(parts + [1, 1][: max(3 - len(parts), 0)]), tzinfo=UTC)  # type: ignore[arg-type,misc]
        date = (date - east + timedelta(seconds=leap)).astimezone(CET)
    except (ValueError, OverflowError):
        return None
    return date if _OLDEST <= date <= now() + _CLOCK_SKEW else None


def nanoseconds_of(text: str) -> int:
    """Return the fraction of a second that a WARC-Date has, in nanoseconds; 0 without one."""
    match = _FRACTION.search(text)
    return int(match[1].ljust(9, "0")) if match else 0


def _with_day_of_month(match: re.Match[str]) -> str:
    """Return the date of a day of the year; as it is, and invalid, if that day is not of its month."""
    try:
        day = datetime(int(match[1][:4]), 1, 1, tzinfo=UTC) + timedelta(days=int(match[3]) - 1)
    except (ValueError, OverflowError):
        return match[0]
    return f"{day:%Y-%m-%d}" if f"{day:%Y-%m}" == match[1] else match[0]


def digest_key(text: str) -> str:
    """Return a digest in the form for comparisons: `sha1:` and base32; empty without one."""
    algorithm, _, value = text.strip().partition(":")
    algorithm = algorithm.lower().replace("-", "")
    if not value:
        return ""
    if algorithm == "sha1" and _HEX.fullmatch(value):
        value = base32(bytes.fromhex(value))
    return f"{algorithm}:{value.upper() if algorithm == 'sha1' else value}"


@dataclass(frozen=True, slots=True)
class Digest:
    """A declared digest of a known algorithm: its name in hashlib, and its bytes."""

    algorithm: str
    value: bytes


def declared_digest(text: str) -> Digest | None:
    """Return a digest from base32 or hex, both common in WARC files; None if it cannot be compared."""
    algorithm, _, value = text.strip().partition(":")
    algorithm = algorithm.lower().replace("-", "")
    size = _DIGESTS.get(algorithm)
    if size is None:
        return None
    with suppress(ValueError):
        if len(value) == 2 * size:
            return Digest(algorithm, bytes.fromhex(value))
        value = value.rstrip("=").upper()
        digest = base64.b32decode(value + "=" * (-len(value) % 8))
        return Digest(algorithm, digest) if len(digest) == size else None
    return None


def capture_key(url: str, seconds: int) -> str:
    """Return the key of one capture."""
    return f"{url} {seconds}"


def base32(digest: bytes) -> str:
    """Return a digest in the form of WARC files and crawl.log."""
    return base64.b32encode(digest).decode("ascii")


# == http response ====================================================================================================


#: Longest head of a response that is read, in bytes.
LONGEST_HEAD = 1 << 20
#: Longest head of an ARC that is searched for its Content-Type; a longer one counts as one without.
LONGEST_OF_ARC = 1 << 16
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
#: Around values (RFC 9110 section 5.6.3). Other blanks may be bytes of a character: "à" in UTF-8 ends in 0xA0.
_BLANKS = " \t\r\n"


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
        if self.get("transfer-encoding") or not (match := _CONTENT_LENGTH.fullmatch(self.get("content-length"))):
            return None
        digits = match[1].lstrip("0") or "0"
        return int(digits) if len(digits) < len(str(_BEYOND)) else _BEYOND

    @property
    def document_status(self) -> int:
        """The status of the document: 200 for a 206 that says that it is the whole. The head stays as it was sent."""
        match = _WHOLE_RANGE.fullmatch(self.get("content-range")) if self.status == _PARTIAL else None
        return _OK if match is not None and int(match[1]) + 1 == int(match[2]) else self.status

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks (RFC 9112 section 7.1)."""
        return "chunked" in (coding.strip().lower() for coding in self.get("transfer-encoding").split(","))

    @property
    def has_needless_length(self) -> bool:
        """Whether Content-Length stands beside chunks, which then count (RFC 9112 section 6.3).

        A program that goes by it leaves chunks behind, and takes them for the next response.
        """
        return "content-length" in self.fields and self.is_chunked

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
    decoded: bool = False  # whether the body has no codings any more (`job_warc.py`)
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
            fields[name] += " " + line.strip(_BLANKS)
            continue
        name, colon, value = line.partition(":")
        name = name.strip().lower()
        if colon and name not in fields:
            fields[name] = value.strip(_BLANKS)
        else:
            name = ""  # what continues a line that is no field, or a second one of its name, is none either
    return Head(raw, int(status[1] or status[2]), fields)


def fields_of(head: bytes) -> list[tuple[str, str]]:
    """Return the fields of a head in order, as they were sent, with folded lines joined; a line without a colon too."""
    fields: list[tuple[str, str]] = []
    for line in head.decode("latin-1").replace("\r\n", "\n").split("\n")[1:]:
        if not line.strip():
            continue
        if line[0] in " \t" and fields:  # obsolete line folding, RFC 9112 section 5.2
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {line.strip(_BLANKS)}")
            continue
        name, _, value = line.partition(":")
        fields.append((name.strip(), value.strip(_BLANKS)))
    return fields


def content_type_in(head: bytes) -> str:
    """Return the Content-Type of a page's stored head; empty without one. It needs no status line."""
    for line in head.split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon and name.strip().lower() == b"content-type":
            return value.strip().decode("latin-1")
    return ""


def is_whole(head: Head, size: int) -> bool:
    """Return whether the body of a 206, of `size` bytes as sent, is the whole document.

    Browsers ask for videos and audio as the range from their first byte on.
    """
    match = _WHOLE_RANGE.fullmatch(head.get("content-range"))
    if head.status != _PARTIAL or match is None or int(match[1]) + 1 != int(match[2]):
        return False
    is_coded = bool(head.get("transfer-encoding") or head.get("content-encoding"))
    return is_coded or size == int(match[2])


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


# == response head, pure ==============================================================================================


#: Of the connection (RFC 9110 section 7.6.1), or of a coding that is undone.
_DROPPED = frozenset({
    "connection", "content-encoding", "content-length", "keep-alive", "proxy-authenticate", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def response_head(head: bytes, size: int, status: int, known: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return the head of a response with a body of `size` bytes: `head` as it was sent, cleaned.

    If `head` is none, it is made of `status` and the fields `known`; those without a value are left out.
    """
    lines = _sent(head) or _made(status, known)
    return "\r\n".join((*lines, f"Content-Length: {size}", "", "")).encode("latin-1", "replace")


def _sent(head: bytes) -> list[str]:
    """Return the lines of a head as sent, without what is dropped; none if it is no head."""
    parsed = parse_head(head)
    if parsed is None:
        return []
    words = head.decode("latin-1").partition("\n")[0].split(None, 2)
    fields = fields_of(head)
    connection = ",".join(value for name, value in fields if name.lower() == "connection")
    dropped = _DROPPED | {name.strip().lower() for name in connection.split(",")}
    kept = [
        f"{name}: {_clean(value)}" for name, value in fields if _TOKEN.fullmatch(name) and name.lower() not in dropped
    ]
    reason = _clean(words[2]) if len(words) > 2 else _PHRASES.get(parsed.status, "")
    return [_status_line(parsed.status, reason), *kept]


def _made(status: int, known: Sequence[tuple[str, str]]) -> list[str]:
    fields = (f"{name}: {_clean(value)}" for name, value in known if value)
    return [_status_line(status, _PHRASES.get(status, "")), *fields]


def _status_line(status: int, reason: str) -> str:
    return f"HTTP/1.1 {status:03} {reason}"  # with its space, if there is no reason (RFC 9112 section 4)


def _clean(value: str) -> str:
    return _CONTROL.sub(" ", value)


# == secret fields, pure ==============================================================================================


#: What servers answer to whom they know, in lower case; every `proxy-…` beside it.
_OF_RESPONSES: Final = frozenset({
    b"set-cookie", b"set-cookie2", b"cookie", b"cookie2",
    b"authorization", b"www-authenticate", b"optional-www-authenticate", b"authentication-info",
    b"authentication-control", b"x-auth-token", b"x-access-token", b"x-csrf-token", b"x-xsrf-token",
})  # fmt: skip
_END: Final = re.compile(rb"(\r\n|\n|\r)")
_UNSEEN: Final = re.compile(rb"[\x00-\x20\x7f-\xa0]+")
_SHOWN: Final = re.compile(rb"[^ \t]")


def blank(headers: bytes, is_secret: Callable[[bytes], bool]) -> bytes:
    """Return the head of an HTTP message without the values of some fields, by their names in lower case."""
    lines = _END.split(headers)
    in_secret = False
    for index in range(2, len(lines), 2):  # behind the first line, every second one is an end of line
        line = lines[index]
        name, colon, value = line.partition(b":")
        if line[:1] in (b" ", b"\t") and in_secret:
            lines[index] = _SHOWN.sub(b"*", line)
            continue
        in_secret = bool(colon) and is_secret(_UNSEEN.sub(b"", name).lower())
        if in_secret:
            lines[index] = name + colon + _SHOWN.sub(b"*", value)
    return b"".join(lines)


def blank_response(headers: bytes) -> bytes:
    """Return the headers of a response without what it may say to somebody alone; the same object for nothing."""
    blanked = blank(headers, _is_secret)
    return headers if blanked == headers else blanked


def _is_secret(name: bytes) -> bool:
    return name in _OF_RESPONSES or name.startswith(b"proxy-")
