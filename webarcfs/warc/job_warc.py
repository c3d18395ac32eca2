"""The WARCs of a job: reads consecutive plain records, as wget and the writer below write them.

The reader is own code, since a library's parsing of record heads was a quarter of a whole crawl of 10,000 pages.
`foreign_files.py` reads foreign WARC files.

`pack_record` makes the records of what a crawl fetches without wget. The writer makes the WARC of an import's job: the
responses of foreign files to be archived, in the one form that `unpack` reads. Heads stay as received; bodies are
stored without their codings, so that each is decoded only once.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO

from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CET, format_utc
from webarcfs.warc import http_response
from webarcfs.warc.http_response import DECODED, Response

# == jobwarc ==========================================================================================================


_VERSION = b"WARC/1."
_MOST_FIELDS = 1000
_READ_AT_ONCE = 1 << 18


class RecordBlock:
    """The part of a file with a record's body, read like a file. Valid until the file is read elsewhere."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; empty at the end."""
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data

    def readline(self, size: int, /) -> bytes:
        """Return a line of at most `size` bytes, its end included."""
        data = self._file.readline(min(size, self._left))
        self._left -= len(data)
        return data


def responses(path: Path) -> Iterator[Response]:
    """Yield the response records, in order; a record that is cut off is left out.

    Raises Damaged if the file cannot be read further, FileNotFoundError.
    """
    with path.open("rb", buffering=_READ_AT_ONCE) as file:
        whole = os.fstat(file.fileno()).st_size
        offset = 0
        while offset < whole:
            fields = _fields(file, path)
            start = file.tell()
            end = start + _length(fields, path)
            if end > whole:
                return
            if fields.get("warc-type") == "response":
                response = _response(file, fields, offset, end - start)
                if response is not None:
                    yield response
            file.seek(end)
            if file.read(4) != b"\r\n\r\n" and end + 4 <= whole:
                raise Damaged(f"{path}: the record at byte {offset} does not end where it says")
            offset = end + 4


def response_at(file: IO[bytes], offset: int) -> Response:
    """Return the response record that starts at byte `offset`. Raises Damaged if there is none."""
    file.seek(offset)
    fields = _fields(file, file.name)
    response = _response(file, fields, offset, _length(fields, file.name))
    if response is None or fields.get("warc-type") != "response":
        raise Damaged(f"{file.name}: there is no response at byte {offset}, where one was read before")
    return response


def _fields(file: IO[bytes], path: object) -> dict[str, str]:
    """Return the named fields of the record that begins here, by name in lower case."""
    if not file.readline(1024).startswith(_VERSION):
        raise Damaged(f"{path}: no record begins before byte {file.tell()}")
    fields: dict[str, str] = {}
    for _ in range(_MOST_FIELDS):
        line = file.readline(http_response.LONGEST_HEAD)
        if line in (b"\r\n", b"\n", b""):
            return fields
        name, _, value = line.decode("utf-8", "replace").partition(":")
        fields[name.lower()] = value.strip()
    raise Damaged(f"{path}: a record with more than {_MOST_FIELDS} fields")


def _length(fields: dict[str, str], path: object) -> int:
    text = fields.get("content-length", "")
    if not (text.isascii() and text.isdecimal()):
        raise Damaged(f"{path}: a record without a length")
    return int(text)


def _response(file: IO[bytes], fields: dict[str, str], offset: int, length: int) -> Response | None:
    block = RecordBlock(file, length)
    raw = http_response.read_head(block)
    head = http_response.parse_head(raw)
    if head is None:
        return None
    date = datetime.fromisoformat(fields["warc-date"].replace("Z", "+00:00")).astimezone(CET)
    url = fields.get("warc-target-uri", "").strip("<>")  # wget 1.21 writes it in brackets, as WARC 0.18 did
    size, address = length - len(raw), fields.get("warc-ip-address", "")
    return Response(offset, url, date.replace(microsecond=0), head, block, size, DECODED in fields, address)


def pack_record(kind: str, url: str, date: datetime, block: bytes, *, mime: str = "", address: str = "") -> bytes:
    """Return a whole record of a kind, such as `response`, as bytes that one write appends.

    `mime` is the type of a resource; `address` is the server's. `response_at` and `responses` read responses.
    """
    types = {"response": "application/http; msgtype=response", "request": "application/http; msgtype=request"}
    fields = [
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <urn:uuid:{uuid.uuid4()}>",
        *([f"WARC-Target-URI: {url}"] if url else []),
        f"WARC-Date: {format_utc(date)}",
        *([f"WARC-IP-Address: {address}"] if address else []),
        f"Content-Type: {types.get(kind, mime)}",
        f"Content-Length: {len(block)}",
    ]
    head = "\r\n".join(["WARC/1.1", *fields, "", ""]).encode("utf-8")
    return head + block + b"\r\n\r\n"


# == writer ===========================================================================================================


_DIGITS = 18


class WarcWriter:
    """Writes a new file at `path`. A context manager."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._file = path.open("wb")
        self._end = 0

    def __enter__(self) -> WarcWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def add(self, url: str, date: datetime, head: bytes, parts: Iterable[bytes]) -> int:
        """Store a response; return its offset. If `parts` raises, `drop` it."""
        start = self._end
        self._file.write(self._fields(url, date, 0))
        size = self._file.write(head)
        for part in parts:
            size += self._file.write(part)
        self._file.write(b"\r\n\r\n")
        self._end = self._file.tell()
        self._file.seek(start)
        self._file.write(self._fields(url, date, size))
        self._file.seek(self._end)
        return start

    def drop(self, start: int | None = None) -> None:
        """Remove all after `start`, or an unfinished record."""
        self._end = self._end if start is None else start
        self._file.seek(self._end)
        self._file.truncate()

    @staticmethod
    def _fields(url: str, date: datetime, size: int) -> bytes:
        return (
            f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n"
            f"WARC-Date: {format_utc(date)}\r\nContent-Type: application/http; msgtype=response\r\n"
            f"{DECODED}: yes\r\nContent-Length: {size:0{_DIGITS}}\r\n\r\n"
        ).encode("ascii")
