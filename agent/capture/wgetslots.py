"""The archive's slots for wget: they limit the wgets of all jobs, and jobs share them fairly (/Cr-1.3/, /Cr-7.3/).

A slot is a lock file (flock(2)), which wget inherits: it is held as long as that wget lives, even if the agent dies. To
take a slot, a job must hold the turn, another lock. A job without a wget that finds no free slot keeps the turn: no
other job gets a slot before it. A job with a wget releases the turn at once. So each job that has something to fetch
gets its next batch eventually, whatever the number and the duration of the jobs.
"""

from __future__ import annotations

import os
from pathlib import Path

from webarcfs.archive.system import locks


class Slots:
    """One job's view of the slots. `folder` contains the lock files, `most` is the number of slots."""

    def __init__(self, folder: Path, most: int) -> None:
        self._turn_path = folder / ".instance-turn"
        self._paths = [folder / f".instance-{number}" for number in range(most)]
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
