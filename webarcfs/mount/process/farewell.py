"""The last words of a mount's process, for the command that unmounts it.

The command is no parent of the process, and the process has no terminal. So the process has a file in memory, which the
command opens by way of /proc before it unmounts, and reads when the process has ended. It leaves nothing behind.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_NAME = "webarcfs-farewell"
#: The file begins so once the process has said all: one that is killed says nothing.
_SAID = b"\0"
#: Most lines; the log has all.
_MOST = 20


class Farewell:
    """The file of one mount's process."""

    def __init__(self) -> None:
        self._fd = os.memfd_create(_NAME)

    def write(self, lines: Sequence[str]) -> None:
        """Write what is to be said; for the process that ends."""
        shown = [*lines[:_MOST], *[f"and {len(lines) - _MOST} more, which the log names"] * (len(lines) > _MOST)]
        os.pwrite(self._fd, _SAID + "\n".join(shown).encode("utf-8", "surrogateescape"), 0)


def open_farewell(process: int) -> int | None:
    """Return a descriptor of the file of a process, by its id; None where this user may not read it."""
    folder = Path(f"/proc/{process}/fd")
    try:
        for link in folder.iterdir():
            if os.readlink(link).startswith(f"/memfd:{_NAME}"):  # noqa: PTH115 # the target is no path
                return os.open(link, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        pass
    return None


def read_farewell(fd: int) -> list[str]:
    """Return the lines of the file of a process that has ended."""
    said = os.pread(fd, os.fstat(fd).st_size, 0)
    if not said.startswith(_SAID):
        return ["the mount's process died; the next mount or agent commits what waits in the journal"]
    return said[len(_SAID) :].decode("utf-8", "surrogateescape").splitlines()
