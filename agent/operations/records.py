"""What people do with records of crawls: enter, edit, decide, attach files, ask for steps, look at pages.

Each change is one commit in the catalogue by the person. A form says which state it was made for: a decision that comes
late changes nothing. An edit names the blob that it was made from; if somebody else was faster, nothing is written.

Attached files, such as contracts and letters, are kept beside the record, with an event in it. What is taken away or
replaced stays in the catalogue's history. Readers see none of it.
"""

from __future__ import annotations

import dataclasses
import os
import unicodedata
from collections.abc import Callable, Mapping
from datetime import timedelta
from io import IOBase
from typing import Final

from agent.catalogue import recording, stepfolders
from agent.catalogue.recording import ask_next, catch_up_records
from agent.crawl.job_folder import step_folder
from agent.operations.ordering import reason_of
from agent.service import agent_status
from agent.steps import checking
from agent.steps.checking import Outcome
from webarcfs.archive.catalogue import workflow
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.record import (
    LARGEST_ATTACHMENT,
    OCCASION,
    SYSTEM,
    Attachment,
    FieldNumber,
    Occasion,
    Record,
    RecordState,
    Value,
)
from webarcfs.archive.catalogue.workflow import (
    TABLE,
    Decision,
    Progress,
    Right,
    Way,
    WorkflowStep,
    edited,
    judged,
    next_by_itself,
    next_of_person,
    progress_of,
    with_status,
)
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, ReferencePage, Settings
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Busy, NameTooLong, NotFound, NotPermitted, StepRefused, UsageError
from webarcfs.archive.model.metadata import compact_time, format_time, now
from webarcfs.archive.system.files import blob_id_of, size_of

# == records ==========================================================================================================


def catalogue_of(archive: Archive) -> Catalogue:
    """Return the catalogue, with a record for each capture; who may not write sees those that are there."""
    if directory.layout_of(archive.root) < directory.WITH_CATALOGUE:
        raise UsageError(
            f"{archive.root} is of an older webarcfs and has no records; `webarc-agent upgrade` makes them"
        )
    if os.access(archive.root, os.W_OK):
        catch_up_records(archive)
    return Catalogue(archive)


def next_command(archive: Archive, record: Record) -> str:
    """Return the command by which a person leads a crawl on; empty where it goes on by itself, or nothing waits."""
    way, at = recording.of_record(archive, record), progress_of(record)
    if next_by_itself(at, way) is not None:
        return ""
    following = next_of_person(at, way)
    if pages := looks(archive, record):
        names = ", ".join(repr(checking.name_of(page)) for page in pages)
        return f"webarc-agent record look {record.id} PAGE, for {names}"
    if following is WorkflowStep.RELEASE:
        return f"webarc-agent record release {record.id}" + ("" if at.passed else " --reason TEXT")
    return "" if following is None else f"webarc-agent record step {record.id} {following}"


def text_of_release(archive: Archive, record_id: str) -> str:
    """Return that readers do not see a crawl yet, and what leads on; empty where it is released, or published nothing.

    Raises NotFound.
    """
    record, _ = Catalogue(archive).read(record_id)
    if record.state not in workflow.HELD:
        return ""
    command = next_command(archive, record)
    rest = f"; next: {command}" if command else "; steps come first, and `webarc-agent record list` shows how far it is"
    return f"readers do not see this crawl until it is released{rest}"


# == deciding =========================================================================================================


def decide(
    archive: Archive,
    record_id: str,
    decision: Decision,
    acting: Acting,
    reason: str = "",
    *,
    expected: RecordState | None = None,
) -> Record:
    """Decide about a record; return it as it is then, with the step asked for that follows by itself.

    `expected` is the state that the person saw. Raises Busy if another process works on it, or it has another state
    than that; StepRefused if it does not allow the decision; NotFound.
    """
    reason = reason_of(reason, LONGEST_REASON)
    with stepfolders.locked(archive, record_id):
        catalogue = Catalogue(archive)
        record, blob = catalogue.read(record_id)
        if expected is not None and record.state is not expected:
            last = record.events[-1] if record.events else None
            who = f", by {last.by}" if last is not None else ""
            raise Busy(f"{record_id} is {record.state} by now, and not {expected} any more{who}; nothing was done")
        way = recording.of_record(archive, record)
        verdict = judged(WorkflowStep(decision), progress_of(record), way, person=acting.name, names=acting.names,
                         reason=reason)  # fmt: skip
        if not verdict.is_allowed:
            raise StepRefused(f"{record.id}: {verdict.refused}")
        warrant = acting.warrant(TABLE[WorkflowStep(decision)].right)
        changed = workflow.apply_decision(record, decision, acting.name, reason, warrant)
        changed = with_status(changed, acting.name, now())
        catalogue.save(
            [changed], acting.name, f"{record.id}: {TABLE[WorkflowStep(decision)].event}", expected={record.id: blob}
        )
        ask_next(archive, changed, way)
    return changed


def edit(
    archive: Archive, record_id: str, changes: Mapping[str, str], acting: Acting, expected: str | None = None
) -> Record:
    """Change fields of a record by the names of their elements; return it as it is then.

    `expected` is the blob from which it was edited. Raises Busy if the record has another one, NotFound, and what
    `workflow.edited` raises.
    """
    catalogue = Catalogue(archive)
    record, blob = catalogue.read(record_id)
    if expected is not None and blob != expected:
        raise Busy(f"the record {record_id} was changed meanwhile; look at it again")
    warrant = acting.warrant(Right.DESCRIBE)
    changed = workflow.edited(record, dict(changes), acting.name, acting.roles, warrant)
    if changed != record:
        message = f"{record.id}: edited {', '.join(changes)}"
        catalogue.save([changed], acting.name, message, expected={record.id: blob})
    return changed


# == attaching ========================================================================================================


#: Most attachments of a record, which has a line for each.
MOST: Final = 500
#: Longest reason of a decision, in characters.
LONGEST_REASON: Final = 4_000
#: Longest note, in characters.
LONGEST_NOTE: Final = 2_000


def name_of(text: str) -> str:
    """Return the name of an attachment in one spelling. Raises UsageError."""
    name = unicodedata.normalize("NFC", text).strip()
    try:
        arc_paths.check_attachment(name)
    except (NotPermitted, NameTooLong) as error:
        raise UsageError(str(error)) from None
    return name


def attach(
    archive: Archive,
    record_id: str,
    name: str,
    file: IOBase,
    acting: Acting,
    *,
    note: str = "",
    is_replacing: bool = False,
) -> Record:
    """Keep a whole file beside a record; return the record as it is then.

    The same bytes under the same name change nothing, but for a note. Raises UsageError for other bytes under a name
    that is taken, unless `is_replacing`, for a file that is too large, and for a name that no file may have; NotFound
    and Busy.
    """
    name, note = name_of(name), note.strip()
    size = size_of(file)
    if size > LARGEST_ATTACHMENT:
        most = f"{LARGEST_ATTACHMENT // 10**6} MB"
        raise UsageError(f"{name!r} has {size} bytes; a file that is attached to a record has {most} at most")
    if len(note) > LONGEST_NOTE:
        raise UsageError(f"a note has {LONGEST_NOTE} characters at most")
    catalogue = Catalogue(archive)
    blob = blob_id_of(file)

    def changed(record: Record) -> Record:
        earlier = record.attachment(name)
        is_same = earlier is not None and catalogue.attachment(record.id, name)[0] == blob
        if earlier is not None and is_same and note in ("", earlier.note):
            return record
        if earlier is not None and not is_same and not is_replacing:
            raise UsageError(
                f"{record.id} has another file {name!r}; give yours another name, or replace it (--replace)"
            )
        if earlier is None and len(record.attachments) >= MOST:
            raise UsageError(f"{record.id} has {MOST} attachments, which is all that a record can have")
        if not is_same and catalogue.write_file(file) != blob:
            raise Busy(f"{name!r} changed while it was read; nothing was attached")
        attachment = Attachment(name, size, acting.name, now(), note or (earlier.note if earlier is not None else ""))
        event = "attached" if earlier is None else "noted" if is_same else "replaced"
        attached, warrant = record.with_attachment(name, attachment), acting.warrant(Right.DESCRIBE)
        return attached.with_event(event, acting.name, _told(name, note), warrant=warrant)

    return _saved(catalogue, record_id, changed, acting, {name: blob})


def detach(archive: Archive, record_id: str, name: str, acting: Acting, reason: str) -> Record:
    """Take an attachment away from a record, for a reason; return the record as it is then. Raises NotFound, Busy."""
    name, reason = unicodedata.normalize("NFC", name).strip(), reason_of(reason, LONGEST_REASON)
    if not reason:
        raise UsageError("to take an attachment away needs a reason")

    def changed(record: Record) -> Record:
        if record.attachment(name) is None:
            raise NotFound(f"{record.id} has no attachment {name!r}; `webarc-agent record attachments` lists them")
        left, warrant = record.with_attachment(name, None), acting.warrant(Right.DESCRIBE)
        return left.with_event("detached", acting.name, _told(name, reason), warrant=warrant)

    return _saved(Catalogue(archive), record_id, changed, acting, {name: None})


def _told(name: str, text: str) -> str:
    return f"{name}: {text}" if text else name


def _saved(
    catalogue: Catalogue,
    record_id: str,
    change: Callable[[Record], Record],
    acting: Acting,
    files: dict[str, str | None],
) -> Record:
    attached = {(record_id, name): blob for name, blob in files.items()}
    return catalogue.change(
        record_id, change, acting.name, lambda record: f"{record.events[-1].what} {', '.join(files)}", attached=attached
    )


# == stepping =========================================================================================================


def must_allow(
    record: Record, step: WorkflowStep, way: Way, acting: Acting, *, again: bool = False, is_locked: bool = False
) -> None:
    """Raises StepRefused if a record does not allow a step now."""
    at: Progress = progress_of(record, is_locked=is_locked)
    verdict = judged(step, at, way, acting.rights, person=acting.name, names=acting.names, again=again)
    if not verdict.is_allowed:
        raise StepRefused(f"{record.id}: {verdict.refused}")


def ask(archive: Archive, record_id: str, step: WorkflowStep, acting: Acting, *, again: bool = False) -> str:
    """Ask for a step, durably; return the name of its folder. The agent takes it, or a command where none runs.

    Raises StepRefused if the record does not allow it, Busy if it was asked for already, NotFound.
    """
    record, _ = Catalogue(archive).read(record_id)
    folder = step_folder(record.id, step)
    way = recording.of_record(archive, record)
    must_allow(record, step, way, acting, again=again, is_locked=stepfolders.is_locked(archive, record.id))
    try:
        warrant = acting.warrant(TABLE[step].right)
        stepfolders.ask(archive, record, step, by=acting.name, again=again, warrant=warrant)
    except Busy:
        if stepfolders.failure(archive, folder) is None and agent_status.running(archive) is not None:
            raise
        stepfolders.forgive(archive, folder)  # it failed before, or nobody is there to run it
    return folder


def looks(archive: Archive, record: Record) -> list[ReferencePage]:
    """Return the reference pages of a snapshot that wait for a look."""
    return checking.waiting(record, recording.publication_of(archive, record, recording.settings_now(archive)))


def look(
    archive: Archive, record_id: str, page: str, acting: Acting, *, is_good: bool = True, remark: str = ""
) -> Record:
    """Keep what a look at a reference page showed; when all were looked at, the snapshot is checked.

    Raises StepRefused for a page that waits for none, Busy, NotFound.
    """
    catalogue = Catalogue(archive)
    with stepfolders.locked(archive, record_id):
        record, blob = catalogue.read(record_id)
        waiting = looks(archive, record)
        asked = next((reference_page for reference_page in waiting if checking.is_known(page, reference_page)), None)
        if asked is None:
            names = ", ".join(map(checking.name_of, waiting)) or "none"
            raise StepRefused(f"{record.id}: no page {page} waits for a look; there are: {names}")
        fault = "" if is_good else remark or "bad"
        outcome = Outcome(checking.name_of(asked), fault, remark if is_good else "")
        warrant = acting.warrant(TABLE[WorkflowStep.CHECK].right)
        changed = checking.looked(record, asked, waiting, acting.name, outcome, warrant)
        catalogue.save([changed], acting.name, f"{record.id}: looked at", expected={record.id: blob})
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
    with stepfolders.locked(archive, record_id):
        record, blob = catalogue.read(record_id)
        must_allow(record, WorkflowStep.MEASURE, recording.of_record(archive, record), acting)
        words = (taken.kind, taken.description, taken.software, taken.parameters)
        counted = record.text(FieldNumber.BYTES_CONVERTED) or record.text(FieldNumber.BYTES)
        size = counted if taken.size is None else str(taken.size)
        texts = (format_time(now()), acting.name, *words, size, taken.remarks)
        values = {
            number: Value(text, acting.name, now())
            for number, text in enumerate(texts, FieldNumber.MEASURE_DATE)
            if text
        }
        state = RecordState.CHECKED if taken.readers_see and record.state is RecordState.RELEASED else None
        changed = dataclasses.replace(record, measures=(*record.measures, values))
        rule = TABLE[WorkflowStep.MEASURE]
        changed = changed.with_event(rule.event, acting.name, taken.kind, state, warrant=acting.warrant(rule.right))
        catalogue.save([changed], acting.name, f"{record.id}: measure", expected={record.id: blob})
    return changed


# == entering =========================================================================================================


def publication_called(settings: Settings, name: str) -> Publication:
    """Return a publication of the settings. Raises UsageError, which says what there is."""
    publication = next((publication for publication in settings.publications if publication.name == name), None)
    if publication is None:
        names = ", ".join(publication.name for publication in settings.publications) or "none"
        raise UsageError(f"webarc.toml has no publication {name}; there are: {names}")
    return publication


def enter(
    archive: Archive,
    settings: Settings,
    publication: str,
    acting: Acting,
    *,
    occasion: Occasion = Occasion.REGULAR,
    reason: str = "",
    shift: bool = False,
    changes: Mapping[str, str] | None = None,
) -> Record:
    """Write the record of a capture that is to come, and return it.

    `reason` is why it is made beside the schedule; with `shift` the schedule continues from it. Raises UsageError for
    what does not go together, and what `workflow.edited` raises.
    """
    publication_settings = publication_called(settings, publication)
    why = reason = reason_of(reason, LONGEST_REASON)
    if (occasion is Occasion.OCCASION) != bool(why):
        raise UsageError("an occasion and its reason (--type occasion, --reason) go together")
    catalogue = Catalogue(archive)
    host = split(arc_path(publication_settings.named_urls[0]))[0] if publication_settings.named_urls else ""
    name = _free_name(archive, catalogue, publication + (OCCASION if why and not shift else ""))
    texts = {
        **recording.wanted(publication_settings, publication_settings.describe),
        **recording.how(publication_settings, settings.crawl.max_instances),
        FieldNumber.ID: name,
        FieldNumber.OCCASION: why or Occasion.REGULAR,
        FieldNumber.PERSON: acting.name,
        FieldNumber.PATH: f"{archive.content.name}/{host}.git",
        FieldNumber.DOMAIN: host,
        FieldNumber.STATUS: str(RecordState.OPEN),
    }
    record = Record(
        id=name,
        number=0,
        publication=publication,
        state=RecordState.OPEN,
        occasion=occasion,
        release=publication_settings.release,
        closed_for="" if publication_settings.closed_for is None else str(publication_settings.closed_for),
    )
    record = record.with_values(texts, SYSTEM, now())
    if changes:
        record = dataclasses.replace(edited(record, dict(changes), acting.name, acting.roles), events=())
    rule = TABLE[WorkflowStep.NEW]
    record = record.with_event(rule.event, acting.name, reason, RecordState.OPEN, warrant=acting.warrant(rule.right))
    (saved,) = catalogue.save([record], acting.name, f"{name}: new", expected={name: None})
    return saved


def _free_name(archive: Archive, catalogue: Catalogue, kind: str) -> str:
    at = now()
    while catalogue.has(name := f"{compact_time(at)}-{kind}") or (archive.jobs / name).exists():
        at += timedelta(seconds=1)
    return name


def cancel(archive: Archive, record_id: str, acting: Acting, reason: str = "") -> Record:
    """Give a capture up that has not begun; return its record. Raises Busy, NotFound, StepRefused."""
    catalogue, reason = Catalogue(archive), reason_of(reason, LONGEST_REASON)
    with stepfolders.locked(archive, record_id):
        record, blob = catalogue.read(record_id)
        must_allow(record, WorkflowStep.CANCEL, Way(), acting)
        rule = TABLE[WorkflowStep.CANCEL]
        warrant = acting.warrant(rule.right)
        changed = record.with_event(rule.event, acting.name, reason, RecordState.CANCELLED, warrant=warrant)
        texts: dict[int, str] = {FieldNumber.STATUS: str(RecordState.CANCELLED)}
        if reason:
            texts[FieldNumber.REMARKS] = "; ".join(filter(None, (record.text(FieldNumber.REMARKS), reason)))
        changed = changed.with_values(texts, acting.name, now())
        catalogue.save([changed], acting.name, f"{record.id}: cancelled", expected={record.id: blob})
        stepfolders.done(archive, step_folder(record.id, WorkflowStep.CAPTURE))
    return changed
