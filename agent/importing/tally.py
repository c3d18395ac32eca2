"""What is to be said of many things at once: each once, with how often."""

from __future__ import annotations

from collections import Counter


class Remarks:
    """What is to be said of the files: each thing once, with how often and where first."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], str] = {}

    def add(self, file: str, what: str, first: str) -> None:
        """Something was seen in `file`; `first` tells where, or which."""
        self._counts[file, what] += 1
        self._first.setdefault((file, what), first)

    def lines(self) -> list[str]:
        """A line for each."""
        return [
            f"{file}: {what}{f', {count} times; the first' if count > 1 else ''}: {self._first[file, what][:200]}"
            for (file, what), count in self._counts.items()
        ]
