"""What programs ask about captures: Memento, CDX, and single captures as WARC records.

`/web/<url>` is the TimeGate of a URL; `/timemap/…` are its TimeMaps (RFC 7089). `/cdx` has the captures of URLs as
rows, in the dialect of the Wayback Machine; `/cdx/pywb` has the same for the engine.

`/record/<digits>/<base64url of the URL>` is, for pywb, an uncompressed WARC/1.1 record of a capture, made when it is
asked for (ISO 28500:2017). The head is what the server sent, without what a body without codings makes false
(`response_head`). A redirect, of which no head is kept, has one that says no more than status and target. WARC-Date is
the first visible snapshot that has the capture, as in CDX. The same capture of the same snapshot is the same record,
byte for byte.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from starlette.responses import PlainTextResponse, Response

from webarcfs.access.access_rules import Absent
from webarcfs.access.visible_captures import UrlHistory, VisibleCapture
from webarcfs.archive.index.database import Span
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import CommitTag, from_epoch, utc
from webarcfs.archive.model.urls import both_schemes, domain_of
from webarcfs.room.pages.archived import missing, redirect
from webarcfs.room.replay import cdx, memento
from webarcfs.room.replay.cdx import CdxFault, CdxQuestion, SurtRange, parse_question
from webarcfs.room.replay.memento import (
    CORS,
    BadDate,
    accept_datetime,
    nearest,
    timegate_headers,
    timemap_headers,
    uri_m,
)
from webarcfs.room.replay.replay_url import FRAMES, Modifier, TimeGate, TimeMap, digits_of, replay_path
from webarcfs.room.visit import Services, Visit
from webarcfs.warc.http_response import base32, response_head
from webarcfs.web import limits
from webarcfs.web.answering import StreamedAnswer, streamed
from webarcfs.web.ranges import with_fields

# == warc record, pure ================================================================================================


#: The type of a record's answer over HTTP.
MEDIA_TYPE = "application/warc"

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:webarcfs:record:1")


def warc_record(capture: VisibleCapture, commit_tag: str, head: bytes, body: bytes) -> tuple[bytes, bytes, bytes]:
    """Return a record in three parts: its own head with that of HTTP, the body, the end. Together they are the record.

    `commit_tag` names the snapshot; `head` are the bytes of headers.http, `body` those of the document without codings;
    both are empty for a redirect.
    """
    digest = base32(hashlib.sha1(body, usedforsecurity=False).digest())
    return record_head(capture, commit_tag, head, len(body), digest), body, b"\r\n\r\n"


def record_head(capture: VisibleCapture, commit_tag: str, head: bytes, size: int, digest: str) -> bytes:
    """Return all of a record before its body. `size` and `digest` (SHA-1 in base32) are the body's."""
    http = http_head(capture, head, size)
    fields = (
        "WARC/1.1",
        "WARC-Type: response",
        f"WARC-Record-ID: <urn:uuid:{record_id(capture, commit_tag)}>",
        f"WARC-Target-URI: {capture.url}",
        f"WARC-Date: {utc(from_epoch(capture.captured)):%Y-%m-%dT%H:%M:%SZ}",
        f"WARC-Payload-Digest: sha1:{digest}",
        f"Webarcfs-Commit-Tag: {commit_tag}",
        "Content-Type: application/http; msgtype=response",
        f"Content-Length: {len(http) + size}",
    )
    return "\r\n".join((*fields, "", "")).encode("utf-8") + http


def record_id(capture: VisibleCapture, commit_tag: str) -> uuid.UUID:
    """Return the id of a capture's record: a function of snapshot, URL and body, or target."""
    return uuid.uuid5(_NAMESPACE, f"{commit_tag}\n{capture.url}\n{capture.blob or capture.target}")


def http_head(capture: VisibleCapture, head: bytes, size: int) -> bytes:
    """Return the head of the HTTP response: that of the server, cleaned, or one that is made of the capture."""
    known = ("Location", capture.target) if capture.is_redirect else ("Content-Type", capture.mime_type)
    return response_head(head, size, capture.status, (known,))


# == timegate =========================================================================================================


def timegate(visit: Visit, asked: TimeGate) -> Response:
    """Return the way to the memento for Accept-Datetime; without it to the newest snapshot's frame."""
    wanted = visit.request.headers.get("accept-datetime")
    seconds: int | BadDate = limits.NOW if wanted is None else accept_datetime(wanted)
    if isinstance(seconds, BadDate):
        return with_fields(PlainTextResponse(f"{seconds.what}\n", 400), [*CORS, ("Vary", "accept-datetime")])
    history, asked = _history(visit, asked, seconds)
    # Where replay has an origin of its own, the room leads there with the reader's token.
    prefix = visit.token if asked.modifier not in FRAMES and not visit.origins.replay else ""
    if wanted is None:
        state = history.at(seconds)
        if state is None or state.capture is None:
            state = history.nearest(seconds)
        capture = None if state is None else state.capture
        place = "" if state is None else prefix + replay_path(digits_of(state.seq), asked.modifier, asked.url)
    else:
        capture = nearest(history.captures, asked.url, seconds)
        place = "" if capture is None else prefix + _memento(visit, asked, capture)
    if capture is None:
        return missing(visit, memento.locate(visit.services, asked.url, seconds))
    fields = timegate_headers(visit.origins.base, asked.url, history.captures, capture, place)
    return with_fields(Response(status_code=302), [*CORS, *fields, ("Cache-Control", visit.caching)])


def _history(visit: Visit, asked: TimeGate, seconds: int) -> tuple[UrlHistory, TimeGate]:
    """Return what answers for a URL, and the URL: it may be at its host with or without `www.`."""
    captures = visit.services.captures
    if isinstance(captures.state(asked.url, seconds).answer, Absent):
        other = memento.at_other_host(visit.services, asked.url)
        asked = asked if other is None else replace(asked, url=other)
    return captures.history(asked.url), asked


def _memento(visit: Visit, asked: TimeGate, capture: VisibleCapture) -> str:
    if asked.modifier is Modifier.FRAME:
        return uri_m(visit.origins.replay if visit.is_from_browser else "", capture)
    return uri_m("", capture, asked.modifier)


def timemap(visit: Visit, asked: TimeMap) -> Response:
    """Return a page of the mementos of a URL; 404 without Memento's headers where readers see none."""
    history = visit.services.captures.history(asked.url)
    lines = memento.timemap(visit.origins.base, asked, history.captures)
    if lines is None:
        located = memento.locate(visit.services, asked.url, limits.NOW)
        is_absent = isinstance(located.state.answer, Absent)
        other = memento.at_other_host(visit.services, asked.url) if is_absent else None
        if other is None:
            return missing(visit, located)
        return redirect(visit, replace(asked, url=other).location, asked.url)
    fields = [*CORS, *timemap_headers(asked.form), ("Cache-Control", visit.caching)]
    return with_fields(StreamedAnswer(streamed(line.encode() for line in lines)), fields)


# == cdx service ======================================================================================================


def answer_cdx(visit: Visit, _: Mapping[str, str]) -> Response:
    """Return the rows that a query asks for; 400 with the parameter that is wrong."""
    question = parse_question(visit.query)
    if isinstance(question, CdxFault):
        return with_fields(PlainTextResponse(f"{question}\n", 400), CORS)
    kind = f"{cdx.MEDIA_TYPES[question.output]}; charset=utf-8"
    fields = [*CORS, ("Content-Type", kind), ("Cache-Control", visit.caching)]
    pieces = _pieces(visit.services, question)
    begin = list(islice(pieces, _AT_ONCE))
    if len(begin) < _AT_ONCE:
        return with_fields(Response("".join(begin)), fields)
    # A long answer is asked for again: the steps of a stream run in any thread, so it has services of its own.
    return with_fields(StreamedAnswer(_stream(visit, question)), fields)


def _stream(visit: Visit, question: CdxQuestion) -> Generator[bytes, None, None]:
    services = Services(visit.services.shared, visit.reader, of_one_thread=False)
    try:
        services.look()
        for piece in _pieces(services, question):
            yield piece.encode()
    finally:
        services.close()


def _pieces(services: Services, question: CdxQuestion) -> Iterator[str]:
    return cdx.answer(question, lambda asked, backwards: _read(services, asked, backwards=backwards))


def for_pywb(visit: Visit, _: Mapping[str, str]) -> Response:
    """Return the rows for pywb: the version in force, or a redirect and the document behind it."""
    question = parse_question(visit.query)
    if isinstance(question, CdxFault):
        return PlainTextResponse(f"{question}\n", 400)
    if not visit.parameter("closest"):
        return PlainTextResponse("")  # pywb looks for a like URL at any time: what is missing in a snapshot is missing
    lines = cdx.pywb_rows(question, lambda asked, backwards: _read(visit.services, asked, backwards=backwards))
    return PlainTextResponse("".join(lines))


def availability(visit: Visit, _: Mapping[str, str]) -> Response:
    """Return the memento that is closest to a time, as JSON."""
    question = cdx.parse_availability(visit.query)
    if isinstance(question, CdxFault):
        return with_fields(PlainTextResponse(f"{question}\n", 400), CORS)
    url = memento.at_other_host(visit.services, question.url) or question.url
    body = cdx.availability(visit.origins.base, question, url, visit.services.captures.history(url).captures)
    fields = [*CORS, ("Content-Type", "application/json"), ("Cache-Control", visit.caching)]
    return with_fields(Response(body), fields)


def _read(services: Services, asked: SurtRange, *, backwards: bool) -> Iterator[VisibleCapture]:
    return services.captures.below(Span(asked.low, asked.high), backwards=backwards, with_met=True)


#: Pieces of an answer that are made before it is sent.
_AT_ONCE = 2


# == warc records =====================================================================================================


def answer_record(visit: Visit, path_params: Mapping[str, str]) -> Response:
    """Return the record of the capture of a time at a URL. Raises NotFound."""
    asked = cdx.parse_record_name(path_params["name"])
    if asked is None:
        raise NotFound("there is no such record")
    domain = domain_of(asked.url)
    capture = _capture(visit, asked.url, asked.seconds)
    if capture is None:
        raise NotFound("there is no such record")
    body = visit.services.shared.body(domain, capture.blob) if capture.blob else b""
    head = visit.services.shared.body(domain, capture.head) if capture.head else b""
    head = visit.services.shown_head(domain, capture, head)
    tag = CommitTag(from_epoch(capture.since), domain)
    return Response(b"".join(warc_record(capture, str(tag), head, body)), media_type=MEDIA_TYPE)


def _capture(visit: Visit, url: str, seconds: int) -> VisibleCapture | None:
    """Return the capture of that very URL, else of its path: an http URL shares the document of the https one."""
    for url_variant in dict.fromkeys((url, *both_schemes(url))):
        history = visit.services.captures.history(url_variant)
        captures = [capture for capture in history.captures if capture.captured == seconds]
        exact = [capture for capture in captures if capture.url == url]
        if exact or captures:
            return (exact or captures)[0]
    return None
