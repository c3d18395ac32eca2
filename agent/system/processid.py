"""Which process it is, so that a number that was given to another one since is not taken for it (proc(5))."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process by its number and when it began (clock ticks since boot)."""

    pid: int
    ticks: int

    @classmethod
    def current(cls) -> Process:
        """This process."""
        return cls(os.getpid(), _ticks(os.getpid()) or 0)

    def runs(self) -> bool:
        """Whether it is alive: there, not another one of the same number, and no zombie."""
        return self.pid > 0 and _ticks(self.pid) == self.ticks


def _ticks(pid: int) -> int | None:
    """When a live process began; None where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
