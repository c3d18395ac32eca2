"""How the files and folders of an exported site are called: names that Linux, macOS and Windows accept. Pure.

A name is that of the ARC, with what a file system refuses replaced, and with the extension of the document's type, by
which browsers know it. Where two names of one folder would be one for a file system that ignores case or normalises
Unicode, all but one get a mark: a part of their SHA-256. A file always ends in a known extension, a folder never. So
two documents never share a file, and no file has the name of a folder.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webarcfs.exchange.static.file_types import EXTENSIONS, FileType

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
# An URL's `?` and `:` are frequent, and get a sign that tells them.
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
class Marks:
    """The names of a folder that need a mark: those that another one in it would equal, as a file or as a folder; and
    those of documents whose file might get another one's name, by its extension.
    """

    always: frozenset[str] = frozenset()
    as_files: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.always) + len(self.as_files)


def to_mark(names: Iterable[str]) -> Marks:
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
            kept = min(name, other, key=lambda each: (each != safe(each), each))
            marked.add(name if kept == other else other)
            first[key] = kept
    files: set[str] = set()
    for key in first:
        stem, dot, extension = key.rpartition(".")
        if dot and extension in EXTENSIONS and stem in first:
            files.add(first[stem])
    return Marks(frozenset(marked), frozenset(files))


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


def file_path(domain: str, segments: Sequence[str], kind: FileType, marks: Sequence[Marks] = ()) -> str:
    """Return the path of a document's file in the exported folder.

    `segments` are those of the path of its ARC, `marks` is `to_mark` of the folder of each.
    """
    host = host_name(domain)
    known = marks or [Marks()] * len(segments)
    names = []
    for at, (each, of) in enumerate(zip(segments, known, strict=True)):
        is_marked = each in of.always or (at == 0 and folded(safe(each)) == LONG)
        if at < len(segments) - 1:
            names.append(folder_name(each, is_marked=is_marked))
        else:
            names.append(file_name(each, kind, is_marked=is_marked or each in of.as_files))
    path = "/".join((host, *names))
    if _units(path) <= LONGEST_PATH:
        return path
    body, _, extension = file_name(segments[-1], kind).rpartition(".")
    whole = "/".join((domain, *segments))
    return f"{host}/{LONG}/{_with_mark(body, whole, 40, _LENGTH_OF_MARK + 4)}.{extension}"


def _needs_mark(plain: str, name: str) -> bool:
    """Return whether a name is too long, or looks as if it were marked."""
    is_long = len(name) * 4 > LONGEST_NAME and (
        _units(name) > LONGEST_NAME or len(name.encode("utf-8", "surrogatepass")) > LONGEST_BYTES
    )
    return is_long or ("~" in plain and _MARKED.search(folded(plain)) is not None)


def _with_mark(body: str, name: str, longest: int, length: int = _LENGTH_OF_MARK) -> str:
    """Return a name with its mark, shortened to so many UTF-16 units."""
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:length]
    room = longest - length - 1
    while _units(body) > room or len(body.encode("utf-8", "surrogatepass")) > LONGEST_BYTES - length - 20:
        body = body[:-1]
    return f"{body}~{mark}"


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
