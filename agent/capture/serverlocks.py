"""A server's lock file: the time of the last request by any job of the archive, and the pause the server asked for.

A job holds the file (`Archive.server_lock`) while it fetches from the server. The file contains five words:
the end of the pause (seconds since 1970), the number of requests for a pause in a row, the time of the last request and
again the end of the pause (both in seconds since boot), and the boot id. So setting the clock does not change a wait.
Only after a reboot the clock counts; then a wait longer than possible is ignored.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from agent.policy.politeness import LONGEST_PAUSE
from agent.system.steadyclock import boot, since_boot

_LENGTH = 128


@dataclass(frozen=True, slots=True)
class _State:
    """A lock file's content. `until` is in seconds since 1970, `asked` and `free` in seconds since the boot `boot`."""

    until: float = 0.0
    in_a_row: int = 0
    asked: float = 0.0
    free: float = 0.0
    boot: str = ""


def seconds_to_wait(lock: int, wait: float) -> float:
    """Return the seconds until the next request may be sent; `lock` is held, `wait` is the pause between requests."""
    info = os.fstat(lock)
    if not info.st_size:
        return 0.0  # no request was ever sent to it
    state = _read(lock)
    if state.boot == boot():
        return max(state.asked + wait, state.free) - since_boot()
    now = time.time()
    return max(_believable(info.st_mtime + wait - now, wait), _believable(state.until - now, LONGEST_PAUSE))


def asked_in_a_row(lock: int) -> int:
    """Return how often in a row the server has asked for a pause."""
    return _read(lock).in_a_row


def note(lock: int, pause: float = 0.0, in_a_row: int = 0) -> None:
    """Record that a request was sent now, and the `pause` that the server asked for, in seconds (0: none)."""
    now = since_boot()
    text = f"{time.time() + pause!r} {in_a_row} {now!r} {now + pause!r} {boot()}"
    os.pwrite(lock, text.ljust(_LENGTH - 1).encode("ascii") + b"\n", 0)
    os.utime(lock)


def _believable(seconds: float, most: float) -> float:
    """Return a wait by the clock; 0 if it is longer than `most`, since the clock was then set back."""
    return seconds if seconds <= most + 1.0 else 0.0


def _read(lock: int) -> _State:
    words = os.pread(lock, _LENGTH, 0).decode("ascii", "replace").split()
    try:
        if len(words) == 5:
            return _State(float(words[0]), int(words[1]), float(words[2]), float(words[3]), words[4])
        return _State(float(words[0]), int(words[1])) if len(words) == 2 else _State()
    except ValueError:
        return _State()
