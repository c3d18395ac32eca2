"""The connections of a process: uvicorn's own, with bounds, the requests that they take, and headers of every answer.

One server serves all sockets of its process. A connection knows its socket by its own address, so what a request says
does not decide which app answers it.

uvicorn bounds neither the size of a request's head nor the time that it takes, nor how slowly a client takes an answer.
So what a client may send, and how slowly, is bounded here. Each second the server looks at every connection, which
needs no timers. For the event loop.

A listener is for reading, so it takes three methods, and no bodies. Where archived scripts run, that of replay takes
what these send as well, below archived pages alone; its app reads the bodies, within bounds. The host name must be one
of the listener's, else a page of another site could have its own name lead here, and read what only this network may
(DNS rebinding). Whatever is refused here has not reached a handler. A refusal ends its connection where a body may
follow, and what is on its way is read first.

Every answer of the room forbids browsers scripts and frames of others, referrers, look-ups of names, devices. A header
that an answer has of its own stays as it is: archived pages, and what they embed, have another policy, also where they
come from the room's own listener.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import termios
from asyncio import Transport, get_running_loop, timeout
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from multiprocessing import parent_process
from socket import socket
from typing import Any, cast
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.system import processes
from webarcfs.warc.request_key import METHODS
from webarcfs.web import limits

# == security headers =================================================================================================


#: Features of browsers that no page of an archive needs (Permissions Policy).
_FEATURES = (
    "accelerometer", "ambient-light-sensor", "attribution-reporting", "autoplay", "bluetooth", "browsing-topics",
    "camera", "display-capture", "encrypted-media", "fullscreen", "gamepad", "geolocation", "gyroscope", "hid",
    "identity-credentials-get", "idle-detection", "local-fonts", "magnetometer", "microphone", "midi",
    "otp-credentials", "payment", "picture-in-picture", "publickey-credentials-create",
    "publickey-credentials-get", "screen-wake-lock", "serial", "storage-access", "usb", "web-share",
    "window-management", "xr-spatial-tracking",
)  # fmt: skip
PERMISSIONS_POLICY = ", ".join(f"{feature}=()" for feature in _FEATURES)


def room_headers(replay_origin: str) -> dict[str, str]:
    """Return the headers of the room's own pages. An empty `replay_origin` is the room's own."""
    policy = {
        "default-src": "'none'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "script-src": "'self'",
        "frame-src": replay_origin or "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        **shared_headers(),
    }


def shared_headers() -> dict[str, str]:
    """Return the headers of both listeners: nothing leaves the archive."""
    return {
        "Permissions-Policy": PERMISSIONS_POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-DNS-Prefetch-Control": "off",
    }


class SecurityHeaders:
    """An ASGI app that adds headers to the answers of another, where they have none of that name."""

    def __init__(self, app: ASGIApp, headers: dict[str, str]) -> None:
        self._app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, add)


# == request rules ====================================================================================================


_ALLOW = "GET, HEAD, OPTIONS"
_ALLOW_OF_SCRIPTS = ", ".join((_ALLOW, *METHODS))
#: Answer to a script of another site that asks before it asks (Fetch, CORS-preflight). Whether it may read the answer
#: itself is said by the answer.
_PREFLIGHT = {"Access-Control-Allow-Origin": "*", "Access-Control-Max-Age": "86400"}
#: The names of this machine that no other one has (RFC 6761).
_LOCALHOST = "localhost"
_OTHER_HOST = (
    "this server does not serve the host name that was requested; "
    "--host gives it a further one, --origin that of a proxy"
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
        await plain_refusal(HTTPStatus.MISDIRECTED_REQUEST, f": {_OTHER_HOST}")(scope, receive, send)


def host_names(*origins: str, hosts: Iterable[str] = ()) -> frozenset[str]:
    """Return the names of a listener: the hosts of its origins, and further ones."""
    origin_hosts = [urlsplit(origin).hostname or "" for origin in origins]
    return frozenset(plain for host in (*origin_hosts, *hosts) if (plain := _plain(host)))


def is_own_host(headers: Iterable[tuple[bytes, bytes]], names: frozenset[str], local: str) -> bool:
    """Return whether a request is for one of the names, for localhost, or for the address `local` that it came to.

    Programs of old send no Host, browsers always do. The port is not compared: a proxy may have another one.
    """
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if len(hosts) != 1:
        return not hosts
    host = _plain(_without_port(hosts[0]))
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
    """An ASGI app that passes on to another what it may answer; the rest is answered here, in plain text.

    `takes_body` says of a method and a raw path whether the request may have a body, as scripts and forms send them;
    without, no request may. Without OPTIONS in `allow`, no script of another site is told what it may ask.
    """

    def __init__(self, app: ASGIApp, takes_body: Callable[[str, bytes], bool] | None = None, allow: str = "") -> None:
        self._app = app
        self._takes_body = takes_body
        self._allow = allow or (_ALLOW if takes_body is None else _ALLOW_OF_SCRIPTS)
        kinds = "accept-datetime, range" if takes_body is None else "accept-datetime, content-type, range"
        asking = {"Access-Control-Allow-Methods": self._allow, "Access-Control-Allow-Headers": kinds}
        self._preflight = {"Allow": self._allow, **_PREFLIGHT, **asking}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return
        method, query_bytes = scope["method"], len(scope["query_string"])
        if self._takes_body is not None and self._takes_body(method, scope["raw_path"]):
            refused = refusal("GET", query_bytes, ())
        else:
            refused = refusal(method, query_bytes, scope["headers"])
        if method == "OPTIONS" and method not in self._allow:
            refused = HTTPStatus.METHOD_NOT_ALLOWED
        if refused is not None:
            allow = self._allow if refused is HTTPStatus.METHOD_NOT_ALLOWED else ""
            await plain_refusal(refused, allow=allow)(scope, receive, send)
        elif method == "OPTIONS":
            await Response(status_code=HTTPStatus.NO_CONTENT, headers=self._preflight)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def refusal(method: str, query_bytes: int, headers: Iterable[tuple[bytes, bytes]]) -> HTTPStatus | None:
    """Return the status with which a request is refused; None if it is not."""
    if method not in ("GET", "HEAD", "OPTIONS"):
        return HTTPStatus.METHOD_NOT_ALLOWED
    if query_bytes > limits.QUERY_BYTES:
        return HTTPStatus.REQUEST_URI_TOO_LONG
    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE if _has_body(headers) else None


class RestOfBody:
    """An ASGI app that reads what is left of a request's body once another has answered, within bounds.

    A connection that is closed with bytes that nobody read is reset, and a client that still sends loses the answer
    (RFC 9112, 9.6).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        headers = scope.get("headers", ())
        # Who asks whether a body is wanted sends none after a refusal.
        if scope["type"] != "http" or not _has_body(headers) or any(name == b"expect" for name, _ in headers):
            await self._app(scope, receive, send)
            return
        is_read = False

        async def read() -> Message:
            nonlocal is_read
            message = await receive()
            is_read = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def answer(message: Message) -> None:
            is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
            if not is_last or is_read:
                await send(message)
                return
            await send({**message, "more_body": True})
            left = limits.DISCARDED_BYTES
            with contextlib.suppress(TimeoutError):
                async with timeout(limits.BODY_SECONDS):
                    while not is_read and left > 0:
                        left -= len((await read()).get("body", b""))
            await send({"type": "http.response.body"})

        await self._app(scope, read, answer)


def _has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b" \t0")) for name, value in headers
    )


def plain_refusal(status: HTTPStatus, reason: str = "", allow: str = "") -> Response:
    """Return an answer in plain text, which ends the connection, since a body may follow."""
    headers = {"Connection": "close", **({"Allow": allow} if allow else {})}
    return PlainTextResponse(f"{status} {status.phrase}{reason}\n", status, headers)


# == connections ======================================================================================================


#: Seconds for which a connection without a request is kept when its server ends: the request may be on its way.
_LAST_CHANCE = 1.0
#: Uvicorn's ticks of a second.
_TICKS = 10


@dataclass(frozen=True, slots=True)
class ServedApps:
    """What a process serves: an app for each of its sockets, in their order. `close` is awaited at the end."""

    apps: Sequence[ASGIApp]
    close: Callable[[], Awaitable[None]]


class Connections(ServerState):
    """The connections of a process. `is_ending`: no connection gets a further request after its next."""

    def __init__(self, sockets: Sequence[socket], apps: Sequence[ASGIApp]) -> None:
        """Raises UsageError for two sockets of one address, whose connections could not be told apart."""
        super().__init__()
        self.is_ending = False
        #: How many connections the socket of an app has, by its identity: Starlette's apps have no hash.
        self.counts = Counter[int]()
        names = [_socket_name(listener.getsockname()) for listener in sockets]
        self._apps = dict(zip(names, apps, strict=True))
        #: Requests at a time, of all sockets: also those whose clients have gone.
        self.most_tasks = limits.CONNECTIONS * (len(apps) + 1)
        if len(self._apps) < len(names):
            raise UsageError("two of the sockets have the same address")

    def find_app(self, name: object) -> ASGIApp | None:
        """Return the app of a connection by its own address; a wildcard has all addresses of its family.

        The only app has all connections.
        """
        if len(self._apps) == 1:
            return next(iter(self._apps.values()))
        host, port = _socket_name(name)
        wildcard = "::" if ":" in host else "0.0.0.0"  # noqa: S104 # nothing is bound
        return self._apps.get((host, port)) or self._apps.get((wildcard, port))

    def look(self, now: float) -> None:
        """Drop the connections whose clients are too slow."""
        for connection in list(self.connections):
            if isinstance(connection, Connection):
                connection.look(now)


def _socket_name(name: Any) -> tuple[str, int]:
    """Return host and port of a socket; a path, or a name without a file (unix(7)), has port 0."""
    return (str(name[0]), name[1]) if isinstance(name, tuple) else (os.fsdecode(name or ""), 0)


def server_config(make: Callable[[], ServedApps], workers: int = 1) -> Config:
    """Return uvicorn's settings. It logs no requests, and not that one is broken, which anybody may send."""
    return Config(
        make,
        factory=True,
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        workers=workers,
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=limits.KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=limits.GRACE_SECONDS,
    )


def _ignored() -> set[signal.Signals]:
    """Return the signals that this process ignores, of those that end a server."""
    return {number for number in (signal.SIGTERM, signal.SIGINT) if signal.getsignal(number) is signal.SIG_IGN}


class ProcessServer(Server):
    """The server of all sockets of a process. It ends by SIGTERM, SIGINT or the end of its parent, after its requests.

    `started` is called when the sockets are served.
    """

    def __init__(self, config: Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell_started = started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End by a signal as without one: uvicorn raises it again at the end. Who ignores one goes on to do so."""
        for number in {signal.SIGTERM, signal.SIGINT} - _ignored():
            get_running_loop().add_signal_handler(number, self.handle_exit, number, None)
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to accept connections."""
        assert sockets is not None
        self._served = cast(ServedApps, self.config.loaded_app)
        self.server_state = self._held = Connections(sockets, self._served.apps)
        await super().startup(sockets)
        self._tell_started()

    async def on_tick(self, counter: int) -> bool:
        """Look at the parent, and each second at the connections. Return whether to end."""
        if counter % _TICKS == 0:
            self._held.look(get_running_loop().time())
        parent = parent_process()  # that of multiprocessing
        return await super().on_tick(counter) or (parent is not None and not parent.is_alive())

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Stop accepting connections, and let those that there are finish."""
        processes.notify("STOPPING=1")
        self._held.is_ending = True
        await super().shutdown(sockets)
        await self._served.close()


#: Where a request's state has the connections of its process.
_SERVER = "webarcfs.connections"


def is_ending(scope: Scope) -> bool:
    """Return whether the server of a request ends: an answer without an end must end now."""
    held = scope.get("state", {}).get(_SERVER)
    return isinstance(held, Connections) and held.is_ending


class Connection(HttpToolsProtocol):
    """A connection, one request after the other."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._head_since: float | None = None
        self._head_bytes = 0
        #: When bytes began to wait for the client, and how many they were; None while it keeps up.
        self._waiting: tuple[float, int] | None = None
        self._held = cast(Connections, self.server_state)

    # -- what uvicorn and asyncio call -------------------------------------------------------------------------------

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Begin to wait for a head. One connection too many by far is closed at once: it holds a descriptor."""
        super().connection_made(transport)
        self.app = self._held.find_app(transport.get_extra_info("sockname"))
        self._held.counts[id(self.app)] += 1
        if self.app is None or self._held.counts[id(self.app)] > 2 * limits.CONNECTIONS:
            transport.abort()
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no longer."""
        super().connection_lost(exc)
        self._held.counts[id(self.app)] -= 1

    def data_received(self, data: bytes) -> None:
        """Take bytes of a client; the first ones after a request are taken for the next one's head."""
        if self.transport.is_closing():
            return
        if self._head_since is None and self._is_idle:  # also for empty lines, which may come before a head
            self._begin_head()
        head = self._head_since
        super().data_received(data)
        if head is not None and head is self._head_since:
            self._head_bytes += len(data)
            if self._head_bytes > limits.HEAD_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Begin a head, which may come while the request before it is still answered."""
        if self._head_since is None:
            self._begin_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin a request, unless its head was too long."""
        if self.transport.is_closing():
            return
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > limits.HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        if len(self.pipeline) >= limits.PIPELINED:
            self.transport.abort()
            return
        self._head_since = None
        self.scope["state"][_SERVER] = self._held
        if self._held.counts[id(self.app)] >= limits.CONNECTIONS or len(self.tasks) >= self._held.most_tasks:
            self.limit_concurrency = 0  # uvicorn answers 503, and closes
        super().on_headers_complete()
        # What an upgraded connection sends is no HTTP, and is never read here.
        if self._held.is_ending or self.parser.should_upgrade():
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Take no body after a refused head."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Take no end after a refused head."""
        if not self.transport.is_closing():
            super().on_message_complete()

    def resume_writing(self) -> None:
        """Note that the client keeps up again."""
        self._waiting = None
        super().resume_writing()

    def shutdown(self) -> None:
        """End after the request that runs, or the one that may be on its way."""
        if self._is_idle:
            self.loop.call_later(_LAST_CHANCE, self._close_if_idle)
        else:
            super().shutdown()

    # -- bounds ------------------------------------------------------------------------------------------------------

    def look(self, now: float) -> None:
        """Drop the connection if its client is too slow in sending a head, or in taking an answer."""
        if self._head_since is not None and now - self._head_since > limits.HEAD_SECONDS:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
            self._head_since = None
        unsent = self._unsent()
        if unsent == 0:
            self._waiting = None
            return
        since, least = self._waiting or (now, unsent)
        if now - since <= limits.SLOW_SECONDS:
            self._waiting = (since, least)
        elif least - unsent < min(least, limits.SLOW_BYTES):
            self.transport.abort()
        else:
            self._waiting = (now, unsent)

    def _unsent(self) -> int:
        """Return the bytes that wait for the client: ours, and those in the kernel (tcp(7), SIOCOUTQ)."""
        waiting = int(self.transport.get_write_buffer_size())
        client = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError, ValueError):  # closed in this moment
            waiting += struct.unpack("i", fcntl.ioctl(client.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
        return waiting

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer a request that has no head yet, and close; without a word while another one is answered."""
        if self.transport.is_closing():
            return
        if not self._is_idle:
            self.transport.abort()
            return
        body = f"{status} {status.phrase}\n".encode()
        head = (
            f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _close_if_idle(self) -> None:
        if self._is_idle:
            self.transport.close()

    def _begin_head(self) -> None:
        self._head_since = self.loop.time()
        self._head_bytes = 0

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete
