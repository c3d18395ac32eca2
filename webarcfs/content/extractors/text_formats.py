"""The text of documents, as people see it, by their format.

An HTML page has the text that a browser shows: without what is hidden, lines at blocks. Plain text, XML, RTF and e-mail
are read as text, too.

Office files are DOCX, PPTX, XLSX (ECMA-376) and OpenDocument (ISO/IEC 26300): ZIP files of XML. Libraries for them load
a whole document into objects; the text is that of a few elements, and is read here as a stream, without entities, from
entries whose size is bounded.
"""

from __future__ import annotations

import email
import email.policy
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.message import Message
from itertools import chain
from typing import Any, BinaryIO, cast

from lxml import etree

from webarcfs.content.extractors.extracted import LONGEST, Extracted, Fault, UnreadableDocument
from webarcfs.content.markup import MarkupListener, stream_findings
from webarcfs.content.text import CAREFUL_XML, decode_charset, decoder

# == html text ========================================================================================================


#: Elements whose content no browser shows as text, with scripts switched on.
_HIDDEN = frozenset(
    [
        "script",
        "style",
        "noscript",
        "template",
        "head",
        "iframe",
        "object",
        "noembed",
        "noframes",
        "audio",
        "video",
        "canvas",
        "datalist",
        "title",
    ]
)
_VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
        "param",
        "frame",
    ]
)
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "button",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "dir",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "frameset",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hgroup",
        "hr",
        "img",
        "input",
        "legend",
        "li",
        "main",
        "menu",
        "nav",
        "ol",
        "optgroup",
        "option",
        "p",
        "pre",
        "search",
        "section",
        "select",
        "summary",
        "table",
        "tbody",
        "td",
        "textarea",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_SAYS_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_DESCRIBES = frozenset(("description", "keywords", "author", "dc.description", "dc.subject", "og:description"))


class _Text(MarkupListener[tuple[str, str]]):
    """Finds pieces of text, each with its part: body, heading, description, language."""

    def __init__(self) -> None:
        super().__init__(None, None)
        self._hidden = ""  # the outermost hidden element
        self._inside = 0  # elements of its name inside it, and itself
        self._heading = 0

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the beginning of an element."""
        if tag == "html" and "lang" in attributes:
            self.found.append(("language", attributes["lang"]))
        if self._hidden:
            self._inside += tag == self._hidden
            if tag == "meta":
                self._describe(attributes)
            return
        if tag in _HIDDEN or ("hidden" in attributes or _SAYS_HIDDEN.search(attributes.get("style", ""))):
            if tag not in _VOID:
                self._hidden, self._inside = tag, 1
            return
        if tag in _BLOCKS:
            self.found.append(("body", "\n"))
        if tag in _HEADINGS:
            self._heading += 1
        elif tag == "meta":
            self._describe(attributes)
        elif tag in ("img", "input", "area") and attributes.get("alt"):
            self.found.append(("description", attributes["alt"]))

    def ended(self, tag: str) -> None:
        """Handle the end of an element."""
        if self._hidden:
            self._inside -= tag == self._hidden
            if not self._inside or tag == "html":
                self._hidden = ""
            return
        if tag in _BLOCKS:
            self.found.append(("body", "\n"))
        if tag in _HEADINGS and self._heading:
            self._heading -= 1
            self.found.append(("heading", "\n"))

    def data(self, data: str) -> None:
        """Handle text between tags."""
        if not self._hidden:
            self.found.append(("body", data))
            if self._heading:
                self.found.append(("heading", data))

    def _describe(self, attributes: Mapping[str, str]) -> None:
        name = (attributes.get("name") or attributes.get("property") or "").lower()
        if name in _DESCRIBES:
            self.found.append(("description", attributes.get("content", "")))


def extract_html(chunks: Iterable[bytes], charset: str) -> Extracted:
    """Return the text of a page. `chunks` are its bytes; each iteration begins at their start. No content raises."""
    parts: dict[str, list[str]] = {"body": [], "heading": [], "description": [], "language": []}
    left = LONGEST
    for part, piece in stream_findings(_Text, lambda: _decoded(chunks, charset)):
        parts[part].append(piece[: max(left, 0)])
        left -= len(piece)
        if left < 0:
            break
    return Extracted(
        body="".join(parts["body"]),
        headings="".join(parts["heading"]),
        description="\n".join(parts["description"]),
        language=next(iter(parts["language"]), ""),
        fault="too-long" if left < 0 else "",
    )


def _decoded(chunks: Iterable[bytes], charset: str) -> Iterator[str]:
    decode = decoder(charset)
    for chunk in chain(chunks):
        yield decode.decode(chunk).replace("\0", "").replace("\ufeff", "")
    yield decode.decode(b"", final=True)


# == plain ============================================================================================================


_CHUNK = 1 << 16
#: Most bytes of a mail or an RTF file: their libraries read them whole.
_LARGEST = 64 << 20
#: Reads an attachment's text, by MIME type.
Inner = Callable[[bytes, str], Extracted]


def extract_text(file: BinaryIO, content_type: str) -> Extracted:
    """Return plain text, decoded as a browser would."""
    start = file.read(_CHUNK)
    decode = decoder(decode_charset(start, content_type))
    pieces, size, chunk = [], 0, start
    while chunk and size <= LONGEST:
        pieces.append(decode.decode(chunk))
        size += len(pieces[-1])
        chunk = file.read(_CHUNK)
    return Extracted("".join(pieces)[:LONGEST], fault=Fault.TOO_LONG if size > LONGEST else "")


class _Texts:
    """Receives the events of an XML document; each element is a line."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.size = 0

    def start(self, _tag: str, _attributes: object) -> None:
        """Handle the beginning of an element."""
        self.data("\n")

    def end(self, _tag: str) -> None:
        """Handle the end of an element."""
        self.data("\n")

    def data(self, data: str) -> None:
        """Handle text."""
        if self.size <= LONGEST:
            self.found.append(data)
            self.size += len(data)

    def close(self) -> None:
        """Handle the end of the document."""


def extract_xml(file: BinaryIO, content_type: str) -> Extracted:
    """Return the text of the elements of an XML document, as far as it can be read."""
    start = file.read(_CHUNK)
    decode = decoder(decode_charset(start, content_type))
    target = _Texts()
    parser = etree.XMLParser(target=cast(Any, target), **CAREFUL_XML)
    chunk, fault = start, ""
    try:
        while chunk and target.size <= LONGEST:
            parser.feed(decode.decode(chunk).replace("\0", "").encode("utf-8", "replace"))
            chunk = file.read(_CHUNK)
        parser.close()
    except etree.LxmlError:
        fault = Fault.DAMAGED
    if target.size > LONGEST:
        fault = Fault.TOO_LONG
    return Extracted("".join(target.found)[:LONGEST], fault=fault)


def extract_rtf(file: BinaryIO) -> Extracted:
    """Return the text of an RTF file. Raises Unreadable."""
    from striprtf.striprtf import rtf_to_text  # noqa: PLC0415 # of the extra `search`

    data = _whole(file)
    if not data.lstrip().startswith(b"{\\rtf"):
        raise UnreadableDocument(Fault.DAMAGED)
    try:
        text: str = rtf_to_text(data.decode("latin-1"), errors="ignore")  # type: ignore[no-untyped-call] # it has no types
        return Extracted(text[:LONGEST])
    except (ValueError, LookupError, IndexError, RecursionError, TypeError):
        raise UnreadableDocument(Fault.DAMAGED) from None


def extract_mail(file: BinaryIO, inner: Inner) -> Extracted:
    """Return the text of a mail: from, to, subject, bodies, and texts of its attachments."""
    message = email.message_from_bytes(_whole(file), policy=email.policy.default)
    pieces: list[str] = []
    title = ""
    try:
        title = str(message.get("subject", ""))
        pieces += [str(message.get(name, "")) for name in ("from", "to", "cc", "date")]
    except (ValueError, LookupError, IndexError, AttributeError):  # headers as nobody may write them
        pass
    for part in message.walk():
        if not part.is_multipart():
            pieces.append(_part(part, inner))
    return Extracted("\n".join(pieces)[:LONGEST], title=title)


def _part(part: Message, inner: Inner) -> str:
    try:
        data = cast(bytes, part.get_payload(decode=True)) or b""
        return inner(data, f"{part.get_content_type()}; charset={part.get_content_charset('')}").body
    except (ValueError, LookupError, UnreadableDocument, AssertionError):
        return ""


def _whole(file: BinaryIO) -> bytes:
    data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise UnreadableDocument(Fault.TOO_LARGE)
    return data


def chunks_of(file: BinaryIO) -> Iterable[bytes]:
    """Return the chunks of a file; each iteration begins at its start."""
    return _Chunks(file)


class _Chunks:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __iter__(self) -> Any:
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK):
            yield chunk


# == office ===========================================================================================================


#: Most bytes of an entry, and most entries, that are read.
_OFFICE_LARGEST, _MOST = 200 << 20, 5_000

#: Elements after which a line ends, by their local names, and elements whose text no reader shows.
_LINES = frozenset(
    ("p", "h", "tr", "br", "tab", "si", "row", "table-row", "line-break", "cr", "list-item", "sp", "is", "c")
)
_SPACES = frozenset(("tab", "s"))
_OFFICE_HIDDEN = frozenset(
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


def extract_office(file: BinaryIO) -> Extracted:
    """Return the text of an office file. Raises Unreadable for one that is encrypted, damaged or too large."""
    start = file.read(8)
    file.seek(0)
    if start == _OLE:  # ECMA-376 files that are encrypted are in a container of the older form
        raise UnreadableDocument(Fault.ENCRYPTED)
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()[:_MOST]
            wanted = next((places for first, places in _PLACES if first in names), None)
            if wanted is None:
                raise UnreadableDocument(Fault.DAMAGED)
            if _is_encrypted(archive, names):
                raise UnreadableDocument(Fault.ENCRYPTED)
            pieces: list[str] = []
            size = 0
            title = description = ""
            for place in wanted:
                for name in sorted(
                    (member for member in names if member.startswith(place)), key=lambda member: (len(member), member)
                ):
                    for piece in _text(archive, name):
                        pieces.append(piece)
                        size += len(piece)
                        if size > LONGEST:
                            return Extracted("".join(pieces)[:LONGEST], fault=Fault.TOO_LONG)
            for name in ("docProps/core.xml", "meta.xml"):
                if name in names:
                    properties = dict(_properties(archive, name))
                    title, description = properties.get("title", ""), "\n".join(properties.values())
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
        raise UnreadableDocument(Fault.DAMAGED) from error


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
    left = _OFFICE_LARGEST
    with archive.open(name) as entry:
        while chunk := entry.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                raise UnreadableDocument(Fault.TOO_LARGE)
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
        self._hidden += tag.rpartition("}")[2] in _OFFICE_HIDDEN

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        local = tag.rpartition("}")[2]
        self._hidden -= local in _OFFICE_HIDDEN
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
        pieces, self._found = self._found, []
        return pieces


def _properties(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[str, str]]:
    root = etree.fromstring(
        _read(archive, name), etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    )
    for element in root.iter():
        local = etree.QName(element).localname if isinstance(element.tag, str) else ""
        if local in ("title", "subject", "description", "keywords", "keyword", "creator") and element.text:
            yield local, element.text
