"""A response's body without its transfer and content codings, as a stream, checked for completeness (RFC 9110, 9112).

A body that is too short, or does not decode, is never archived: `BadBody` has the reason.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import chain, takewhile
from typing import Protocol

import brotli
import zstandard

from webarcfs.warc.http_response import Head, Readable, Response

_CHUNK = 1 << 16
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1f\x7f]")
_LONGEST_SIGN = 512
#: Of a body that may lack its coding, this much is decoded in proof, and to this much at most.
_FIRST_BLOCK = 1 << 16
_PROOF = 1 << 20
_SIZE_LINE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(;[^\r\n]*)?\r?\n")
#: A body that grows beyond this size by more than this factor is an attack on the disk.
_BOMB_SIZE = 1 << 26
_BOMB_FACTOR = 200
_ZSTD_WINDOW = 1 << 23
#: A block of 4 bytes gives up to 128 KiB: small steps show a bomb before it is in memory.
_ZSTD_STEP = 256


class BodyFault(StrEnum):
    """What is wrong with a body: words of crawl.log. `agent/crawl/vocabulary.py` has a sentence for each."""

    BAD_LENGTH = "bad-length"
    TRUNCATED = "truncated"
    BROKEN_CHUNKING = "broken-chunking"
    BOMB = "decompression-bomb"
    TOO_BIG = "too-big"
    BAD_GZIP = "bad-gzip"
    BAD_DEFLATE = "bad-deflate"
    BAD_BR = "bad-br"
    BAD_ZSTD = "bad-zstd"
    TRUNCATED_GZIP = "truncated-gzip"
    TRUNCATED_DEFLATE = "truncated-deflate"
    TRUNCATED_BR = "truncated-br"
    TRUNCATED_ZSTD = "truncated-zstd"


class BadBody(Exception):
    """The body contradicts the head; the message is a BodyFault."""


class Bomb(BadBody):
    """The body grows excessively as it is decoded."""


class TooBig(Bomb):
    """The decoded body is larger than it may be."""


class _Decoder(Protocol):
    def decode(self, data: bytes) -> Iterator[bytes]: ...
    def end(self) -> None: ...


def body_of(response: Response) -> Iterator[bytes]:
    """Return the body of a response record, decoded unless that was done before. Raises BadBody."""
    if response.decoded:
        return _as_sent(response.stream, response.size)
    return decoded(response.stream, response.head, response.size)


def decoded(
    stream: Readable,
    head: Head,
    size: int,
    *,
    uncoded: list[str] | None = None,
    trust_length: bool = True,
    most: int = 0,
) -> Iterator[bytes]:
    """Yield the decoded body after `head`, of which `size` bytes were recorded. Raises BadBody if it is incomplete.

    An unknown content coding is kept, with those below it; `unknown_codings` returns them. With a list `uncoded`, a
    body that another program stored without its codings, but with a head that names them, is accepted as it is, and the
    list receives these codings. Without `trust_length`, so is one that is shorter than Content-Length: the caller finds
    out whether it is whole. Raises TooBig for a body of more than `most` bytes; 0 is no limit.
    """
    lenient = uncoded is not None
    if _is(head.get("transfer-encoding"), "chunked"):
        parts = _dechunked(stream, lenient=lenient)
    else:
        is_short = trust_length and head.length is not None and size < head.length
        if is_short and not (lenient and _codings(head)):
            raise BadBody(BodyFault.TRUNCATED)
        if lenient and head.has_bad_length and not size:
            raise BadBody(BodyFault.BAD_LENGTH)  # wget takes it for 0, and does not read the body
        parts = _as_sent(stream, size)
    for coding in takewhile(_DECODERS.__contains__, reversed(_codings(head))):
        parts = _through(_DECODERS[coding](), parts) if uncoded is None else _if_coded(coding, parts, uncoded)
    went = 0
    for part in parts:
        went += len(part)
        if most and went > most:
            raise TooBig(BodyFault.TOO_BIG)
        yield part


def unknown_codings(head: Head) -> list[str]:
    """Return content codings that stay on the body, because nothing here decodes them."""
    codings = _codings(head)
    return codings[: len(codings) - sum(1 for _ in takewhile(_DECODERS.__contains__, reversed(codings)))]


def _codings(head: Head) -> list[str]:
    names = (name.strip().lower() for name in head.get("content-encoding").split(","))
    return [name for name in names if name and name != "identity"]


def _is(field: str, word: str) -> bool:
    return word in (part.strip().lower() for part in field.split(","))


def _as_sent(stream: Readable, size: int) -> Iterator[bytes]:
    while data := stream.read(_CHUNK):
        size -= len(data)
        yield data
    if size > 0:
        raise BadBody(BodyFault.TRUNCATED)


def _dechunked(stream: Readable, *, lenient: bool) -> Iterator[bytes]:
    begun = False
    while True:
        line = stream.readline(1024)
        match = _SIZE_LINE.fullmatch(line)
        if match is None and lenient and not begun:
            yield line
            yield from _as_sent(stream, 0)
            return
        if match is None:
            raise BadBody(BodyFault.BROKEN_CHUNKING)
        begun = True
        left = int(match[1], 16)
        if left == 0:
            return
        while left:
            data = stream.read(min(left, _CHUNK))
            if not data:
                raise BadBody(BodyFault.BROKEN_CHUNKING)
            left -= len(data)
            yield data
        if stream.readline(2).strip():
            raise BadBody(BodyFault.BROKEN_CHUNKING)


def _if_coded(coding: str, parts: Iterator[bytes], uncoded: list[str]) -> Iterator[bytes]:
    """Return the body, decoded if its first block decodes."""
    start = b""
    for part in parts:
        start += part
        if len(start) >= _FIRST_BLOCK:
            break
    whole = chain((start,), parts)
    if not start or _is_coded(coding, start):
        return _through(_DECODERS[coding](), whole)
    uncoded.append(coding)
    return whole


def _is_coded(coding: str, start: bytes) -> bool:
    sign = _SIGNS.get(coding)
    if sign is not None:  # what begins with it and does not decode is damaged
        return sign.match(start) is not None
    if _is_text(start[: _LONGEST_SIGN + 1]):
        return False
    decoder, size = _DECODERS[coding](), 0
    try:
        for data in decoder.decode(start):
            size += len(data)
            if size > _PROOF:
                break
        if size <= len(start) < _FIRST_BLOCK:  # a few bytes mean something in any coding, but they do not end
            decoder.end()
    except BadBody:
        return False
    return True


def _is_text(data: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return _CONTROL.search(data) is None


def _through(decoder: _Decoder, parts: Iterable[bytes]) -> Iterator[bytes]:
    came = went = 0
    for part in parts:
        came += len(part)
        for data in decoder.decode(part):
            went += len(data)
            if went > _BOMB_SIZE and went > came * _BOMB_FACTOR:
                raise Bomb(BodyFault.BOMB)
            yield data
    if came:
        decoder.end()


class _Zlib:
    """gzip (any number of members, RFC 1952) and deflate (zlib's form, or raw as some servers send it)."""

    def __init__(self, wbits: int, bad: BodyFault, cut: BodyFault) -> None:
        self._wbits = wbits
        self._bad = bad
        self._cut = cut
        self._stream = zlib.decompressobj(wbits)
        self._begun = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._stream.eof:
                if not data.strip(b"\0"):  # padding after the last member
                    return
                self._stream, self._begun = zlib.decompressobj(self._wbits), False
            try:
                yield self._stream.decompress(data, _CHUNK)
            except zlib.error:
                if self._begun or self._wbits != zlib.MAX_WBITS:
                    raise BadBody(self._bad) from None
                self._wbits = -zlib.MAX_WBITS
                self._stream = zlib.decompressobj(self._wbits)
                continue
            self._begun = True
            data = self._stream.unconsumed_tail or self._stream.unused_data

    def end(self) -> None:
        if not self._stream.eof:
            raise BadBody(self._cut)


class _Brotli:
    """br (RFC 7932)."""

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def decode(self, data: bytes) -> Iterator[bytes]:
        try:
            yield self._stream.process(data, output_buffer_limit=_CHUNK)
            while not self._stream.can_accept_more_data():
                yield self._stream.process(b"", output_buffer_limit=_CHUNK)
        except brotli.error:
            raise BadBody(BodyFault.BAD_BR) from None

    def end(self) -> None:
        if not self._stream.is_finished():
            raise BadBody(BodyFault.TRUNCATED_BR)


class _Zstd:
    """zstd (RFC 8878), any number of frames, with the largest window that RFC 9659 allows."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._frame = self._decompressor.decompressobj()
        self._is_within = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_STEP):
            step = data[start : start + _ZSTD_STEP]
            while step:
                try:
                    yield self._frame.decompress(step)
                except zstandard.ZstdError:
                    raise BadBody(BodyFault.BAD_ZSTD) from None
                self._is_within = not self._frame.eof
                step = self._frame.unused_data if self._frame.eof else b""
                if self._frame.eof:
                    self._frame = self._decompressor.decompressobj()

    def end(self) -> None:
        if self._is_within:
            raise BadBody(BodyFault.TRUNCATED_ZSTD)


def _gzip() -> _Decoder:
    return _Zlib(zlib.MAX_WBITS | 16, BodyFault.BAD_GZIP, BodyFault.TRUNCATED_GZIP)


def _deflate() -> _Decoder:
    return _Zlib(zlib.MAX_WBITS, BodyFault.BAD_DEFLATE, BodyFault.TRUNCATED_DEFLATE)


_DECODERS: dict[str, Callable[[], _Decoder]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
#: How bodies begin in the codings that have a sign; brotli and deflate have none.
_SIGNS = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "x-gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
}
