"""Identifies a process by its id and start time, since the kernel reuses process ids (proc(5))."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process, identified by its id and its start time (clock ticks since boot)."""

    pid: int
    ticks: int

    @classmethod
    def current(cls) -> Process:
        """Return the current process."""
        return cls(os.getpid(), _ticks(os.getpid()) or 0)

    def runs(self) -> bool:
        """Return whether it is alive: it exists with the same start time, and is no zombie."""
        return self.pid > 0 and _ticks(self.pid) == self.ticks


def _ticks(pid: int) -> int | None:
    """Return the start time of a live process; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
