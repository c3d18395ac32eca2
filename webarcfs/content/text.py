"""The charset and the title of a body (/Cr-12.2/). Pure.

A declared encoding is used as browsers use it, also for bytes that are broken in it. libxml2 always receives UTF-8,
so it never guesses.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

import charset_normalizer
from lxml import etree
from w3lib.encoding import read_bom, resolve_encoding

from webarcfs.content.declared_charset import encoding_of, named_in_document, named_in_header
from webarcfs.content.markup import Listener, told

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
#: The JavaScript MIME types (WHATWG MIME Sniffing Standard, section 4.6).
SCRIPT_TYPES = frozenset(
    {
        *(f"application/{kind}javascript" for kind in ("", "x-")),
        *(f"application/{kind}ecmascript" for kind in ("", "x-")),
        *(f"text/{kind}javascript" for kind in ("", "x-")),
        *(f"text/{kind}ecmascript" for kind in ("", "x-")),
        *(f"text/javascript1.{minor}" for minor in range(6)),
        "text/jscript",
        "text/livescript",
    }
)
#: Bytes of a body that `decode_charset` examines.
SAMPLE = 1 << 16
#: Most bytes of a body that are read in search of its title.
LONGEST_HEAD = 1 << 20
#: Most characters of a title.
LONGEST_TITLE = 1000

#: The encoding of a body without a usable declaration (WHATWG: the Western default of all browsers).
DEFAULT = "cp1252"

#: Options for parsing untrusted XML, broken or not: UTF-8, nothing fetched, nothing expanded, bounded in depth.
CAREFUL_XML: Mapping[str, Any] = {
    "encoding": "utf-8",
    "recover": True,
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
}
#: Fewer ASCII characters do not prove UTF-16: a few NULs may be stray, and the shortest page has more ASCII.
_LEAST_MARKUP = 8
_UTF_32 = ("utf-32-le", "utf-32-be")
_WIDE = (*_UTF_32, "utf-16-le", "utf-16-be")
# Encodings of pages without a declaration, under the detector's names.
_DETECTABLE = [
    "euc_jp", "cp932", "cp949", "gb18030", "big5", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256",
    "cp1257", "koi8_r", "iso8859_2",
]  # fmt: skip
_DETECTOR_SAMPLE = 1 << 12
_NON_ASCII_TEXT = re.compile(rb"[^<>]*[\x80-\xff][^<>]*")
_NOT_ASCII = re.compile("[^\0-\x7f]")

# Bytes that single-byte encodings may leave out; the standard takes these for the controls of their number.
_C1 = range(0x80, 0xA0)
_EURO = 0x80
# C0 and C1 controls but for white space, and characters that XML 1.0 forbids (its section 2.2).
_UNWANTED = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Elements with a <title> of their own.
_DRAWINGS = ("svg", "template")
_FIRST_PIECE = 1 << 10
_LONGEST_PIECE = 1 << 16


def decode_charset(body_head: bytes, content_type: str) -> str:
    """Return the encoding, as a Python codec's name, of a body that starts with `body_head`, sent as `content_type`.

    `content_type` is the header's value, or empty. The order is that of browsers: a byte order mark; the header's
    charset; the document's own. What is declared holds for all bytes: `decoder` replaces what does not decode.
    Where nothing known is declared: UTF-16 and UTF-32 by their NULs; ISO-2022-JP by its escapes; UTF-8 if nearly all
    decodes; the detector's guess; windows-1252.
    """
    sample = body_head[:SAMPLE]
    return (
        read_bom(sample)[0]
        or named_in_header(content_type)
        or named_in_document(sample, content_type)
        or _undeclared(sample)
    )


def decoder(charset: str) -> codecs.IncrementalDecoder:
    """Return a decoder that never fails: broken bytes become U+FFFD; for an unknown encoding it is windows-1252."""
    known = charset if charset in _UTF_32 else encoding_of(charset)
    return codecs.getincrementaldecoder(known or DEFAULT)("webarcfs-replace")


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Replace a byte that Python does not decode, as the Encoding Standard does."""
    assert isinstance(error, UnicodeDecodeError)
    byte = error.object[error.start]
    if error.encoding == "charmap" and byte in _C1:
        return chr(byte), error.start + 1
    if error.encoding == "gb18030" and byte == _EURO:
        return "\u20ac", error.start + 1
    return "\ufffd", error.end


codecs.register_error("webarcfs-replace", _replace)


def title_of(chunks: Iterable[bytes], charset: str, mime_type: str) -> str:
    """Return the title of a document (/Cr-12.2/), white space folded, at most LONGEST_TITLE characters, or empty.

    `chunks` are the body's bytes, read only as far as the title needs, and never beyond LONGEST_HEAD. HTML's title is
    its first <title> outside of a drawing; that of other XML (RSS, Atom, SVG) its first one. No content raises.
    """
    decoded = _decoded_pieces(chunks, charset)
    if mime_type in HTML_TYPES:
        return fold(_first_of_html(decoded))
    return fold(_first_of_xml(decoded)) if is_xml(mime_type) else ""


def is_xml(mime_type: str) -> bool:
    """Return whether documents of this type are XML (RFC 7303)."""
    return mime_type in ("text/xml", "application/xml") or mime_type.endswith("+xml")


def fold(text: str) -> str:
    """Return `text` on one line, as a title: white space folded, without controls, cut."""
    return " ".join(_UNWANTED.sub("", text).split())[:LONGEST_TITLE].rstrip()


def _undeclared(sample: bytes) -> str:
    """Return the encoding of a body of which nothing says it."""
    if b"\0" in sample and (wide := _wide(sample)):
        return wide
    if sample.isascii():
        return "iso2022_jp" if b"\x1b$" in sample else "utf-8"  # its escape to kanji declares it
    known = _decoded(sample, "utf-8")  # also if it is cut off at the sample's end
    if (known and not known.isascii()) or _nearly_decodes(sample, "utf-8"):
        return "utf-8"
    return _detect(sample) or DEFAULT


def _decoded(sample: bytes, charset: str) -> str | None:
    """Return `sample` decoded strictly as `charset`, without a character that is cut off at its end; else None."""
    try:
        return codecs.getincrementaldecoder(charset)("strict").decode(sample)
    except ValueError:
        return None


def _nearly_decodes(sample: bytes, charset: str) -> bool:
    """Return whether at least nine tenths of the non-ASCII text decode: one broken byte proves no other encoding."""
    text = sample.decode(charset, "replace")
    return 10 * text.count("\ufffd") <= len(_NOT_ASCII.findall(text))


def _wide(sample: bytes) -> str | None:
    """Return UTF-32 or UTF-16 without a mark: the one reading without NULs and with ASCII, such as markup; or None."""
    best, most = None, max(len(sample) // 100, _LEAST_MARKUP)
    for charset in _WIDE:
        text = _decoded(sample, charset)
        if text and "\0" not in text and (count := len(text) - len(_NOT_ASCII.findall(text))) > most:
            best, most = charset, count
    return best


def _detect(sample: bytes) -> str | None:
    """Return the detector's guess on the non-ASCII text between the tags; slow (milliseconds)."""
    text = bytearray()
    for piece in _NON_ASCII_TEXT.finditer(sample):
        if len(text) >= _DETECTOR_SAMPLE:
            break  # a piece is never cut: half a character would be evidence against the right encoding
        text += b" " + piece[0]
    matches = charset_normalizer.from_bytes(bytes(text), cp_isolation=_DETECTABLE, enable_fallback=False)
    best = matches.best()
    if best is None:
        return None
    # Short texts fit several Latin alphabets equally, which the detector orders by their names.
    for match in matches:
        as_good = match.chaos <= best.chaos + 0.005 and match.coherence >= best.coherence - 0.02
        if as_good and DEFAULT in match.could_be_from_charset:
            return DEFAULT
    return resolve_encoding(best.encoding)


def _decoded_pieces(chunks: Iterable[bytes], charset: str) -> Iterator[str]:
    """Yield the body without NULs (at which libxml2 stops) and byte order marks."""
    decode = decoder(charset).decode
    for piece in _pieces(chunks):
        yield decode(piece).replace("\0", "").replace("\ufeff", "")


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield `chunks` in pieces, small at first, since most titles are in the first kilobyte, up to the limit."""
    size, left = _FIRST_PIECE, LONGEST_HEAD
    for chunk in chunks:
        at = 0
        while at < len(chunk) and left:
            piece = chunk[at : at + min(size, left)]
            at += len(piece)
            left -= len(piece)
            size = min(2 * size, _LONGEST_PIECE)
            yield piece
        if not left:
            return


class _Titles(Listener[str]):
    """Finds titles outside of drawings; also one without an end, as far as it was read."""

    def __init__(self) -> None:
        super().__init__((*_DRAWINGS, "title"), (*_DRAWINGS, "title"))
        self._drawings = 0
        self._title: list[str] | None = None

    def opened(self, tag: str, _attributes: Mapping[str, str]) -> None:
        """Handle the beginning of an element."""
        if tag in _DRAWINGS:
            self._drawings += 1
        elif tag == "title" and not self._drawings and self._title is None:
            self._title = []

    def ended(self, tag: str) -> None:
        """Handle the end of an element."""
        if tag in _DRAWINGS:
            self._drawings = max(self._drawings - 1, 0)
        elif tag == "title":
            self.close()

    def data(self, data: str) -> None:
        """Handle text between tags."""
        if self._title is not None:
            self._title.append(data)

    def close(self) -> None:
        """Handle the end of the page."""
        if self._title is not None:
            self.found.append("".join(self._title))
            self._title = None


def _first_of_html(pieces: Iterator[str]) -> str:
    """Return the first title of a page; if it has no end, as far as it was read."""
    read: list[str] = []  # at most LONGEST_HEAD of them

    def from_start() -> Iterator[str]:
        yield from read
        for piece in pieces:
            read.append(piece)
            yield piece

    return next(told(_Titles, from_start), "")


def _first_of_xml(pieces: Iterable[str]) -> str:
    """Return the text of the first title of a document; if it has no end, as far as it was read."""
    parser = etree.XMLPullParser(events=("start", "end"), tag="{*}title", **CAREFUL_XML)
    title: etree._Element | None = None
    with suppress(etree.LxmlError):  # there is no title after the end of the parsable part
        for piece in pieces:
            parser.feed(piece.encode("utf-8", "replace"))
            for event, element in cast(Iterator[tuple[str, etree._Element]], parser.read_events()):
                if title is None:
                    title = element
                if event == "end" and element is title:
                    return _text(element)
        parser.close()  # flushes the rest of a title that is cut off
    return "" if title is None else _text(title)


def _text(title: etree._Element) -> str:
    # Without itertext(), which raises on the lone surrogates that libxml2 accepts in broken XML (`&#xD800;`).
    text: bytes = etree.tostring(title, method="text", encoding="utf-8", with_tail=False)
    return text.decode("utf-8", "ignore")
