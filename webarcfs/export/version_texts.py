"""Chosen versions with their texts: what tables and folders of files are made of.

Texts come from a process that works ahead while rows are written. A version whose files cannot be read has the error in
place of its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import HEADERS
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import PAGE_ROLE, RESOURCE_ROLE, MetaData, format_digits, format_utc, from_epoch
from webarcfs.archive.model.urls import replay_address
from webarcfs.content.extractors.extracted import Extracted
from webarcfs.export.selection import Opener
from webarcfs.export.version_selection import ChosenCapture, RowKind, VersionReader
from webarcfs.texts.extraction import Extraction, ExtractionRequest
from webarcfs.texts.version_text import joined, must_be_installed, request_of, shown_text
from webarcfs.warc.http_response import base32

#: What a row of a table says of a version, beside its text.
COLUMNS: Final = (
    "url", "title", "first", "last", "captures", "status", "mimeType", "size", "digest", "publication", "role",
    "commitTag", "path", "address",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class VersionWithText:
    """A row, and what was read of it: its text, empty unless it was asked for, or why its files cannot be read.

    `store` and `blob` are of the body; for other rows than versions there is nothing.
    """

    row: ChosenCapture
    store: Repository | None = None
    blob: str = ""
    meta: MetaData | None = None
    error: Damaged | None = None
    text: Extracted = Extracted()

    def fields(self) -> dict[str, str | int]:
        """Return what a table says of it: times are of captures, in UTC."""
        row = self.row
        values = (
            row.url, row.title or self.text.title, _utc(row.first), _utc(row.last), row.captures, row.status,
            row.mime_type, row.size, f"sha1:{base32(bytes.fromhex(row.digest))}", row.publication,
            RESOURCE_ROLE if row.is_resource else PAGE_ROLE, str(row.tag), row.path,
            replay_address(format_digits(row.captured), row.url),
        )  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))


def _utc(seconds: int) -> str:
    return format_utc(from_epoch(seconds))


def with_texts(open_: Opener, rows: Iterable[ChosenCapture], *, wanted: bool) -> Iterator[VersionWithText]:
    """Yield the rows in their order, with the texts of versions if they are `wanted`. Raises Exists, UsageError."""
    reader = VersionReader(open_)
    if not wanted:
        yield from (_read(reader, row)[0] for row in rows)
        return
    must_be_installed()
    with Extraction[VersionWithText]() as extraction:
        for version, extracted in extraction.texts(_read(reader, row) for row in rows):
            shown = ""
            if version.store is not None and version.meta is not None:
                shown = shown_text(version.store, version.meta)
            yield VersionWithText(
                version.row, version.store, version.blob, version.meta, version.error, joined(extracted, shown)
            )


def _read(reader: VersionReader, row: ChosenCapture) -> tuple[VersionWithText, ExtractionRequest | None]:
    if row.kind is not RowKind.VERSION:
        return VersionWithText(row), None
    try:
        store, document, meta = reader.document(row)
        blob = document.files[document.data]
        store.size(blob)  # raises where it is missing
    except Damaged as error:
        return VersionWithText(row, error=error), None
    version = VersionWithText(row, store, blob, meta)
    return version, request_of(store.path, meta.mime_type, blob, document.files.get(HEADERS, ""))
