"""A document in the pipeline, between a WARC record and git, and its body.

A stage takes documents and yields documents; it sets its fields with `replace`. A small body is in memory, a large one
in an unnamed file in the job's folder, so that memory is bounded.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from webarcfs.archive.git.objects import Entry
from webarcfs.archive.model.arc_paths import data_name
from webarcfs.content import mimetype
from webarcfs.warc.http_response import Head

#: Bodies up to this size stay in memory, one at a time.
IN_MEMORY = 1 << 20
_CHUNK = 1 << 18


class Body:
    """The decoded bytes of a document: written once, then read as often as needed."""

    def __init__(self, folder: Path) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, dir=str(folder))  # noqa: SIM115
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._file.write(data)
        self.size += len(data)

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes from the start, in pieces."""
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK):
            yield chunk

    def start(self, size: int) -> bytes:
        """Return the first `size` bytes."""
        self._file.seek(0)
        return self._file.read(size)

    @cached_property
    def blob(self) -> str:
        """The object id that git gives to these bytes (gitformat-objects: `blob <size>\\0` and the bytes)."""
        digest = hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        """Write the bytes to a named file."""
        with path.open("wb") as file:
            self._file.seek(0)
            shutil.copyfileobj(self._file, file, _CHUNK)

    def close(self) -> None:
        """Release the bytes."""
        self._file.close()


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document of a crawl. A field is empty until its stage has set it.

    `row` is its id in the frontier, `url` is canonical, `captured` is the time of the response (CET), `note` is the
    annotation for crawl.log, `source` what it was taken from if that is no response of a server.
    """

    row: int
    url: str
    status: int
    head: Head
    body: Body
    captured: datetime
    folder: Path = field(repr=False)
    note: str = ""
    source: str = ""
    # normalise
    arc: str = ""  # its path inside the domain
    data_name: str = ""
    # compare
    stored: tuple[Entry, ...] | None = None  # the entries of its ARC's folder now; None if it does not exist
    nested: bool = False  # whether that folder contains folders
    unchanged: bool = False
    was_error: bool = False  # whether what the ARC holds is an error page
    # extract
    title: str = ""
    create_time: datetime | None = None
    # describe
    data_xml: bytes = b""

    @cached_property
    def mime_type(self) -> str:
        """The MIME type as browsers compute it (/Cr-12.3/); computed on first use."""
        start, head = self.body.start(mimetype.SAMPLE), self.head
        return mimetype.mime_type(start, head.content_type, nosniff=head.forbids_sniffing)

    @cached_property
    def path(self) -> Path:
        """A file with the body, written on first use (/Fi-1/); the filter stage removes it."""
        path = self.folder / f"filter-{self.row}{Path(data_name(self.url)).suffix}"
        self.body.save(path)
        return path


def replace(document: Document, **values: Any) -> Document:
    """Return a copy with some fields set; cached properties stay cached."""
    # Called three times per document: dataclasses.replace, which reads each field, takes four times as long.
    copy = object.__new__(Document)
    copy.__dict__.update(document.__dict__)
    copy.__dict__.update(values)
    return copy
