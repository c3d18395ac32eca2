"""An item: one run of a publication, its state and its progress, stored as `item.json` in the job's folder.

The job writes it, `status` and the scheduler read it; a finished job's item is in its report. The states are
Tarântula's: an item waits until its base document is fetched, collects, converts (here: passes the pipeline), and is
archived. An item that exceeds its time is interrupted and keeps its documents. Only `load`, `reserve` and the `save`
functions access files.

A failure may be temporary: a full disk, lack of memory, a lock held by git. So a failed job is tried again soon, then
after growing pauses, and in any case when its publication is due. A job whose process is killed each time may harm the
machine; after MOST_WITH_KILLS failures it waits until its publication is due. The item stores the count: it survives a
restart.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import format_time, parse_time
from webarcfs.archive.system import files
from webarcfs.archive.system.processes import Process

# == item =============================================================================================================


FILE = "item.json"
#: A file that is removed to make room for the item on a full disk, and its size in bytes.
RESERVE = ".reserve"
_RESERVED = 8192
#: Version of item.json and definition.json; a job's folder of another version is left unchanged.
VERSION = 1


class Phase(StrEnum):
    """Tarântula's states (figure 3.7), and `failed` for errors of the system, which that figure does not have."""

    WAITING = "waiting"
    COLLECTING = "collecting"
    CONVERTING = "converting"
    ARCHIVED = "archived"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Hold(StrEnum):
    """Why a job keeps what it has, and waits for an order."""

    PAUSED = "paused"
    DEADLINE = "deadline"


#: States in which a process works on the item.
AT_WORK = frozenset({Phase.WAITING, Phase.COLLECTING, Phase.CONVERTING})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """The fields of item.json. Times are `yyyy-mm-ddThh:mm:ss` CET; `urls` counts by state of the frontier."""

    job: str
    publication: str
    state: Phase = Phase.WAITING
    due: str = ""
    begun: str = ""
    attempted: str = ""  # the start of its last process
    updated: str = ""
    stage: str = ""
    done: int = 0
    known: int = 0
    a_second: float = 0.0  # recent increase of `done` per second; 0: not known yet
    left: int | None = None  # seconds until `known` is done at this speed; None: not known
    urls: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    documents: int = 0
    complete: bool | None = None
    warnings: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    reason: str = ""
    failures: int = 0  # number of failures in a row
    again: str = ""  # time of its next try; empty: when its publication is due
    latest_end: str = ""  # its deadline
    held: str = ""  # why it fetches nothing until a person decides about it (`Hold`); empty: it is not held
    orders: int = 0  # number of the last order that it took
    by_agent: bool = False  # whether the agent, not a command, started its last process
    pid: int = 0
    ticks: int = 0

    @property
    def runs(self) -> bool:
        """Whether a process works on it now."""
        return Process(self.pid, self.ticks).runs()

    def as_json(self) -> dict[str, Any]:
        """Return the content of item.json."""
        return {"version": VERSION, **dataclasses.asdict(self)}


def load(folder: Path) -> JobState | None:
    """Return the item in a job's (or report's) folder; None without one. Raises Damaged if it is of another version."""
    content = files.read_json(folder / FILE)
    if content is None:
        return None
    if content.pop("version", None) != VERSION:
        raise Damaged(f"{folder} is of another version of webarcfs; it is left alone, finish or remove it by hand")
    try:
        content["state"] = Phase(content["state"])
        content["warnings"], content["tags"] = tuple(content["warnings"]), tuple(content["tags"])
        return JobState(**content)
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{folder / FILE} is no item: {error}; it is left alone, finish or remove it by hand") from None


def save(folder: Path, item: JobState, *, durable: bool = True) -> None:
    """Write an item."""
    files.write_json(folder / FILE, item.as_json(), durable=durable)


def reserve(folder: Path) -> None:
    """Reserve disk space for the reason of a failure. Errors are ignored: only that reason would be lost."""
    path = folder / RESERVE
    with contextlib.suppress(OSError):
        if not path.exists() or path.stat().st_size < _RESERVED:
            path.write_bytes(bytes(_RESERVED))


def save_surely(folder: Path, item: JobState) -> None:
    """Write an item; on a full disk, use the reserve. Raises OSError."""
    try:
        save(folder, item)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        (folder / RESERVE).unlink(missing_ok=True)
        save(folder, item)
        reserve(folder)  # at once, before a log takes the space: another failure may follow


# == attempts, pure ===================================================================================================


#: Pauses after the first, second, … failure in a row; the last one after all further failures.
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (10, 60, 5 * 60, 30 * 60, 60 * 60))
#: Failures in a row after which a job whose process was killed waits until its publication is due.
MOST_WITH_KILLS = 10


def pause(failures: int) -> timedelta:
    """Return the pause after so many failures in a row."""
    return PAUSES[min(max(failures, 1), len(PAUSES)) - 1]


def failed(known: JobState, reason: str, at: datetime, *, killed: bool) -> JobState:
    """Return the item of a job whose process failed at `at`, with the time of its next try."""
    failures = known.failures + 1
    given_up = killed and failures >= MOST_WITH_KILLS
    again = "" if given_up else format_time(at + pause(failures))
    stamp = format_time(at)
    return dataclasses.replace(
        known, state=Phase.FAILED, reason=reason, updated=stamp, failures=failures, again=again, pid=0, ticks=0
    )


def is_due(known: JobState, at: datetime) -> bool:
    """Return whether a failed job is to be tried again now; a clock that was set back delays it at most one pause."""
    if known.state is not Phase.FAILED or not known.again:
        return False
    try:
        again = parse_time(known.again)
    except Damaged:
        return True
    return again <= at or again > at + PAUSES[-1]


def reason_of(error: BaseException, where: object = None) -> str:
    """Return the reason that an item gives for an error: the error, its file (else `where`), and the remedy."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = error.filename or where
        return f"the disk is full: {error.strerror}{f': {place}' if place else ''}; make room, and it resumes by itself"
    return f"{type(error).__name__}: {error}"
