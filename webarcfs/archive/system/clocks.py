"""The end of a thread's work: at a time, or as soon as nobody waits for the answer.

A server makes a `Deadline` for each request and answers `under` it. Loops whose length a request decides call `check`
for each row; SQLite's progress handlers ask `is_over`. In a thread without a deadline both do nothing.

A steady clock for waits: seconds since 1970, read once at the process's start and then counted by CLOCK_BOOTTIME.

Setting the system's clock does not affect it; the time in suspend counts (clock_gettime(2)). A later process may read a
stored time with another offset, so callers must bound the wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from webarcfs.archive.model.errors import Interrupted, TookTooLong

# == deadline =========================================================================================================


class Deadline:
    """The end of the work for one answer. `cancel` may be called by any thread."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._is_cancelled = False

    @property
    def is_over(self) -> bool:
        """Whether the work is to end."""
        return self._is_cancelled or time.monotonic() > self._end

    def cancel(self) -> None:
        """End the work now: nobody waits for it."""
        self._is_cancelled = True

    def check(self) -> None:
        """Raise TookTooLong if the time is over, Interrupted if nobody waits."""
        if self._is_cancelled:
            raise Interrupted("nobody waits for the answer any more")
        if time.monotonic() > self._end:
            raise TookTooLong(f"not answered within {self.seconds:g} s; ask for less")


class _OfThread(threading.local):
    deadline: Deadline | None = None


_OF_THREAD = _OfThread()


@contextmanager
def under(deadline: Deadline | None) -> Iterator[None]:
    """Bound what this thread does inside by a deadline; None: by none."""
    before = _OF_THREAD.deadline
    _OF_THREAD.deadline = deadline
    try:
        yield
    finally:
        _OF_THREAD.deadline = before


def is_over() -> bool:
    """Whether the work of this thread is to end."""
    deadline = _OF_THREAD.deadline
    return deadline is not None and deadline.is_over


def check() -> None:
    """Raise TookTooLong or Interrupted if the work of this thread is to end."""
    deadline = _OF_THREAD.deadline
    if deadline is not None:
        deadline.check()


# == steadyclock ======================================================================================================


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
