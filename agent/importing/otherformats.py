"""Recognises other formats than WARC by their first bytes: those often found beside WARC files.

Names are not reliable: files are renamed, and a `.gz` file may contain any format.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from webarcfs.warc.gzipstream import GZIP, MAGIC

_SAMPLE = 1 << 12
#: A Zstandard frame, or a skippable frame, which may contain a dictionary (RFC 8878 section 3.1).
_ZSTD = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)
_FORMATS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (
        re.compile(rb"filedesc://"),
        "is an ARC file, older than WARC; `warcio recompress {0} {0}.warc.gz` makes a WARC of it",
    ),
    (_ZSTD, "is compressed with zstd, which is not read; `zstd -d` unpacks it, where it needs no dictionary"),
    (
        re.compile(rb"PK(?:\x03\x04|\x05\x06)"),
        "is a ZIP, as a WACZ is; unpack it, and import what is in its folder archive",
    ),
    (re.compile(rb"BZh[1-9]1AY&SY"), "is compressed with bzip2, which is not read; `bzip2 -d` unpacks it"),
    (re.compile(rb"\xfd7zXZ\x00"), "is compressed with xz, which is not read; `xz -d` unpacks it"),
)


def named(path: Path) -> str:
    """Return a message with the file's format and the remedy; empty for a WARC or an unknown format."""
    with path.open("rb") as file:
        start = file.read(_SAMPLE)
    if start.startswith(MAGIC):
        try:
            start = zlib.decompressobj(GZIP).decompress(start, _SAMPLE)
        except zlib.error:
            return ""
    found = next((words for pattern, words in _FORMATS if pattern.match(start)), "")
    return f"{path} {found.format(path.name)}" if found else ""
