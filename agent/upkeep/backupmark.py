"""Whose backup a folder is, and who is at it: the mark that makes it one, and its lock."""

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

#: The file that makes a folder a backup: whose, and when it was finished last.
MARK = directory.BACKUP


def is_backup(folder: Path) -> bool:
    """Whether a folder is a backup, and no archive."""
    return (folder / MARK).is_file() and not (folder / "format").exists()


def id_of(archive: Archive) -> str:
    """What tells this archive from others; the first backup makes it."""
    path = archive.root / "id"
    if not path.exists():
        scratch = archive.root / f".id-{os.getpid()}"
        scratch.write_text(f"{uuid.uuid4()}\n", "ascii")
        try:
            os.link(scratch, path)
        except FileExistsError:
            pass  # another backup was faster
        finally:
            scratch.unlink()
    return path.read_text("ascii").strip()


@contextmanager
def held(folder: Path, *, must_exist: bool = False) -> Iterator[dict[str, Any] | None]:
    """Hold a backup alone; what its mark says, None for a new one. Raises UsageError where it is none."""
    # What a first backup leaves that was killed at once: its lock, and a mark that is not finished.
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
    """Keep others from a backup, and write nothing to it, as far as flock(2) goes; yields what its mark says."""
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
