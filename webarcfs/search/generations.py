"""The generations of an archive's full-text index: `search/<n>/`, of which `search/current` names one.

An index that is rebuilt grows beside the one in use, which answers until `current` names the new one. A folder that
`current` does not name is removed by the next writer.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings_files import replace_file
from webarcfs.archive.model.errors import Damaged, NotFound
from webarcfs.search.index import VERSION, IndexReader, state_of

_CURRENT = "current"


def current(archive: Archive) -> Path | None:
    """Return the folder of the index in use; None without one, and for one of another version."""
    try:
        number, version = (archive.search / _CURRENT).read_text().split()
        return archive.search / f"{int(number)}" if int(version) == VERSION else None
    except (FileNotFoundError, ValueError):
        return None


def state(archive: Archive) -> os.stat_result:
    """Return what identifies a state of the index in use. Raises NotFound without one."""
    folder = current(archive)
    if folder is None:
        raise NotFound(_missing(archive))
    try:
        return state_of(folder)
    except FileNotFoundError:
        raise NotFound(_missing(archive)) from None


def opened(archive: Archive) -> IndexReader:
    """Open the index in use. Raises NotFound without one, Damaged, Busy."""
    for _ in range(3):  # a new generation may take its place
        folder = current(archive)
        if folder is None:
            break
        try:
            return IndexReader(folder)
        except (Damaged, OSError):
            if folder == current(archive):
                raise
    raise NotFound(_missing(archive))


def _missing(archive: Archive) -> str:
    return (
        f"{archive.root} has no full-text index yet: `webarc-agent index` makes it, and so does a running agent. "
        "It takes webarcfs[search]; `[index] search = false` in webarc.toml turns it off"
    )


def begun(archive: Archive) -> Path:
    """Return the folder of a new generation. The caller holds the lock."""
    archive.search.mkdir(exist_ok=True)
    numbers = [int(path.name) for path in archive.search.iterdir() if path.name.isdigit()]
    folder = archive.search / str(max(numbers, default=0) + 1)
    folder.mkdir()
    return folder


def use(archive: Archive, folder: Path) -> None:
    """Let readers use a generation, and remove all others. The caller holds the lock."""
    replace_file(archive.search / _CURRENT, f"{folder.name} {VERSION}\n".encode())
    remove_others(archive)


def remove_others(archive: Archive) -> None:
    """Remove the generations that are not in use. The caller holds the lock."""
    kept = current(archive)
    with suppress(FileNotFoundError):
        for entry in os.scandir(archive.search):
            if entry.name.isdigit() and entry.is_dir() and (kept is None or entry.name != kept.name):
                shutil.rmtree(entry.path, ignore_errors=True)
