"""Reads MHTML (RFC 2557), a page with all that it shows in one file, as browsers save it.

The parts have addresses (`Content-Location`) or names (`Content-ID`), by which pages and styles refer to them as
`cid:`. Those references are replaced: by the address of the part, else by the part itself as a `data:` URL. All other
bytes are those of the file. Its time is the field `Date`.

The file is read line by line, and of its parts only where they lie is held. One part is in memory at a time.
"""

from __future__ import annotations

import base64
import binascii
import html
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import parsedate_to_datetime
from typing import IO
from urllib.parse import quote, unquote, urljoin

from agent.importing.foreign import AS_IT_IS, CopyRecord, RecordRun, Report, Stated, web_url
from webarcfs.archive.model.errors import Damaged, UsageError
from webarcfs.archive.model.metadata import MHTML, format_utc

#: The first bytes of a file of this kind: fields of a mail, one of which says so.
START = re.compile(rb"(?is)(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*){1,40}?Content-Type:\s*multipart/related")
#: Bytes of a part as it is written, parts of a file, bytes of the fields before a part.
MOST_BYTES, MOST_PARTS, _MOST_FIELDS = 64 << 20, 100_000, 1 << 16
#: Parts that contain parts.
_DEEPEST = 4
#: Bytes that references may grow by in one file, as addresses or `data:` URLs, what each of the latter counts at least,
#: and how deep they are in each other.
_MOST_INLINE, _LEAST_INLINE, _MOST_LEVELS = 64 << 20, 1 << 10, 4
_LINE = 1 << 16
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


def parts(file: IO[bytes], size: int, name: str, report: Report, stated: Stated) -> Iterator[RecordRun]:
    """Yield the file as a part. Raises UsageError where it has no time, Damaged where it is no MHTML."""
    fields = _fields(file)
    date = _date(fields) or stated.date
    if not date:
        raise UsageError(f"{name}: this MHTML has no field Date; --captured TIME says when it was saved")
    if not fields.get_boundary():
        raise Damaged(f"{name}: this MHTML does not say what is between its parts")
    page = _Mhtml(file, name, report, fields, date, stated.base, size)
    yield RecordRun(name, page.records(), lambda: page.taken)


def _fields(file: IO[bytes], most: int = _MOST_FIELDS) -> Message:
    """Read the fields up to the next empty line, at most so many bytes."""
    raw = bytearray()
    while len(raw) < most and (line := file.readline(min(_LINE, most - len(raw)))).strip():
        raw += line
    return BytesHeaderParser().parsebytes(bytes(raw))


def _date(fields: Message) -> str:
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
        while offset < end and (line := self.file.readline(min(_LINE, end - offset))):
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
