"""Records the response of a batch that is being read, in a file beside its WARC. So a response that kills its reader is
identified.

Each line is the position of a response in the WARC. The last line is the response being read; each line before it marks
the death of a reader. A line is written with one system call and never synced: a page may kill a process, but it does
not cause a power failure.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

#: Deaths of readers after which a response is read without its links: the first one may have been killed by chance.
MOST_DEATHS = 2
_LINE = 20


def path_of(warc: Path) -> Path:
    """Return the file of the batch with this WARC."""
    return warc.with_suffix(".reading")


def size(warc: Path) -> int:
    """Return the size of the file; 0 if no reader of this batch has died and none is running."""
    try:
        return path_of(warc).stat().st_size
    except FileNotFoundError:
        return 0


def forget(warc: Path, known: int) -> None:
    """Truncate the file to the size `known`: its reader was ended on purpose, no response is at fault."""
    with suppress(FileNotFoundError):
        if known:
            os.truncate(path_of(warc), known)
        else:
            path_of(warc).unlink()


def deaths(warc: Path) -> int:
    """Return how many readers died on the response in the last line."""
    lines = path_of(warc).read_bytes().splitlines()
    return lines.count(lines[-1]) if lines else 0


class Marks:
    """The file of a batch that is being read. Call `done` at the end."""

    def __init__(self, warc: Path) -> None:
        self._path = path_of(warc)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        lines = os.read(self._fd, os.fstat(self._fd).st_size).decode("ascii", "replace").splitlines()
        deaths = Counter(int(line) for line in lines if line.isascii() and line.isdecimal() and len(line) < _LINE)
        self.deadly = frozenset(position for position, count in deaths.items() if count >= MOST_DEATHS)
        self._at = len(lines) * _LINE

    def begin(self, position: int) -> None:
        """Record that the response at `position` is being read from now on."""
        os.pwrite(self._fd, b"%019d\n" % position, self._at)

    def done(self) -> None:
        """Remove the file: the batch was read."""
        os.close(self._fd)
        self._path.unlink(missing_ok=True)
