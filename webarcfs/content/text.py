"""The charset and the title of a body (/Cr-12.2/). Pure.

The encoding that a response's head or a document declares is read as the Encoding and HTML Standards read it, and used
as browsers use it, also for bytes that are broken in it. libxml2 always receives UTF-8, so it never guesses.
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
from w3lib.encoding import read_bom, resolve_encoding
from webencodings.labels import LABELS

from webarcfs.content.markup import MarkupListener, stream_findings

# == declared charset, pure ===========================================================================================


#: Bytes of a page that are searched for its declaration. The standard asks for at least 1024.
PRESCAN = 4096

#: The encodings of the web (encoding.spec.whatwg.org), a few older ones, under Python's names. Python has more codecs,
#: some of which (zlib, idna, unicode_escape) must not be used for untrusted input. Browsers show nothing of a page in
#: `hz` or `iso2022_kr`, which are read here.
ENCODINGS = frozenset(
    {
        "utf-8", "utf-16-le", "utf-16-be",
        "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258",
        "iso8859-2", "iso8859-3", "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-8-i",
        "iso8859-10", "iso8859-13", "iso8859-14", "iso8859-15", "iso8859-16",
        "koi8-r", "koi8-u", "cp866", "cp874", "mac-roman", "mac-cyrillic", "cp437", "cp850", "cp852",
        "euc_jp", "cp932", "iso2022_jp", "gb18030", "hz", "big5", "big5hkscs", "cp949", "iso2022_kr", "johab",
    }
)  # fmt: skip

# Python's codecs for names of the Encoding Standard that it does not know, or takes for something else.
_CODECS = {
    "gbk": "gb18030", "x-user-defined": "cp1252", "x-mac-cyrillic": "mac-cyrillic",
    "utf-16le": "utf-16-le", "utf-16be": "utf-16-be",
}  # fmt: skip
# Encodings that the standard replaces, since scripts can be hidden in them, which nothing here runs.
_REPLACED = {"hz-gb-2312": "hz", "csiso2022kr": "iso2022_kr", "iso-2022-kr": "iso2022_kr"}
# Names by which browsers know an encoding whose name in Python they do not know.
_BROWSERS = {
    "cp932": "shift_jis", "cp949": "euc-kr", "euc_jp": "euc-jp", "mac-roman": "macintosh", "cp866": "ibm866",
    "mac-cyrillic": "x-mac-cyrillic", "cp874": "windows-874", "big5hkscs": "big5", "iso2022_jp": "iso-2022-jp",
    "cp437": "windows-1252", "cp850": "windows-1252", "cp852": "windows-1252",
}  # fmt: skip
_LABEL = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,40}")
_SPACES = "\t\n\f\r "
_WIDE = frozenset({"utf-16-le", "utf-16-be"})
_XML_TYPE = re.compile(r"(?:text|application)/xml|[^/]+/[^/]+\+xml")
_HTML_TYPE = re.compile(r"text/html|application/xhtml\+xml|")

_PARAMETER = re.compile(r';[\t\n\r ]*([^;=]+)(?:=(?:"((?:[^"\\]|\\.)*)"?[^;]*|([^;]*)))?', re.DOTALL)
# One step of the standard's prescan: a comment, a tag with its attributes, or what else ends with `>`.
_STEP = re.compile(
    rb"<(?:!--(?:-?>|.*?(?:-->|\Z))"
    rb"|(?P<meta>meta(?=[\s/]))"
    rb"|(?P<tag>/?[a-z][^\s>]*)"
    rb"|[!/?][^>]*)",
    re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(
    rb"[\s/]*+(?P<name>=?[^\s/>=]*+)(?:\s*+=\s*+(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<bare>[^\s>]*)))?"
)
_IN_CONTENT = re.compile(r"charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\"'\s;][^\s;]*))", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"<\?xml\s[^>]*?encoding\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_SHEET_DECLARATION = re.compile(rb'@charset "([^"]{1,200})";')
_WIDE_XML = {b"<\0?\0x\0": "utf-16-le", b"\0<\0?\0x": "utf-16-be"}


@lru_cache(maxsize=256)
def named_in_header(content_type: str) -> str | None:
    """Return the encoding in a Content-Type header's value, as a Python codec's name; None for none or unknown."""
    # A site declares the same for all its pages, and looking a name up takes as long as half the rest.
    return encoding_of(label_in_header(content_type))


def label_in_header(content_type: str) -> str:
    """Return the charset in a Content-Type header's value, as it was sent; empty for none."""
    essence, _, _ = content_type.partition(";")
    if "/" not in essence:
        return ""
    for name, quoted, plain in _PARAMETER.findall(content_type[len(essence) :]):
        if name.lower() == "charset":
            return re.sub(r"\\(.)", r"\1", quoted) or str(plain).strip(_SPACES)
    return ""


def named_in_document(sample: bytes, content_type: str) -> str | None:
    """Return the encoding that a body declares which starts with `sample` and was sent as `content_type`.

    Sheets, XML and pages each have a way of their own. Text, scripts and all else have none.
    """
    essence = content_type.partition(";")[0].strip().lower()
    head = sample[:PRESCAN].removeprefix(b"\xef\xbb\xbf")
    if essence == "text/css":
        return _as_read(_label(_SHEET_DECLARATION.match(head)))
    if _XML_TYPE.fullmatch(essence):
        return _named_in_xml(head)
    if _HTML_TYPE.fullmatch(essence) or "/" not in essence:
        return _WIDE_XML.get(head[:6]) or _named_in_page(head) or _named_in_xml(head)
    return None


def encoding_of(label: str) -> str | None:
    """Return the encoding that a label means, as a Python codec's name; None for an unknown one."""
    folded = label.strip(_SPACES).lower()
    if folded in _REPLACED:
        return _REPLACED[folded]
    name = LABELS.get(folded, folded)
    encoding = "iso8859-8-i" if name == "iso-8859-8-i" else resolve_encoding(_CODECS.get(name, name))
    return encoding if encoding in ENCODINGS and _LABEL.fullmatch(folded) else None


def label_of(charset: str) -> str:
    """Return the name by which browsers know an encoding (encoding.spec.whatwg.org), from Python's."""
    if charset.startswith("iso8859-"):
        return f"iso-{charset[3:7]}-{charset[8:]}"
    if charset.startswith("cp125"):
        return f"windows-{charset[2:]}"
    return _BROWSERS.get(charset, charset)


def _logical_hebrew(name: str) -> codecs.CodecInfo | None:
    """Return the codec of iso-8859-8-i: the same bytes as in iso-8859-8, in the order in which they are read."""
    if name.replace("-", "_") != "iso8859_8_i":
        return None
    known = codecs.lookup("iso8859-8")
    return codecs.CodecInfo(
        known.encode, known.decode, known.streamreader, known.streamwriter,
        known.incrementalencoder, known.incrementaldecoder, "iso8859-8-i",
    )  # fmt: skip


codecs.register(_logical_hebrew)


def _as_read(label: str) -> str | None:
    # What could be read so far is laid over ASCII, so the document cannot be UTF-16.
    encoding = encoding_of(label)
    return "utf-8" if encoding in _WIDE else encoding


def _label(match: re.Match[bytes] | None) -> str:
    return b"".join(filter(None, match.groups())).decode("latin-1") if match else ""


def _named_in_xml(head: bytes) -> str | None:
    return _WIDE_XML.get(head[:6]) or _as_read(_label(_XML_DECLARATION.match(head)))


def _named_in_page(head: bytes) -> str | None:
    """Return the encoding of the first <meta> that names a known one ("prescan a byte stream", HTML section 13.2.3)."""
    at = 0
    while step := _STEP.search(head, at):
        at = step.end()
        if not step["meta"] and not step["tag"]:
            continue
        attributes: dict[str, str] = {}
        while (attribute := _ATTRIBUTE.match(head, at)) and attribute["name"]:
            at = attribute.end()
            value = attribute["double"] or attribute["single"] or attribute["bare"] or b""
            attributes.setdefault(attribute["name"].decode("latin-1").lower(), value.decode("latin-1"))
        if step["meta"] and (encoding := _named_in_meta(attributes)):
            return encoding
    return None


def _named_in_meta(attributes: dict[str, str]) -> str | None:
    if "charset" in attributes:
        return _as_read(attributes["charset"])
    if attributes.get("http-equiv", "").lower() != "content-type":
        return None
    match = _IN_CONTENT.search(attributes.get("content", ""))
    return _as_read("".join(filter(None, match.groups()))) if match else None


# == text, pure =======================================================================================================


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
_TEXT_WIDE = (*_UTF_32, "utf-16-le", "utf-16-be")
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
    for charset in _TEXT_WIDE:
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


class _Titles(MarkupListener[str]):
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

    return next(stream_findings(_Titles, from_start), "")


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
