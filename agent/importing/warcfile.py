"""Reads foreign files into a job: adds each capture to its index, and writes responses to archive into the spool.

Revisit records wait until all files are read (`import_captures.py`). The request may precede or directly follow the
response, so each response is held until the next record has been read. The answer to a POST, PUT, PATCH or DELETE has a
URL that is made of its request.

A body that ends as its kind does is whole, even where its Content-Length says that more should come. Writers change
bodies (they unpack them, or insert a line) and leave the head as it was; a connection that broke leaves the same mark.
The end of the body distinguishes them, for kinds that have an end.

The requests of a file say which response answers which request, and under which URL that response is archived.

A request record may precede or follow its response. One names the other (WARC-Concurrent-To), or both have the same URL
and time. A response counts as one to GET unless a request says otherwise. The answer to a POST, PUT, PATCH or DELETE is
archived under the key of its request (`webarcfs.warc.request_key`); where that has none, it is skipped.

Requests that wait for their responses take bounded memory: a certain number of them, and a certain size of their keys.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from agent.crawl import scope
from agent.crawl.frontier import ImportIndex, JobBody, UrlOutcome
from agent.crawl.vocabulary import (
    NOT_MODIFIED,
    PARTIAL_CONTENT,
    WHOLE,
    Reason,
    Status,
    UrlState,
    is_error_page,
    redirect_of,
    word_of_request,
    words_of_certificate,
)
from agent.importing.browser_pages import PageParts, PageRecord
from agent.importing.crawls import CrawlsBy, crawl_name, is_of_export, part_of
from agent.importing.foreign import (
    CERTIFICATE_FIELD,
    SECRETS_FIELD,
    SOURCE_FIELD,
    URL_FIELD,
    ForeignRecord,
    RecordRun,
    Report,
    Spool,
    shown,
)
from agent.importing.import_captures import CapturedUrl, RecordPlace, capture_row, untaken_row
from agent.importing.import_sources import Source, parts_of
from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model import url_lists
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.metadata import COPIES, HAR
from webarcfs.archive.model.urls import canonical
from webarcfs.content import mimetype
from webarcfs.warc import http_response, request_key
from webarcfs.warc.decoding import BadBody, BodyFault, BodyNotes, Bomb, TooBig, decoded, kept_codings
from webarcfs.warc.http_response import base32, declared_digest, digest_key, nanoseconds_of, parse_date
from webarcfs.warc.request_key import KeyFault, RequestKey

# == asked requests ===================================================================================================


#: Requests of other methods than GET that wait for their responses, and bytes of their keys.
_MOST_REQUESTS: Final = 10_000
_MOST_BYTES: Final = 8 << 20
_METHOD: Final = re.compile(rb"([A-Z]{1,32}) ")
#: A head of a response in the place of the first line of a request: the fields below are read alike.
_FIRST_LINE: Final = b"HTTP/1.1 200 OK\r\n"


@dataclass(frozen=True, slots=True)
class Exchange:
    """The fields that relate a request and its response (ISO 28500, WARC-Concurrent-To)."""

    own: str
    other: str
    uri: str
    date: str

    @classmethod
    def of(cls, record: ForeignRecord) -> Exchange:
        """Return the fields of a record."""
        get = record.fields.get
        return cls(
            get("warc-record-id", "").strip("<> "),
            get("warc-concurrent-to", "").strip("<> "),
            get("warc-target-uri", "").strip("<> "),
            get("warc-date", ""),
        )

    def is_with(self, answer: Exchange) -> bool:
        """Return whether a request belongs to `answer`: by record id, or by URI and time if neither refers to an id."""
        if self.other or answer.other:
            return (bool(self.other) and self.other == answer.own) or (bool(answer.other) and answer.other == self.own)
        return (self.uri, self.date) == (answer.uri, answer.date)


@dataclass(frozen=True, slots=True)
class AskedRequest:
    """A request of another method than GET: its key, or the fault for which it has none."""

    exchange: Exchange
    asked: RequestKey | KeyFault

    @property
    def size(self) -> int:
        """Bytes of what is kept of its body."""
        return len(self.asked.url) if isinstance(self.asked, RequestKey) else 0


class AskedRequests:
    """The requests of other methods than GET whose responses were not read yet."""

    def __init__(self) -> None:
        self._waiting: deque[AskedRequest] = deque()
        self._bytes = 0
        #: How many of the oldest ones have lost their keys.
        self._without = 0

    def clear(self) -> None:
        """Forget all: another file begins."""
        self._waiting.clear()
        self._bytes = self._without = 0

    def add(self, request: AskedRequest) -> None:
        """Keep a request. Beyond the bounds the oldest ones lose their keys, and then are forgotten."""
        self._waiting.append(request)
        self._bytes += request.size
        if len(self._waiting) > _MOST_REQUESTS:
            self._forget(0)
        while self._bytes > _MOST_BYTES:
            waiting = self._waiting[self._without]
            self._waiting[self._without] = AskedRequest(waiting.exchange, KeyFault.LONG)
            self._bytes -= waiting.size
            self._without += 1

    def take(self, answer: Exchange) -> RequestKey | KeyFault | None:
        """Return what a response answers, by the first request that belongs to it; None for a GET."""
        for at, waiting in enumerate(self._waiting):
            if waiting.exchange.is_with(answer):
                self._forget(at)
                return waiting.asked
        return None

    def _forget(self, at: int) -> None:
        self._bytes -= self._waiting[at].size
        self._without -= at < self._without
        del self._waiting[at]


def read_request(record: ForeignRecord) -> AskedRequest | None:
    """Read a request record; None for a GET, and for a record that is cut off or no request."""
    head = http_response.read_head(record)
    method = _METHOD.match(head)
    if method is None or method[1] == b"GET":
        return None
    exchange = Exchange.of(record)
    asked = _key(record, method[1].decode(), exchange.uri, head)
    return AskedRequest(exchange, asked) if record.whole() else None


def _key(record: ForeignRecord, method: str, uri: str, raw: bytes) -> RequestKey | KeyFault:
    """Return the key of a request whose body follows in its record."""
    head = http_response.parse_head(_FIRST_LINE + raw.partition(b"\n")[2])
    assert head is not None  # it begins with one
    size, most = record.length - len(raw), request_key.LONGEST_BODY
    is_coded = bool(head.get("transfer-encoding") or head.get("content-encoding"))
    fault = request_key.fault_of(request_key.mime_of(head.content_type), 0 if is_coded else size)
    if fault is not None:
        return fault
    try:
        body = b"".join(decoded(record, head, size, url=uri, trust_length=False, most=most))
    except TooBig:
        return KeyFault.LONG
    except BadBody:
        return KeyFault.BINARY
    return request_key.key_of(method, uri, head.content_type, body)


def exported_key(record: ForeignRecord, asked: RequestKey) -> RequestKey:
    """Return the key under which an export of ours had a response; else the one that was made of the request.

    A key that was cut, or has lost its tokens, cannot be made again of what the export says of its request.
    """
    stored = record.fields.get(URL_FIELD, "")
    parts, made = request_key.parts_of(stored), request_key.parts_of(asked.url)
    if parts is None or made is None or (parts.url, parts.method) != (made.url, made.method):
        return asked
    is_sound = len(stored) <= request_key.LONGEST_KEY and request_key.is_canonical(stored)
    return RequestKey(stored, asked.method, asked.mime) if is_sound else asked


def word_of(fault: KeyFault) -> str:
    """Return the annotation of a response that is skipped, since its request has no key."""
    return Reason.METHOD if fault is KeyFault.METHOD else f"{Reason.NO_KEY}{fault.name.lower()}"


# == ends of bodies, pure =============================================================================================


#: Bytes of a body's end that are looked at.
TAIL = 1 << 10
#: The first bytes of a kind, and what its last bytes contain.
_KINDS: tuple[tuple[re.Pattern[bytes], re.Pattern[bytes]], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), re.compile(rb"\0\0\0\0IEND\xaeB`\x82\s*\Z")),
    (re.compile(rb"\xff\xd8\xff"), re.compile(rb"\xff\xd9\s*\Z")),
    (re.compile(rb"GIF8[79]a"), re.compile(rb"\0;\s*\Z")),
    (re.compile(rb"%PDF-"), re.compile(rb"%%EOF\s*\Z")),
    (re.compile(rb"PK\x03\x04"), re.compile(rb"PK\x05\x06(?s:.{18,})\Z")),
    (re.compile(rb"(?s:.{0,400})<(?i:html|!doctype html|head|body)"), re.compile(rb"(?i:</html\s*>)(?s:.*>)?\s*\Z")),
    (re.compile(rb"(?s:.{0,400})<(?i:svg)[\s>]"), re.compile(rb"(?i:</svg\s*>)\s*\Z")),
)  # fmt: skip


def ends(start: bytes, tail: bytes) -> bool:
    """Return whether a body with this start and these last bytes is whole; False if its kind does not show it."""
    return any(begin.match(start) and end.search(tail) for begin, end in _KINDS)


def checked(parts: Iterator[bytes], is_shorter: bool) -> Iterator[bytes]:
    """Yield a body of another length than its head says. Raises BadBody for one that is shorter, and may be cut off."""
    start = tail = b""
    for part in parts:
        start = start or part[:TAIL]
        tail = (tail + part)[-TAIL:]
        yield part
    if is_shorter and not ends(start, tail):
        raise BadBody(BodyFault.TRUNCATED)


# == reading ==========================================================================================================


_WARCINFO = "warcinfo"
_LONGEST_WARCINFO = 1 << 16
_OF_THE_WEB = re.compile(r"https?:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Held:
    """A response that was read. After the next record `settle` is called with what it answers; None is a GET."""

    exchange: Exchange
    asked: RequestKey | None
    settle: Callable[[RequestKey | KeyFault | None], None]


class WarcFileImport:
    """Reads a file of a job. `losses` are records that should have been archived."""

    def __init__(self, index: ImportIndex, settings: CrawlSettings, crawls: CrawlsBy = CrawlsBy.AUTO) -> None:
        self.index = index
        self.settings = settings
        self._crawls = crawls
        self._report = Report()
        self.losses = self._report.losses
        self.remarks = self._report.remarks
        self.records = 0
        self.held: _Held | None = None
        self.requests = AskedRequests()

    def file(self, source: Source, spool: Spool, batch: int, step: Callable[[int], None]) -> None:
        """Read a file, whose number is `batch`; `step` is called with the bytes read so far, and may raise."""
        for part in parts_of(source.path, source.name, self._report, step, source.stated, form=source.form):
            self.requests.clear()
            name = self._crawl(source, part)
            pages = PageParts(self.index, spool, self.remarks, self.settings.max_file_size)
            for record in part.records:
                self.records += not isinstance(record, PageRecord)  # the line of a page is no record of a crawl
                if record.type == "request":
                    self._request(part.name, record)
                else:
                    self._keep_held()
                    if record.type == _WARCINFO:
                        name = self._crawl(source, part, _whole_block(record))
                    else:
                        place = RecordPlace(batch, self.records, name)
                        _Reading(self, part.name, record, spool, place, pages).take()
                step(part.taken())
            self._keep_held()

    def _crawl(self, source: Source, part: RecordRun, warcinfo: bytes = b"") -> str:
        """Return the name of the crawl of the records that follow a warcinfo record."""
        return crawl_name(
            self._crawls,
            file=source.name,
            digest=source.digest,
            path=shown(source.path),
            container="" if is_of_export(warcinfo) else part.crawl,
            collection=part_of(warcinfo),
        )

    def _keep_held(self) -> None:
        held, self.held = self.held, None
        if held is not None:
            held.settle(held.asked)

    def _request(self, file: str, record: ForeignRecord) -> None:
        """Read a request: the response to another method than GET is no page of its URL."""
        request, held = read_request(record), self.held
        if request is None:
            return
        if held is None or not request.exchange.is_with(held.exchange):
            self.requests.add(request)
            return
        self.held = None
        held.settle(request.asked)
        if isinstance(request.asked, KeyFault):
            self.lose_answer(file, request.exchange.uri, request.asked)

    def lose_answer(self, file: str, uri: str, fault: KeyFault) -> None:
        """Add the loss of a response whose request has no key."""
        if fault is KeyFault.METHOD:
            self.losses.add(file, "answers to requests of other methods than GET are skipped", uri)
        else:
            self.losses.add(file, f"answers to requests of other methods are skipped, where {fault}", uri)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The import of one record."""

    intake: WarcFileImport
    file: str
    record: ForeignRecord
    spool: Spool
    place: RecordPlace
    pages: PageParts
    asked: RequestKey | None = None

    def take(self) -> None:
        kind = self.record.type
        if self.pages.take(self.file, self.record, self.place) or kind == "metadata":
            return
        if kind not in ("response", "resource", "revisit"):
            self.intake.remarks.add(self.file, f"records of type {kind[:40] or '(none)'!r} are skipped", self._uri())
            return
        capture = self._capture()
        if capture is None:
            return
        asked = None if kind == "resource" else self.intake.requests.take(Exchange.of(self.record))
        if isinstance(asked, KeyFault):
            self.intake.lose_answer(self.file, capture.url, asked)
            self._leave_out(word_of(asked))
            return
        reading = self if asked is None else replace(self, asked=asked)
        {"response": reading._response, "resource": reading._resource, "revisit": reading._revisit}[kind](capture)

    def _uri(self) -> str:
        return self.record.fields.get("warc-target-uri", "").strip("<> ")

    def _source(self) -> str:
        """Return what the record is a copy of; empty for what a crawler received."""
        source = self.record.fields.get(SOURCE_FIELD, "")
        return source if source in COPIES else ""

    def _source_word(self) -> str:
        return f"{Reason.SOURCE}{source}" if (source := self._source()) else ""

    def _has_secrets(self) -> bool:
        return SECRETS_FIELD in self.record.fields

    def _leave_out(self, why: str) -> None:
        """Add a record that is not taken, and why."""
        time = parse_date(self.record.fields.get("warc-date", ""))
        self.intake.index.add_found(untaken_row(self.place, self._uri(), time, why))

    def _lose(self, what: str, why: str) -> None:
        """Add the loss of a record that is not taken."""
        self.intake.losses.add(self.file, what, self._uri())
        self._leave_out(why)

    def _capture(self) -> CapturedUrl | None:
        uri, date = self._uri(), self.record.fields.get("warc-date", "")
        try:
            url = canonical(uri)
            domain = split(arc_path(url))[0]
        except UrlRefused as error:
            if _OF_THE_WEB.match(uri):
                self._lose("a URL that cannot be archived", Reason.BAD_URL)
            else:
                self.intake.remarks.add(self.file, "skipped, no URL of the web", str(error))
            return None
        time = parse_date(date)
        if scope.beyond_all(url) == scope.PATH_DEPTH:
            what = f"a URL of more than {scope.MOST_SEGMENTS} segments, too deep to keep"
            self._lose(what, Reason.PATH_DEPTH)
        elif time is None:
            self._lose("a record without a date that can be", Reason.BAD_DATE)
        elif "warc-segment-number" in self.record.fields:
            self._lose("a record in segments, which are not joined", Reason.SEGMENT)
        else:
            return CapturedUrl(url, domain, time, nanoseconds_of(date))
        return None

    # -- responses and resources -----------------------------------------------------------------------------------

    def _response(self, capture: CapturedUrl) -> None:
        raw = http_response.read_head(self.record)
        head = http_response.parse_head(raw)
        if head is None:
            self.intake.losses.add(self.file, "a response without the head of an answer", capture.url)
            self._settle(capture, _failed(Status.INVALID_RESPONSE, Reason.NO_HEAD))
            return
        size, status, note = self.record.length - len(raw), head.status, self._source_word()
        if status == PARTIAL_CONTENT:
            if http_response.is_whole(head, size):
                self.intake.remarks.add(self.file, "documents asked for as a range (206) are taken", capture.url)
                status = head.document_status
            else:
                self.intake.remarks.add(self.file, "parts of documents (206) are skipped", capture.url)
                note = ",".join(filter(None, (note, Reason.PARTIAL)))
        if self.record.fields.get("warc-truncated") and self._archivable(status):
            what, why = "a response that its crawler cut short", Reason.TRUNCATED
            if self._source() == HAR:
                what, why = "a response whose body is not in the HAR, or only a part of it", Reason.NO_BODY
            self.intake.losses.add(self.file, what, capture.url)
            self._settle(capture, _failed(Status.CONNECTION_LOST, why))
            return
        mime = mimetype.declared_type(head.content_type)
        outcome = UrlOutcome(id=0, state=UrlState.DONE, status=status, size=size, mime=mime, note=note)
        self._store(capture, raw, head, outcome)

    def _resource(self, capture: CapturedUrl) -> None:
        """Import a body without a head; its head becomes a status line and its Content-Type (headers.http)."""
        kind = re.sub(r"[^\x20-\x7e]+", " ", self.record.fields.get("content-type", "application/octet-stream"))
        declared = f"Content-Type: {kind}\r\n" if kind else ""  # what no server declared is sniffed
        raw = f"HTTP/1.0 200 OK\r\n{declared}\r\n".encode("ascii")
        head = http_response.parse_head(raw)
        assert head is not None
        settled = UrlOutcome(
            id=0,
            state=UrlState.DONE,
            status=head.status,
            size=self.record.length,
            mime=mimetype.declared_type(kind),
            note=self._source_word() or Reason.RESOURCE,
        )
        self._store(capture, raw, head, settled)

    def _store(self, capture: CapturedUrl, raw: bytes, head: http_response.Head, settled: UrlOutcome) -> None:
        settings = self.intake.settings
        if not self._archivable(settled.status):
            self._settle(capture, _with_target(settled, capture.url, head))
            return
        if settings.max_file_size and settled.size > settings.max_file_size:
            refused = replace(settled, state=UrlState.REFUSED, status=int(Status.QUOTA), note=Reason.TOO_BIG)
            self.intake.remarks.add(self.file, "documents larger than max_file_size are skipped", capture.url)
            self._settle(capture, refused)
            return
        body = http_response.Hashed(self.record)
        plain = hashlib.sha1(usedforsecurity=False)
        declared = declared_digest(self.record.fields.get("warc-payload-digest", ""))
        payload = hashlib.new(declared.algorithm if declared else "sha1", usedforsecurity=False)
        is_other_length = head.length is not None and head.length != settled.size and not head.get("content-encoding")
        forgiven = BodyNotes()
        try:
            most = settings.max_file_size
            parts = decoded(body, head, settled.size, url=capture.url, notes=forgiven, trust_length=False, most=most)
            if is_other_length:
                parts = checked(parts, settled.size < (head.length or 0))
            position = self.spool.add(capture.url, capture.time, raw, _hashing(parts, plain.update, payload.update))
        except BadBody as error:
            self.spool.drop()
            self._skip(capture, settled, error)
            return
        body.finish()
        if not self.record.whole():
            self.spool.drop(position)
            return
        digests = {f"sha1:{body.digest()}", f"sha1:{base32(plain.digest())}"}
        key = digest_key(self.record.fields.get("warc-payload-digest", ""))
        if declared is None or payload.digest() == declared.value or self.record.is_verified:
            digests |= {key} - {""}  # writers differ in the codings it covers; a verified block is sufficient
        elif len(digests) == 1 and key not in digests:  # no codings: the digest can only be of this body
            self.spool.drop(position)
            self.intake.losses.add(self.file, "a body that is not what its digest says", capture.url)
            self._settle(capture, _failed(Status.INVALID_RESPONSE, Reason.BAD_DIGEST))
            return
        if is_other_length:
            self.intake.remarks.add(self.file, "bodies of another length than their heads say are taken", capture.url)
        notes = [
            settled.note,
            Reason.BAD_LENGTH * (head.has_bad_length or is_other_length),
            *(f"{Reason.CODING}{coding}" for coding in kept_codings(head, capture.url)),
            *(f"{Reason.NOT_CODED}{coding}" for coding in forgiven.uncoded),
            *forgiven.remarks,
            *words_of_certificate(self.record.fields.get(CERTIFICATE_FIELD, "")),
            Reason.SECRETS * self._has_secrets(),
        ]
        settled = replace(
            settled,
            position=position,
            digest=body.digest(),
            arc=split(arc_path(capture.url))[1],
            note=",".join(filter(None, notes)),
        )
        self._settle(capture, settled, base32(plain.digest()), sorted(digests))

    def _skip(self, capture: CapturedUrl, settled: UrlOutcome, error: BadBody) -> None:
        if isinstance(error, TooBig):
            refused = replace(settled, state=UrlState.REFUSED, status=int(Status.QUOTA), note=str(error))
            return self._settle(capture, refused)
        status = Status.QUOTA if isinstance(error, Bomb) else Status.CONNECTION_LOST
        if isinstance(error, Bomb):
            self.intake.losses.add(self.file, "a document that unpacks to more than is taken", capture.url)
        else:
            self.intake.remarks.add(self.file, "answers that did not come whole are skipped", capture.url)
        return self._settle(capture, replace(settled, state=UrlState.FAILED, status=int(status), note=str(error)))

    def _settle(self, capture: CapturedUrl, settled: UrlOutcome, body: str = "", digests: Sequence[str] = ()) -> None:
        """Hold the outcome of the record, unless it is cut off; `body` is its digest, by `digests` revisits find it."""
        index, batch, position = self.intake.index, self.place.source, settled.position

        def settle(asked: RequestKey | KeyFault | None) -> None:
            if isinstance(asked, KeyFault):
                if digests:
                    self.spool.drop(position)
                index.add_found(untaken_row(self.place, capture.url, capture.time, word_of(asked)))
                return
            key = None if asked is None else exported_key(self.record, asked)
            answered, outcome = (capture, settled) if key is None else _under_key(capture, settled, key)
            row = capture_row(self.place, answered, outcome, batch, body=body)
            stored = JobBody(batch, position, row.size, row.status, row.mime, row.content)
            by_time = () if self._source() or not digests else (answered.revisit_key,)
            index.add_body((*digests, *by_time), stored)
            index.add_found(row)

        self._hold(settle)

    def _hold(self, settle: Callable[[RequestKey | KeyFault | None], None]) -> None:
        if self.record.whole():
            self.intake.held = _Held(Exchange.of(self.record), self.asked, settle)

    def _archivable(self, status: int) -> bool:
        return status in WHOLE or (self.intake.settings.keep_errors and is_error_page(status))

    # -- revisits ----------------------------------------------------------------------------------------------------

    def _revisit(self, capture: CapturedUrl) -> None:
        fields = self.record.fields
        raw = http_response.read_head(self.record)
        head = http_response.parse_head(raw)
        if head is not None and head.status != NOT_MODIFIED and not self._archivable(head.document_status):
            settled = UrlOutcome(id=0, state=UrlState.DONE, status=head.status, note=Reason.REVISIT)
            self._settle(capture, _with_target(settled, capture.url, head))
            return
        origin, seen = capture.url, parse_date(fields.get("warc-refers-to-date", ""))
        with suppress(UrlRefused):
            origin = canonical(fields.get("warc-refers-to-target-uri", "").strip("<> ") or capture.url)

        def settle(asked: RequestKey | KeyFault | None) -> None:
            if isinstance(asked, KeyFault):
                self._leave_out(word_of(asked))
                return
            url = capture.url if asked is None else exported_key(self.record, asked).url
            self.intake.index.add_revisit(
                source=self.place.source,
                ordinal=self.place.ordinal,
                name=self.place.crawl,
                url=url,
                time=int(capture.time.timestamp()),
                fraction=capture.fraction,
                digest=digest_key(fields.get("warc-payload-digest", "")),
                origin=url if origin == capture.url else origin,  # of the answer to the same request
                seen=int(seen.timestamp()) if seen else 0,
                head=b"" if self._has_secrets() else raw,  # it gets that of its response, which has the mark
            )

        self._hold(settle)


def _under_key(capture: CapturedUrl, settled: UrlOutcome, key: RequestKey) -> tuple[CapturedUrl, UrlOutcome]:
    """Return capture and outcome of an answer under the key of its request."""
    arc = split(arc_path(key.url))[1] if settled.arc else ""
    note = ",".join(filter(None, (settled.note, word_of_request(key.method, key.mime))))
    return replace(capture, url=key.url), replace(settled, arc=arc, note=note)


def _whole_block(record: ForeignRecord) -> bytes:
    """Return the block of a warcinfo record; nothing of one that is cut off."""
    block = b""
    while len(block) < _LONGEST_WARCINFO and (data := record.read(_LONGEST_WARCINFO)):
        block += data
    return block if record.whole() else b""


def _failed(status: Status, note: str) -> UrlOutcome:
    return UrlOutcome(id=0, state=UrlState.FAILED, status=int(status), note=note)


def _with_target(settled: UrlOutcome, url: str, head: http_response.Head) -> UrlOutcome:
    """Return the outcome with the target of a redirect; unchanged for another response."""
    if head.status not in url_lists.STATUSES:
        return settled
    target, note = redirect_of(url, head.get("location"))
    return replace(settled, target=target, note=note or settled.note)


def _hashing(parts: Iterator[bytes], *updates: Callable[[bytes], None]) -> Iterator[bytes]:
    for part in parts:
        for update in updates:
            update(part)
        yield part
