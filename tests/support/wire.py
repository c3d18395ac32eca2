"""HTTP/1.1 on loopback, as little of it as tests of a crawler need, with control of every byte that is sent.

`Server` accepts and converses: one thread a connection, keep-alive, Nagle off. It knows no pages: `route` gives it, for
each Request, the Answer to call. An Answer says what it has to say through its Exchange. `site.py` routes for tests,
`tests/bench/serve.py` for benchmarks.
"""

from __future__ import annotations

import contextlib
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from io import FileIO
from typing import NamedTuple

HTML = "text/html; charset=utf-8"

_END_OF_HEAD = b"\r\n\r\n"
_LONGEST_HEAD = 1 << 20
_PIECE = 1 << 16
_TCP_ESTABLISHED = 1
_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]*)", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\n(?:proxy-)?connection:[ \t]*close", re.IGNORECASE)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)(.*)", re.DOTALL)


class Request(NamedTuple):
    """One request as it arrived. `path` is the target as it was sent, with the query; `time` counts as time.time()."""

    time: float
    method: str
    host: str
    path: str
    head: bytes
    client_port: int
    connection_id: int
    #: Whether the target was an absolute URI, as clients of a proxy send it.
    proxied: bool
    keep_alive: bool
    #: The first 64 KiB of the request's body.
    body: bytes = b""

    @property
    def headers(self) -> dict[str, str]:
        """The header fields by name in lower case; of repeated ones the last."""
        fields = (line.partition(":") for line in self.head.decode("latin-1").split("\r\n")[1:])
        return {name.lower(): value.strip() for name, _, value in fields}


class Exchange:
    """What an Answer holds while it answers one request. `keep` False: the connection ends after it.

    `watch`, if set, is called with all bytes before they are sent, but for those of `send_file`.
    """

    __slots__ = ("_socket", "keep", "request", "watch")

    def __init__(self, connection: socket.socket, request: Request) -> None:
        self._socket = connection
        self.request = request
        self.keep = request.keep_alive
        self.watch: Callable[[bytes], None] | None = None

    def send(self, data: bytes) -> None:
        """These bytes, as they are."""
        if self.watch is not None:
            self.watch(data)
        self._socket.sendall(data)

    def begin(self, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """A head, and only that."""
        self.send(head(status, headers or {}))

    def send_file(self, file: FileIO) -> None:
        """The rest of an open file, without reading it into this process."""
        self._socket.sendfile(file)

    def wait(self, seconds: float) -> None:
        """Sleep. Raises ConnectionAbortedError as soon as the client leaves or the server stops."""
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)
        if poll.poll(seconds * 1000):
            raise ConnectionAbortedError

    def reset(self) -> None:
        """End the connection with RST: the client's next read is an error and not an end."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()
        self.keep = False


Answer = Callable[[Exchange], None]


class Page:
    """An Answer that is a whole response: head and body, made once."""

    __slots__ = ("_length_of_head", "_whole")

    def __init__(self, head: bytes, body: bytes) -> None:
        self._length_of_head = len(head)
        self._whole = head + body

    def __call__(self, exchange: Exchange) -> None:
        whole = self._whole
        exchange.send(whole[: self._length_of_head] if exchange.request.method == "HEAD" else whole)


def page(
    body: bytes | str = b"",
    content_type: str | None = HTML,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Page:
    """A well-behaved response; `headers` win over Content-Type and Content-Length."""
    data = body.encode() if isinstance(body, str) else body
    own = {} if content_type is None else {"Content-Type": content_type}
    if status not in (204, 304):
        own["Content-Length"] = str(len(data))
    given = headers or {}
    overruled = {name.lower() for name in given}
    return Page(head(status, {k: v for k, v in own.items() if k.lower() not in overruled} | dict(given)), data)


def error_page(status: int, headers: Mapping[str, str] | None = None) -> Page:
    """A short HTML page that says what `status` says; none where the status allows none."""
    text = f"<html><head><title>{status} {_phrase(status)}</title></head><body>{_phrase(status)}</body></html>"
    return page("" if status in (204, 304) else text, status=status, headers=headers)


def redirect(to: str, status: int = 302) -> Page:
    """Location: `to`, which may be relative."""
    return error_page(status, {"Location": to})


def head(status: int, headers: Mapping[str, str], version: str = "HTTP/1.1") -> bytes:
    """Status line and header fields in the given order."""
    lines = [f"{version} {status} {_phrase(status)}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unheard Of"


class Server:
    """Serves a listening socket from threads of this process until `stop`, which leaves none of them behind."""

    def __init__(self, route: Callable[[Request], Answer], listener: socket.socket) -> None:
        self._route = route
        self._listener = listener
        self._lock = threading.Lock()
        self._connections: dict[int, _Connection] = {}
        self._threads: set[threading.Thread] = set()
        self._stopping = False
        self._acceptor = threading.Thread(target=self._accept, name="accept", daemon=True)
        #: Host → greatest number of connections that were open to it at one time.
        self.max_open: dict[str, int] = {}
        #: Exceptions of Answers, but for those that a vanished client causes: faults of the test.
        self.errors: list[Exception] = []

    def start(self) -> None:
        """Accept from now on."""
        self._acceptor.start()

    def stop(self) -> None:
        """End every conversation where it is; returns when each thread has ended."""
        with self._lock:
            self._stopping = True
            for connection in self._connections.values():
                _shut(connection.socket)
            threads = list(self._threads)
        _shut(self._listener)
        for thread in (self._acceptor, *threads):
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        number = 0
        while True:
            try:
                accepted, address = self._listener.accept()
            except OSError:
                return  # shut down by stop()
            number += 1
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._take(_Connection(number, accepted, address[1]))

    def _take(self, connection: _Connection) -> None:
        thread = threading.Thread(target=self._serve, args=(connection,), name=f"http-{connection.id}", daemon=True)
        with self._lock:
            if self._stopping:
                connection.socket.close()
                return
            self._connections[connection.id] = connection
            self._threads.add(thread)
            thread.start()

    def _serve(self, connection: _Connection) -> None:
        try:
            self._converse(connection)
        except ConnectionError:
            pass  # the client left, or stop() was called
        except Exception as error:
            self.errors.append(error)
        finally:
            with self._lock:
                del self._connections[connection.id]
                self._threads.discard(threading.current_thread())
                _shut(connection.socket)
                connection.socket.close()

    def _converse(self, connection: _Connection) -> None:
        for raw, body in _requests(connection.socket):
            request = _parse(raw, body, connection)
            if request is None:
                connection.socket.sendall(head(400, {"Content-Length": "0"}))
                return
            if request.host != connection.host:
                self._join(connection, request.host)
            exchange = Exchange(connection.socket, request)
            self._route(request)(exchange)
            if not exchange.keep:
                return

    def _join(self, connection: _Connection, host: str) -> None:
        """Count the connections that are open to `host`, now that this one is."""
        with self._lock:
            connection.host = host
            number = sum(c.host == host and c.is_open() for c in self._connections.values())
            self.max_open[host] = max(number, self.max_open.get(host, 0))


class _Connection:
    __slots__ = ("host", "id", "port", "socket")

    def __init__(self, number: int, accepted: socket.socket, port: int) -> None:
        self.id = number
        self.socket = accepted
        self.port = port
        self.host: str | None = None

    def is_open(self) -> bool:
        """Whether the client still has its end. A client's exit shows here at once, before our thread reads the end."""
        try:
            return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _TCP_ESTABLISHED
        except OSError:
            return False  # reset by the Answer


def listen(port: int = 0, address: str = "127.0.0.1") -> socket.socket:
    """A listening socket on loopback; port 0 is any free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(512)
    return listener


@contextlib.contextmanager
def nobody_there(port: int = 0) -> Iterator[str]:
    """Host and port of a server on loopback that refuses connections; port 0 is any free one."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # also where a server was just now
        reserved.bind(("127.0.0.1", port))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


def _shut(connection: socket.socket) -> None:
    """Wake whoever waits on a socket, in every process that holds it."""
    with contextlib.suppress(OSError):  # the other end was faster
        connection.shutdown(socket.SHUT_RDWR)


def _requests(connection: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    """Each request of a connection: its head without the blank line, and the beginning of its body."""
    buffer = b""
    while len(buffer) < _LONGEST_HEAD:
        end = buffer.find(_END_OF_HEAD)
        if end < 0:
            data = connection.recv(_PIECE)
            if not data:
                return
            buffer += data
            continue
        raw, buffer, body = buffer[:end], buffer[end + len(_END_OF_HEAD) :], b""
        length = _LENGTH.search(raw)
        if length:
            body, buffer = _take_body(connection, buffer, int(length[1]))
        yield raw, body


def _take_body(connection: socket.socket, buffer: bytes, length: int) -> tuple[bytes, bytes]:
    """Read a body of that length; return its beginning, and what came after it."""
    body = buffer[: min(length, _PIECE)]
    while len(buffer) < length:
        data = connection.recv(_PIECE)
        if not data:
            return body, b""
        length -= len(buffer)
        buffer = data
        body += buffer[: min(length, _PIECE - len(body))]
    return body, buffer[length:]


def _parse(raw: bytes, body: bytes, connection: _Connection) -> Request | None:
    """The request of a head; None where its first line is none. An absolute target's host wins (RFC 9112 3.2.2)."""
    try:
        method, target, version = raw.partition(b"\r\n")[0].decode("utf-8", "surrogateescape").split(" ")
    except ValueError:
        return None
    proxied = _ABSOLUTE.fullmatch(target)
    if proxied:
        host, target = proxied.groups()
    else:
        field = _HOST.search(raw)
        host = field[1].decode("latin-1") if field else ""
    return Request(
        time=time.time(),
        method=method,
        host=host.rpartition("@")[2].lower().removesuffix(":80"),
        path=target or "/",
        head=raw,
        client_port=connection.port,
        connection_id=connection.id,
        proxied=proxied is not None,
        keep_alive=version == "HTTP/1.1" and _CLOSE.search(raw) is None,
        body=body,
    )


def in_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Chunked transfer coding (RFC 9112 section 7.1) of `pieces`, last chunk included."""
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"
