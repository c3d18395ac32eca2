"""How much memory this process has: its peak, and what libraries in C keep, unknown to the garbage collector."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

_FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


def kept(work: Callable[[], object], times: int) -> float:
    """Bytes of malloc that each call of `work` leaves behind (mallinfo(3))."""
    for _ in range(times // 10):
        work()  # what is made once, and remembered
    gc.collect()
    before = _in_use()
    for _ in range(times):
        work()
    gc.collect()
    return (_in_use() - before) / times


def peak() -> int:
    """The most memory that this program has had, in kB. Not ru_maxrss: that begins with the peak of the parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _in_use() -> int:
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _MallInfo
    found = libc.mallinfo2()
    return int(found.uordblks + found.hblkhd)
