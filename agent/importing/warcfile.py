"""Reads foreign files into a job: adds each URL to the frontier, and writes responses to archive into the spool.

Revisit records wait until all files are read (`revisits.py`). A response counts if its request was a GET. The request
may precede or directly follow the response, so each response is held until the next record has been read.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agent.frontier import facts
from agent.frontier.rows import UrlOutcome
from agent.frontier.store import Frontier
from agent.importing import bodyends
from agent.importing.captures import Capture, settle
from agent.importing.foreign import ForeignRecord, Report
from agent.importing.parts import parts_of
from agent.policy import traps
from agent.policy.fetchstatus import NOT_MODIFIED, PARTIAL_CONTENT, WHOLE, Status, is_error_page, redirect_of
from agent.policy.vocabulary import LinkKind, Reason, UrlState
from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model import redirects
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.url import canonical
from webarcfs.content import mimetype
from webarcfs.warc import http_response
from webarcfs.warc.decoding import BadBody, BodyFault, Bomb, decoded, unknown_codings
from webarcfs.warc.fields import base32, capture_key, declared_digest, digest_key, parse_date
from webarcfs.warc.writer import WarcWriter

_SILENT = ("metadata", "warcinfo")
#: Requests of other methods that are stored until their responses are read.
_MOST_REQUESTS = 10_000
_PARTS = "parts of documents (206) are passed over"
_METHOD = re.compile(rb"([A-Z]{1,32}) ")


@dataclass(frozen=True, slots=True)
class _Exchange:
    """The fields that relate a request and its response (ISO 28500, WARC-Concurrent-To)."""

    own: str
    other: str
    uri: str
    date: str

    @classmethod
    def of(cls, record: ForeignRecord) -> _Exchange:
        """Return the fields of a record."""
        get = record.fields.get
        return cls(
            get("warc-record-id", "").strip("<> "),
            get("warc-concurrent-to", "").strip("<> "),
            get("warc-target-uri", "").strip("<> "),
            get("warc-date", ""),
        )

    def is_with(self, answer: _Exchange) -> bool:
        """Return whether a request belongs to `answer`: by record id, or by URI and time if neither refers to an id."""
        if self.other or answer.other:
            return (bool(self.other) and self.other == answer.own) or (bool(answer.other) and answer.other == self.own)
        return (self.uri, self.date) == (answer.uri, answer.date)


@dataclass(frozen=True, slots=True)
class _Held:
    """A response that was read; it is kept or dropped after the next record has been read."""

    exchange: _Exchange
    keep: Callable[[], None]
    drop: Callable[[], None]


class WarcFileImport:
    """Imports the files of a job, one after the other. `losses` are records that should have been archived."""

    def __init__(self, frontier: Frontier, settings: CrawlSettings) -> None:
        self.frontier = frontier
        self.settings = settings
        self._report = Report()
        self.losses = self._report.losses
        self.remarks = self._report.remarks
        self.records = 0
        self.held: _Held | None = None
        self._posts: deque[_Exchange] = deque(maxlen=_MOST_REQUESTS)

    def file(self, path: Path, name: str, spool: Path, batch: int, step: Callable[[int], None]) -> None:
        """Read one file, which messages call `name`; `step` is called with the bytes read so far, and may raise."""
        begun: dict[str, int] = {}
        with WarcWriter(spool) as out:
            for part in parts_of(path, name, self._report, step):
                self._posts.clear()
                for record in part.records:
                    self.records += 1
                    if record.type == "request":
                        self._request(part.name, record)
                    else:
                        self._keep_held()
                        _Reading(self, part.name, record, out, batch, begun).take()
                    step(part.taken())
                self._keep_held()
        for domain, time in begun.items():
            fact = facts.FIRST_RECORD.of(domain)
            known = self.frontier.get(fact)
            self.frontier.set(fact, time if known is None else min(time, known))

    def _keep_held(self) -> None:
        held, self.held = self.held, None
        if held is not None:
            held.keep()

    def _request(self, file: str, record: ForeignRecord) -> None:
        """Check the method of a request: a response to another method than GET is no page of its URL."""
        method = _METHOD.match(record.readline(64))
        if not record.whole() or method is None or method[1] == b"GET":
            return
        request, held = _Exchange.of(record), self.held
        if held is not None and request.is_with(held.exchange):
            self.held = None
            held.drop()
            self.not_asked_by_get(file, request.uri)
        else:
            self._posts.append(request)

    def is_asked_by_get(self, exchange: _Exchange) -> bool:
        """Return whether no request with another method preceded the response."""
        return not any(request.is_with(exchange) for request in self._posts)

    def not_asked_by_get(self, file: str, uri: str) -> None:
        """Add a remark that a response is skipped."""
        self.remarks.add(file, "answers to requests of other methods than GET are passed over", uri)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The import of one record."""

    intake: WarcFileImport
    file: str
    record: ForeignRecord
    spool: WarcWriter
    batch: int
    begun: dict[str, int]

    def take(self) -> None:
        kind = self.record.type
        if kind in _SILENT:
            return
        if kind not in ("response", "resource", "revisit"):
            self.intake.remarks.add(
                self.file, f"records of type {kind[:40] or '(none)'!r} are passed over", self._uri()
            )
            return
        capture = self._capture()
        if capture is None:
            return
        if "warc-segment-number" in self.record.fields:
            self.intake.losses.add(self.file, "a record in segments, which are not joined", capture.url)
            return
        if kind != "resource" and not self.intake.is_asked_by_get(_Exchange.of(self.record)):
            self.intake.not_asked_by_get(self.file, capture.url)
            return
        taken = {"response": self._response, "resource": self._resource, "revisit": self._revisit}[kind](capture)
        if taken:
            seconds = int(capture.time.timestamp())
            self.begun[capture.domain] = min(self.begun.get(capture.domain, seconds), seconds)

    def _uri(self) -> str:
        return self.record.fields.get("warc-target-uri", "").strip("<> ")

    def _capture(self) -> Capture | None:
        uri = self._uri()
        try:
            url = canonical(uri)
            domain = split(arc_path(url))[0]
        except UrlRefused as error:
            self.intake.remarks.add(self.file, "passed over, no URL of the web", str(error))
            return None
        if traps.beyond_all(url) == traps.PATH_DEPTH:
            self.intake.losses.add(
                self.file, f"a URL of more than {traps.MOST_SEGMENTS} segments, too deep to keep", url
            )
            return None
        time = parse_date(self.record.fields.get("warc-date", ""))
        if time is None:
            self.intake.losses.add(self.file, "a record without a date that can be", url)
            return None
        return Capture(url, domain, time)

    # -- responses and resources -----------------------------------------------------------------------------------

    def _response(self, capture: Capture) -> bool:
        raw = http_response.read_head(self.record)
        head = http_response.parse_head(raw)
        if head is None:
            return self._settle(
                capture, UrlOutcome(id=0, state=UrlState.FAILED, status=int(Status.INVALID_RESPONSE)), Reason.NO_HEAD
            )
        size = self.record.length - len(raw)
        status = head.status
        if status == PARTIAL_CONTENT:
            is_whole = http_response.is_whole(head, size)
            what = "documents asked for as a range (206) are taken" if is_whole else _PARTS
            self.intake.remarks.add(self.file, what, capture.url)
            status = head.document_status if is_whole else status
        if self.record.fields.get("warc-truncated") and self._archivable(capture, status):
            self.intake.losses.add(self.file, "a response that its crawler cut short", capture.url)
            return self._settle(
                capture, UrlOutcome(id=0, state=UrlState.FAILED, status=int(Status.CONNECTION_LOST)), Reason.TRUNCATED
            )
        settled = UrlOutcome(
            id=0, state=UrlState.DONE, status=status, size=size, mime=mimetype.declared_type(head.content_type)
        )
        return self._store(capture, raw, head, settled)

    def _resource(self, capture: Capture) -> bool:
        """Import a body without a head; its head becomes a status line and its Content-Type (headers.http)."""
        kind = re.sub(r"[^\x20-\x7e]+", " ", self.record.fields.get("content-type", "application/octet-stream"))
        raw = f"HTTP/1.0 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode("ascii")
        head = http_response.parse_head(raw)
        assert head is not None
        settled = UrlOutcome(
            id=0,
            state=UrlState.DONE,
            status=head.status,
            size=self.record.length,
            mime=mimetype.declared_type(kind),
            note=Reason.RESOURCE,
        )
        return self._store(capture, raw, head, settled)

    def _store(self, capture: Capture, raw: bytes, head: http_response.Head, settled: UrlOutcome) -> bool:
        settings = self.intake.settings
        if not self._archivable(capture, settled.status):
            settled = _with_target(settled, capture.url, head)
            return self._settle(capture, settled, kind=LinkKind.ROBOTS if _is_robots(capture) else LinkKind.LINK)
        if settings.max_file_size and settled.size > settings.max_file_size:
            return self._settle(
                capture, replace(settled, state=UrlState.REFUSED, status=int(Status.QUOTA)), Reason.TOO_BIG
            )
        body = http_response.Hashed(self.record)
        plain = hashlib.sha1(usedforsecurity=False)
        declared = declared_digest(self.record.fields.get("warc-payload-digest", ""))
        payload = hashlib.new(declared.algorithm if declared else "sha1", usedforsecurity=False)
        is_other_length = head.length is not None and head.length != settled.size and not head.get("content-encoding")
        try:
            parts = decoded(body, head, settled.size, lenient=True, trust_length=False)
            if is_other_length:
                parts = _ended(parts, settled.size < (head.length or 0))
            position = self.spool.add(capture.url, capture.time, raw, _hashing(parts, plain.update, payload.update))
        except BadBody as error:
            self.spool.drop()
            self.intake.remarks.add(self.file, "answers that did not come whole are passed over", capture.url)
            status = Status.QUOTA if isinstance(error, Bomb) else Status.CONNECTION_LOST
            return self._settle(capture, replace(settled, state=UrlState.FAILED, status=int(status)), str(error))
        body.finish()
        if not self.record.whole():
            self.spool.drop(position)
            return False
        digests = {f"sha1:{body.digest()}", f"sha1:{base32(plain.digest())}"}
        key = digest_key(self.record.fields.get("warc-payload-digest", ""))
        if declared is None or payload.digest() == declared.value or self.record.is_verified:
            digests |= {key} - {""}  # writers differ in the codings it covers; a verified block is sufficient
        elif len(digests) == 1 and key not in digests:  # no codings: the digest can only be of this body
            self.spool.drop(position)
            self.intake.losses.add(self.file, "a body that is not what its digest says", capture.url)
            return self._settle(
                capture, replace(settled, state=UrlState.FAILED, status=int(Status.INVALID_RESPONSE)), Reason.BAD_DIGEST
            )
        if is_other_length:
            self.intake.remarks.add(self.file, "bodies of another length than their heads say are taken", capture.url)
        notes = [
            settled.note,
            Reason.BAD_LENGTH * (head.has_bad_length or is_other_length),
            *(f"{Reason.CODING}{coding}" for coding in unknown_codings(head)),
        ]
        settled = replace(
            settled,
            position=position,
            digest=body.digest(),
            arc=split(arc_path(capture.url))[1],
            note=",".join(filter(None, notes)),
        )
        keys = [*sorted(digests), capture_key(capture.url, int(capture.time.timestamp()))]
        return self._settle(capture, settled, keys=keys)

    def _settle(
        self, capture: Capture, settled: UrlOutcome, note: str = "", kind: str = LinkKind.LINK, keys: Sequence[str] = ()
    ) -> bool:
        """Hold the outcome of the record; revisits find its body by `keys`. Return False for a truncated record."""
        if not self.record.whole():
            return False
        frontier, batch, position = self.intake.frontier, self.batch, settled.position

        def keep() -> None:
            if keys:
                frontier.add_capture(keys, batch, position)
            settle(frontier, capture, replace(settled, note=note or settled.note), batch, kind)

        def drop() -> None:
            if keys:
                self.spool.drop(position)

        self.intake.held = _Held(_Exchange.of(self.record), keep, drop)
        return True

    def _archivable(self, capture: Capture, status: int) -> bool:
        errors = self.intake.settings.keep_errors and is_error_page(status)
        return not _is_robots(capture) and (status in WHOLE or errors)

    # -- revisits ----------------------------------------------------------------------------------------------------

    def _revisit(self, capture: Capture) -> bool:
        fields = self.record.fields
        raw = http_response.read_head(self.record)
        head = http_response.parse_head(raw)
        if head is not None and head.status != NOT_MODIFIED and not self._archivable(capture, head.document_status):
            settled = UrlOutcome(id=0, state=UrlState.DONE, status=head.status, note=Reason.REVISIT)
            settled = _with_target(settled, capture.url, head)
            return self._settle(capture, settled, kind=LinkKind.ROBOTS if _is_robots(capture) else LinkKind.LINK)
        if _is_robots(capture) or not self.record.whole():
            return False
        origin, seen = capture.url, parse_date(fields.get("warc-refers-to-date", ""))
        with suppress(UrlRefused):
            origin = canonical(fields.get("warc-refers-to-target-uri", "").strip("<> ") or capture.url)
        self.intake.frontier.add_revisit(
            url=capture.url,
            time=int(capture.time.timestamp()),
            digest=digest_key(fields.get("warc-payload-digest", "")),
            origin=origin,
            seen=int(seen.timestamp()) if seen else 0,
            head=raw,
        )
        return True


def _with_target(settled: UrlOutcome, url: str, head: http_response.Head) -> UrlOutcome:
    """Return the outcome with the target of a redirect; unchanged for another response."""
    if head.status not in redirects.STATUSES:
        return settled
    target, note = redirect_of(url, head.get("location"))
    return replace(settled, target=target, note=note or settled.note)


def _is_robots(capture: Capture) -> bool:
    """Return whether a capture is robots.txt: rules, not a page. It has no ARC in a crawl, either."""
    return capture.url.partition("?")[0].endswith(f"//{capture.domain}/robots.txt")


def _hashing(parts: Iterator[bytes], *updates: Callable[[bytes], None]) -> Iterator[bytes]:
    for part in parts:
        for update in updates:
            update(part)
        yield part


def _ended(parts: Iterator[bytes], is_shorter: bool) -> Iterator[bytes]:
    """Yield a body of another length than its head says. Raises BadBody for one that is shorter, and may be cut off."""
    start = tail = b""
    for part in parts:
        start = start or part[: bodyends.TAIL]
        tail = (tail + part)[-bodyends.TAIL :]
        yield part
    if is_shorter and not bodyends.ends(start, tail):
        raise BadBody(BodyFault.TRUNCATED)
