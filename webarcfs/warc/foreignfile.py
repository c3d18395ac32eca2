"""Opens the files of other crawlers: what packs them, and which form their records have, is told by their first bytes.

Names are not reliable: files are renamed, and a `.gz` file may contain any format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from webarcfs.warc import arcfile, gzipstream, tolerant, zstdstream
from webarcfs.warc.bytestream import ByteStream, Packing, TextMode
from webarcfs.warc.tolerant import Complain, Record

_SAMPLE = 1 << 12
_DOUBLED = re.compile(rb"\s*WARC/\d\.\d{1,3}[ \t]*\r\r\n")


def stream_of(file: IO[bytes], size: int | None = None) -> ByteStream:
    """Return a seekable file as a stream; `size` is its size, where it cannot be asked for cheaply."""
    size = file.seek(0, 2) if size is None else size
    file.seek(0)
    start = file.read(64)
    file.seek(0)
    if start.startswith(gzipstream.MAGIC):
        return ByteStream(gzipstream.Gzip(file, size))
    if zstdstream.is_zstd(start):
        return ByteStream(zstdstream.Zstd(file, size))
    return ByteStream(TextMode(file, size) if _DOUBLED.match(start) else Packing(file, size))


def records(stream: ByteStream, complain: Complain) -> Iterator[Record]:
    """Yield the records of a WARC or ARC file in order; `complain` receives each fault and its byte."""
    is_arc = arcfile.is_arc(stream.peek(_SAMPLE))
    return tolerant.records(stream, arcfile.ArcForm() if is_arc else tolerant.WarcForm(), complain)
