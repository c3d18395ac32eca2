"""Complete writes, and durable names: a file is durable when its folder is, too (fsync(2))."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Write all of `data`: write(2) may accept less at a time. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def write_all_at(fd: int, data: bytes, at: int) -> None:
    """Write all of `data` at an offset of the file (pwrite(2)). Raises OSError."""
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written


@contextmanager
def replacing(path: Path, scratch: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a new file, `scratch` until the block ends, then moved to `path` in one step; durable, with its name.

    If the block or the disk fails, the old file at `path` remains. Raises OSError; FileExistsError if `scratch` exists
    already.
    """
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(fd, "wb") as file:  # noqa: PTH123 # it is a descriptor
            yield file
            if durable:
                file.flush()
                os.fsync(fd)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def sync_tree(root: Path) -> None:
    """Sync everything in a new folder, and the folder, but not its name. Raises OSError."""
    for folder, _, files in os.walk(root):
        for name in files:
            fd = os.open(Path(folder, name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        sync_folder(Path(folder))


def sync_folder(path: Path) -> None:
    """Sync names that were made or removed in a folder. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
