"""The address of a server with an archive, and the token for it; pure.

A token is a password. So it goes by https, or to a server on this machine; over plain http to another one only if the
caller says so.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from webarcfs.archive.model.errors import UsageError

#: Below the path of the address.
PREFIX = "/api/v1"
_PORTS = {"http": 80, "https": 443}
_LONGEST = 2_000
_TOKEN = re.compile(r"[!-~]{1,1000}", re.ASCII)
#: Characters of a segment that stand as they are, beside letters, digits and `-._~` (RFC 3986).
_PLAIN = "@:"


def is_url(place: str) -> bool:
    """Return whether the place of an archive is the URL of a server."""
    return place.lower().startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server listens, the path below which its API is, and the token, which no text of it shows."""

    is_secure: bool
    host: str
    port: int
    path: str
    token: str = field(default="", repr=False)

    @classmethod
    def parse(cls, url: str, token: str = "", *, may_send_plainly: bool = False) -> ServerAddress:
        """Return the address of a URL. Raises UsageError for another URL, or a token that must not go there."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError as error:
            raise UsageError(f"{url!r} is no URL of a server: {error}") from None
        if parts.username is not None or parts.password is not None:
            raise UsageError("a URL of a server has no password: give the token by itself")
        if not host or not port or len(url) > _LONGEST or parts.query or parts.fragment or not _is_plain(url):
            raise UsageError(f"{url!r} is no URL of a server, such as https://archive.example.org/")
        address = cls(parts.scheme == "https", host, port, parts.path.rstrip("/"), token)
        if token:
            address.check_token(may_send_plainly=may_send_plainly)
        return address

    def check_token(self, *, may_send_plainly: bool) -> None:
        """Raise UsageError for what is no token, and for one that others could read on its way."""
        if not _TOKEN.fullmatch(self.token):
            raise UsageError("this is no token: it has a blank, a line end, or a character that is not ASCII")
        if not (self.is_secure or may_send_plainly or is_this_machine(self.host)):
            raise UsageError(
                f"everybody on the way could read a token that goes to {self.origin}; give the server's https:// URL"
            )

    @property
    def origin(self) -> str:
        """Scheme, host and port, as a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "https" if self.is_secure else "http"
        return f"{scheme}://{host}" if self.port == _PORTS[scheme] else f"{scheme}://{host}:{self.port}"

    @property
    def base(self) -> str:
        """The path of the API, below which its routes are."""
        return self.path + PREFIX

    def is_origin_of(self, url: str) -> bool:
        """Return whether a URL leads to the same server."""
        try:
            parts = urlsplit(url)
            own = ("https" if self.is_secure else "http", self.host, self.port)
            return (parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)) == own
        except ValueError:
            return False


def is_this_machine(host: str) -> bool:
    """Return whether a host's name or address is that of this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def quoted(*names: str) -> str:
    """Return names as a path: each may hold slashes, and bytes that are no UTF-8 (surrogateescape)."""
    return "".join(f"/{quote(name.encode('utf-8', 'surrogateescape'), safe=f'/{_PLAIN}')}" for name in names)


def queried(**values: object) -> str:
    """Return a query of the values that say something, each of several; empty if none does."""
    pairs = (
        f"{name}={quote(str(value).encode('utf-8', 'surrogateescape'), safe='')}"
        for name, given in values.items()
        for value in (given if isinstance(given, tuple) else (given,))
        if value is not None and value != "" and value is not False
    )
    query = "&".join(pairs)
    return f"?{query}" if query else ""


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text
