"""Reads the WARC files in a WACZ, a ZIP with archive/*.warc.gz and datapackage.json (WACZ 1.1.1), where they are.

The lines of pages/*.jsonl, a page each, follow them as records: the URL, the time, the title, and the text if it is
there. A list of pages that is not what its digest says, and a line that is no page, are skipped with a remark.

A WARC file whose bytes are not those that datapackage.json has the digest of is none of the crawl's: it is left out,
and that is a loss. A multi-WACZ may hold WACZ files, to one level.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import IO, Any

from agent.importing.browser_pages import PageRecord
from agent.importing.foreign import ForeignRecord, RecordRun, Report, Step, file_part, printable
from webarcfs.archive.history.rendered_forms import LONGEST_TEXT
from webarcfs.archive.model.errors import Damaged
from webarcfs.warc.bytestream import BOMB_FACTOR, BOMB_SIZE
from webarcfs.warc.http_response import Digest, declared_digest

#: The first bytes of a ZIP, and of an empty one.
ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
#: What reading a damaged or hostile ZIP raises.
ZIP_FAULTS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError, OverflowError,
    OSError,
)  # fmt: skip
_PACKAGE = "datapackage.json"
_LARGEST_PACKAGE = 1 << 26
_RECORDS = re.compile(r"archive/.*\.w?arc(\.gz|\.zst)?", re.IGNORECASE | re.DOTALL)
_NESTED = re.compile(r".*\.wacz", re.IGNORECASE | re.DOTALL)
_PAGES = re.compile(r"pages/[^/]*\.jsonl", re.IGNORECASE | re.DOTALL)
#: Bytes of a line of pages.jsonl, which has the text of its page in JSON.
_LONGEST_LINE = 2 * LONGEST_TEXT
_CLIMBS = re.compile(r"[/\\]|[A-Za-z]:|(.*[/\\])?\.\.([/\\].*)?\Z", re.DOTALL)
_CHUNK = 1 << 18
#: Of a ZIP, in bytes, some 50 a file: `zipfile` keeps ten times as much in memory. And where its size is.
_LARGEST_DIRECTORY = 1 << 24
_END, _LARGE_END, _LONGEST_END = b"PK\x05\x06", b"PK\x06\x06", (1 << 16) + 128
_ENCRYPTED = 1


@dataclass(frozen=True, slots=True)
class _Resource:
    """What datapackage.json says of a file."""

    path: str
    digest: Digest | None


class Wacz:
    """A WACZ in `file`, called `name`; `nested` is one in another. Raises Damaged, which says what is wrong."""

    def __init__(self, file: IO[bytes], size: int, name: str, *, nested: bool = False) -> None:
        self._name = name
        self._size = size
        self._nested = nested
        try:
            if _directory_size(file, size) > _LARGEST_DIRECTORY:
                raise Damaged(f"{name} is a ZIP of far more files than a WACZ has")
            self._zip = zipfile.ZipFile(file)
            self._entries = {entry.filename: entry for entry in self._zip.infolist() if not entry.is_dir()}
        except ZIP_FAULTS as error:
            raise Damaged(f"{name} is a ZIP that cannot be read: {error}") from None
        if climbing := next((path for path in self._entries if _CLIMBS.match(path)), None):
            raise Damaged(f"{name} has a file with a path out of it, {climbing[:200]!r}: no WACZ has one")
        self._package = self._read_package()
        self._resources = {resource.path: resource for resource in _resources(self._package)}
        self._files = [path for path in self._entries if _RECORDS.fullmatch(path)]
        self._pages = [path for path in self._entries if _PAGES.fullmatch(path)]
        self._inner = [] if nested else [path for path in self._entries if _NESTED.fullmatch(path)]
        self._refuse_what_cannot_be_read()

    def digests(self) -> set[str]:
        """Return the SHA-256 that datapackage.json has of each WARC file; empty if it has not that of all."""
        declared = [resource.digest for path, resource in self._resources.items() if path in self._files]
        hexed = {digest.value.hex() for digest in declared if digest is not None and digest.algorithm == "sha256"}
        return hexed if not self._inner and len(hexed) == len(self._files) else set()

    def parts(self, report: Report, step: Step) -> Iterator[RecordRun]:
        """Yield each WARC file that is what its digest says; `report` has what is missing or is another."""
        for path in self._missing():
            report.losses.add(self._name, f"a file that {_PACKAGE} names is not in it", path)
        if self._package is None:
            report.remarks.add(self._name, "no digests are compared, since none can be read", _PACKAGE)
        done = 0
        for path in sorted((*self._files, *self._inner)):
            entry, beat = self._entries[path], partial(step, done)
            if fault := self._fault(path, beat):
                report.losses.add(self._name, fault, path)
            else:
                with self._zip.open(entry) as file:
                    yield from self._parts_of(path, file, report, done, beat)
            done += entry.compress_size
        for path in sorted(self._pages):
            beat = partial(step, done)
            if fault := self._fault(path, beat):
                report.remarks.add(self._name, f"a list of pages is skipped: {fault}", path)
                continue
            with self._zip.open(self._entries[path]) as file:
                lines = io.BufferedReader(file, _CHUNK)  # type: ignore[type-var] # it reads as raw files do
                records = self._page_records(path, lines, report)
                yield RecordRun(f"{self._name}/{path}", records, partial(int, done), self._name)

    def _page_records(self, path: str, file: IO[bytes], report: Report) -> Iterator[ForeignRecord]:
        """Yield the pages of a list, a line each; the bytes were compared with their digest."""
        while line := file.readline(_LONGEST_LINE):
            if not line.endswith(b"\n") and len(line) == _LONGEST_LINE:
                report.remarks.add(self._name, f"a line of more than {_LONGEST_LINE:,} bytes is skipped", path)
                while (rest := file.readline(_CHUNK)) and not rest.endswith(b"\n"):
                    pass
            elif (record := _page_record(line, path.rpartition("/")[2])) is not None:
                yield record
            elif line.strip() and not _is_head(line):
                report.remarks.add(self._name, "a line that describes no page is skipped", f"{path}: {line[:100]!r}")

    def _parts_of(
        self, path: str, file: IO[bytes], report: Report, done: int, beat: Callable[[], None]
    ) -> Iterator[RecordRun]:
        name, size = f"{self._name}/{path}", self._entries[path].file_size
        if path in self._files:
            yield file_part(file, size, name, report, before=done, crawl=self._name)
            return
        try:
            inner = Wacz(file, size, name, nested=True)
        except Damaged as error:
            report.losses.add(self._name, "a WACZ in it that cannot be read", str(error))
            return
        yield from inner.parts(report, lambda _: beat())

    def _missing(self) -> list[str]:
        wanted = (path for path in self._resources if path.startswith("archive/") or _NESTED.fullmatch(path))
        return sorted(path for path in wanted if path not in self._entries)

    def _refuse_what_cannot_be_read(self) -> None:
        taken = [self._entries[path] for path in (*self._files, *self._inner)]
        listed = [self._entries[path] for path in self._pages]
        if not taken:
            missing = self._missing()
            words = f"; {_PACKAGE} names {', '.join(missing)[:300]}" if missing else ""
            if any(_NESTED.fullmatch(path) for path in missing):
                words += ", WACZ files to be imported one by one (multi-WACZ)"
            elif not missing and not self._nested and _PACKAGE not in self._entries:
                words = ": it is a ZIP, and no WACZ; unpack it, and import its folder"
            raise Damaged(f"{self._name}: there is no WARC file in it{words}")
        if any(entry.flag_bits & _ENCRYPTED for entry in (*taken, *listed)):
            raise Damaged(f"{self._name} is encrypted; unpack it, and import what is in it")
        grown = sum(entry.file_size for entry in (*taken, *listed))
        if grown > BOMB_SIZE and grown > self._size * BOMB_FACTOR:
            raise Damaged(f"{self._name} would grow from {self._size} to {grown} bytes: that is an attack on the disk")

    def _fault(self, path: str, step: Callable[[], None]) -> str:
        """Return what is wrong with a file; empty if its bytes are what its checksum and digest say."""
        resource = self._resources.get(path)
        declared = resource.digest if resource else None
        hasher = hashlib.new(declared.algorithm if declared else "sha256", usedforsecurity=False)
        try:
            with self._zip.open(self._entries[path]) as file:
                while data := file.read(_CHUNK):
                    hasher.update(data)
                    step()
        except ZIP_FAULTS as error:
            return f"a file that cannot be unpacked ({error})"
        if declared is not None and hasher.digest() != declared.value:
            return f"a file that is not what its digest in {_PACKAGE} says; unpacked, it can be imported all the same"
        return ""

    def _read_package(self) -> dict[str, Any] | None:
        entry = self._entries.get(_PACKAGE)
        if entry is None or entry.file_size > _LARGEST_PACKAGE:
            return None
        try:
            package = json.loads(self._zip.read(entry))
        except (*ZIP_FAULTS, RecursionError):
            return None
        return package if isinstance(package, dict) else None


def _page_record(line: bytes, file: str) -> ForeignRecord | None:
    """Return a line of a list of pages as a record; None where it describes no page."""
    page = _json_object(line)
    url, time, title, text = (page.get(name) for name in ("url", "ts", "title", "text"))
    if not isinstance(url, str) or not url:
        return None
    body = text.encode("utf-8", "replace") if isinstance(text, str) else b""
    return PageRecord(url, time if isinstance(time, str) else "", title if isinstance(title, str) else "", body, file)


def _is_head(line: bytes) -> bool:
    """Return whether a line is the first of a list of pages, which names its format."""
    return "format" in _json_object(line)


def _json_object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _resources(package: dict[str, Any] | None) -> Iterator[_Resource]:
    resources = (package or {}).get("resources")
    for resource in resources if isinstance(resources, list) else []:
        if isinstance(resource, dict) and isinstance(resource.get("path"), str):
            stats = resource.get("stats")
            digest = resource.get("hash") or (stats.get("hash") if isinstance(stats, dict) else "")
            yield _Resource(
                printable(str(PurePosixPath(resource["path"]))),
                declared_digest(digest if isinstance(digest, str) else ""),
            )


def _directory_size(file: IO[bytes], size: int) -> int:
    """Return the size that the end of a ZIP says its directory has; 0 where it says nothing."""
    file.seek(max(size - _LONGEST_END, 0))
    tail = file.read(_LONGEST_END)
    for magic, place, width in ((_LARGE_END, 40, 8), (_END, 12, 4)):
        if (offset := tail.rfind(magic)) >= 0:
            return int.from_bytes(tail[offset + place : offset + place + width], "little")
    return 0
