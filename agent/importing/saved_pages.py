"""Reads pages that a browser saved: SingleFile, MHTML, and "Save as: complete" with the folder beside it.

SingleFile writes address and time into a comment, and all that the page needs into the page. Browsers write the address
at most (Chromium and Edge: the mark of the web), and what the page needs into a folder `<page>_files`. There it has
names of the browser's own; its URLs are those to which the page's links lead. Browsers rewrite these links, so such a
page is called a mirror.

MHTML (RFC 2557) is a page with all that it shows in one file.

The parts have addresses (`Content-Location`) or names (`Content-ID`), by which pages and styles refer to them as
`cid:`. Those references are replaced: by the address of the part, else by the part itself as a `data:` URL. All other
bytes are those of the file. Its time is the field `Date`.

Such a file is read line by line, and of its parts only where they lie is held. One part is in memory at a time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import html
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote, urljoin

from agent.importing import mirror
from agent.importing.foreign import AS_IT_IS, CopyRecord, RecordRun, Report, Stated, Step, hash_file, web_url
from webarcfs.archive.model.errors import Damaged, UsageError
from webarcfs.archive.model.metadata import MHTML, MIRROR, SINGLE_FILE, format_utc

# == what pages say, pure =============================================================================================


#: Bytes of a page in which a comment is looked for.
SEARCHED = 1 << 16
_SINGLE_FILE = re.compile(
    rb"<!--\s{0,9}(?:Page saved with|Archive processed by) SingleFile\b(.{0,8000}?)-->", re.IGNORECASE | re.DOTALL
)
_LINE = re.compile(rb"^[ \t]*(url|saved date):[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_MARK = re.compile(rb"<!--\s{0,9}saved from url=\(\d{1,6}\)(\S{1,8000}?)\s{0,9}-->", re.IGNORECASE)
#: `Tue Mar 05 2024 12:34:56 GMT+0100 (Central European Standard Time)`, as JavaScript writes dates.
_OF_JAVASCRIPT = re.compile(r"[A-Za-z]{3} ([A-Za-z]{3} \d{2} \d{4} \d\d:\d\d:\d\d) GMT([+-]\d{4})", re.ASCII)
_HTML = re.compile(rb"(?i)(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|body|title|meta|!--)")
#: WARC, ARC, gzip, Zstandard and its frames.
_OTHER = re.compile(rb"WARC/|filedesc:|\x1f\x8b|\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")
_PAGE = re.compile(r".*\.(?:x?html?|xht)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class PageOrigin:
    """What a page says of itself: what saved it, its address and its time; each empty where it does not say it."""

    source: str
    url: str = ""
    date: str = ""


def origin_of(start: bytes) -> PageOrigin | None:
    """Return what the start of a page says of its origin; None for a page that nothing saved."""
    if match := _SINGLE_FILE.search(start):
        lines = {line[1]: line[2].decode("utf-8", "replace") for line in _LINE.finditer(match[1])}
        return PageOrigin(
            SINGLE_FILE, web_url(html.unescape(lines.get(b"url", ""))), _date(lines.get(b"saved date", ""))
        )
    if match := _MARK.search(start):
        return PageOrigin(MIRROR, web_url(html.unescape(match[1].decode("utf-8", "replace"))))
    return None


def _date(text: str) -> str:
    """Return a time of JavaScript, or of ISO 8601 with a zone, as WARC has it; empty for another."""
    try:
        if match := _OF_JAVASCRIPT.match(text):
            return format_utc(datetime.strptime(f"{match[1]} {match[2]}", "%b %d %Y %H:%M:%S %z"))
        time = datetime.fromisoformat(text)
        return format_utc(time) if time.tzinfo else ""
    except (ValueError, OverflowError):
        return ""


def is_page(name: str, start: bytes) -> bool:
    """Return whether a file is a page, by its first bytes, or by its name if they are not those of another format."""
    return _HTML.match(start) is not None or (_PAGE.fullmatch(name) is not None and not _OTHER.match(start))


# == pages ============================================================================================================


#: How browsers call the folder of a page, by their languages.
_FOLDERS = ("_files", ".files", "-Dateien", "_Dateien", "-filer", "_fichiers", "_archivos", "_file", "_bestanden")


def folder_beside(page: Path) -> Path | None:
    """Return the folder with what a saved page needs; None without one."""
    beside = (page.with_name(page.stem + ending) for ending in _FOLDERS)
    return next((folder for folder in beside if folder.is_dir() and not folder.is_symlink()), None)


def size_of(page: Path) -> int:
    """Return the bytes of a page and of its folder."""
    folder = folder_beside(page)
    return page.stat().st_size + (mirror.size_of(folder) if folder else 0)


def digest_of(page: Path, step: Step, base: str = "") -> str:
    """Return the SHA-256 of a page; with a folder, or where only `base` says its address, one of all that."""
    digest = hashlib.sha256()
    with page.open("rb") as file:
        size = hash_file(file, digest.update, step)
    folder = folder_beside(page)
    own = origin(page) if base else None
    base = "" if own is not None and own.url else base
    if folder is None and not base:
        return digest.hexdigest()
    inner = mirror.digest_of(folder, lambda done: step(size + done)) if folder else ""
    return hashlib.sha256(digest.digest() + inner.encode() + base.encode()).hexdigest()


def origin(path: Path) -> PageOrigin | None:
    """Return what a file says of its origin, if it is a page that something saved. Raises OSError."""
    with path.open("rb") as file:
        start = file.read(SEARCHED)
    return origin_of(start) if is_page(path.name, start[:512]) else None


def parts(path: Path, name: str, report: Report, stated: Stated) -> Iterator[RecordRun]:
    """Yield a saved page as a part, with what it needs. Raises UsageError, which says what is missing."""
    own = origin(path) or PageOrigin(MIRROR)
    url, date = own.url or stated.base, own.date or stated.date
    missing = [
        *(["--base URL, its address"] if not url else []),
        *(["--captured TIME, when it was saved, as in --captured 2019-05-01T12:00"] if not date else []),
    ]
    if missing:
        raise UsageError(f"{name}: the page does not say it itself, so give {' and '.join(missing)}")
    taken = [0]
    yield RecordRun(name, _records(path, url, mirror.Copies(name, report, date, own.source), taken), lambda: taken[0])


def _records(path: Path, url: str, copies: mirror.Copies, taken: list[int]) -> Iterator[CopyRecord]:
    kind = "application/xhtml+xml" if path.suffix.lower() in (".xhtml", ".xht") else "text/html"
    with path.open("rb") as file:
        for record in copies.of_file(url, kind, file, path):
            yield record
            taken[0] += record.length
    folder = folder_beside(path)
    if folder is None:
        return
    base = urljoin(url, quote(os.fsencode(folder.name), safe="") + "/")
    for inner, inner_path in mirror.files_in(folder, copies.left_out, copies.lost):
        inner_url = base + quote(os.fsencode(inner), safe="/")
        for record in copies.of_path(inner_url, mirror.declared_type(inner), inner_path):
            yield record
            taken[0] += record.length


# == mhtml ============================================================================================================


#: The first bytes of a file of this kind: fields of a mail, one of which says so.
MHTML_START = re.compile(rb"(?is)(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*){1,40}?Content-Type:\s*multipart/related")
#: Bytes of a part as it is written, parts of a file, bytes of the fields before a part.
MOST_BYTES, MOST_PARTS, _MOST_FIELDS = 64 << 20, 100_000, 1 << 16
#: Parts that contain parts.
_DEEPEST = 4
#: Bytes that references may grow by in one file, as addresses or `data:` URLs, what each of the latter counts at least,
#: and how deep they are in each other.
_MOST_INLINE, _LEAST_INLINE, _MOST_LEVELS = 64 << 20, 1 << 10, 4
_MHTML_LINE = 1 << 16
_CID = re.compile(rb"cid:([^\s\"'<>()\\]{1,500})", re.IGNORECASE)
_NO_ADDRESS = "parts without an address are skipped"
_REFERRING = frozenset({"text/html", "application/xhtml+xml", "text/css", "image/svg+xml"})


@dataclass(frozen=True, slots=True)
class MhtmlPart:
    """A part: where its bytes begin and end, what its fields say. `location` is an address as it is written.

    `url` is that address as a URL of the web; empty without one.
    """

    begin: int
    end: int
    location: str
    cid: str
    kind: str
    charset: str
    coding: str
    base: str
    url: str = ""


def parts_of_mhtml(file: IO[bytes], size: int, name: str, report: Report, stated: Stated) -> Iterator[RecordRun]:
    """Yield the file as a part. Raises UsageError where it has no time, Damaged where it is no MHTML."""
    fields = _fields(file)
    date = _mhtml_date(fields) or stated.date
    if not date:
        raise UsageError(f"{name}: this MHTML has no field Date; --captured TIME says when it was saved")
    if not fields.get_boundary():
        raise Damaged(f"{name}: this MHTML does not say what is between its parts")
    page = _Mhtml(file, name, report, fields, date, stated.base, size)
    yield RecordRun(name, page.records(), lambda: page.taken)


def _fields(file: IO[bytes], most: int = _MOST_FIELDS) -> Message:
    """Read the fields up to the next empty line, at most so many bytes."""
    raw = bytearray()
    while len(raw) < most and (line := file.readline(min(_MHTML_LINE, most - len(raw)))).strip():
        raw += line
    return BytesHeaderParser().parsebytes(bytes(raw))


def _mhtml_date(fields: Message) -> str:
    try:
        time = parsedate_to_datetime(str(fields["Date"]))
        return format_utc(time if time.tzinfo else time.replace(tzinfo=UTC))  # "-0000": UTC
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _address(value: object) -> str:
    """Return an address as a field has it: folded where it is long, encoded where it is not ASCII."""
    text = re.sub(r"\s+", "", str(value or ""))
    if text.startswith("=?"):
        try:
            text = str(make_header(decode_header(text)))
        except (ValueError, LookupError, UnicodeError):
            return ""
    return quote(text.encode("utf-8", "surrogateescape"), safe=AS_IT_IS)


def _url(part: MhtmlPart, main: str) -> str:
    """Return the address of a part as a URL of the web; empty without one."""
    if not part.location:
        return ""
    try:
        return web_url(urljoin(part.base or main, part.location))
    except ValueError:
        return ""


@dataclass
class _Mhtml:
    """A file of parts, whose number is `number`; `taken` counts the bytes that were read."""

    file: IO[bytes]
    name: str
    report: Report
    fields: Message
    date: str
    base: str
    size: int
    taken: int = 0
    inline_left: int = _MOST_INLINE
    number: int = 0
    by_name: dict[str, MhtmlPart] = field(default_factory=dict)

    def records(self) -> Iterator[CopyRecord]:
        written = list(self._parts(self.fields, self.file.tell(), self.size, 0))
        main = _address(self.fields["Snapshot-Content-Location"]) or (written[0].location if written else "")
        main = web_url(main) or web_url(_address(self.fields["Content-Location"])) or self.base
        all_parts = [replace(part, url=_url(part, main)) for part in written]
        #: Chromium names the styles of elements by an address `cid:…`, other parts by their Content-ID.
        self.by_name = {f"cid:{part.cid}": part for part in reversed(all_parts) if part.cid}
        self.by_name |= {part.location: part for part in reversed(all_parts) if part.location.startswith("cid:")}
        seen: set[str] = set()
        for number, part in enumerate(all_parts):
            url = part.url or (main if not number else "")
            if not url and not number:
                self.report.losses.add(
                    self.name, "the page has no address; --base URL says it", f"at byte {part.begin}"
                )
                continue
            if not url:
                is_shown = bool(part.cid) or part.location.lower().startswith("cid:")
                what = "parts that only other parts show, by cid:, are in those" if is_shown else _NO_ADDRESS
                self.report.remarks.add(self.name, what, part.location or part.cid or f"at byte {part.begin}")
                continue
            if url in seen:
                self.report.remarks.add(self.name, "left out: an earlier part has its address", url)
                continue
            seen.add(url)
            data = self._body(part, url)
            if data is not None:
                kind = f"{part.kind}; charset={part.charset}" if part.charset else part.kind
                fields = {"warc-target-uri": url, "warc-date": self.date, "content-type": kind}
                yield CopyRecord(fields, MHTML, io.BytesIO(data), len(data))
            self.taken = part.end
        self.taken = self.size
        if not all_parts:
            self.report.losses.add(self.name, "an MHTML without a part", self.name)

    # -- parts ----------------------------------------------------------------------------------------------------

    def _parts(self, fields: Message, begin: int, end: int, depth: int) -> Iterator[MhtmlPart]:
        """Yield the parts between two places, those in parts among them."""
        base = _address(fields["Content-Base"]) or _address(fields["Content-Location"])
        for part_begin, part_end in self._spans(str(fields.get_boundary() or ""), begin, end):
            self.number += 1
            if self.number > MOST_PARTS:
                self.report.losses.add(self.name, f"parts beyond the first {MOST_PARTS:,}", f"at byte {part_begin}")
                return
            self.file.seek(part_begin)
            own = _fields(self.file, min(_MOST_FIELDS, part_end - part_begin))
            body = self.file.tell()
            if own.get_content_maintype() == "multipart":
                if not own.get_boundary():
                    what = "parts in a part that does not say what is between them"
                    self.report.losses.add(self.name, what, f"at byte {part_begin}")
                elif depth < _DEEPEST:
                    yield from self._parts(own, body, part_end, depth + 1)
                else:
                    self.report.losses.add(self.name, "parts in parts in parts", f"at byte {part_begin}")
                continue
            yield MhtmlPart(
                begin=min(body, part_end),
                end=part_end,
                location=_address(own["Content-Location"]),
                cid=str(own["Content-ID"] or "").strip().strip("<>"),
                kind=own.get_content_type() if own["Content-Type"] else "",
                charset=re.sub(r"[^A-Za-z0-9._:+-]", "", str(own.get_content_charset() or ""))[:40],
                coding=str(own["Content-Transfer-Encoding"] or "").strip().lower(),
                base=base,
            )

    def _spans(self, boundary: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield where the parts begin and end: a line with the boundary is before each, its line end included."""
        mark = b"--" + boundary.encode("utf-8", "surrogateescape")
        self.file.seek(begin)
        offset, start, is_line_start, before = begin, -1, True, b""
        while offset < end and (line := self.file.readline(min(_MHTML_LINE, end - offset))):
            if is_line_start and line.startswith(mark) and (rest := line[len(mark) :].strip()) in (b"", b"--"):
                after = offset + len(line)
                if start >= 0:
                    yield start, max(start, offset - (len(before) - len(before.rstrip(b"\r\n"))))
                    self.file.seek(after)
                start = -1 if rest else after
                if rest:
                    return
            before = line[-2:]
            is_line_start = line.endswith(b"\n")
            offset += len(line)
        if start >= 0:
            self.report.losses.add(
                self.name, "the last part, which may be cut off: the file has no end", f"at byte {start}"
            )

    # -- bodies ---------------------------------------------------------------------------------------------------

    def _body(self, part: MhtmlPart, where: str) -> bytes | None:
        data = self._decoded(part, where)
        if data is None or part.kind not in _REFERRING:
            return data
        return self._without_cids(data, part, 0)

    def _decoded(self, part: MhtmlPart, where: str) -> bytes | None:
        if part.end - part.begin > MOST_BYTES:
            self.report.losses.add(self.name, f"a part of more than {MOST_BYTES >> 20} MiB", where)
            return None
        self.file.seek(part.begin)
        raw = self.file.read(part.end - part.begin)
        try:
            if part.coding == "base64":
                return base64.b64decode(re.sub(rb"[^A-Za-z0-9+/=]", b"", raw))
            if part.coding == "quoted-printable":
                return binascii.a2b_qp(raw)
        except (binascii.Error, ValueError):
            self.report.losses.add(self.name, f"a part that is no {part.coding}", where)
            return None
        return raw

    def _without_cids(self, data: bytes, part: MhtmlPart, level: int) -> bytes:
        """Return a body in which references by name are addresses, or the parts themselves."""

        def replaced(match: re.Match[bytes]) -> bytes:
            raw = f"cid:{match[1].decode('utf-8', 'replace')}"
            names = (raw, html.unescape(raw), unquote(raw))
            named = next((self.by_name[name] for name in names if name in self.by_name), None)
            if named is None:
                self.report.remarks.add(self.name, "references by cid: to parts that are not there stay", raw)
                return match[0]
            url = named.url or self._as_data(named, level)
            reference = (url if part.kind == "text/css" else html.escape(url)).encode()
            growth = max(0, len(reference) - len(match[0])) if named.url else 0
            if not url or growth > self.inline_left:
                self.report.remarks.add(self.name, "references by cid: to parts that are too large stay", raw)
                return match[0]
            self.inline_left -= growth
            self.report.remarks.add(self.name, "references by cid: are replaced by addresses or by the parts", raw)
            return reference

        return _CID.sub(replaced, data)

    def _as_data(self, part: MhtmlPart, level: int) -> str:
        cost = max(part.end - part.begin, _LEAST_INLINE)
        if level >= _MOST_LEVELS or cost > self.inline_left:
            return ""
        self.inline_left -= cost
        data = self._decoded(part, part.location or part.cid)
        if data is None:
            return ""
        if part.kind in _REFERRING:
            data = self._without_cids(data, part, level + 1)
        kind = f"{part.kind};charset={part.charset}" if part.charset else part.kind
        return f"data:{kind};base64,{base64.b64encode(data).decode()}"
