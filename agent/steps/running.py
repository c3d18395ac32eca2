"""Runs the steps that were asked for: each under the lock of its record, each once, whoever is killed when.

The order makes a kill harmless: first the record, in one commit; then the folder of the step that comes next by itself;
then the step's own folder is removed. Who finds the folder of a step that the record has done already continues behind
it.

Short steps are here, too. `backup` follows a capture, or a release (fields 65 to 73). `capture` downloads a record that
was there before it; it is a job like any other. `index` brings the full-text index in step, and notes what it is
(fields 53 to 59).
"""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from agent.catalogue import recording, stepfolders
from agent.catalogue.recording import BEGUN, ask_next, counted_fields, person_of_process
from agent.catalogue.stepfolders import AskedStep
from agent.crawl import job_folder
from agent.crawl.job_folder import Definition, step_of
from agent.indexing import fulltext
from agent.jobs import crawljob
from agent.jobs.publishing import JobOutcome
from agent.maintenance import backups
from agent.steps.checking import check
from agent.steps.context import Clock, StepContext, StepResult
from agent.steps.converting import convert
from webarcfs import __version__
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import (
    BY_NUMBER,
    NO_WARRANT,
    OCCASION,
    SYSTEM,
    FieldNumber,
    Occasion,
    Record,
    RecordState,
    Warrant,
)
from webarcfs.archive.catalogue.workflow import (
    CHECKING,
    TABLE,
    Decision,
    WorkflowStep,
    apply_decision,
    judged,
    progress_of,
    with_status,
)
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.errors import Busy, Damaged, Interrupted, NotFound, StepRefused, UsageError, WebarcError
from webarcfs.archive.model.metadata import format_time, now
from webarcfs.archive.system import files
from webarcfs.archive.system.clocks import Progress, unseen

# == backing up =======================================================================================================


def back_up(step: StepContext) -> StepResult:
    """Bring the backup up to date. Raises UsageError where none is set up, WebarcError if it is not whole."""
    how = step.settings.backup
    if not how.to:
        raise UsageError(f"{step.archive.settings} names no folder for backups; write `[backup]` and `to = …` there")
    clock, target = Clock(), Path(how.to)
    copied = backups.backup(step.archive, target, step.progress, quick=True)
    if copied.failed:
        raise WebarcError("; ".join(copied.failed))
    texts: dict[int, str] = {
        FieldNumber.BACKUP_DATE: clock.begun,
        FieldNumber.BACKUP_PERSON: step.person,
        FieldNumber.BACKUP_DURATION: clock.told,
        FieldNumber.BACKUP_BYTES: str(_bytes(target)),
        FieldNumber.BACKUP_SOFTWARE: f"webarcfs {__version__}, git fetch",
        FieldNumber.BACKUP_PARAMETERS: "--quick: what the backup has already is not read",
        FieldNumber.MEDIUM: how.medium or "disk",
        FieldNumber.MEDIUM_URI: str(target.resolve()),
        FieldNumber.BACKUP_REMARKS: "; ".join(copied.mended),
    }
    return StepResult(texts)


def _bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            size += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 # half the time of a Path
    return size


# == capturing ========================================================================================================


def capture(
    archive: Archive,
    record: Record,
    stop: threading.Event,
    progress: Progress,
    *,
    by: str = "",
    warrant: Warrant = NO_WARRANT,
) -> JobOutcome | None:
    """Capture an open record for a person, or resume its job; None if that has ended.

    Raises Interrupted, UsageError, Busy.
    """
    settings, _ = settings_files.load(archive.settings)
    publication = next(
        (publication for publication in settings.publications if publication.name == record.publication), None
    )
    if publication is None:
        raise UsageError(f"webarc.toml has no publication {record.publication} any more")
    folder = archive.jobs / record.job if record.job else None
    if folder is None or not folder.is_dir():
        if record.job and (archive.reports / record.job).is_dir():
            return None  # its record is written by the next start
        folder = _begun(archive, record, publication, settings, by or SYSTEM, warrant)
    outcome = crawljob.run(
        archive,
        publication,
        settings.profiles.get(publication.profile or ""),
        instances=settings.crawl.max_instances,
        folder=folder,
        stop=stop,
        progress=progress,
    )
    if outcome.interrupted:
        raise Interrupted(f"the capture of {record.id} was stopped; it resumes from there")
    return outcome


def _begun(  # noqa: PLR0917 # of one caller
    archive: Archive, record: Record, publication: Publication, settings: Settings, by: str, warrant: Warrant
) -> Path:
    """Return the folder of the record's job, which is noted in the record; one that a killed process left is taken."""
    kind = record.publication + (OCCASION if record.id.endswith(OCCASION) else "")
    with job_folder.alone(archive, record.publication):
        left = (folder for folder in job_folder.folders_of(archive, kind) if _is_of(folder, record))
        folder = next(left, None) or job_folder.new_folder(archive, kind)
        asked = Definition(
            publication=publication,
            profile=settings.profiles.get(publication.profile or ""),
            instances=settings.crawl.max_instances,
            record=record.id,
            occasion=record.text(FieldNumber.OCCASION) if record.occasion is Occasion.OCCASION else "",
        )
        job_folder.save(folder, asked)
        catalogue = Catalogue(archive)
        current, blob = catalogue.read(record.id)
        begun = dataclasses.replace(current, job=folder.name).with_event(BEGUN, by, folder.name, warrant=warrant)
        catalogue.save([begun], by, f"{record.id}: begun", expected={record.id: blob})
    return folder


def _is_of(folder: Path, record: Record) -> bool:
    try:
        asked = job_folder.load(folder)
    except Damaged:
        return False
    return asked is not None and asked.record == record.id


# == indexing =========================================================================================================


def index(step: StepContext) -> StepResult:
    """Index a snapshot, if the indexer has not done so. Raises UsageError without the libraries, Interrupted."""
    clock = Clock()
    fulltext.bring_in_step(step.archive, step.stop.is_set, step.progress)
    from agent.indexing.fulltext_run import textless  # noqa: PLC0415 # it needs the libraries
    from webarcfs.search import generations  # noqa: PLC0415
    from webarcfs.search.index import STEMMERS, VERSION  # noqa: PLC0415

    reader = generations.opened(step.archive)
    terms = reader.count_terms()
    missing = sum(1 for _ in textless(step.archive, [part.tag for part in step.record.parts]))
    texts: dict[int, str] = {
        FieldNumber.INDEX_DATE: clock.begun,
        FieldNumber.INDEX_PERSON: step.person,
        FieldNumber.INDEX_DURATION: clock.told,
        FieldNumber.INDEXER: f"tantivy {version('tantivy')}",
        FieldNumber.INDEXER_PARAMETERS: "; ".join(
            (f"fields of version {VERSION}", f"words as written, and stems in {', '.join(sorted(STEMMERS))}")
        ),
        FieldNumber.TERMS: str(terms),
        FieldNumber.INDEX_REMARKS: f"{missing} documents of it have no text, or not all of it" if missing else "",
    }
    return StepResult(texts)


# == running ==========================================================================================================


_log = logging.getLogger("webarc")
#: In the folder of a step's report: what came of it.
_NOTE = "step.json"


def _count(step: StepContext) -> StepResult:
    return StepResult(counted_fields(step.archive, step.record, step.before))


#: What is done in each step; a capture is a job, and a release a decision.
_WORK: Mapping[WorkflowStep, Callable[[StepContext], StepResult]] = {
    WorkflowStep.COUNT: _count,
    WorkflowStep.CONVERT: convert,
    WorkflowStep.INDEX: index,
    WorkflowStep.CHECK: check,
    WorkflowStep.BACKUP: back_up,
}


def run_step(
    archive: Archive,
    name: str,
    *,
    stop: threading.Event | None = None,
    progress: Progress = unseen,
) -> Record | None:
    """Run the step of a folder; return its record as it is then, None if the step was done or is gone already.

    Raises Busy while another process works on the record, StepRefused if the record does not allow the step (then the
    folder goes), Interrupted, and what the step raises: then the folder stays for the next try.
    """
    record_id, step = step_of(name) or ("", "")
    if step == WorkflowStep.CAPTURE:
        asked = stepfolders.load(archive, name)
        return None if asked is None else _captured(archive, asked, stop, progress)
    with stepfolders.locked(archive, record_id):
        asked = stepfolders.load(archive, name)
        if asked is None:
            return None
        catalogue = Catalogue(archive)
        try:
            record, _ = catalogue.read(asked.record)
            is_done = stepfolders.times_done(record, asked.step) > asked.before
            if not is_done:
                record = _done(_How(archive, stop or threading.Event(), progress), catalogue, record, asked)
        except (StepRefused, NotFound):
            stepfolders.done(archive, name)
            raise
        ask_next(archive, record)
        stepfolders.done(archive, name)
    return None if is_done else record


def run_waiting(
    archive: Archive, record: str, *, stop: threading.Event | None = None, progress: Progress = unseen
) -> list[str]:
    """Run the steps of a record that wait, and those that come by themselves; return a line for each failure.

    For commands, where no agent runs. Raises Busy, Interrupted.
    """
    failed: set[str] = set()
    lines = []
    while name := next((step_name for step_name in _of(archive, record) if step_name not in failed), None):
        try:
            run_step(archive, name, stop=stop, progress=progress)
        except (Busy, NotFound):
            raise
        except WebarcError as error:
            failed.add(name)
            lines.append(f"{name.removeprefix('step-')}: {error}")
            if (archive.jobs / name).is_dir():
                stepfolders.failed(archive, name, str(error))
    return lines


def _of(archive: Archive, record: str) -> list[str]:
    return [step_name for step_name in stepfolders.waiting(archive) if (step_of(step_name) or ("",))[0] == record]


def _captured(archive: Archive, asked: AskedStep, stop: threading.Event | None, progress: Progress) -> Record | None:
    record, _ = Catalogue(archive).read(asked.record)
    if record.state is RecordState.OPEN:
        capture(archive, record, stop or threading.Event(), progress, by=asked.by, warrant=asked.warrant)
        record, _ = Catalogue(archive).read(asked.record)
    stepfolders.done(archive, asked.folder)
    return record


@dataclass(frozen=True)
class _How:
    archive: Archive
    stop: threading.Event
    progress: Progress


def _done(how: _How, catalogue: Catalogue, record: Record, asked: AskedStep) -> Record:
    """Do a step, and return the record with what came of it, as it was saved."""
    settings = recording.settings_now(how.archive)
    publication = recording.publication_of(how.archive, record, settings)
    way = recording.way_of(how.archive, publication, settings, record.release)
    verdict = judged(asked.step, progress_of(record), way, again=asked.again)
    if not verdict.is_allowed:
        raise StepRefused(f"{record.id}: {verdict.refused}")
    who = asked.by or SYSTEM
    if asked.step is WorkflowStep.RELEASE:
        return _saved(catalogue, record, asked, lambda current: apply_decision(current, Decision.RELEASE, who, ""))
    context = StepContext(
        archive=how.archive,
        asked=asked,
        record=record,
        publication=publication,
        settings=settings,
        way=way,
        person=asked.by or person_of_process(),
        before=catalogue.newest(record.publication, record.id),
        stop=how.stop,
        progress=how.progress,
    )
    noted = _noted(context)
    result = _WORK[asked.step](context)
    _note(context, result)
    event = CHECKING if result.waits else TABLE[asked.step].event
    state = None if result.waits else verdict.state

    def changed(current: Record) -> Record:
        texts = {
            number: text
            for number, text in result.texts.items()
            if text or not BY_NUMBER[number].is_remark or current.text(number) == noted.get(BY_NUMBER[number].name)
        }
        filled = current.with_values(texts, who, now())
        leads = state if current.state is record.state else None
        return filled.with_event(event, who, result.remark, leads, warrant=asked.warrant)

    return _saved(catalogue, record, asked, changed)


def _noted(step: StepContext) -> Mapping[str, str]:
    """Return the fields by name that the step filled when it was last done: other remarks are of people, and stay."""
    try:
        noted = files.read_json(_folder(step) / _NOTE) or {}
    except Damaged:
        return {}
    return dict(noted.get("fields") or {})


def _folder(step: StepContext) -> Path:
    return step.archive.reports / step.record.job_name / str(step.asked.step)


def _note(step: StepContext, result: StepResult) -> None:
    """Write what came of a step beside its report, for people who look for it without the catalogue."""
    folder = _folder(step)
    folder.mkdir(parents=True, exist_ok=True)
    fields = {BY_NUMBER[number].name: text for number, text in sorted(result.texts.items()) if text}
    note = {"record": step.record.id, "step": str(step.asked.step), "asked": step.asked.asked, "by": step.person}
    note |= {"finished": format_time(now()), "remark": result.remark}
    files.write_json(folder / _NOTE, {**note, "fields": fields})


def _saved(catalogue: Catalogue, record: Record, asked: AskedStep, change: Callable[[Record], Record]) -> Record:
    """Put a step's result into a record, which people may edit meanwhile."""
    changed = catalogue.change(
        record.id,
        lambda current: with_status(change(current), SYSTEM, now()),
        asked.by or SYSTEM,
        lambda _: str(asked.step),
    )
    _log.info("%s: %s, now %s", record.id, changed.events[-1].what, changed.state)
    return changed
