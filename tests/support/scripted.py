"""Servers that follow a script byte by byte: for what no HTTP server does, below HTTP and below TLS.

    with Scripted(lambda connection: (read_request(connection), connection.sendall(b"…"))) as server:
        fetch(f"http://{server.address}/")

A script gets each connection, in a thread of its own. When it returns, the connection is closed.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

Script = Callable[[socket.socket], object]


class Scripted:
    """Serves while its `with` block runs. `peers` are the addresses of clients, `requests` the heads that came."""

    def __init__(self, script: Script, host: str = "127.0.0.1") -> None:
        self._script = script
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.port: int = self._listener.getsockname()[1]
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self.peers: list[str] = []
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    @property
    def connections(self) -> int:
        """How many connections came."""
        return len(self.peers)

    def _accept(self) -> None:
        while True:
            try:
                connection, peer = self._listener.accept()
            except OSError:
                return
            self.peers.append(str(peer[0]))
            with self._lock:
                self._open.add(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):
                self._script(connection)
        finally:
            with self._lock:
                self._open.discard(connection)
                connection.close()


def read_request(connection: socket.socket) -> bytes:
    """The head of the next request; empty at the end of the connection."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = connection.recv(1)
        if not data:
            return b""
        head += data
    return head


def say(*pieces: bytes) -> Script:
    """Read a request, send these pieces, and end."""

    def script(connection: socket.socket) -> None:
        if read_request(connection):
            for piece in pieces:
                connection.sendall(piece)

    return script


def keep_saying(*responses: bytes) -> Script:
    """Send one response for each request, then end."""

    def script(connection: socket.socket) -> None:
        for response in responses:
            if not read_request(connection):
                return
            connection.sendall(response)

    return script


def reset(connection: socket.socket) -> None:
    """End a connection by RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def silent(connection: socket.socket) -> None:
    """Read all, and send nothing."""
    while connection.recv(4096):
        pass


# -- TLS --------------------------------------------------------------------------------------------------------------


def secured(context: ssl.SSLContext, script: Script) -> Script:
    """A script that speaks by TLS, and says goodbye as TLS does."""

    def over_tls(connection: socket.socket) -> None:
        tls = context.wrap_socket(connection.dup(), server_side=True)
        try:
            script(tls)
            with contextlib.suppress(OSError):
                tls.unwrap()
        finally:
            tls.close()

    return over_tls


class Records:
    """The records of TLS before they are sent, so that they can be cut anywhere."""

    def __init__(self, connection: socket.socket, context: ssl.SSLContext) -> None:
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._repeat(self._tls.do_handshake)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._repeat(lambda: self._tls.read(1))

    def _repeat(self, step: Callable[[], bytes | None]) -> bytes:
        while True:
            try:
                data = step()
            except ssl.SSLWantReadError:
                self._connection.sendall(self._outgoing.read())
                received = self._connection.recv(4096)
                if not received:
                    raise ConnectionAbortedError from None
                self._incoming.write(received)
                continue
            self._connection.sendall(self._outgoing.read())
            return data or b""

    def of(self, data: bytes) -> bytes:
        """The records for some bytes of HTTP."""
        self._tls.write(data)
        return self._outgoing.read()
