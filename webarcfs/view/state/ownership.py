"""The owners of additions: a maker may rename an addition, and set its times and mode, while it is open and for GRACE.

Memory only, safe for any thread; the lock is held for moments, and no other is taken under it.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from webarcfs.archive.model.addition import ArcVersion

#: Seconds after its last close for which an addition belongs to its maker.
GRACE = 60.0
#: Folders whose makers are remembered; beyond it, the oldest are forgotten.
MOST_FOLDERS = 100_000


@dataclass(frozen=True, slots=True)
class Ownership:
    """The maker of an addition, and the end of ownership (monotonic seconds; None: while it is open)."""

    uid: int
    until: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether one of its handles may still write."""
        return self.until is None


class Owners:
    """The makers of additions through one mount. Paths are relative to the ARC."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[tuple[ArcVersion, str], Ownership] = {}
        self._folders: dict[tuple[ArcVersion, str], Ownership] = {}

    def of(self, place: ArcVersion | None, path: str) -> Ownership | None:
        """Return the maker of a file or folder, as long as it belongs to the maker; else None."""
        if place is None or not (self._files or self._folders):
            return None
        made = self._files.get((place, path)) or self._folders.get((place, path))
        return None if made is None or (made.until is not None and made.until < time.monotonic()) else made

    def file(self, place: ArcVersion, path: str, made: Ownership) -> None:
        """Note a new file."""
        with self._lock:
            self._files[place, path] = made

    def folder(self, place: ArcVersion, path: str, made: Ownership) -> None:
        """Note a new folder."""
        with self._lock:
            self._folders[place, path] = made
            if len(self._folders) > MOST_FOLDERS:
                del self._folders[next(iter(self._folders))]

    def removed(self, place: ArcVersion, path: str) -> None:
        """Forget a file that was being written, and was removed."""
        with self._lock:
            self._files.pop((place, path), None)

    def renamed(self, place: ArcVersion, old: str, new: str) -> None:
        """Note a file's new name."""
        with self._lock:
            made = self._files.pop((place, old), None)
            if made is not None:
                self._files[place, new] = made

    def closed(self, place: ArcVersion, path: str) -> None:
        """Note the close of a new file's last handle: it belongs to its maker for GRACE more seconds."""
        with self._lock:
            made = self._files.get((place, path))
            if made is not None:
                self._files[place, path] = Ownership(made.uid, time.monotonic() + GRACE)

    def forget(self) -> None:
        """Forget makers whose time is over. Called periodically."""
        now = time.monotonic()
        with self._lock:
            for key in [key for key, made in self._files.items() if made.until is not None and made.until < now]:
                del self._files[key]
