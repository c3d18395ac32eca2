"""An HTTP server that answers as a test says, byte for byte: also wrongly, in part, or not at all."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ScriptedRequest:
    """A request as it came: `headers` by their names in small letters."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


#: The bytes of an answer, in pieces; the connection is kept if they say where they end, and closed by a None.
ScriptedAnswer = Callable[[ScriptedRequest], Iterator[bytes | None]]


@dataclass
class ScriptedServer:
    """The server, with the requests and the number of connections that it had."""

    port: int
    requests: list[ScriptedRequest] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self.port}/"


def answer(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """Return an answer that is right."""
    lines = [
        f"{name.replace('_', '-')}: {value}" for name, value in {"Content_Length": str(len(body)), **headers}.items()
    ]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1") + body


def json_answer(value: object, status: str = "200 OK", **headers: str) -> bytes:
    """Return an answer of JSON."""
    return answer(json.dumps(value).encode(), status, **{"Content_Type": "application/json", **headers})


def rows_answer(*lines: object) -> bytes:
    """Return an answer of JSON lines, as they are given."""
    return answer(b"".join(json.dumps(line).encode() + b"\n" for line in lines), Content_Type="application/x-ndjson")


@contextmanager
def scripted(script: ScriptedAnswer) -> Iterator[ScriptedServer]:
    """Run a server on a free port of this machine."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = ScriptedServer(listener.getsockname()[1])
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            server.connections += 1
            opened.append(connection)
            threads.append(threading.Thread(target=_serve, args=(connection, server, script), daemon=True))
            threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield server
    finally:
        for own in (listener, *opened):
            with suppress(OSError):
                own.shutdown(socket.SHUT_RDWR)
            own.close()
        for thread in (accepting, *threads):
            thread.join(60)


def _serve(connection: socket.socket, server: ScriptedServer, script: ScriptedAnswer) -> None:
    with suppress(OSError, ValueError), connection, connection.makefile("rb") as stream:
        while line := stream.readline():
            method, target, _ = line.decode("latin-1").split(" ")
            headers: dict[str, str] = {}
            while (line := stream.readline().strip()) != b"":
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.lower()] = value.strip()
            request = ScriptedRequest(method, target, headers, stream.read(int(headers.get("content-length", "0"))))
            server.requests.append(request)
            for piece in script(request):
                if piece is None:
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                connection.sendall(piece)
