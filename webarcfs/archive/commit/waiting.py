"""The additions that the journal has and git lacks. Reading them needs no room on the disk, and changes nothing."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from webarcfs.archive.commit.progress import done, marks
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN, Repository
from webarcfs.archive.journal.log_format import LogRecord
from webarcfs.archive.journal.log_reader import LogReader, all_logs, provisional_logs
from webarcfs.archive.model.errors import WebarcError

#: A record, and the log that it is in.
Waiting = tuple[LogReader, LogRecord]


def read_waiting(archive: Archive, *, of_dead: bool = False) -> dict[str, list[Waiting]]:
    """Return the records that are not committed yet, by domain, in order; without provisional files of living mounts.

    `of_dead`: only those whose mount is gone.
    """
    progress: dict[str, Mapping[str, int]] = {}
    waiting: dict[str, list[Waiting]] = {}
    for log in all_logs(archive) + provisional_logs(archive):
        try:
            if (of_dead or log.may_change) and is_held(log.path):
                continue  # what is provisional waits for nothing but its time
            records = log.left(log.more() or [])
        except FileNotFoundError:
            continue  # all its additions are committed
        for record in records:
            domain = record.addition.place.domain
            if domain not in progress:
                progress[domain] = read_progress(archive, domain)
            if record.number > progress[domain].get(log.id, 0):
                waiting.setdefault(domain, []).append((log, record))
    return waiting


def count_waiting(archive: Archive) -> Counter[str]:
    """Return how many additions of each domain wait, in the journals of all mounts."""
    return Counter({domain: len(records) for domain, records in read_waiting(archive).items()})


def read_progress(archive: Archive, domain: str) -> Mapping[str, int]:
    """Return how far each log is committed for a domain; nothing where its repository cannot be read."""
    try:
        store = Repository(archive.repository(domain))
        return done(store, store.ref(MAIN), marks(store))
    except (WebarcError, OSError):
        return {}


def say_waiting(domain: str, number: int) -> str:
    """Return the line that tells people what waits."""
    return f"{domain}: {number} additions wait in the journal; the next mount or agent commits them"


def is_held(log: Path) -> bool:
    """Return whether the owner of a log lives. Raises FileNotFoundError."""
    fd = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
