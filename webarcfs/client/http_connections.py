"""HTTP to one server: connections that are kept, bounds, time-outs, and another try where that does no harm.

An idle connection is used again by the next request, so each thread that asks one thing after another has one. A
request that changes nothing is tried again when the connection fails. A server that cannot be reached raises Busy.

The server is not trusted: what it says is bounded, an answer must say where it ends, and a redirect is followed only to
the same server, since the token goes along.
"""

from __future__ import annotations

import http.client
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO

import webarcfs
from webarcfs.archive.model.errors import Busy, WebarcError
from webarcfs.client.server_address import ServerAddress

#: Seconds until a connection is made, and for which an answer may be silent.
CONNECT_SECONDS = 10.0
SILENT_SECONDS = 60.0
#: Tries of a request, and the seconds before each but the first.
_PAUSES = (0.0, 0.2, 1.0)
_MOST_IDLE = 16
_MOST_REDIRECTS = 3
#: Bytes that are read at a time; and of an answer that is read only to keep its connection.
_PIECE = 1 << 16
_DRAINED = 1 << 16
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

Headers = Mapping[str, str]


class ServerAnswer:
    """The answer to a request: its status and headers, and its body in pieces. It is closed when it has been read."""

    def __init__(
        self, connections: ServerConnections, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._connections = connections
        self._connection: http.client.HTTPConnection | None = connection
        self._response = response
        self._socket = connection.sock
        self._has_end = response.chunked or response.length is not None or response.status in (204, 304)
        #: The bytes of the body, if the server says how many.
        self.length: int | None = response.length
        self.status = response.status
        #: Whether it answers a request that was sent again, and may have had its effect before.
        self.is_repeated = False

    def header(self, name: str) -> str:
        """Return the value of a header; empty without one."""
        return str(self._response.headers.get(name, ""))

    @property
    def media_type(self) -> str:
        """The type of the body, without parameters."""
        return self.header("Content-Type").partition(";")[0].strip().lower()

    def pieces(self) -> Iterator[bytes]:
        """Yield the body. Raises Busy where it was cut, as far as the connection tells."""
        if not self._has_end:
            self.close()
            raise WebarcError(f"{self._connections.origin} does not say where its answer ends")
        encoding = self.header("Content-Encoding").lower()
        if encoding not in ("", "identity"):
            self.close()
            raise WebarcError(f"{self._connections.origin} sent an answer as {encoding[:20]}, which was not asked for")
        left = self.length
        try:
            while piece := self._response.read1(_PIECE):
                left = None if left is None else left - len(piece)
                yield piece
        except (OSError, http.client.HTTPException) as error:
            raise Busy(f"the answer of {self._connections.origin} was cut: {_words(error)}") from error
        else:
            if left:
                raise Busy(f"the answer of {self._connections.origin} was cut: {left:,} bytes are missing")
            self._give_back()
        finally:
            self.close()

    def body(self, most: int) -> bytes:
        """Return the body. Raises WebarcError if it is larger than `most` bytes, Busy where it was cut."""
        parts: list[bytes] = []
        size = 0
        for piece in self.pieces():
            size += len(piece)
            if size > most:
                raise WebarcError(f"an answer of {self._connections.origin} has more than {most:,} bytes")
            parts.append(piece)
        return b"".join(parts)

    def drain(self) -> None:
        """Read a body that is of no interest, if it is short, so that the connection is kept."""
        if self.length is not None and self.length > _DRAINED:
            self.close()
            return
        with suppress(WebarcError):
            self.body(_DRAINED)

    def abort(self) -> None:
        """End a read of another thread."""
        with suppress(OSError, AttributeError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection, unless it was given back."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._response.close()
            connection.close()

    def _give_back(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._response.close()
            self._connections.give_back(connection)


class ServerConnections:
    """The connections to one server. For any thread; a process that was forked makes its own."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._idle: list[http.client.HTTPConnection] = []
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._tls: ssl.SSLContext | None = None
        self._headers = {"User-Agent": f"webarcfs/{webarcfs.__version__}", "Accept-Encoding": "identity"}
        if address.token:
            self._headers["Authorization"] = f"Bearer {address.token}"

    @property
    def origin(self) -> str:
        """The server, for messages."""
        return self._address.origin

    def get(self, target: str, headers: Headers | None = None, *, seconds: float = SILENT_SECONDS) -> ServerAnswer:
        """Ask for what is at `target`, a path and query below that of the API. Raises Busy, WebarcError."""
        target = self._address.base + target
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._tried("GET", target, headers or {}, None, seconds)
            if answer.status not in _REDIRECTS:
                return answer
            target = self._redirected(answer)
        raise WebarcError(f"{self.origin} redirects again and again")

    def send(
        self, method: str, target: str, body: bytes | BinaryIO, headers: Headers, *, is_repeatable: bool = False
    ) -> ServerAnswer:
        """Send a body; of a stream what follows. Raises Busy: unless `is_repeatable`, it may have had its effect."""
        return self._tried(method, self._address.base + target, headers, body, SILENT_SECONDS, repeat=is_repeatable)

    def give_back(self, connection: http.client.HTTPConnection) -> None:
        """Keep a connection whose answer was read."""
        with self._lock:
            if connection.sock is not None and self._process == os.getpid() and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close what is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _tried(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes | BinaryIO | None,
        seconds: float,
        *,
        repeat: bool = True,
    ) -> ServerAnswer:
        failure: Exception | None = None
        start = body.tell() if body is not None and not isinstance(body, bytes) else 0
        pauses = _PAUSES if body is None else _PAUSES[: 2 if repeat else 1]
        for tries, pause in enumerate(pauses):
            time.sleep(pause)
            if body is not None and not isinstance(body, bytes):
                body.seek(start)
            connection = self._idle_one() or self._new()
            try:
                if connection.sock is None:
                    _connect(connection)
                connection.sock.settimeout(seconds)
                answer = self._asked(connection, method, target, headers, body)
                answer.is_repeated = tries > 0
                return answer
            except ssl.SSLCertVerificationError as error:
                connection.close()
                raise WebarcError(
                    f"{self.origin} cannot prove that it is that server: {error.verify_message}"
                ) from error
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                failure = error
            except BaseException:
                connection.close()
                raise
        assert failure is not None
        if isinstance(failure, http.client.HTTPException) and not isinstance(failure, OSError):
            raise WebarcError(f"{self.origin} answers, but not as an HTTP server does: {_words(failure)}") from failure
        raise Busy(f"{self.origin} cannot be reached: {_words(failure)}") from failure

    def _asked(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Headers,
        body: bytes | BinaryIO | None,
    ) -> ServerAnswer:
        try:
            connection.request(method, target, body, {**self._headers, **headers})
        except (BrokenPipeError, ConnectionResetError):
            # It may have answered, and not wanted the rest.
            if body is None or connection.sock is None:
                raise
        return ServerAnswer(self, connection, connection.getresponse())

    def _idle_one(self) -> http.client.HTTPConnection | None:
        with self._lock:
            if self._process != os.getpid():
                self._process, self._idle = os.getpid(), []
            while self._idle:
                connection = self._idle.pop()
                if _is_alive(connection):
                    return connection
                connection.close()
        return None

    def _new(self) -> http.client.HTTPConnection:
        address = self._address
        if not address.is_secure:
            return http.client.HTTPConnection(address.host, address.port, CONNECT_SECONDS, blocksize=_PIECE)
        self._tls = self._tls or ssl.create_default_context()
        return http.client.HTTPSConnection(
            address.host, address.port, timeout=CONNECT_SECONDS, blocksize=_PIECE, context=self._tls
        )

    def _redirected(self, answer: ServerAnswer) -> str:
        """Return the path and query to which an answer leads. Raises WebarcError if it leads elsewhere."""
        place = answer.header("Location")
        answer.drain()
        if place.startswith("/") and not place.startswith("//"):
            return place
        if self._address.is_origin_of(place):
            return "/" + place.split("/", 3)[3] if place.count("/") > 2 else "/"
        raise WebarcError(f"{self.origin} redirects to {place[:200]!r}; give that as the server's URL if you trust it")


def _connect(connection: http.client.HTTPConnection) -> None:
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _is_alive(connection: http.client.HTTPConnection) -> bool:
    """Return whether an idle connection may be used: nothing was sent on it, not even its end."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN | select.POLLHUP | select.POLLERR)
    return not poll.poll(0)


def _words(error: Exception) -> str:
    """Return what happened to a connection, for people."""
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, http.client.RemoteDisconnected | http.client.IncompleteRead):
        return "it ended the connection"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return type(error).__name__
