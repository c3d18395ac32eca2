"""Which requests a listener takes at all: it is for reading, so there are three methods, and no bodies.

The host name must be one of the listener's, else a page of another site could have its own name lead here, and read
what only this network may (DNS rebinding). Whatever is refused here has not reached a handler. A refusal ends its
connection where a body may follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

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
#: The names of this machine that no other one has (RFC 6761).
_LOCALHOST = "localhost"
_OTHER_HOST = (
    "this server does not answer for the host name that was asked for; "
    "--host gives it a further one, --origin that of a proxy\n"
)


class HostRules:
    """An ASGI app that passes on to another what is asked for under a name of this listener; without names, all."""

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            return
        local = (scope.get("server") or ("", None))[0] or ""
        if not self._names or is_own_host(scope["headers"], self._names, local):
            await self._app(scope, receive, send)
            return
        refused = HTTPStatus.MISDIRECTED_REQUEST
        await _answer(send, refused, (_CLOSE,), f"{refused} {refused.phrase}: {_OTHER_HOST}")


def host_names(*origins: str, hosts: Iterable[str] = ()) -> frozenset[str]:
    """Return the names of a listener: the hosts of its origins, and further ones."""
    found = [urlsplit(each).hostname or "" for each in origins]
    return frozenset(plain for each in (*found, *hosts) if (plain := _plain(each)))


def is_own_host(headers: Iterable[tuple[bytes, bytes]], names: frozenset[str], local: str) -> bool:
    """Return whether a request is for one of the names, for localhost, or for the address `local` that it came to.

    Programs of old send no Host, browsers always do. The port is not compared: a proxy may have another one.
    """
    said = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if len(said) != 1:
        return not said
    host = _plain(_without_port(said[0]))
    return host in names or host in (_LOCALHOST, _plain(local) or _LOCALHOST) or host.endswith(f".{_LOCALHOST}")


def _without_port(authority: str) -> str:
    host, colon, port = authority.strip().rpartition(":")
    is_port = bool(colon) and (not port or (port.isascii() and port.isdecimal()))
    return (host if is_port else authority.strip()).removeprefix("[").removesuffix("]")


def _plain(host: str) -> str:
    """Return a host in one spelling: lower case, no dot at its end, IP addresses in their short form."""
    host = host.lower().removesuffix(".").partition("%")[0]
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


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
