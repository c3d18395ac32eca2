"""An item: one run of a publication, its state and its progress, stored as `item.json` in the job's folder.

The job writes it, `status` and the scheduler read it; a finished job's item is in its report. The states are seed 3's:
an item waits until its base document is fetched, collects, converts (here: passes the pipeline), and is archived. An
item that exceeds its time is interrupted and keeps its documents. Only `load`, `reserve` and the `save` functions
access files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from agent.system import jsonfile
from agent.system.processid import Process
from webarcfs.archive.model.errors import Damaged

FILE = "item.json"
#: A file that is removed to make room for the item on a full disk, and its size in bytes.
RESERVE = ".reserve"
_RESERVED = 8192
#: Version of item.json and definition.json; a job's folder of another version is left unchanged.
VERSION = 1


class Phase(StrEnum):
    """The states of seed 3, figure 3.7, and `failed` for errors of the system, which that figure does not have."""

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
    held: str = ""  # why it fetches nothing until a person says how it goes on (`Hold`); empty: it is not held
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
    content = jsonfile.read(folder / FILE)
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
    jsonfile.write(folder / FILE, item.as_json(), durable=durable)


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
