"""The canonical form of http(s) URLs, in which two spellings of one URL are equal, and their sort key by host. Pure.

Canonical are scheme and host in lower case, IDNA hosts in punycode, no default port, no userinfo, no fragment; escapes
in upper case, and only where RFC 3986 needs them. An escape of a *reserved* character stays an escape, because `%26`
and `&` are different data (RFC 3986 section 2.2); an escape of an unreserved one (RFC 2396's list, which includes
`!*'()`) becomes the character.

The sort key goes from the top-level domain down (SURT, as in CDX files): `http://www.example.org:8080/a?B=1` is
`org,example,www:8080)/a?B=1`. The scheme is left out, since both schemes share an ARC; `www.`, case, port, the order of
parameters and a final slash stay, since they distinguish pages.

By session ids one page has another URL for each visitor and each crawl.

A server that knows a visitor by no cookie writes an id into all links: as a parameter of the path
(`/a;jsessionid=…`), of the query (`?PHPSESSID=…`), or as a segment (`/(S(…))/`, ASP.NET). `SessionIds` takes them out
of canonical URLs. Names that other things have as well, such as `sid`, count only where the value looks like an id.

By time and chance what a script asks for has another URL each time: `?_=1732161600123` is there for no cache to
answer. `without_chance` takes such parameters out, by their names and by what their values are.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import idna

from webarcfs.archive.model.errors import UrlRefused

# == url, pure ========================================================================================================


DEFAULT_PORTS = {"http": "80", "https": "443"}

#: Characters whose escaped and plain forms mean the same.
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!*'()")

_SPLIT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(?:#.*)?", re.DOTALL)
_PLAIN_PATH = re.compile(r"[A-Za-z0-9\-._~!*'();:@&=+$,/]*")
_PLAIN_QUERY = re.compile(r"[A-Za-z0-9\-._~!*'();:@&=+$,/?]*")
_TO_REWRITE_IN_PATH = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~!*'();:@&=+$,/]")
_TO_REWRITE_IN_QUERY = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~!*'();:@&=+$,/?]")
# Hyphens at its edges too: DNS has such hosts, and browsers take them.
_LABEL = re.compile(r"[a-z0-9_-]{1,63}", re.ASCII)
_ZERO_GROUPS = re.compile(r"\b0(?::0\b)+")
_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
# DNS allows 253, a file name 255 bytes; a domain's port and the suffixes of its repository and locks must fit, too.
_LENGTH_OF_HOST = 230
_DROPPED = {ord(c): None for c in "\t\n\r"}
# A scheme that is ours, and any other.
_SPECIAL = re.compile(r"(https?):", re.IGNORECASE | re.ASCII)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_STRIPPED = "".join(map(chr, range(0x21)))


@dataclass(frozen=True, slots=True)
class Url:
    """A URL in parts: `domain` is host[:port]; `path` starts with `/`; `query` has no `?`, and is None if absent."""

    scheme: str
    domain: str
    path: str
    query: str | None

    def __str__(self) -> str:
        query = "" if self.query is None else f"?{self.query}"
        return f"{self.scheme}://{self.domain}{self.path}{query}"


def parse(raw: str) -> Url:
    """Split `raw` into parts in canonical form; dot segments stay.

    Raises UrlRefused for schemes other than http and https, for a host that is neither valid labels nor a bracketed
    IPv6 address, and for an invalid port.
    """
    text = raw.strip(_STRIPPED).translate(_DROPPED)
    match = _SPLIT.fullmatch(text)
    if match is None:
        raise UrlRefused(f"{raw!r} is not an absolute URL")
    scheme, authority, path, query = match.groups()
    scheme = scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise UrlRefused(f"{raw!r}: only http and https are archived")
    if "\\" in path or (authority and "\\" in authority):
        return parse(text[: match.start(4)].replace("\\", "/") + (query or "") if query else text.replace("\\", "/"))
    if not authority:
        raise UrlRefused(f"{raw!r} names no host")
    return Url(scheme, _domain(scheme, authority), _escape_path(path) or "/", _escape_query(query))


def canonical(raw: str) -> str:
    """Return the canonical form of `raw`: that of `parse`, with dot segments resolved (RFC 3986 5.2.4)."""
    url = parse(raw)
    return str(Url(url.scheme, url.domain, remove_dot_segments(url.path), url.query))


def joined(base: str, reference: str) -> str:
    """Return the absolute URL, not yet canonical, that a reference without fragment means to browsers.

    That is the WHATWG URL Standard's basic URL parser, for http and https: any run of two or more slashes leads to a
    host, backslashes before the query are slashes, and `http:x` is relative to a base of the same scheme. `base` is
    canonical.
    """
    text = reference.strip(_STRIPPED).translate(_DROPPED)
    head, mark, query = text.partition("?")
    text = head.replace("\\", "/") + mark + query
    scheme, _, rest = base.partition("://")
    if special := _SPECIAL.match(text):
        own = special[1].lower()
        text = text[special.end() :]
        if own != scheme:
            return f"{own}://{text.lstrip('/')}"
    elif _SCHEME.match(text):
        return text
    if text.startswith("//"):
        return f"{scheme}://{text.lstrip('/')}"
    if not text:
        return base
    domain, _, path = rest.partition("?")[0].partition("/")
    begin = f"{scheme}://{domain}"
    if not text.startswith("/"):
        begin += f"/{path}" if text.startswith("?") else f"/{path}"[: path.rfind("/") + 2]
    return begin + text


def domain_of(raw: str) -> str:
    """Return the archive's domain of a URL: host, with `:port` unless it is the scheme's own."""
    return parse(raw).domain


def both_schemes(url: str) -> tuple[str, ...]:
    """Return the canonical URLs that share the ARC of `url`: its own, and that with the other scheme."""
    mine = parse(url)
    other = "https" if mine.scheme == "http" else "http"
    port = mine.domain.rpartition(":")[2]
    # With a port, the other scheme is a URL of the same domain only if the port is the default of neither.
    return (str(mine),) if port in DEFAULT_PORTS.values() else (str(mine), str(replace(mine, scheme=other)))


def replay_address(digits: str, url: str, modifier: str = "") -> str:
    """Return the path at which the reading room shows a URL as it was at a time (14 digits, UTC)."""
    return f"/web/{digits}{modifier}/{url}"


def remove_dot_segments(path: str) -> str:
    """Remove dot segments from a path that starts with `/` (RFC 3986 section 5.2.4)."""
    if "/." not in path:
        return path
    segments = path.split("/")[1:]
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _escape_path(path: str) -> str:
    return path if _PLAIN_PATH.fullmatch(path) else _rewrite(_TO_REWRITE_IN_PATH, path)


def _escape_query(query: str | None) -> str | None:
    if query is None:
        return None
    query = query[1:]
    return query if _PLAIN_QUERY.fullmatch(query) else _rewrite(_TO_REWRITE_IN_QUERY, query)


def _rewrite(pattern: re.Pattern[bytes], text: str) -> str:
    return pattern.sub(_one_escape, text.encode("utf-8", "replace")).decode("ascii")


def _one_escape(match: re.Match[bytes]) -> bytes:
    escape = match[0]
    byte = int(escape[1:], 16) if len(escape) == 3 else escape[0]
    return bytes((byte,)) if byte in UNRESERVED else b"%%%02X" % byte


@lru_cache(maxsize=4096)
def _domain(scheme: str, authority: str) -> str:
    """Return host[:port] of an authority, in canonical form. Raises UrlRefused."""
    host, port = _split_port(authority.rpartition("@")[2])
    if port and (not _PORT.fullmatch(port) or not 0 < int(port) < 65536):
        raise UrlRefused(f"{authority!r}: {port!r} is not a port")
    port = str(int(port)) if port else ""
    host = _ipv6(host) if host.startswith("[") else _labels(host)
    return host if port in ("", DEFAULT_PORTS[scheme]) else f"{host}:{port}"


def _split_port(host_and_port: str) -> tuple[str, str]:
    end = host_and_port.find("]") + 1
    host, colon, port = host_and_port[end:].partition(":")
    if colon or not end:
        return host_and_port[:end] + host, port
    return host_and_port, ""


def _ipv6(host: str) -> str:
    try:
        address = ipaddress.IPv6Address(host[1:-1] if host.endswith("]") else "")
    except ValueError:
        raise UrlRefused(f"{host!r} is not a bracketed IPv6 address") from None
    if address.scope_id is not None:
        raise UrlRefused(f"{host!r} names a network interface of one machine")
    return f"[{_compressed(int(address))}]"


def _compressed(address: int) -> str:
    """Format an IPv6 address (RFC 5952), all in hexadecimal (ipaddress differs from one Python to the next)."""
    groups = ":".join(f"{address >> shift & 0xFFFF:x}" for shift in range(112, -1, -16))
    longest = max(_ZERO_GROUPS.findall(groups), key=len, default="")
    if not longest:
        return groups
    before, _, after = f":{groups}:".partition(f":{longest}:")
    return f"{before[1:]}::{after[:-1]}"


def _labels(host: str) -> str:
    text = _unescape_host(host).lower().rstrip(".")
    if not text.isascii():
        try:
            text = ".".join(map(_encoded, idna.uts46_remap(text, std3_rules=False).split(".")))
        except idna.IDNAError as error:
            raise UrlRefused(f"host {host!r}: {error}") from None
    if len(text) > _LENGTH_OF_HOST or not all(_LABEL.fullmatch(label) for label in text.split(".")):
        raise UrlRefused(f"{host!r} is not a host name")
    return text


def _encoded(label: str) -> str:
    """Return a label in punycode. Raises IDNAError; hyphens at its edges, which IDNA forbids, are taken."""
    if label.isascii():
        return label
    plain = label.strip("-")
    encoded = idna.encode(plain).decode("ascii")
    return encoded if plain == label else f"xn--{label.encode('punycode').decode('ascii')}"


def _unescape_host(host: str) -> str:
    """Decode a host in percent-encoded UTF-8 (RFC 3986 section 3.2.2)."""
    if "%" not in host:
        return host
    try:
        return re.sub(rb"%([0-9A-Fa-f]{2})", lambda m: bytes((int(m[1], 16),)), host.encode()).decode()
    except UnicodeError:
        raise UrlRefused(f"{host!r} is not a host name") from None


# == surt, pure =======================================================================================================


_ADDRESS = re.compile(r"\[.*\]|[0-9]+(?:\.[0-9]+){3}")


def surt(url: str) -> str:
    """Return the key of a canonical URL. An address is not reversed, since it has no top-level domain."""
    host_port, slash, rest = url.partition("://")[2].partition("/")
    host, colon, port = host_port.rpartition(":")
    if not colon or not port.isdecimal():  # the last colon of an IPv6 address is inside the brackets
        host, colon, port = host_port, "", ""
    turned = host if _ADDRESS.fullmatch(host) else ",".join(reversed(host.split(".")))
    return f"{turned}{colon}{port}){slash}{rest}"


# == session ids, pure ================================================================================================


#: What the setting `session_parameters` has by default; `*` stands for any letters, `(s)` for the segments of ASP.NET.
SESSION_PARAMETERS = (
    "jsessionid", "phpsessid", "aspsessionid*", "cfid", "cftoken", "zenid", "oscsid", "sid", "sessid", "sessionid",
    "session_id", "(s)",
)  # fmt: skip
#: The word for segments such as `(S(…))`.
SEGMENTS = "(s)"
#: Names that have other meanings, too; and those that mean a session only together.
_COMMON = frozenset({"sid", "s", "session", "sessid", "sessionid", "session_id", "sess", "token"})
_PAIR = frozenset({"cfid", "cftoken"})
# A value that a program made up: long, with digits, of nothing but letters and digits.
_ID = re.compile(r"(?=[^0-9]*[0-9])[A-Za-z0-9_,.-]{16,}")
_SEGMENT = re.compile(r"/\((?:[A-Za-z]\([A-Za-z0-9_-]{8,}\))+\)(?=/)")
SESSION_PARAMETER = re.compile(r"[A-Za-z0-9_.-]+\*?|\([sS]\)", re.ASCII)


class SessionIds:
    """Takes the parameters of some names out of URLs."""

    def __init__(self, names: tuple[str, ...]) -> None:
        lower = tuple(name.lower() for name in names)
        self._has_segments = SEGMENTS in lower
        parts = [re.escape(name).replace(r"\*", r"[a-z]*") for name in lower if name != SEGMENTS]
        self._name = re.compile("|".join(parts) or r"(?!)", re.IGNORECASE)
        self._hint = re.compile(rf"[;?&](?:{self._name.pattern})=|/\([a-z]\(", re.IGNORECASE)

    def without(self, url: str) -> str:
        """Return a canonical URL without session ids, canonical as well."""
        # Most URLs have nothing of the kind, and looking for a character costs a tenth of a search.
        if ("=" not in url and "/(" not in url) or self._hint.search(url) is None:
            return url
        bare = self._taken_out(url)
        # Without its parameter a segment may be `..`: what is judged is what a program would ask for.
        return url if bare == url else canonical(bare)

    def _taken_out(self, url: str) -> str:
        head, mark, query = url.partition("?")
        path, *parameters = head.split(";")
        # A parameter of the path ends at the next slash, whose segments stay.
        for parameter in parameters:
            name, _, rest = parameter.partition("=")
            value, slash, behind = rest.partition("/")
            path += slash + behind if self._is_id(name, value, ()) else f";{parameter}"
        if self._has_segments:  # some are segments only without their parameters
            path = _SEGMENT.sub("", path)
        if not mark:
            return path
        fields = re.split("([&;])", query)
        names = tuple(field.partition("=")[0].lower() for field in fields[::2])
        kept = ""
        for number, field in enumerate(fields[::2]):
            name, equals, value = field.partition("=")
            if not (equals and self._is_id(name, value, names)):
                kept += (fields[2 * number - 1] if kept else "") + field
        return f"{path}?{kept}" if kept or not query else path

    def _is_id(self, name: str, value: str, names: tuple[str, ...]) -> bool:
        if not value or not self._name.fullmatch(name):
            return False
        lower = name.lower()
        if lower in _PAIR:
            return set(names) >= _PAIR
        return lower not in _COMMON or _ID.fullmatch(value) is not None


# == time and chance, pure ============================================================================================


#: What the setting `drop_parameters` has by default: names that mean "no cache" to jQuery, ExtJS and many others.
CHANCE_PARAMETERS = (
    "_", "_t", "_ts", "_dc", "t", "ts", "r", "cb", "bust", "cachebust", "cachebuster", "nocache", "rand", "random",
    "rnd",
)  # fmt: skip
CHANCE_PARAMETER = re.compile(r"[A-Za-z0-9_.-]{1,100}", re.ASCII)
_TIME = re.compile(r"[0-9]{10}(?:[0-9]{3})?", re.ASCII)
_RANDOM = re.compile(r"0\.[0-9]{8,20}", re.ASCII)
_DAY = 86_400


def is_time_or_random(value: str, seconds: int) -> bool:
    """Return whether a value is a time within a day of `seconds` since 1970, or what Math.random gives.

    A time has 10 digits, or 13 with milliseconds.
    """
    if _RANDOM.fullmatch(value):
        return True
    return _TIME.fullmatch(value) is not None and abs(int(value[:10]) - seconds) <= _DAY


def without_chance(url: str, names: Sequence[str], seconds: int) -> str:
    """Return a canonical URL without the parameters that time or chance made, canonical as well.

    These have one of the `names`, in any case, and a value of `is_time_or_random` at the time of the request, in
    seconds since 1970. All others stay, as do their order and their spelling.
    """
    plain, mark, query = url.partition("?")
    if not mark or "=" not in query:
        return url
    lower = {name.lower() for name in names}
    parameters = query.split("&")
    kept = [parameter for parameter in parameters if not _is_dropped(parameter, lower, seconds)]
    if len(kept) == len(parameters):
        return url
    return f"{plain}?{'&'.join(kept)}" if any(kept) else plain


def _is_dropped(parameter: str, names: set[str], seconds: int) -> bool:
    name, _, value = parameter.partition("=")
    return name.lower() in names and is_time_or_random(value, seconds)
