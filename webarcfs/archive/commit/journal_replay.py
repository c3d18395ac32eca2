"""Replays the logs of dead mounts: the first process commits them once, and removes them.

A log is dead when no process holds its lock. Unreadable parts are reported and set aside, never deleted; a log of a
newer version of this program is left alone. The provisional files of a dead mount have settled: nobody can change them
any more.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Callable

from webarcfs.archive.commit.progress import done, marks
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN, Repository
from webarcfs.archive.journal.bodies import DRAFT
from webarcfs.archive.journal.log_format import LogRecord
from webarcfs.archive.journal.log_reader import (
    SET_ASIDE,
    SUFFIX,
    LogReader,
    all_logs,
    journal_of,
    provisional_logs,
    take_from_dead,
)
from webarcfs.archive.model.committed import Committed
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.system.fsync import sync_folder

#: Commits the pending additions to a domain.
Commit = Callable[[Archive, str], Committed]

#: Seconds, for all logs together, to wait for locks that outlive their owners.
PATIENCE = 2.0

_log = logging.getLogger(__name__)


def replay(archive: Archive, commit: Commit) -> list[Committed]:
    """Commit what dead mounts left, and remove their logs."""
    commits: list[Committed] = []
    if not os.access(archive.journal, os.W_OK):
        return commits  # a read-only user's mount
    until = time.monotonic() + PATIENCE
    _settle(archive, until)
    for log in all_logs(archive):
        fd = take_from_dead(log.path, until)
        if fd is None:
            continue
        try:
            commits += _replay(archive, log, commit)
        except OSError as error:
            _log.error("%s was not replayed, and stays: %s", log.path, error)
        finally:
            os.close(fd)
    with contextlib.suppress(OSError):
        _sweep(archive, until)
    return commits


def _settle(archive: Archive, until: float) -> None:
    """Let the logs of provisional files of dead mounts be committed."""
    for log in provisional_logs(archive):
        fd = take_from_dead(log.path, until)
        if fd is None:
            continue
        try:
            log.path.rename(log.path.with_suffix(SUFFIX))
            sync_folder(archive.journal)
        except OSError as error:
            _log.error("%s was not replayed, and stays: %s", log.path, error)
        finally:
            os.close(fd)


def _replay(archive: Archive, log: LogReader, commit: Commit) -> list[Committed]:
    every = log.more() or []
    records = log.left(every)
    if log.newer:
        _log.error("%s was written by a newer webarcfs, which is needed to take it into the archive", log.path)
        return []
    commits, whole = [], True
    for domain in sorted({record.addition.place.domain for record in records}):
        try:
            commits.append(commit(archive, domain))
            whole = whole and _is_done(archive, domain, log, records)
        except (WebarcError, OSError) as error:
            _log.error("%s: additions to %s were not committed, and stay: %s", log.path, domain, error)
            whole = False
    if whole:
        _remove(log, [record.file for record in every if record.file], damaged=_is_damaged(log, commits))
    return commits


def _is_done(archive: Archive, domain: str, log: LogReader, records: list[LogRecord]) -> bool:
    store = Repository(archive.repository(domain))
    mark = done(store, store.ref(MAIN), marks(store)).get(log.id, 0)
    return all(record.number <= mark for record in records if record.addition.place.domain == domain)


def _is_damaged(log: LogReader, commits: list[Committed]) -> bool:
    """Return whether part of the log could not be read, and must be kept for repair."""
    lost = [each for part in commits for each in part.dropped if each.log == log.id and each.damaged]
    spans = [f"bytes {start} to {end}" for start, end in log.damage]
    spans += [f"what follows byte {log.end}"] if log.tail == "damaged" else []
    spans += [f"number {each.number}: {each.reason}" for each in lost]
    if spans:
        _log.error(
            "%s is damaged: %s could not be read; the rest is in the archive, and the log is kept as %s",
            log.path,
            ", ".join(spans),
            log.path.with_suffix(SET_ASIDE).name,
        )
    elif log.tail:
        _log.info("%s ends in a record that was never confirmed", log.path)
    return bool(spans)


def _remove(log: LogReader, files: list[str], *, damaged: bool) -> None:
    if damaged:
        log.path.rename(log.path.with_suffix(SET_ASIDE))
    else:
        for file in files:
            (log.bodies / file).unlink(missing_ok=True)
        log.path.unlink(missing_ok=True)
    sync_folder(log.path.parent)


def _sweep(archive: Archive, until: float) -> None:
    """Remove folders of bodies without a log, and files that their dead owner was making."""
    with os.scandir(archive.journal) as found:
        entries = list(found)
    # After the folders: a journal makes its log before its folder, so a folder that was seen has its log.
    names = {journal_of(os.path.splitext(name)[0]) for name in os.listdir(archive.journal)}  # noqa: PTH122, PTH208
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and entry.name not in names:
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.name.startswith(".") and entry.name.endswith(".new"):
            fd = take_from_dead(archive.journal / entry.name, until)
            if fd is not None:
                (archive.journal / entry.name).unlink(missing_ok=True)
                os.close(fd)
        elif entry.name.startswith(DRAFT):  # a living owner would do the same next
            (archive.journal / entry.name).unlink(missing_ok=True)
