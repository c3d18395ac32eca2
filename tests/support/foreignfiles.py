"""Files of other crawlers than WARC, for tests: ARC, zstd, WACZ, mirrors of HTTrack. Records are those of `warcs`."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
import subprocess
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import zstandard

from tests.support import warcs

_FIELDS = {
    1: "URL IP-address Archive-date Content-type Archive-length",
    2: "URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length",
}
#: When the entries of a HAR were answered.
HAR_TIME = "2024-03-05T11:34:56.789Z"
#: The magic number of the frame with a dictionary, and of another that is skipped.
DICTIONARY, SKIPPED = b"\x5d\x2a\x4d\x18", b"\x50\x2a\x4d\x18"


def arc_record(
    url: str | bytes, block: bytes, date: str = "20250601120000", kind: str = "text/html", version: int = 1
) -> bytes:
    """One record of an ARC file."""
    more = " 200 - - 1234 a.arc" if version == 2 else ""
    url = url if isinstance(url, bytes) else url.encode()
    return url + f" 192.0.2.7 {date} {kind}{more} {len(block)}\n".encode() + block + b"\n"


def arc_description(version: int = 1, more: bytes = b"", counted: int = 0) -> bytes:
    """The first record of an ARC file; writers differ by `counted` bytes in how they count its length."""
    block = f"{version} 0 test\n{_FIELDS[version]}\n".encode() + more
    return b"filedesc://a.arc 0.0.0.0 20250601115900 text/plain %d\n" % (len(block) + counted) + block + b"\n"


def write_arc(path: Path, records: Iterable[bytes], how: str = "plain", version: int = 1) -> Path:
    """An ARC file: `plain` or `gzip` (a member each)."""
    return warcs.write(path, [arc_description(version), *records], how)


def zst(records: Sequence[bytes], dictionary: bytes = b"", *, packed: bool = False) -> bytes:
    """Records a frame each, as the form for WARC wants them, behind the dictionary, if there is one."""
    trained = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    packer = zstandard.ZstdCompressor(dict_data=trained, write_checksum=True)
    held = zstandard.ZstdCompressor(write_checksum=True).compress(dictionary) if packed else dictionary
    frames = b"".join(packer.compress(each) for each in records)
    return (skippable(DICTIONARY, held) if dictionary else b"") + frames


def skippable(magic: bytes, data: bytes) -> bytes:
    """A frame that unpackers skip."""
    return magic + struct.pack("<I", len(data)) + data


def dictionary_of(records: Sequence[bytes]) -> bytes:
    """A dictionary trained on records."""
    return zstandard.train_dictionary(2048, [*records] * 10).as_bytes()


def write_wacz(path: Path, files: Mapping[str, bytes], *, package: Any = None, deflate: bool = False) -> Path:
    """A WACZ with these files; `package` is another datapackage.json than the one that is right."""
    resources = [
        {
            "name": Path(name).name,
            "path": name,
            "hash": f"sha256:{hashlib.sha256(data).hexdigest()}",
            "bytes": len(data),
        }
        for name, data in files.items()
    ]
    described = {"profile": "data-package", "wacz_version": "1.1.1", "resources": resources}
    if package != "none":
        files = {**files, "datapackage.json": json.dumps(package or described).encode()}
    with zipfile.ZipFile(path, "w") as out:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (2025, 6, 1, 12, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
            out.writestr(entry, data)
    return path


def wacz_package(*paths: str, **more: Any) -> dict[str, Any]:
    """A datapackage.json that names files, without digests."""
    return {"profile": "data-package", "resources": [{"path": path, "name": path} for path in paths], **more}


def httrack(url: str, folder: Path, *options: str) -> Path:
    """Mirror a site by HTTrack; return the folder."""
    command = ["httrack", url, "-O", str(folder), "--quiet", "--robots=0", "--disable-security-limits", "-c8", "-%c99"]
    subprocess.run([*command, *options], check=True, timeout=240, capture_output=True)
    return folder


def gzipped(records: Iterable[bytes]) -> bytes:
    """Records, a gzip member each."""
    return b"".join(gzip.compress(each, mtime=0) for each in records)


def har_entry(url: str, text: str | None = "<p>x</p>", **more: Any) -> dict[str, Any]:
    """An entry as HAR 1.2 has it."""
    headers = more.pop("headers", {"Content-Type": "text/html; charset=utf-8"})
    content: dict[str, Any] = {"size": more.pop("size", len(text or "")), "mimeType": headers.get("Content-Type", "")}
    content |= {"text": text} if text is not None else {}
    content |= {"encoding": "base64"} if more.pop("is_base64", False) else {}
    return {
        "startedDateTime": more.pop("when", HAR_TIME),
        "time": 12.3,
        "request": {"method": more.pop("method", "GET"), "url": url, "httpVersion": "h2", "headers": []},
        "response": {
            "status": more.pop("status", 200),
            "statusText": "",
            "httpVersion": "h2",
            "headers": [{"name": name, "value": value} for name, value in headers.items()],
            "content": content,
            "redirectURL": headers.get("Location", ""),
        },
    }


def write_har(path: Path, *entries: Any) -> Path:
    """A HAR of these entries."""
    path.write_text(json.dumps({"log": {"version": "1.2", "creator": {"name": "t"}, "pages": [], "entries": entries}}))
    return path
