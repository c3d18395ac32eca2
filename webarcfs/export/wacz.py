"""WACZ 1.1.1: one ZIP with the WARC file of a selection, its index and a list of its pages, for replay in a browser.

The WARC file is the ZIP's first member, stored, and grows as any other WARC export, so that an interrupted one resumes.
Its size and checksum are written into the ZIP when it is whole; then the index is made, and all else follows. The same
selection gives the same bytes. Not by the package `wacz`, which keeps index and pages in memory, and writes the time.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Final

import webarcfs
from webarcfs.archive.document import data_xml
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged, Interrupted, InvalidDocument
from webarcfs.archive.model.metadata import MetaData, format_utc, from_epoch, utc
from webarcfs.archive.system.clocks import Progress
from webarcfs.export import cdxj, warc
from webarcfs.export.descriptions import FOLDER
from webarcfs.export.export_result import Exportable, Growing, Summary, fill
from webarcfs.export.selection import Selection, Stop, documents
from webarcfs.export.version_selection import VersionSelection
from webarcfs.export.warc_records import WarcRecord, record_id
from webarcfs.warc.request_key import parts_of

VERSION: Final = "1.1.1"
INDEX: Final = "indexes/index.cdx.gz"
_PARTS: Final = "indexes/index.idx"
_PAGES: Final = "pages/pages.jsonl"
_PACKAGE: Final = "datapackage.json"
_DIGEST: Final = "datapackage-digest.json"
#: Lines of the index that are compressed together, as other writers do: a reader takes one such part for a look-up.
_LINES: Final = 1024
_CHUNK: Final = 1 << 20
_GZIP: Final = zlib.MAX_WBITS | 16
_HTML: Final = ("text/html", "application/xhtml+xml")
#: The mode of a plain file, as ZIPs have it.
_MODE: Final = 0o100644 << 16


#: A page of the list: number of its row or snapshot, URL, time, title, and commitTag.
_Page = tuple[int, str, str, str, str]


@dataclass(frozen=True, slots=True)
class _Part:
    """A member of the ZIP, as datapackage.json names it."""

    path: str
    size: int
    digest: str

    def as_fields(self) -> dict[str, object]:
        name = self.path.rpartition("/")[2].lower()
        return {"name": name, "path": self.path, "hash": f"sha256:{self.digest}", "bytes": self.size}


def export(
    selection: Exportable, out: Path, progress: Progress, stop: Stop, records: Iterable[tuple[str, bytes]] = ()
) -> Summary:
    """Write a selection to the file `out`; see the package. Raises Interrupted, Damaged, OSError.

    `records` are files that describe the crawls, by name.
    """
    digest, name = selection.digest, f"{selection.name}.warc.gz"
    info = _member(selection, f"archive/{name}", zipfile.ZIP_STORED)
    room = info.FileHeader(zip64=True)

    def start(_: int) -> bytes:
        return room + b"".join(warc.encoded(warc.warcinfo(selection, digest, 0, name), is_plain=False))

    with Growing(out.with_name(f"{out.name}.notes"), lambda _: out, start) as files:

        def write(record: WarcRecord) -> None:
            for part in warc.encoded(record, is_plain=False):
                files.write(part)

        summary = fill(files, selection, write, progress, stop)
    with out.open("r+b") as file:
        archive = _summed(file, info, len(room), stop)
        index = out.with_name(f"{out.name}.cdxj")
        cdxj.sorted_into(cdxj.lines_of(out, digest, name, stop, len(room)), index)
        file.seek(0, 2)
        with zipfile.ZipFile(file, "w") as package:
            package.infolist().append(info)
            _Rest(selection, package, index, progress, stop).write(archive, records)
        index.unlink()
        size = file.seek(0, 2)
    return replace(summary, bytes=size, files=1)


def _member(selection: Exportable, path: str, how: int) -> zipfile.ZipInfo:
    """Return a member whose time is that of the newest snapshot: never the clock's."""
    time = utc(selection.newest.crawl_time)
    info = zipfile.ZipInfo(path, (max(time.year, 1980), time.month, time.day, time.hour, time.minute, time.second))
    info.compress_type, info.external_attr, info.create_system, info.CRC = how, _MODE, 3, 0
    return info


def _summed(file: IO[bytes], info: zipfile.ZipInfo, begin: int, stop: Stop) -> _Part:
    """Write size and checksum of the WARC file into its head; it lies between that and the end of `file`."""
    digest = hashlib.sha256()
    info.file_size = info.CRC = 0
    file.seek(begin)
    while data := file.read(_CHUNK):
        if stop():
            raise Interrupted("the export was interrupted; the same command resumes it")
        digest.update(data)
        info.CRC = zlib.crc32(data, info.CRC)
        info.file_size += len(data)
    info.compress_size, info.header_offset = info.file_size, 0
    file.seek(0)
    file.write(info.FileHeader(zip64=True))
    return _Part(info.filename, info.file_size, digest.hexdigest())


class _Rest:
    """What follows the WARC file."""

    def __init__(
        self, selection: Exportable, package: zipfile.ZipFile, index: Path, progress: Progress, stop: Stop
    ) -> None:
        self._selection = selection
        self._package = package
        self._index = index
        self._progress = progress
        self._stop = stop

    def write(self, archive: _Part, records: Iterable[tuple[str, bytes]]) -> None:
        parts: list[tuple[bytes, int]] = []
        with self._index.open("rb") as lines:
            index = self._put(INDEX, zipfile.ZIP_STORED, _packed(lines, parts))
        secondary_index = self._put(_PARTS, zipfile.ZIP_DEFLATED, _places(parts))
        pages = self._put(_PAGES, zipfile.ZIP_DEFLATED, self._pages())
        described = [self._put(f"{FOLDER}/{name}", zipfile.ZIP_DEFLATED, [text]) for name, text in records]
        fields = {
            "profile": "data-package",
            "wacz_version": VERSION,
            "software": f"webarcfs/{webarcfs.__version__}",
            "created": format_utc(self._selection.newest.crawl_time),
            "title": _title(self._selection),
            "resources": [part.as_fields() for part in (archive, index, secondary_index, pages, *described)],
        }
        package = self._put(_PACKAGE, zipfile.ZIP_DEFLATED, [_json(fields, indent=2)])
        digest = {"path": _PACKAGE, "hash": f"sha256:{package.digest}"}
        self._put(_DIGEST, zipfile.ZIP_DEFLATED, [_json(digest, indent=2)])

    def _put(self, path: str, how: int, chunks: Iterable[bytes]) -> _Part:
        digest, size = hashlib.sha256(), 0
        with self._package.open(_member(self._selection, path, how), "w", force_zip64=True) as member:
            for chunk in chunks:
                if self._stop():
                    raise Interrupted("the export was interrupted; the same command resumes it")
                digest.update(chunk)
                size += member.write(chunk)
        return _Part(path, size, digest.hexdigest())

    def _pages(self) -> Iterator[bytes]:
        """Yield the lines of pages.jsonl: each capture of an HTML document that the WARC file has."""
        yield _json({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}) + b"\n"
        known = len(self._selection)
        captures = _found(self._selection) if isinstance(self._selection, VersionSelection) else self._captured()
        for number, url, when, title, place in captures:
            self._progress("pages", number, known)
            page = {"id": record_id("page", place, url, when)[-36:], "url": url, "ts": when}
            yield _json(page | ({"title": title} if title else {})) + b"\n"
        self._progress("pages", known, known)

    def _captured(self) -> Iterator[_Page]:
        assert isinstance(self._selection, Selection)
        for number, exported in enumerate(self._selection):
            for document in documents(exported.store, exported.tree, exported.before, exported.seen, every=False):
                meta = _page(exported.store.read, document.data_xml) if document.is_whole else None
                before = (document.before or {}).get(DATA_XML)
                if meta is not None and (before is None or _page(exported.store.read, before) != meta):
                    yield number, meta.url, format_utc(meta.capture_time), meta.title, str(exported.tag)


def _title(selection: Exportable) -> str:
    return selection.question if isinstance(selection, VersionSelection) else selection.name


def _found(selection: VersionSelection) -> Iterator[_Page]:
    """Yield the pages that a question found, each version once."""
    for number, row in enumerate(selection.after(0)):
        if row.is_found_page and row.mime_type in _HTML and parts_of(row.url) is None:
            yield number, row.url, format_utc(from_epoch(row.captured)), row.title, str(row.tag)


def _page(read: Callable[[str], bytes], blob: str) -> MetaData | None:
    """Return what is known of an HTML page; None for others, error pages, resources, answers to scripts."""
    try:
        meta = data_xml.metadata(read(blob))
    except (InvalidDocument, Damaged):
        return None
    return meta if meta.mime_type in _HTML and not (meta.is_error_page or meta.is_resource or meta.method) else None


def _packed(lines: Iterable[bytes], parts: list[tuple[bytes, int]]) -> Iterator[bytes]:
    """Yield the index in compressed parts; put key and time of the first line, and the size, of each into `parts`."""
    left = iter(lines)
    while some := list(islice(left, _LINES)):
        packer = zlib.compressobj(wbits=_GZIP)
        packed = packer.compress(b"".join(some)) + packer.flush()
        parts.append((some[0].partition(b" {")[0], len(packed)))
        yield packed


def _places(parts: Iterable[tuple[bytes, int]]) -> Iterator[bytes]:
    """Yield the lines that say where each part of the index is."""
    yield b"!meta 0 " + _json({"format": "cdxj-gzip-1.0", "filename": INDEX.rpartition("/")[2]}) + b"\n"
    offset = 0
    for key, size in parts:
        yield key + b" " + _json({"offset": offset, "length": size}) + b"\n"
        offset += size


def _json(value: object, indent: int | None = None) -> bytes:
    return json.dumps(value, indent=indent).encode()
