"""A folder of files for people: each version that a question found, named by date and title, in a folder of its host.

Names are such that Linux, macOS and Windows accept them, and no two of a folder are one for a file system that ignores
case or normalises Unicode: all but one get a mark, a part of a SHA-256. The extension is that of the document's type.
The date is that of the first capture, in UTC; a document without a title is named by its URL. `index.csv` says of which
URL, time and snapshot each file is. Bodies are as the server sent them; nothing in them is rewritten.

A file is written beside the folder, and gets its name when it is whole. An interrupted export keeps the files that are
there with their size, and writes the rest and the index.
"""

from __future__ import annotations

import csv
import hashlib
import re
import unicodedata
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from webarcfs.archive.model.errors import Damaged, Interrupted
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.system.clocks import Progress
from webarcfs.archive.system.files import Sorter
from webarcfs.export.export_result import DAMAGED, Summary, log_damage
from webarcfs.export.selection import Stop
from webarcfs.export.static_places import file_type, folded, host_name, is_like_marked, safe
from webarcfs.export.version_selection import ChosenCapture, RowKind, VersionSelection
from webarcfs.export.version_texts import COLUMNS, VersionWithText, with_texts
from webarcfs.export.warc_records import opened

# == names, pure ======================================================================================================


INDEX: Final = "index.csv"
#: Longest name, in UTF-16 units (Windows) and in bytes of UTF-8 (Linux), with its extension and that of its text.
LONGEST, LONGEST_BYTES = 100, 220
_MARK = 12
_BLANKS = re.compile(r"\s+")
_TEXT_ENDING = ".txt"
#: An extension that a URL's own name may give to a document of no known type.
_EXTENSION = re.compile(r"[A-Za-z0-9]{1,8}")


def file_names(row: ChosenCapture, *, is_marked: bool = False) -> tuple[str, str]:
    """Return the paths of a version's file and of that with its text, in the exported folder."""
    segment = unquote(row.url.partition("?")[0].rpartition("/")[2])
    extension = _extension_of(row.mime_type, segment)
    title = _BLANKS.sub(" ", row.title).strip() or _named_by(row.url)
    if title.lower().endswith(f".{extension}"):
        title = title[: -len(extension) - 1] or title
    day = f"{from_epoch(row.captured).astimezone(UTC):%Y-%m-%d}"
    tail = f"~{_mark_of(row)}" if is_marked else ""
    room = len(tail) + len(extension) + 1 + len(_TEXT_ENDING)
    stem = _shortened(safe(f"{day} {title}"), LONGEST - room, LONGEST_BYTES - room)
    host = host_name(row.domain)
    folder = f"{host}_" if folded(host) == INDEX else host
    path = f"{folder}/{stem}{tail}.{extension}"
    return path, f"{path}{_TEXT_ENDING}"


def _named_by(url: str) -> str:
    """Return a URL as a name: without its scheme and host, its escapes undone."""
    _, _, place = url.partition("://")[2].partition("/")
    return _BLANKS.sub(" ", unquote(place)).strip(" /") or "index"


def _extension_of(mime_type: str, segment: str) -> str:
    if mime_type.endswith(("/xml", "+xml")) and mime_type not in ("image/svg+xml", "application/xhtml+xml"):
        return "xml"
    kind = file_type(mime_type, segment)
    own = segment.rpartition(".")[2].lower() if "." in segment else ""
    return own if own in kind.accepted and _EXTENSION.fullmatch(own) else kind.extension


def _mark_of(row: ChosenCapture) -> str:
    of = f"{row.url}\n{row.captured}\n{row.blob}\n{row.seq}"
    return hashlib.sha256(of.encode("utf-8", "surrogateescape")).hexdigest()[:_MARK]


def _shortened(name: str, units: int, size: int) -> str:
    """Return the beginning of a name that has so many UTF-16 units and bytes, cut between characters."""
    used = used_bytes = 0
    for at, char in enumerate(name):
        used += 1 + (ord(char) > 0xFFFF)  # what is beyond takes two units
        used_bytes += len(char.encode("utf-8", "surrogatepass"))
        if used > units or used_bytes > size:
            end = at
            while end > 1 and unicodedata.combining(name[end]):
                end -= 1  # a letter keeps its marks, or goes with them
            return name[:end].rstrip(" .")
    return name.rstrip(" .")


# == marks ============================================================================================================


class _Marked:
    """Which versions need a mark in their names: a bit each, so that a million of them take little memory."""

    def __init__(self, selection: VersionSelection, folder: Path, *, with_text: bool) -> None:
        self._bits = bytearray(len(selection) // 8 + 1)
        with Sorter(folder) as sorter:
            for number, row in _versions(selection):
                path, text = file_names(row)
                if is_like_marked(path.rpartition("/")[2]):
                    self._mark(number)
                    continue
                for name in (path, text) if with_text else (path,):
                    sorter.add(f"{folded(name)}\0{number:012}".encode("utf-8", "surrogateescape"))
            before = ""
            for raw in sorter.rows():
                name, _, number_text = raw.decode("utf-8", "surrogateescape").rpartition("\0")
                if name == before:
                    self._mark(int(number_text))
                before = name

    def _mark(self, number: int) -> None:
        self._bits[number // 8] |= 1 << number % 8

    def __contains__(self, number: int) -> bool:
        return bool(self._bits[number // 8] >> number % 8 & 1)


def _versions(selection: VersionSelection) -> Iterator[tuple[int, ChosenCapture]]:
    """Yield what becomes a file, with the numbers of the rows."""
    return ((number, row) for number, row in enumerate(selection.after(0)) if row.kind is RowKind.VERSION)


# == folder ===========================================================================================================


_SOME: Final = 20


def export(
    selection: VersionSelection, out: Path, progress: Progress, stop: Stop, *, with_text: bool, with_bodies: bool
) -> Summary:
    """Write the files to the folder `out`; see the package. Raises Interrupted, Damaged, OSError."""
    out.mkdir(exist_ok=True)
    written = _Files(out, with_text=with_text, with_bodies=with_bodies)
    marked = _Marked(selection, out.parent, with_text=with_text)
    columns = ["file"] * with_bodies + ["textFile"] * with_text + [*COLUMNS] + ["language", "fault"] * with_text
    left_out: dict[str, int] = {}
    known = count = 0
    with (out / INDEX).open("w", encoding="utf-8", errors="backslashreplace", newline="") as index:
        table = csv.DictWriter(index, columns)
        table.writeheader()
        versions = with_texts(selection.open, selection.after(0), wanted=with_text)
        for number, version in enumerate(versions):
            if stop():
                raise Interrupted("the export was interrupted; the same command resumes it")
            if version.row.kind is not RowKind.VERSION:
                continue
            known += 1
            if not known % _SOME:
                progress("versions", known, selection.versions)
            try:
                table.writerow(written.put(version, is_marked=number in marked))
                count += 1
            except Damaged as error:
                log_damage(error)
                left_out[DAMAGED] = left_out.get(DAMAGED, 0) + 1
    progress("versions", known, selection.versions)
    size = written.bytes + (out / INDEX).stat().st_size
    return Summary(versions=count, bytes=size, files=written.files + 1, left_out=left_out)


class _Files:
    """Writes the files of versions."""

    def __init__(self, out: Path, *, with_text: bool, with_bodies: bool) -> None:
        self._out = out
        self._scratch = out.with_name(f"{out.name}.file")
        self._with_text, self._with_bodies = with_text, with_bodies
        self._folder = ""
        self.files = self.bytes = 0

    def put(self, version: VersionWithText, *, is_marked: bool) -> dict[str, Any]:
        """Write what is wanted of a version; return its row of the index. Raises Damaged, OSError."""
        if version.error is not None:
            raise version.error
        path, text_path = file_names(version.row, is_marked=is_marked)
        folder = path.partition("/")[0]
        if folder != self._folder:
            (self._out / folder).mkdir(exist_ok=True)
            self._folder = folder
        row: dict[str, Any] = {}
        if self._with_bodies:
            self._copy(version, self._out / path)
            row["file"] = path
        if self._with_text:
            row |= {"textFile": "", "language": version.text.language, "fault": str(version.text.fault)}
            if version.text.body:
                self._write(version.text.body.encode("utf-8", "replace") + b"\n", self._out / text_path)
                row["textFile"] = text_path
        return row | version.fields()

    def _copy(self, version: VersionWithText, path: Path) -> None:
        assert version.store is not None
        size = version.store.size(version.blob)
        if not (path.exists() and path.stat().st_size == size):
            with opened(version.store, version.blob) as body, self._scratch.open("wb") as file:
                file.writelines(body.parts())
            self._scratch.replace(path)
        self._count(size)

    def _write(self, content: bytes, path: Path) -> None:
        self._scratch.write_bytes(content)
        self._scratch.replace(path)
        self._count(len(content))

    def _count(self, size: int) -> None:
        self.files += 1
        self.bytes += size
