"""WACZ files as Browsertrix and ArchiveWeb.page lay them out: responses, texts, pictures, lists of pages."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import warcs
from tests.support.foreignfiles import gzipped, write_wacz

#: A shell as frameworks send it for each route: no title, no text.
SHELL = b'<!DOCTYPE html><html><head><script src="/app.js"></script></head><body><div id="root"></div></body></html>'


_TYPES = {"text": "text/plain", "textFinal": "text/plain", "dom": "text/html; charset=utf-8"}


def png(colour: int = 0, size: int = 2) -> bytes:
    """A small picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes([colour, 0, 0]) * size for _ in range(size))
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


#: The start of a JPEG, and its end: enough to tell its kind.
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(20) + b"\xff\xd9"


def urn(kind: str, url: str, block: bytes, date: str, type_: str = "text/plain") -> bytes:
    """A resource record of what the crawler's browser showed."""
    head = {
        "WARC-Type": "resource",
        "WARC-Record-ID": "<urn:uuid:00000000-0000-4000-8000-000000000001>",
        "WARC-Target-URI": f"urn:{kind}:{url}",
        "WARC-Date": date,
        "Content-Type": type_,
        "Content-Length": str(len(block)),
    }
    return warcs.raw_record(head, block, "1.1")


@dataclass
class Shown:
    """A page that a browser showed: `date` is of its response, `later` of what was recorded of it.

    `dom` is a part that only exports of this archive have.
    """

    url: str
    body: bytes = SHELL
    date: str = "2025-06-01T12:00:00Z"
    later: str = "2025-06-01T12:00:20Z"
    text: str | bytes | None = None
    final: str | None = None
    dom: str | bytes | None = None
    view: bytes | None = None
    full: bytes | None = None
    thumbnail: bytes | None = None
    title: str | None = None
    listed_text: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def response(self) -> bytes:
        return warcs.response(self.url, self.body, self.date)

    def texts(self) -> list[bytes]:
        parts = (("text", self.text), ("textFinal", self.final), ("dom", self.dom))
        return [
            urn(kind, self.url, part.encode() if isinstance(part, str) else part, self.later, _TYPES[kind])
            for kind, part in parts
            if part is not None
        ]

    def pictures(self) -> list[bytes]:
        parts = (("view", self.view), ("fullPage", self.full), ("thumbnail", self.thumbnail))
        return [urn(kind, self.url, part, self.later, "image/png") for kind, part in parts if part is not None]

    def line(self) -> dict[str, Any]:
        said = {"id": "0", "url": self.url, "ts": self.date.replace("Z", ".123Z"), "title": self.title}
        return {**said, **({} if self.listed_text is None else {"text": self.listed_text}), **self.more}


def page_list(pages: Iterable[Mapping[str, Any]]) -> bytes:
    """The lines of pages.jsonl."""
    head = {"format": "json-pages-1.0", "id": "pages", "title": "Seed Pages", "hasText": "true"}
    return b"".join(json.dumps(line).encode() + b"\n" for line in (head, *pages))


def files_of(pages: Sequence[Shown], extra: Sequence[Shown] = ()) -> dict[str, bytes]:
    """The files of a WACZ: texts and pictures are in WARC files of their own; `extra` are no start pages."""
    every = [*pages, *extra]
    info = [urn("pageinfo", page.url, b'{"urls": {}}', page.later, "application/json") for page in every]
    packed = {
        "archive/rec-0.warc.gz": [*(page.response() for page in every), *info],
        "archive/text-0.warc.gz": [record for page in every for record in page.texts()],
        "archive/screenshots-0.warc.gz": [record for page in every for record in page.pictures()],
    }
    return {
        **{name: gzipped(records) for name, records in packed.items() if records},
        "pages/pages.jsonl": page_list(page.line() for page in pages),
        "pages/extraPages.jsonl": page_list(page.line() for page in extra),
        "indexes/index.cdx.gz": b"x",
    }


def wacz(path: Path, *pages: Shown, extra: Sequence[Shown] = ()) -> Path:
    """A WACZ of one crawl."""
    return write_wacz(path, files_of(pages, extra))
