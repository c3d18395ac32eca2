"""Bytes and names on the disk: all of what is to be written, and durable when the folder is, too (fsync(2))."""

from __future__ import annotations

import os
from pathlib import Path


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Write all of `data`: write(2) may take less at a time. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_tree(root: Path) -> None:
    """Make everything in a new folder durable, and the folder, but not its name. Raises OSError."""
    for folder, _, files in os.walk(root):
        for name in files:
            fd = os.open(Path(folder, name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        sync_folder(Path(folder))


def sync_folder(path: Path) -> None:
    """Make names that were made or removed in a folder durable. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
