"""The key of a URL in the index files of others: as the programs of the field spell it, so that they find it. Pure.

It is coarser than `archive/model/surt`, by which the archive itself sorts: without `www.`, case, the order of
parameters, a final slash, and the sessions that some servers put into URLs. Written after what those programs do with
URLs; the tests compare it with one of them.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

_WWW = re.compile(r"\Awww\d*\.")
_ADDRESS = re.compile(r"\[.*\]")
_ESCAPED = re.compile(rb"[^\x21\x22\x24\x26-\x7e]")
_DEFAULT = {"http": "80", "https": "443"}
#: Sessions in paths of ASP.NET: `/(S(…))/page.aspx`.
_IN_PATH = re.compile(r"^(.*/)(?:\((?:[a-z]\([0-9a-z]{24}\))+\)|\([0-9a-z]{24}\))/([^?]+\.aspx.*)$", re.DOTALL)
#: Parameters that name a session.
_IN_QUERY = (
    *(re.compile(rf"^(.*){name}=[0-9a-z]{{32}}(?:&(.*))?$", re.DOTALL) for name in ("jsessionid", "phpsessid", "sid")),
    re.compile(r"^(.*)aspsessionid[a-z]{8}=[a-z]{24}(?:&(.*))?$", re.DOTALL),
    re.compile(r"^(.*)cfid=[^&]+&cftoken=[^&]+(?:&(.*))?$", re.DOTALL),
)


def cdx_key(url: str) -> str:
    """Return the key of a canonical URL."""
    scheme, _, rest = url.partition("://")
    host_port, slash, rest = rest.partition("/")
    path, mark, query = rest.partition("?")
    return f"{_turned(scheme, host_port)}){_path(slash + path)}{_query(query) if mark else ''}"


def _turned(scheme: str, host_port: str) -> str:
    """Return a host from the top down, with its port, unless that is the scheme's own."""
    host, colon, port = host_port.rpartition(":")
    if not colon or not port.isdecimal():
        host, port = host_port, ""
    names = [host[1:-1]] if _ADDRESS.fullmatch(host) else _WWW.sub("", host.lower().strip(".")).split(".")
    turned = ",".join(reversed(names))
    return turned if not port or port == _DEFAULT.get(scheme) else f"{turned}:{port}"


def _path(path: str) -> str:
    """Return a path in lower case, without what does not change where it leads."""
    kept: list[str] = []
    for name in _plain(path).removeprefix("/").split("/"):
        if name == ".." and kept:
            kept.pop()  # at the top it stays, as there
        elif name != ".":
            kept.append(name)
    found = "/" + "/".join(filter(None, kept))
    if session := _IN_PATH.match(found.lower()):
        found = session[1] + session[2]
    return found.lower()


def _query(query: str) -> str:
    """Return a query in lower case and in order, without sessions; empty for an empty one."""
    text = _plain(query).lower()
    for pattern in _IN_QUERY:
        if session := pattern.match(text):
            text = session[1] + (session[2] or "")
    return "?" + "&".join(sorted(text.split("&"), key=lambda each: each.partition("="))) if text else ""


def _plain(text: str) -> str:
    """Return a part of a URL with the fewest escapes: undone as long as there are any, then of what must have them."""
    raw = text.encode()
    while (undone := unquote_to_bytes(raw)) != raw:
        raw = undone
    return _ESCAPED.sub(lambda match: b"%%%02x" % match[0][0], raw).decode("ascii")
