"""What all jobs of an archive know of a server, in its lock file: when it was last asked, and the pause it asked for.

The file (`Archive.server_lock`) is held by whoever asks the server. It tells until when the server is to be left alone
and how often in a row it asked for that; then when it was last asked and, once more, until when it is to be left alone,
both as seconds since the machine began, and which run of the machine that was. So no setting of the clock makes a wait
longer or shorter. Only after a restart of the machine the clock counts, and a pause that cannot have been is none.
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
    """A lock file's content. `until` is by the clock, `asked` and `free` since the machine's beginning `boot`."""

    until: float = 0.0
    in_a_row: int = 0
    asked: float = 0.0
    free: float = 0.0
    boot: str = ""


def seconds_to_wait(lock: int, wait: float) -> float:
    """Seconds until the server of a held lock file may be asked; `wait` is the pause between two requests."""
    info = os.fstat(lock)
    if not info.st_size:
        return 0.0  # it never was asked
    state = _read(lock)
    if state.boot == boot():
        return max(state.asked + wait, state.free) - since_boot()
    now = time.time()
    return max(_believable(info.st_mtime + wait - now, wait), _believable(state.until - now, LONGEST_PAUSE))


def asked_in_a_row(lock: int) -> int:
    """How often in a row the server has asked for a pause."""
    return _read(lock).in_a_row


def note(lock: int, pause: float = 0.0, in_a_row: int = 0) -> None:
    """Write down that the server was asked just now, and for how many seconds it asked to be left alone, if it did."""
    now = since_boot()
    text = f"{time.time() + pause!r} {in_a_row} {now!r} {now + pause!r} {boot()}"
    os.pwrite(lock, text.ljust(_LENGTH - 1).encode("ascii") + b"\n", 0)
    os.utime(lock)


def _believable(seconds: float, most: float) -> float:
    """A wait by the clock; one that is longer than it can have been means that the clock was set back."""
    return seconds if seconds <= most + 1.0 else 0.0


def _read(lock: int) -> _State:
    words = os.pread(lock, _LENGTH, 0).decode("ascii", "replace").split()
    try:
        if len(words) == 5:
            return _State(float(words[0]), int(words[1]), float(words[2]), float(words[3]), words[4])
        return _State(float(words[0]), int(words[1])) if len(words) == 2 else _State()
    except ValueError:
        return _State()
