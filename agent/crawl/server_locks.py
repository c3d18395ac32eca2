"""How jobs share servers and the archive's slots: by lock files, which wgets and the browser's process take alike.

A server's lock file has the time of the last request by any job of the archive, and the pause the server asked for. A
job holds the file (`Archive.server_lock`) while it fetches from the server. The file contains five words: the end of
the pause (seconds since 1970), the number of requests for a pause in a row, the time of the last request and again the
end of the pause (both in seconds since boot), and the boot id. So setting the clock does not change a wait. Only after
a reboot the clock counts; then a wait longer than possible is ignored.

The archive's slots limit the fetchers of all jobs (wgets, browsers), and jobs share them fairly (/Cr-1.3/, /Cr-7.3/). A
slot is a lock file (flock(2)), which the fetcher inherits. To take a slot, a job must hold the turn, another lock. A
job without a fetcher that finds no free slot keeps the turn: no other job gets a slot before it. A job with one
releases the turn at once. So each job that has something to fetch gets its next batch eventually, whatever the number
and the duration of the jobs.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from agent.crawl.politeness import LONGEST_PAUSE
from webarcfs.archive.system import locks
from webarcfs.archive.system.clocks import boot, since_boot

# == server locks =====================================================================================================


_LENGTH = 128


@dataclass(frozen=True, slots=True)
class _ServerState:
    """A lock file's content. `until` is in seconds since 1970, `asked` and `free` in seconds since the boot `boot`."""

    until: float = 0.0
    in_a_row: int = 0
    asked: float = 0.0
    free: float = 0.0
    boot: str = ""


def seconds_to_wait(lock: int, wait: float) -> float:
    """Return the seconds until the next request may be sent; `lock` is held, `wait` is the pause between requests."""
    info = os.fstat(lock)
    if not info.st_size:
        return 0.0  # no request was ever sent to it
    state = _read_state(lock)
    if state.boot == boot():
        return max(state.asked + wait, state.free) - since_boot()
    now = time.time()
    return max(_believable(info.st_mtime + wait - now, wait), _believable(state.until - now, LONGEST_PAUSE))


def asked_in_a_row(lock: int) -> int:
    """Return how often in a row the server has asked for a pause."""
    return _read_state(lock).in_a_row


def note_request(lock: int, pause: float = 0.0, in_a_row: int = 0) -> None:
    """Record that a request was sent now, and the `pause` that the server asked for, in seconds (0: none)."""
    now = since_boot()
    text = f"{time.time() + pause!r} {in_a_row} {now!r} {now + pause!r} {boot()}"
    os.pwrite(lock, text.ljust(_LENGTH - 1).encode("ascii") + b"\n", 0)
    os.utime(lock)


def _believable(seconds: float, most: float) -> float:
    """Return a wait by the clock; 0 if it is longer than `most`, since the clock was then set back."""
    return seconds if seconds <= most + 1.0 else 0.0


def _read_state(lock: int) -> _ServerState:
    words = os.pread(lock, _LENGTH, 0).decode("ascii", "replace").split()
    try:
        if len(words) == 5:
            return _ServerState(float(words[0]), int(words[1]), float(words[2]), float(words[3]), words[4])
        return _ServerState(float(words[0]), int(words[1])) if len(words) == 2 else _ServerState()
    except ValueError:
        return _ServerState()


# == slots ============================================================================================================


class Slots:
    """One job's view of the slots. `folder` contains the lock files, `most` is the number of slots of a kind."""

    def __init__(self, folder: Path, most: int, kind: str = "instance") -> None:
        self._turn_path = folder / f".{kind}-turn"
        self._paths = [folder / f".{kind}-{number}" for number in range(most)]
        self._turn: int | None = None

    def take(self, have: int) -> int | None:
        """Return a descriptor that holds a slot until it is closed; None if none is free or another job has the turn.

        `have` is the number of slots that the job holds.
        """
        if self._turn is None:
            self._turn = locks.try_exclusive(self._turn_path)
            if self._turn is None:
                return None  # another job has the turn, and is next
        for path in self._paths:
            place = locks.try_exclusive(path)
            if place is not None:
                self.leave()
                return place
        if have:
            self.leave()
        return None

    def leave(self) -> None:
        """Release the turn: the job has nothing to fetch now."""
        if self._turn is not None:
            os.close(self._turn)
            self._turn = None
