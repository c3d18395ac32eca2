"""Programs with a namespace of mounts of their own, in which they may bind what they like. For root."""

from __future__ import annotations

from pathlib import Path

#: A new namespace has a copy of each mount. A copy would keep the mounts of other tests alive after their end.
_LET_GO = "umount -i -l -a -t fuse.webarcfs"


def apart(script: str, *words: str | Path) -> list[str]:
    """The command that runs a script of sh so; $1 is the first word."""
    return ["unshare", "--mount", "sh", "-c", f"{_LET_GO}; {script}", "sh", *map(str, words)]
