"""A maker who changes his mind within the minute, and reports each step before and after it.

`python -m tests.crash.maker FOLDER MANIFEST NAME`: files of FOLDER whose names begin with NAME are written, written
again, renamed and removed. A line of the manifest is `begin|done TAB operation TAB name TAB other`, where other is the
number of the bytes, or the name that it was renamed to. It ends with the mount, which the test kills.
"""

from __future__ import annotations

import errno
import os
import random
import sys
from pathlib import Path

from tests.crash.writer import SIZES, body

#: Names of one maker.
NAMES = 6


def content(name: str, number: int) -> bytes:
    """The bytes of a step."""
    return b"%d\n" % number + body(f"{name} {number}", SIZES[number % len(SIZES)])


class Maker:
    """His files, and his report."""

    def __init__(self, folder: Path, report: int, name: str) -> None:
        self._folder = folder
        self._report = report
        self._names = [f"{name}-{number}" for number in range(NAMES)]
        self._there: set[str] = set()
        self._chance = random.Random(name)

    def step(self, number: int) -> None:
        """One change. Raises OSError when the mount is gone."""
        name, other = self._chance.sample(self._names, 2)
        if name not in self._there or self._chance.random() < 0.5:
            self._said("write", name, str(number), lambda: self._write(self._folder / name, name, number))
            self._there.add(name)
        elif self._chance.random() < 0.6:
            self._said("rename", name, other, lambda: (self._folder / name).rename(self._folder / other))
            self._there.discard(name)
            self._there.add(other)
        else:
            self._said("remove", name, "", (self._folder / name).unlink)
            self._there.discard(name)

    def _write(self, path: Path, name: str, number: int) -> None:
        with path.open("wb") as file:
            file.write(content(name, number))

    def _said(self, operation: str, name: str, other: str, act: object) -> None:
        self._tell("begin", operation, name, other)
        assert callable(act)
        act()
        self._tell("done", operation, name, other)

    def _tell(self, *words: str) -> None:
        os.write(self._report, ("\t".join(words) + "\n").encode())


def main() -> None:
    """Change until the mount is gone. Raises OSError for any other refusal."""
    folder, manifest, name = sys.argv[1:]
    maker = Maker(Path(folder), os.open(manifest, os.O_WRONLY | os.O_APPEND | os.O_CREAT), name)
    number = 0
    while True:
        number += 1
        try:
            maker.step(number)
        except OSError as error:
            if error.errno in {errno.ENOTCONN, errno.ECONNABORTED}:
                return
            raise


if __name__ == "__main__":
    main()
