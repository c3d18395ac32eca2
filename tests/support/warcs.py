"""WARC files for tests, record by record, as other crawlers write them and as none should."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path

#: When nothing else is said.
DATE = "2025-06-01T12:00:00Z"


def record(kind: str, uri: str, block: bytes, date: str = DATE, version: str = "1.0", **fields: str) -> bytes:
    """One record; further fields by name with `_` for `-`, such as `Payload_Digest`, which get `WARC-` before them."""
    head = {
        "WARC-Type": kind,
        "WARC-Record-ID": "<urn:uuid:00000000-0000-4000-8000-000000000000>",
        "WARC-Target-URI": uri,
        "WARC-Date": date,
        "Content-Length": str(len(block)),
    } | {f"WARC-{name.replace('_', '-')}": value for name, value in fields.items()}
    return raw_record(head, block, version)


def raw_record(head: Mapping[str, str], block: bytes, version: str = "1.0") -> bytes:
    """A record with exactly these fields."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"WARC/{version}\r\n{lines}\r\n".encode() + block + b"\r\n\r\n"


def http(body: bytes, content_type: str = "text/html", status: str = "200 OK", **fields: str) -> bytes:
    """A response as it came over the wire; fields by name with `_` for `-`."""
    head = {"Content-Type": content_type} | {name.replace("_", "-"): value for name, value in fields.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def response(url: str, body: bytes, date: str = DATE, **fields: str) -> bytes:
    """A response record of an HTML page; fields as in `record`."""
    return record("response", url, http(body), date, **fields)


def write(path: Path, records: Iterable[bytes], how: str = "plain") -> Path:
    """A file of records: `plain`, `gzip` (a member each) or `gzip-whole`."""
    records = list(records)
    if how == "gzip-whole":
        path.write_bytes(gzip.compress(b"".join(records)))
    else:
        path.write_bytes(b"".join(gzip.compress(each) if how == "gzip" else each for each in records))
    return path
