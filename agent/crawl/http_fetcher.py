"""Our own HTTP/1.1 fetcher, for what the browser asks for. It keeps responses byte for byte.

wget reads its whole list before it begins, so it cannot ask for one URL after the other over one connection. This
fetcher can: it sends one request, and returns the response with its head and body as they were received.

h11 parses what is kept: the bytes that it is given are those of `head` and `raw`. h11 rejects heads that servers of
the real web send and that wget takes: a blank before a colon, a line without one, several or odd lengths. Then it gets
a head of the framing fields alone, as `http_response.parse_head` reads them, which also reads them in WARC files. The
head that is kept stays as it was received, and the connection is closed after it. A chunk whose lines end in bare LF is
rejected, and its body is `truncated`. Redirects, cookies and Strict-Transport-Security are the caller's business.

The connection is kept for the next request to its origin. A request over a kept connection is repeated over a new one
if no byte of a response came, since servers close idle connections at any time; but only GET and HEAD, which change
nothing.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

import h11

from agent.crawl.http_connections import (
    Connector,
    FetchBounds,
    FetchDeadline,
    HttpConnection,
    HttpOrigin,
    HttpProxy,
    Pace,
)
from agent.crawl.scope import is_private
from agent.crawl.vocabulary import Reason, Status
from webarcfs.archive.model.errors import FetchFailed, UrlRefused
from webarcfs.archive.model.urls import Url, parse
from webarcfs.warc.http_response import LONGEST_HEAD, fields_of, parse_head

_PIECE = 1 << 16
#: Responses of status 1xx before the final one.
_MOST_INTERIM = 20
#: As `http_response.read_head` ends a head.
_END_OF_HEAD = re.compile(rb"\n\r{0,2}\n")
_START = b"HTTP/"
#: Type and stream of the frame by which a server begins that speaks HTTP/2 alone (RFC 9113 section 3.4).
_SETTINGS, _FRAME_HEAD = 4, 9
_CODINGS = "gzip, deflate, br"
#: Of the connection, or set here.
_OUR_FIELDS = frozenset({
    "host", "connection", "content-length", "accept-encoding", "expect", "keep-alive", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip


class _Method(StrEnum):
    """Methods that the fetcher treats in a way of their own."""

    GET = "GET"
    HEAD = "HEAD"
    CONNECT = "CONNECT"


_REPEATABLE = frozenset({_Method.GET, _Method.HEAD})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_NO_BODY = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request for a canonical URL. Fields of the connection, Host, Content-Length and Accept-Encoding are ignored."""

    url: str
    method: str = "GET"
    fields: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response as it was received.

    `head` has the status line and the fields, with the empty line. `raw` is the body with its transfer coding: the
    lines of chunks and trailers are included. `fields` are in order, in Latin-1. `began` is when the request was sent.
    `address` is that of the server, and empty if a proxy was asked. `cut` says why the body is not whole, and is empty
    if it is. `faults` are the words for a certificate that was not checked.
    """

    status: int
    head: bytes
    raw: bytes
    fields: tuple[tuple[str, str], ...]
    began: datetime
    address: str
    cut: str = ""
    faults: str = ""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A request as it is sent to an origin."""

    origin: HttpOrigin
    method: str
    message: bytes = field(repr=False)


class HttpFetcher:
    """Sends requests and returns responses, one at a time, over one connection. For one thread.

    Another origin gets another connection. Bounds hold for a kept connection as well: what was taken without a check is
    not used again where one is wanted.
    """

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._kept: tuple[HttpOrigin, HttpConnection] | None = None

    def fetch(self, request: HttpRequest, bounds: FetchBounds) -> HttpResponse:
        """Send a request; return the response. Raises FetchFailed if there is none."""
        deadline = FetchDeadline(bounds)
        prepared = self._prepare(request)
        kept = self._take(prepared.origin, bounds)
        if kept is not None:
            try:
                return self._exchange(kept, prepared, bounds, deadline)
            except FetchFailed as failure:
                if not failure.is_unanswered or request.method not in _REPEATABLE:
                    raise
        connection = self._connector.open(prepared.origin, bounds, deadline)
        return self._exchange(connection, prepared, bounds, deadline)

    def close(self) -> None:
        """Close the kept connection."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept[1].close()

    def _prepare(self, request: HttpRequest) -> _Prepared:
        try:
            url = parse(request.url)
        except UrlRefused:
            raise FetchFailed(Status.ILLEGAL_URL, Reason.BAD_REQUEST) from None
        origin = HttpOrigin.of(url)
        proxy = self._connector.proxy_for(origin)
        return _Prepared(origin, request.method, _message(request, url, proxy if origin.scheme == "http" else None))

    def _take(self, origin: HttpOrigin, bounds: FetchBounds) -> HttpConnection | None:
        """Return the kept connection if a request to an origin may use it; else close it, and return None."""
        if self._kept is None:
            return None
        of_origin, connection = self._kept
        is_unfit = (bounds.checked and connection.faults) or (
            bounds.public and not connection.proxied and is_private(connection.address)
        )
        # One that is readable has ended, or the server speaks unasked.
        if of_origin != origin or is_unfit or _is_readable(connection.socket):
            self.close()
            return None
        self._kept = None
        return connection

    def _exchange(
        self, connection: HttpConnection, prepared: _Prepared, bounds: FetchBounds, deadline: FetchDeadline
    ) -> HttpResponse:
        """Send a request over a connection, and read the response; then keep the connection, or close it."""
        is_kept = False
        try:
            exchange = _Exchange(connection.socket, prepared.method, bounds, deadline)
            began = datetime.now(UTC)
            exchange.send(prepared.message)
            status, head = exchange.read_head()
            raw, cut = exchange.read_body(head, status)
            is_kept = exchange.may_continue
            address = "" if connection.proxied else connection.address
            return HttpResponse(status, head, raw, tuple(fields_of(head)), began, address, cut, connection.faults)
        finally:
            if is_kept:
                self._kept = prepared.origin, connection
            else:
                connection.close()


def _is_readable(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))


def _message(request: HttpRequest, url: Url, proxy: HttpProxy | None) -> bytes:
    """Return the bytes of a request, for a proxy that is no tunnel if there is one.

    Raises FetchFailed, without the fields in its text, for a request that HTTP does not allow.
    """
    fields = [("Host", url.domain)]
    fields += [(name, value.strip(" \t")) for name, value in request.fields if name.strip().lower() not in _OUR_FIELDS]
    fields.append(("Accept-Encoding", _CODINGS))
    if request.body or request.method in _WITH_BODY:
        fields.append(("Content-Length", str(len(request.body))))
    fields.append(("Connection", "keep-alive"))
    target = url.path if url.query is None else f"{url.path}?{url.query}"
    if proxy is not None:
        target = f"{url.scheme}://{url.domain}{target}"
        if proxy.authorization:
            fields.append(("Proxy-Authorization", proxy.authorization))
    try:
        if request.method == _Method.CONNECT:
            raise ValueError
        writer = h11.Connection(h11.CLIENT)
        coded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
        head = writer.send(h11.Request(method=request.method, target=target, headers=coded))
        body = writer.send(h11.Data(data=request.body)) if request.body else b""
    except (h11.LocalProtocolError, ValueError):
        raise FetchFailed(Status.RUNTIME, Reason.BAD_REQUEST) from None
    return (head or b"") + (body or b"")


# == one exchange =====================================================================================================


def _make_parser(method: str) -> h11.Connection:
    """Return a parser of the response to a request that was sent."""
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD + _PIECE)
    parser.send(h11.Request(method=method, target="/", headers=[("Host", "sent")]))
    parser.send(h11.EndOfMessage())
    return parser


class _Exchange:
    """One request and its response over a connection."""

    def __init__(
        self,
        connection: socket.socket,
        method: str,
        bounds: FetchBounds,
        deadline: FetchDeadline,
    ) -> None:
        self._socket = connection
        self._method = method
        self._bounds = bounds
        self._deadline = deadline
        self._parser = _make_parser(method)
        self._received = bytearray()  # not yet parsed
        self._pace = bounds.pace or Pace()
        self._count = 0  # bytes received
        #: Whether another request may be sent over the connection.
        self.may_continue = False

    def send(self, message: bytes) -> None:
        """Send the request. A server may respond and close before it has all of it: what it sent is read."""
        view = memoryview(message)
        try:
            while view:
                self._socket.settimeout(self._deadline.patience())
                view = view[self._socket.send(view[:_PIECE]) :]
        except ConnectionError:
            return
        except OSError as error:
            raise self._failure(error) from None

    def read_head(self) -> tuple[int, bytes]:
        """Return the status and the head of the final response. Raises FetchFailed if there is none."""
        for _ in range(_MOST_INTERIM + 1):
            head = self._next_head()
            event = self._parse_head(head)
            if isinstance(event, h11.Response):
                return event.status_code, head
        raise FetchFailed(Status.INVALID_RESPONSE, Reason.BAD_HEAD)

    def _next_head(self) -> bytes:
        """Read the next head, as it is, with its empty line."""
        searched = 0
        while (match := _END_OF_HEAD.search(self._received, max(0, searched - 3))) is None:
            self._check_start(is_whole=False)
            searched = len(self._received)
            if searched > LONGEST_HEAD:
                raise FetchFailed(Status.INVALID_RESPONSE, Reason.BAD_HEAD)
            try:
                data = self._receive(_PIECE)
            except OSError as error:
                raise self._failure(error) from None
            if not data:
                raise self._failure(None)
            self._received += data
        self._check_start(is_whole=True)
        if match.end() > LONGEST_HEAD:
            raise FetchFailed(Status.INVALID_RESPONSE, Reason.BAD_HEAD)
        head = bytes(self._received[: match.end()])
        del self._received[: match.end()]
        return head

    def _check_start(self, *, is_whole: bool) -> None:
        """Raise FetchFailed for what is no head of HTTP/1, as soon as that shows."""
        start = bytes(self._received[:_FRAME_HEAD])
        if _START.startswith(start[: len(_START)].upper()):
            return
        if start[:1] == b"\0" and len(start) < _FRAME_HEAD and not is_whole:
            return
        if len(start) == _FRAME_HEAD and start[3] == _SETTINGS and not any(start[5:]):
            raise FetchFailed(Status.CONNECT_FAILED, Reason.HTTP2_ONLY)
        raise FetchFailed(Status.INVALID_RESPONSE, Reason.BAD_HEAD)

    def _parse_head(self, head: bytes) -> h11.Response | h11.InformationalResponse:
        event = self._try_head(head)
        if event is None and (plain := _plain_head(head)):
            self._parser = _make_parser(self._method)
            event = self._try_head(plain)
        if event is None:
            raise FetchFailed(Status.INVALID_RESPONSE, Reason.BAD_HEAD)
        return event

    def _try_head(self, head: bytes) -> h11.Response | h11.InformationalResponse | None:
        """Let h11 parse a head; None if it rejects it."""
        self._parser.receive_data(head)
        try:
            event = self._parser.next_event()
        except h11.RemoteProtocolError:
            return None
        return event if isinstance(event, h11.Response | h11.InformationalResponse) else None

    def read_body(self, head: bytes, status: int) -> tuple[bytes, str]:
        """Return the body as it was received, and why it is not whole."""
        parsed = parse_head(head)
        has_body = self._method != _Method.HEAD and status not in _NO_BODY
        if parsed is not None and has_body and 0 < self._bounds.most < (parsed.length or 0):
            return b"", Reason.TOO_BIG
        raw = bytearray()
        cut = self._fill(raw)
        return bytes(raw), cut

    def _fill(self, raw: bytearray) -> str:
        """Read the body into `raw`; return why it is not whole."""
        most = self._bounds.most
        has_ended = False
        while True:
            try:
                event = self._parser.next_event()
            except h11.RemoteProtocolError:  # broken chunks, or the end came too early
                return Reason.TRUNCATED
            if isinstance(event, h11.Data):
                continue
            if isinstance(event, h11.EndOfMessage):
                break
            if has_ended:
                return Reason.TRUNCATED
            try:
                data = self._next_piece(most - len(raw) + 1 if most else _PIECE)
            except TimeoutError:
                return Reason.TIME_LIMIT
            except OSError:
                return Reason.TRUNCATED
            if most:
                if data and len(raw) >= most:
                    return Reason.TOO_BIG
                self._received[:0] = data[most - len(raw) :]
                data = data[: most - len(raw)]
            has_ended = not data
            raw += data
            self._parser.receive_data(data)
        left = len(self._parser.trailing_data[0])
        del raw[len(raw) - left :]
        is_idle = self._parser.their_state is h11.DONE and self._parser.our_state is h11.DONE
        self.may_continue = is_idle and not left and not self._received and not has_ended
        return ""

    def _next_piece(self, most: int) -> bytes:
        """Return the next bytes of the body; empty at the end of the connection."""
        if self._received:
            data = bytes(self._received[:_PIECE])
            del self._received[:_PIECE]
            return data
        return self._receive(min(_PIECE, most))

    def _receive(self, most: int) -> bytes:
        """Receive some bytes, not faster than the bound of speed; empty at the end of the connection."""
        speed = self._bounds.speed
        if speed:
            while (ahead := min(self._pace.ahead, self._deadline.left)) > 0:  # others may be first
                time.sleep(ahead)
            most = min(most, max(1024, speed // 4))
        self._socket.settimeout(self._deadline.patience())
        data = self._socket.recv(most)
        self._count += len(data)
        if speed:
            self._pace.note(len(data), speed)
        return data

    def _failure(self, error: OSError | None) -> FetchFailed:
        """Return the error for a connection that ended, with `error` or without, before the head had come."""
        if isinstance(error, TimeoutError):
            return self._deadline.expiry_error()
        if isinstance(error, ssl.SSLError) and not _is_end(error):
            if self._count:
                return FetchFailed(Status.CONNECTION_LOST, Reason.LOST)
            return FetchFailed(Status.CONNECT_FAILED, Reason.TLS_HANDSHAKE)  # TLS 1.3 tells late what it rejects
        if isinstance(error, ConnectionError):
            reason = Reason.RESET
        elif error is not None and not isinstance(error, ssl.SSLError):
            reason = Reason.LOST
        else:
            reason = Reason.CLOSED if self._count else Reason.NO_ANSWER
        return FetchFailed(Status.CONNECTION_LOST, reason, is_unanswered=not self._count)


def _is_end(error: ssl.SSLError) -> bool:
    """Return whether the connection ended, with the goodbye of TLS or without."""
    is_end = isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
    return is_end or error.reason == "UNEXPECTED_EOF_WHILE_READING"


def _plain_head(head: bytes) -> bytes:
    """Return the framing fields of a head that h11 rejects, as a head; empty if it cannot be read at all."""
    parsed = parse_head(head)
    if parsed is None:
        return b""
    lines = [f"HTTP/1.1 {parsed.status:03} ", "Connection: close"]
    if parsed.is_chunked:
        lines.append("Transfer-Encoding: chunked")
    else:  # as browsers and wget do, a length counts beside a coding that is not known
        rest = {name: value for name, value in parsed.fields.items() if name != "transfer-encoding"}
        length = replace(parsed, fields=rest).length
        if length is not None:
            lines.append(f"Content-Length: {length}")
    return "\r\n".join((*lines, "", "")).encode("ascii")
