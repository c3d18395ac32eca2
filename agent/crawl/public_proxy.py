"""A proxy on this machine through which the wgets of one job reach public addresses and no others.

wget looks a name up by itself, so that a name server can give it another address than the one that was judged. This
proxy looks the name up once, judges the addresses, and connects to what it judged. Redirects, resources and robots.txt
pass through it like everything else. It asks for a password that only the wgets of its job know, since anybody on the
machine can connect to it.

Where the settings or the environment name a proxy for a server, it asks that one, which looks names up by itself; only
addresses in URLs are judged then.

It also keeps servers of other protocols from being spoken to: the ports that browsers do not ask either (WHATWG Fetch,
section "Port blocking").
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import os
import re
import secrets
import select
import socket
import threading
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from agent.crawl.http_connections import Connector, FetchBounds, FetchDeadline, HttpOrigin, HttpProxy, Proxies
from agent.crawl.vocabulary import Reason, Status
from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model.errors import FetchFailed, UrlRefused
from webarcfs.archive.model.urls import DEFAULT_PORTS, parse

#: Connections at a time: a job has few wgets, each with one.
_MOST_CONNECTIONS = 64
_LONGEST_HEAD = 1 << 16
_PIECE = 1 << 16
#: Seconds in which wget sends the head of a request, which it has whole when it connects.
_HEAD_SECONDS = 10.0
#: Seconds beyond wget's own time-out, so that wget ends first.
_GRACE = 5.0
_END_OF_HEAD = b"\r\n\r\n"
_HTTP = b"http://"
#: Fields of a request that are for the proxy, or for the connection.
_OWN_FIELDS = re.compile(rb"(?:proxy-[a-z-]+|connection|keep-alive)\s*:", re.IGNORECASE)
_AUTHORIZATION = re.compile(rb"\r\nproxy-authorization:[ \t]*([^\r\n]*)", re.IGNORECASE)

#: Ports of other protocols.
BLOCKED_PORTS = frozenset({
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Request:
    """What wget asks the proxy for: where to connect, and what to send there; nothing for a tunnel.

    `line` are the words of the request line, `fields` those that are for the server.
    """

    origin: HttpOrigin
    line: tuple[bytes, bytes, bytes] | None = None
    fields: tuple[bytes, ...] = field(default=(), repr=False)

    def message(self, proxy: HttpProxy | None) -> bytes:
        """Return the bytes of the request for the server, or for another proxy."""
        if self.line is None:
            return b""
        method, target, version = self.line
        if proxy is None:
            target = b"/" + target[len(_HTTP) :].partition(b"/")[2]
        secret = proxy.authorization if proxy is not None else ""
        own = [f"Proxy-Authorization: {secret}".encode("latin-1")] if secret else []
        return b"\r\n".join((b" ".join((method, target, version)), *self.fields, *own, b"Connection: close", b"", b""))


class PublicProxy:
    """The proxy of a job. Close it after use."""

    def __init__(self, settings: CrawlSettings) -> None:
        self._timeout = settings.timeout
        self._connector = Connector(ca="", bind=settings.bind, proxies=Proxies(settings.proxy, os.environ))
        self._password = secrets.token_urlsafe(24)
        self._authorization = b"Basic " + base64.b64encode(f"wget:{self._password}".encode())
        self._room = threading.Semaphore(_MOST_CONNECTIONS)
        self._faults: dict[tuple[str, int], tuple[int, str]] = {}
        self._server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, name="public-proxy", daemon=True).start()

    @property
    def url(self) -> str:
        """Its URL, with the password: for the environment of wget, which nobody else may read."""
        return f"http://wget:{self._password}@127.0.0.1:{self._server.getsockname()[1]}"

    def fault_of(self, url: str) -> tuple[int, str] | None:
        """Return status and note of why the server of a URL was not connected to last; None if it was."""
        try:
            origin = HttpOrigin.of(parse(url))
        except UrlRefused:
            return None
        return self._faults.get((origin.host, origin.port))

    def close(self) -> None:
        """Take no more connections. Those that are open end with their wgets."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            if not self._room.acquire(blocking=False):
                client.close()
                continue
            threading.Thread(target=self._answer, args=(client,), name="public-proxy", daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        try:
            with client, contextlib.suppress(OSError):
                self._pass_on(client)
        finally:
            self._room.release()

    def _pass_on(self, client: socket.socket) -> None:
        head, rest = _read_head(client)
        if not head:
            return
        sent = _AUTHORIZATION.search(head)
        if sent is None or not hmac.compare_digest(sent[1].strip(), self._authorization):
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        asked = _parse(head)
        if asked is None:
            client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        server = self._connect(asked.origin)
        if server is None:
            if asked.line is None:
                client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return  # a response of this proxy to another request would be archived as the server's
        with server:
            if asked.line is not None:
                server.sendall(asked.message(self._connector.proxy_for(asked.origin)) + rest)
            else:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self._relay(client, server)

    def _connect(self, origin: HttpOrigin) -> socket.socket | None:
        """Return a connection to the judged address of an origin; None, and keep why, if there is none."""
        bounds = FetchBounds(self._timeout, self._timeout, 0, public=True)
        deadline, key = FetchDeadline(bounds), (origin.host, origin.port)
        try:
            if origin.port in BLOCKED_PORTS:
                raise FetchFailed(Status.CONNECT_FAILED, Reason.CONNECT_FAILED)
            connection = self._connector.open_plain(origin, bounds, deadline)
        except (FetchFailed, TimeoutError) as error:
            failure = error if isinstance(error, FetchFailed) else deadline.expiry_error()
            self._faults[key] = failure.status, failure.note
            return None
        self._faults.pop(key, None)
        return connection.socket

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what both send, until one of them closes its connection or nothing comes for too long."""
        for end in (client, server):
            end.settimeout(self._timeout + _GRACE)
        poll = select.poll()
        others = {client.fileno(): (client, server), server.fileno(): (server, client)}
        for descriptor in others:
            poll.register(descriptor, select.POLLIN)
        while ready := poll.poll((self._timeout + _GRACE) * 1000):
            for descriptor, _ in ready:
                source, target = others[descriptor]
                piece = source.recv(_PIECE)
                if not piece:
                    return
                target.sendall(piece)


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """Return the head of a request, and what came after it; an empty head for none. Raises OSError for a late one."""
    deadline = FetchDeadline(FetchBounds(_HEAD_SECONDS, _HEAD_SECONDS, 0, public=False))
    received = b""
    while _END_OF_HEAD not in received:
        client.settimeout(deadline.patience())
        piece = client.recv(_PIECE)
        if not piece or len(received) > _LONGEST_HEAD:
            return b"", b""
        received += piece
    head, end, rest = received.partition(_END_OF_HEAD)
    return head + end, rest


def _parse(head: bytes) -> _Request | None:
    """Return what a request asks for; None for what is none."""
    line, *fields = head.removesuffix(_END_OF_HEAD).split(b"\r\n")
    words = line.split(b" ")
    if len(words) != 3:
        return None
    method, target, version = words
    if method == b"CONNECT":
        origin = _origin_of("https", b"//" + target)
        return None if origin is None else _Request(origin)
    origin = _origin_of("http", target) if target.lower().startswith(_HTTP) else None
    kept = tuple(field for field in fields if not _OWN_FIELDS.match(field))
    return None if origin is None else _Request(origin, (method, target, version), kept)


def _origin_of(scheme: str, target: bytes) -> HttpOrigin | None:
    try:
        parts = urlsplit(target.decode("latin-1"))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    return HttpOrigin(scheme, host, int(DEFAULT_PORTS[scheme]) if port is None else port) if host else None
