"""The text of office files: DOCX, PPTX, XLSX (ECMA-376) and OpenDocument (ISO/IEC 26300).

They are ZIP files of XML. Libraries for them load a whole document into objects; the text is that of a few elements,
and is read here as a stream, without entities, from entries whose size is bounded.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from lxml import etree

from webarcfs.content.extractors.extracted import LONGEST, Extracted, Fault, Unreadable

#: Most bytes of an entry, and most entries, that are read.
_LARGEST, _MOST = 200 << 20, 5_000
_CHUNK = 1 << 16
#: Elements after which a line ends, by their local names, and elements whose text no reader shows.
_LINES = frozenset(
    ("p", "h", "tr", "br", "tab", "si", "row", "table-row", "line-break", "cr", "list-item", "sp", "is", "c")
)
_SPACES = frozenset(("tab", "s"))
_HIDDEN = frozenset(
    ("instrText", "delText", "tracked-changes", "annotation", "scripts", "font-face-decls", "styles", "f", "fldData")
)
#: The entries with text, in order, by their first entry's form.
_PLACES = (
    (
        "word/document.xml",
        ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml", "word/header", "word/footer"),
    ),
    ("ppt/presentation.xml", ("ppt/slides/slide", "ppt/notesSlides/notesSlide")),
    ("xl/workbook.xml", ("xl/sharedStrings.xml", "xl/worksheets/sheet")),
    ("content.xml", ("content.xml",)),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def extract(file: BinaryIO) -> Extracted:
    """Return the text of an office file. Raises Unreadable for one that is encrypted, damaged or too large."""
    start = file.read(8)
    file.seek(0)
    if start == _OLE:  # ECMA-376 files that are encrypted are in a container of the older form
        raise Unreadable(Fault.ENCRYPTED)
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()[:_MOST]
            wanted = next((places for first, places in _PLACES if first in names), None)
            if wanted is None:
                raise Unreadable(Fault.DAMAGED)
            if _is_encrypted(archive, names):
                raise Unreadable(Fault.ENCRYPTED)
            pieces: list[str] = []
            size = 0
            title = description = ""
            for place in wanted:
                for name in sorted(
                    (each for each in names if each.startswith(place)), key=lambda each: (len(each), each)
                ):
                    for piece in _text(archive, name):
                        pieces.append(piece)
                        size += len(piece)
                        if size > LONGEST:
                            return Extracted("".join(pieces)[:LONGEST], fault=Fault.TOO_LONG)
            for name in ("docProps/core.xml", "meta.xml"):
                if name in names:
                    found = dict(_properties(archive, name))
                    title, description = found.get("title", ""), "\n".join(found.values())
            return Extracted("".join(pieces), title=title, description=description)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        etree.LxmlError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        OSError,
    ) as error:
        raise Unreadable(Fault.DAMAGED) from error


def _is_encrypted(archive: zipfile.ZipFile, names: list[str]) -> bool:
    if any(archive.getinfo(name).flag_bits & 1 for name in names[:50]):
        return True
    return "META-INF/manifest.xml" in names and b"encryption-data" in _read(archive, "META-INF/manifest.xml")


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as entry:
        return entry.read(1 << 20)


def _text(archive: zipfile.ZipFile, name: str) -> Iterator[str]:
    """Yield the text of one entry, lines apart."""
    target = _Lines()
    parser = etree.XMLParser(
        target=cast(Any, target), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    left = _LARGEST
    with archive.open(name) as entry:
        while chunk := entry.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                raise Unreadable(Fault.TOO_LARGE)
            parser.feed(chunk)
            yield from target.drained()
        parser.close()
        yield from target.drained()


class _Lines:
    """Receives the events of an entry."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._hidden = 0

    def start(self, tag: str, _attributes: object) -> None:
        """Handle the beginning of an element."""
        self._hidden += tag.rpartition("}")[2] in _HIDDEN

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        local = tag.rpartition("}")[2]
        self._hidden -= local in _HIDDEN
        if local in _LINES:
            self._found.append("\n")
        elif local in _SPACES:
            self._found.append(" ")

    def data(self, data: str) -> None:
        """Handle text."""
        if not self._hidden:
            self._found.append(data)

    def close(self) -> None:
        """Handle the end of the entry."""

    def drained(self) -> list[str]:
        """Return the text since the last call."""
        found, self._found = self._found, []
        return found


def _properties(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[str, str]]:
    root = etree.fromstring(
        _read(archive, name), etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    )
    for element in root.iter():
        local = etree.QName(element).localname if isinstance(element.tag, str) else ""
        if local in ("title", "subject", "description", "keywords", "keyword", "creator") and element.text:
            yield local, element.text
