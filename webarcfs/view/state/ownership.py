"""The owners of additions: what a maker may still do with one while it is open, and for a while after its last close.

With `settle` above 0 a closed file is provisional for so many seconds: its maker may write to it, rename and remove it
(SEMANTICS.md, S-settle). An empty one stays so until it has been written. With 0 a closed file is final, and its maker
may rename it for GRACE. Memory only, safe for any thread; the lock is held for moments, and no other is taken under it.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from webarcfs.archive.model.addition import ArcVersion

#: Seconds after its last close for which an addition belongs to its maker, where it is final at once.
GRACE = 60.0
#: Folders whose makers are remembered; beyond it, the oldest are forgotten.
MOST_FOLDERS = 100_000
#: Words for when a file settles, where no time is known.
OPEN, EMPTY = "open", "empty"


@dataclass(frozen=True, slots=True)
class Ownership:
    """The maker of an addition, and the end of ownership (monotonic seconds; None: it is not known yet)."""

    uid: int
    until: float | None = None
    #: Whether one of its handles may still write.
    is_open: bool = True
    #: Whether its maker may open it to write.
    is_writable: bool = True
    #: The end in seconds since 1970.
    settles_at: int = 0


class Owners:
    """The makers of additions through one mount. Paths are relative to the ARC."""

    def __init__(self) -> None:
        #: Seconds for which closed files are provisional.
        self.settle = 0.0
        self._lock = threading.Lock()
        self._files: dict[tuple[ArcVersion, str], Ownership] = {}
        self._folders: dict[tuple[ArcVersion, str], Ownership] = {}

    def of(self, place: ArcVersion | None, path: str) -> Ownership | None:
        """Return the maker of a file or folder, as long as it belongs to the maker; else None."""
        if place is None or not (self._files or self._folders):
            return None
        made = self._files.get((place, path)) or self._folders.get((place, path))
        return None if made is None or (made.until is not None and made.until < time.monotonic()) else made

    def settles(self, place: ArcVersion | None, path: str) -> int | str | None:
        """Return when a provisional file settles, in seconds since 1970, or OPEN or EMPTY; None if it is final."""
        if not self.settle or place is None:
            return None
        made = self._files.get((place, path))
        if made is None or made.is_open:
            return None if made is None else OPEN
        return EMPTY if made.until is None else made.settles_at

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

    def folder_maker(self, place: ArcVersion, path: str) -> int | None:
        """Return the user who made a folder, or None."""
        made = self._folders.get((place, path))
        return made.uid if made is not None else None

    def folder_removed(self, place: ArcVersion, path: str) -> None:
        """Forget a folder that was removed."""
        with self._lock:
            self._folders.pop((place, path), None)

    def removed(self, place: ArcVersion, path: str) -> None:
        """Forget a file that was removed, or has settled."""
        with self._lock:
            self._files.pop((place, path), None)

    def renamed(self, place: ArcVersion, old: str, new: str) -> None:
        """Note a file's new name."""
        with self._lock:
            made = self._files.pop((place, old), None)
            if made is not None:
                self._files[place, new] = made

    def closed(self, place: ArcVersion, path: str, *, is_empty: bool = False) -> None:
        """Note the close of a file's last handle: it belongs to its maker for a while more."""
        with self._lock:
            made = self._files.get((place, path))
            if made is None:
                return
            seconds = self.settle or GRACE
            until = None if is_empty and self.settle else time.monotonic() + seconds
            at = round(time.time() + seconds)
            self._files[place, path] = Ownership(made.uid, until, False, bool(self.settle), at)

    def reopened(self, place: ArcVersion, path: str, uid: int) -> bool:
        """Note that the maker of a closed, provisional file opens it again, which keeps it from settling.

        Return False if it is not provisional, open already, or another user's.
        """
        return self.held(place, path, uid) is not None

    def held(self, place: ArcVersion, path: str, uid: int) -> Ownership | None:
        """Keep a closed, provisional file of a user's from settling, as if it were open, until `let_go`.

        Return what it was for `let_go`; None as `reopened` returns False.
        """
        with self._lock:
            made = self._files.get((place, path))
            if made is None or made.is_open or not made.is_writable or made.uid != uid:
                return None
            if made.until is not None and made.until < time.monotonic():
                return None
            self._files[place, path] = Ownership(uid)
            return made

    def let_go(self, place: ArcVersion, path: str, made: Ownership) -> None:
        """Let a file settle as before, unless it was removed."""
        with self._lock:
            if (place, path) in self._files:
                self._files[place, path] = made

    def due(self) -> list[tuple[ArcVersion, str]]:
        """Return the provisional files whose time is over."""
        now = time.monotonic()
        with self._lock:
            return [key for key, made in self._files.items() if made.until is not None and made.until < now]

    def end(self, *, with_empty: bool) -> None:
        """End the time of all files that are closed."""
        with self._lock:
            for key, made in self._files.items():
                if not made.is_open and (with_empty or made.until is not None):
                    self._files[key] = Ownership(made.uid, 0.0, False, made.is_writable, round(time.time()))

    def forget(self) -> None:
        """Forget makers whose time is over, unless their files settle first. Called periodically."""
        if self.settle:
            return
        for key in self.due():
            self.removed(*key)
