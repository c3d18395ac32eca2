"""Reads HAR (HTTP Archive 1.2), the log of a browser's network panel, entry by entry.

An entry with a status is a response with its headers, as the browser recorded them. Its body is decoded, and its text
is Unicode. The text is encoded again as its headers or the page say, else as UTF-8, which the headers then say. So
fields about the coding and the length are left out. So is `Set-Cookie`: it is of the session of whoever browsed.

The JSON is read in pieces. One entry is in memory at once, of at most 64 MiB as it is written. A larger one is skipped
and counted.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import io
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, Any

from agent.importing.foreign import CopyRecord, RecordRun, Report, Stated
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import HAR
from webarcfs.content.text import named_in_document, named_in_header
from webarcfs.warc.http_response import parse_date

#: The first bytes of a file of this kind.
START = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"log"\s*:\s*\{')
#: Characters of one value of the JSON.
MOST_CHARACTERS = 64 << 20
_CHUNK = 1 << 18
_AFTER = frozenset(" \t\r\n,]}:")
_SPACE = re.compile(r"[ \t\r\n]*")
_STRUCTURE = re.compile(r'\\.|["{}\[\]]', re.DOTALL)

# == json =============================================================================================================


class _TooLong(Exception):
    """A value of more characters than are held."""


class JsonReader:
    """Reads a JSON text in pieces: members of objects and elements of arrays as they come. Raises Damaged."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._parse = json.JSONDecoder(strict=False)
        self._text = ""
        self._at = 0
        self._is_end = False
        self.taken = 0

    def members(self) -> Iterator[str]:
        """Yield the name of each member of the object that follows; whoever takes it reads or skips its value."""
        self._expect("{")
        if self._next() == "}":
            self._at += 1
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise self._damage()
            self._expect(":")
            yield key
            if not self._goes_on("}"):
                return

    def elements(self) -> Iterator[None]:
        """Stop at each element of the array that follows; whoever takes it reads or skips it."""
        self._expect("[")
        if self._next() == "]":
            self._at += 1
            return
        while True:
            yield None
            if not self._goes_on("]"):
                return

    def value(self) -> Any:
        """Return the value that follows. Raises _TooLong; `skip` then passes it."""
        self._next()
        wanted = _CHUNK
        while True:
            try:
                value, end = self._parse.raw_decode(self._text, self._at)
            except RecursionError:
                raise Damaged(f"{self._name}: values are in each other too deep") from None
            except ValueError:
                end = len(self._text)
            else:
                if self._is_end or self._text[end : end + 1] in _AFTER:  # a number may go on
                    self._at = end
                    return value
            if self._is_end:
                raise self._damage()
            if len(self._text) - self._at > MOST_CHARACTERS:
                raise _TooLong
            self._more(wanted)
            wanted = len(self._text) - self._at  # twice as much each time, since it is parsed from its start

    def skip(self) -> None:
        """Pass over the value that follows, whatever its length."""
        if self._next() not in '{["':
            self.value()
            return
        depth, is_text = 0, False
        while True:
            for match in _STRUCTURE.finditer(self._text, self._at):
                sign = match[0]
                if is_text:
                    is_text = sign != '"'
                elif sign == '"':
                    is_text = True
                elif sign in "{[":
                    depth += 1
                elif sign in "}]":
                    depth -= 1
                if not depth and not is_text and sign[0] != "\\":
                    self._at = match.end()
                    return
            backslashes = len(self._text) - len(self._text.rstrip("\\"))
            self._at = len(self._text) - backslashes % 2  # one that is cut from what it escapes
            if self._is_end:
                raise self._damage()
            self._more(_CHUNK)

    def _goes_on(self, end: str) -> bool:
        sign = self._next()
        if sign not in (",", end):
            raise self._damage()
        self._at += 1
        return sign == ","

    def _expect(self, sign: str) -> None:
        if self._next() != sign:
            raise self._damage()
        self._at += 1

    def _next(self) -> str:
        """Return the next character that is no blank. Raises Damaged at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._is_end:
                raise self._damage()
            self._more(_CHUNK)

    def _more(self, size: int) -> None:
        pieces = [self._text[self._at :]]
        left = max(size, _CHUNK)
        while left > 0 and not self._is_end:
            data = self._file.read(min(left, _CHUNK))
            self._is_end = not data
            self.taken += len(data)
            left -= len(data)
            pieces.append(self._decode.decode(data, final=not data))
        self._text, self._at = "".join(pieces), 0

    def _damage(self) -> Damaged:
        return Damaged(f"{self._name}: it is cut off, or no JSON, near byte {self.taken}")


# == entries, pure ====================================================================================================


_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,200}")
_UNCLEAN = re.compile(r"[^\x20-\x7e\x80-\xff\t]+")
#: Header fields that are of the bytes as they were sent, or of whoever browsed.
_LEFT_OUT = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"})
_PRIVATE = frozenset({"set-cookie", "set-cookie2"})
#: Bytes that a body may lack to what its entry says: browsers count a byte order mark that they take off.
_SLACK = 3
_SAMPLE = 4096
#: What browsers write where a response has no type.
_NO_TYPE = "x-unknown"
_MOST_FIELDS = 1000


@dataclass(frozen=True, slots=True)
class HarEntry:
    """A response of an entry. `body` is None where the log has none, or a part of it."""

    url: str
    method: str
    date: str
    status: int
    head: bytes
    body: bytes | None
    has_cookies: bool = False


def entry_of(value: Any) -> HarEntry | None:
    """Return the response of an entry; None for what is none."""
    request, response = _table(value, "request"), _table(value, "response")
    content = _table(response, "content")
    url, status = _text(request.get("url")), response.get("status")
    if not url or isinstance(status, bool) or not isinstance(status, int):
        return None
    fields = _fields(response.get("headers"))
    named_type = next((text for name, text in fields if name.lower() == "content-type"), "")
    declared = named_type or _text(content.get("mimeType"))
    if declared.partition(";")[0].strip().lower() == _NO_TYPE:
        declared = ""
    body, charset = _body(content, fields, declared)
    kept = [(name, text) for name, text in fields if name.lower() not in _LEFT_OUT | _PRIVATE | {"content-type"}]
    if charset and declared:
        declared = f"{re.sub(r';[ ]*charset=[^;]*', '', declared, flags=re.IGNORECASE)}; charset={charset}"
    if declared:
        kept.insert(0, ("Content-Type", declared))
    return HarEntry(
        url=url,
        method=_text(request.get("method")).upper() or "GET",
        date=_text(value.get("startedDateTime")),
        status=status,
        head=_head(status, _text(response.get("statusText")), kept),
        body=body,
        has_cookies=any(name.lower() in _PRIVATE for name, _ in fields),
    )


def _body(content: dict[str, Any], fields: list[tuple[str, str]], declared: str) -> tuple[bytes | None, str]:
    """Return the body of a response, and the charset that its headers must say; empty for what they say already."""
    text, size = content.get("text"), content.get("size")
    size = size if isinstance(size, int) and not isinstance(size, bool) else 0
    if not isinstance(text, str):
        is_empty = any(name.lower() == "content-length" and value.strip() == "0" for name, value in fields)
        return (b"" if is_empty and size <= 0 else None), ""
    if _text(content.get("encoding")).lower() == "base64":
        try:
            body = base64.b64decode(text, validate=False)
        except (binascii.Error, ValueError):
            return None, ""
        return (body if len(body) >= size else None), ""
    unicode = text.encode("utf-8", "replace")
    charset = named_in_header(declared) or named_in_document(unicode[:_SAMPLE], declared)
    body, missing = unicode, "" if text.isascii() else "utf-8"
    with suppress(ValueError, LookupError):
        if charset:
            body, missing = text.encode(charset), ""
    return (None if max(len(body), len(unicode)) + _SLACK < size else body), missing


def _head(status: int, phrase: str, fields: list[tuple[str, str]]) -> bytes:
    if not phrase and status in HTTPStatus._value2member_map_:
        phrase = HTTPStatus(status).phrase
    lines = [f"HTTP/1.1 {status:03} {_clean(phrase)}".rstrip(), *(f"{name}: {_clean(text)}" for name, text in fields)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _clean(text: str) -> str:
    return _UNCLEAN.sub(" ", text).strip()


def _fields(value: Any) -> list[tuple[str, str]]:
    """Return header fields, without those of HTTP/2 that begin with a colon."""
    rows = value[:_MOST_FIELDS] if isinstance(value, list) else []
    pairs = [(_text(row.get("name")), _text(row.get("value"))) for row in rows if isinstance(row, dict)]
    return [(name, line) for name, text in pairs if _TOKEN.fullmatch(name) for line in text.split("\n") if line.strip()]


def _table(value: Any, key: str) -> dict[str, Any]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _text(value: Any) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


# == har ==============================================================================================================


_NO_TIME = "an entry without startedDateTime; --captured TIME says when these were recorded"
_TOO_LONG = f"an entry of more than {MOST_CHARACTERS >> 20} MiB, which is not read"


def parts(file: IO[bytes], name: str, report: Report, stated: Stated) -> Iterator[RecordRun]:
    """Yield the log as a part."""
    reader = JsonReader(file, name)
    yield RecordRun(name, _Har(reader, name, report, stated).records(), lambda: reader.taken)


@dataclass
class _Har:
    """A log that is being read."""

    reader: JsonReader
    name: str
    report: Report
    stated: Stated

    def records(self) -> Iterator[CopyRecord]:
        try:
            yield from self._entries()
        except Damaged as error:
            self.report.losses.add(self.name, "the rest of the HAR", str(error))
        except _TooLong:
            self.report.losses.add(self.name, "the rest of the HAR", f"no HAR, near byte {self.reader.taken}")

    def _entries(self) -> Iterator[CopyRecord]:
        reader = self.reader
        for outer in reader.members():
            if outer != "log":
                reader.skip()
                continue
            for key in reader.members():
                if key != "entries":
                    reader.skip()
                    continue
                for number, _ in enumerate(reader.elements(), 1):
                    yield from self._entry(number)

    def _entry(self, number: int) -> Iterator[CopyRecord]:
        where = f"entry {number}"
        try:
            value = self.reader.value()
        except _TooLong:
            self.report.losses.add(self.name, _TOO_LONG, where)
            self.reader.skip()
            return
        entry = entry_of(value)
        del value
        if entry is None:
            self.report.losses.add(self.name, "an entry that is no response", where)
        elif not 100 <= entry.status <= 599:
            self.report.remarks.add(self.name, "requests without a response are skipped", entry.url)
        elif entry.method != "GET":
            self.report.losses.add(self.name, "answers to requests of other methods than GET are skipped", entry.url)
        else:
            yield from self._response(entry)

    def _response(self, entry: HarEntry) -> Iterator[CopyRecord]:
        date = entry.date if parse_date(entry.date) else self.stated.date
        if not date:
            self.report.losses.add(self.name, _NO_TIME, entry.url)
            return
        if entry.has_cookies:
            what = "fields Set-Cookie are left out, since they are of the session of whoever browsed"
            self.report.remarks.add(self.name, what, entry.url)
        fields = {"warc-target-uri": entry.url, "warc-date": date}
        if entry.body is None:
            fields["warc-truncated"] = "unspecified"
        body = entry.body or b""
        yield CopyRecord(fields, HAR, io.BytesIO(body), len(body), entry.head)
