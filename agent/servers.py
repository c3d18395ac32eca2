"""What all jobs of an archive know of a server, in its lock file: when it was last asked, and the pause it asked for.

The file (`Archive.server_lock`) is held by whoever asks the server. Its time is when it was last asked; it holds until
when the server is to be left alone (seconds since 1970), and how often in a row it asked for that.
"""

from __future__ import annotations

import os

from agent.manners import LONGEST_PAUSE

_LENGTH = 32


def free_at(lock: int, wait: float, now: float) -> float:
    """When the server of a held lock file may be asked next; `wait` is the pause between two requests.

    A clock that was set back does not make it later than one pause from now.
    """
    info = os.fstat(lock)
    if not info.st_size:
        return 0.0  # it never was asked
    until, _ = _read(lock)
    return max(min(info.st_mtime, now) + wait, min(until, now + LONGEST_PAUSE))


def asked_in_a_row(lock: int) -> int:
    """How often in a row the server has asked for a pause."""
    return _read(lock)[1]


def note(lock: int, until: float = 0.0, in_a_row: int = 0) -> None:
    """Write down that the server was asked just now, and the pause that it asked for, if it did."""
    os.pwrite(lock, f"{until:.3f} {in_a_row}".ljust(_LENGTH - 1).encode("ascii") + b"\n", 0)
    os.utime(lock)


def _read(lock: int) -> tuple[float, int]:
    words = os.pread(lock, _LENGTH, 0).split()
    try:
        return (float(words[0]), int(words[1])) if len(words) == 2 else (0.0, 0)
    except ValueError:
        return 0.0, 0
