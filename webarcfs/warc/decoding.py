"""A response's body without its transfer and content codings, as a stream, checked for completeness (RFC 9110, 9112).

A body that is too short, or does not decode, is never archived: `BadBody` has the reason. What browsers forgive is
forgiven here, and remarked: bytes behind the end of gzip and deflate, a wrong checksum of gzip, a missing one of both,
and a body that never had the coding that its head names.

A file may be gzip by itself, and a server may label it so once more: `a.tar.gz` with `Content-Encoding: gzip`, as
Apache's AddEncoding does. Nobody asked for a coding, so the label describes the file. Browsers save such files as they
are, and show pages unpacked. `codings_of` decides as they do.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, takewhile
from typing import Final, Protocol
from urllib.parse import unquote

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

#: Coding → how the names of files end that have it by themselves.
_FILES: Final = {
    "gzip": (".gz", ".tgz", ".taz", ".gzip"),
    "x-gzip": (".gz", ".tgz", ".taz", ".gzip"),
    "br": (".br",),
    "zstd": (".zst", ".tzst", ".zstd"),
}
#: Archives of files: no browser shows them, whatever type their server declares.
_PACKED_FOLDERS: Final = (".tar.gz", ".tgz", ".taz", ".tar.br", ".tar.zst", ".tzst")
#: Types that browsers show, so that they undo the coding.
_SHOWN: Final = re.compile(
    r"(?:text|image|audio|video|font)/.*"
    r"|application/(?:.*\+xml|.*\+json|xml|xml-dtd|json|(?:x-)?javascript|ecmascript|pdf|wasm|font-.*|x-font-.*)"
)
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})


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


class BodyRemark(StrEnum):
    """What to know of a body that is archived all the same: words of crawl.log, as those of BodyFault."""

    TRAILING_BYTES = "trailing-bytes"
    BAD_CHECKSUM = "bad-checksum"


class BadBody(Exception):
    """The body contradicts the head; the message is a BodyFault."""


class Bomb(BadBody):
    """The body grows excessively as it is decoded."""


class TooBig(Bomb):
    """The decoded body is larger than it may be."""


class _Decoder(Protocol):
    def decode(self, data: bytes) -> Iterator[bytes]: ...
    def end(self) -> None: ...


@dataclass(slots=True)
class BodyNotes:
    """What was forgiven while a body was read: codings that it does not have, and remarks."""

    uncoded: list[str] = field(default_factory=list)
    remarks: list[BodyRemark] = field(default_factory=list)


def body_of(response: Response) -> Iterator[bytes]:
    """Return the body of a response record, decoded unless that was done before. Raises BadBody."""
    if response.decoded:
        return _as_sent(response.stream, response.size)
    return decoded(response.stream, response.head, response.size, url=response.url)


def decoded(
    stream: Readable,
    head: Head,
    size: int,
    *,
    url: str = "",
    notes: BodyNotes | None = None,
    trust_length: bool = True,
    most: int = 0,
) -> Iterator[bytes]:
    """Yield the decoded body after `head`, of which `size` bytes were recorded. Raises BadBody if it is incomplete.

    A content coding that is unknown, or that the file at `url` has by itself, is kept, with those below it;
    `kept_codings` returns them. A body without a coding that its head names is accepted as it is. `notes` receive these
    codings, and what else was forgiven. Without `trust_length`, the framing may be gone as well: another program stored
    the body. It may then be shorter than Content-Length, and the caller finds out whether it is whole. Raises TooBig
    for a body of more than `most` bytes; 0 is no limit.
    """
    lenient = not trust_length
    notes = BodyNotes() if notes is None else notes
    if head.is_chunked:
        parts = _dechunked(stream, lenient=lenient)
    else:
        if trust_length and head.length is not None and size < head.length:
            raise BadBody(BodyFault.TRUNCATED)
        if lenient and head.has_bad_length and not size:
            raise BadBody(BodyFault.BAD_LENGTH)  # wget takes it for 0, and does not read the body
        parts = _as_sent(stream, size)
    for coding in codings_of(head, url):
        parts = _if_coded(coding, parts, notes, stored=lenient)
    went = 0
    for part in parts:
        went += len(part)
        if most and went > most:
            raise TooBig(BodyFault.TOO_BIG)
        yield part


def codings_of(head: Head, url: str = "") -> list[str]:
    """Return the content codings that are undone, the last one first."""
    named = _codings(head)
    codings = list(takewhile(_DECODERS.__contains__, reversed(named)))
    is_file = bool(codings) and len(codings) == len(named) and _is_file(codings[-1], head, url)
    return codings[:-1] if is_file else codings


def kept_codings(head: Head, url: str = "") -> list[str]:
    """Return the content codings that stay on the body: nothing here decodes them, or the file has them by itself."""
    codings = _codings(head)
    return codings[: len(codings) - len(codings_of(head, url))]


def _is_file(coding: str, head: Head, url: str) -> bool:
    """Return whether the file of a URL has a coding by itself: its name says so, and no browser shows its type."""
    name = unquote(url.partition("?")[0].rpartition("/")[2]).lower()
    if not name.endswith(_FILES.get(coding, ())):
        return False
    mime = head.content_type.partition(";")[0].strip().lower()
    if mime in _PAGES:
        return False
    return name.endswith(_PACKED_FOLDERS) or _SHOWN.fullmatch(mime) is None


def _codings(head: Head) -> list[str]:
    names = (name.strip().lower() for name in head.get("content-encoding").split(","))
    return [name for name in names if name and name != "identity"]


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


def _if_coded(coding: str, parts: Iterator[bytes], notes: BodyNotes, *, stored: bool) -> Iterator[bytes]:
    """Return the body, decoded if its first block decodes.

    What a server sent and does not decode is taken as it is only where it looks like something; what was `stored` by
    another program in any case.
    """
    first: list[bytes] = []
    size = 0
    for part in parts:
        first.append(part)
        size += len(part)
        if size >= _FIRST_BLOCK:
            break
    start = b"".join(first)
    whole = chain((start,), parts)
    # Decoding in proof comes last: most bodies need none.
    if not start or not (stored or coding in _SIGNS or _is_plain(start)) or _is_coded(coding, start):
        return _through(_DECODERS[coding](notes), whole)
    notes.uncoded.append(coding)
    return whole


def _is_coded(coding: str, start: bytes) -> bool:
    sign = _SIGNS.get(coding)
    if sign is not None:  # what begins with it and does not decode is damaged
        return sign.match(start) is not None
    if _is_text(start[: _LONGEST_SIGN + 1]):
        return False
    decoder, size = _DECODERS[coding](BodyNotes()), 0
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


def _is_plain(start: bytes) -> bool:
    """Return whether a body begins like text, markup or a usual file."""
    return _PLAIN.match(start) is not None or _is_text(start[: _LONGEST_SIGN + 1])


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


def _remark(notes: BodyNotes, remark: BodyRemark) -> None:
    if remark not in notes.remarks:
        notes.remarks.append(remark)


class _Gzip:
    """gzip (RFC 1952), any number of members.

    Browsers read no checksum and nothing behind the end. So both are remarked here, and a body is whole once its last
    block is.
    """

    _HEAD = re.compile(rb"\x1f\x8b\x08([\0-\x1f]).{6}", re.DOTALL)
    _LONGEST_HEAD = 1 << 17
    _TRAILER = 8
    #: Each member copies what is left of a step: a body may be nothing but members.
    _STEP = 1 << 12

    def __init__(self, notes: BodyNotes) -> None:
        self._notes = notes
        self._members = 0  # whose last block came
        self._stream: zlib._Decompress | None = None
        self._pending = b""  # of a head or a trailer
        self._in_trailer = False
        self._checksum = self._size = 0
        self._is_over = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), self._STEP):
            yield from self._decode(data[start : start + self._STEP])

    def _decode(self, data: bytes) -> Iterator[bytes]:
        while data and not self._is_over:
            if self._in_trailer:
                data = self._end_member(data)
            elif self._stream is None:
                data = self._begin_member(data)
            else:
                stream = self._stream
                try:
                    part = stream.decompress(data, _CHUNK)
                except zlib.error:
                    raise BadBody(BodyFault.BAD_GZIP) from None
                self._checksum, self._size = zlib.crc32(part, self._checksum), self._size + len(part)
                if stream.eof:
                    self._in_trailer, data = True, stream.unused_data
                else:
                    data = stream.unconsumed_tail
                yield part

    def end(self) -> None:
        if self._is_over:
            return
        if self._in_trailer:
            _remark(self._notes, BodyRemark.BAD_CHECKSUM)
        elif self._stream is not None or (self._pending and not self._members):
            raise BadBody(BodyFault.TRUNCATED_GZIP)
        elif self._pending:  # too few bytes for another member
            _remark(self._notes, BodyRemark.TRAILING_BYTES)

    def _begin_member(self, data: bytes) -> bytes:
        """Read the head of a member; return what follows it."""
        if not self._pending and self._members:
            data = data.lstrip(b"\0")  # padding after the last member
            if not data:
                return b""
        self._pending += data
        length = self._length_of_head()
        if length is None:
            return b""
        if not length:
            if not self._members:
                raise BadBody(BodyFault.BAD_GZIP)
            _remark(self._notes, BodyRemark.TRAILING_BYTES)
            self._is_over = True
            return b""
        rest, self._pending = self._pending[length:], b""
        self._stream, self._checksum, self._size = zlib.decompressobj(-zlib.MAX_WBITS), 0, 0
        return rest

    def _length_of_head(self) -> int | None:
        """Return the length of the head in `_pending`; 0 if it is none, None while it is not whole."""
        head = self._pending
        if not b"\x1f\x8b\x08".startswith(head[:3]):
            return 0
        if len(head) < 10:
            return None
        match = self._HEAD.match(head)
        if match is None:
            return 0
        flags, at = match[1][0], 10
        if flags & 4:
            if len(head) < at + 2:
                return None
            at += 2 + int.from_bytes(head[at : at + 2], "little")
        for flag in (8, 16):
            if flags & flag:
                at = head.find(b"\0", at) + 1
                if not at:
                    return None if len(head) < self._LONGEST_HEAD else 0
        at += 2 * (flags >> 1 & 1)
        return at if len(head) >= at else None

    def _end_member(self, data: bytes) -> bytes:
        """Read the trailer of a member; return what follows it."""
        self._pending += data
        if len(self._pending) < self._TRAILER:
            return b""
        given, rest = self._pending[: self._TRAILER], self._pending[self._TRAILER :]
        if given != self._checksum.to_bytes(4, "little") + (self._size & 0xFFFFFFFF).to_bytes(4, "little"):
            _remark(self._notes, BodyRemark.BAD_CHECKSUM)
        self._pending, self._in_trailer, self._stream = b"", False, None
        self._members += 1
        return rest


class _Deflate:
    """deflate: zlib's form (RFC 1950), or raw as some servers send it."""

    _TRAILER = 4

    def __init__(self, notes: BodyNotes) -> None:
        self._notes = notes
        self._wbits = zlib.MAX_WBITS
        self._stream = zlib.decompressobj(self._wbits)
        self._checksum = 1
        self._begun = self._is_over = False
        self._streams = 0  # before this one

    def decode(self, data: bytes) -> Iterator[bytes]:
        while data and not self._is_over:
            if self._stream.eof:
                if not data.strip(b"\0"):  # padding after the last stream
                    return
                self._streams += 1
                self._stream, self._begun, self._checksum = zlib.decompressobj(self._wbits), False, 1
            try:
                part = self._stream.decompress(data, _CHUNK)
            except zlib.error:
                if self._streams and not self._begun:
                    self._is_over = True
                    _remark(self._notes, BodyRemark.TRAILING_BYTES)
                    return
                if self._begun or self._wbits != zlib.MAX_WBITS:
                    raise BadBody(BodyFault.BAD_DEFLATE) from None
                self._wbits = -zlib.MAX_WBITS
                self._stream = zlib.decompressobj(self._wbits)
                continue
            self._begun = True
            self._checksum = zlib.adler32(part, self._checksum)
            data = self._stream.unconsumed_tail or self._stream.unused_data
            yield part

    def end(self) -> None:
        if self._is_over or self._stream.eof:
            return
        if self._wbits != zlib.MAX_WBITS or not self._lacks_checksum():
            raise BadBody(BodyFault.TRUNCATED_DEFLATE)
        _remark(self._notes, BodyRemark.BAD_CHECKSUM)

    def _lacks_checksum(self) -> bool:
        """Return whether the stream would end with some of the last bytes of its checksum, and say nothing more."""
        checksum = self._checksum.to_bytes(self._TRAILER, "big")
        for at in range(self._TRAILER):
            rest = self._stream.copy()
            with suppress(zlib.error):
                if not rest.decompress(checksum[at:], 1) and rest.eof:
                    return True
        return False


class _Brotli:
    """br (RFC 7932)."""

    def __init__(self, _notes: BodyNotes) -> None:
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

    def __init__(self, _notes: BodyNotes) -> None:
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


_DECODERS: dict[str, Callable[[BodyNotes], _Decoder]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
#: How markup and usual files begin.
_PLAIN = re.compile(
    rb"\s*<[!?/A-Za-z]|\x89PNG|\xff\xd8\xff|GIF8|%PDF-|RIFF|PK\x03\x04|\x1f\x8b|wOF[F2]|OggS|ID3|\x00asm|\x00\x00\x01\x00"
    rb"|.{4}ftyp",
    re.DOTALL,
)
#: How bodies begin in the codings that have a sign; brotli and deflate have none.
_SIGNS = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "x-gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
}
