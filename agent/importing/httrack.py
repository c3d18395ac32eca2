"""Reads a mirror of HTTrack: the answers in hts-cache/new.zip, as HTTrack 3.31 and newer keep them.

The cache has the head of each answer (in the extra field of its entry; only fields that HTTrack uses) and the bodies of
pages as they came. Other bodies are in the mirror alone: such a file is taken if it has the size that the server sent.
The times of the answers are in hts-cache/new.txt, by the clock of the machine that ran HTTrack.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote

from agent.importing.foreign import AS_IT_IS, FileRecord, RecordRun, Report, opened
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import format_utc

#: The folder of the cache, and the file with the answers of the last run.
CACHE, ANSWERS = "hts-cache", "new.zip"
_ENTRY, _DIRECTORY = b"PK\x03\x04", b"PK\x01\x02"
_HEADER = struct.Struct("<6xHH4xIIIHH")
_STORED, _DEFLATED = 0, 8
#: Flags of an entry that is encrypted, or whose sizes follow it.
_NOT_READ = 1 | 8
_CHUNK = 1 << 16
_LAUNCHED = re.compile(r"launched on \w{3}, (\d{1,2} \w{3} \d{4} \d\d:\d\d:\d\d)")
_OWN = re.compile(rb"X-(In-Cache|StatusCode|StatusMessage|Size|Addr|Fil|Save|Charset)\s*:\s*(.*?)\s*", re.IGNORECASE)
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)", re.ASCII)
#: Columns of new.txt.
_STATUS, _URL = 3, 7
_LONGEST_LINE = 1 << 16
_FINE = 200
#: By which the clock may go back between two lines of new.txt before another day is meant, in seconds.
_JITTER = 3600


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer of the cache: its URL, its head as HTTrack kept it, and what it says of the body."""

    url: str
    head: bytes
    own: dict[str, str]

    @property
    def status(self) -> int:
        code = self.own.get("statuscode", "")
        return int(code) if code.isascii() and code.isdecimal() and len(code) < 4 else 0

    @property
    def size(self) -> int | None:
        """The bytes of the body as HTTrack received it."""
        text = self.own.get("size", "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


class HttrackRecord(FileRecord):
    """An answer as a response record; `body` is None where HTTrack kept none."""

    def __init__(self, answer: _Answer, date: datetime, body: IO[bytes] | None, size: int) -> None:
        fields = {"warc-target-uri": answer.url, "warc-date": format_utc(date)}
        if body is None and answer.size != 0:
            fields["warc-truncated"] = "unspecified"
        super().__init__("response", fields, answer.head, io.BytesIO() if body is None else body, size)


def parts(path: Path, name: str, report: Report) -> Iterator[RecordRun]:
    """Yield the cache of a mirror, hts-cache/new.zip, as a part. Raises Damaged if it is none."""
    with path.open("rb") as file:
        if not file.read(len(_ENTRY)) == _ENTRY:
            raise Damaged(f"{name}: there is no answer in hts-cache/new.zip")
        file.seek(0)
        yield RecordRun(name, _Mirror(path.parent.parent, file, name, report).records(), file.tell)


@dataclass(frozen=True, slots=True)
class _Mirror:
    """The mirror in the folder `root`, whose cache is `file`."""

    root: Path
    file: IO[bytes]
    name: str
    report: Report

    def records(self) -> Iterator[HttrackRecord]:
        begun, seconds, unseen = _times(self.root)
        if begun is None:
            what = "hts-log.txt does not say when HTTrack ran: the date of the cache is taken"
            begun, seconds = datetime.fromtimestamp((self.root / CACHE / ANSWERS).stat().st_mtime, UTC), {}
        else:
            what = "the times are of the clock of HTTrack's machine, as of the time zone of this one"
        self.report.remarks.add(self.name, what, f"{begun:%Y-%m-%d %H:%M:%S %z}")
        for entry in _entries(self.file, partial(self._loss, "a part of the cache that cannot be read")):
            answer = _answer(entry)
            if answer is None:
                self._loss("an answer of the cache without a head", repr(entry.name))
                continue
            url = unquote(answer.url)
            unseen.discard(url)
            body, size = self._body(entry, answer)
            if body is None and answer.status == _FINE:
                continue
            record = HttrackRecord(answer, begun + timedelta(seconds=seconds.get(url, 0)), body, size)
            yield record
            if not record.whole():
                self._loss("a body of the cache that is damaged or cut off", answer.url)
            if body is not None:
                body.close()
        for missing_url in sorted(unseen):
            self._loss("an answer that HTTrack fetched, and that is not in its cache", missing_url)

    def _body(self, entry: _Entry, answer: _Answer) -> tuple[IO[bytes] | None, int]:
        """Return the body of an answer and its size, from the cache or the mirror; None where there is none."""
        if answer.own.get("in-cache") == "1":
            return io.BufferedReader(_Packed(self.file, entry)), entry.size if answer.size is None else answer.size
        if answer.status != _FINE:
            return None, 0
        path = _inside(self.root, answer.own.get("save", ""))
        size = path.stat().st_size if path else 0
        if path is None or size != answer.size:
            what = "is not in the mirror any more" if path is None else "was changed since"
            self._loss(f"a file that {what}", answer.url)
            return None, 0
        if (sent := _modified(answer)) is not None and abs(path.stat().st_mtime - sent.timestamp()) > 1:
            what = "files whose dates are not those that HTTrack gave them are taken, since they have the right size"
            self.report.remarks.add(self.name, what, answer.url)
        return path.open("rb"), size

    def _loss(self, what: str, where: str) -> None:
        self.report.losses.add(self.name, what, where)


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of the cache: the ZIP's header before a body."""

    name: bytes
    extra: bytes
    place: int
    packed: int
    size: int
    crc: int
    is_deflated: bool


def _entries(file: IO[bytes], complain: Callable[[str], None]) -> Iterator[_Entry]:
    """Yield the entries of a ZIP as they follow each other, and report to `complain` what is none.

    Not by `zipfile`: it reads the directory at the end, which a cache without its end has not got, keeps it in memory,
    and does not give what HTTrack puts before the bodies.
    """
    place = 0
    while True:
        file.seek(place)
        head = file.read(_HEADER.size)
        if head.startswith(_DIRECTORY):
            return
        if head.startswith(_ENTRY) and len(head) == _HEADER.size:
            flags, method, crc, packed, size, named, extra = _HEADER.unpack(head)
            entry = _Entry(file.read(named), file.read(extra), file.tell(), packed, size, crc, method == _DEFLATED)
            if flags & _NOT_READ == 0 and method in (_STORED, _DEFLATED) and file.seek(0, 2) >= entry.place + packed:
                yield entry
                place = entry.place + packed
                continue
        complain(f"at byte {place}; `httrack --continue` in its folder completes a mirror")
        following = _next(file, place + 1)
        if following is None:
            return
        place = following


def _next(file: IO[bytes], place: int) -> int | None:
    """Return the place of the next entry, or of the directory, or None."""
    file.seek(place)
    before = b""
    while data := file.read(_CHUNK):
        data = before + data
        places = [offset for offset in (data.find(_ENTRY), data.find(_DIRECTORY)) if offset >= 0]
        if places:
            return file.tell() - len(data) + min(places)
        before = data[-len(_ENTRY) + 1 :]
    return None


class _Packed(io.RawIOBase):
    """The body of an entry. Raises zlib.error or EOFError where it is not what its checksum and size say."""

    def __init__(self, file: IO[bytes], entry: _Entry) -> None:
        self._file = file
        self._entry = entry
        self._place, self._left = entry.place, entry.packed
        self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS) if entry.is_deflated else None
        self._input = b""
        self._size = self._crc = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._more(len(buffer))
        self._size += len(data)
        self._crc = zlib.crc32(data, self._crc)
        if not data and (self._size, self._crc) != (self._entry.size, self._entry.crc):
            raise EOFError
        if self._size > self._entry.size:
            raise EOFError
        buffer[: len(data)] = data
        return len(data)

    def _more(self, size: int) -> bytes:
        if self._unpacker is None:
            return self._read(size)
        while not self._unpacker.eof:
            data = self._unpacker.decompress(self._input or self._read(_CHUNK), size)
            self._input = self._unpacker.unconsumed_tail
            if data:
                return data
            if not self._input and not self._left:
                break
        return b""

    def _read(self, size: int) -> bytes:
        self._file.seek(self._place)
        data = self._file.read(min(size, self._left))
        self._place += len(data)
        self._left -= len(data)
        return data


def _answer(entry: _Entry) -> _Answer | None:
    """Return an answer of the cache."""
    head = entry.extra
    if not head.upper().startswith(b"HTTP/"):
        return None
    own, kept = dict[str, str](), list[bytes]()
    for line in head.replace(b"\r\n", b"\n").split(b"\n"):
        if match := _OWN.fullmatch(line):
            own[match[1].decode("ascii").lower()] = match[2].decode("utf-8", "surrogateescape")
        elif line:
            kept.append(line)
    if charset := own.get("charset", "").encode("ascii", "ignore"):
        kept = [
            line + b"; charset=" + charset if re.fullmatch(rb"content-type:[^;]*", line, re.IGNORECASE) else line
            for line in kept
        ]
    url = quote(entry.name, safe=AS_IT_IS)
    url = url if "://" in url else f"http://{url}"
    return _Answer(url, b"\r\n".join((*kept, b"", b"")), own)


def _inside(mirror: Path, saved: str) -> Path | None:
    """Return the file of the mirror that has a body, if it is one, and in the mirror."""
    if not saved or "\0" in saved:
        return None
    try:
        root, path = mirror.resolve(), (mirror / saved).resolve()
        return path if path.is_relative_to(root) and path.is_file() else None
    except (OSError, RuntimeError):
        return None


def _modified(answer: _Answer) -> datetime | None:
    match = re.search(rb"^last-modified:\s*(.+?)\s*$", answer.head, re.IGNORECASE | re.MULTILINE)
    try:
        return parsedate_to_datetime(match[1].decode("latin-1")) if match else None
    except (ValueError, TypeError, OverflowError):
        return None


def _times(mirror: Path) -> tuple[datetime | None, dict[str, int], set[str]]:
    """Return when HTTrack began, for each URL the seconds from then to its answer, and the URLs that it has fetched."""
    begun = None
    with suppress(OSError, ValueError), opened(mirror / "hts-log.txt") as file:
        if match := _LAUNCHED.search(file.read(_LONGEST_LINE).decode("latin-1")):
            begun = datetime.strptime(match[1], "%d %b %Y %H:%M:%S").astimezone()
    seconds, fetched = dict[str, int](), set[str]()
    with suppress(OSError), opened(mirror / CACHE / "new.txt") as file:
        first = begun.hour * 3600 + begun.minute * 60 + begun.second if begun else 0
        before, days = first, 0
        while line := file.readline(_LONGEST_LINE):
            words = line.decode("utf-8", "replace").split("\t")
            clock = _CLOCK.fullmatch(words[0])
            if clock is None or len(words) <= _URL:
                continue
            now = int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3])
            days += now < before - _JITTER
            before = now
            url = unquote(words[_URL])  # the cache has it with blanks
            seconds[url] = max(days * 86400 + now - first, 0)
            if words[_STATUS] == str(_FINE):
                fetched.add(url)
    return begun, seconds, fetched
