"""The head of an HTTP response for a body without codings: what the server sent, without what is no longer true. Pure.

Content-Encoding, Transfer-Encoding and fields of the connection are left out; Content-Length is that of the body. Where
no head is kept, or none that can be read, one is made that says no more than what is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus

from webarcfs.warc.http_response import parse_head

#: Of the connection (RFC 9110 section 7.6.1), or of a coding that is undone.
_DROPPED = frozenset({
    "connection", "content-encoding", "content-length", "keep-alive", "proxy-authenticate", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_PHRASES = {each.value: each.phrase for each in HTTPStatus}


def response_head(head: bytes, size: int, status: int, known: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return the head of a response with a body of `size` bytes: `head` as it was sent, cleaned.

    If `head` is none, it is made of `status` and the fields `known`; those without a value are left out.
    """
    lines = _sent(head) or _made(status, known)
    return "\r\n".join((*lines, f"Content-Length: {size}", "", "")).encode("latin-1", "replace")


def _sent(head: bytes) -> list[str]:
    """Return the lines of a head as sent, without what is dropped; none if it is no head."""
    parsed = parse_head(head)
    if parsed is None:
        return []
    lines = head.decode("latin-1").replace("\r\n", "\n").split("\n")
    words = lines[0].split(None, 2)
    fields: list[tuple[str, str]] = []
    for line in lines[1:]:
        if not line.strip():
            continue
        if line[0] in " \t" and fields:  # obsolete line folding, RFC 9112 section 5.2
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {line.strip()}")
            continue
        name, _, value = line.partition(":")
        fields.append((name.strip(), value.strip()))
    connection = ",".join(value for name, value in fields if name.lower() == "connection")
    dropped = _DROPPED | {name.strip().lower() for name in connection.split(",")}
    kept = [
        f"{name}: {_clean(value)}" for name, value in fields if _TOKEN.fullmatch(name) and name.lower() not in dropped
    ]
    reason = _clean(words[2]) if len(words) > 2 else _PHRASES.get(parsed.status, "")
    return [_status_line(parsed.status, reason), *kept]


def _made(status: int, known: Sequence[tuple[str, str]]) -> list[str]:
    fields = (f"{name}: {_clean(value)}" for name, value in known if value)
    return [_status_line(status, _PHRASES.get(status, "")), *fields]


def _status_line(status: int, reason: str) -> str:
    return f"HTTP/1.1 {status:03} {reason}"  # with its space, if there is no reason (RFC 9112 section 4)


def _clean(value: str) -> str:
    return _CONTROL.sub(" ", value)
