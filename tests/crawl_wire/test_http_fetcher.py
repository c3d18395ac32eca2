"""Our own fetcher keeps responses byte for byte, within its bounds, over one connection."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.crawl.http_connections import Connector, FetchBounds, HttpOrigin, HttpProxy, Proxies, faults_in
from agent.crawl.http_fetcher import HttpFetcher, HttpRequest, HttpResponse
from agent.crawl.vocabulary import Reason, Status
from tests.support import scripted
from tests.support.properties import examples
from tests.support.scripted import Scripted, keep_saying, read_request, say, secured, silent
from tests.support.secure import Authority
from webarcfs.archive.model.errors import FetchFailed
from webarcfs.warc.decoding import BadBody, decoded
from webarcfs.warc.http_response import LONGEST_HEAD, parse_head, read_head

pytestmark = pytest.mark.crawl

BOUNDS = FetchBounds(timeout=30.0, seconds=60.0, most=0, public=False)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
WHOLE = HEAD + b"Content-Length: 5\r\n\r\nhello"
SECRET = "hunter2"


@contextlib.contextmanager
def fetching(proxy: str = "") -> Iterator[HttpFetcher]:
    fetcher = HttpFetcher(Connector(ca="", bind="", proxies=Proxies(proxy)))
    try:
        yield fetcher
    finally:
        fetcher.close()


def fetch(url: str, bounds: FetchBounds = BOUNDS, **more: object) -> HttpResponse:
    with fetching() as fetcher:
        return fetcher.fetch(HttpRequest(url, **more), bounds)  # type: ignore[arg-type]


def content_of(response: HttpResponse) -> bytes:
    """The body without its transfer coding, as a reader of the WARC reads it."""
    head = parse_head(response.head)
    assert head is not None
    return b"".join(decoded(io.BytesIO(response.raw), head, len(response.raw)))


def parsed_by_h11(response: HttpResponse) -> bytes | None:
    """The same as h11 reads it; None where it rejects the head."""
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("Host", "sent")]))
    reader.send(h11.EndOfMessage())
    reader.receive_data(response.head + response.raw)
    reader.receive_data(b"")
    content = b""
    try:
        while not isinstance(event := reader.next_event(), h11.EndOfMessage | h11.ConnectionClosed):
            content += event.data if isinstance(event, h11.Data) else b""
    except h11.RemoteProtocolError:
        return None
    return content


def failure_of(step: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(FetchFailed) as caught:
        step()
    assert SECRET not in str(caught.value) + repr(caught.value)
    return int(caught.value.status), caught.value.note


# -- bytes ------------------------------------------------------------------------------------------------------------


_TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8)
_END = st.sampled_from([b"\r\n", b"\n"])


@st.composite
def chunks(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A body in chunks, with extensions and trailers, and what it is without them."""
    raw = content = b""
    for piece in draw(st.lists(st.binary(min_size=1, max_size=40), max_size=5)):
        size = f"{len(piece):X}" if draw(st.booleans()) else f"00{len(piece):x}"
        extension = draw(st.sampled_from(["", ";a=b", " "]))
        raw += f"{size}{extension}\r\n".encode() + piece + b"\r\n"
        content += piece
    return raw + b"0\r\n" + draw(st.sampled_from([b"", b"X: y\r\n"])) + b"\r\n", content


@st.composite
def responses(draw: st.DrawFn) -> tuple[bytes, bytes, bytes, bytes]:
    """What comes before the final response, its head, its body as sent, and the body without its transfer coding."""
    end = draw(_END)
    interim = b"".join(
        end.join([b"HTTP/1.1 %d Wait" % status, b"X-Before: 1", b"", b""])
        for status in draw(st.lists(st.sampled_from([100, 102, 103]), max_size=3))
    )
    lines = [b"HTTP/1.1 200 OK", *(f"X-{name}:{draw(st.sampled_from(['', ' ', '  ']))}{value}".encode()
             for name, value in draw(st.lists(st.tuples(st.sampled_from("abc"), _TEXT), max_size=4)))]  # fmt: skip
    if draw(st.booleans()):
        lines.append(b"Odd : line\n folded")
    content = draw(st.binary(max_size=200))
    raw = content
    framing = draw(st.sampled_from(["length", "chunks", "end", "both"]))
    if framing in ("chunks", "both"):
        raw, content = draw(chunks())
        lines.insert(draw(st.integers(1, len(lines))), b"Transfer-Encoding: chunked")
    if framing in ("length", "both"):
        lines.insert(1, b"Content-Length: %d" % len(raw))
    return interim, end.join((*lines, b"", b"")), raw, content


@settings(max_examples=examples(300))
@given(responses(), st.lists(st.integers(0, 600), max_size=8))
def test_head_and_body_are_what_the_server_sent(response: tuple[bytes, bytes, bytes, bytes], cuts: list[int]) -> None:
    """After the responses of status 1xx, whatever the pieces in which the bytes come."""
    interim, head, raw, content = response
    sent = interim + head + raw
    places = sorted({0, *(cut for cut in cuts if cut < len(sent)), len(sent)})
    pieces = [sent[begin:end] for begin, end in itertools.pairwise(places)]

    def script(server: socket.socket) -> None:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        read_request(server)
        for piece in pieces:
            server.sendall(piece)

    with Scripted(script) as server:
        received = fetch(f"http://{server.address}/")
    assert (received.head, received.raw, received.cut) == (head, raw, "")
    assert content_of(received) == content


@settings(max_examples=examples(100))
@given(chunks(), st.data())
def test_a_cut_body_is_what_came_of_it(body: tuple[bytes, bytes], data: st.DataObject) -> None:
    raw, content = body
    sent = raw[: data.draw(st.integers(0, len(raw) - 1))]
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    with Scripted(say(head + sent)) as server:
        received = fetch(f"http://{server.address}/")
    assert (received.head, received.raw, received.cut) == (head, sent, Reason.TRUNCATED)
    head_read = parse_head(received.head)
    assert head_read is not None
    came: list[bytes] = []
    with contextlib.suppress(BadBody):
        came.extend(decoded(io.BytesIO(received.raw), head_read, len(received.raw)))
    assert content.startswith(b"".join(came))


_SCRAPS = st.lists(
    st.sampled_from([
        b"HTTP/1.1 200 OK", b"HTTP/1.1 100 Continue", b"HTTP/1.0 404 No", b"http/2 204", b"HTTP/1.1 20", b"\r\n",
        b"\r\n\r\n", b"\n", b"\r\r\n", b"\r", b"Content-Length: 3", b"Content-Length: 3, 4", b"Content-Length: -1",
        b"Content-Length: 99999999999999999999999", b"Content-Length : 3", b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: identity", b"Connection: close", b" folded", b":",
        b"X: \x00\xff", b"3\r\nabc\r\n", b"0\r\n\r\n", b"zz\r\n", b"abc", b"\0\0\0\4",
    ])
    | st.binary(max_size=12),
    max_size=14,
)  # fmt: skip


@settings(max_examples=examples(600))
@given(_SCRAPS, st.integers(0, 40))
def test_whatever_a_server_sends_is_kept_or_refused(scraps: list[bytes], most: int) -> None:
    """And read in the same way where it is read again, from a WARC file."""
    sent = b"HTTP/1.1 200 OK\r\n" + b"".join(scraps)
    with Scripted(say(sent)) as server:
        try:
            response = fetch(f"http://{server.address}/", FetchBounds(30.0, 60.0, most, public=False))
        except FetchFailed as failure:
            assert failure.note in (Reason.BAD_HEAD, Reason.CLOSED, Reason.RESET, Reason.HTTP2_ONLY)
            return
    assert response.head + response.raw in sent and not 0 < most < len(response.raw)
    head = parse_head(response.head)
    assert read_head(io.BytesIO(response.head + response.raw)) == response.head
    assert head is not None and head.status == response.status
    if not response.cut and response.status not in (204, 304):
        content = content_of(response)  # what is kept as whole can be read
        assert parsed_by_h11(response) in (content, None)


def test_a_response_says_all_that_is_known() -> None:
    head = b"HTTP/1.1 404 Not Found\r\nx-B: \xe9\r\nSet-Cookie: a\r\nset-cookie:  b \r\nContent-Length: 5\r\n\r\n"
    before = datetime.now(UTC)
    with Scripted(say(head + b"hello")) as server:
        response = fetch(f"http://{server.address}/")
    fields = (("x-B", "é"), ("Set-Cookie", "a"), ("set-cookie", "b"), ("Content-Length", "5"))
    assert (response.status, response.fields, response.address) == (404, fields, "127.0.0.1")
    assert before <= response.began <= datetime.now(UTC) and response.faults == ""


def test_the_content_coding_stays() -> None:
    packed = gzip.compress(b"hello")
    with Scripted(say(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed)) as server:
        assert fetch(f"http://{server.address}/").raw == packed


@pytest.mark.parametrize(
    ("response", "method"),
    [
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "GET"),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET"),
        (HEAD + b"Content-Length: 5\r\n\r\n", "HEAD"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", "HEAD"),
    ],
)
def test_no_body_is_waited_for(response: bytes, method: str) -> None:
    with Scripted(keep_saying(response, response)) as server, fetching() as fetcher:
        for _ in range(2):
            received = fetcher.fetch(HttpRequest(f"http://{server.address}/", method), BOUNDS)
            assert (received.head, received.raw, received.cut) == (response, b"", "")
        assert server.connections == 1


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 30,
        b"HTTP/1.1\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * LONGEST_HEAD + b"\r\n\r\n",
        b"\x16\x03\x01",
    ],
)
def test_what_is_no_head(response: bytes) -> None:
    with Scripted(say(response)) as server:
        assert failure_of(lambda: fetch(f"http://{server.address}/")) == (Status.INVALID_RESPONSE, Reason.BAD_HEAD)


def test_a_head_that_is_cut_off() -> None:
    with Scripted(say(HEAD)) as server:
        assert failure_of(lambda: fetch(f"http://{server.address}/")) == (Status.CONNECTION_LOST, Reason.CLOSED)


def test_the_first_frame_of_http2() -> None:
    with Scripted(say(bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))) as server:
        assert failure_of(lambda: fetch(f"http://{server.address}/")) == (Status.CONNECT_FAILED, Reason.HTTP2_ONLY)


def test_a_length_that_is_none_is_read_to_the_end() -> None:
    with Scripted(say(HEAD + b"Content-Length: five\r\n\r\nhello")) as server:
        response = fetch(f"http://{server.address}/")
    head = parse_head(response.head)
    assert response.raw == b"hello" and not response.cut and head is not None and head.has_bad_length


def test_lines_of_chunks_that_end_in_bare_lf_are_cut() -> None:
    raw = b"5\nhello\n0\n\n"
    with Scripted(say(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + raw)) as server:
        response = fetch(f"http://{server.address}/")
    assert (response.raw, response.cut) == (raw, Reason.TRUNCATED)


# -- requests ---------------------------------------------------------------------------------------------------------


def test_the_request() -> None:
    heads: list[bytes] = []

    def script(server: socket.socket) -> None:
        heads.append(read_request(server))
        heads.append(server.recv(4))
        server.sendall(WHOLE)

    fields = (
        ("X-One", " a b "),
        ("cookie", "c=d"),
        ("Host", "other"),
        ("CONNECTION", "close"),
        ("Accept-Encoding", "x"),
    )
    with Scripted(script) as server:
        fetch(f"http://{server.address}/a?b=%20", method="POST", fields=fields, body=b"body")
    assert heads == [
        f"POST /a?b=%20 HTTP/1.1\r\nHost: {server.address}\r\nX-One: a b\r\ncookie: c=d\r\n"
        "Accept-Encoding: gzip, deflate, br\r\nContent-Length: 4\r\nConnection: keep-alive\r\n\r\n".encode(),
        b"body",
    ]


@pytest.mark.parametrize(
    ("url", "more"),
    [
        ("ftp://127.0.0.1/", {}),
        ("/", {}),
        ("http://127.0.0.1:{}/", {"fields": (("X", f"a\r\nX-Other: {SECRET}"),)}),
        ("http://127.0.0.1:{}/", {"fields": ((f"X {SECRET}", "a"),)}),
        ("http://127.0.0.1:{}/", {"fields": (("X", f"\u2713{SECRET}"),)}),
        ("http://127.0.0.1:{}/", {"method": "CONNECT"}),
        ("http://127.0.0.1:{}/", {"method": "GET /"}),
    ],
)
def test_what_is_no_request_is_not_sent(url: str, more: dict[str, object]) -> None:
    heads: list[bytes] = []
    with Scripted(lambda server: heads.append(read_request(server))) as server:
        _, note = failure_of(lambda: fetch(url.format(server.port), **more))  # type: ignore[arg-type]
    assert note == Reason.BAD_REQUEST and not any(heads)


def test_nothing_written_of_a_request_has_its_secrets() -> None:
    request = HttpRequest("http://e.org/", "POST", (("Authorization", SECRET),), SECRET.encode())
    proxy = HttpProxy.parse(f"me:{SECRET}@proxy")
    assert SECRET not in repr(request) and proxy.authorization not in repr(proxy)
    assert SECRET not in repr(Proxies(f"http://me:{SECRET}@proxy"))


# -- connections ------------------------------------------------------------------------------------------------------


def test_one_connection_to_an_origin() -> None:
    """Another origin gets another one, and the first one is closed then."""
    with (
        Scripted(keep_saying(*[WHOLE] * 3)) as first,
        Scripted(keep_saying(*[WHOLE] * 3)) as second,
        fetching() as fetcher,
    ):
        for server in (first, first, second, second, first):
            assert fetcher.fetch(HttpRequest(f"http://{server.address}/"), BOUNDS).raw == b"hello"
        assert (first.connections, second.connections) == (2, 1)


@pytest.mark.parametrize(
    "response",
    [
        WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"),
        WHOLE + b"more than it says",
        WHOLE.replace(b"Content-Type:", b"Content-Type :"),
    ],
)
def test_a_connection_that_cannot_be_used_again_is_closed(response: bytes) -> None:
    def script(server: socket.socket) -> None:
        read_request(server)
        server.sendall(response)
        silent(server)

    with Scripted(script) as server, fetching() as fetcher:
        for _ in range(2):
            assert fetcher.fetch(HttpRequest(f"http://{server.address}/"), BOUNDS).raw == b"hello"
        assert server.connections == 2


@pytest.mark.parametrize("ends", [lambda _: None, scripted.reset])
def test_a_kept_connection_that_the_server_closes(ends: Callable[[socket.socket], None]) -> None:
    """Before the next request, or when it comes: a new connection has the response."""
    for waits in (False, True):

        def script(server: socket.socket, waits: bool = waits) -> None:
            read_request(server)
            server.sendall(WHOLE)
            if waits:
                read_request(server)
            ends(server)

        with Scripted(script) as server, fetching() as fetcher:
            for _ in range(2):
                assert fetcher.fetch(HttpRequest(f"http://{server.address}/"), BOUNDS).raw == b"hello"
            assert server.connections == 2


def test_what_may_change_something_is_sent_once() -> None:
    heads: list[bytes] = []

    def script(server: socket.socket) -> None:
        heads.append(read_request(server))
        server.sendall(WHOLE)
        heads.append(read_request(server))

    with Scripted(script) as server, fetching() as fetcher:
        url = f"http://{server.address}/"
        fetcher.fetch(HttpRequest(url), BOUNDS)
        assert failure_of(lambda: fetcher.fetch(HttpRequest(url, "POST"), BOUNDS))[1] == Reason.NO_ANSWER
    assert [head[:4] for head in heads] == [b"GET ", b"POST"]


def test_a_response_that_began_is_not_asked_for_again() -> None:
    def script(server: socket.socket) -> None:
        read_request(server)
        server.sendall(WHOLE)
        read_request(server)
        server.sendall(b"HTTP/1.1 200")

    with Scripted(script) as server, fetching() as fetcher:
        request = HttpRequest(f"http://{server.address}/")
        fetcher.fetch(request, BOUNDS)
        assert failure_of(lambda: fetcher.fetch(request, BOUNDS))[1] == Reason.CLOSED
        assert server.connections == 1


def test_all_addresses_of_a_name_are_tried() -> None:
    """localhost is ::1 and 127.0.0.1 on most machines, and a server is at the second one."""
    with Scripted(say(WHOLE)) as server:
        assert fetch(f"http://localhost:{server.port}/").address == "127.0.0.1"


def test_only_public_addresses() -> None:
    public = FetchBounds(30.0, 60.0, 0, public=True)
    refused = (int(Status.OUT_OF_SCOPE), Reason.PRIVATE_ADDRESS)
    with Scripted(keep_saying(WHOLE, WHOLE)) as server, fetching() as fetcher:
        fetcher.fetch(HttpRequest(f"http://{server.address}/"), BOUNDS)
        for host in ("127.0.0.1", "localhost", "[::1]", "0x7f.1", "[::ffff:127.0.0.1]"):
            request = HttpRequest(f"http://{host}:{server.port}/")
            assert failure_of(partial(fetcher.fetch, request, public)) == refused, host
        assert server.connections == 1, "a kept connection is none to a public address either"


def test_behind_a_proxy_addresses_in_urls_are_judged() -> None:
    public = FetchBounds(30.0, 60.0, 0, public=True)
    with Scripted(keep_saying(WHOLE, WHOLE)) as proxy, fetching(proxy=f"http://{proxy.address}") as fetcher:
        response = fetcher.fetch(HttpRequest("http://a.example/"), public)
        assert (response.raw, response.address) == (b"hello", "")
        assert failure_of(lambda: fetcher.fetch(HttpRequest("http://127.0.0.1/"), public))[1] == Reason.PRIVATE_ADDRESS


def test_what_was_not_checked_is_not_used_where_a_check_is_wanted(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority(tmp_path).issue("localhost"))
    with Scripted(secured(context, keep_saying(WHOLE, WHOLE))) as server, fetching() as fetcher:
        request = HttpRequest(f"https://localhost:{server.port}/")
        unchecked = FetchBounds(30.0, 60.0, 0, public=False, checked=False)
        for _ in range(2):
            assert fetcher.fetch(request, unchecked).faults == Reason.TLS_ISSUER
        assert server.connections == 2, "the first one was the check"
        assert failure_of(lambda: fetcher.fetch(request, BOUNDS))[1] == Reason.TLS_ISSUER


@pytest.mark.parametrize("ca", ["missing.pem", "no.pem"])
def test_a_file_of_authorities_that_is_none_is_told(tmp_path: Path, ca: str) -> None:
    (tmp_path / "no.pem").write_text("no certificate\n")
    with Scripted(silent) as server:
        fetcher = HttpFetcher(Connector(ca=str(tmp_path / ca), bind="", proxies=Proxies()))
        request = HttpRequest(f"https://localhost:{server.port}/")
        assert failure_of(lambda: fetcher.fetch(request, BOUNDS)) == (Status.CONNECT_FAILED, Reason.TLS_ISSUER)


# -- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framing", ["length", "chunks", "end"])
@pytest.mark.parametrize(("most", "cut"), [(300_000, False), (299_999, True), (10, True)])
def test_the_bound_of_a_body_holds_to_the_byte(framing: str, most: int, cut: bool) -> None:
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (300_000 - 14, b"x" * (300_000 - 14))
    body = chunked if framing == "chunks" else b"x" * 300_000
    field = {"length": b"Content-Length: 300000\r\n", "chunks": b"Transfer-Encoding: chunked\r\n", "end": b""}[framing]
    assert len(body) == 300_000
    with Scripted(say(HEAD + field + b"\r\n" + body)) as server:
        response = fetch(f"http://{server.address}/", FetchBounds(30.0, 60.0, most, public=False))
    assert response.cut == (Reason.TOO_BIG if cut else "")
    whole = b"" if framing == "length" and cut else body[:most]
    assert response.raw == whole, "of a length that is too large nothing is read"


def test_a_body_that_comes_for_ever() -> None:
    def script(server: socket.socket) -> None:
        read_request(server)
        server.sendall(HEAD + b"\r\n")
        while True:
            server.sendall(b"x" * 1000)

    with Scripted(script) as server:
        slow = FetchBounds(30.0, 3.0, 0, public=False, speed=10_000)
        response = fetch(f"http://{server.address}/", slow)
    assert response.cut == Reason.TIME_LIMIT and 0 < len(response.raw) < 100_000


def test_a_server_that_sends_nothing_for_the_whole_time() -> None:
    with Scripted(silent) as server:
        bounds = FetchBounds(30.0, 0.2, 0, public=False)
        assert failure_of(lambda: fetch(f"http://{server.address}/", bounds)) == (Status.TIME_LIMIT, Reason.TIME_LIMIT)


# -- proxies and certificates, pure -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "proxy"),
    [
        ("http://p.example:3128", HttpProxy("p.example", 3128)),
        ("p.example", HttpProxy("p.example", 80)),
        ("http://[::1]:8080/", HttpProxy("::1", 8080)),
        ("http://u:p%3A@p.example/", HttpProxy("p.example", 80, "Basic dTpwOg==")),
    ],
)
def test_the_url_of_a_proxy(text: str, proxy: HttpProxy) -> None:
    assert HttpProxy.parse(text) == proxy


@pytest.mark.parametrize("text", ["socks5://p:1", "https://p:1", "http://", "http://a b", f"ftp://u:{SECRET}@p"])
def test_what_is_no_proxy(text: str) -> None:
    with pytest.raises(ValueError, match="a proxy is no URL") as caught:
        HttpProxy.parse(text)
    assert SECRET not in str(caught.value)
    with pytest.raises(FetchFailed):
        Proxies("", {"http_proxy": text}).for_origin(HttpOrigin("http", "e.org", 80))


@pytest.mark.parametrize(
    ("names", "host", "is_named"),
    [
        ((("DNS", "e.org"),), "e.org", True),
        ((("DNS", "*.e.org"),), "a.e.org", True),
        ((("DNS", "*.e.org"),), "e.org", False),
        ((("DNS", "*.e.org"),), "a.b.e.org", False),
        ((("DNS", "*"),), "org", False),
        ((("DNS", "127.0.0.1"),), "127.0.0.1", False),
        ((("IP Address", "127.0.0.1"),), "127.0.0.1", True),
        ((("IP Address", "0:0:0:0:0:0:0:1"),), "::1", True),
        ((), "e.org", True),
    ],
)
def test_the_names_of_a_certificate(names: tuple[tuple[str, str], ...], host: str, is_named: bool) -> None:
    certificate = {
        "subject": ((("commonName", "e.org"),),),
        "subjectAltName": names,
        "notBefore": "Jan  1 00:00:00 2020 GMT",
        "notAfter": "Jan  1 00:00:00 2030 GMT",
    }
    assert (Reason.TLS_HOST not in faults_in(certificate, host, 1.7e9)) == is_named


@pytest.mark.parametrize("end", ["Bad time value", "Jan  1 00:00:00.5 2030 GMT", ""])
def test_a_certificate_whose_dates_are_none(end: str) -> None:
    names = (("DNS", "e.org"),)
    certificate = {"subjectAltName": names, "notBefore": "Jan  1 00:00:00 2020 GMT", "notAfter": end}
    assert faults_in(certificate, "e.org", 1.7e9) == set()
    assert faults_in(certificate, "other.org", 1.7e9) == {Reason.TLS_HOST}


def test_a_value_keeps_its_bytes() -> None:
    """A letter in UTF-8 may end with a byte that Latin-1 takes for a blank."""
    heads: list[bytes] = []

    def script(server: socket.socket) -> None:
        heads.append(read_request(server))
        server.sendall(WHOLE)

    value = "a=à".encode().decode("latin-1")
    with Scripted(script) as server:
        fetch(f"http://{server.address}/", fields=(("Cookie", f" {value}\t"),))
    assert b"\r\nCookie: a=\xc3\xa0\r\n" in heads[0]
