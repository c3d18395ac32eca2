"""The WARC record of a capture: what independent readers read is what the archive has."""

import base64
import hashlib
import io
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from webarcfs.access.visible_captures import NEVER, VisibleCapture
from webarcfs.room.pages.mementos import record_id, warc_record

pytestmark = pytest.mark.pure

TAG = "2026-01-01T01:00:00@e.org"
BODY = "<p>für dich</p>\r\n\r\n".encode()
PAGE = VisibleCapture(
    url="http://e.org/a?b=c", path="/e.org/a?b=c", surt="org,e)/a?b=c", since=1_767_225_600, until=NEVER,
    last=1_767_225_600, captured=1_767_225_000, status=200, mime_type="text/html", blob="1" * 40, size=len(BODY),
)  # fmt: skip
MOVED = replace(PAGE, status=302, mime_type="", blob="", size=0, target="http://e.org/b#c")
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\n"
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
    b"Set-Cookie: a=b\r\nSet-Cookie: c=d\r\nX-Odd: \x00a\x1b[31m\r\n folded\r\nbad name: 1\r\n\r\n"
)


def written(capture: VisibleCapture, head: bytes, body: bytes) -> bytes:
    return b"".join(warc_record(capture, TAG, head, body))


def read(raw: bytes) -> tuple[dict[str, str], str, list[tuple[str, str]], bytes]:
    """Read a file of one record with warcio: its fields, the status line, the fields of HTTP, the body."""
    (found,) = (
        (
            dict(record.rec_headers.headers),
            f"{record.http_headers.protocol} {record.http_headers.statusline}",
            record.http_headers.headers,
            record.content_stream().read(),
        )
        for record in ArchiveIterator(io.BytesIO(raw), check_digests="raise")
    )
    return found


def test_a_page_is_read_back() -> None:
    fields, status, http, body = read(written(PAGE, HEAD, BODY))
    assert body == BODY
    assert status == "HTTP/1.1 200 OK"
    assert fields == {
        "WARC-Type": "response",
        "WARC-Record-ID": f"<urn:uuid:{record_id(PAGE, TAG)}>",
        "WARC-Target-URI": PAGE.url,
        "WARC-Date": "2025-12-31T23:50:00Z",
        "WARC-Payload-Digest": f"sha1:{base64.b32encode(hashlib.sha1(BODY).digest()).decode()}",
        "Webarcfs-Commit-Tag": TAG,
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": fields["Content-Length"],
    }
    assert http == [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Set-Cookie", "a=b"),
        ("Set-Cookie", "c=d"),
        ("X-Odd", "a [31m folded"),
        ("Content-Length", str(len(BODY))),
    ]


def test_a_redirect_has_a_head_that_says_no_more_than_is_known() -> None:
    _, status, http, body = read(written(MOVED, b"", b""))
    assert status == "HTTP/1.1 302 Found"
    assert http == [("Location", "http://e.org/b#c"), ("Content-Length", "0")]
    assert body == b""


@pytest.mark.parametrize("head", [b"", b"nonsense", b"\x00\xff", b"HTTP/1.1 twohundred OK\r\n\r\n"])
def test_a_page_without_a_head_has_its_type(head: bytes) -> None:
    _, status, http, _ = read(written(PAGE, head, BODY))
    assert status == "HTTP/1.1 200 OK"
    assert http == [("Content-Type", "text/html"), ("Content-Length", str(len(BODY)))]


def test_an_odd_status_has_no_reason() -> None:
    _, status, _, _ = read(written(replace(PAGE, status=299), b"", BODY))
    assert status.rstrip() == "HTTP/1.1 299"


def test_a_head_of_another_version_of_http_is_one_of_this() -> None:
    _, status, http, _ = read(written(PAGE, b"HTTP/2 404\nserver: x\n\n", BODY))
    assert status.startswith("HTTP/1.1 404")
    assert http[0] == ("server", "x")


def test_the_same_capture_is_the_same_record() -> None:
    assert written(PAGE, HEAD, BODY) == written(replace(PAGE), HEAD, BODY)
    others = [
        record_id(PAGE, "2026-02-01T01:00:00@e.org"),
        record_id(replace(PAGE, url="https://e.org/a?b=c"), TAG),
        record_id(replace(PAGE, blob="2" * 40), TAG),
        record_id(MOVED, TAG),
        record_id(replace(MOVED, target="http://e.org/d"), TAG),
    ]
    assert len({*others, record_id(PAGE, TAG)}) == 6


@settings(deadline=None)
@given(st.binary(max_size=120), st.binary(max_size=60))
@example(b"no field\n and more of it", b"")
def test_no_head_and_no_body_breaks_a_record(head: bytes, body: bytes) -> None:
    for start in (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 \xff\r\nA: b\r\n"):
        raw = written(replace(PAGE, size=len(body)), start + head, body)
        _, status, http, found = read(raw)
        assert found == body
        assert status.startswith("HTTP/1.1 ")
        assert [value for name, value in http if name.lower() == "content-length"] == [str(len(body))]
        assert not {name.lower() for name, _ in http} & {"content-encoding", "transfer-encoding"}
        first = raw.partition(b"\r\n\r\n")[2].partition(b"\r\n\r\n")[0]
        assert not set(first.replace(b"\r\n", b"")) & {*range(9), *range(10, 32), 127}
