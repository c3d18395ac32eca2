"""The forms of answers: JSON, rows as JSON lines, files, a snapshot as a tar file.

Rows are lines of JSON: the names of the columns, an array a row, and `{"end": true, "rows": N}`. Without the last line
the answer was cut. JSON is ASCII, so a name that is no UTF-8 has lone surrogates.
"""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import IO, Final
from urllib.parse import quote

from starlette.responses import Response

from webarcfs.api.api_request import ApiRequest
from webarcfs.api.api_source import FileBody
from webarcfs.archive.catalogue.record import Record, write_record
from webarcfs.archive.index.links import FoundLink
from webarcfs.archive.model.errors import TooMany
from webarcfs.archive.model.metadata import CAPTURE_FIELDS, FIELDS, CommitTag, MetaData
from webarcfs.archive.system import clocks
from webarcfs.web import limits
from webarcfs.web.answering import StreamedAnswer, streamed
from webarcfs.web.ranges import partly, with_fields

LINES_TYPE: Final = "application/x-ndjson"
TAR_TYPE: Final = "application/x-tar"
#: Columns of rows of documents, and of links.
DOCUMENT_COLUMNS: Final = (*FIELDS, *CAPTURE_FIELDS)
LINK_COLUMNS: Final = tuple(field.name for field in fields(FoundLink))
#: Columns of rows of records; the last one, the record as XML, is there if it is asked for.
RECORD_COLUMNS: Final = (
    "id", "number", "publication", "state", "complete", "title", "domains", "commitTags", "xml",
)  # fmt: skip
#: Bytes of a piece of an answer, and of rows that are held in memory.
_PIECE: Final = 1 << 16
_HELD: Final = 1 << 20
_BLOCK: Final = tarfile.BLOCKSIZE

# == json =============================================================================================================


def json_answer(asked: ApiRequest, value: object, headers: dict[str, str] | None = None) -> Response:
    """Return a value as JSON."""
    return asked.answered(Response(json.dumps(value).encode(), 200, headers, "application/json"))


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def row_of(document: MetaData) -> list[str]:
    """Return the row of a document, by `DOCUMENT_COLUMNS`."""
    return list(document.as_fields().values())


def row_of_link(link: FoundLink) -> list[str | int]:
    """Return the row of a link, by `LINK_COLUMNS`."""
    return list(asdict(link).values())


def row_of_record(record: Record, *, has_xml: bool) -> list[object]:
    """Return the row of a record, by `RECORD_COLUMNS`, with the whole record as XML or without."""
    values = [
        record.id, record.number, record.publication, str(record.state), record.completeness, record.title.text,
        list(record.domains), [str(part.tag) for part in record.parts],
    ]  # fmt: skip
    return [*values, write_record(record).decode()] if has_xml else values


def lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """Yield the lines of rows. It ends with the deadline of the thread."""
    yield _line(list(columns))
    count = 0
    for row in rows:
        clocks.check()
        yield _line(row)
        count += 1
    yield _line({"end": True, "rows": count})


def streamed_rows(asked: ApiRequest, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """Return rows that are made as the client takes them, in the steps of several threads."""
    return asked.answered(StreamedAnswer(streamed(_joined(lines(columns, rows))), media_type=LINES_TYPE))


def _joined(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces of some size: each takes a step of a thread."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def collected_rows(asked: ApiRequest, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """Return rows that are made in one thread, before the first is sent: a database is never kept for a slow client.

    Many go through an unnamed file. Raises TooMany beyond `limits.ROWS_BYTES`.
    """
    with tempfile.SpooledTemporaryFile(_HELD) as file:
        size = 0
        for line in lines(columns, rows):
            size += len(line)
            if size > limits.ROWS_BYTES:
                raise TooMany(f"the rows are more than {limits.ROWS_BYTES:,} bytes; give a limit")
            file.write(line)
        file.seek(0)
        if size <= _HELD:
            return asked.answered(Response(file.read(), media_type=LINES_TYPE))
        copy = os.fdopen(os.dup(file.fileno()), "rb")
    length = {"Content-Length": str(size)}
    return asked.answered(StreamedAnswer(_read(copy), headers=length, media_type=LINES_TYPE))


def _read(file: IO[bytes]) -> Generator[bytes, None, None]:
    with file:
        while piece := file.read(_PIECE):
            yield piece


# == files ============================================================================================================


def file_answer(asked: ApiRequest, body: FileBody, name: str) -> Response:
    """Return a file, or the part of it that is asked for. It is an attachment, and in no browser a page."""
    shown = quote(os.fsencode(name.rpartition("/")[2]), safe="")
    headers = [
        ("Content-Type", "application/octet-stream"),
        ("Content-Disposition", f"attachment; filename*=UTF-8''{shown}"),
        ("ETag", f'"{body.blob}"'),
        ("Cache-Control", asked.caching),
    ]
    return asked.answered(partly(asked.request, 200, body.size, body.pieces, headers))


def listing_answer(asked: ApiRequest, tag: str, value: object) -> Response:
    """Return JSON that a client may have already, by its entity tag."""
    known = asked.request.headers.get("if-none-match", "")
    if tag in (each.strip().removeprefix("W/") for each in known.split(",")):
        return asked.answered(with_fields(Response(status_code=304), [("ETag", tag)]))
    return json_answer(asked, value, {"ETag": tag})


# == tar ==============================================================================================================


def tar_answer(asked: ApiRequest, tag: CommitTag, files: Iterator[tuple[str, FileBody]], after: str) -> Response:
    """Return the files of a snapshot as a tar file (PAX), those behind the path `after`."""
    pieces = _joined(_archived(files, int(tag.crawl_time.timestamp()), after))
    name = quote(f"{tag}.tar", safe="@")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return asked.answered(StreamedAnswer(streamed(pieces), headers=headers, media_type=TAR_TYPE))


def _archived(files: Iterator[tuple[str, FileBody]], time: int, after: str) -> Iterator[bytes]:
    """Yield the bytes of a tar file. An end that is missing says that it was cut."""
    for path, body in files:
        clocks.check()
        if after:
            after = "" if path == after else after
            continue
        entry = tarfile.TarInfo(path)
        entry.size, entry.mtime, entry.mode = body.size, time, 0o444
        yield entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        yield from body.pieces(0, body.size)
        yield bytes(-body.size % _BLOCK)
    yield bytes(2 * _BLOCK)
