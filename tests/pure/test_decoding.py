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
from webarcfs.warc.decoding import BadBody, decoded, unknown_codings
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


def head(codings: str) -> Head:
    return Head(b"", 200, {"content-encoding": codings})


def body(codings: str, sent: bytes, uncoded: list[str] | None = None) -> bytes:
    return b"".join(decoded(io.BytesIO(sent), head(codings), len(sent), uncoded=uncoded))


@pytest.mark.parametrize("codings", PACKED)
def test_each_coding_is_undone(codings: str) -> None:
    uncoded: list[str] = []
    assert body(codings, PACKED[codings]) == body(codings, PACKED[codings], uncoded) == PAGE
    assert (uncoded, unknown_codings(head(codings))) == ([], [])


@pytest.mark.parametrize("codings", PACKED)
def test_what_is_cut_or_broken_is_no_body(codings: str) -> None:
    packed = PACKED[codings]
    with pytest.raises(BadBody, match=r"truncated-|bad-"):
        body(codings, packed[:-3])
    with pytest.raises(BadBody, match="bad-"):
        body(codings, b"\xff\xfe\xfd\xfc" * 90)


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
    assert unknown_codings(head("gzip, odd")) == ["gzip", "odd"]
    assert body("odd, gzip", PACKED["gzip"]) == PAGE
    assert unknown_codings(head("odd, gzip, br")) == ["odd"]


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
