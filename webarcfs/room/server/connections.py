"""The connections of a worker: uvicorn's own, with bounds for what a client may send, and for how slowly.

uvicorn bounds neither the size of a request's head nor the time that it takes, nor how slowly a client takes an answer.
Each second the worker has every connection looked at, which needs no timers. For the worker's event loop.
"""

from __future__ import annotations

import contextlib
import fcntl
import struct
import termios
from asyncio import Transport
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from socket import socket
from typing import Any, cast

from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from webarcfs.room import limits

#: Seconds for which a connection without a request is kept when its server ends: the request may be on its way.
_LAST_CHANCE = 1.0


class Connections(ServerState):
    """The connections of one listener. `is_ending`: no connection gets a further request after its next."""

    def __init__(self) -> None:
        super().__init__()
        self.is_ending = False

    def look(self, now: float) -> None:
        """Drop the connections whose clients are too slow."""
        for each in list(self.connections):
            if isinstance(each, Connection):
                each.look(now)


class ListenerServer(Server):
    """The server of one listener in a worker: the worker handles signals, and learns when it has started and ended."""

    def __init__(self, app: Callable[..., Awaitable[None]], started: Callable[[], None]) -> None:
        config = Config(
            app,
            http=Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=limits.CONNECTIONS,
            timeout_keep_alive=limits.KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=limits.GRACE_SECONDS,
        )
        super().__init__(config)
        self.server_state = self.held = Connections()
        self._tell_started = started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the worker, which has two servers in its loop."""
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets)
        self._tell_started()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Stop accepting connections, and let those that there are finish."""
        self.held.is_ending = True
        await super().shutdown(sockets)


class Connection(HttpToolsProtocol):
    """A connection, one request after the other."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._head_since: float | None = None
        self._head_bytes = 0
        #: When bytes began to wait for the client, and how many they were; None while it keeps up.
        self._waiting: tuple[float, int] | None = None

    # -- what uvicorn and asyncio call -------------------------------------------------------------------------------

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Begin to wait for a head. One connection too many by far is closed at once: it holds a descriptor."""
        super().connection_made(transport)
        if len(self.connections) > 2 * limits.CONNECTIONS:
            transport.abort()
        self._begin_head()

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
        super().on_headers_complete()
        # What an upgraded connection sends is no HTTP, and is never read here.
        if self._is_ending or self.parser.should_upgrade():
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

    @property
    def _is_ending(self) -> bool:
        return cast(Connections, self.server_state).is_ending
