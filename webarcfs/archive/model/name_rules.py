"""The rules for names of additions, and of files that are attached to records. Pure."""

from __future__ import annotations

import os
import re
import unicodedata

from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.errors import NameTooLong, NotPermitted

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


def check(folder: str, name: str) -> None:
    """Raise for a name that no addition may have in `folder`, a path inside an ARC (empty for the ARC itself).

    NameTooLong (ENAMETOOLONG) for one that is too long or too deep, NotPermitted (EPERM) for a name with a meaning to
    the archive or to git.
    """
    _check_length(name)
    if folder and folder.count("/") + 1 >= DEEPEST:
        raise NameTooLong(f"{name!r} would lie more than {DEEPEST} folders deep in its ARC")
    _check_git(name)
    if name == arc_paths.DATA_XML or (not folder and arc_paths.is_reserved(name)):
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
    wrong = next((each for each in name if not each.isprintable() and unicodedata.category(each) != "Zs"), None)
    if wrong is not None:
        raise NotPermitted(f"{name!r} has a character that cannot be seen, U+{ord(wrong):04X}; give it another name")


def _check_length(name: str) -> None:
    if len(os.fsencode(name)) > LONGEST_NAME:
        raise NameTooLong(f"a name of {len(os.fsencode(name))} bytes; at most {LONGEST_NAME} are possible")


def _check_git(name: str) -> None:
    if arc_paths.is_git_name(name):
        raise NotPermitted(f"git would take {name!r} for its own")
