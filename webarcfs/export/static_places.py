"""The files of an exported site: where the document of a URL lies, how its file is called, how a browser reads it.

A browser knows a file by its extension, since a file has no head. So what a document may do depends on it: what is no
page for the archive must not become one for the browser, and what only looks active (XML with scripts in it) is text.

Names are such that Linux, macOS and Windows accept them. A name is that of the ARC, with what a file system refuses
replaced, and with the extension of the document's type, by which browsers know it. Where two names of one folder would
be one for a file system that ignores case or normalises Unicode, all but one get a mark: a part of their SHA-256. A
file always ends in a known extension, a folder never. So two documents never share a file, and no file has the name of
a folder.

A URL lies where its document's file is, behind redirects where there are any. The trees of the snapshots are read when
a URL is asked for, as git's bytes: links lead to the same folders over and over, and pygit2's own look-up would make an
object each time. What was found is kept, within bounds: an archive may have more documents than memory has room.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Repository, TreeEntry
from webarcfs.archive.git.writing import FOLDERS, read_lines
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.errors import InvalidDocument
from webarcfs.archive.model.metadata import MetaData
from webarcfs.archive.model.url_lists import LONGEST_CHAIN, Redirect, place_of
from webarcfs.archive.system.cache import Cache
from webarcfs.content.mimetype import declared_type
from webarcfs.content.text import SCRIPT_TYPES
from webarcfs.export.selection import FolderLines
from webarcfs.warc.http_response import parse_head

# == file types, pure =================================================================================================


class SiteReading(StrEnum):
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
    reading: SiteReading = SiteReading.NONE


def _type(extensions: str, reading: SiteReading = SiteReading.NONE) -> FileType:
    names = extensions.split()
    return FileType(names[0], frozenset(names), reading)


_CSS = _type("css", SiteReading.CSS)
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
    "text/html": _type("html htm", SiteReading.HTML),
    "application/xhtml+xml": _type("xhtml xht", SiteReading.XHTML),
    "image/svg+xml": _type("svg", SiteReading.DRAWING),
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
EXTENSIONS = frozenset({extension for kind in _TYPES.values() for extension in kind.accepted} | {"bin"})
_INERT = EXTENSIONS - ACTIVE
_BYTES = FileType("bin", _INERT)
_EMPTY = FileType("txt", EXTENSIONS)
_OTHER_TEXT = _type("txt")
#: Types that say nothing.
_VAGUE = frozenset({"text/plain", "application/octet-stream"})
_BY_NAME = {"css": _CSS, "js": _SCRIPT, "mjs": _SCRIPT}


def file_type(mime_type: str, name: str, declared: Callable[[], str] = str) -> FileType:
    """Return what the file of a document is; `name` is the last segment of its path.

    A sheet or a script is text of any kind by its content. What its server `declared`, or its name, decides.
    """
    by_type = _TYPES.get(mime_type)
    if mime_type == "application/x-empty":
        return _EMPTY
    if mime_type in _VAGUE or (by_type is None and mime_type.startswith("text/")):
        by_declaration = _TYPES.get(declared())
        if by_declaration is _CSS or by_declaration is _SCRIPT:
            return by_declaration
        by_name = _BY_NAME.get(name.rpartition(".")[2].lower())
        if by_name is not None:
            return by_name
    if by_type is not None:
        return by_type
    is_text = mime_type.startswith("text/") or mime_type.endswith(("/xml", "+xml", "+json"))
    return _OTHER_TEXT if is_text else _BYTES


# == names, pure ======================================================================================================


#: Longest name, in UTF-16 units (Windows counts these), and in bytes of UTF-8 (Linux counts those, up to 255).
LONGEST_NAME = 80
LONGEST_BYTES = 200
#: Longest path in the folder, in UTF-16 units. Windows ends at 260, and the folder lies somewhere.
LONGEST_PATH = 180
LONGEST_HOST = 50
#: The folder of a host for documents whose path would be longer.
LONG = "_long"
#: The folder of what is not archived.
OWN = "_webarcfs"
#: What the top of the folder has beside the hosts.
_OWN_NAMES = frozenset({OWN, "index.html", "static.json"})

_LENGTH_OF_MARK = 12
_MARKED = re.compile(r"~[0-9a-f]{12,16}(?:\.[^.]*)?\Z")
# An URL's `?` and `:` are frequent, and get a sign that shows them.
_REPLACED = {"?": "@", ":": "+", **dict.fromkeys('<>"/\\|*', "_")}
_PLAIN = re.compile(r"[A-Za-z0-9_\-+@,;=!()&$'%]+(?:\.[A-Za-z0-9_\-+@,;=!()&$'%]+)*")
# Names of devices, whatever their extension (Microsoft: "Naming Files, Paths, and Namespaces").
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$) *(?:\.|\Z)", re.IGNORECASE)
# NTFS gives such a name to a file with a longer one, of its own accord.
_SHORT = re.compile(r"([^.~]{1,7})~([0-9]{1,6}(?:\..{0,3})?)\Z")
# Characters that file systems leave out when they compare (DerivedCoreProperties: Default_Ignorable_Code_Point).
_IGNORED = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
#: Categories of characters that are replaced; the space is not.
_UNWANTED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


def safe(name: str) -> str:
    """Return a name with what some file system refuses replaced, in NFC; several names may become the same."""
    if not _PLAIN.fullmatch(name):
        name = unicodedata.normalize("NFC", name)
        name = "".join(map(_replaced, name))
        if name[:1] in (" ", "."):
            name = f"_{name[1:]}"
        if name[-1:] in (" ", "."):
            name = f"{name[:-1]}_"
        name = _SHORT.sub(r"\1_\2", name)
    return f"_{name}" if not name or _DEVICE.match(name) else name


def _replaced(char: str) -> str:
    if char in _REPLACED:
        return _REPLACED[char]
    return "_" if char != " " and unicodedata.category(char) in _UNWANTED else char


def folded(name: str) -> str:
    """Return a value that is equal for all names that some file system takes for the same."""
    if name.isascii():
        return name.lower()
    name = unicodedata.normalize("NFKC", _IGNORED.sub("", name)).upper()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


@dataclass(frozen=True, slots=True)
class NameMarks:
    """The names of a folder that need a mark: those that another one in it would equal, as a file or as a folder; and
    those of documents whose file might get another one's name, by its extension.
    """

    always: frozenset[str] = frozenset()
    as_files: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.always) + len(self.as_files)


def to_mark(names: Iterable[str]) -> NameMarks:
    """Return the names of a folder that need a mark.

    A document might get any extension: that depends on what it is, which this need not know.
    """
    first: dict[str, str] = {}
    marked: set[str] = set()
    for name in names:
        key = folded(safe(name))
        other = first.setdefault(key, name)
        if other != name:
            # One that was plain before stays so.
            kept = min(name, other, key=lambda candidate: (candidate != safe(candidate), candidate))
            marked.add(name if kept == other else other)
            first[key] = kept
    files: set[str] = set()
    for key in first:
        stem, dot, extension = key.rpartition(".")
        if dot and extension in EXTENSIONS and stem in first:
            files.add(first[stem])
    return NameMarks(frozenset(marked), frozenset(files))


def file_name(name: str, kind: FileType, *, is_marked: bool = False) -> str:
    """Return the name of a document's file."""
    plain = safe(name)
    body, dot, extension = plain.rpartition(".")
    if not dot or not body or extension.lower() not in kind.accepted:
        body, extension = plain, kind.extension
    if is_marked or _needs_mark(plain, f"{body}.{extension}"):
        body = _with_mark(body, name, LONGEST_NAME - len(extension) - 1)
    return f"{body}.{extension}"


def folder_name(name: str, *, is_marked: bool = False) -> str:
    """Return the name of the folder for what lies below an ARC's or a folder's path."""
    plain = safe(name)
    _, dot, extension = folded(plain).rpartition(".")
    if is_marked or (dot and extension in EXTENSIONS) or _needs_mark(plain, plain):
        return _with_mark(plain, name, LONGEST_NAME)
    return plain


def host_name(domain: str) -> str:
    """Return the name of a domain's folder."""
    plain = safe(domain)
    is_other = plain != domain.replace(":", "+") or plain in _OWN_NAMES
    if is_other or len(plain) > LONGEST_HOST:
        return _with_mark(plain, domain, LONGEST_HOST)
    return plain


def file_path(domain: str, segments: Sequence[str], kind: FileType, marks: Sequence[NameMarks] = ()) -> str:
    """Return the path of a document's file in the exported folder.

    `segments` are those of the path of its ARC, `marks` is `to_mark` of the folder of each.
    """
    host = host_name(domain)
    known = marks or [NameMarks()] * len(segments)
    names = []
    for at, (segment, of) in enumerate(zip(segments, known, strict=True)):
        is_marked = segment in of.always or (at == 0 and folded(safe(segment)) == LONG)
        if at < len(segments) - 1:
            names.append(folder_name(segment, is_marked=is_marked))
        else:
            names.append(file_name(segment, kind, is_marked=is_marked or segment in of.as_files))
    path = "/".join((host, *names))
    if _units(path) <= LONGEST_PATH:
        return path
    body, _, extension = file_name(segments[-1], kind).rpartition(".")
    whole = "/".join((domain, *segments))
    return f"{host}/{LONG}/{_with_mark(body, whole, 40, _LENGTH_OF_MARK + 4)}.{extension}"


def is_like_marked(name: str) -> bool:
    """Return whether a name looks as if it had a mark, whoever gave it."""
    return "~" in name and _MARKED.search(folded(name)) is not None


def _needs_mark(plain: str, name: str) -> bool:
    """Return whether a name is too long, or looks as if it were marked."""
    is_long = len(name) * 4 > LONGEST_NAME and (
        _units(name) > LONGEST_NAME or len(name.encode("utf-8", "surrogatepass")) > LONGEST_BYTES
    )
    return is_long or is_like_marked(plain)


def _with_mark(body: str, name: str, longest: int, length: int = _LENGTH_OF_MARK) -> str:
    """Return a name with its mark, shortened to so many UTF-16 units."""
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:length]
    room = longest - length - 1
    while _units(body) > room or len(body.encode("utf-8", "surrogatepass")) > LONGEST_BYTES - length - 20:
        body = body[:-1]
    return f"{body}~{mark}"


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


# == folders ==========================================================================================================


#: Bytes of folders that are kept.
_KEPT = 64 << 20


class SiteFolder(FolderLines):
    """A folder: its lines, and the marks of the folders in it."""

    __slots__ = ("marks",)

    def __init__(self, raw: bytes, name: str) -> None:
        """Read git's bytes of a folder. Raises Damaged, with `name`, for others."""
        super().__init__(raw, name)
        # Files of ARCs and additions have no part in it.
        self.marks = to_mark(os.fsdecode(entry) for mode, entry, _ in read_lines(raw, name) if mode in FOLDERS)

    @property
    def weight(self) -> int:
        """Bytes of memory, for a cache's bound."""
        return super().weight + 200 * len(self.marks)


class Folders:
    """Folders that were read, up to a bound, and the latest one however large it is."""

    def __init__(self) -> None:
        self._kept: Cache[str, SiteFolder] = Cache(_KEPT, lambda folder: folder.weight)
        self._latest: tuple[str, SiteFolder] | None = None

    def read(self, store: Repository, tree: str) -> SiteFolder:
        """Return a folder by its id. Raises Damaged."""
        if self._latest is not None and self._latest[0] == tree:
            return self._latest[1]
        folder = self._kept.get(tree, lambda: SiteFolder(store.read_tree(tree), f"{store.path}: {tree}"))
        self._latest = tree, folder
        return folder


# == places ===========================================================================================================


#: Repositories that are open at a time; URLs whose places are kept.
_PLACES_OPEN = 64
_PLACES_KEPT = 1 << 16


@dataclass(frozen=True, slots=True)
class SiteTarget:
    """Where a URL leads: a file in the folder, and a fragment that a redirect brought along (with `#`, or empty)."""

    path: str
    fragment: str = ""


class Places:
    """The places of all URLs of a selection: domain → tree."""

    def __init__(self, trees: Mapping[str, str], open_: Callable[[str], Repository]) -> None:
        self._trees = trees
        self._open = lru_cache(maxsize=_PLACES_OPEN)(open_)
        self._folders = Folders()
        #: The place of a canonical URL; None for one that leads to nothing in the folder.
        self.of = lru_cache(maxsize=_PLACES_KEPT)(self._of)

    def path_of(self, domain: str, arc: str, kind: FileType) -> str:
        """Return the path of a document's file, by that of its ARC in the domain, which must be there."""
        segments = arc.split("/")
        return file_path(domain, segments, kind, self._walk(self._open(domain), self._trees[domain], segments)[1])

    def _walk(self, store: Repository, tree: str, segments: Sequence[str]) -> tuple[str | None, list[NameMarks]]:
        """Return the folder at the end of a path, and the marks of those on the way to it; None if there is none."""
        marks = []
        for segment in segments:
            folder = self._folders.read(store, tree)
            marks.append(folder.marks)
            folder_id = folder.folder(segment)
            if folder_id is None:
                return None, marks
            tree = folder_id
        return tree, marks

    def _of(self, url: str) -> SiteTarget | None:
        fragment = ""
        seen = set()
        for _ in range(LONGEST_CHAIN + 1):
            domain, arc = arc_paths.split(arc_paths.arc_path(url))
            if url in seen or domain not in self._trees:
                return None
            seen.add(url)
            store = self._open(domain)
            redirect = self._redirect(store, self._trees[domain], url)
            if redirect is None or redirect.is_to_itself:
                path = self._document(store, domain, arc_paths.second_name(arc, url)) or self._document(
                    store, domain, arc
                )
                if path is None and not url.endswith("/") and "?" not in url:
                    # As servers do: the folder of that name.
                    path = self._document(store, domain, arc_paths.split(arc_paths.arc_path(f"{url}/"))[1])
                return None if path is None else SiteTarget(path, fragment)
            url, sign, rest = redirect.target.partition("#")
            fragment = sign + rest or fragment
        return None

    def _redirect(self, store: Repository, tree: str, url: str) -> Redirect | None:
        place = place_of(url)
        *folders, name = place.split("/")
        folder_id, _ = self._walk(store, tree, folders)
        blob = None if folder_id is None else self._folders.read(store, folder_id).file(name)
        if blob is None:
            return None
        return next(
            (
                redirect
                for redirect in redirect_lists.lines(store, TreeEntry(name, blob, False), place)
                if redirect.url == url
            ),
            None,
        )

    def _document(self, store: Repository, domain: str, arc: str) -> str | None:
        """Return the path of the file of a document; None if there is none, or an error."""
        segments = arc.split("/")
        folder_id, marks = self._walk(store, self._trees[domain], segments)
        own = (
            {}
            if folder_id is None
            else {entry.name: entry.oid for entry in store.entries(folder_id) if not entry.is_tree}
        )
        document = own.get(arc_paths.DATA_XML)
        if document is None:
            return None
        try:
            meta = data_xml.metadata(store.read(document))
        except InvalidDocument:
            return None
        if meta.is_error_page:
            return None
        return file_path(domain, segments, kind_of(store, meta, arc, own.get(arc_paths.HEADERS, "")), marks)


def kind_of(store: Repository, meta: MetaData, arc: str, head: str) -> FileType:
    """Return what the file of a document is; `head` is the blob of its headers.http, empty without one."""
    name = arc.rpartition("/")[2].partition("?")[0]
    return file_type(meta.mime_type, name, lambda: declared_type(content_type_of(store, head)))


def content_type_of(store: Repository, head: str) -> str:
    """Return the Content-Type of an archived head, as sent; empty without one."""
    http_head = parse_head(store.read(head)) if head else None
    return "" if http_head is None else http_head.content_type
