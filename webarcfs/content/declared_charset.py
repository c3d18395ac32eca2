"""The encoding that a response's head or a document declares, as the Encoding and HTML Standards read it. Pure."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

from w3lib.encoding import resolve_encoding
from webencodings.labels import LABELS

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
