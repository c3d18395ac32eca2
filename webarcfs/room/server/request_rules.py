"""Which requests a listener takes at all: it is for reading, so there are three methods, and no bodies.

Whatever is refused here has not reached a handler. A refusal ends its connection where a body may follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from starlette.types import ASGIApp, Receive, Scope, Send

from webarcfs.room import limits

_ALLOW = (b"allow", b"GET, HEAD, OPTIONS")
_CLOSE = (b"connection", b"close")
#: Answers to a script of another site that asks before it asks (Fetch, CORS-preflight). Whether it may read the answer
#: itself is said by the answer.
_PREFLIGHT = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, HEAD, OPTIONS"),
    (b"access-control-allow-headers", b"accept-datetime, range"),
    (b"access-control-max-age", b"86400"),
)


class RequestRules:
    """An ASGI app that passes on to another what it may answer; the rest is answered here, in plain text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return
        refused = refusal(scope["method"], len(scope["query_string"]), scope["headers"])
        if refused is not None:
            more = (_ALLOW, _CLOSE) if refused is HTTPStatus.METHOD_NOT_ALLOWED else (_CLOSE,)
            await _answer(send, refused, more, f"{refused} {refused.phrase}\n")
        elif scope["method"] == "OPTIONS":
            await _answer(send, HTTPStatus.NO_CONTENT, (_ALLOW, *_PREFLIGHT))
        else:
            await self._app(scope, receive, send)


def refusal(method: str, query_bytes: int, headers: Iterable[tuple[bytes, bytes]]) -> HTTPStatus | None:
    """Return the status with which a request is refused; None if it is not."""
    if method not in ("GET", "HEAD", "OPTIONS"):
        return HTTPStatus.METHOD_NOT_ALLOWED
    if query_bytes > limits.QUERY_BYTES:
        return HTTPStatus.REQUEST_URI_TOO_LONG
    for name, value in headers:
        if name == b"transfer-encoding" or (name == b"content-length" and value.strip(b" \t0")):
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    return None


async def _answer(send: Send, status: HTTPStatus, headers: Iterable[tuple[bytes, bytes]], text: str = "") -> None:
    body = text.encode()
    described = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send(
        {"type": "http.response.start", "status": int(status), "headers": [*headers, *(described if body else ())]}
    )
    await send({"type": "http.response.body", "body": body})
