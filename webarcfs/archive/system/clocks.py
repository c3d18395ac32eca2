"""Time for threads: deadlines of work, a steady clock for waits, and the speed of work.

The end of a thread's work is a time, or when nobody waits for the answer any more. A server makes a `Deadline` for each
request and answers `under` it. Loops whose length a request decides call `check` for each row; SQLite's progress
handlers ask `is_over`. In a thread without a deadline both do nothing.

The steady clock is seconds since 1970, read once at the process's start and then counted by CLOCK_BOOTTIME. Setting the
system's clock does not affect it; the time in suspend counts (clock_gettime(2)). A later process may read a stored time
with another offset, so callers must bound the wait.

The speed of work, and the time that is left for it, are both of the last half minute.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
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


def goes_on() -> bool:
    """Return True while the work of this thread may go on, and raise what `check` raises after that."""
    check()
    return True


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


# == speed, pure ======================================================================================================


#: What long work calls with (what, done, known). `known` is 0 where nobody knows; a count of bytes says "(bytes)".
Progress = Callable[[str, int, int], None]


def unseen(what: str, done: int, known: int) -> None:
    """Be the progress that nobody looks at."""


#: Seconds over which the speed is averaged: long enough to smooth one slow page, short enough to show a slower server.
WINDOW = 30.0
#: Seconds of work before a speed is known.
LEAST = 1.0
# Within so many seconds only the last call is stored: a crawl does thousands of things in a second.
_APART = 0.1


class Speed:
    """The speed of one kind of work. Call `note` whenever something was done, with a clock in seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, now: float, done: int) -> None:
        """Record the total `done` at the time `now`. A smaller total than before lowers all earlier totals as well."""
        if self._seen and done < self._seen[-1][1]:
            back = self._seen[-1][1] - done
            self._seen = deque((time, max(0, before - back)) for time, before in self._seen)
        if len(self._seen) > 2 and now - self._seen[-2][0] < _APART:
            self._seen.pop()
        self._seen.append((now, done))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()

    @property
    def a_second(self) -> float | None:
        """The work done per second; None before it is known."""
        if not self._seen:
            return None
        (begin, before), (end, done) = self._seen[0], self._seen[-1]
        return (done - before) / (end - begin) if end - begin >= LEAST else None

    def left(self, known: int) -> float | None:
        """Return the seconds until `known` is done at this speed; None before they are known."""
        speed = self.a_second
        return max(0, known - self._seen[-1][1]) / speed if speed else None
