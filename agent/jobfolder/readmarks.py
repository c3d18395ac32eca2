"""Which answer of a batch is being read, in a file beside its WARC: so one that kills its reader is known.

A line is the position of an answer in the WARC. The last one is under way; those before it were when a reader died. It
is written with one call of the system and never synced: processes die of pages, power cuts do not come of them.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

#: Readers that may die of an answer until its links are left: the first one may have been killed by chance.
MOST_DEATHS = 2
_LINE = 20


def path_of(warc: Path) -> Path:
    """The file of the batch that has this WARC."""
    return warc.with_suffix(".reading")


def size(warc: Path) -> int:
    """How long the file is: 0 if no reader has died of this batch, and none is at work."""
    try:
        return path_of(warc).stat().st_size
    except FileNotFoundError:
        return 0


def forget(warc: Path, known: int) -> None:
    """Have the file as it was when its size was `known`: a reader was ended that nothing is to blame for."""
    with suppress(FileNotFoundError):
        if known:
            os.truncate(path_of(warc), known)
        else:
            path_of(warc).unlink()


def deaths(warc: Path) -> int:
    """How many readers died of the answer that is under way."""
    lines = path_of(warc).read_bytes().splitlines()
    return lines.count(lines[-1]) if lines else 0


class Marks:
    """The file of a batch that is read now. Tell `done`, unless the reader dies."""

    def __init__(self, warc: Path) -> None:
        self._path = path_of(warc)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        lines = os.read(self._fd, os.fstat(self._fd).st_size).decode("ascii", "replace").splitlines()
        deaths = Counter(int(line) for line in lines if line.isascii() and line.isdecimal() and len(line) < _LINE)
        self.deadly = frozenset(position for position, count in deaths.items() if count >= MOST_DEATHS)
        self._at = len(lines) * _LINE

    def begin(self, position: int) -> None:
        """The answer at `position` is read from now on."""
        os.pwrite(self._fd, b"%019d\n" % position, self._at)

    def done(self) -> None:
        """Nothing is read any more."""
        os.close(self._fd)
        self._path.unlink(missing_ok=True)
