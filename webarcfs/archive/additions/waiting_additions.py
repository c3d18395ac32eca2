"""The additions that the journal has and git lacks: reads them, and asks mounts to let provisional files settle.

Reading needs no room on the disk, and changes nothing.

Before a backup or an export, the mounts are asked to settle provisional files now (S-settle-7). A request is a file in
`lock/.settle/`; each mount looks there often, and appends a line with its journal and the number of files that settled.
Who may not write there asks nobody. Files that are open or empty stay provisional.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from webarcfs.archive.additions.commit_additions import done, marks
from webarcfs.archive.additions.journal_log import (
    PROVISIONAL,
    LogReader,
    LogRecord,
    all_logs,
    journal_of,
    log_names,
    provisional_logs,
)
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import MAIN, Repository
from webarcfs.archive.model.errors import WebarcError

# == waiting ==========================================================================================================


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
    """Return the line that says what waits, for people."""
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


# == settle requests ==================================================================================================


#: Seconds for which the mounts are waited for.
LONGEST = 60.0
_BETWEEN_LOOKS = 0.05


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of a request: how many files settled, of which domains; and of how many mounts there was no answer."""

    number: int = 0
    domains: tuple[str, ...] = ()
    unanswered: int = 0

    @property
    def lines(self) -> list[str]:
        """What is reported to people."""
        lines = [f"{self.number} additions settled first"] if self.number else []
        if self.unanswered:
            lines.append(f"{self.unanswered} mounts did not answer: additions that have not settled there are left out")
        return lines


def settle_first(archive: Archive, seconds: float = LONGEST) -> Settled:
    """Let the provisional files of all mounts settle, and wait until they have."""
    try:
        journals, domains = _provisional(archive)
    except OSError:
        return Settled()  # a reader's copy, or a user who may not read the journal
    if not journals:
        return Settled()
    request = archive.settle_requests / secrets.token_hex(8)
    answers: dict[str, int] = {}
    try:
        request.parent.mkdir(exist_ok=True)
        request.touch()
        if os.geteuid() == 0:  # the mount is the archive's owner
            owner = archive.root.stat()
            for path in (request.parent, request):
                os.chown(path, owner.st_uid, owner.st_gid)
        until = time.monotonic() + seconds
        while (waited := journals & _journals(archive) - answers.keys()) and time.monotonic() < until:
            time.sleep(_BETWEEN_LOOKS)
            answers = dict(_answer(line) for line in request.read_text("ascii").splitlines(keepends=True))
    except OSError:
        return Settled(0, (), len(journals))
    finally:
        with contextlib.suppress(OSError):
            request.unlink(missing_ok=True)
            request.parent.rmdir()
    return Settled(sum(answers.values()), tuple(sorted(domains)), len(waited))


def settle_requests(archive: Archive) -> set[str]:
    """Return the requests that there are."""
    try:
        return set(os.listdir(archive.settle_requests))  # noqa: PTH208 # four times a second
    except OSError:
        return set()


def answer_request(archive: Archive, request: str, journal: str, number: int) -> None:
    """Answer a request for one mount."""
    with contextlib.suppress(OSError):  # nobody waits any more, or a user whose files are not ours
        fd = os.open(archive.settle_requests / request, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(fd, f"{journal} {number}\n".encode("ascii"))
        finally:
            os.close(fd)


def _answer(line: str) -> tuple[str, int]:
    journal, _, number = line.partition(" ")
    return journal, int(number)


def _journals(archive: Archive) -> set[str]:
    """Return the journals of provisional files."""
    return {journal_of(name.removesuffix(PROVISIONAL)) for name in log_names(archive, PROVISIONAL)}


def _provisional(archive: Archive) -> tuple[set[str], set[str]]:
    """Return the journals that have provisional files, and the domains of these."""
    journals: set[str] = set()
    domains: set[str] = set()
    for log in provisional_logs(archive):
        with contextlib.suppress(FileNotFoundError):
            if not is_held(log.path):
                continue  # its mount is gone
            records = log.left(log.more() or [])
            domains |= {record.addition.place.domain for record in records}
            journals |= {journal_of(log.id)} if records else set()
    return journals, domains
