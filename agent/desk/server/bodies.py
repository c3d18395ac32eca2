"""Takes requests before a handler sees them: three methods, and forms as whole bodies, bounded in size and time.

A form with a file may be larger, and is read as a stream. Only who may send one sends more than others: that is asked
before the body is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.desk import limits
from agent.desk.forms import Form
from agent.desk.server import uploads
from webarcfs.archive.model.errors import TooMany, UsageError
from webarcfs.room.server.request_rules import refusal

#: Where the body of a request is left for its handler.
BODY = "webarc.body"
#: Where a form with a file is left, read.
FORM = "webarc.form"
_METHODS = (b"allow", b"GET, HEAD, POST")


class Bodies:
    """An ASGI app that passes requests on to another, each with its whole body; what is refused is answered here."""

    def __init__(self, app: ASGIApp, takes_file: Callable[[str], bool], may_send: Callable[[Request], bool]) -> None:
        """`takes_file`: whether a path takes a file; `may_send`: whether a person who may send one asks. It blocks."""
        self._app = app
        self._takes_file = takes_file
        self._may_send = may_send

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
            is_large = refused is HTTPStatus.REQUEST_ENTITY_TOO_LARGE and self._takes_file(scope["path"])
            await _refuse(send, refused, ": a file that is attached has 20 MB at most" if is_large else "")
            return
        try:
            await self._app(scope, receive, send)
        finally:
            form = scope.get(FORM)
            if isinstance(form, Form) and form.file is not None:
                form.file.body.close()

    async def _read(self, scope: Scope, receive: Receive) -> HTTPStatus | None:
        """Leave the body in the scope; return the status with which it is refused."""
        boundary = uploads.boundary_of(Headers(scope=scope).get("content-type", ""))
        if boundary and self._takes_file(scope["path"]):
            return await self._read_file(scope, receive, boundary)
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

    async def _read_file(self, scope: Scope, receive: Receive, boundary: str) -> HTTPStatus | None:
        """Leave the form of a body with a file in the scope; return the status with which it is refused."""
        may_send = await asyncio.to_thread(self._may_send, Request(scope))
        most = limits.UPLOAD_BYTES if may_send else limits.BODY_BYTES
        too_large = HTTPStatus.REQUEST_ENTITY_TOO_LARGE if may_send else HTTPStatus.FORBIDDEN
        said = Headers(scope=scope).get("content-length", "0")
        if not (said.isascii() and said.isdigit()) or len(said) > 12 or int(said) > most:
            return too_large
        try:
            async with asyncio.timeout(limits.UPLOAD_SECONDS):
                scope[FORM] = await uploads.read(_chunks(receive, most), boundary)
        except TimeoutError:
            return HTTPStatus.REQUEST_TIMEOUT
        except TooMany:
            return too_large
        except UsageError:
            return HTTPStatus.BAD_REQUEST
        except OSError:  # no space for it
            return HTTPStatus.INSUFFICIENT_STORAGE
        return None


async def _chunks(receive: Receive, most: int) -> AsyncIterator[bytes]:
    """Yield a body as it comes. Raises TooMany; a client that has gone ends it."""
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        body = message.get("body", b"")
        size += len(body)
        if size > most:
            raise TooMany(f"a body of more than {most} bytes")
        yield body
        if not message.get("more_body"):
            return


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


async def _refuse(send: Send, status: HTTPStatus, said: str) -> None:
    body = f"{status} {status.phrase}{said}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *([_METHODS] if status is HTTPStatus.METHOD_NOT_ALLOWED else []),
    ]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": body})
