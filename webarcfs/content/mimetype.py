"""The MIME type of a document, mainly from its content (/Cr-12.3/).

A document that begins as HTML is HTML: libmagic would find that in 40 times the time, and takes some pages with scripts
for JavaScript. Else libmagic decides; if its answer is vague (text, XML or bytes), an XHTML root or the response's more
specific type is better (libmagic calls CSS and JavaScript text/plain and every XHTML page text/xml).
"""

from __future__ import annotations

import re
import threading

import magic

#: Bytes of a body that are examined.
SAMPLE = 1 << 16
#: The type of an empty body without a declared type.
EMPTY = "application/x-empty"

_VAGUE = frozenset({"text/plain", "text/xml", "application/octet-stream", "application/xml", ""})
_EMPTY = frozenset({"inode/x-empty", EMPTY})
_XHTML = re.compile(
    rb"<html\b[^>]*http://www\.w3\.org/1999/xhtml|<!DOCTYPE\s+html\s+PUBLIC\s+\"-//W3C//DTD XHTML", re.I
)
_HTML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<!DOCTYPE\s+html[\s>]|<html[\s>])", re.I)
_XML_START = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml\s")
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*", re.ASCII)
_ROOT_WITHIN = 4096  # bytes
_local = threading.local()


def mime_type(sample: bytes, content_type: str) -> str:
    """Return the type of a body that starts with `sample` and was sent as `content_type` (header value, or empty)."""
    if _HTML_START.match(sample):
        return "text/html"
    if _XML_START.match(sample) and _XHTML.search(sample[:_ROOT_WITHIN]):
        return "application/xhtml+xml"
    declared = declared_type(content_type)
    sniffed = str(_magic().from_buffer(sample)) if sample else EMPTY
    if sniffed in _EMPTY or not _TYPE.fullmatch(sniffed):
        return declared or EMPTY
    if sniffed in _VAGUE:
        if _XHTML.search(sample[:_ROOT_WITHIN]):
            return "application/xhtml+xml"
        if declared and declared not in _VAGUE:
            return declared
    return sniffed


def likely_type(sample: bytes, content_type: str) -> str:
    """Return the type for the search for links: the declared one if it is specific, since sniffing costs more."""
    declared = declared_type(content_type)
    return mime_type(sample, content_type) if declared in _VAGUE else declared


def declared_type(content_type: str) -> str:
    """Return the type in a Content-Type header, in lower case; empty for none or an invalid one."""
    text = content_type.partition(";")[0].strip().lower()
    return text if _TYPE.fullmatch(text) else ""


def _magic() -> magic.Magic:
    # A libmagic cookie must not be shared between threads.
    found: magic.Magic | None = getattr(_local, "magic", None)
    if found is None:
        found = _local.magic = magic.Magic(mime=True)
    return found
