"""How much memory libraries in C have of this process: what Python's garbage collector does not know of."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

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


def _in_use() -> int:
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _MallInfo
    found = libc.mallinfo2()
    return int(found.uordblks + found.hblkhd)
