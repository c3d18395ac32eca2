"""How much a mount keeps in memory: so many inodes as a sixteenth of the machine's memory holds.

An inode costs some 1,200 bytes here, with what the caches keep of it, and about as much in the kernel. An ARC is four
inodes, so 300,000 of them are 75,000 documents and 360 MB, which is what a machine of 6 GB is given. Asked once, at the
start.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from functools import cache
from pathlib import Path

#: Bytes that an inode takes in the mount's process, with all that is kept for it.
INODE = 1_200
#: The part of the memory that they may take.
PART = 16
#: Fewest and most inodes, whatever memory there is.
LEAST, MOST = 50_000, 1_000_000
#: Inodes of an ARC without additions: the folder and its three files.
OF_AN_ARC = 4

#: How many pools of memory the C library has, by default eight for each processor. Each keeps the most that was ever
#: needed from it, and a data.xml of some megabytes takes a hundred while it is parsed.
POOLS = 2

_CGROUP = Path("/sys/fs/cgroup")
_M_ARENA_MAX = -8  # malloc.h


@cache
def inodes() -> int:
    """How many inodes a mount on this machine may know at a time."""
    return inodes_in(memory())


def inodes_in(memory: int) -> int:
    """How many inodes a mount may know that can use `memory` bytes. Pure."""
    return max(LEAST, min(MOST, memory // PART // INODE))


def memory(cgroups: Path = _CGROUP, own: Path = Path("/proc/self/cgroup")) -> int:
    """Bytes that this process can use: those of the machine, or what its control groups (cgroups(7), v2) leave it, or
    its own limit (`ulimit -v`, getrlimit(2)).
    """
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        found.append(limit)
    with contextlib.suppress(OSError):
        names = own.read_text().splitlines()
        group = next((name.removeprefix("0::/") for name in names if name.startswith("0::/")), "")
        for folder in (cgroups / group, *(cgroups / group).parents):
            with contextlib.suppress(OSError, ValueError):  # "max" is no number, and means none
                found.append(int((folder / "memory.max").read_text()))
            if folder == cgroups:
                break
    return min(found)


def share_pools() -> None:
    """Have the C library use few pools of memory (mallopt(3)). Called before there are threads."""
    _libc().mallopt(_M_ARENA_MAX, POOLS)


class Memory:
    """What the process holds of the memory, and gives back when it grew. For one thread."""

    def __init__(self) -> None:
        self._held = 0

    def give_back(self) -> None:
        """Give the system what is free (malloc_trim(3)), if more is held than a quarter beyond the last time."""
        if _resident() > self._held * 5 // 4:
            _libc().malloc_trim(0)
            self._held = _resident()


def _resident() -> int:
    """Pages of memory that the process holds (proc(5))."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1])


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
