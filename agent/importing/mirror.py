"""Reads mirrors: folders of files named after their URLs, as `wget -r`, `wget -p` and others leave them, and HTTrack's.

A plain mirror has no heads, and its names do not tell everything. `index.html` is the URL of its folder. A query is in
the name. `wget --adjust-extension` appends `.html` or `.css` to names: such a name is taken for the URL without it
where a page of the mirror has that as a link and not the other, where a query is before it, or where wget's backup says
so. `wget --convert-links` rewrites pages; where it kept what the server sent (`--backup-converted`), that is taken.

Nothing outside of the folder is read: symbolic links are left out, and so is what is no file.

Of a mirror of HTTrack the answers in hts-cache/new.zip are read, as HTTrack 3.31 and newer keep them.

The cache has the head of each answer (in the extra field of its entry; only fields that HTTrack uses) and the bodies of
pages as they came. Other bodies are in the mirror alone: such a file is taken if it has the size that the server sent.
The times of the answers are in hts-cache/new.txt, by the clock of the machine that ran HTTrack.
"""

from __future__ import annotations

import hashlib
import html
import io
import os
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO
from urllib.parse import quote, unquote, urljoin

from agent.importing.foreign import (
    AS_IT_IS,
    CopyRecord,
    FileRecord,
    RecordRun,
    Report,
    Stated,
    Step,
    hash_file,
    opened,
    shown,
)
from webarcfs.archive.model.errors import Damaged, UrlRefused, UsageError
from webarcfs.archive.model.metadata import MIRROR, format_utc
from webarcfs.archive.model.urls import canonical

# == names, pure ======================================================================================================


_INDEX = re.compile(r"index\.html?")
_ADJUSTED = re.compile(r"(.+)\.(?:html|css)", re.DOTALL)
_ORIGINAL = ".orig"
_HOST = re.compile(
    r"(?:(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+(?:[a-z]{2,63}|xn--[a-z0-9-]{1,59})\.?"
    r"|localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]{2,45}\])(?:[:+]\d{1,5})?",
    re.ASCII | re.IGNORECASE,
)
#: How browsers call folders of what a page needs, which looks like the name of a host.
_OF_A_PAGE = ".files"
_SCHEMES = ("http", "https")
#: Kinds of files that every server calls the same. The bytes of others say what they are.
_TYPES = {
    "html": "text/html", "htm": "text/html", "xhtml": "application/xhtml+xml", "css": "text/css",
    "js": "text/javascript", "mjs": "text/javascript", "json": "application/json", "xml": "application/xml",
    "rss": "application/rss+xml", "atom": "application/atom+xml", "svg": "image/svg+xml", "png": "image/png",
    "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp", "avif": "image/avif",
    "ico": "image/x-icon", "bmp": "image/bmp", "woff": "font/woff", "woff2": "font/woff2", "ttf": "font/ttf",
    "otf": "font/otf", "pdf": "application/pdf", "txt": "text/plain", "csv": "text/csv", "mp3": "audio/mpeg",
    "ogg": "audio/ogg", "wav": "audio/wav", "mp4": "video/mp4", "webm": "video/webm", "zip": "application/zip",
    "gz": "application/gzip", "webmanifest": "application/manifest+json", "wasm": "application/wasm",
}  # fmt: skip


def is_host(name: str) -> bool:
    """Return whether a folder's name may be that of a host, with its port perhaps (`:` or, of Windows, `+`)."""
    return _HOST.fullmatch(name) is not None and not name.lower().endswith(_OF_A_PAGE)


def url_of(base: str, path: str) -> str:
    """Return the URL of a file at `path` below the folder of which `base` is the URL.

    A `?` in the last name begins a query; in the names of folders it is data.
    """
    *folders, name = path.split("/")
    stem, mark, query = name.partition("?")
    if _INDEX.fullmatch(stem):
        stem = ""
    names = [*(folder.replace("?", "%3F") for folder in folders), stem]
    raw = os.fsencode("/".join(names) + mark + query)
    return base + quote(raw, safe=AS_IT_IS).replace("#", "%23")


def unadjusted(path: str) -> str:
    """Return a path without the ending that `--adjust-extension` may have appended; empty where there is none."""
    folder, slash, name = path.rpartition("/")
    match = _ADJUSTED.fullmatch(name)
    return "" if match is None or _INDEX.fullmatch(name) else f"{folder}{slash}{match[1]}"


def declared_type(path: str) -> str:
    """Return the Content-Type of a file by its name; empty where its bytes must say it."""
    name = path.rpartition("/")[2].removesuffix(".download")  # Chromium's, of scripts that it saved
    query = name.partition("?")
    for part in (query[2], query[0]):
        ending = part.rpartition(".")[2].lower() if "." in part else ""
        if ending in _TYPES and (part is query[0] or ending in ("html", "css")):
            return _TYPES[ending]
    return ""


# == folders ==========================================================================================================


@dataclass(frozen=True, slots=True)
class MirrorRoot:
    """A folder of a mirror, and the URL that it is the copy of, which ends with a slash."""

    folder: Path
    base: str


def roots(folder: Path, base: str = "") -> list[MirrorRoot]:
    """Return the folders of hosts in a mirror; with `base`, the folder itself. Empty: it is no mirror.

    A scheme is known where wget wrote it (`--protocol-directories`); else it is http.
    """
    if base:
        return [MirrorRoot(folder, base if base.endswith("/") else f"{base}/")]
    inner = _folders(folder)
    by_scheme = [
        MirrorRoot(child, f"{scheme.name}://{_host(child.name)}/")
        for scheme in inner
        if scheme.name in _SCHEMES
        for child in _folders(scheme)
        if is_host(child.name)
    ]
    hosts = [MirrorRoot(child, f"http://{_host(child.name)}/") for child in inner if is_host(child.name)]
    if is_host(folder.name) and (_has_files(folder) or not hosts):
        return [MirrorRoot(folder, f"http://{_host(folder.name)}/")]
    return [*by_scheme, *hosts]


def _host(name: str) -> str:
    return re.sub(r"\+(\d+)\Z", r":\1", name)


def _folders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))


def _has_files(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        return any(entry.is_file(follow_symlinks=False) for entry in entries)


#: Called with why something is not read, and its path.
Note = Callable[[str, Path], object]


def _unsaid(_what: str, _path: Path) -> None:
    pass


def files_in(folder: Path, left_out: Note = _unsaid, lost: Note = _unsaid) -> Iterator[tuple[str, Path]]:
    """Yield path below the folder, and path, of all files in it, in order.

    `left_out` gets what is no file; `lost` the folders that cannot be read.
    """
    waiting = [("", folder)]
    while waiting:
        prefix, inner = waiting.pop()
        try:
            with os.scandir(inner) as scanned:
                entries = sorted(scanned, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            lost(f"a folder that cannot be read ({error.strerror})", inner)
            continue
        folders: list[tuple[str, Path]] = []
        for entry in entries:
            path = Path(entry.path)
            if entry.is_symlink():
                left_out("a symbolic link", path)
            elif entry.is_dir(follow_symlinks=False):
                folders.append((f"{prefix}{entry.name}/", path))
            elif entry.is_file(follow_symlinks=False):
                yield f"{prefix}{entry.name}", path
            else:
                left_out("neither file nor folder", path)
        waiting += reversed(folders)


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    size = 0
    for _, path in files_in(folder):
        with suppress(OSError):
            size += path.lstat().st_size
    return size


def digest_of(folder: Path, step: Step, bases: Iterable[str] = ()) -> str:
    """Return a SHA-256 of all names and bytes in a folder, and of the URLs that its roots are the copies of.

    `step` gets the bytes read so far.
    """
    whole, done = hashlib.sha256("".join(f"{base}\0" for base in bases).encode()), 0
    for name, path in files_in(folder):
        digest = hashlib.sha256()
        with suppress(OSError), opened(path) as file:
            done += hash_file(file, digest.update, step, done)
        whole.update(os.fsencode(name) + b"\0" + digest.digest())
    return whole.hexdigest()


class _FileCopy(CopyRecord):
    """A file as the record of a copy. It is whole if nothing was written into it since it was opened."""

    def __init__(self, fields: dict[str, str], source: str, file: BinaryIO) -> None:
        self._state = _state_of(file)
        super().__init__(fields, source, file, self._state[0])
        self._file = file

    def whole(self) -> bool:
        """Return whether the file was read to its end, and is as it was; reads the rest."""
        return super().whole() and _state_of(self._file) == self._state


def _state_of(file: BinaryIO) -> tuple[int, int]:
    stat = os.fstat(file.fileno())
    return stat.st_size, stat.st_mtime_ns


@dataclass(frozen=True, slots=True)
class Copies:
    """Files as records of copies: of what messages call `name`, made at `date`, taken from `source`."""

    name: str
    report: Report
    date: str
    source: str = MIRROR

    def of_path(self, url: str, kind: str, path: Path) -> Iterator[CopyRecord]:
        """Yield a file as a record. One that cannot be read is a loss."""
        try:
            file = opened(path)
        except OSError as error:
            self.lost(f"a file that cannot be read ({error.strerror})", path)
            return
        with file:
            yield from self.of_file(url, kind, file, path)

    def of_file(self, url: str, kind: str, file: BinaryIO, path: Path) -> Iterator[CopyRecord]:
        """Yield an open file as a record. One that is not read to the end that it had is a loss."""
        fields = {"warc-target-uri": url, "warc-date": self.date, "content-type": kind}
        record = _FileCopy(fields, self.source, file)
        yield record
        if not record.whole():
            self.lost("a file that changed while it was read, or cannot be read to its end", path)

    def lost(self, what: str, path: Path) -> None:
        """Say that a file, or all in a folder, is a loss."""
        self.report.losses.add(self.name, what, shown(path))

    def left_out(self, what: str, path: Path) -> None:
        """Say that a file is left out."""
        self.report.remarks.add(self.name, f"left out: {what}", shown(path))


# == mirror ===========================================================================================================


_LINK = re.compile(
    rb"""<[a-z][^<>]{0,2000}?\b(?:href|src|action)\s{0,9}=\s{0,9}(?:"([^"<>]{1,2000})"|'([^'<>]{1,2000})'|([^\s"'<>]{1,2000}))""",
    re.IGNORECASE,
)
#: Bytes of a page that are searched for links to names that may be adjusted.
_SEARCHED = 1 << 22
_PAGE = re.compile(r".*\.[xs]?html?", re.IGNORECASE | re.DOTALL)


def check(folder: Path, name: str, stated: Stated) -> None:
    """Check that a folder can be read as a mirror. Raises UsageError, which says what is missing."""
    if not roots(folder, stated.base):
        raise UsageError(f"{name}: no folder in it is named as a host is; --base URL says what it is the copy of")
    if stated.captured is None:
        raise UsageError(
            f"{name}: a mirror does not say when it was made, and dates of files change when they are copied; "
            "--captured TIME says it, as in --captured 2019-05-01T12:00 (with --warc-file, wget records it itself)"
        )


def parts(folder: Path, name: str, report: Report, step: Step, stated: Stated) -> Iterator[RecordRun]:
    """Yield a mirror as a part. Raises UsageError."""
    check(folder, name, stated)
    mirror = _Mirror(folder, name, report, stated, step)
    yield RecordRun(name, mirror.records(), lambda: mirror.taken)


@dataclass
class _Mirror:
    """The mirror in a folder. `taken` counts the bytes of the files that were read."""

    folder: Path
    name: str
    report: Report
    stated: Stated
    step: Step
    taken: int = 0
    seen: set[str] = field(default_factory=set)

    def records(self) -> Iterator[CopyRecord]:
        sites = roots(self.folder, self.stated.base)
        self._note_others(sites)
        if not self.stated.base and all(root.base.startswith("http:") for root in sites):
            what = (
                "the URLs are taken as http, since a mirror does not say their scheme; --base URL says it for one host"
            )
            self.report.remarks.add(self.name, what, sites[0].base)
        for root in sites:
            yield from self._of_root(root)

    def _note_others(self, sites: list[MirrorRoot]) -> None:
        """Say what lies beside the folders of hosts."""
        if sites[0].folder == self.folder:
            return
        tops = {root.folder.relative_to(self.folder).parts[0] for root in sites}
        for entry in sorted(path.name for path in self.folder.iterdir()):
            if entry not in tops:
                self.report.remarks.add(self.name, "left out, since it is in no folder of a host", shown(entry))

    def _of_root(self, root: MirrorRoot) -> Iterator[CopyRecord]:
        names = _Names(root)
        copies = Copies(self.name, self.report, self.stated.date)
        names.read(copies, lambda: self.step(self.taken))
        for path in names.paths:
            if names.is_backup(path):
                continue
            file_path = root.folder / path
            url, body_path = names.url_of(path), names.body_of(path) or file_path
            key = _canonical(url) or url
            if key in self.seen:
                self.report.remarks.add(self.name, "left out: another file is taken for its URL", shown(file_path))
                continue
            self.seen.add(key)
            for record in copies.of_path(url, declared_type(path), body_path):
                yield record
                self.taken += record.length


@dataclass
class _Names:
    """The names of a root's files (`paths`, in order), and what its links and backups say of them."""

    root: MirrorRoot
    paths: dict[str, None] = field(default_factory=dict)
    _links: Counter[str] = field(default_factory=Counter)

    def read(self, copies: Copies, step: Callable[[], object]) -> None:
        """Read names, and the links to those that may be adjusted; `step` is called after each page."""
        self.paths = {path: None for path, _ in files_in(self.root.folder, copies.left_out, copies.lost)}
        wanted: set[str] = set()
        for path in self.paths:
            if (without := unadjusted(path)) and without not in self.paths:
                wanted |= {self._key(path), self._key(without)}
        if not wanted:
            return
        for path in self.paths:
            if _PAGE.fullmatch(path):
                self._read_links(path, self.root.folder / path, wanted)
                step()

    def _key(self, path: str) -> str:
        return _canonical(url_of(self.root.base, path))

    def _read_links(self, path: str, file_path: Path, wanted: Collection[str]) -> None:
        here = url_of(self.root.base, path)
        with suppress(OSError), opened(file_path) as file:
            for match in _LINK.finditer(file.read(_SEARCHED)):
                raw = html.unescape(next(filter(None, match.groups())).decode("utf-8", "replace"))
                with suppress(ValueError):
                    url = _canonical(urljoin(here, raw))
                    if url in wanted:
                        self._links[url] += 1

    def is_backup(self, path: str) -> bool:
        """Return whether a file is what the server sent, which wget kept beside what it rewrote."""
        return path.endswith(_ORIGINAL) and not self.paths.keys().isdisjoint(
            {(stem := path.removesuffix(_ORIGINAL)), f"{stem}.html"}
        )

    def body_of(self, path: str) -> Path | None:
        """Return the file with what the server sent, where wget kept it."""
        backup = next((name for name in (f"{path}{_ORIGINAL}", self._of_adjusted(path)) if name in self.paths), None)
        return None if backup is None else self.root.folder / backup

    def _of_adjusted(self, path: str) -> str:
        without = unadjusted(path)
        return f"{without}{_ORIGINAL}" if without and without not in self.paths else ""

    def url_of(self, path: str) -> str:
        """Return the URL of a file."""
        without = unadjusted(path)
        if not without or without in self.paths:
            return url_of(self.root.base, path)
        is_backed_up = self._of_adjusted(path) in self.paths
        own, other = self._links[self._key(path)], self._links[self._key(without)]
        has_query = "?" in without.rpartition("/")[2]
        if is_backed_up or (other and not own) or (has_query and not own):
            path = without
        return url_of(self.root.base, path)


def _canonical(url: str) -> str:
    try:
        return canonical(url)
    except UrlRefused:
        return ""


# == httrack ==========================================================================================================


#: The folder of the cache, and the file with the answers of the last run.
HTTRACK_CACHE, HTTRACK_ANSWERS = "hts-cache", "new.zip"
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


def parts_of_httrack(path: Path, name: str, report: Report) -> Iterator[RecordRun]:
    """Yield the cache of a mirror, hts-cache/new.zip, as a part. Raises Damaged if it is none."""
    with path.open("rb") as file:
        if not file.read(len(_ENTRY)) == _ENTRY:
            raise Damaged(f"{name}: there is no answer in hts-cache/new.zip")
        file.seek(0)
        yield RecordRun(name, _HttrackMirror(path.parent.parent, file, name, report).records(), file.tell)


@dataclass(frozen=True, slots=True)
class _HttrackMirror:
    """The mirror in the folder `root`, whose cache is `file`."""

    root: Path
    file: IO[bytes]
    name: str
    report: Report

    def records(self) -> Iterator[HttrackRecord]:
        begun, seconds, unseen = _times(self.root)
        if begun is None:
            what = "hts-log.txt does not say when HTTrack ran: the date of the cache is taken"
            cache = self.root / HTTRACK_CACHE / HTTRACK_ANSWERS
            begun, seconds = datetime.fromtimestamp(cache.stat().st_mtime, UTC), {}
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
    with suppress(OSError), opened(mirror / HTTRACK_CACHE / "new.txt") as file:
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
