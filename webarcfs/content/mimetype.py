"""The MIME type of a document, as browsers compute it (/Cr-12.3/; WHATWG MIME Sniffing Standard, section 7).

What the server declares is believed. Its bytes are looked at where it declares nothing, where an image, a sound or a
film may be of another kind than it says, and where old versions of Apache called all they did not know text/plain. A
library does that. Two things are added, which change nothing in a browser. XML of no particular type with an XHTML root
is application/xhtml+xml. Where nothing is declared and the standard says only bytes or zip, libmagic says which.
"""

from __future__ import annotations

import re
import threading

import magic
from xtractmime import RESOURCE_HEADER_BUFFER_LENGTH, extract_mime

#: Bytes of a body that are examined.
SAMPLE = 1 << 16
#: The type of an empty body without a declared type.
EMPTY = "application/x-empty"

_XML = frozenset({"text/xml", "application/xml"})
_ROUGH = frozenset({"application/octet-stream", "application/zip"})
# libmagic's answers that are taken: no text, which the standard has ruled out, and nothing that a browser would run.
_NEARER = re.compile(
    r"(?:application|font)/(?!.*(?:script|json|[/+]xml|octet-stream|x-empty))[a-z0-9][a-z0-9.+-]*", re.ASCII
)
# Whose image, sound or film may be one of the others.
_MEDIA = {
    b"image/x-icon", b"image/bmp", b"image/gif", b"image/webp", b"image/png", b"image/jpeg", b"audio/basic",
    b"audio/aiff", b"audio/mpeg", b"application/ogg", b"audio/midi", b"video/avi", b"audio/wave", b"video/mp4",
    b"video/webm",
}  # fmt: skip
#: Types that say nothing (section 7.1).
UNKNOWN_TYPES = frozenset({"", "unknown/unknown", "application/unknown"})
_XHTML = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s++|<\?[^>]*+>|<!--(?:(?!-->).)*+-->)*+"
    rb"(?:<!DOCTYPE\s+html\s+PUBLIC\s+\"-//W3C//DTD XHTML"
    rb"|(?:<!DOCTYPE[^>]*+>(?:\s++|<!--(?:(?!-->).)*+-->)*+)?<html\b[^>]*http://www\.w3\.org/1999/xhtml)",
    re.IGNORECASE | re.DOTALL,
)
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*", re.ASCII)
_ROOT_WITHIN = 4096  # bytes
# The library reads beyond a body that is shorter than its patterns. No pattern has these bytes, and they are text.
_PADDING = b"." * 64
_local = threading.local()


def mime_type(sample: bytes, content_type: str, *, nosniff: bool = False) -> str:
    """Return the type of a body that starts with `sample` and was sent as `content_type` (header value, or empty).

    `nosniff`: its head forbids to sniff a type that is declared.
    """
    declared = declared_type(content_type)
    if not sample:
        return declared or EMPTY
    start = sample if len(sample) >= RESOURCE_HEADER_BUFFER_LENGTH else sample + _PADDING
    sent = content_type.encode("latin-1", "replace") if declared else b""  # Apache's defect is known by these bytes
    sniffed = extract_mime(start, content_types=(sent,), no_sniff=nosniff, supported_types=_MEDIA)
    computed = sniffed.decode("latin-1") if sniffed else "application/octet-stream"
    if computed in _XML and _XHTML.match(sample[:_ROOT_WITHIN]):
        return "application/xhtml+xml"
    if computed in _ROUGH and declared in UNKNOWN_TYPES:
        nearer = str(_magic().from_buffer(sample))
        return nearer if _NEARER.fullmatch(nearer) else computed
    return computed


def declared_type(content_type: str) -> str:
    """Return the type in a Content-Type header, in lower case; empty for none or an invalid one."""
    text = content_type.partition(";")[0].strip().lower()
    return text if _TYPE.fullmatch(text) else ""


def _magic() -> magic.Magic:
    # A libmagic cookie must not be shared between threads.
    cookie: magic.Magic | None = getattr(_local, "magic", None)
    if cookie is None:
        cookie = _local.magic = magic.Magic(mime=True)
    return cookie
