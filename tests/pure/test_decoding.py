"""Bodies without their codings: as they were sent, or stored by others without what their heads name."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from webarcfs.warc import decoding
from webarcfs.warc.decoding import BadBody, BodyNotes, BodyRemark, decoded, kept_codings
from webarcfs.warc.http_response import Head

pytestmark = pytest.mark.pure

PAGE = "<p>Grüße aus dem Archiv, und noch einmal Grüße.</p>".encode() * 20
LATIN = "<p>Grüße aus dem Archiv</p>".encode("latin-1")
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 700
STORED = [PAGE, LATIN, PICTURE, "Привет".encode("cp1251"), b"\xff\xd8\xff\xe0\0\x10JFIF\0", b"x"]
_RAW = zlib.compressobj(wbits=-zlib.MAX_WBITS)
PACKED = {
    "gzip": gzip.compress(PAGE),
    "x-gzip": gzip.compress(PAGE),
    "deflate": zlib.compress(PAGE),
    "Deflate": _RAW.compress(PAGE) + _RAW.flush(),
    "br": brotli.compress(PAGE),
    "zstd": zstandard.compress(PAGE),
    "ZSTD": zstandard.compress(PAGE[:300]) + zstandard.compress(PAGE[300:]),
    "gzip, zstd": zstandard.compress(gzip.compress(PAGE)),
    "identity, br": brotli.compress(PAGE),
}


def head(codings: str, mime: str = "") -> Head:
    return Head(b"", 200, {"content-encoding": codings, "content-type": mime})


def body(codings: str, sent: bytes, uncoded: list[str] | None = None) -> bytes:
    """A body that a server sent; with a list `uncoded`, one that another program stored."""
    notes = BodyNotes()
    parts = decoded(io.BytesIO(sent), head(codings), len(sent), notes=notes, trust_length=uncoded is None)
    taken = b"".join(parts)
    if uncoded is not None:
        uncoded += notes.uncoded
    return taken


def forgiven(codings: str, sent: bytes, step: int = 1 << 16) -> tuple[bytes, list[str]]:
    """A body that comes in pieces of `step` bytes, and what was remarked."""

    class Pieces(io.BytesIO):
        def read(self, _size: int | None = -1, /) -> bytes:
            return super().read(step)

    notes = BodyNotes()
    taken = b"".join(decoded(Pieces(sent), head(codings), len(sent), notes=notes))
    return taken, [*notes.remarks]


@pytest.mark.parametrize("codings", PACKED)
def test_each_coding_is_undone(codings: str) -> None:
    uncoded: list[str] = []
    assert body(codings, PACKED[codings]) == body(codings, PACKED[codings], uncoded) == PAGE
    assert (uncoded, kept_codings(head(codings))) == ([], [])


@pytest.mark.parametrize("codings", PACKED)
def test_what_is_cut_or_broken_is_no_body(codings: str) -> None:
    packed = PACKED[codings]
    with pytest.raises(BadBody, match=r"truncated-|bad-"):
        body(codings, packed[:-12])
    broken = bytearray(packed)
    broken[len(packed) // 2 :] = b"\xff" * 40
    with pytest.raises(BadBody, match=r"truncated-|bad-"):
        body(codings, bytes(broken))


@pytest.mark.parametrize("codings", PACKED)
@pytest.mark.parametrize("sent", [PAGE, LATIN, PICTURE, b"x"])
def test_a_body_that_never_had_its_coding_is_taken_as_it_came(codings: str, sent: bytes) -> None:
    notes = BodyNotes()
    assert b"".join(decoded(io.BytesIO(sent), head(codings), len(sent), notes=notes)) == sent
    assert notes.uncoded == [each for each in reversed(codings.lower().split(", ")) if each != "identity"]


_FORGIVING = ["gzip", "x-gzip", "deflate"]


@pytest.mark.parametrize("step", [1, 7, 1 << 16])
@pytest.mark.parametrize("codings", _FORGIVING)
def test_bytes_behind_the_end_are_left_out(codings: str, step: int) -> None:
    for tail in (b"\r\n", b"<!-- served from a cache -->" * 40, b"\x1f\x8b", b"\x1f\x8b\x09" + bytes(20), b"\0\0\n"):
        assert forgiven(codings, PACKED[codings] + tail, step) == (PAGE, [BodyRemark.TRAILING_BYTES])
    assert forgiven(codings, PACKED[codings] + bytes(9), step) == (PAGE, [])


@pytest.mark.parametrize("step", [1, 7, 1 << 16])
@pytest.mark.parametrize(("codings", "trailer"), [("gzip", 8), ("x-gzip", 8), ("deflate", 4)])
def test_a_checksum_may_be_missing(codings: str, trailer: int, step: int) -> None:
    for cut in range(1, trailer + 1):
        assert forgiven(codings, PACKED[codings][:-cut], step) == (PAGE, [BodyRemark.BAD_CHECKSUM])
    with pytest.raises(BadBody, match="truncated-"):
        forgiven(codings, PACKED[codings][: -trailer - 1], step)


def test_a_wrong_checksum_of_gzip_is_remarked_and_members_follow_each_other() -> None:
    wrong = PACKED["gzip"][:-8] + b"\xff" * 8
    assert forgiven("gzip", wrong) == (PAGE, [BodyRemark.BAD_CHECKSUM])
    assert forgiven("gzip", wrong + PACKED["gzip"], 3) == (PAGE * 2, [BodyRemark.BAD_CHECKSUM])
    with pytest.raises(BadBody, match="truncated-gzip"):
        forgiven("gzip", PACKED["gzip"] + PACKED["gzip"][:40])
    with pytest.raises(BadBody, match="bad-gzip"):
        forgiven("gzip", PACKED["gzip"] + b"\x1f\x8b\x08\0\0\0\0\0\0\3" + b"\xff" * 90)


@pytest.mark.parametrize("step", [1, 5, 1 << 16])
def test_each_field_of_the_head_of_gzip_is_passed_over(step: int) -> None:
    raw = PACKED["gzip"][10:]
    start = b"\x1f\x8b\x08%c\0\0\0\0\0\3"
    for flags, fields in ((4, b"\4\0abcd"), (8, b"name\0"), (16, b"comment\0"), (2, b"\0\0"), (1, b"")):
        assert forgiven("gzip", start % flags + fields + raw, step) == (PAGE, [])
    assert forgiven("gzip", start % 31 + b"\1\0x" + b"n\0c\0" + b"\0\0" + raw, step) == (PAGE, [])
    for flags in (8, 16):  # a name without an end, and one that never ends
        with pytest.raises(BadBody, match="truncated-gzip"):
            forgiven("gzip", start % flags + b"n" * 900, step)
    with pytest.raises(BadBody, match="bad-gzip"):
        forgiven("gzip", start % 8 + b"n" * 300_000, 1 << 16)


@given(st.binary(max_size=2000), st.integers(1, 64), st.binary(max_size=30))
def test_gzip_is_undone_whatever_its_pieces(data: bytes, step: int, tail: bytes) -> None:
    """Whatever follows the end, the body is whole, or the tail begins a member that is not."""
    packed = gzip.compress(data)
    assert forgiven("gzip", packed, step) == (data, [])
    try:
        assert forgiven("gzip", packed + tail, step)[0].startswith(data)
    except BadBody:
        assert tail.lstrip(b"\0").startswith(b"\x1f\x8b\x08")


@pytest.mark.parametrize(
    ("name", "mime", "codings", "kept"),
    [
        ("x.tar.gz", "application/x-gzip", "x-gzip", ["x-gzip"]),
        ("x.tar.gz", "application/x-tar", "gzip", ["gzip"]),
        ("X.TGZ", "application/octet-stream", "gzip", ["gzip"]),
        ("x.tar.gz", "text/plain", "x-gzip", ["x-gzip"]),
        ("x.tar%2Egz", "", "gzip", ["gzip"]),
        ("dump.sql.gz", "application/octet-stream", "gzip", ["gzip"]),
        ("dump.sql.gz", "", "gzip", ["gzip"]),
        ("x.tar.zst", "application/zstd", "zstd", ["zstd"]),
        ("x.tar.gz", "application/x-tar", "gzip, br", ["gzip"]),
        ("x.tar.gz", "application/x-tar", "odd, gzip", ["odd"]),
        ("x.tar.gz", "application/x-tar", "br", []),
        ("x.tar.gz", "text/html; charset=utf-8", "gzip", []),
        ("x.svgz", "image/svg+xml", "gzip", []),
        ("sitemap.xml.gz", "application/xml", "x-gzip", []),
        ("feed.gz", "application/rss+xml", "gzip", []),
        ("page.html.gz", "text/html", "gzip", []),
        ("2020-May.txt.gz", "text/plain", "x-gzip", []),
        ("app.js.gz", "application/javascript", "gzip", []),
        ("x.tar", "application/x-tar", "gzip", []),
        ("x", "application/x-gzip", "gzip", []),
        ("", "", "gzip", []),
    ],
)
def test_a_file_that_is_packed_by_itself_stays_packed(name: str, mime: str, codings: str, kept: list[str]) -> None:
    for url in (f"http://www.example.org/a/{name}", f"http://www.example.org/a/{name}?v=1.gz"):
        assert kept_codings(head(codings, mime), url) == kept
    assert kept_codings(head(codings, mime), f"http://www.example.org/show?file={name}") == [
        coding for coding in kept if coding == "odd"
    ]
    sent = gzip.compress(PAGE)
    if kept == ["gzip"] and codings == "gzip":
        url = f"http://www.example.org/{name}"
        assert b"".join(decoded(io.BytesIO(sent), head(codings, mime), len(sent), url=url)) == sent


@pytest.mark.parametrize("codings", PACKED)
@pytest.mark.parametrize("stored", STORED)
def test_a_body_that_was_stored_without_its_coding_is_taken_as_it_is(codings: str, stored: bytes) -> None:
    uncoded: list[str] = []
    assert body(codings, stored, uncoded) == stored
    assert uncoded == [each for each in reversed(codings.lower().split(", ")) if each != "identity"]


@pytest.mark.parametrize("codings", ["gzip", "zstd"])
def test_what_has_the_sign_of_its_coding_is_damaged_and_not_taken(codings: str) -> None:
    with pytest.raises(BadBody):
        body(codings, PACKED[codings][:4] + b"rubbish" * 9, [])


@given(st.binary(max_size=300), st.sampled_from([*PACKED]))
def test_any_bytes_are_a_body_or_none(stored: bytes, codings: str) -> None:
    try:
        assert body(codings, stored, []) is not None
    except BadBody as error:
        assert str(error) in {*decoding.BodyFault}


def test_below_a_coding_that_nobody_knows_nothing_is_undone() -> None:
    assert body("gzip, odd", PACKED["gzip"]) == PACKED["gzip"]
    assert kept_codings(head("gzip, odd")) == ["gzip", "odd"]
    assert body("odd, gzip", PACKED["gzip"]) == PAGE
    assert kept_codings(head("odd, gzip, br")) == ["odd"]


@pytest.mark.large
@pytest.mark.parametrize("codings", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_is_seen_before_it_is_in_memory(codings: str) -> None:
    pack: dict[str, Callable[[bytes], bytes]] = {
        "gzip": lambda data: gzip.compress(data, 1),
        "deflate": lambda data: zlib.compress(data, 1),
        "br": lambda data: bytes(brotli.compress(data, quality=5)),
        "zstd": zstandard.compress,
    }
    packed = pack[codings](bytes(1 << 28))
    tracemalloc.start()
    parts = decoded(io.BytesIO(packed), head(codings), len(packed))
    with suppress(decoding.Bomb):
        for _, part in zip(range(16), parts, strict=False):
            assert len(part) <= 1 << 25
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 26


@pytest.mark.large
@pytest.mark.parametrize("codings", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_bytes_count_as_they_are_decoded(codings: str) -> None:
    """A body that grows is stopped at a bound that is far below a gigabyte, and one of any kind at the caller's."""
    size = 0
    packed = {
        "gzip": gzip.compress(bytes(100 << 20)),
        "deflate": zlib.compress(bytes(100 << 20)),
        "br": brotli.compress(bytes(100 << 20), quality=5),
        "zstd": zstandard.compress(bytes(100 << 20)),
        "gzip, gzip": gzip.compress(gzip.compress(bytes(100 << 20))),
    }[codings]
    with pytest.raises(decoding.Bomb, match="decompression-bomb"):
        for part in decoded(io.BytesIO(packed), head(codings), len(packed)):
            size += len(part)
    assert size <= 80 << 20
    parts = decoded(io.BytesIO(packed), head(codings), len(packed), most=1 << 20)
    with pytest.raises(decoding.TooBig, match="too-big"):
        b"".join(parts)


def test_the_limit_holds_to_the_byte() -> None:
    sent = gzip.compress(PAGE)
    assert b"".join(decoded(io.BytesIO(sent), head("gzip"), len(sent), most=len(PAGE))) == PAGE
    with pytest.raises(decoding.TooBig):
        b"".join(decoded(io.BytesIO(sent), head("gzip"), len(sent), most=len(PAGE) - 1))
