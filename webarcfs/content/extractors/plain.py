"""The text of plain text, XML, RTF and e-mail."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Callable, Iterable
from email.message import Message
from typing import Any, BinaryIO, cast

from lxml import etree

from webarcfs.content.extractors.extracted import LONGEST, Extracted, Fault, Unreadable
from webarcfs.content.text import CAREFUL_XML, decode_charset, decoder

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
        raise Unreadable(Fault.DAMAGED)
    try:
        said: str = rtf_to_text(data.decode("latin-1"), errors="ignore")  # type: ignore[no-untyped-call] # it has no types
        return Extracted(said[:LONGEST])
    except (ValueError, LookupError, IndexError, RecursionError, TypeError):
        raise Unreadable(Fault.DAMAGED) from None


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
    except (ValueError, LookupError, Unreadable, AssertionError):
        return ""


def _whole(file: BinaryIO) -> bytes:
    data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise Unreadable(Fault.TOO_LARGE)
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
