"""Asks for steps of snapshots, and keeps what persons did themselves: looks at pages, measures of preservation."""

from __future__ import annotations

import dataclasses

from agent.catalogue import stepfolders, ways
from agent.catalogue.keeping import ask_next
from agent.jobfolder.names import step_folder
from agent.service import agentlock
from agent.steps import checking, looking, running
from agent.steps.checking import Outcome
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.record import Record, State, Value
from webarcfs.archive.catalogue.steps import TABLE, Progress, Step, Way, judged, progress_of
from webarcfs.archive.catalogue.workflow import RIGHTS
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import ReferencePage
from webarcfs.archive.model.errors import Busy, StepRefused
from webarcfs.archive.model.metadata import format_time, now


def must_allow(
    found: Record, step: Step, way: Way, acting: Acting, *, again: bool = False, is_locked: bool = False
) -> None:
    """Raises StepRefused if a record does not allow a step now."""
    rights = None if acting.role is None else RIGHTS[acting.role]
    at: Progress = progress_of(found, is_locked=is_locked)
    verdict = judged(step, at, way, rights, person=acting.name, again=again)
    if not verdict.is_allowed:
        raise StepRefused(f"{found.id}: {verdict.refused}")


def ask(archive: Archive, record_id: str, step: Step, acting: Acting, *, again: bool = False) -> str:
    """Ask for a step, durably; return the name of its folder. The agent takes it, or a command where none runs.

    Raises StepRefused if the record does not allow it, Busy if it was asked for already, NotFound.
    """
    found, _ = Catalogue(archive).read(record_id)
    folder = step_folder(found.id, step)
    way = ways.of_record(archive, found)
    must_allow(found, step, way, acting, again=again, is_locked=running.is_locked(archive, found.id))
    try:
        stepfolders.ask(archive, found, step, by=acting.name, again=again)
    except Busy:
        if stepfolders.failure(archive, folder) is None and agentlock.running(archive) is not None:
            raise
        stepfolders.forgive(archive, folder)  # it failed before, or nobody is there to run it
    return folder


def looks(archive: Archive, found: Record) -> list[ReferencePage]:
    """Return the reference pages of a snapshot that wait for a look."""
    return looking.waiting(found, ways.publication_of(archive, found, ways.settings_now(archive)))


def look(
    archive: Archive, record_id: str, page: str, acting: Acting, *, is_good: bool = True, remark: str = ""
) -> Record:
    """Keep what a look at a reference page showed; when all were looked at, the snapshot is checked.

    Raises StepRefused for a page that waits for none, Busy, NotFound.
    """
    catalogue = Catalogue(archive)
    with running.locked(archive, record_id):
        found, blob = catalogue.read(record_id)
        waiting = looks(archive, found)
        asked = next((each for each in waiting if checking.is_known(page, each)), None)
        if asked is None:
            names = ", ".join(map(checking.name_of, waiting)) or "none"
            raise StepRefused(f"{found.id}: no page {page} waits for a look; there are: {names}")
        fault = "" if is_good else remark or "bad"
        outcome = Outcome(checking.name_of(asked), fault, remark if is_good else "")
        changed = looking.looked(found, asked, waiting, acting.name, outcome)
        catalogue.save([changed], acting.name, f"{found.id}: looked at", expected={found.id: blob})
        ask_next(archive, changed)
    return changed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure of preservation (fields 76 to 81). `readers_see`: the snapshot then waits for a new release."""

    kind: str
    description: str = ""
    software: str = ""
    parameters: str = ""
    size: int | None = None
    remarks: str = ""
    readers_see: bool = False


def measure(archive: Archive, record_id: str, taken: Measure, acting: Acting) -> Record:
    """Keep a measure that was taken on a snapshot. Raises StepRefused, Busy, NotFound."""
    catalogue = Catalogue(archive)
    with running.locked(archive, record_id):
        found, blob = catalogue.read(record_id)
        must_allow(found, Step.MEASURE, ways.of_record(archive, found), acting)
        words = (taken.kind, taken.description, taken.software, taken.parameters)
        counted = found.text(37) or found.text(22)
        size = counted if taken.size is None else str(taken.size)
        texts = (format_time(now()), acting.name, *words, size, taken.remarks)
        values = {74 + place: Value(text, acting.name, now()) for place, text in enumerate(texts) if text}
        state = State.CHECKED if taken.readers_see and found.state is State.RELEASED else None
        changed = dataclasses.replace(found, measures=(*found.measures, values))
        changed = changed.with_event(TABLE[Step.MEASURE].event, acting.name, taken.kind, state)
        catalogue.save([changed], acting.name, f"{found.id}: measure", expected={found.id: blob})
    return changed
