"""How much a mount keeps in memory: as many inodes as fit into a sixteenth of the machine's memory.

An inode takes some 1,200 bytes here, including the caches, and about as much in the kernel. An ARC is four inodes, so
300,000 of them are 75,000 documents and 360 MB, the limit on a machine of 6 GB. Computed once, at the start.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from functools import cache
from pathlib import Path

#: Bytes that an inode takes in the mount's process, including the caches.
INODE = 1_200
#: Inodes take at most one part in so many of the memory.
PART = 16
#: Fewest and most inodes, whatever the memory.
LEAST, MOST = 50_000, 1_000_000
#: Inodes of an ARC without additions: the folder and its three files.
OF_AN_ARC = 4

#: Number of the C library's memory pools (arenas), by default eight for each processor. Each keeps its largest size
#: ever, and a data.xml of some megabytes takes a hundred while it is parsed.
POOLS = 2

_CGROUP = Path("/sys/fs/cgroup")
_M_ARENA_MAX = -8  # malloc.h


@cache
def inodes() -> int:
    """Return the number of inodes that a mount on this machine may know at a time."""
    return inodes_in(memory())


def inodes_in(memory: int) -> int:
    """Return the number of inodes for a mount that can use `memory` bytes. Pure."""
    return max(LEAST, min(MOST, memory // PART // INODE))


def memory(cgroups: Path = _CGROUP, own: Path = Path("/proc/self/cgroup")) -> int:
    """Return the bytes that this process can use: the least of the machine's memory, the limits of its control groups
    (cgroups(7), v2), and its own limit (`ulimit -v`, getrlimit(2)).
    """
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        found.append(limit)
    with contextlib.suppress(OSError):
        names = own.read_text().splitlines()
        group = next((name.removeprefix("0::/") for name in names if name.startswith("0::/")), "")
        for folder in (cgroups / group, *(cgroups / group).parents):
            with contextlib.suppress(OSError, ValueError):  # "max" is no number, and means no limit
                found.append(int((folder / "memory.max").read_text()))
            if folder == cgroups:
                break
    return min(found)


def share_pools() -> None:
    """Make the C library use few memory pools (mallopt(3)). Called before any thread starts."""
    _libc().mallopt(_M_ARENA_MAX, POOLS)


class Memory:
    """The memory of the process; returns free memory to the system after growth. For one thread."""

    def __init__(self) -> None:
        self._held = 0

    def give_back(self) -> None:
        """Return free memory to the system (malloc_trim(3)), if usage grew by over a quarter since the last call."""
        if _resident() > self._held * 5 // 4:
            _libc().malloc_trim(0)
            self._held = _resident()


def _resident() -> int:
    """Return the pages of memory that the process holds (proc(5))."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1])


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
