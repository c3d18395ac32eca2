"""Collects messages about files: each message once, with its count and its first occurrence."""

from __future__ import annotations

from collections import Counter


class Tally:
    """Messages about files, each with its count and its first occurrence."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], str] = {}

    def add(self, file: str, what: str, first: str) -> None:
        """Count a message about `file`; `first` is the position or the record of this occurrence."""
        self._counts[file, what] += 1
        self._first.setdefault((file, what), first)

    def lines(self) -> list[str]:
        """Return one line per message, which can be stored and printed whatever a file says."""
        lines = (
            f"{file}: {what}{f', {count} times; the first' if count > 1 else ''}: {self._first[file, what][:200]}"
            for (file, what), count in self._counts.items()
        )
        return [printable(line) for line in lines]


def printable(text: str) -> str:
    """Return a text of a foreign file as one line that can be stored and printed."""
    return " ".join(text.encode("utf-8", "backslashreplace").decode().splitlines())
