"""WARC: a selection as WARC/1.1 files, each record a member of gzip, or plain (ISO 28500:2017).

A selection of versions, which a question found, has their records alone, and its warcinfo says the question.

`out` is a folder of files of about a gigabyte, or one file if its name ends in .warc or .warc.gz, or `-` for standard
output. The same selection gives the same bytes. Records are written here, and not by warcio, whose writer would take
most of the time that an export takes; the tests have it read them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final

import webarcfs
from webarcfs.archive.model.metadata import format_utc
from webarcfs.archive.system.clocks import Progress
from webarcfs.export.export_result import Exportable, Growing, Stream, Summary, fill
from webarcfs.export.selection import Stop
from webarcfs.export.version_selection import VersionSelection
from webarcfs.export.warc_records import FIELDS_TYPE, WarcRecord, fields_block, record_id

#: Bytes of a file after which another one begins.
FILE_SIZE: Final = 1_000_000_000
#: Names of the fields of a warcinfo that name the selection, and the question whose answer it is.
SELECTION: Final = "webarcfs-selection"
QUESTION: Final = "webarcfs-question"
_STANDARD = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_END: Final = b"\r\n\r\n"
#: zlib's own choice; 9 takes twice the time, and saves one or two per cent.
_EFFORT: Final = 6
_GZIP: Final = zlib.MAX_WBITS | 16  # its header has no time


def export(selection: Exportable, out: Path, progress: Progress, stop: Stop) -> Summary:
    """Write a selection to `out`; see the package. Raises Interrupted, Damaged, OSError."""
    is_plain = out.name.endswith(".warc")
    digest = selection.digest

    def start(number: int, name: str = "") -> bytes:
        return b"".join(encoded(warcinfo(selection, digest, number, name), is_plain=is_plain))

    if str(out) == "-":
        files: Growing | Stream = Stream(start(0))
    elif is_plain or out.name.endswith(".warc.gz"):
        files = Growing(_notes(out), lambda _: out, start)
    else:
        name = selection.name
        files = Growing(
            _notes(out),
            lambda number: out / file_name(name, number),
            lambda number: start(number, file_name(name, number)),
            FILE_SIZE,
        )

    def write(record: WarcRecord) -> None:
        for part in encoded(record, is_plain=is_plain):
            files.write(part)

    with files:
        done = fill(files, selection, write, progress, stop)
    return replace(done, records=done.records + done.files)  # each file has a warcinfo


def file_name(name: str, number: int) -> str:
    """Return the name of a file in the folder of an export."""
    return f"{name}-{number:05}.warc.gz"


def _notes(out: Path) -> Path:
    return out.with_name(f"{out.name}.notes")


def warcinfo(selection: Exportable, digest: str, number: int, name: str) -> WarcRecord:
    """Return the record that a file begins with; `digest` is the selection's."""
    block = fields_block([
        ("software", f"webarcfs/{webarcfs.__version__}"),
        ("format", "WARC File Format 1.1"),
        ("conformsTo", _STANDARD),
        ("isPartOf", selection.name),
        (SELECTION, digest),
        *_question_of(selection),
    ])  # fmt: skip
    when = selection.newest.crawl_time
    fields = (("WARC-Filename", name),) if name else ()
    return WarcRecord("warcinfo", "", when, record_id("warcinfo", digest, str(number)), FIELDS_TYPE, fields, block)


def _question_of(selection: Exportable) -> list[tuple[str, str]]:
    """Return the fields that say which question found the versions."""
    if not isinstance(selection, VersionSelection):
        return []
    question = " ".join(selection.question.split())  # a field is one line
    what = f"{selection.versions} versions of documents with their captures, and {selection.resources} that pages need"
    return [("description", f"{what}, found by {question}"), (QUESTION, question)]


def encoded(record: WarcRecord, *, is_plain: bool) -> Iterator[bytes]:
    """Yield the bytes of a record: a member of gzip, unless plain."""
    head = _head(record) + record.head
    content = record.body.content
    if content is not None:
        whole = b"".join((head, content, _END))
        if is_plain:
            yield whole
        else:
            packer = zlib.compressobj(_EFFORT, zlib.DEFLATED, _GZIP)
            yield packer.compress(whole) + packer.flush()
        return
    parts = chain((head,), record.body.parts(), (_END,))
    if is_plain:
        yield from parts
        return
    packer = zlib.compressobj(_EFFORT, zlib.DEFLATED, _GZIP)
    yield from map(packer.compress, parts)
    yield packer.flush()


def _head(record: WarcRecord) -> bytes:
    """Return a record before its block."""
    target = f"WARC-Target-URI: {record.uri}\r\n" if record.uri else ""
    fields = "".join([f"{name}: {value}\r\n" for name, value in record.fields])
    size = len(record.head) + record.body.size
    return (
        f"WARC/1.1\r\nWARC-Type: {record.kind}\r\nWARC-Record-ID: <{record.id}>\r\n{target}"
        f"WARC-Date: {format_utc(record.date)}\r\n{fields}Content-Type: {record.type}\r\nContent-Length: {size}\r\n\r\n"
    ).encode()
