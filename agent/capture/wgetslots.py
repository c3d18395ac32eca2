"""The archive's places for wget: so many run at a time over all jobs, and jobs share them fairly (/Cr-1.3/, /Cr-7.3/).

A place is a lock file (flock(2)), which wget inherits: it is taken as long as that wget lives, whoever dies. A job that
has no wget and finds no place keeps the turn: nobody else gets a place before it does. A job that has one already takes
more only while nobody stands there. So each job that has something to fetch gets its next batch in a while, however
many jobs there are and however long they take.
"""

from __future__ import annotations

import os
from pathlib import Path

from webarcfs.archive.system import locks


class Slots:
    """One job's view of the places. `folder` holds the lock files, `most` is how many places there are."""

    def __init__(self, folder: Path, most: int) -> None:
        self._turn_path = folder / ".instance-turn"
        self._paths = [folder / f".instance-{number}" for number in range(most)]
        self._turn: int | None = None

    def take(self, have: int) -> int | None:
        """A descriptor that holds a place until it is closed, or None: ask again. `have` is how many the job holds."""
        if self._turn is None:
            self._turn = locks.try_exclusive(self._turn_path)
            if self._turn is None:
                return None  # somebody stands there, and is next
        for path in self._paths:
            place = locks.try_exclusive(path)
            if place is not None:
                self.leave()
                return place
        if have:
            self.leave()
        return None

    def leave(self) -> None:
        """Give the turn up: nothing is to be fetched now."""
        if self._turn is not None:
            os.close(self._turn)
            self._turn = None
