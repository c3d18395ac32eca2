"""Whose an addition is: its maker may rename it, and set its times and mode, while it is open and a while longer.

Memory only, safe for any thread; the lock is held for moments, and no other is taken under it.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from webarcfs.archive.model.addition import ArcVersion

#: Seconds after its last close for which the maker of an addition may rename it.
GRACE = 60.0
#: Folders that are remembered with their makers; the oldest are forgotten beyond it.
MOST_FOLDERS = 100_000


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who made an addition, and until when (monotonic seconds; None: while it is open) it is theirs to rename."""

    uid: int
    until: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether a handle of it may write still."""
        return self.until is None


class Owners:
    """The makers of what was added through one mount. Paths are inside the ARC."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[tuple[ArcVersion, str], Ownership] = {}
        self._folders: dict[tuple[ArcVersion, str], Ownership] = {}

    def of(self, place: ArcVersion | None, path: str) -> Ownership | None:
        """Who made a file or folder, as long as it is theirs."""
        if place is None or not (self._files or self._folders):
            return None
        made = self._files.get((place, path)) or self._folders.get((place, path))
        return None if made is None or (made.until is not None and made.until < time.monotonic()) else made

    def file(self, place: ArcVersion, path: str, made: Ownership) -> None:
        """Somebody began a new file."""
        with self._lock:
            self._files[place, path] = made

    def folder(self, place: ArcVersion, path: str, made: Ownership) -> None:
        """Somebody made a folder."""
        with self._lock:
            self._folders[place, path] = made
            if len(self._folders) > MOST_FOLDERS:
                del self._folders[next(iter(self._folders))]

    def removed(self, place: ArcVersion, path: str) -> None:
        """A file that was being written is no more."""
        with self._lock:
            self._files.pop((place, path), None)

    def renamed(self, place: ArcVersion, old: str, new: str) -> None:
        """A file has another name now."""
        with self._lock:
            made = self._files.pop((place, old), None)
            if made is not None:
                self._files[place, new] = made

    def closed(self, place: ArcVersion, path: str) -> None:
        """The last handle of a new file is closed: it is its maker's for a while more."""
        with self._lock:
            made = self._files.get((place, path))
            if made is not None:
                self._files[place, path] = Ownership(made.uid, time.monotonic() + GRACE)

    def forget(self) -> None:
        """Forget makers whose time is over. Called now and then."""
        now = time.monotonic()
        with self._lock:
            for key in [key for key, made in self._files.items() if made.until is not None and made.until < now]:
                del self._files[key]
