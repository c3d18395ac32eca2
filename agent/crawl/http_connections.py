"""Connections to servers and proxies for the HTTP fetcher: look-ups, TLS, and what is wrong with a certificate.

`public` holds without a gap: the address that was judged is the one that is connected to, and no second look-up is
made. A proxy looks names up itself, so only addresses in URLs are judged there, as for wget.

Proxies are chosen as wget does: `http_proxy` and `https_proxy` of the environment by the scheme of the URL, or the
setting in place of both; hosts of `no_proxy` are asked directly. Their password is sent to them alone.

OpenSSL ends with the first fault of a certificate, and wget names all. So a certificate that was rejected is looked at
once more without another connection: its dates and its names. If the crawl takes any certificate, a second connection
follows, which checks nothing.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import ipaddress
import queue
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from agent.crawl.scope import PRIVATE_ADDRESS, host_of, is_private, is_private_host
from agent.crawl.vocabulary import CERTIFICATE_FAULTS, Reason, Status
from webarcfs.archive.model.errors import FetchFailed
from webarcfs.archive.model.sites import split_port
from webarcfs.archive.model.urls import DEFAULT_PORTS, Url
from webarcfs.warc.http_response import parse_head

# == bounds ===========================================================================================================


class Pace:
    """When the next bytes may come, so that all exchanges that share it keep to a speed. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0.0

    @property
    def ahead(self) -> float:
        """The seconds until more may be received; 0 or less is now."""
        return self._next - time.monotonic()

    def note(self, received: int, speed: int) -> None:
        """Note so many bytes, of which `speed` may come in a second."""
        with self._lock:
            self._next = max(self._next, time.monotonic()) + received / speed


@dataclass(frozen=True, slots=True)
class FetchBounds:
    """The bounds of one exchange.

    `timeout` is in seconds in which nothing comes, `seconds` for the whole exchange. `most` is in bytes of the body as
    it is sent, `speed` in bytes a second; 0 is no bound. With `public` only public addresses are connected to. If
    certificates are not `checked`, any is taken, and the response says what is wrong with it. Exchanges with one `pace`
    have the speed together; None: this one has it alone.
    """

    timeout: float
    seconds: float
    most: int
    public: bool
    checked: bool = True
    speed: int = 0
    pace: Pace | None = None


class FetchDeadline:
    """How long an exchange may still wait."""

    def __init__(self, bounds: FetchBounds) -> None:
        self._timeout = bounds.timeout
        self._end = time.monotonic() + bounds.seconds

    @property
    def left(self) -> float:
        """The seconds until its end, 0 or more."""
        return max(0.0, self._end - time.monotonic())

    def patience(self) -> float:
        """Return the seconds that one wait may take, more than 0. Raises TimeoutError at the end."""
        left = self.left
        if not left:
            raise TimeoutError
        return min(self._timeout, left)

    def expiry_error(self) -> FetchFailed:
        """Return the error for a wait that took too long: for the whole exchange, or since nothing came."""
        if not self.left:
            return FetchFailed(Status.TIME_LIMIT, Reason.TIME_LIMIT)
        return FetchFailed(Status.TIMEOUT, Reason.TIMEOUT)


# == origins and proxies ==============================================================================================


@dataclass(frozen=True, slots=True)
class HttpOrigin:
    """A scheme, a host (an IPv6 address without brackets) and a port."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: Url) -> HttpOrigin:
        """Return the origin of a URL."""
        port = split_port(url.domain)[2] or DEFAULT_PORTS[url.scheme]
        return cls(url.scheme, host_of(url.domain), int(port))

    @property
    def authority(self) -> str:
        """Host and port, for CONNECT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HttpProxy:
    """A proxy. `authorization` is the value of Proxy-Authorization; empty for none. No text of it is ever written."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: str) -> HttpProxy:
        """Return the proxy of a URL, `http://` before it or not. Raises ValueError, without the URL in its text."""
        scheme, sign, rest = text.strip().rpartition("://")
        userinfo, at, address = rest.partition("/")[0].rpartition("@")
        match = _ADDRESS.fullmatch(address)
        if (sign and scheme.lower() != "http") or match is None:
            raise ValueError("a proxy is no URL such as http://proxy.example.org:3128")
        user, colon, password = userinfo.partition(":")
        authorization = _basic(unquote(user), unquote(password)) if at and colon else ""
        return cls(match[1].strip("[]"), int(match[2] or 80), authorization)


_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/?#\[\]@]+)(?::([0-9]{1,5}))?")


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode('ascii')}"


@dataclass(frozen=True, slots=True)
class Proxies:
    """Which proxy is for which origin: that of the setting, or those of the environment. `no_proxy` holds for both."""

    setting: str = field(default="", repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def for_origin(self, origin: HttpOrigin) -> HttpProxy | None:
        """Return the proxy for an origin, or None. Raises FetchFailed if its URL cannot be used."""
        if _is_excluded(origin.host, self.environment.get("no_proxy", "")):
            return None
        text = self.setting or self.environment.get(f"{origin.scheme}_proxy", "")
        try:
            return HttpProxy.parse(text) if text.strip() else None
        except ValueError:
            raise FetchFailed(Status.CONNECT_FAILED, Reason.CONNECT_FAILED) from None


def _is_excluded(host: str, no_proxy: str) -> bool:
    """Return whether a host is one of `no_proxy`: itself, or the end of its name after a dot."""
    suffixes = (suffix.strip().lower() for suffix in no_proxy.split(","))
    return any(host == suffix or host.endswith(f".{suffix.removeprefix('.')}") for suffix in suffixes if suffix)


# == certificates =====================================================================================================


_CERTIFICATE_FAULTS = frozenset(CERTIFICATE_FAULTS)
#: Of X509_V_ERR_… (openssl-verify(1)).
_EXPIRED = frozenset({9, 10})
_OTHER_HOST = frozenset({62, 64})
_UNTRUSTED = frozenset({2, 18, 19, 20, 21, 24, 27})
#: SSL_OP_LEGACY_SERVER_CONNECT: servers without RFC 5746, which browsers and wget take. Nothing here renegotiates.
_LEGACY_SERVER_CONNECT = 0x4


def make_context(ca: str, *, checked: bool) -> ssl.SSLContext:
    """Return the settings of TLS: HTTP/1.1 alone, the system's authorities and those of the file `ca`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    # A body that is cut off must not look like one that ended.
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    context.options |= _LEGACY_SERVER_CONNECT
    if not checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    context.load_default_certs()
    if ca:
        context.load_verify_locations(cafile=ca)
        # `ca` may have the missing part of a chain, or the server's own certificate.
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    return context


def _faults_of(secured: ssl.SSLSocket, error: ssl.SSLCertVerificationError, host: str) -> str:
    """Return what is wrong with a certificate that was rejected, in the words of crawl.log."""
    code = error.verify_code
    words = {
        word
        for word, codes in (
            (Reason.TLS_EXPIRED, _EXPIRED),
            (Reason.TLS_HOST, _OTHER_HOST),
            (Reason.TLS_ISSUER, _UNTRUSTED),
        )
        if code in codes
    }
    certificate = _sent_certificate(secured)
    if certificate:
        words |= faults_in(certificate, host, time.time())
    return ",".join(word for word in CERTIFICATE_FAULTS if word in (words or {Reason.TLS}))


def _sent_certificate(secured: ssl.SSLSocket) -> dict[str, Any]:
    """Return the server's certificate after a failed handshake; empty where this Python does not give it.

    No public function of Python 3.11 does.
    """
    inner: Any = getattr(secured, "_sslobj", None)
    with contextlib.suppress(AttributeError, ValueError, TypeError, IndexError, OSError):
        return dict(inner.get_unverified_chain()[0].get_info())
    return {}


def faults_in(certificate: Mapping[str, Any], host: str, now: float) -> set[Reason]:
    """Return what a certificate (`SSLSocket.getpeercert`) itself shows: its dates and its names."""
    words: set[Reason] = set()
    with contextlib.suppress(KeyError, ValueError):  # a server may send dates that are none
        begin, end = (ssl.cert_time_to_seconds(str(certificate[key])) for key in ("notBefore", "notAfter"))
        if not begin <= now <= end:
            words.add(Reason.TLS_EXPIRED)
    names = certificate.get("subjectAltName", ())
    if not names:
        names = [
            ("DNS", value) for part in certificate.get("subject", ()) for key, value in part if key == "commonName"
        ]
    if not any(_is_named(host, kind, str(name)) for kind, name in names):
        words.add(Reason.TLS_HOST)
    return words


def _is_named(host: str, kind: str, name: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        label, dot, rest = name.lower().partition(".")
        is_any = label == "*" and bool(dot) and rest == host.partition(".")[2]
        return kind == "DNS" and (name.lower() == host or is_any)
    try:
        return kind == "IP Address" and ipaddress.ip_address(name.strip()) == address
    except ValueError:
        return False


# == connections ======================================================================================================


_LONGEST_PROXY_HEAD = 1 << 16
_MOST_PROXY_HEADS = 10
_END_OF_HEAD = re.compile(rb"\n\r?\n")
#: The error of several addresses that counts: as wget's log is read.
_CONNECT_ERRORS = (
    (frozenset({errno.ECONNREFUSED}), Reason.CONNECTION_REFUSED),
    (frozenset({errno.ETIMEDOUT}), Reason.CONNECT_TIMEOUT),
    (frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH}), Reason.UNREACHABLE),
)


@dataclass(slots=True, eq=False)
class HttpConnection:
    """An open connection. `faults` is what is wrong with a certificate that was taken all the same.

    `address` is that of the server, or of the proxy if it is `proxied`.
    """

    socket: socket.socket
    address: str
    proxied: bool = False
    faults: str = ""

    def close(self) -> None:
        """Close it."""
        with contextlib.suppress(OSError):
            self.socket.close()


class Connector:
    """Opens connections. Several threads may use it.

    `ca` is a file of authorities beside the system's, `bind` a local address.
    """

    def __init__(self, *, ca: str, bind: str, proxies: Proxies) -> None:
        self._ca = ca
        self._bind = bind
        self._proxies = proxies

    def proxy_for(self, origin: HttpOrigin) -> HttpProxy | None:
        """Return the proxy for an origin, or None."""
        return self._proxies.for_origin(origin)

    def open(self, origin: HttpOrigin, bounds: FetchBounds, deadline: FetchDeadline) -> HttpConnection:
        """Connect to an origin, or to its proxy. Raises FetchFailed."""
        try:
            try:
                return self._open(origin, bounds, deadline, checked=True)
            except FetchFailed as failure:
                if bounds.checked or not _CERTIFICATE_FAULTS.issuperset(failure.note.split(",")):
                    raise
                faults = failure.note
            connection = self._open(origin, bounds, deadline, checked=False)
        except TimeoutError:
            raise deadline.expiry_error() from None
        except OSError:  # the file of `ca` cannot be read, or is none
            raise FetchFailed(Status.CONNECT_FAILED, Reason.TLS_ISSUER) from None
        connection.faults = faults
        return connection

    @cached_property
    def _checked(self) -> ssl.SSLContext:
        return make_context(self._ca, checked=True)

    @cached_property
    def _unchecked(self) -> ssl.SSLContext:
        return make_context(self._ca, checked=False)

    def open_plain(self, origin: HttpOrigin, bounds: FetchBounds, deadline: FetchDeadline) -> HttpConnection:
        """Connect to an origin without TLS: to its proxy for http, through its proxy for https.

        Raises FetchFailed, TimeoutError.
        """
        proxy = self.proxy_for(origin)
        if bounds.public and is_private_host(origin.host):
            raise FetchFailed(PRIVATE_ADDRESS.status, PRIVATE_ADDRESS.reason)
        target = (origin.host, origin.port) if proxy is None else (proxy.host, proxy.port)
        plain, address = self._connect(*target, deadline, public=bounds.public and proxy is None)
        connection = HttpConnection(plain, address, proxy is not None)
        try:
            if origin.scheme == "https" and proxy is not None:
                _tunnel(plain, origin, proxy, deadline)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(
        self, origin: HttpOrigin, bounds: FetchBounds, deadline: FetchDeadline, *, checked: bool
    ) -> HttpConnection:
        connection = self.open_plain(origin, bounds, deadline)
        try:
            if origin.scheme == "https":
                context = self._checked if checked else self._unchecked
                connection.socket = _secure(connection.socket, origin.host, context, deadline)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, host: str, port: int, deadline: FetchDeadline, *, public: bool) -> tuple[socket.socket, str]:
        """Connect to the first address of a host that takes the connection; return that as well."""
        addresses = _look_up(host, port, deadline)
        if public and any(is_private(str(address[0])) for _, address in addresses):
            raise FetchFailed(PRIVATE_ADDRESS.status, PRIVATE_ADDRESS.reason)
        if self._bind:
            family = socket.AF_INET6 if ":" in self._bind else socket.AF_INET
            addresses = [address for address in addresses if address[0] == family]
        errors = {errno.EHOSTUNREACH} if not addresses else set()
        end = time.monotonic() + deadline.patience()
        for number, (family, address) in enumerate(addresses):
            share = (end - time.monotonic()) / (len(addresses) - number)
            if share <= 0:
                break
            try:
                connection = self._connect_to(family, address, share)
            except OSError as error:
                errors.add(errno.ETIMEDOUT if isinstance(error, TimeoutError) else error.errno or 0)
                continue
            return connection, str(address[0]).partition("%")[0]
        if not deadline.left:
            raise deadline.expiry_error()
        note = next((reason for numbers, reason in _CONNECT_ERRORS if errors & numbers), Reason.CONNECT_FAILED)
        raise FetchFailed(Status.CONNECT_FAILED, note)

    def _connect_to(self, family: socket.AddressFamily, address: Any, seconds: float) -> socket.socket:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(seconds)
            if self._bind:
                connection.bind((self._bind, 0))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.connect(address)
        except BaseException:
            connection.close()
            raise
        return connection


def _look_up(host: str, port: int, deadline: FetchDeadline) -> list[tuple[socket.AddressFamily, Any]]:
    """Return the addresses of a host, each with its family. The resolver knows no time-out, so a thread asks it."""
    results: queue.SimpleQueue[list[tuple[socket.AddressFamily, Any]]] = queue.SimpleQueue()

    def ask() -> None:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            infos = []
        results.put([(info[0], info[4]) for info in infos])

    threading.Thread(target=ask, name="lookup", daemon=True).start()
    try:
        addresses = results.get(timeout=deadline.patience())
    except queue.Empty:
        addresses = []
    if not addresses:
        if not deadline.left:
            raise deadline.expiry_error()
        raise FetchFailed(Status.DNS, Reason.DNS)
    return addresses


def _tunnel(plain: socket.socket, origin: HttpOrigin, proxy: HttpProxy, deadline: FetchDeadline) -> None:
    """Ask a proxy for a connection to an origin."""
    lines = [f"CONNECT {origin.authority} HTTP/1.1", f"Host: {origin.authority}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    received = b""
    try:
        plain.settimeout(deadline.patience())
        plain.sendall("\r\n".join((*lines, "", "")).encode("latin-1"))
        for _ in range(_MOST_PROXY_HEADS):
            while (match := _END_OF_HEAD.search(received)) is None:
                plain.settimeout(deadline.patience())
                data = plain.recv(4096)
                if not data or len(received) > _LONGEST_PROXY_HEAD:
                    raise FetchFailed(Status.CONNECT_FAILED, Reason.CONNECT_FAILED)
                received += data
            head, received = parse_head(received[: match.end()]), received[match.end() :]
            if head is None or head.status >= 300 or (head.status >= 200 and received):
                break
            if head.status >= 200:
                return
    except TimeoutError:
        if not deadline.left:
            raise
        raise FetchFailed(Status.CONNECT_FAILED, Reason.CONNECT_TIMEOUT) from None
    except (OSError, UnicodeError):
        pass
    raise FetchFailed(Status.CONNECT_FAILED, Reason.CONNECT_FAILED)


#: The alert of a server that takes none of the protocols it was offered (RFC 7301); OpenSSL 3.0 has no symbol for it.
_NO_PROTOCOL = "no application protocol"


def _secure(plain: socket.socket, host: str, context: ssl.SSLContext, deadline: FetchDeadline) -> ssl.SSLSocket:
    """Begin TLS on a connection. Raises FetchFailed; the caller closes the connection."""
    try:
        secured = context.wrap_socket(
            plain, server_hostname=host, do_handshake_on_connect=False, suppress_ragged_eofs=False
        )
    except (ValueError, OSError):  # a host that no certificate can be for, or it has closed already
        raise FetchFailed(Status.CONNECT_FAILED, Reason.TLS_HANDSHAKE) from None
    try:
        secured.settimeout(deadline.patience())
        secured.do_handshake()
    except BaseException as error:
        failure = _handshake_failure(secured, error, host, deadline)
        secured.close()  # it has taken the descriptor of `plain`
        if failure is None:
            raise
        raise failure from None
    return secured


def _handshake_failure(
    secured: ssl.SSLSocket, error: BaseException, host: str, deadline: FetchDeadline
) -> FetchFailed | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        return FetchFailed(Status.CONNECT_FAILED, _faults_of(secured, error, host))
    if isinstance(error, ssl.SSLError) and _NO_PROTOCOL in str(error).lower().replace("_", " "):
        return FetchFailed(Status.CONNECT_FAILED, Reason.HTTP2_ONLY)
    if isinstance(error, OSError | ValueError):
        is_late = isinstance(error, TimeoutError) and not deadline.left
        return deadline.expiry_error() if is_late else FetchFailed(Status.CONNECT_FAILED, Reason.TLS_HANDSHAKE)
    return None
