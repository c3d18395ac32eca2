"""The folders of steps that were asked for, `jobs/step-<record>-<step>/`: a step is in there from the word to its end.

Whoever asks makes the folder, durably; whoever runs the step removes it. `before` is how often the record had that step
done when it was asked for: so a process that finds the folder after a kill sees whether the step was done. Steps,
decisions and patches hold the lock of their record.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from agent.crawl.job_folder import pause, step_folder, step_of
from webarcfs.archive.catalogue.record import NO_WARRANT, Record, Warrant
from webarcfs.archive.catalogue.workflow import CHECKING, TABLE, WorkflowStep
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Busy, Damaged
from webarcfs.archive.model.metadata import format_time, now, parse_time
from webarcfs.archive.system import files, locks
from webarcfs.archive.system.files import sync_folder

_FILE, _FAILED = "definition.json", "failed.json"
_KIND, _VERSION = "step", 1
#: Failures in a row after which a step waits for a person.
MOST_FAILURES = 5


class StepEnd(IntEnum):
    """Exit codes of the process of a step."""

    DONE = 0
    FAILED = 2
    STOPPED = 4
    ELSEWHERE = 5  # another process works on the record


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedStep:
    """A step that was asked for, and by whom; empty: it came by itself.

    `role` allowed it, `person` is the short name in people.toml.
    """

    record: str
    step: WorkflowStep
    by: str = ""
    again: bool = False
    before: int = 0
    asked: str = ""
    role: str = ""
    person: str = ""

    @property
    def warrant(self) -> Warrant:
        """What allowed the person to ask for it."""
        return Warrant(self.role, self.person)

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return step_folder(self.record, self.step)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a step failed, how often in a row, and when it is tried again; empty: when a person asks."""

    reason: str
    failures: int
    again: str

    def is_due(self) -> bool:
        """Return whether it is to be tried again now."""
        try:
            return bool(self.again) and parse_time(self.again) <= now()
        except Damaged:
            return True


def ask(
    archive: Archive,
    record: Record,
    step: WorkflowStep,
    *,
    by: str = "",
    again: bool = False,
    warrant: Warrant = NO_WARRANT,
) -> AskedStep:
    """Ask for a step, durably. Raises Busy if that was asked for already, and has not ended."""
    asked = AskedStep(
        record=record.id, step=step, by=by, again=again, before=times_done(record, step), asked=format_time(now()),
        role=warrant.role, person=warrant.person,
    )  # fmt: skip
    folder = archive.jobs / asked.folder
    scratch = archive.jobs / f".{asked.folder}.{os.getpid()}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    content = {"version": _VERSION, "kind": _KIND, **dataclasses.asdict(asked)}
    files.write_json(scratch / _FILE, content)
    try:
        scratch.rename(folder)
    except OSError:
        shutil.rmtree(scratch)
        if not folder.is_dir():
            raise
        raise Busy(f"the step {step} of {record.id} was asked for already, and has not ended") from None
    sync_folder(archive.jobs)
    return asked


def times_done(record: Record, step: WorkflowStep) -> int:
    """Return how often a record had a step done."""
    words = {TABLE[step].event} | ({CHECKING} if step is WorkflowStep.CHECK else set())
    return sum(event.what in words for event in record.events)


def waiting(archive: Archive) -> Iterator[str]:
    """Yield the names of the folders of steps, in order: those of one record in the order in which they come."""
    names = [path.name for path in archive.jobs.iterdir() if step_of(path.name) is not None]
    return iter(sorted(names, key=lambda name: ((step_of(name) or ("",))[0], _place(name))))


def _place(name: str) -> int:
    _, step = step_of(name) or ("", "")
    return list(WorkflowStep).index(WorkflowStep(step)) if step in set(WorkflowStep) else len(WorkflowStep)


def load(archive: Archive, name: str) -> AskedStep | None:
    """Return the step of a folder; None if it is gone. Raises Damaged for another version, or no step."""
    folder = archive.jobs / name
    content: dict[str, Any] | None = files.read_json(folder / _FILE)
    if content is None:
        return None
    if content.pop("version", None) != _VERSION or content.pop("kind", None) != _KIND:
        raise Damaged(f"{folder} is of another version of webarcfs; it is left alone, remove it by hand")
    try:
        content["step"] = WorkflowStep(content["step"])
        return AskedStep(**content)
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{folder / _FILE} is no step: {error}; it is left alone, remove it by hand") from None


def done(archive: Archive, name: str) -> None:
    """Remove the folder of a step that has ended."""
    folder = archive.jobs / name
    gone = archive.jobs / f".{name}"
    shutil.rmtree(gone, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def failure(archive: Archive, name: str) -> Failure | None:
    """Return the failure of a step; None if it did not fail."""
    try:
        content = files.read_json(archive.jobs / name / _FAILED)
        return None if content is None else Failure(**content)
    except (Damaged, TypeError):
        return None


def failed(archive: Archive, name: str, reason: str) -> Failure:
    """Note why a step failed. After a growing pause it is tried again, and not for ever."""
    earlier = failure(archive, name)
    count = 1 if earlier is None else earlier.failures + 1
    again = "" if count >= MOST_FAILURES else format_time(now() + pause(count))
    latest = Failure(reason, count, again)
    files.write_json(archive.jobs / name / _FAILED, dataclasses.asdict(latest))
    return latest


def forgive(archive: Archive, name: str) -> None:
    """Forget the failures of a step: a person asks for it."""
    (archive.jobs / name / _FAILED).unlink(missing_ok=True)


def folder_of(archive: Archive, asked: AskedStep) -> Path:
    """Return the folder of a step."""
    return archive.jobs / asked.folder


@contextmanager
def locked(archive: Archive, record: str) -> Iterator[None]:
    """Hold the lock of a record. Raises Busy if another process works on it."""
    busy = f"{record} is being worked on by another process; look again when that has ended"
    with locks.exclusive_or_busy(archive.record_lock(record), busy):
        yield


def is_locked(archive: Archive, record: str) -> bool:
    """Return whether a process works on a record now."""
    if not archive.record_lock(record).exists():
        return False
    with locks.if_free(archive.record_lock(record)) as free:
        return not free
