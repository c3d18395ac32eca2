"""The folder of a job, for crawls and imports alike: begun, found again after an interruption, opened, dropped.

It lies in `jobs/` from the first moment to the last, when the report takes its place. It holds the frontier and the
WARCs, so the next run of the same publication, or of the same import, goes on with it.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.frontier.facts import BEGUN
from agent.frontier.store import Frontier
from agent.jobfolder import jobstate
from agent.jobfolder.names import kind_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import compact_time, from_epoch, now, parse_compact_time
from webarcfs.archive.system import locks

_log = logging.getLogger(__name__)
_FRONTIER = "frontier.db"


@contextmanager
def alone(archive: Archive, publication: str) -> Iterator[None]:
    """Be the only one that begins or runs a job of a publication. Raises Busy when another process does."""
    busy = f"{publication} is being crawled or imported already, by another process"
    with locks.exclusive_or_busy(archive.publication_lock(publication), busy):
        yield


def new_folder(archive: Archive, kind: str) -> Path:
    """The folder of a new job, which begins now (/Cr-4/, /Cr-7.1/); `kind` is the part of its name behind the time."""
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
    """The folder of the job that was interrupted last; those of another version are left alone."""
    for path in reversed(folders_of(archive, kind)):
        if not has_begun(path):
            drop(path)  # killed before it had begun
        elif usable(path):
            _log.info("going on with the interrupted job %s", path.name)
            return path
    return None


def folders_of(archive: Archive, kind: str) -> list[Path]:
    """The folders of a publication's crawls, or of one import, oldest first; one that was being removed is gone."""
    found = sorted(path for path in archive.jobs.iterdir() if kind_of(path.name) == kind)
    for path in found:
        if path.name.startswith("."):
            shutil.rmtree(path)
    return [path for path in found if not path.name.startswith(".")]


def has_begun(folder: Path) -> bool:
    """Whether the job in a folder has a frontier; one that has none has done nothing."""
    return (folder / _FRONTIER).exists()


def usable(folder: Path) -> bool:
    """Whether a job's folder can be gone on with; one of another version, or a damaged one, is named and left alone."""
    try:
        check(folder)
    except Damaged as error:
        _log.warning("%s", error)
        return False
    return True


def check(folder: Path) -> None:
    """Read the state of a job, and open its frontier. Raises Damaged, and WebarcError where that cannot be done now."""
    jobstate.load(folder)
    if has_begun(folder):
        Frontier(folder / _FRONTIER).close()


@contextmanager
def opened(folder: Path) -> Iterator[Frontier]:
    """The frontier of a job, made where it is a new one; it knows when the job began. Raises Damaged."""
    frontier = Frontier(folder / _FRONTIER)
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
