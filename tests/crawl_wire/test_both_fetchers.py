"""The two fetchers take servers, proxies, addresses and certificates alike: one suite for wget and our own fetcher.

They differ where wget stops and ours returns what came: a cut body has another word. The tables name both.
"""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import scripted
from tests.support.fetching import FETCHERS, Fetched, Fetcher
from tests.support.scripted import Records, Script, Scripted, keep_saying, read_request, say, secured, silent
from tests.support.secure import Authority, SecureHosts
from tests.support.site import Site
from tests.support.wire import nobody_there
from webarcfs.archive.config.settings import CrawlSettings

pytestmark = pytest.mark.crawl

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
BODY = b"<p>hello"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
WHOLE = HEAD + LENGTH + b"Connection: close\r\n\r\n" + BODY
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
#: The names of a certificate for servers of these tests.
HERE = "localhost,IP:127.0.0.1,IP:::1"


@dataclass(frozen=True)
class One:
    """One of the fetchers, with a folder of its own."""

    name: str
    fetch: Fetcher
    folder: Path

    def ask(self, script: Script, *, scheme: str = "http", checked: bool = True, **settings: object) -> Fetched:
        """Ask a server that follows a script for its home page."""
        with Scripted(script) as server:
            return self.get(f"{scheme}://{server.address}/", checked=checked, **settings)

    def get(
        self, url: str, *, checked: bool = True, environment: dict[str, str] | None = None, **settings: object
    ) -> Fetched:
        """Ask for a URL."""
        how = CrawlSettings(**{"timeout": 30.0, **settings})  # type: ignore[arg-type]
        return self.fetch(self.folder, url, how, checked=checked, environment=environment or {})


@pytest.fixture(params=list(FETCHERS))
def one(request: pytest.FixtureRequest, tmp_path: Path) -> One:
    return One(request.param, FETCHERS[request.param], tmp_path / "fetched")


# -- responses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "response",
    [
        WHOLE,
        HEAD + b"\r\n" + BODY,
        HEAD + LENGTH + b"\r\n" + BODY,
        b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + BODY,
        WHOLE.replace(b"\r\n", b"\n"),
        WHOLE.replace(b"\r\n", b"\r\r\n"),
        WHOLE.replace(b"Content-Type:", b"X: a\r\n b\r\nContent-Type:"),
        WHOLE.replace(b"Content-Type:", b"X : a\r\nno field\r\n\xe9: \xe9\r\nContent-Type:"),
        WHOLE.replace(b"200 OK", b"200"),
        WHOLE.replace(b"HTTP/1.1 200 OK", b"HTTP/1.1 200OK"),
        WHOLE.replace(b"HTTP/1.1 200", b"HTTP/2 200"),
        HEAD + LENGTH + LENGTH + b"\r\n" + BODY,
        HEAD + LENGTH + b"Content-Length: 99\r\n\r\n" + BODY,
        HEAD + LENGTH + b"Transfer-Encoding: identity\r\n\r\n" + BODY,
        HEAD + LENGTH + b"\r\n" + BODY + b"<p>more than it says",
        CHUNKED + b"3\r\n<p>\r\n5;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + WHOLE,
    ],
)
def test_heads_and_framings_of_the_real_web(one: One, response: bytes) -> None:
    assert one.ask(say(response)) == Fetched(200, frozenset(), BODY)


def test_a_response_without_a_body(one: One) -> None:
    assert one.ask(keep_saying(b"HTTP/1.1 204 No Content\r\n\r\n")) == Fetched(204, frozenset())


@pytest.mark.parametrize(
    ("script", "by_wget", "by_us"),
    [
        (say(HEAD + b"Content-Length: 99\r\n\r\n" + BODY), "truncated", "truncated"),
        (say(CHUNKED + b"5\r\nhello\r\n"), "closed", "truncated"),
        (say(CHUNKED + b"5\r\nhello\r\nzz\r\n"), "closed", "truncated"),
        (
            lambda server: (read_request(server), server.sendall(HEAD + b"Content-Length: 99\r\n\r\n"), silent(server)),
            "timeout",
            "time-limit",
        ),
    ],
)
def test_half_a_body(one: One, script: Script, by_wget: str, by_us: str) -> None:
    fetched = one.ask(script, timeout=1.0 if by_wget == "timeout" else 20.0)
    assert fetched.words == {by_wget if one.name == "wget" else by_us}
    assert (fetched.status > 0) == (one.name != "wget"), "ours returns what came, and says that it is cut"


@pytest.mark.parametrize(
    ("script", "status", "word"),
    [
        (say(), -3, "no-answer"),
        (lambda server: (read_request(server), scripted.reset(server)), -3, "reset"),
        (silent, -4, "timeout"),
        (say(BODY + b" without a head"), -404, "bad-head"),
    ],
)
def test_no_response(one: One, script: Script, status: int, word: str) -> None:
    assert one.ask(script, timeout=1.0 if word == "timeout" else 20.0) == Fetched(status, frozenset({word}))


def test_nobody_there(one: One) -> None:
    with nobody_there() as address:
        assert one.get(f"http://{address}/") == Fetched(-2, frozenset({"connection-refused"}))


def test_a_name_that_does_not_exist(one: One) -> None:
    assert one.get("http://nobody.invalid/") == Fetched(-1, frozenset({"dns"}))


def test_redirects_and_strict_transport_security_are_not_followed(one: One) -> None:
    moved = (
        b"HTTP/1.1 302 Found\r\nLocation: /there\r\nStrict-Transport-Security: max-age=9\r\nSet-Cookie: a=b\r\n"
        b"Content-Length: 0\r\n\r\n"
    )
    heads: list[bytes] = []

    def script(server: socket.socket) -> None:
        while head := read_request(server):
            heads.append(head)
            server.sendall(moved)

    with Scripted(script) as server:
        for _ in range(2):
            assert one.get(f"http://{server.address}/").status == 302
    assert len(heads) == 2 and all(head.startswith(b"GET / HTTP/1.1\r\n") for head in heads)


def test_a_page_beyond_the_bound(one: One) -> None:
    fetched = one.ask(say(HEAD + b"\r\n" + BODY * 1000), max_file_size=100)
    assert fetched.words == {"too-big"}


# -- addresses --------------------------------------------------------------------------------------------------------


def test_ipv6(one: One) -> None:
    with Scripted(say(WHOLE), host="::1") as server:
        assert one.get(f"http://{server.address}/").body == BODY
        assert server.peers == ["::1"]


def test_a_local_address(one: One) -> None:
    with Scripted(say(WHOLE)) as server:
        assert one.get(f"http://{server.address}/", bind="127.0.0.9").body == BODY
        assert one.get(f"http://{server.address}/").body == BODY
        assert server.peers == ["127.0.0.9", "127.0.0.1"]


def test_an_address_of_another_machine(one: One) -> None:
    with Scripted(say(WHOLE)) as server:
        assert one.get(f"http://{server.address}/", bind="192.0.2.1") == Fetched(-2, frozenset({"connect-failed"}))
        assert not server.connections


# -- proxies ----------------------------------------------------------------------------------------------------------


def _credentials(head: bytes) -> bytes:
    """What a head shows to a proxy, decoded; empty for nothing."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"proxy-authorization":
            return base64.b64decode(value.strip().removeprefix(b"Basic "))
    return b""


def test_a_proxy_of_the_setting(one: One) -> None:
    with Site() as proxy:
        proxy.add("/a?b", BODY, host="a.example")
        assert one.get("http://a.example/a?b", proxy=proxy.proxy).body == BODY
        (request,) = proxy.requests
        assert request.proxied and (request.host, request.path) == ("a.example", "/a?b")
        assert not _credentials(request.head)


def test_a_proxy_of_the_environment_with_a_password(one: One) -> None:
    with Site() as proxy:
        proxy.add("/", BODY, host="a.example")
        variables = {"http_proxy": f"http://me:p%40ss@{proxy.host}/"}
        assert one.get("http://a.example/", environment=variables).body == BODY
        assert _credentials(proxy.requests[0].head) == b"me:p@ss"
        assert one.get("http://a.example/", environment={"http_proxy": proxy.host}).body == BODY, "without its scheme"
        assert not _credentials(proxy.requests[1].head)


def test_the_setting_takes_the_place_of_the_environment(one: One) -> None:
    with Site() as proxy, nobody_there() as nobody:
        proxy.add("/", BODY, host="a.example")
        variables = {"http_proxy": f"http://{nobody}/"}
        assert one.get("http://a.example/", environment=variables, proxy=proxy.proxy).body == BODY
        assert one.get("http://a.example/", environment=variables).words == {"connection-refused"}


@pytest.mark.parametrize(("no_proxy", "direct"), [("127.0.0.1", True), ("x.org, 0.0.1", True), ("7.0.0.1", False)])
def test_hosts_without_a_proxy(one: One, no_proxy: str, direct: bool) -> None:
    with Scripted(say(WHOLE)) as server, Site() as proxy:
        one.get(f"http://{server.address}/", proxy=proxy.proxy, environment={"no_proxy": no_proxy})
        assert (server.connections, len(proxy.requests)) == ((1, 0) if direct else (0, 1))


def test_a_tunnel_with_a_password(one: One, tls: Certificates) -> None:
    heads: list[bytes] = []

    def proxy(server: socket.socket) -> None:
        heads.append(read_request(server))
        server.sendall(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")
        secured(tls.context("fine", names="a.example"), say(WHOLE))(server)

    with Scripted(proxy) as running:
        variables = {"https_proxy": f"http://me:word@{running.address}/"}
        assert one.get("https://a.example/secret", environment=variables, ca=tls.ca).body == BODY
    (head,) = heads
    assert head.startswith(b"CONNECT a.example:443 HTTP/1.1\r\n") and b"secret" not in head
    assert _credentials(head) == b"me:word"


@pytest.mark.parametrize("status", ["407 Proxy Authentication Required", "502 Bad Gateway"])
def test_a_tunnel_that_is_denied(one: One, status: str) -> None:
    with Scripted(say(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())) as proxy:
        fetched = one.get("https://a.example/", proxy=f"http://{proxy.address}")
    assert fetched == Fetched(-2, frozenset({"connect-failed"}))


def test_certificates_behind_a_proxy(one: One, tls: Certificates, tmp_path: Path) -> None:
    own = {"a.example": tls.pem("fine", names="a.example"), "b.example": tls.pem("old", years=(2020, 2021))}
    with SecureHosts(tmp_path, lambda *_: WHOLE, own) as hosts:
        assert one.get("https://a.example/", proxy=hosts.proxy, ca=tls.ca).body == BODY
        assert one.get("https://b.example/", proxy=hosts.proxy, ca=tls.ca).words == {"tls:expired", "tls:host"}
        assert one.get("https://c.example/", proxy=hosts.proxy, ca=tls.ca).words == {"tls:host", "tls:issuer"}


# -- certificates -----------------------------------------------------------------------------------------------------


class Certificates:
    """Certificates of all kinds, each made once."""

    def __init__(self, folder: Path) -> None:
        self._authority, self._other = Authority(folder), Authority(folder, "other")
        self.ca = str(self._authority.file)
        self._files: dict[str, Path] = {}

    def pem(self, kind: str, *, known: bool = True, names: str = HERE, years: tuple[int, int] = (2020, 2049)) -> Path:
        """Key and certificate of a kind."""
        if kind not in self._files:
            issuer = self._authority if known else self._other
            self._files[kind] = issuer.issue(kind, names=names, years=years)
        return self._files[kind]

    def context(
        self, kind: str, *, known: bool = True, names: str = HERE, years: tuple[int, int] = (2020, 2049)
    ) -> ssl.SSLContext:
        """TLS of a server with a certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pem(kind + names[:6], known=known, names=names, years=years))
        return context


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Certificates]:
    yield Certificates(tmp_path_factory.mktemp("tls"))


FAULTS = {
    "expired": ({"years": (2020, 2021)}, {"tls:expired"}),
    "early": ({"years": (2040, 2041)}, {"tls:expired"}),
    "host": ({"names": "other.test"}, {"tls:host"}),
    "issuer": ({"known": False}, {"tls:issuer"}),
    "expired-host": ({"years": (2020, 2021), "names": "other.test"}, {"tls:expired", "tls:host"}),
    "all": ({"known": False, "years": (2020, 2021), "names": "*.test"}, {"tls:expired", "tls:host", "tls:issuer"}),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_what_is_wrong_with_a_certificate(one: One, tls: Certificates, kind: str) -> None:
    how, words = FAULTS[kind]
    heads: list[bytes] = []

    def script(server: socket.socket) -> None:
        heads.append(read_request(server))
        server.sendall(WHOLE)

    context = tls.context(kind, **how)  # type: ignore[arg-type]
    assert one.ask(secured(context, script), scheme="https", ca=tls.ca) == Fetched(-2, frozenset(words))
    assert not any(heads), "nothing was sent"
    unchecked = one.ask(secured(context, script), scheme="https", ca=tls.ca, checked=False)
    assert unchecked == Fetched(200, frozenset(words), BODY)


def test_a_certificate_that_signed_itself(one: One, tls: Certificates, tmp_path: Path) -> None:
    own = Authority(tmp_path, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.file, own.file.with_name("ca.key"))
    served = secured(context, say(WHOLE))
    with Scripted(served) as server:
        url = f"https://localhost:{server.port}/"
        assert one.get(url, ca=tls.ca) == Fetched(-2, frozenset({"tls:issuer"}))
        assert one.get(url, ca=str(own.file)).body == BODY, "its owner may trust it"


@pytest.mark.parametrize("checked", [True, False])
def test_a_certificate_of_our_own_authority(one: One, tls: Certificates, checked: bool) -> None:
    served = secured(tls.context("fine"), say(WHOLE))
    assert one.ask(served, scheme="https", ca=tls.ca, checked=checked) == Fetched(200, frozenset(), BODY)


def test_an_authority_that_is_not_named(one: One, tls: Certificates) -> None:
    fetched = one.ask(secured(tls.context("fine"), say(WHOLE)), scheme="https")
    assert fetched == Fetched(-2, frozenset({"tls:issuer"}))


def _reset_after_hello(server: socket.socket) -> None:
    server.recv(1)  # before it, the connection may not count as made
    scripted.reset(server)


@pytest.mark.parametrize("script", [say(WHOLE), silent, _reset_after_hello, lambda server: server.recv(4096)])
def test_no_tls_is_spoken(one: One, script: Script) -> None:
    seconds = 1.0 if script is silent else 20.0
    assert one.ask(script, scheme="https", timeout=seconds) == Fetched(-2, frozenset({"tls:handshake"}))


def test_a_server_of_http2_alone(one: One) -> None:
    """Its alert is no_application_protocol (RFC 7301)."""

    def script(server: socket.socket) -> None:
        server.recv(4096)
        server.sendall(b"\x15\x03\x03\x00\x02\x02\x78")

    assert one.ask(script, scheme="https") == Fetched(-2, frozenset({"http2-only"}))


@pytest.mark.parametrize("framing", [b"Content-Length: 3000\r\n\r\n", b"\r\n"])
@pytest.mark.parametrize("missing", [1, 20])
def test_a_connection_that_ends_amid_a_record(one: One, tls: Certificates, framing: bytes, missing: int) -> None:
    context = tls.context("fine")

    def script(server: socket.socket) -> None:
        records = Records(server, context)
        server.sendall(records.of(HEAD + framing) + records.of(b"x" * 3000)[:-missing])

    fetched = one.ask(script, scheme="https", ca=tls.ca)
    assert fetched.words == {"closed" if one.name == "wget" else "truncated"}


def test_a_connection_that_ends_without_the_goodbye_of_tls(one: One, tls: Certificates) -> None:
    """A body whose end nothing else shows may be cut off (RFC 9112 section 9.8); another one is whole."""
    context = tls.context("fine")

    def ending(response: bytes) -> Script:
        return lambda server: server.sendall(Records(server, context).of(response))

    cut = one.ask(ending(HEAD + b"\r\n" + BODY), scheme="https", ca=tls.ca)
    assert cut.words == {"closed" if one.name == "wget" else "truncated"}
    assert one.ask(ending(WHOLE), scheme="https", ca=tls.ca) == Fetched(200, frozenset(), BODY)
