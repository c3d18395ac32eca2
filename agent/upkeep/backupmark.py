"""The mark that makes a folder a backup and names its archive, and the lock of the backup."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from agent.system import jsonfile
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import LAYOUT, Archive
from webarcfs.archive.model.errors import Damaged, UsageError
from webarcfs.archive.system import locks

#: The file that makes a folder a backup: the archive's id, and when the backup was finished last.
MARK = directory.BACKUP


def is_backup(folder: Path) -> bool:
    """Return whether a folder is a backup and not an archive."""
    return (folder / MARK).is_file() and not (folder / "format").exists()


def id_of(archive: Archive) -> str:
    """Return the id of this archive; the first backup creates it."""
    path = archive.root / "id"
    if not path.exists():
        scratch = archive.root / f".id-{os.getpid()}"
        scratch.write_text(f"{uuid.uuid4()}\n", "ascii")
        try:
            os.link(scratch, path)
        except FileExistsError:
            pass  # another backup created it first
        finally:
            scratch.unlink()
    return path.read_text("ascii").strip()


@contextmanager
def held(folder: Path, *, must_exist: bool = False) -> Iterator[dict[str, Any] | None]:
    """Hold a backup exclusively; yield its mark, None for a new one. Raises UsageError if the folder is no backup."""
    # The files of a first backup that was killed at once: its lock, and a temporary mark.
    ours = (".lock", f".{MARK}.")
    there = folder.is_dir() and not all(each.name.startswith(ours) for each in folder.iterdir())
    if must_exist and not (folder / MARK).is_file():
        raise UsageError(f"{folder} holds no backup: it has no {MARK}")
    if there and not (folder / MARK).is_file():
        raise UsageError(f"{folder} holds something that is no backup; give a folder of its own, or a new one")
    folder.mkdir(parents=True, exist_ok=True)
    with locks.exclusive_or_busy(folder / ".lock", f"{folder} is being written or read by another process"):
        yield _read(folder / MARK) if there else None


@contextmanager
def read_only(folder: Path) -> Iterator[dict[str, Any]]:
    """Lock a backup with flock(2), if it has a lock file, without writing to it; yield its mark."""
    lock = folder / ".lock"
    with locks.exclusive_or_busy(lock, f"{folder} is being written or read") if lock.exists() else nullcontext():
        yield _read(folder / MARK)


def _read(path: Path) -> dict[str, Any]:
    try:
        mark = jsonfile.read(path) or {}
        read = {"id": str(mark["id"]), "layout": int(mark["layout"]), "finished": mark["finished"]}
    except (Damaged, ValueError, KeyError, TypeError):
        raise UsageError(f"{path} cannot be understood; is it a backup of webarcfs?") from None
    if read["layout"] > LAYOUT:
        raise UsageError(f"{path.parent} has layout {read['layout']}, this program knows up to {LAYOUT}")
    return read
