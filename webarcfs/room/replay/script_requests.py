"""Answers to what archived scripts send: POST, PUT, PATCH and DELETE, where pywb is the engine.

The archive has an answer under the key of its request (`webarcfs.warc.request_key`), so such a request is answered as a
GET for that key, by the room's own replay. The body is the one that the server sent: pywb's script rewrites what a page
makes of it. Nothing is stored, and nothing is sent on.

| status | means |
|---|---|
| 403 | a page of another site asks, which may not read the archive with a reader's browser |
| 404 | the archive has no answer to this request |
| 405 | a form sends it; forms lead to a notice of the room |
| 408 | the body did not come in time |
| 413 | the body is too long |
| 415 | the body is multipart, or no text |

A refused body is read for a while, and thrown away: a connection that is closed before would cost browsers the answer.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webarcfs.room.replay.replay_url import Refused, archived_url
from webarcfs.warc import request_key
from webarcfs.warc.request_key import KeyFault
from webarcfs.web import limits
from webarcfs.web.answering import CHANCE

#: `/web/<digits><modifier>/<url>`: the paths below which scripts may send.
_PLACE: Final = re.compile(rb"/web/([0-9]{1,14})([a-z]{1,6}_)/(.+)", re.DOTALL)
#: Where our own replay answers with a body as it was sent.
_AS_SENT: Final = re.compile(rb"/web/([0-9]{14})id_/(.+)", re.DOTALL)
#: Fields that are of the request's body, or of a browser's cache.
_OF_BODY: Final = frozenset({
    b"content-length", b"content-type", b"content-encoding", b"transfer-encoding", b"expect",
    b"range", b"if-range", b"if-none-match", b"if-modified-since", b"if-match", b"origin", b"cookie", b"authorization",
})  # fmt: skip
#: Redirects within the room that are followed: to the digits of a capture, and to a URL that chance made different.
_MOST_HOPS: Final = 4
_STATUS: Final = {
    KeyFault.METHOD: HTTPStatus.METHOD_NOT_ALLOWED,
    KeyFault.LONG: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    KeyFault.MULTIPART: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    KeyFault.BINARY: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    KeyFault.URL: HTTPStatus.BAD_REQUEST,
}


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a request has no answer: a status, and a line."""

    status: HTTPStatus
    reason: str


@dataclass(frozen=True, slots=True)
class _Place:
    """What is asked: digits and modifier of the path, and the canonical URL in it."""

    digits: bytes
    modifier: bytes
    url: str


_ABSENT: Final = _Refusal(HTTPStatus.NOT_FOUND, "the archive has no answer to this request")


def is_of_script(method: str, raw_path: bytes) -> bool:
    """Return whether a request is one of those that are answered here; a reader's token may not precede its path."""
    return method in request_key.METHODS and _PLACE.fullmatch(raw_path) is not None


class ScriptRequests:
    """Answers scripts from our replay `own`. `replay` is the origin of archived pages."""

    def __init__(self, replay: str, own: ASGIApp) -> None:
        self._replay = replay
        self._own = own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for which `is_of_script` is true."""
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refuse(headers)
        place = _place(scope)
        if refusal is None and isinstance(place, _Refusal):
            refusal = place
        body = await _body(receive, headers, refusal)
        if body is None:  # the client has gone
            return
        if isinstance(body, _Refusal) or isinstance(place, _Refusal):
            await _refuse(body if isinstance(body, _Refusal) else _ABSENT, scope, receive, send)
            return
        key = request_key.key_of(scope["method"], place.url, headers.get(b"content-type", ""), body)
        if isinstance(key, KeyFault):
            await _refuse(_refusal(key), scope, receive, send)
            return
        asking = _Asking(self._own, scope, receive, send, place.modifier)
        if not await asking.ask(b"/web/" + place.digits + b"id_/" + key.url.encode()):
            await _refuse(_ABSENT, scope, receive, send)

    def _refuse(self, headers: dict[bytes, str]) -> _Refusal | None:
        """Return why a request is refused by its head; None if it is not."""
        site, origin = headers.get(b"sec-fetch-site", "same-origin"), headers.get(b"origin", self._replay)
        if site != "same-origin" or origin != self._replay:
            return _Refusal(HTTPStatus.FORBIDDEN, "only archived pages may send this")
        if headers.get(b"sec-fetch-mode") == "navigate":
            return _Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "forms of archived pages are not sent")
        size = _length(headers) or (1 if b"transfer-encoding" in headers else 0)
        fault = request_key.fault_of(request_key.mime_of(headers.get(b"content-type", "")), size)
        return None if fault is None else _refusal(fault)


def _place(scope: Scope) -> _Place | _Refusal:
    raw: bytes = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
    query: bytes = scope["query_string"]
    match = _PLACE.fullmatch(raw + (b"?" + query if query else b""))
    if match is None:
        return _ABSENT
    url = archived_url(match[3])
    return _Refusal(HTTPStatus.BAD_REQUEST, url.reason) if isinstance(url, Refused) else _Place(match[1], match[2], url)


def _length(headers: dict[bytes, str]) -> int:
    length = headers.get(b"content-length", "").strip()
    return int(length) if length.isascii() and length.isdecimal() and len(length) < 19 else 0


async def _refuse(refusal: _Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    fields = {} if refusal is _ABSENT else {"Connection": "close"}
    answer = PlainTextResponse(f"{refusal.reason}\n", refusal.status, {"Cache-Control": "no-store", **fields})
    await answer(scope, receive, send)


def _refusal(fault: KeyFault) -> _Refusal:
    return _Refusal(_STATUS[fault], str(fault))


async def _body(receive: Receive, headers: dict[bytes, str], refusal: _Refusal | None) -> bytes | _Refusal | None:
    """Return the body of a request; None if the client has gone.

    Where it is refused, `refusal` is returned once the body has come, or as much of it as is waited for. So is the
    refusal of a body that is too long or too slow.
    """
    if refusal is not None and _length(headers) > limits.DISCARDED_BYTES:
        return refusal
    body, size = b"", 0
    try:
        async with asyncio.timeout(limits.BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                size += len(message.get("body", b""))
                if size > request_key.LONGEST_BODY and refusal is None:
                    body, refusal = b"", _refusal(KeyFault.LONG)
                if refusal is None:
                    body += message.get("body", b"")
                if not message.get("more_body", False) or size > limits.DISCARDED_BYTES:
                    return body if refusal is None else refusal
    except TimeoutError:
        return refusal or _Refusal(HTTPStatus.REQUEST_TIMEOUT, "the body did not come in time")


class _Asking:
    """Asks our replay for a key, and hands on what it answers to the request of a script."""

    def __init__(self, own: ASGIApp, scope: Scope, receive: Receive, send: Send, modifier: bytes) -> None:
        self._own = own
        self._scope = scope
        self._receive = receive
        self._send = send
        self._modifier = modifier
        #: Where our replay leads within the room; empty where it has answered.
        self._next = b""
        self._place = b""
        self._is_missing = False
        self._chance: list[tuple[bytes, bytes]] = []

    async def ask(self, place: bytes) -> bool:
        """Ask for a path, and for those that it leads to; return whether the archive had something there."""
        for _ in range(_MOST_HOPS):
            self._next, self._place = b"", place
            raw, _, query = place.partition(b"?")
            headers = [(name, value) for name, value in self._scope["headers"] if name.lower() not in _OF_BODY]
            await self._own(
                {
                    **self._scope, "method": "GET", "raw_path": raw, "path": unquote(raw.decode("latin-1")),
                    "query_string": query, "headers": headers,
                },
                self._receive, self._pass_on,
            )  # fmt: skip
            if self._is_missing or not self._next:
                return not self._is_missing
            place = self._next
        return False

    async def _pass_on(self, message: Message) -> None:
        if self._next or self._is_missing:
            return
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            fields = {name.lower(): value for name, value in headers}
            is_archived = b"memento-datetime" in fields
            location = _AS_SENT.fullmatch(fields.get(b"location", b""))
            if message["status"] == HTTPStatus.NOT_FOUND and not is_archived:
                self._is_missing = True
                return
            if location is not None and not is_archived:
                self._next = fields[b"location"]
                self._chance += [header for header in headers if header[0].lower() == CHANCE.lower().encode()]
                return
            if location is not None:  # an archived redirect: where it leads, pywb answers
                target = b"/web/" + location[1] + self._modifier + b"/" + location[2]
                headers = [header for header in headers if header[0].lower() != b"location"]
                headers.append((b"location", target))
            message = {**message, "headers": [*headers, *self._chance, (b"content-location", self._place)]}
        await self._send(message)
