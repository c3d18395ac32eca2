"""A steady clock for waits: seconds since 1970, read once when the process begins and then counted by CLOCK_BOOTTIME.

Setting the system's clock changes nothing, and the time that a machine sleeps counts (clock_gettime(2)). A time that is
stored may be read by a later process with another offset; callers bound the wait.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path


def since_boot() -> float:
    """Seconds since the machine began; the same for all its processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


#: Added to seconds since the machine began, it gives seconds since 1970.
OFFSET = time.time() - since_boot()


def steady() -> float:
    """The time in seconds since 1970; never goes back, never leaps."""
    return OFFSET + since_boot()


@cache
def boot() -> str:
    """Which run of the machine this is: `since_boot` of another one says nothing (random(4))."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return "unknown"
