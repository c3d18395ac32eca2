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
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webarcfs.room import limits
from webarcfs.room.replay.chance_parameters import FIELD
from webarcfs.room.replay.replay_url import Refused, archived_url
from webarcfs.warc import request_key
from webarcfs.warc.request_key import KeyFault, NoKey

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
_NOT_HERE: Final = "the archive has no answer to this request"


class _Refusal(Exception):
    """Why a request has no answer: a status, and a line."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class _Gone(Exception):
    """The client has gone."""


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
        try:
            digits, modifier, key = await self._key(scope, headers, receive)
            await _Asking(self._own, scope, receive, send, modifier).ask(b"/web/" + digits + b"id_/" + key.encode())
        except _Gone:
            return
        except _Refusal as refusal:
            fields = {"Connection": "close"} if refusal.status is not HTTPStatus.NOT_FOUND else {}
            answer = PlainTextResponse(f"{refusal.reason}\n", refusal.status, {"Cache-Control": "no-store", **fields})
            await answer(scope, receive, send)

    async def _key(self, scope: Scope, headers: dict[bytes, str], receive: Receive) -> tuple[bytes, bytes, str]:
        """Return digits, modifier and key of a request, its body read. Raises _Refusal, _Gone."""
        raw: bytes = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
        query: bytes = scope["query_string"]
        place = _PLACE.fullmatch(raw + (b"?" + query if query else b""))
        url = archived_url(place[3]) if place is not None else None
        fault = self._fault(headers)
        if fault is None and (place is None or url is None or isinstance(url, Refused)):
            fault = _Refusal(HTTPStatus.BAD_REQUEST, str(url.reason) if isinstance(url, Refused) else _NOT_HERE)
        body = await _body(receive, headers, fault)
        assert place is not None and isinstance(url, str)  # else `_body` has raised
        try:
            key = request_key.key_of(scope["method"], url, headers.get(b"content-type", ""), body)
        except NoKey as error:
            raise _refusal(error.fault) from None
        return place[1], place[2], key.url

    def _fault(self, headers: dict[bytes, str]) -> _Refusal | None:
        """Return why a request is refused by its head; None if it is not."""
        site, origin = headers.get(b"sec-fetch-site", "same-origin"), headers.get(b"origin", self._replay)
        if site != "same-origin" or origin != self._replay:
            return _Refusal(HTTPStatus.FORBIDDEN, "only archived pages may send this")
        if headers.get(b"sec-fetch-mode") == "navigate":
            return _Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "forms of archived pages are not sent")
        length = headers.get(b"content-length", "0").strip()
        size = int(length) if length.isascii() and length.isdecimal() and len(length) < 19 else 0
        is_sent = size or (1 if b"transfer-encoding" in headers else 0)
        fault = request_key.fault_of(request_key.mime_of(headers.get(b"content-type", "")), is_sent)
        return None if fault is None else _refusal(fault)


def _refusal(fault: KeyFault) -> _Refusal:
    return _Refusal(_STATUS[fault], str(fault))


async def _body(receive: Receive, headers: dict[bytes, str], fault: _Refusal | None) -> bytes:
    """Return the body of a request. Raises `fault` when the body has come, or as much of it as is waited for.

    Raises _Refusal for a body that is too long or too slow, _Gone.
    """
    length = headers.get(b"content-length", "")
    if fault is not None and length.isdecimal() and int(length[:19]) > limits.DISCARDED_BYTES:
        raise fault
    body, size = b"", 0
    try:
        async with asyncio.timeout(limits.BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Gone
                size += len(message.get("body", b""))
                if size > request_key.LONGEST_BODY and fault is None:
                    body, fault = b"", _refusal(KeyFault.LONG)
                if fault is None:
                    body += message.get("body", b"")
                if not message.get("more_body", False) or size > limits.DISCARDED_BYTES:
                    break
    except TimeoutError:
        raise fault or _Refusal(HTTPStatus.REQUEST_TIMEOUT, "the body did not come in time") from None
    if fault is not None:
        raise fault
    return body


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

    async def ask(self, place: bytes) -> None:
        """Ask for a path, and for those that it leads to. Raises _Refusal where the archive has nothing there."""
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
            if not self._next and not self._is_missing:
                return
            if self._is_missing:
                break
            place = self._next
        raise _Refusal(HTTPStatus.NOT_FOUND, _NOT_HERE)

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
                self._chance += [header for header in headers if header[0].lower() == FIELD.lower().encode()]
                return
            if location is not None:  # an archived redirect: where it leads, pywb answers
                target = b"/web/" + location[1] + self._modifier + b"/" + location[2]
                headers = [header for header in headers if header[0].lower() != b"location"]
                headers.append((b"location", target))
            message = {**message, "headers": [*headers, *self._chance, (b"content-location", self._place)]}
        await self._send(message)
