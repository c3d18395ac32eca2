"""An uncompressed WARC/1.1 record of a capture, made when it is asked for (ISO 28500:2017). Pure.

The head is what the server sent, without what a body without codings makes false: Content-Encoding, Transfer-Encoding,
fields of the connection; Content-Length is that of the body. A redirect, of which no head is kept, has one that says no
more than status and target. WARC-Date is the first visible snapshot that has the capture, as in CDX. The same capture
of the same snapshot is the same record, byte for byte.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from http import HTTPStatus

from webarcfs.archive.model.metadata import from_epoch, utc
from webarcfs.gate.visible_captures import VisibleCapture
from webarcfs.warc.fields import base32
from webarcfs.warc.http_response import parse_head

#: The type of a record's answer over HTTP.
MEDIA_TYPE = "application/warc"

#: Of the connection (RFC 9110 section 7.6.1), or of a coding that is undone.
_DROPPED = frozenset({
    "connection", "content-encoding", "content-length", "keep-alive", "proxy-authenticate", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:webarcfs:record:1")


def warc_record(capture: VisibleCapture, commit_tag: str, head: bytes, body: bytes) -> tuple[bytes, bytes, bytes]:
    """Return a record in three parts: its own head with that of HTTP, the body, the end. Together they are the record.

    `commit_tag` names the snapshot; `head` are the bytes of headers.http, `body` those of the document without codings;
    both are empty for a redirect.
    """
    digest = base32(hashlib.sha1(body, usedforsecurity=False).digest())
    return record_head(capture, commit_tag, head, len(body), digest), body, b"\r\n\r\n"


def record_head(capture: VisibleCapture, commit_tag: str, head: bytes, size: int, digest: str) -> bytes:
    """Return all of a record before its body. `size` and `digest` (SHA-1 in base32) are the body's."""
    http = http_head(capture, head, size)
    fields = (
        "WARC/1.1",
        "WARC-Type: response",
        f"WARC-Record-ID: <urn:uuid:{record_id(capture, commit_tag)}>",
        f"WARC-Target-URI: {capture.url}",
        f"WARC-Date: {utc(from_epoch(capture.since)):%Y-%m-%dT%H:%M:%SZ}",
        f"WARC-Payload-Digest: sha1:{digest}",
        f"Webarcfs-Commit-Tag: {commit_tag}",
        "Content-Type: application/http; msgtype=response",
        f"Content-Length: {len(http) + size}",
    )
    return "\r\n".join((*fields, "", "")).encode("utf-8") + http


def record_id(capture: VisibleCapture, commit_tag: str) -> uuid.UUID:
    """Return the id of a capture's record: a function of snapshot, URL and body, or target."""
    return uuid.uuid5(_NAMESPACE, f"{commit_tag}\n{capture.url}\n{capture.blob or capture.target}")


def http_head(capture: VisibleCapture, head: bytes, size: int) -> bytes:
    """Return the head of the HTTP response: that of the server, cleaned, or one that is made of the capture."""
    lines = _sent(head) or _made(capture)
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
    reason = _clean(words[2]) if len(words) > 2 else _reason(parsed.status)
    return [_status_line(parsed.status, reason), *kept]


def _made(capture: VisibleCapture) -> list[str]:
    lines = [_status_line(capture.status, _reason(capture.status))]
    if capture.is_redirect:
        return [*lines, f"Location: {_clean(capture.target)}"]
    return [*lines, f"Content-Type: {_clean(capture.mime_type)}"] if capture.mime_type else lines


def _status_line(status: int, reason: str) -> str:
    return f"HTTP/1.1 {status:03} {reason}"  # with its space, if there is no reason (RFC 9112 section 4)


def _reason(status: int) -> str:
    return HTTPStatus(status).phrase if status in {each.value for each in HTTPStatus} else ""


def _clean(value: str) -> str:
    return _CONTROL.sub(" ", value)
