"""What the file of a document is: its extension, and how its references are read. Pure.

A browser knows a file by its extension, since a file has no head. So what a document may do depends on it: what is no
page for the archive must not become one for the browser, and what only looks active (XML with scripts in it) is text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from webarcfs.content.text import SCRIPT_TYPES


class Reading(StrEnum):
    """As what a document is read for its references."""

    NONE = "none"
    HTML = "html"
    XHTML = "xhtml"
    DRAWING = "drawing"
    CSS = "css"


@dataclass(frozen=True, slots=True)
class FileType:
    """An extension, those that a name may have instead, and the reading."""

    extension: str
    accepted: frozenset[str]
    reading: Reading = Reading.NONE


def _type(extensions: str, reading: Reading = Reading.NONE) -> FileType:
    names = extensions.split()
    return FileType(names[0], frozenset(names), reading)


_CSS = _type("css", Reading.CSS)
_SCRIPT = _type("js mjs")
_TEXT = _type("txt text log md rst")
_ICON = _type("ico cur")
_ZIP = _type("zip jar apk epub odt ods odp docx xlsx pptx whl kmz wacz")
_OLE = _type("doc xls ppt dot pps")
_GZIP = _type("gz tgz")
_FONT = _type("ttf otf ttc")
_PROGRAM = _type("exe dll")
_WORD = "vnd.openxmlformats-officedocument."
_OPEN = "vnd.oasis.opendocument."

_TYPES: dict[str, FileType] = {
    "text/html": _type("html htm", Reading.HTML),
    "application/xhtml+xml": _type("xhtml xht", Reading.XHTML),
    "image/svg+xml": _type("svg", Reading.DRAWING),
    "text/css": _CSS,
    **dict.fromkeys(SCRIPT_TYPES, _SCRIPT),
    "text/plain": _TEXT,
    "text/markdown": _TEXT,
    "text/csv": _type("csv"),
    "text/calendar": _type("ics"),
    "text/vcard": _type("vcf"),
    "text/vtt": _type("vtt"),
    "text/rtf": _type("rtf"),
    "application/rtf": _type("rtf"),
    "application/json": _type("json map webmanifest"),
    "text/json": _type("json map"),
    "application/ld+json": _type("jsonld json"),
    "application/manifest+json": _type("webmanifest json"),
    "application/pdf": _type("pdf ai"),
    "application/postscript": _type("ps eps ai"),
    "application/wasm": _type("wasm"),
    "image/png": _type("png apng"),
    "image/apng": _type("apng png"),
    "image/jpeg": _type("jpg jpeg jpe jfif"),
    "image/pjpeg": _type("jpg jpeg"),
    "image/gif": _type("gif"),
    "image/webp": _type("webp"),
    "image/avif": _type("avif"),
    "image/bmp": _type("bmp"),
    "image/x-ms-bmp": _type("bmp"),
    "image/x-icon": _ICON,
    "image/vnd.microsoft.icon": _ICON,
    "image/tiff": _type("tif tiff"),
    "image/jxl": _type("jxl"),
    "image/heic": _type("heic"),
    "image/x-xbitmap": _type("xbm"),
    "image/vnd.djvu": _type("djvu"),
    "audio/mpeg": _type("mp3"),
    "audio/ogg": _type("ogg oga opus"),
    "audio/wav": _type("wav"),
    "audio/wave": _type("wav"),
    "audio/aiff": _type("aiff aif"),
    "audio/basic": _type("au snd"),
    "audio/x-wav": _type("wav"),
    "audio/mp4": _type("m4a mp4"),
    "audio/x-m4a": _type("m4a"),
    "audio/flac": _type("flac"),
    "audio/midi": _type("mid midi"),
    "audio/x-pn-realaudio": _type("ra ram rm"),
    "video/mp4": _type("mp4 m4v"),
    "video/webm": _type("webm"),
    "video/ogg": _type("ogv ogg"),
    "video/mpeg": _type("mpg mpeg"),
    "video/quicktime": _type("mov"),
    "video/x-msvideo": _type("avi"),
    "video/avi": _type("avi"),
    "video/x-ms-asf": _type("wmv wma asf"),
    "video/x-flv": _type("flv"),
    "application/ogg": _type("ogg ogv oga"),
    "font/woff": _type("woff"),
    "font/woff2": _type("woff2"),
    "application/font-woff": _type("woff"),
    "application/font-woff2": _type("woff2"),
    "application/x-font-woff": _type("woff"),
    **dict.fromkeys(("font/ttf", "font/otf", "font/sfnt", "application/x-font-ttf", "application/x-font-otf"), _FONT),
    **dict.fromkeys(("application/font-sfnt", "application/vnd.ms-opentype"), _FONT),
    "application/vnd.ms-fontobject": _type("eot"),
    "application/zip": _ZIP,
    "application/java-archive": _type("jar"),
    "application/epub+zip": _type("epub"),
    "application/gzip": _GZIP,
    "application/x-gzip": _GZIP,
    "application/x-tar": _type("tar"),
    "application/x-bzip2": _type("bz2"),
    "application/x-xz": _type("xz"),
    "application/zstd": _type("zst"),
    "application/x-7z-compressed": _type("7z"),
    "application/x-rar": _type("rar"),
    "application/msword": _type("doc dot"),
    "application/vnd.ms-excel": _type("xls"),
    "application/vnd.ms-powerpoint": _type("ppt pps"),
    "application/x-ole-storage": _OLE,
    "application/cdfv2": _OLE,
    f"application/{_WORD}wordprocessingml.document": _type("docx"),
    f"application/{_WORD}spreadsheetml.sheet": _type("xlsx"),
    f"application/{_WORD}presentationml.presentation": _type("pptx"),
    f"application/{_OPEN}text": _type("odt"),
    f"application/{_OPEN}spreadsheet": _type("ods"),
    f"application/{_OPEN}presentation": _type("odp"),
    "application/x-shockwave-flash": _type("swf"),
    "application/java-vm": _type("class"),
    "application/x-java-applet": _type("class"),
    "application/x-dosexec": _PROGRAM,
    "application/vnd.microsoft.portable-executable": _PROGRAM,
    "application/x-debian-package": _type("deb"),
    "application/vnd.debian.binary-package": _type("deb"),
    "application/x-rpm": _type("rpm"),
    "application/x-iso9660-image": _type("iso"),
    "application/x-bittorrent": _type("torrent"),
    "application/pgp-signature": _type("asc sig"),
    "message/rfc822": _type("txt"),  # Chromium makes a page of an .eml, as of MHTML, with live links
}
#: Extensions of what a browser makes a page of, or gives to one: for documents of these types only.
ACTIVE = frozenset({"html", "htm", "xhtml", "xht", "svg", "css", "js", "mjs"})
#: All extensions that a file may get.
EXTENSIONS = frozenset({each for kind in _TYPES.values() for each in kind.accepted} | {"bin"})
_INERT = EXTENSIONS - ACTIVE
_BYTES = FileType("bin", _INERT)
_EMPTY = FileType("txt", EXTENSIONS)
_OTHER_TEXT = _type("txt")
#: Types that say nothing.
_VAGUE = frozenset({"text/plain", "application/octet-stream"})
_BY_NAME = {"css": _CSS, "js": _SCRIPT, "mjs": _SCRIPT}


def file_type(mime_type: str, name: str, declared: Callable[[], str] = str) -> FileType:
    """Return what the file of a document is; `name` is the last segment of its path.

    A sheet or a script is text of any kind by its content. What its server `declared`, or its name, tells it.
    """
    found = _TYPES.get(mime_type)
    if mime_type == "application/x-empty":
        return _EMPTY
    if mime_type in _VAGUE or (found is None and mime_type.startswith("text/")):
        said = _TYPES.get(declared())
        if said is _CSS or said is _SCRIPT:
            return said
        by_name = _BY_NAME.get(name.rpartition(".")[2].lower())
        if by_name is not None:
            return by_name
    if found is not None:
        return found
    is_text = mime_type.startswith("text/") or mime_type.endswith(("/xml", "+xml", "+json"))
    return _OTHER_TEXT if is_text else _BYTES
