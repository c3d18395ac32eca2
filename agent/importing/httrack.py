"""Reads a mirror of HTTrack: the answers in hts-cache/new.zip, as HTTrack 3.31 and newer keep them.

The cache has the head of each answer (in the extra field of its entry; only fields that HTTrack uses) and the bodies of
pages as they came. Other bodies are in the mirror alone: such a file is taken if it has the size that the server sent.
The times of the answers are in hts-cache/new.txt, by the clock of the machine that ran HTTrack.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from io import BytesIO
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from agent.importing.foreign import Part, Report
from agent.importing.wacz import ZIP_FAULTS
from webarcfs.archive.model.errors import Damaged

#: The folder of the cache, and the file with the answers of the last run.
CACHE, ANSWERS = "hts-cache", "new.zip"
_LOCAL_HEADER = struct.Struct("<26xHH")
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
        said = self.own.get("statuscode", "")
        return int(said) if said.isascii() and said.isdecimal() and len(said) < 4 else 0

    @property
    def size(self) -> int | None:
        """The bytes of the body as HTTrack received it."""
        said = self.own.get("size", "")
        return int(said) if said.isascii() and said.isdecimal() and len(said) < 19 else None


class HttrackRecord:
    """An answer as a response record; `body` is None where HTTrack kept none."""

    is_verified = False
    type = "response"

    def __init__(self, answer: _Answer, date: datetime, body: IO[bytes] | None, size: int) -> None:
        self._head = BytesIO(answer.head)
        self._body = body
        self._left = size
        self._fault = False
        self.length = len(answer.head) + size
        self.fields = {"warc-target-uri": answer.url, "warc-date": f"{date.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"}
        if body is None and answer.size != 0:
            self.fields["warc-truncated"] = "unspecified"

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes of the rest of the answer."""
        return self._head.read(size) or self._of_body(size, line=False)

    def readline(self, size: int) -> bytes:
        """Return the next line of the answer."""
        return self._head.readline(size) or self._of_body(size, line=True)

    def _of_body(self, size: int, *, line: bool) -> bytes:
        if self._body is None or self._fault:
            return b""
        try:
            data = self._body.readline(size) if line else self._body.read(size)
        except ZIP_FAULTS:
            self._fault = True
            return b""
        self._left -= len(data)
        return data

    def whole(self) -> bool:
        """Return whether all of the body is there, and its checksum right; reads the rest."""
        while self.read(1 << 16):
            pass
        return not self._fault and self._left == 0


def parts(path: Path, name: str, report: Report) -> Iterator[Part]:
    """Yield the cache of a mirror, hts-cache/new.zip, as a part. Raises Damaged if it cannot be read."""
    with path.open("rb") as file:
        try:
            cache = zipfile.ZipFile(file)
        except ZIP_FAULTS as error:
            raise Damaged(
                f"{name} has a cache of HTTrack that cannot be read: {error}; `httrack --continue` in the folder of "
                "the mirror completes it"
            ) from None
        yield Part(name, _Mirror(path.parent.parent, file, cache, name, report).records(), file.tell)


@dataclass(frozen=True, slots=True)
class _Mirror:
    """The mirror in the folder `root`; `cache` is the ZIP in `file`."""

    root: Path
    file: IO[bytes]
    cache: zipfile.ZipFile
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
        for entry in self.cache.infolist():
            answer = _answer(self.file, entry)
            if answer is None:
                self._loss("an answer of the cache without a head", repr(entry.filename))
                continue
            url = unquote(answer.url)
            unseen.discard(url)
            try:
                body, size = self._body(entry, answer)
            except ZIP_FAULTS as error:
                self._loss(f"a body of the cache that cannot be unpacked ({error})", answer.url)
                continue
            if body is None and answer.status == _FINE:
                continue
            record = HttrackRecord(answer, begun + timedelta(seconds=seconds.get(url, 0)), body, size)
            yield record
            if not record.whole():
                self._loss("a body of the cache that is damaged or cut off", answer.url)
            if body is not None:
                body.close()
        for each in sorted(unseen):
            self._loss("an answer that HTTrack fetched, and that is not in its cache", each)

    def _body(self, entry: zipfile.ZipInfo, answer: _Answer) -> tuple[IO[bytes] | None, int]:
        """Return the body of an answer and its size, from the cache or the mirror; None where there is none."""
        if answer.own.get("in-cache") == "1":
            return self.cache.open(entry), entry.file_size if answer.size is None else answer.size
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


def _answer(file: IO[bytes], entry: zipfile.ZipInfo) -> _Answer | None:
    """Return an answer of the cache; its head is in its entry before the body, and not in the ZIP's directory."""
    try:
        file.seek(entry.header_offset)
        long_name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
        file.seek(long_name, 1)
        head = file.read(extra)
    except (struct.error, OSError, ValueError):
        return None
    if not head.upper().startswith(b"HTTP/"):
        return None
    own, kept = dict[str, str](), list[bytes]()
    for line in head.replace(b"\r\n", b"\n").split(b"\n"):
        if found := _OWN.fullmatch(line):
            own[found[1].decode("ascii").lower()] = found[2].decode("utf-8", "surrogateescape")
        elif line:
            kept.append(line)
    if charset := own.get("charset", "").encode("ascii", "ignore"):
        kept = [
            line + b"; charset=" + charset if re.fullmatch(rb"content-type:[^;]*", line, re.IGNORECASE) else line
            for line in kept
        ]
    url = entry.filename if "://" in entry.filename else f"http://{entry.filename}"
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
    found = re.search(rb"^last-modified:\s*(.+?)\s*$", answer.head, re.IGNORECASE | re.MULTILINE)
    try:
        return parsedate_to_datetime(found[1].decode("latin-1")) if found else None
    except (ValueError, TypeError, OverflowError):
        return None


def _times(mirror: Path) -> tuple[datetime | None, dict[str, int], set[str]]:
    """Return when HTTrack began, for each URL the seconds from then to its answer, and the URLs that it has fetched."""
    begun = None
    with suppress(OSError, ValueError), (mirror / "hts-log.txt").open("rb") as file:
        if found := _LAUNCHED.search(file.read(_LONGEST_LINE).decode("latin-1")):
            begun = datetime.strptime(found[1], "%d %b %Y %H:%M:%S").astimezone()
    seconds, fetched = dict[str, int](), set[str]()
    with suppress(OSError), (mirror / CACHE / "new.txt").open("rb") as file:
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
