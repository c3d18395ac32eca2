"""What all readers of foreign files give and are given: records, parts of files with records, and where to report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Protocol

from agent.importing.tally import Tally, printable
from webarcfs.archive.model.errors import WebarcError
from webarcfs.warc.foreignfile import records, stream_of


class ForeignRecord(Protocol):
    """A record of a foreign file, as `webarcfs.warc.tolerant.Record` is one."""

    fields: dict[str, str]
    length: int

    @property
    def type(self) -> str:
        """WARC-Type, in lower case."""

    @property
    def is_verified(self) -> bool:
        """Whether `whole` compares the block with a digest."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes of the rest of the block."""

    def readline(self, size: int, /) -> bytes:
        """Return the next line of the block."""

    def whole(self) -> bool:
        """Return whether the block is complete; reads the rest."""


class Spool(Protocol):
    """Where responses to archive are written, as `webarcfs.warc.writer.WarcWriter` is one."""

    def add(self, url: str, date: datetime, head: bytes, parts: Iterable[bytes]) -> int:
        """Store a response; return its offset."""

    def drop(self, start: int | None = None) -> None:
        """Remove all after `start`, or an unfinished record."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of files: `losses` are records that should have been archived, `remarks` tell what else to know."""

    losses: Tally = field(default_factory=Tally)
    remarks: Tally = field(default_factory=Tally)


@dataclass(frozen=True, slots=True)
class Part:
    """Records that follow each other; `taken` returns the bytes of the file read so far. Valid until the next part.

    `crawl` names the crawl inside its file, if the file holds whole crawls.
    """

    name: str
    records: Iterator[ForeignRecord]
    taken: Callable[[], int]
    crawl: str = ""


#: Called with the number of bytes read so far; may raise.
Step = Callable[[int], None]


def file_part(file: IO[bytes], size: int, name: str, report: Report, *, before: int = 0, crawl: str = "") -> Part:
    """Return a WARC or ARC file as a part; `before` is the number of bytes before it, `crawl` the crawl that it is of.

    Raises WebarcError, which names it, if it cannot be unpacked.
    """
    try:
        stream = stream_of(file, size)
    except WebarcError as error:
        raise type(error)(f"{name}: {error}") from None
    found = records(stream, lambda what, where: report.losses.add(name, what, f"at byte {where}"))
    return Part(name, found, lambda: before + stream.taken, crawl)


def shown(name: str | os.PathLike[str]) -> str:
    """Return a name of a file as one line that can be printed, whatever its bytes are."""
    return printable(os.fsencode(name).decode("utf-8", "backslashreplace"))
