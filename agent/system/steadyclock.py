"""The time that waits are measured by: seconds since 1970 as the machine's clock had them when this process began, and
from then on evenly, however that clock is set (clock_gettime(2), CLOCK_BOOTTIME, which counts while a machine sleeps).

What is kept over a restart is compared with another process's reading, so whoever keeps it bounds the wait.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path


def since_boot() -> float:
    """Seconds since the machine began; the same for all its processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


#: What makes of that seconds since 1970, in this process.
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
