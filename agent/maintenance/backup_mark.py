"""The mark of a backup: the file that makes a folder one. It is apart from `backups`, since others ask for it often."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import parse_time
from webarcfs.archive.system import files

#: The file that makes a folder a backup: the archive's id, and when the backup was finished last.
MARK = directory.BACKUP
#: The file in `log/` of an archive that says when its last backup was finished, and where.
TRACE = "backup.json"


def is_backup(folder: Path) -> bool:
    """Return whether a folder is a backup and not an archive."""
    return (folder / MARK).is_file() and not (folder / "format").exists()


def finished_at(folder: Path) -> datetime | None:
    """Return when the last whole backup to a folder was finished; None for none. One may be running."""
    with suppress(OSError, Damaged):
        return last_finished(files.read_json(folder / MARK) or {})
    return None


def last_finished(mark: Mapping[str, Any]) -> datetime | None:
    """Return when the last whole backup with this mark was finished; None for none, or for a faulty mark. Pure."""
    with suppress(Damaged, KeyError):
        finished = mark["finished"] or mark.get("last")
        return parse_time(str(finished)) if finished else None
    return None


def last_of(archive: Archive) -> tuple[datetime, Path] | None:
    """Return when the last whole backup of an archive was finished, and in which folder; None if none is known."""
    with suppress(OSError, Damaged, KeyError, TypeError):
        trace = files.read_json(archive.log / TRACE)
        return None if trace is None else (parse_time(str(trace["finished"])), Path(str(trace["folder"])))
    return None
