"""Copies plain files for backups: files of equal size and time stay, new ones appear completely or not at all."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

_SCRATCH = ".copying-"


def mirror(source: Path, target: Path, other: list[Path] | None = None) -> set[Path]:
    """Copy a file, or a folder with its content; return the existing files, relative to `source`.

    Files that vanish meanwhile are skipped, and so are hidden ones (a report being written); links are copied as links,
    and nothing is deleted. With `other`, the content of files of equal size and time is compared; if it differs, one
    of the two is damaged, and that of `target` is added to `other`. Raises OSError.
    """
    if not source.is_dir():
        return {Path()} if _copy(source, target, other) else set()
    target.mkdir(parents=True, exist_ok=True)
    found = set()
    for relative in sorted(_below(source, Path())):
        if _copy(source / relative, target / relative, other):
            found.add(relative)
    return found


def remove_others(target: Path, kept: set[Path]) -> None:
    """Remove the files of a folder that are not in `kept`."""
    for relative in list(_below(target, Path())):
        if relative not in kept:
            (target / relative).unlink(missing_ok=True)


def _below(folder: Path, relative: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for entry in sorted(os.scandir(folder / relative), key=lambda each: each.name):
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _below(folder, relative / entry.name)
            else:
                yield relative / entry.name


def _copy(source: Path, target: Path, other: list[Path] | None) -> bool:
    try:
        there = source.lstat()
        here = target.lstat() if os.path.lexists(target) else None
        if here is not None and (here.st_size, here.st_mtime_ns) == (there.st_size, there.st_mtime_ns):
            if other is None or source.is_symlink() or filecmp.cmp(source, target, shallow=False):
                return True
            again = source.lstat()
            if (again.st_size, again.st_mtime_ns) == (there.st_size, there.st_mtime_ns):
                other.append(target)
                return True
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = target.with_name(f"{_SCRATCH}{target.name}"[:255])
        scratch.unlink(missing_ok=True)
        shutil.copy2(source, scratch, follow_symlinks=False)
    except FileNotFoundError:
        if source.parent.exists() and not os.path.lexists(source):
            return False
        raise
    if not scratch.is_symlink():
        fd = os.open(scratch, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    scratch.replace(target)
    return True
