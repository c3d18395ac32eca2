"""The folder of a job, a crawl or an import: creates it, finds it after an interruption, opens and removes it.

It is in `jobs/` from the job's start until the report replaces it. It contains the frontier and the WARCs, so the next
run of the same publication, or of the same import, resumes the job.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from agent.frontier.facts import BEGUN
from agent.frontier.importindex import ImportIndex
from agent.frontier.store import Frontier
from agent.jobfolder import jobstate
from agent.jobfolder.names import kind_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import compact_time, from_epoch, now, parse_compact_time
from webarcfs.archive.system import locks

_log = logging.getLogger(__name__)
_FRONTIER = "frontier.db"
_AnyFrontier = TypeVar("_AnyFrontier", bound=Frontier)


@contextmanager
def alone(archive: Archive, publication: str) -> Iterator[None]:
    """Hold the publication's lock: only its holder begins or runs jobs of it. Raises Busy if another process does."""
    busy = f"{publication} is being crawled or imported already, by another process"
    with locks.exclusive_or_busy(archive.publication_lock(publication), busy):
        yield


def new_folder(archive: Archive, kind: str) -> Path:
    """Create the folder of a job that begins now (/Cr-4/, /Cr-7.1/); `kind` is the part of its name after the time."""
    begun = now()
    while True:
        name = f"{compact_time(begun)}-{kind}"
        folder = archive.jobs / name
        taken = (archive.reports / name).exists() or folder.exists()
        if not taken:
            folder.mkdir()
            return folder
        begun = from_epoch(begun.timestamp() + 1)


def interrupted(archive: Archive, kind: str) -> Path | None:
    """Return the folder of the job that was interrupted last; None if none is usable. Removes jobs that never began."""
    for path in reversed(folders_of(archive, kind)):
        if not has_begun(path):
            drop(path)  # killed before it began
        elif usable(path):
            _log.info("going on with the interrupted job %s", path.name)
            return path
    return None


def folders_of(archive: Archive, kind: str) -> list[Path]:
    """Return the folders of a publication's crawls, or of one import, oldest first. Complete interrupted removals."""
    found = sorted(path for path in archive.jobs.iterdir() if kind_of(path.name) == kind)
    for path in found:
        if path.name.startswith("."):
            shutil.rmtree(path)
    return [path for path in found if not path.name.startswith(".")]


def has_begun(folder: Path) -> bool:
    """Return whether the folder contains a frontier; without one, the job has done nothing."""
    return (folder / _FRONTIER).exists()


def usable(folder: Path) -> bool:
    """Return whether a job can be resumed. A damaged folder, or one of another version, is logged and left alone."""
    try:
        check(folder)
    except Damaged as error:
        _log.warning("%s", error)
        return False
    return True


def check(folder: Path) -> None:
    """Read a job's item and open its frontier. Raises Damaged, and WebarcError if that is not possible now."""
    jobstate.load(folder)
    if has_begun(folder):
        Frontier(folder / _FRONTIER).close()


@contextmanager
def opened(folder: Path) -> Iterator[Frontier]:
    """Open the frontier of a job, or create it, and store the job's start in it. Raises Damaged."""
    with _begun_in(folder, Frontier(folder / _FRONTIER)) as frontier:
        yield frontier


@contextmanager
def opened_index(folder: Path) -> Iterator[ImportIndex]:
    """Open the index of an import, or create it, and store the job's start in it. Raises Damaged."""
    with _begun_in(folder, ImportIndex(folder / _FRONTIER)) as index:
        yield index


@contextmanager
def _begun_in(folder: Path, frontier: _AnyFrontier) -> Iterator[_AnyFrontier]:
    try:
        if frontier.get(BEGUN) is None:
            with frontier.changes():
                frontier.set(BEGUN, _begun(folder.name))
        yield frontier
    finally:
        frontier.close()


def _begun(name: str) -> float:
    try:
        return parse_compact_time(name.partition("-")[0]).timestamp()
    except Damaged:
        return now().timestamp()


def drop(folder: Path) -> None:
    """Remove the folder of a job that never began."""
    shutil.rmtree(folder, ignore_errors=True)
