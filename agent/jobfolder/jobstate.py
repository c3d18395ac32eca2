"""An item: one run of a publication, its state and how far it is, as `item.json` in the job's folder tells it.

The job writes it, `status` and the scheduler read it; a finished job's is in its report. Seed 3's states: an item waits
until its base document is there, collects, converts (here: goes through the pipeline), and is archived; one that went
over its time is interrupted and keeps what it has. Pure but for `load` and `save`.
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
#: A file that is there to be removed where the disk is too full to say so otherwise, and its bytes.
RESERVE = ".reserve"
_RESERVED = 8192
#: Version of item.json and definition.json; a job's folder with another one is left alone.
VERSION = 1


class Phase(StrEnum):
    """Seed 3, figure 3.7; `failed` is the system's own trouble, which that figure does not have."""

    WAITING = "waiting"
    COLLECTING = "collecting"
    CONVERTING = "converting"
    ARCHIVED = "archived"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


#: States in which a process is at work on the item.
AT_WORK = frozenset({Phase.WAITING, Phase.COLLECTING, Phase.CONVERTING})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """The fields of item.json. Times are `yyyy-mm-ddThh:mm:ss` CET; `urls` counts by state of the frontier."""

    job: str
    publication: str
    state: Phase = Phase.WAITING
    due: str = ""
    begun: str = ""
    attempted: str = ""  # when its last process began
    updated: str = ""
    stage: str = ""
    done: int = 0
    known: int = 0
    a_second: float = 0.0  # how many of these were done in a second of late; 0: that cannot be told yet
    left: int | None = None  # seconds until the known ones are done at this speed, where that can be told
    urls: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    documents: int = 0
    complete: bool | None = None
    warnings: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    reason: str = ""
    failures: int = 0  # how often it failed in a row
    again: str = ""  # when it is tried again; empty: when its publication is due
    by_agent: bool = False  # whether its last process was the agent's, and no command's
    pid: int = 0
    ticks: int = 0

    @property
    def runs(self) -> bool:
        """Whether a process is at work on it now."""
        return Process(self.pid, self.ticks).runs()

    def as_json(self) -> dict[str, Any]:
        """What item.json holds."""
        return {"version": VERSION, **dataclasses.asdict(self)}


def load(folder: Path) -> JobState | None:
    """The item of a job's (or a report's) folder; None where it has none. Raises Damaged for one of another version."""
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
    """Write an item down."""
    jsonfile.write(folder / FILE, item.as_json(), durable=durable)


def reserve(folder: Path) -> None:
    """Keep room for a last word. It only saves the reason of a failure, so that it may fail."""
    path = folder / RESERVE
    with contextlib.suppress(OSError):
        if not path.exists() or path.stat().st_size < _RESERVED:
            path.write_bytes(bytes(_RESERVED))


def save_surely(folder: Path, item: JobState) -> None:
    """Write an item down, also where the disk is full, as far as there is a reserve. Raises OSError."""
    try:
        save(folder, item)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        (folder / RESERVE).unlink(missing_ok=True)
        save(folder, item)
        reserve(folder)  # at once, before a log takes the room: there may be more to say
