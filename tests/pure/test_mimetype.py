"""The MIME type of a document: from its bytes first, from the server's word where the bytes say little (/Cr-12.3/)."""

from __future__ import annotations

import pytest

from webarcfs.content.mimetype import EMPTY, declared_type, likely_type, mime_type

pytestmark = pytest.mark.pure

_XHTML = b'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head/></html>'
_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0"
_TEXT = b"plain words, and nothing else\n"


@pytest.mark.parametrize(
    ("sample", "sent_as", "is_"),
    [
        # what says in its first words that it is HTML, whatever the server says
        (b"<!DOCTYPE html><title>x</title>", "", "text/html"),
        (b"\xef\xbb\xbf \n<HTML lang=de>", "text/plain", "text/html"),
        (b"<html><script>var a = function() {};</script>", "application/javascript", "text/html"),
        (b"<!doctype html>", "image/png", "text/html"),
        # XHTML, by its root or its document type
        (_XHTML, "text/xml", "application/xhtml+xml"),
        (
            b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN">',
            "",
            "application/xhtml+xml",
        ),
        # bytes that libmagic knows go before the server's word
        (_PNG, "text/html", "image/png"),
        (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", "text/plain", "application/pdf"),
        # text, XML and bytes of any kind: the server's word says more
        (_TEXT, "text/css", "text/css"),
        (_TEXT, "Application/JavaScript; charset=utf-8", "application/javascript"),
        (b'<?xml version="1.0"?><rss version="2.0"/>', "application/rss+xml", "application/rss+xml"),
        (b"\x01\x02\x03\xff" * 8, "application/x-ours", "application/x-ours"),
        # and where it says nothing either
        (_TEXT, "", "text/plain"),
        (_TEXT, "application/octet-stream", "text/plain"),
        (_TEXT, "no type", "text/plain"),
        (b"\x01\x02\x03\xff" * 8, "", "application/octet-stream"),
        # nothing at all
        (b"", "", EMPTY),
        (b"", "text/html", "text/html"),
        (b"", "text", EMPTY),
    ],
)
def test_types(sample: bytes, sent_as: str, is_: str) -> None:
    assert mime_type(sample, sent_as) == is_


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


@pytest.mark.parametrize(
    ("sample", "sent_as", "is_"),
    [
        (_PNG, "text/css", "text/css"),  # as it was sent: nothing is looked at
        (_PNG, "text/plain", "image/png"),
        (b"<html>", "", "text/html"),
        (_XHTML, "application/xml", "application/xhtml+xml"),
    ],
)
def test_for_the_search_for_links_a_plain_word_of_the_server_is_enough(sample: bytes, sent_as: str, is_: str) -> None:
    assert likely_type(sample, sent_as) == is_
