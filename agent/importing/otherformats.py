"""Recognises formats that are not read by their first bytes: those often found beside WARC files.

Names are not reliable: files are renamed, and a `.gz` file may contain any format.
"""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

from agent.importing.tally import printable
from webarcfs.warc.gzipstream import GZIP, MAGIC

_SAMPLE = 1 << 12
_LARGEST_JSON = 1 << 24
_LONGEST_LIST = 500
_INDEX = "is an index, and has no records; import the WARC files that it names"
_FORMATS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"BZh[1-9]1AY&SY"), "is compressed with bzip2, which is not read; `bzip2 -d` unpacks it"),
    (re.compile(rb"\xfd7zXZ\x00"), "is compressed with xz, which is not read; `xz -d` unpacks it"),
    (re.compile(rb"7z\xbc\xaf\x27\x1c"), "is a 7z archive; `7z x` unpacks it, and its folder can be imported"),
    (re.compile(rb"[ \t]CDX [A-Za-z]|[^\s]+\)[^\s]* \d{14} [{\S]|!OpenWayback-CDXJ|!meta \{"), _INDEX),
    (
        re.compile(rb"(?is)(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*){1,40}?Content-Type:\s*multipart/related"),
        "is MHTML, a page that a browser saved, and no record of what a server sent; crawl the page",
    ),
    (
        re.compile(rb"(?i)(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|!--)"),
        "is a page (HTML), and no record of what a server sent; crawl it, or let warcit make a WARC of such files",
    ),
    (re.compile(rb"(?s:.{257})ustar"), "is a tar archive; `tar -x` unpacks it, and its folder can be imported"),
)


def named(path: Path, name: str) -> str:
    """Return a message with the file's format and the remedy; empty for a format that is read, or an unknown one."""
    with path.open("rb") as file:
        start = file.read(_SAMPLE)
    if start.startswith(MAGIC):
        try:
            start = zlib.decompressobj(GZIP).decompress(start, _SAMPLE)
        except zlib.error:
            return ""
    if start.lstrip().startswith(b"{") and (words := _har(start) or _collection(path)):
        return f"{name} {words}"
    found = next((words for pattern, words in _FORMATS if pattern.match(start)), "")
    return f"{name} {found}" if found else ""


def _har(start: bytes) -> str:
    """Return what to say of a HAR, the archive of a browser's network panel; empty for another file."""
    is_har = re.match(rb'\s*\{\s*"log"\s*:\s*\{', start) is not None
    return "is a HAR, which is not read; har2warc makes a WARC of it" if is_har else ""


def _collection(path: Path) -> str:
    """Return what a JSON file says, if it is a list of WACZ files (multi-WACZ)."""
    if path.stat().st_size > _LARGEST_JSON:
        return ""
    try:
        package = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return ""
    resources = package.get("resources") if isinstance(package, dict) else None
    if not isinstance(resources, list):
        return ""
    named = ", ".join(str(each.get("path") or each.get("name")) for each in resources if isinstance(each, dict))
    return f"only names WACZ files (multi-WACZ); import those: {printable(named)[:_LONGEST_LIST]}"
