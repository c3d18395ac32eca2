"""The MIME type of a document, as the WHATWG MIME Sniffing Standard computes it (/Cr-12.3/)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.content.mimetype import EMPTY, declared_type, mime_type

pytestmark = pytest.mark.pure

_XHTML = b'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head/></html>'
_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0"
_TEXT = b"plain words, and nothing else\n"


@pytest.mark.parametrize(
    ("sample", "sent_as", "is_"),
    [
        # what is declared holds, whatever the bytes are like
        (b"h1,h2,body{margin:0}\n.a,.b,.c{color:red}\n", "text/css", "text/css"),
        (b".a{}\n.b{}\n", "text/css; charset=utf-8", "text/css"),
        (b"<html><script>var a = function() {};</script>", "application/javascript", "application/javascript"),
        (b"document.write('<html>')", "text/javascript;charset=utf-8", "text/javascript"),
        (b'\xef\xbb\xbf{"html": "<html>"}', "application/json", "application/json"),
        (b"<!DOCTYPE html>", "application/ld+json", "application/ld+json"),
        (b"<!doctype html>", "image/png", "image/png"),
        (_PNG, "text/css", "text/css"),
        (_PNG, "text/html", "text/html"),
        (_PNG, "application/octet-stream", "application/octet-stream"),
        (_PNG, "image/svg+xml", "image/svg+xml"),
        (_TEXT, "application/octet-stream", "application/octet-stream"),
        (b"%PDF-1.4\n", "application/x-download", "application/x-download"),
        (bytes(range(256)) * 400, "application/x-ours", "application/x-ours"),
        (b"wOF2\0\1\0\0", "text/html", "text/html"),
        (_TEXT, "Application/JavaScript; charset=utf-8", "application/javascript"),
        (b'<?xml version="1.0"?><rss version="2.0"/>', "application/rss+xml", "application/rss+xml"),
        # so do a page's type that begins as XML, and text with markup in it
        (_XHTML, "text/html", "text/html"),
        (b'<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><title>x</title>', "text/html", "text/html"),
        (b"\xef\xbb\xbf \n<HTML lang=de>", "text/plain", "text/plain"),
        (b"<!DOCTYPE html><p>", "text/plain; charset=utf-8", "text/plain"),
        (b"<html>", "Text/Plain", "text/plain"),
        # but for a feed in HTML's clothes
        (b'<?xml version="1.0"?>\n<!-- x --><rss version="2.0">', "text/html", "application/rss+xml"),
        (b'<feed xmlns="http://www.w3.org/2005/Atom">', "text/html; charset=utf-8", "application/atom+xml"),
        (b"<p><rss>", "text/html", "text/html"),
        # XML is XHTML by its root or its document type, as for browsers
        (_XHTML, "text/xml", "application/xhtml+xml"),
        (_XHTML, "application/xml", "application/xhtml+xml"),
        (_XHTML, "application/xhtml+xml", "application/xhtml+xml"),
        (_XHTML, "application/atom+xml", "application/atom+xml"),
        (
            b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN">',
            "",
            "application/xhtml+xml",
        ),
        (b"<?xml version='1.0'?><rss><![CDATA[" + _XHTML[22:] + b"]]></rss>", "text/xml", "text/xml"),
        # images, sounds and films may be others
        (_PNG, "image/gif", "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpg", "image/jpeg"),
        (b"\x1a\x45\xdf\xa3\x42\x82\x84webm", "video/mp4", "video/webm"),
        (b"OggS\0", "audio/mpeg", "application/ogg"),
        (_TEXT, "image/png", "image/png"),
        # what old versions of Apache said of all that they did not know: text or bytes
        *(
            (b"%PDF-1.4\n\0\1\2", sent, "application/octet-stream")
            for sent in (
                "text/plain",
                "text/plain; charset=ISO-8859-1",
                "text/plain; charset=iso-8859-1",
                "text/plain; charset=UTF-8",
            )
        ),
        (_PNG, "text/plain", "application/octet-stream"),
        (b"%PDF-1.4\n", "text/plain", "text/plain"),
        (b"\xff\xfe\0\0", "text/plain", "text/plain"),
        (_PNG, "text/plain; charset=utf-8", "text/plain"),
        (_PNG, "text/plain;charset=UTF-8", "text/plain"),
        (_PNG, "TEXT/plain", "text/plain"),
        # nothing declared, or nothing that is a type
        (b"<!DOCTYPE html><title>x</title>", "", "text/html"),
        (b"<p>x", "", "text/html"),
        (b" \n<!-- x -->", "", "text/html"),
        (b"<html>", "*/*", "text/html"),
        (b"<html>", "unknown/unknown", "text/html"),
        (b"<pre>", "", "text/plain"),
        (b"<?xml version='1.0'?><a/>", "", "text/xml"),
        (_PNG, "", "image/png"),
        (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", "", "application/pdf"),
        (b"GIF89a", "no type", "image/gif"),
        (_TEXT, "", "text/plain"),
        (_TEXT, "no type", "text/plain"),
        (b"h1,h2,body{margin:0}\n", "", "text/plain"),
        ("<html>".encode("utf-16"), "", "text/plain"),
        (bytes(range(256)) * 400, "", "application/octet-stream"),
        (b"\x01\x02\x03\xff" * 8, "", "application/octet-stream"),
        (b" " * 40, "", "text/plain"),
        (b"<", "", "text/plain"),
        # nothing at all
        (b"", "", EMPTY),
        (b"", "text/html", "text/html"),
        (b"", "text", EMPTY),
    ],
)
def test_types(sample: bytes, sent_as: str, is_: str) -> None:
    assert mime_type(sample, sent_as) == is_


@pytest.mark.parametrize(
    ("sample", "sent_as", "is_"),
    [
        (_PNG, "text/plain", "text/plain"),
        (_PNG, "image/gif", "image/gif"),
        (b"<rss>", "text/html", "text/html"),
        (b"<html>", "", "text/plain"),
        (_PNG, "", "image/png"),
    ],
)
def test_a_head_may_forbid_to_look(sample: bytes, sent_as: str, is_: str) -> None:
    assert mime_type(sample, sent_as, nosniff=True) == is_


@given(
    st.binary(max_size=100)
    | st.sampled_from([b"<rss", b"\0\0\0\x18ftypmp4", b"\xff\xfb\x90", b"\x1a\x45\xdf\xa3\x42\x82"]),
    st.text(max_size=20) | st.sampled_from(["", "text/plain", "text/html", "video/mp4", "image/png"]),
)
def test_no_body_and_no_type_raises(sample: bytes, sent_as: str) -> None:
    assert mime_type(sample, sent_as)


@pytest.mark.parametrize(
    ("content_type", "declared"),
    [
        ("text/html", "text/html"),
        (" Text/HTML ; charset=ISO-8859-1", "text/html"),
        ("application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
        ("image/svg+xml", "image/svg+xml"),
        ("", ""),
        ("html", ""),
        ("text/", ""),
        ("/html", ""),
        ("text/html, text/plain", ""),
        ("text /html", ""),
        ("tëxt/html", ""),
        ("*/*", ""),
    ],
)
def test_declared(content_type: str, declared: str) -> None:
    assert declared_type(content_type) == declared
