"""The place of a URL in the archive: URL → domain, folder of its ARC, name of its data file. Pure.

The mapping is stable for ever: a change would orphan every ARC of every archive. It is injective with two exceptions,
which the web mostly treats as equal: an empty last segment is `index.html`, and http and https share a path. Where two
such URLs have different documents, one of them has the path, and each other one has a second name (`second_path`). The
table `VECTORS` of `tests/pure/test_layout.py` is both documentation and test.

The rules for names of additions, and of files that are attached to records, are here, too.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from dataclasses import replace
from typing import Final

from webarcfs.archive.model.errors import NameRefused, NameTooLong, NotPermitted
from webarcfs.archive.model.urls import Url, canonical, parse

# == arc paths, pure ==================================================================================================


#: Longest segment, in bytes of UTF-8. Below the 255 of Linux filesystems it leaves room for suffixes of programs.
LONGEST_SEGMENT = 200
#: Name of an ARC whose URL ends in `/`.
DIRECTORY_INDEX = "index.html"

DATA_XML: Final = "data.xml"
HEADERS: Final = "headers.http"

_ESCAPE = re.compile(rb"%([0-9A-F]{2})")
# Kept as escapes: `%` itself, `/`, and RFC 2396's reserved characters, whose plain form is another URL.
_KEPT = frozenset(b"%/?#;:@&=+$,")
_OWN_NAME = re.compile(r"data(\..*)?|headers\.http", re.DOTALL)
_LOOKS_CUT = re.compile(r"~[0-9a-f]{16}")
_EXTENSION = re.compile(r"[a-z0-9]{1,16}", re.ASCII)
_LENGTH_OF_CUT = 17  # "~" and 16 hex digits
# git refuses or reports trees with names that HFS+ or NTFS would take for `.git…` (git-fsck(1),
# core.protectHFS, core.protectNTFS): characters that HFS+ ignores inside `.git`, the 8.3 short names, and names
# after a backslash.
_HFS_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_NTFS_SHORT = re.compile(r"(?:git|gi[0-9a-f]{4}|ma[0-9a-f]{4})[a-z]*~[0-9]", re.ASCII)
# Characters that XML 1.0 forbids; `path` is an attribute of data.xml.
_NOT_XML = re.compile("[\ufffe\uffff]")


def arc_path(url: str) -> str:
    """Return `<domain>/<path>/<name>`: the folder of the ARC of `url`, legal UTF-8 for any file system of Linux.

    Raises UrlRefused as `url.parse` does.
    """
    parts = parse(url)
    segments = parts.path.split("/")[1:]
    folders = [_segment(segment) for segment in segments[:-1]]
    return "/".join([parts.domain, *folders, _last(segments[-1], parts)])


def spellings(url: str) -> tuple[str, ...]:
    """Return the canonical URLs of this scheme that have the ARC of `url`, its own first. Raises UrlRefused."""
    own = parse(canonical(url))
    folder, _, last = own.path.rpartition("/")
    if last not in ("", DIRECTORY_INDEX):
        return (str(own),)
    other = replace(own, path=f"{folder}/{'' if last else DIRECTORY_INDEX}")
    return str(own), str(other)


def second_path(url: str) -> str:
    """Return the second name of the ARC of `url`, below its domain. Raises UrlRefused."""
    return second_name(arc_path(url), str(parse(url)))


def second_name(arc: str, url: str) -> str:
    """Return the second name of an ARC whose first one is `arc`: `<arc>%<scheme>`, with `.index` where the canonical
    URL names the index.

    A document has it where another one, of a URL with the same first name, had that before. It is the first name of no
    URL, in which two hexadecimal digits follow each `%` or nothing does.
    """
    scheme, _, rest = url.partition("://")
    is_named = rest.partition("?")[0].endswith(f"/{DIRECTORY_INDEX}")
    return f"{arc}%{scheme}{'.index' * is_named}"


def places(url: str) -> tuple[str, str]:
    """Return the paths that the document of `url` may have inside its domain: its second name, which decides if it is
    there, and its first.

    Raises UrlRefused.
    """
    return split(second_path(url))[1], split(arc_path(url))[1]


def data_name(url: str) -> str:
    """Return the name of the data file in the ARC of `url`: `data.<ext>` (/Cr-11.1/).

    The extension is that of the URL's last segment in lower case; without one the name is `data`. For a URL that ends
    in `.xml` it is `data.orig.xml`, since `data.xml` is the ARC's own.
    """
    last = _unescape(parse(url).path.rpartition("/")[2]) or DIRECTORY_INDEX
    stem, dot, extension = last.rpartition(".")
    extension = extension.lower()
    if not dot or not stem or not _EXTENSION.fullmatch(extension):
        return "data"
    return "data.orig.xml" if extension == "xml" else f"data.{extension}"


def is_data_file(name: str) -> bool:
    """Return whether `name` is the data file of an ARC (and not its data.xml, its head or an addition)."""
    return name != DATA_XML and (name == "data" or name.startswith("data."))


def is_reserved(name: str) -> bool:
    """Return whether an ARC reserves `name`: no addition may take it."""
    return name in (HEADERS, "data") or name.startswith("data.")


def is_git_name(name: str) -> bool:
    """Return whether git, on some file system, would take `name` for a name of its own (`.git…`)."""
    return _hide_git(name) != name


def split(path: str) -> tuple[str, str]:
    """Split `<domain>/<rest>`; a leading slash is dropped."""
    domain, _, rest = path.lstrip("/").partition("/")
    return domain, rest


def _last(segment: str, parts: Url) -> str:
    name = _unescape(segment) if segment else DIRECTORY_INDEX
    if parts.query is not None:
        name += "?" + _query(parts.query)
    return _legal(name)


def _segment(segment: str) -> str:
    # `%` alone is unambiguous: two digits follow every other `%`. git allows no empty name.
    return _legal(_unescape(segment)) if segment else "%"


def _query(query: str) -> str:
    # In a query `/` is data and not a separator, so both of its forms occur: the plain one becomes `%2F`, the
    # escaped one `%2f`, so that they stay distinct.
    return "%2f".join(_unescape(part.replace("/", "%2F")) for part in query.split("%2F"))


def _unescape(text: str) -> str:
    """Decode each escape once, apart from the kept ones. Input: the canonical form of `url.parse`."""
    if "%" not in text:
        return text
    raw = _ESCAPE.sub(_decode_one, text.encode("ascii"))
    return _escape_unprintable(raw.decode("utf-8", "surrogateescape"))


def _decode_one(match: re.Match[bytes]) -> bytes:
    byte = int(match[1], 16)
    return match[0] if byte in _KEPT else bytes((byte,))


def _escape_unprintable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(_escape(c) if _must_escape(c) else c for c in text)


def _must_escape(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs") or _NOT_XML.match(char) is not None


def _escape(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape"))


def _legal(name: str) -> str:
    """Return `name` as a file name: reserved names are escaped, long ones are cut."""
    if name in (".", ".."):
        return name.replace(".", "%2E")
    if _OWN_NAME.fullmatch(name):
        name = _escape(name[0]) + name[1:]
    return _cut(_hide_git(name))


def _hide_git(name: str) -> str:
    """Escape the character by which a file system would read `name` as `.git…`."""
    plain = _HFS_IGNORED.sub("", name).lower()
    if _NTFS_SHORT.match(plain) or re.search(r"\\(?:git|gi[0-9a-f]{4})[a-z]*~[0-9]", plain):
        name = name.replace("~", "%7E")
    if plain.startswith(".git") or "\\.git" in plain:
        name = name.replace(".", "%2E")
    return name


def _cut(name: str) -> str:
    """Shorten a name over the limit, and one that looks shortened, so that two names never become equal."""
    raw = name.encode()
    if len(raw) <= LONGEST_SEGMENT and not (
        len(raw) > LONGEST_SEGMENT - 4 and _LOOKS_CUT.fullmatch(name[-_LENGTH_OF_CUT:])
    ):
        return name
    head = raw[: LONGEST_SEGMENT - _LENGTH_OF_CUT].decode("utf-8", "ignore")
    return f"{head}~{hashlib.sha256(raw).hexdigest()[:16]}"


# == name rules, pure =================================================================================================


#: Longest name, in bytes, of the file systems that archives use.
LONGEST_NAME = 255
#: Depth of folders inside an ARC: programs that walk them recursively (such as git) need as many levels.
DEEPEST = 64
# LibreOffice exports nothing where it cannot make its lock.
_LOCK = re.compile(r"\.~lock\..*#", re.DOTALL)
# Temporary files beside an edited one, which a program removes again, but no user of an archive can: swap files of vim,
# and the file by which it tests a folder; those of `sed -i` and `perl -i`; SQLite's journal; LibreOffice's locks, which
# name a user and a host; Emacs' locks and the copies that it saves by itself.
_LEFT_BEHIND = re.compile(
    rf"\..*\.sw[a-z]|4913|(?:sed|XX)[A-Za-z0-9]{{6}}|.*-journal|{_LOCK.pattern}|\.#.*|#.*#", re.DOTALL
)


def check_name(folder: str, name: str) -> None:
    """Raise for a name that no addition may have in `folder`, a path inside an ARC (empty for the ARC itself).

    NameRefused (EINVAL) for what is no name: a kernel asks for none of these, another caller may. NameTooLong
    (ENAMETOOLONG) for one that is too long or too deep, NotPermitted (EPERM) for a name with a meaning to the archive
    or to git.
    """
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise NameRefused(f"{name!r} is no name of a file: it is empty, . or .., or has a slash or a NUL")
    _check_length(name)
    if folder and folder.count("/") + 1 >= DEEPEST:
        raise NameTooLong(f"{name!r} would lie more than {DEEPEST} folders deep in its ARC")
    _check_git(name)
    if name == DATA_XML or (not folder and is_reserved(name)):
        raise NotPermitted(f"{name!r} is a name that ARCs keep for themselves")


def is_lock(path: str) -> bool:
    """Return whether a file is never kept: a lock, with which a program says that it is at work."""
    return _LOCK.fullmatch(path.rpartition("/")[2]) is not None


def check_file(name: str, *, is_provisional: bool = False) -> None:
    """Raise NotPermitted for a name that editors give only to temporary files.

    An addition stays for ever (/Ar-1.1/), so its user could never remove it. A folder may have such a name; so may a
    lock while it is provisional.
    """
    if _LEFT_BEHIND.fullmatch(name) and not (is_provisional and is_lock(name)):
        raise NotPermitted(
            f"{name!r} is what an editor leaves behind, and nothing is removed here; edit a copy elsewhere"
        )


def check_attachment(name: str) -> None:
    """Raise for a name that no file beside a record may have: NameTooLong, or NotPermitted.

    People see it in lists and save it on other systems. So it is plain text: no path, not hidden, nothing that cannot
    be seen, such as characters that turn the direction of writing.
    """
    _check_length(name)
    _check_git(name)
    if not name or "/" in name or name != name.strip():
        raise NotPermitted(f"{name!r} is no name of a file; it has neither a slash nor blanks around it")
    if name.startswith("."):
        raise NotPermitted(f"{name!r} begins with a dot, so that folders hide it; give it another name")
    wrong = next(
        (character for character in name if not character.isprintable() and unicodedata.category(character) != "Zs"),
        None,
    )
    if wrong is not None:
        raise NotPermitted(f"{name!r} has a character that cannot be seen, U+{ord(wrong):04X}; give it another name")


def _check_length(name: str) -> None:
    if len(os.fsencode(name)) > LONGEST_NAME:
        raise NameTooLong(f"a name of {len(os.fsencode(name))} bytes; at most {LONGEST_NAME} are possible")


def _check_git(name: str) -> None:
    if is_git_name(name):
        raise NotPermitted(f"git would take {name!r} for its own")
