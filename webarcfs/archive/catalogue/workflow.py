"""The way of a snapshot: the decisions about its record, and its steps, as one table. Pure.

The decisions are release, rejection, withdrawal, discarding, and their way back. A decision needs a right, starts from
some states only, and leads to one. Visibility follows the state (`gate`).

The table says of each step when it may be taken, with which right, and where it leads. `judged` says whether a person
may take a step, `next_by_itself` which one comes without a decision. Released snapshots keep their state: what is done
with them afterwards fills fields (`done`), in the same order.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from webarcfs.archive.catalogue.record import (
    BY_NAME,
    NO_WARRANT,
    Edit,
    Event,
    Field,
    FieldNumber,
    Record,
    RecordState,
    Value,
    Warrant,
)
from webarcfs.archive.model.errors import Forbidden, UsageError
from webarcfs.archive.model.metadata import format_time, now

# == workflow, pure ===================================================================================================


class Right(StrEnum):
    """What a person may do."""

    CAPTURE = "capture"
    PROCESS = "process"
    DESCRIBE = "describe"
    REVIEW = "review"
    RELEASE = "release"
    WITHDRAW = "withdraw"  # also discard, withhold, and the rules of access
    PUBLICATIONS = "publications"  # also registers
    OPTIONS = "options"
    PEOPLE = "people"
    ADD = "add"


class Role(StrEnum):
    """What a person is. A person may have several roles, whose rights add up."""

    ARCHIVIST = "archivist"
    ADMINISTRATOR = "administrator"
    REVIEWER = "reviewer"
    CURATOR = "curator"


_ARCHIVIST = {Right.CAPTURE, Right.PROCESS, Right.DESCRIBE, Right.REVIEW, Right.RELEASE, Right.WITHDRAW}
RIGHTS: dict[Role, frozenset[Right]] = {
    Role.ARCHIVIST: frozenset(_ARCHIVIST),
    Role.ADMINISTRATOR: frozenset({Right.DESCRIBE, Right.PUBLICATIONS, Right.OPTIONS, Right.PEOPLE}),
    Role.REVIEWER: frozenset({Right.REVIEW}),
    Role.CURATOR: frozenset(set(Right) - {Right.PEOPLE}),
}
#: What a right is for, as messages say it: "to … needs the role …".
DEEDS: dict[Right, str] = {
    Right.CAPTURE: "start and control crawls",
    Right.PROCESS: "process crawls",
    Right.DESCRIBE: "describe crawls",
    Right.REVIEW: "check and reject crawls",
    Right.RELEASE: "release crawls",
    Right.WITHDRAW: "withdraw crawls and withhold pages",
    Right.PUBLICATIONS: "change publications and registers",
    Right.OPTIONS: "change options",
    Right.PEOPLE: "change people",
    Right.ADD: "add to the archive",
}


def in_order(roles: Collection[Role]) -> tuple[Role, ...]:
    """Return roles without repetition, in the order of `Role`."""
    return tuple(role for role in Role if role in roles)


def rights_of(roles: Iterable[Role]) -> frozenset[Right]:
    """Return the rights of roles together."""
    return frozenset().union(*(RIGHTS[role] for role in roles))


def roles_with(right: Right) -> tuple[Role, ...]:
    """Return the roles that have a right."""
    return tuple(role for role in Role if right in RIGHTS[role])


def in_row(words: Sequence[str], last: str) -> str:
    """Return words in a row: `archivist, reviewer or curator`, where `last` is `or`."""
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if words[1:] else "".join(words)


def role_for(right: Right, roles: Collection[Role]) -> Role | None:
    """Return the first of some roles that has a right; None if none of them has it."""
    return next((role for role in in_order(roles) if right in RIGHTS[role]), None)


def folded(name: str) -> str:
    """Return a name for comparisons of persons: case, spacing and Unicode's spellings make no difference."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


class Decision(StrEnum):
    """A decision about a record."""

    RELEASE = "release"
    REJECT = "reject"
    REOPEN = "reopen"
    WITHDRAW = "withdraw"
    DISCARD = "discard"
    RESTORE = "restore"


#: What can be edited beside the fields.
ABOUT = ("title", "language", "access")


def edited(
    record: Record,
    changes: dict[str, str],
    person: str,
    roles: Collection[Role] | None,
    warrant: Warrant = NO_WARRANT,
) -> Record:
    """Return a record with fields changed, by the names of their elements; an empty text takes a value away.

    `roles` is None where an archive has no people: then everybody may edit what any role may. Raises UsageError for a
    field that does not exist, Forbidden for one that may not be edited.
    """
    result = record
    for name, text in changes.items():
        if name in ABOUT:
            value = Value(text, person, now())
            about = {element: getattr(result, element) for element in ABOUT} | {name: value}
            result = replace(result, title=about["title"], language=about["language"], access=about["access"])
            continue
        field = BY_NAME.get(name)
        if field is None or field.repeats:
            raise UsageError(f"there is no field {name} to edit; `webarc-agent record fields` lists them")
        if not may_edit(field, roles, is_fetched=bool(record.parts)):
            raise Forbidden(_not_to_edit(field, roles, is_fetched=bool(record.parts)))
        result = result.with_values({field.number: text}, person, now())
    names = ", ".join(changes)
    return result if result == record else result.with_event("edited", person, names, warrant=warrant)


def may_edit(field: Field, roles: Collection[Role] | None, *, is_fetched: bool) -> bool:
    """Return whether a person with these roles (None: any) may edit a field, before or after the download."""
    has = set(Role) if roles is None else set(roles)
    if field.administrator and has & {Role.ADMINISTRATOR, Role.CURATOR}:
        return True
    is_open = field.archivist is Edit.ALWAYS or (field.archivist is Edit.UNTIL_FETCHED and not is_fetched)
    return is_open and bool(has & {Role.ARCHIVIST, Role.CURATOR})


def _not_to_edit(field: Field, roles: Collection[Role] | None, *, is_fetched: bool) -> str:
    """Return why a field may not be edited, and the roles that could."""
    who = "people" if roles is None else f"the role {in_row(in_order(roles), 'or')}"
    able = [role for role in Role if may_edit(field, {role}, is_fetched=is_fetched)]
    rest = f"; the role {in_row(able, 'or')} may" if able else "; no role may"
    return f"the field {field.name} ({field.number}) is not for {who} to edit{rest}"


# == steps, pure ======================================================================================================


class WorkflowStep(StrEnum):
    """What can be done with a snapshot."""

    NEW = "new"
    CANCEL = "cancel"
    CAPTURE = "capture"
    COUNT = "count"
    CONVERT = "convert"
    INDEX = "index"
    CHECK = "check"
    RELEASE = "release"
    REJECT = "reject"
    REOPEN = "reopen"
    WITHDRAW = "withdraw"
    DISCARD = "discard"
    RESTORE = "restore"
    BACKUP = "backup"
    MEASURE = "measure"


#: The steps that lead from state to state, and the state that each leads to, in their order.
ORDER: dict[WorkflowStep, RecordState] = {
    WorkflowStep.COUNT: RecordState.COUNTED,
    WorkflowStep.CONVERT: RecordState.CONVERTED,
    WorkflowStep.INDEX: RecordState.INDEXED,
    WorkflowStep.CHECK: RecordState.CHECKED,
}
_POSITIONS = (RecordState.CAPTURED, *ORDER.values())
#: The states in which a snapshot waits for a release.
HELD = frozenset(_POSITIONS)
_FETCHED = HELD | {RecordState.RELEASED}
#: The event of a check that waits for persons to look at pages, and of a person who looked at one.
CHECKING, LOOKED = "checking", "looked"
#: The event of a crawl that was asked again for what it had not got: what was done before it counts no more.
PATCHED = "patched"
#: Events that do not end a check's wait for persons.
_BESIDE = {LOOKED, "edited", "backup", "measure", "attached", "replaced", "noted", "detached"}


@dataclass(frozen=True, slots=True)
class StepRule:
    """A row of the table: the right, the states to start from, the state that it leads to (None: as it was).

    `event` is what the record says of it, `needs_reason` whether a person has to say why.
    """

    right: Right
    starts: frozenset[RecordState]
    leads: RecordState | None
    event: str
    needs_reason: bool = False


#: `new` starts from nothing. The steps of ORDER start where the ones before them that are set up are done.
TABLE: dict[WorkflowStep, StepRule] = {
    WorkflowStep.NEW: StepRule(Right.CAPTURE, frozenset(), RecordState.OPEN, "new"),
    WorkflowStep.CANCEL: StepRule(Right.CAPTURE, frozenset({RecordState.OPEN}), RecordState.CANCELLED, "cancelled"),
    WorkflowStep.CAPTURE: StepRule(Right.CAPTURE, frozenset({RecordState.OPEN}), RecordState.CAPTURED, "captured"),
    WorkflowStep.COUNT: StepRule(Right.PROCESS, _FETCHED, RecordState.COUNTED, "counted"),
    WorkflowStep.CONVERT: StepRule(Right.PROCESS, _FETCHED, RecordState.CONVERTED, "converted"),
    WorkflowStep.INDEX: StepRule(Right.PROCESS, _FETCHED, RecordState.INDEXED, "indexed"),
    WorkflowStep.CHECK: StepRule(Right.REVIEW, _FETCHED, RecordState.CHECKED, "checked"),
    WorkflowStep.RELEASE: StepRule(Right.RELEASE, HELD, RecordState.RELEASED, "released"),
    WorkflowStep.REJECT: StepRule(Right.REVIEW, HELD, RecordState.REJECTED, "rejected", needs_reason=True),
    WorkflowStep.REOPEN: StepRule(Right.REVIEW, frozenset({RecordState.REJECTED}), None, "reopened"),
    WorkflowStep.WITHDRAW: StepRule(
        Right.WITHDRAW, frozenset({RecordState.RELEASED}), RecordState.CHECKED, "withdrawn", needs_reason=True
    ),
    WorkflowStep.DISCARD: StepRule(
        Right.WITHDRAW,
        HELD | {RecordState.RELEASED, RecordState.REJECTED},
        RecordState.DISCARDED,
        "discarded",
        needs_reason=True,
    ),
    WorkflowStep.RESTORE: StepRule(Right.WITHDRAW, frozenset({RecordState.DISCARDED}), None, "restored"),
    WorkflowStep.BACKUP: StepRule(Right.PROCESS, _FETCHED, None, "backup"),
    WorkflowStep.MEASURE: StepRule(Right.PROCESS, _FETCHED, None, "measure"),
}
#: The steps that run as jobs of their own.
RUNS = (WorkflowStep.CAPTURE, *ORDER, WorkflowStep.BACKUP)


@dataclass(frozen=True, slots=True)
class Way:
    """How the snapshots of a publication go: the steps of ORDER that are set up, and who decides.

    `release` is the publication's word for it; `step_by_step`: each step waits for a person; `two_persons`: who
    releases has not checked; `backs_up`: a backup follows a capture, or with `backs_up_late` a release.
    """

    set_up: frozenset[WorkflowStep] = frozenset()
    release: str = "automatic"
    step_by_step: bool = False
    two_persons: bool = False
    backs_up: bool = False
    backs_up_late: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a snapshot is: its state, the steps that are done, and what decisions need to know of it."""

    state: RecordState
    done: frozenset[WorkflowStep] = frozenset()
    is_complete: bool = True
    is_locked: bool = False
    is_fetching: bool = False
    looks_wanted: bool = False  # the check ran, and waits for persons
    passed: bool = True  # the last check found nothing
    checkers: frozenset[str] = frozenset()  # the names of the persons who checked, folded
    is_taken_back: bool = False  # a person withdrew, rejected or discarded it: nothing releases it by itself


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """Whether a step may be taken: `refused` says why not, else it is empty and `state` is what follows."""

    refused: str = ""
    state: RecordState | None = None

    @property
    def is_allowed(self) -> bool:
        """Whether it may be taken."""
        return not self.refused


def progress_of(record: Record, *, is_locked: bool = False) -> Progress:
    """Return where a record is. What was done before the last capture, or before it went back, counts no more."""
    done = {WorkflowStep.COUNT}
    wanted, passed, checkers = False, True, set[str]()
    taken_back = {TABLE[step].event for step in (WorkflowStep.WITHDRAW, WorkflowStep.REJECT, WorkflowStep.DISCARD)}
    for event in record.events:
        wanted = event.what == CHECKING or (wanted and event.what in _BESIDE)
        done = _after(done, event)
        if event.what in (CHECKING, TABLE[WorkflowStep.CHECK].event):
            passed = not event.text
            checkers = (checkers if event.what != CHECKING else set()) | _names(event)
        elif event.what == LOOKED:
            checkers |= _names(event)
    return Progress(
        state=record.state,
        done=frozenset(done),
        is_complete=record.complete,
        is_locked=is_locked,
        is_fetching=record.state is RecordState.OPEN and bool(record.job),
        looks_wanted=wanted,
        passed=passed,
        checkers=frozenset(checkers),
        is_taken_back=any(event.what in taken_back for event in record.events),
    )


def _names(event: Event) -> set[str]:
    """Return the names of the person of an event, folded."""
    return {folded(name) for name in (event.by, event.warrant.person) if name}


def _after(done: set[WorkflowStep], event: Event) -> set[WorkflowStep]:
    """Return the steps that are done after an event."""
    if event.what in ("captured", PATCHED):
        return set() if event.state is RecordState.CAPTURED else {WorkflowStep.COUNT}
    for step in (*ORDER, WorkflowStep.BACKUP):
        if event.what == TABLE[step].event:
            later = _later(step) if event.state is not None else frozenset()
            return (done | {step}) - later
    return done


def _later(step: WorkflowStep) -> frozenset[WorkflowStep]:
    steps = list(ORDER)
    return frozenset(steps[steps.index(step) + 1 :]) if step in ORDER else frozenset()


def judged(  # noqa: PLR0911 # a reason each
    step: WorkflowStep,
    at: Progress,
    way: Way,
    rights: Iterable[Right] | None = None,
    *,
    person: str = "",
    names: Collection[str] = (),
    reason: str = "",
    again: bool = False,
) -> StepVerdict:
    """Return whether a person with these rights (None: all) may take a step now, and the state that follows.

    `names` are all names of the person. `again` asks for a step that is done already: what follows it in ORDER is then
    due once more.
    """
    rule = TABLE[step]
    if rights is not None and rule.right not in rights:
        needed = in_row(roles_with(rule.right), "or")
        return StepVerdict(f"to {DEEDS[rule.right]} one needs the role {needed}")
    if at.is_locked:
        return StepVerdict("it is being worked on by another process; look again when that has ended")
    if step is WorkflowStep.NEW:
        return StepVerdict(state=RecordState.OPEN)
    if at.state not in rule.starts:
        return StepVerdict(_out_of_state(step, at.state))
    if at.is_fetching and step in (WorkflowStep.CANCEL, WorkflowStep.CAPTURE):
        return StepVerdict("its capture has begun already")
    if step in ORDER:
        return _processed(step, at, way, again=again)
    if step is WorkflowStep.RELEASE:
        return _released(at, way, person, {*names, person}, reason)
    missing = _missing_reason(step, reason)
    return StepVerdict(missing) if missing else StepVerdict(state=rule.leads)


def _out_of_state(step: WorkflowStep, state: RecordState) -> str:
    starts = " or ".join(start for start in RecordState if start in TABLE[step].starts)
    return f"it is {state}; to {step} it, it must be {starts}"


def _missing_reason(step: WorkflowStep, reason: str) -> str:
    return f"to {step} a snapshot needs a reason" if TABLE[step].needs_reason and not reason.strip() else ""


def apply_decision(
    record: Record, decision: Decision, person: str, reason: str, warrant: Warrant = NO_WARRANT
) -> Record:
    """Return a record after a decision. Raises UsageError in the wrong state, or without a reason where one is due."""
    step = WorkflowStep(decision)
    rule = TABLE[step]
    if record.state not in rule.starts:
        raise UsageError(f"{record.id}: {_out_of_state(step, record.state)}")
    if missing := _missing_reason(step, reason):
        raise UsageError(f"{record.id}: {missing}")
    state = rule.leads or _state_before(record, decision)
    changed = record.with_event(rule.event, person, reason, state, warrant=warrant)
    texts: dict[int, str] = {}
    if decision is Decision.RELEASE:
        texts = {FieldNumber.RELEASE_DATE: format_time(now()), FieldNumber.RELEASE_PERSON: person}
    if reason:
        texts[FieldNumber.RELEASE_REMARKS] = f"{rule.event}: {reason}"
    return changed.with_values(texts, person, now())


def _state_before(record: Record, decision: Decision) -> RecordState:
    """Return the state to which a decision leads back."""
    passed_over = {None, RecordState.DISCARDED} | ({RecordState.REJECTED} if decision is Decision.REOPEN else set())
    states = [event.state for event in record.events if event.state not in passed_over]
    return next((state for state in reversed(states) if state is not None), RecordState.CAPTURED)


def _processed(step: WorkflowStep, at: Progress, way: Way, *, again: bool) -> StepVerdict:
    """Judge a step of ORDER."""
    is_done = step in at.done if at.state is RecordState.RELEASED else _position(at.state) >= _position(ORDER[step])
    if is_done and not again:
        return StepVerdict(f"it is {TABLE[step].event} already; --again does it once more")
    if not is_done and again:
        return StepVerdict(f"it is not {TABLE[step].event} yet; leave --again out")
    missing = _missing(step, at, way)
    if missing is not None:
        return StepVerdict(f"it is {at.state}; the step {missing} comes first")
    return StepVerdict(state=None if at.state is RecordState.RELEASED else ORDER[step])


def _missing(step: WorkflowStep | None, at: Progress, way: Way) -> WorkflowStep | None:
    """Return the first step that is set up, comes before another one (None: all), and is not done."""
    for earlier_step, leads in ORDER.items():
        if earlier_step is step:
            return None
        is_done = (
            earlier_step in at.done if at.state is RecordState.RELEASED else _position(at.state) >= _position(leads)
        )
        if not is_done and (earlier_step in way.set_up or earlier_step is WorkflowStep.COUNT):
            return earlier_step
    return None


def _released(at: Progress, way: Way, person: str, names: Iterable[str], reason: str) -> StepVerdict:
    missing = _missing(None, at, way)
    if missing is not None:
        return StepVerdict(f"it is {at.state}; the step {missing} comes first")
    if way.two_persons and not at.checkers.isdisjoint(map(folded, names)):
        return StepVerdict(f"{person} checked it, and two_persons wants another person to release it")
    if WorkflowStep.CHECK in way.set_up and not at.passed and not reason.strip():
        return StepVerdict("a check found something; release it with a reason")
    return StepVerdict(state=RecordState.RELEASED)


def next_by_itself(at: Progress, way: Way) -> WorkflowStep | None:
    """Return the step that comes now without anybody's decision; None if there is none."""
    if at.state not in _FETCHED or way.step_by_step:
        return None
    late = way.backs_up_late and at.state is not RecordState.RELEASED
    backup = WorkflowStep.BACKUP if way.backs_up and WorkflowStep.BACKUP not in at.done and not late else None
    missing = _missing(None, at, way)
    if missing is WorkflowStep.CHECK and (at.looks_wanted or way.two_persons):
        return backup  # persons have to look
    if missing is not None:
        return missing
    is_sound = at.is_complete and at.passed and not at.is_taken_back
    if at.state in HELD and way.release == "when-checked" and is_sound and not way.two_persons:
        return WorkflowStep.RELEASE
    return backup


def next_of_person(at: Progress, way: Way) -> WorkflowStep | None:
    """Return the one step that leads on, for people; None where nothing waits."""
    if at.state is RecordState.OPEN:
        return None if at.is_fetching else WorkflowStep.CAPTURE
    if at.state not in _FETCHED:
        return None
    missing = _missing(None, at, way)
    if missing is not None:
        return missing
    if at.state is not RecordState.RELEASED:
        return WorkflowStep.RELEASE
    return WorkflowStep.BACKUP if way.backs_up and WorkflowStep.BACKUP not in at.done else None


#: How field 21 begins where some hosts of a crawl are incomplete that are not needed for its release.
BUT_FOR = "complete but for "


def status_word(completeness: bool | None) -> str:
    """Return how field 21 begins; of an import that does not say whether it is complete, that it is one."""
    return "imported" if completeness is None else "complete" if completeness else "incomplete"


def with_status(record: Record, by: str, at: datetime) -> Record:
    """Return a record whose field 21 names its last step."""
    words = [*(rule.event for rule in TABLE.values()), CHECKING, PATCHED]
    last = next((event.what for event in reversed(record.events) if event.what in words), "")
    whole = status_word(record.completeness) if record.parts else str(record.state)
    told = record.text(FieldNumber.STATUS).partition("; last step: ")[0]
    whole = told if record.complete and told.startswith(BUT_FOR) else whole
    return record.with_values({FieldNumber.STATUS: f"{whole}; last step: {last}" if last else whole}, by, at)


def _position(state: RecordState) -> int:
    return _POSITIONS.index(state) if state in _POSITIONS else -1
