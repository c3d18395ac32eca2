"""What a crawl may show to single servers and to nobody else: logins, cookies and header fields of `[[publication.…]]`.

The values are in files that only the agent's user may read. They reach wget in files of that kind, too: cookies in the
copy of the jar, all else in a configuration file (`--config`). So no process list, log or record has them. wget writes
its requests into the WARC; `blank_requests` replaces the values there once wget has ended.

A secret is for a scheme and a host, with its port: it is sent with no request to another one, and wget follows no
redirects.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from agent.crawl.cookie_jars import Cookie
from agent.crawl.scope import domain_in
from webarcfs.archive.config.settings import HostSecret, Publication
from webarcfs.archive.model.errors import CrawlFailed
from webarcfs.warc.http_response import blank

# == files ============================================================================================================


_LARGEST = 1 << 20
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*([\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)", re.ASCII)
_PAIR = re.compile(r"([^\s=;,\x00-\x1f]+)=([^\s;,\x00-\x1f]*)", re.ASCII)
#: Fields that wget sends itself, and cookies, which have a setting of their own.
_NOT_OURS = frozenset({"host", "content-length", "connection", "transfer-encoding", "range", "cookie"})


@dataclass(frozen=True, slots=True)
class Origin:
    """A scheme and a host with its port, as domains have it."""

    scheme: str
    domain: str


@dataclass(frozen=True, slots=True)
class ShownSecrets:
    """What is shown to one origin: fields of the request, and cookies."""

    fields: tuple[tuple[str, str], ...] = ()
    cookies: tuple[Cookie, ...] = ()

    @property
    def config(self) -> str:
        """The configuration file of wget."""
        return "".join(f"header = {name}: {value}\n" for name, value in self.fields)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets of a publication by their origin."""

    shown: dict[Origin, ShownSecrets] = field(default_factory=dict)

    @classmethod
    def of(cls, publication: Publication) -> Secrets:
        """Read the files of a publication. Raises CrawlFailed for one that others may read, or that says nothing."""
        shown: dict[Origin, ShownSecrets] = {}
        for kind in ("login", "headers", "cookies"):
            secrets: tuple[HostSecret, ...] = getattr(publication, kind)
            for secret in secrets:
                lines = [line for line in read_private(secret.file).splitlines() if line.strip()]
                for host in secret.hosts:
                    origin = origin_of(host)
                    known = shown.get(origin, ShownSecrets())
                    more = _READERS[kind](lines, origin)
                    if not more.fields and not more.cookies:
                        raise CrawlFailed(f"{secret.file} has nothing for {host} that is a {_FORMS[kind]}")
                    shown[origin] = ShownSecrets(known.fields + more.fields, known.cookies + more.cookies)
        return cls(shown)

    def for_url(self, url: str) -> ShownSecrets | None:
        """Return what a request of `url` shows; None for nothing."""
        return self.shown.get(Origin(url.partition("://")[0], domain_in(url))) if self.shown else None

    def knows(self, domain: str) -> bool:
        """Return whether a host gets a secret, by any scheme."""
        return any(origin.domain == domain for origin in self.shown)

    @property
    def field_names(self) -> frozenset[str]:
        """The names of all fields that have a secret in requests, in lower case."""
        names = {name.lower() for shown in self.shown.values() for name, _ in shown.fields}
        return frozenset(names | {"cookie", "authorization", "proxy-authorization"})


def kept_back(publication: Publication) -> list[str]:
    """Return a line for each host that has a start URL by http, and its secrets by https alone: they are not shown."""
    secrets = (*publication.login, *publication.headers, *publication.cookies)
    origins = {origin_of(host) for secret in secrets for host in secret.hosts}
    plain = {domain_in(url): url for url in reversed(publication.named_urls) if url.startswith("http://")}
    return [
        f'{url} is asked without the secrets of {domain}, which go by https: hosts = ["http://{domain}"] sends them'
        for domain, url in plain.items()
        if Origin("https", domain) in origins and Origin("http", domain) not in origins
    ]


def origin_of(host: str) -> Origin:
    """Return the origin that a setting names: by https, unless it says `http://`."""
    scheme, sign, domain = host.rpartition("://")
    return Origin(scheme if sign else "https", domain)


def read_private(name: str) -> str:
    """Return the text of a file of secrets. Raises CrawlFailed if it cannot be read, or others may."""
    try:
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise CrawlFailed(f"{name} has secrets, and is no plain file")
            if info.st_mode & 0o077 or info.st_uid not in (0, os.geteuid()):
                raise CrawlFailed(f"{name} has secrets, and others may read it; `chmod 600` it, and own it")
            if info.st_size > _LARGEST:
                raise CrawlFailed(f"{name} has secrets, and more than 1 MiB; give the lines for its hosts alone")
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError as error:
        raise CrawlFailed(f"{name} cannot be read: {error.strerror}") from None


def _login(lines: list[str], _: Origin) -> ShownSecrets:
    if len(lines) != 1 or ":" not in lines[0]:
        return ShownSecrets()
    value = base64.b64encode(lines[0].strip().encode()).decode("ascii")
    return ShownSecrets((("Authorization", f"Basic {value}"),))


def _headers(lines: list[str], _: Origin) -> ShownSecrets:
    fields = [_FIELD.fullmatch(line.strip()) for line in lines if not line.startswith("#")]
    if any(match is None or match[1].lower() in _NOT_OURS for match in fields):
        return ShownSecrets()
    return ShownSecrets(tuple((match[1], match[2]) for match in fields if match is not None))


def _cookies(lines: list[str], origin: Origin) -> ShownSecrets:
    """Read a file of Netscape's format, as browsers export it, or of lines `name=value`."""
    is_secure = origin.scheme == "https"
    url = f"{origin.scheme}://{origin.domain}"
    cookies = []
    for line in lines:
        exported = Cookie.read(line.removeprefix("#HttpOnly_"))
        plain = _PAIR.fullmatch(line.strip())
        if exported is not None and exported.is_for(f"{url}{exported.path}"):
            cookies.append(Cookie(origin.domain, False, exported.path, is_secure, "0", exported.name, exported.value))
        elif plain is not None:
            cookies.append(Cookie(origin.domain, False, "/", is_secure, "0", plain[1], plain[2]))
    return ShownSecrets(cookies=tuple(cookies))


_READERS = {"login": _login, "headers": _headers, "cookies": _cookies}
_FORMS = {
    "login": "line `user:password`",
    "headers": "line `Name: value` with a field that may be set",
    "cookies": "cookie (cookies.txt, or lines `name=value`)",
}

# == requests in a WARC ===============================================================================================


_LONGEST_HEAD = 1 << 20


def blank_requests(warc: Path, names: frozenset[str]) -> None:
    """Replace the values of these fields in the requests of a WARC by asterisks, in place; digests agree with it."""
    try:
        file = warc.open("r+b")
    except FileNotFoundError:
        return
    with file:
        for head, begin, size in _requests(file):
            file.seek(begin)
            block = file.read(size)
            blanked = _blanked(block, names)
            if blanked != block:
                file.seek(begin)
                file.write(blanked)
                file.seek(begin - len(head))
                file.write(head.replace(_digest(block), _digest(blanked)))


def _digest(data: bytes) -> bytes:
    return base64.b32encode(hashlib.sha1(data).digest())  # noqa: S324 # as wget writes it


def _requests(file: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """Yield the head of each request record, and position and size of its block; up to the first damage."""
    position = 0
    while True:
        file.seek(position)
        start = file.read(1 << 14)
        head, end, _ = start.partition(b"\r\n\r\n")
        length = re.search(rb"\r\nContent-Length: *(\d{1,18})\r?\n?", head + b"\r\n", re.IGNORECASE)
        if not start.startswith(b"WARC/") or not end or length is None:
            return
        begin, size = position + len(head) + 4, int(length[1])
        if re.search(rb"\r\nWARC-Type: *request\r\n", head + b"\r\n", re.IGNORECASE) and size <= _LONGEST_HEAD:
            yield head + end, begin, size
        position = begin + size + 4


def _blanked(block: bytes, names: frozenset[str]) -> bytes:
    head, end, rest = block.partition(b"\r\n\r\n")
    return blank(head, lambda name: name.decode("latin-1") in names) + end + rest
