"""A steady clock for waits: seconds since 1970, read once at the process's start and then counted by CLOCK_BOOTTIME.

Setting the system's clock does not affect it; the time in suspend counts (clock_gettime(2)). A later process may read a
stored time with another offset, so callers must bound the wait.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path


def since_boot() -> float:
    """Return the seconds since boot; the same for all processes of the machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


#: Seconds since 1970 minus seconds since boot, at the start of this process.
OFFSET = time.time() - since_boot()


def steady() -> float:
    """Return the time in seconds since 1970, by a clock that never jumps."""
    return OFFSET + since_boot()


@cache
def boot() -> str:
    """Return the boot id (random(4)): values of `since_boot` are comparable only within one boot."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return "unknown"
