"""What all readers of foreign files give and are given: records, parts of files with records, and where to report.

`Tally` collects messages about files: each message once, with its count and its first occurrence.
"""

from __future__ import annotations

import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, BinaryIO, Protocol

from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import format_utc
from webarcfs.warc.foreign_files import records_of, stream_of

# == tally ============================================================================================================


class Tally:
    """Messages about files, each with its count and its first occurrence."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], str] = {}

    def add(self, file: str, what: str, first: str) -> None:
        """Count a message about `file`; `first` is the position or the record of this occurrence."""
        self._counts[file, what] += 1
        self._first.setdefault((file, what), first)

    def lines(self) -> list[str]:
        """Return one line per message, which can be stored and printed whatever a file says."""
        lines = (
            f"{file}: {what}{f', {count} times; the first' if count > 1 else ''}: {self._first[file, what][:200]}"
            for (file, what), count in self._counts.items()
        )
        return [printable(line) for line in lines]


def printable(text: str) -> str:
    """Return a text of a foreign file as one line that can be stored and printed."""
    return " ".join(text.encode("utf-8", "backslashreplace").decode().splitlines())


# == foreign ==========================================================================================================


class ForeignRecord(Protocol):
    """A record of a foreign file, as `webarcfs.warc.foreign_files.ReadRecord` is one."""

    fields: dict[str, str]
    length: int

    @property
    def type(self) -> str:
        """WARC-Type, in lower case."""

    @property
    def is_verified(self) -> bool:
        """Whether `whole` compares the block with a digest."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes of the rest of the block."""

    def readline(self, size: int, /) -> bytes:
        """Return the next line of the block."""

    def whole(self) -> bool:
        """Return whether the block is complete; reads the rest."""


class Spool(Protocol):
    """Where responses to archive are written, as `webarcfs.warc.job_warc.WarcWriter` is one."""

    def add(self, url: str, date: datetime, head: bytes, parts: Iterable[bytes]) -> int:
        """Store a response; return its offset."""

    def drop(self, start: int | None = None) -> None:
        """Remove all after `start`, or an unfinished record."""


class FileRecord:
    """A record of what is in files: `headers`, perhaps empty, and a body, which should have `size` bytes."""

    is_verified = False

    def __init__(self, kind: str, fields: dict[str, str], headers: bytes, body: IO[bytes], size: int) -> None:
        self.type = kind
        self.fields = fields
        self.length = len(headers) + size
        self._headers = io.BytesIO(headers)
        self._body = body
        self._left = size
        self._fault = False

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes of the rest of the record."""
        return self._headers.read(size) or self._of_body(self._body.read, size)

    def readline(self, size: int) -> bytes:
        """Return the next line of the record."""
        return self._headers.readline(size) or self._of_body(self._body.readline, size)

    def _of_body(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            data = b"" if self._fault else read(self._most(size))
        except (OSError, EOFError, zlib.error):
            self._fault, data = True, b""
        self._left -= len(data)
        return data

    def _most(self, size: int) -> int:
        """Return how many bytes of the body to read where `size` are wanted: also more than there should be."""
        return size

    def whole(self) -> bool:
        """Return whether the body is there, and nothing else; reads the rest."""
        while self.read(1 << 16):
            pass
        return not self._fault and self._left == 0


class CopyRecord(FileRecord):
    """A copy as a record: `source` says what it was taken from. The `size` first bytes of `body` are taken.

    It has no headers, or those that a browser recorded.
    """

    def __init__(self, fields: dict[str, str], source: str, body: IO[bytes], size: int, headers: bytes = b"") -> None:
        kind = "response" if headers else "resource"
        super().__init__(kind, fields | {SOURCE_FIELD: source}, headers, body, size)

    def _most(self, size: int) -> int:
        return min(size, self._left)


#: The field that says what a record was taken from, where that is no response to a crawler.
SOURCE_FIELD = "webarcfs-source"
#: Fields of our exports: what was wrong with the server's certificate; whether the headers may have secrets.
CERTIFICATE_FIELD, SECRETS_FIELD = "webarcfs-certificate", "webarcfs-secrets"
#: And the URL by which the archive had a document, where the record names another one.
URL_FIELD = "webarcfs-url"


@dataclass(frozen=True, slots=True)
class Stated:
    """What whoever imports says of files that do not say it: the URL that they are a copy of, and when it was made."""

    base: str = ""
    captured: datetime | None = None

    @property
    def date(self) -> str:
        """The time as WARC has it; empty if it is not stated."""
        return format_utc(self.captured) if self.captured else ""


def web_url(raw: str) -> str:
    """Return a URL of a foreign file if it is one of the web, as text that can be encoded; else an empty text."""
    text = raw.strip().encode("utf-8", "replace").decode()
    return text if re.match(r"https?://", text, re.IGNORECASE) else ""


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of files: `losses` are records that should have been archived, `remarks` say what else to know."""

    losses: Tally = field(default_factory=Tally)
    remarks: Tally = field(default_factory=Tally)


@dataclass(frozen=True, slots=True)
class RecordRun:
    """Records that follow each other; `taken` returns the bytes of the file read so far. Valid until the next part.

    `crawl` names the crawl inside its file, if the file holds whole crawls.
    """

    name: str
    records: Iterator[ForeignRecord]
    taken: Callable[[], int]
    crawl: str = ""


#: Called with the number of bytes read so far; may raise.
Step = Callable[[int], None]

# == files ============================================================================================================


#: Characters that stay as they are where a name becomes a URL.
AS_IT_IS = "".join(map(chr, range(0x21, 0x7F)))
_CHUNK = 1 << 20


def opened(path: Path) -> BinaryIO:
    """Open a file for reading, unless it is a symbolic link; a pipe does not wait. Raises OSError."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def hash_file(file: IO[bytes], update: Callable[[bytes], object], step: Step, before: int = 0) -> int:
    """Pass a file's bytes to a digest's `update`; return their number. `step` gets it with the bytes read `before`."""
    size = 0
    while data := file.read(_CHUNK):
        update(data)
        size += len(data)
        step(before + size)
    return size


# == parts ============================================================================================================


def file_part(file: IO[bytes], size: int, name: str, report: Report, *, before: int = 0, crawl: str = "") -> RecordRun:
    """Return a WARC or ARC file as a part; `before` is the number of bytes before it, `crawl` the crawl that it is of.

    Raises WebarcError, which names it, if it cannot be unpacked.
    """
    try:
        stream = stream_of(file, size)
    except WebarcError as error:
        raise type(error)(f"{name}: {error}") from None
    records = records_of(stream, lambda what, where: report.losses.add(name, what, f"at byte {where}"))
    return RecordRun(name, records, lambda: before + stream.taken, crawl)


def shown(name: str | os.PathLike[str]) -> str:
    """Return a name of a file as one line that can be printed, whatever its bytes are."""
    return printable(os.fsencode(name).decode("utf-8", "backslashreplace"))
