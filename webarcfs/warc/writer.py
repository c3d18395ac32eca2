"""The WARC of an import's job: the responses of foreign files to be archived, in the one form that `unpack` reads.

Heads stay as received; bodies are stored without their codings, so that each is decoded only once.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from types import TracebackType

from webarcfs.archive.model.metadata import utc
from webarcfs.warc.http_response import DECODED

_DIGITS = 18


class WarcWriter:
    """Writes a new file at `path`. A context manager."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._file = path.open("wb")
        self._end = 0

    def __enter__(self) -> WarcWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, url: str, date: datetime, head: bytes, parts: Iterable[bytes]) -> int:
        """Store a response; return its offset. If `parts` raises, `drop` it."""
        start = self._end
        self._file.write(self._fields(url, date, 0))
        size = self._file.write(head)
        for part in parts:
            size += self._file.write(part)
        self._file.write(b"\r\n\r\n")
        self._end = self._file.tell()
        self._file.seek(start)
        self._file.write(self._fields(url, date, size))
        self._file.seek(self._end)
        return start

    def drop(self, start: int | None = None) -> None:
        """Remove all after `start`, or an unfinished record."""
        self._end = self._end if start is None else start
        self._file.seek(self._end)
        self._file.truncate()

    @staticmethod
    def _fields(url: str, date: datetime, size: int) -> bytes:
        return (
            f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n"
            f"WARC-Date: {utc(date):%Y-%m-%dT%H:%M:%SZ}\r\nContent-Type: application/http; msgtype=response\r\n"
            f"{DECODED}: yes\r\nContent-Length: {size:0{_DIGITS}}\r\n\r\n"
        ).encode("ascii")
