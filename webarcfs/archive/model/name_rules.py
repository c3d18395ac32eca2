"""Which names additions may have: a table of reasons why not. Pure."""

from __future__ import annotations

import os
import re

from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.errors import NameTooLong, NotPermitted

#: Longest name, in bytes, as on the file systems that archives lie on.
LONGEST_NAME = 255
#: How deep folders may lie inside an ARC: who walks them (git does) goes as deep.
DEEPEST = 64
# Files that programs make beside the one that they edit, and remove again, which no user of an archive can: swap files
# of vim, and the file by which it tries a folder; what `sed -i` and `perl -i` write; SQLite's journal.
_LEFT_BEHIND = re.compile(r"\..*\.sw[a-z]|4913|(?:sed|XX)[A-Za-z0-9]{6}|.*-journal", re.DOTALL)


def check(folder: str, name: str) -> None:
    """Raise for a name that no addition may have in `folder`, a path inside an ARC (empty for the ARC itself).

    NameTooLong (ENAMETOOLONG) for one that is too long or too deep, NotPermitted (EPERM) for one that means something
    to the archive or to git.
    """
    if len(os.fsencode(name)) > LONGEST_NAME:
        raise NameTooLong(f"a name of {len(os.fsencode(name))} bytes; at most {LONGEST_NAME} are possible")
    if folder and folder.count("/") + 1 >= DEEPEST:
        raise NameTooLong(f"{name!r} would lie more than {DEEPEST} folders deep in its ARC")
    if arc_paths.is_git_name(name):
        raise NotPermitted(f"git would take {name!r} for its own")
    if name == arc_paths.DATA_XML or (not folder and arc_paths.is_reserved(name)):
        raise NotPermitted(f"{name!r} is a name that ARCs keep for themselves")


def check_file(name: str) -> None:
    """Raise NotPermitted for a file's name that only an editor gives, to a file that it removes again.

    An addition stays for ever (/Ar-1.1/), so its user would never get rid of it. A folder may have such a name.
    """
    if _LEFT_BEHIND.fullmatch(name):
        raise NotPermitted(
            f"{name!r} is what an editor leaves behind, and nothing is removed here; edit a copy elsewhere"
        )
