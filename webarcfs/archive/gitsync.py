"""Makes durable what git leaves to the file system: the names of objects and refs.

With `core.fsync=all` git syncs what it writes before it gets a name, but never a folder; file systems with an ordered
journal keep the order of names by themselves, others may show a ref after a power cut and not the object it names. So
the folders are synced here: of objects before a ref moves, of refs before anybody is told that it did. Where nothing
changed that costs next to nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from webarcfs.archive.durable import sync_folder

#: Seconds by which the times of files may lie behind the clock.
_COARSE = 1.0


def packs(repository: Path) -> None:
    """The names of packs, and of folders for loose objects. Raises OSError."""
    _folders([repository / "objects", repository / "objects" / "pack"])


def loose(repository: Path, oids: Iterable[str]) -> None:
    """The names of these objects, where they are loose. Raises OSError."""
    _folders(repository / "objects" / each for each in {oid[:2] for oid in oids})


def loose_since(repository: Path, begun: float) -> None:
    """The names of objects that became loose since then. Raises OSError."""
    with os.scandir(repository / "objects") as found:
        folders = [Path(entry.path) for entry in found if len(entry.name) == 2]
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):  # a repack removed it
            if folder.stat().st_mtime >= begun - _COARSE:
                sync_folder(folder)


def refs(repository: Path, names: Iterable[str]) -> None:
    """Refs that were moved, made or removed. Raises OSError."""
    _folders(sorted({repository, repository / "refs", *((repository / name).parent for name in names)}))


def _folders(folders: Iterable[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):  # git removes folders that are left empty
            sync_folder(folder)
