"""Takes requests before a handler sees them: three methods, and forms as whole bodies, bounded in size and time."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from starlette.types import ASGIApp, Receive, Scope, Send

from agent.desk import limits
from webarcfs.room.server.request_rules import refusal

#: Where the body of a request is left for its handler.
BODY = "webarc.body"
_METHODS = (b"allow", b"GET, HEAD, POST")


class Bodies:
    """An ASGI app that passes requests on to another, each with its whole body; what is refused is answered here."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return
        method = scope["method"]
        as_read = "GET" if method == "POST" else method
        headers = [each for each in scope["headers"] if method != "POST" or each[0] not in _OF_BODIES]
        refused = HTTPStatus.METHOD_NOT_ALLOWED if method == "OPTIONS" else None
        refused = refused or refusal(as_read, len(scope["query_string"]), headers)
        if refused is None and method == "POST":
            refused = await self._read(scope, receive)
        if refused is not None:
            await _refuse(send, refused)
            return
        await self._app(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive) -> HTTPStatus | None:
        """Leave the body in the scope; return the status with which it is refused."""
        said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not said.isdigit() or len(said) > 12 or int(said) > limits.BODY_BYTES:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        try:
            body = await asyncio.wait_for(_whole(receive), limits.BODY_SECONDS)
        except TimeoutError:
            return HTTPStatus.REQUEST_TIMEOUT
        if len(body) > limits.BODY_BYTES:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        scope[BODY] = body
        return None


_OF_BODIES = (b"content-length", b"transfer-encoding")


async def _whole(receive: Receive) -> bytes:
    """Return the body of a request; one byte too many where it is too long; nothing if the client has gone."""
    found = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        found += message.get("body", b"")
        if len(found) > limits.BODY_BYTES or not message.get("more_body"):
            return bytes(found[: limits.BODY_BYTES + 1])


async def _refuse(send: Send, status: HTTPStatus) -> None:
    body = f"{status} {status.phrase}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *([_METHODS] if status is HTTPStatus.METHOD_NOT_ALLOWED else []),
    ]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": body})
