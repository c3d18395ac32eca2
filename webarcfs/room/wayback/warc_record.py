"""An uncompressed WARC/1.1 record of a capture, made when it is asked for (ISO 28500:2017). Pure.

The head is what the server sent, without what a body without codings makes false (`warc/response_head`). A redirect,
of which no head is kept, has one that says no more than status and target. WARC-Date is the first visible snapshot that
has the capture, as in CDX. The same capture of the same snapshot is the same record, byte for byte.
"""

from __future__ import annotations

import hashlib
import uuid

from webarcfs.archive.model.metadata import from_epoch, utc
from webarcfs.gate.visible_captures import VisibleCapture
from webarcfs.warc.fields import base32
from webarcfs.warc.response_head import response_head

#: The type of a record's answer over HTTP.
MEDIA_TYPE = "application/warc"

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
        f"WARC-Date: {utc(from_epoch(capture.captured)):%Y-%m-%dT%H:%M:%SZ}",
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
    known = ("Location", capture.target) if capture.is_redirect else ("Content-Type", capture.mime_type)
    return response_head(head, size, capture.status, (known,))
