"""Detects that a repack removed packs of a repository. For one thread at a time; reads names and a time only."""

from __future__ import annotations

from pathlib import Path


class Packs:
    """The packs of one repository, as of the last check."""

    def __init__(self, repository: Path) -> None:
        self._folder = repository / "objects" / "pack"
        self._seen = self._look()

    def vanished(self) -> bool:
        """Return whether a pack was removed since the last check. Raises OSError without the folder."""
        if self._folder.stat().st_mtime_ns == self._seen[0]:
            return False
        before, self._seen = self._seen, self._look()
        return not before[1] <= self._seen[1]

    def _look(self) -> tuple[int, frozenset[str]]:
        """Return the time of the folder's last change, and the names."""
        try:
            time = self._folder.stat().st_mtime_ns  # first: the next check then detects a later change
            return time, frozenset(path.name for path in self._folder.glob("*.pack"))
        except OSError:
            return 0, frozenset()
