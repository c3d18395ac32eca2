"""The charset and the title of a body (/Cr-12.2/). Pure.

Declared encodings are often wrong, so one is used only if the bytes decode with it. libxml2 always receives UTF-8, so
it never guesses.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, cast

import charset_normalizer
from lxml import etree
from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom, resolve_encoding

from webarcfs.content.markup import Listener, told

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
#: Bytes of a body that `decode_charset` examines.
SAMPLE = 1 << 16
#: Most bytes of a body that are read in search of its title.
LONGEST_HEAD = 1 << 20
#: Most characters of a title.
LONGEST_TITLE = 1000

#: The encoding of a body without a usable declaration (WHATWG: the Western default of all browsers).
DEFAULT = "cp1252"

# The encodings of the web (encoding.spec.whatwg.org), a few older ones, under Python's names. Python has more codecs,
# some of which (zlib, idna, unicode_escape) must not be used for untrusted input.
_ENCODINGS = frozenset(
    {
        "utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be",
        "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258",
        "iso8859-2", "iso8859-3", "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8",
        "iso8859-10", "iso8859-13", "iso8859-14", "iso8859-15", "iso8859-16",
        "koi8-r", "koi8-u", "cp866", "cp874", "mac-roman", "mac-cyrillic", "cp437", "cp850", "cp852",
        "euc_jp", "cp932", "iso2022_jp", "gb18030", "hz", "big5", "big5hkscs", "cp949", "iso2022_kr", "johab",
    }
)  # fmt: skip
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
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
# Python's own decoders of these names raise without a mark; WHATWG: little endian.
_WITHOUT_ORDER = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}
# Encodings of pages without a declaration, under the detector's names.
_DETECTABLE = [
    "euc_jp", "cp932", "cp949", "gb18030", "big5", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256",
    "cp1257", "koi8_r", "iso8859_2",
]  # fmt: skip
_DETECTOR_SAMPLE = 1 << 12
_NON_ASCII_TEXT = re.compile(rb"[^<>]*[\x80-\xff][^<>]*")
_NOT_ASCII = re.compile("[^\0-\x7f]")

# C0 and C1 controls but for white space, and characters that XML 1.0 forbids (its section 2.2).
_UNWANTED = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Elements with a <title> of their own.
_DRAWINGS = ("svg", "template")
_FIRST_PIECE = 1 << 10
_LONGEST_PIECE = 1 << 16


def decode_charset(body_head: bytes, content_type: str) -> str:
    """Return the encoding, as a Python codec's name, of a body that starts with `body_head`, sent as `content_type`.

    `content_type` is the header's value, or empty. In this order: a byte order mark; UTF-16 and UTF-32 by their NULs;
    bytes that are UTF-8 and not just ASCII; the header's charset; the document's own; the detector's guess;
    windows-1252. A declared one counts only if it decodes the sample.
    """
    sample = body_head[:SAMPLE]
    marked = read_bom(sample)[0] or (_wide(sample) if b"\0" in sample else None)
    if marked:
        return marked
    ascii_only = sample.isascii()
    if not ascii_only and (known := _decoded(sample, "utf-8")) and not known.isascii():
        return "utf-8"
    declared = _declared(sample, content_type)
    for charset in declared:
        if _decoded(sample, charset) is not None:
            return charset
    if ascii_only:
        return "utf-8"
    for charset in ("utf-8", *declared):
        if _nearly_decodes(sample, charset):
            return charset
    return _detect(sample) or DEFAULT


def decoder(charset: str) -> codecs.IncrementalDecoder:
    """Return a decoder that never fails: broken bytes become U+FFFD; for an unknown encoding it is windows-1252."""
    resolved = resolve_encoding(charset)
    resolved = _WITHOUT_ORDER.get(resolved or "", resolved)
    return codecs.getincrementaldecoder(resolved if resolved in _ENCODINGS else DEFAULT)("replace")


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


def _declared(sample: bytes, content_type: str) -> list[str]:
    """Return the encodings that header and document declare. A wide one is false, or its NULs would have shown it."""
    named = [_named_in_header(content_type), html_body_declared_encoding(sample)]
    if b"\x1b$" in sample:
        named.append("iso2022_jp")  # its escape to kanji declares it
    return [charset for charset in named if charset in _ENCODINGS and charset not in _WIDE]


@lru_cache(maxsize=256)
def _named_in_header(content_type: str) -> str | None:
    # A site declares the same for all its pages, and looking a name up takes as long as half the rest.
    return http_content_type_encoding(content_type)


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
