"""The whole matrix of a snapshot's steps: state × step × right, as written here by hand (BT-wf-1, -3, -5, -7)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from webarcfs.archive.catalogue.record import CrawlPart, Record, RecordState, Warrant
from webarcfs.archive.catalogue.workflow import (
    CHECKING,
    DEEDS,
    LOOKED,
    ORDER,
    RIGHTS,
    TABLE,
    Progress,
    Right,
    Role,
    Way,
    WorkflowStep,
    in_row,
    judged,
    next_by_itself,
    next_of_person,
    progress_of,
    roles_with,
)
from webarcfs.archive.model.metadata import CET, CommitTag

pytestmark = pytest.mark.pure

_ALL = frozenset(ORDER)
_BY_HAND = Way(set_up=_ALL, release="by-hand")
_COLUMNS = [*map(str, RecordState)]
#: Where each step leads with all of them set up: a state, `=` as it was, `.` refused, `?` back to the state before.
_MATRIX = """
    new      open      open open open open open open open open open open
    cancel   cancelled . . . . . . . . . .
    capture  captured  . . . . . . . . . .
    count    .         . . counted . . . . . . .
    convert  .         . . . converted . . . = . .
    index    .         . . . . indexed . . . . .
    check    .         . . . . . checked . . . .
    release  .         . . . . . . released . . .
    reject   .         . . rejected rejected rejected rejected rejected . . .
    reopen   .         . . . . . . . . ? .
    withdraw .         . . . . . . . checked . .
    discard  .         . . discarded discarded discarded discarded discarded discarded discarded .
    restore  .         . . . . . . . . . ?
    backup   .         . . = = = = = = . .
    measure  .         . . = = = = = = . .
"""
#: The right that each step needs, and the roles that have it.
_RIGHTS = {
    "capture": "new cancel capture",
    "process": "count convert index backup measure",
    "review": "check reject reopen",
    "release": "release",
    "withdraw": "withdraw discard restore",
}
_MATRIX_ROWS = [line.split() for line in _MATRIX.strip().splitlines()]


def _at(state: RecordState) -> Progress:
    """Where a snapshot is that came to a state through all steps before it; a released one was counted alone."""
    return Progress(state=state, done=frozenset({WorkflowStep.COUNT}))


@pytest.mark.parametrize("row", _MATRIX_ROWS, ids=lambda row: row[0])
def test_the_matrix(row: list[str]) -> None:
    step = WorkflowStep(row[0])
    for name, expected in zip(_COLUMNS, row[1:], strict=True):
        state = RecordState(name)
        verdict = judged(step, _at(state), _BY_HAND, reason="why", person="anna")
        assert verdict.is_allowed == (expected != "."), (step, state, verdict)
        if verdict.is_allowed and expected != "?":
            own = (
                TABLE[step].leads
                if step in (WorkflowStep.NEW, WorkflowStep.CANCEL, WorkflowStep.CAPTURE)
                else verdict.state
            )
            assert str(own or state) == (name if expected == "=" else expected), (step, state)
        if not verdict.is_allowed:
            assert name in verdict.refused or "first" in verdict.refused or "already" in verdict.refused


@pytest.mark.parametrize("step", list(WorkflowStep))
@pytest.mark.parametrize("state", list(RecordState))
def test_each_right_and_role(step: WorkflowStep, state: RecordState) -> None:
    needed = next(right for right, steps in _RIGHTS.items() if step in steps.split())
    without = set(Right) - {Right(needed)}
    refused = judged(step, _at(state), _BY_HAND, without, reason="why", person="anna").refused
    assert refused == f"to {DEEDS[Right(needed)]} one needs the role {in_row(roles_with(Right(needed)), 'or')}"
    own = judged(step, _at(state), _BY_HAND, {Right(needed)}, reason="why", person="anna")
    assert own == judged(step, _at(state), _BY_HAND, None, reason="why", person="anna")
    for role, expected in {
        Role.ARCHIVIST: True,
        Role.ADMINISTRATOR: False,
        Role.REVIEWER: needed == "review",
        Role.CURATOR: True,
    }.items():
        verdict = judged(step, _at(state), _BY_HAND, RIGHTS[role], reason="why", person="anna")
        assert ("needs the role" not in verdict.refused) == expected


def test_a_locked_snapshot_takes_no_step() -> None:
    for step in WorkflowStep:
        for state in RecordState:
            at = replace(_at(state), is_locked=True)
            assert "being worked on" in judged(step, at, _BY_HAND, reason="why").refused


def test_what_is_not_set_up_is_passed_over() -> None:
    for set_up in (
        {WorkflowStep.CONVERT},
        {WorkflowStep.INDEX},
        {WorkflowStep.CHECK},
        {WorkflowStep.CONVERT, WorkflowStep.CHECK},
        set[WorkflowStep](),
    ):
        way = Way(set_up=frozenset(set_up), release="by-hand")
        at = Progress(RecordState.CAPTURED)
        walked = []
        while (step := next_by_itself(at, way)) is not None:
            assert judged(step, at, way).is_allowed
            walked.append(step)
            at = replace(at, state=ORDER[step])
        assert walked == [each for each in ORDER if each is WorkflowStep.COUNT or each in set_up]
        assert (
            judged(WorkflowStep.RELEASE, at, way).state is RecordState.RELEASED
            and next_of_person(at, way) is WorkflowStep.RELEASE
        )


def test_again_goes_back_and_what_follows_is_due_once_more() -> None:
    for number, (step, state) in enumerate(ORDER.items()):
        for later in list(ORDER.values())[number:]:
            at = Progress(later)
            assert "--again" in judged(step, at, _BY_HAND).refused
            assert judged(step, at, _BY_HAND, again=True).state is state
        assert "not" in judged(step, Progress(RecordState.CAPTURED), _BY_HAND, again=True).refused
    released = Progress(RecordState.RELEASED, frozenset(ORDER))
    assert judged(WorkflowStep.CONVERT, released, _BY_HAND, again=True).state is None  # its state stays
    assert "--again" in judged(WorkflowStep.CONVERT, released, _BY_HAND).refused


def test_automatic_snapshots_are_released_and_their_fields_filled_afterwards() -> None:
    way = Way(set_up=_ALL, backs_up=True)
    at = Progress(RecordState.RELEASED, frozenset({WorkflowStep.COUNT}))
    walked = []
    while (step := next_by_itself(at, way)) is not None:
        assert judged(step, at, way).is_allowed and judged(step, at, way).state is None
        walked.append(step)
        at = replace(at, done=at.done | {step})
    assert walked == [WorkflowStep.CONVERT, WorkflowStep.INDEX, WorkflowStep.CHECK, WorkflowStep.BACKUP]
    assert next_of_person(at, way) is None


@pytest.mark.parametrize(
    ("is_complete", "passed", "goes"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_when_checked_releases_what_is_complete_and_passed(is_complete: bool, passed: bool, goes: bool) -> None:
    way = Way(set_up=_ALL, release="when-checked")
    at = Progress(RecordState.CHECKED, is_complete=is_complete, passed=passed)
    assert (next_by_itself(at, way) is WorkflowStep.RELEASE) == goes
    assert next_by_itself(replace(at, is_taken_back=True), way) is None  # a person withdrew it
    assert (
        next_by_itself(Progress(RecordState.COUNTED, is_complete=True), Way(release="when-checked"))
        is WorkflowStep.RELEASE
    )
    assert next_by_itself(at, replace(way, release="by-hand")) is None


def test_step_by_step_nothing_comes_by_itself() -> None:
    for way in (
        replace(_BY_HAND, step_by_step=True, backs_up=True),
        Way(set_up=_ALL, step_by_step=True, backs_up=True),
    ):
        for state in RecordState:
            assert next_by_itself(Progress(state), way) is None
    at, walked = Progress(RecordState.OPEN), []
    way = replace(_BY_HAND, step_by_step=True, backs_up=True)
    while (step := next_of_person(at, way)) is not None:
        assert judged(step, at, way).is_allowed
        walked.append(str(step))
        at = replace(at, state=TABLE[step].leads or at.state, done=at.done | {step})
    assert walked == ["capture", "count", "convert", "index", "check", "release", "backup"]


def test_two_persons() -> None:
    way = replace(_BY_HAND, two_persons=True)
    assert next_by_itself(Progress(RecordState.INDEXED), way) is None  # a person has to check
    checked = Progress(RecordState.CHECKED, checkers=frozenset({"anna"}))
    assert "another person" in judged(WorkflowStep.RELEASE, checked, way, person="anna").refused
    assert judged(WorkflowStep.RELEASE, checked, way, person="bert").is_allowed
    assert judged(WorkflowStep.RELEASE, checked, _BY_HAND, person="anna").is_allowed
    for name in ("ANNA", " Anna ", "ann\uff41"):
        assert "another person" in judged(WorkflowStep.RELEASE, checked, way, person=name).refused, name
    other_name = judged(WorkflowStep.RELEASE, checked, way, person="Anna Beispiel", names={"a.beispiel", "anna"})
    assert "another person" in other_name.refused, "by the terminal she is known by another name than at the desk"


def test_who_checked_is_known_by_each_name_also_after_another_name_was_given() -> None:
    tag = CommitTag(datetime(2026, 11, 21, 3, tzinfo=CET), "www.example.org")
    record = Record(id="20261121T030000-p", number=1, publication="p", state=RecordState.INDEXED,
                    parts=(CrawlPart(tag, True),))  # fmt: skip
    checked = record.with_event("checked", "Anna Muster", "", RecordState.CHECKED, warrant=Warrant("archivist", "anna"))
    assert progress_of(checked).checkers == {"anna muster", "anna"}


def test_a_failed_check_asks_for_a_reason_and_never_forbids() -> None:
    at = Progress(RecordState.CHECKED, passed=False)
    assert "reason" in judged(WorkflowStep.RELEASE, at, _BY_HAND).refused
    assert judged(WorkflowStep.RELEASE, at, _BY_HAND, reason="a banner is missing").is_allowed


def test_a_capture_that_has_begun_is_neither_cancelled_nor_begun_again() -> None:
    at = Progress(RecordState.OPEN, is_fetching=True)
    for step in (WorkflowStep.CANCEL, WorkflowStep.CAPTURE):
        assert "begun" in judged(step, at, _BY_HAND).refused
    assert next_of_person(at, _BY_HAND) is None


def test_where_a_record_is() -> None:
    tag = CommitTag(datetime(2026, 11, 21, 3, tzinfo=CET), "www.example.org")
    record = Record(
        id="20261121T030000-p", number=1, publication="p", state=RecordState.OPEN, parts=(CrawlPart(tag, True),)
    )
    record = record.with_event("captured", "webarcfs", "", RecordState.COUNTED)
    assert progress_of(record).done == {WorkflowStep.COUNT}
    record = record.with_event("converted", "webarcfs", "", RecordState.CONVERTED).with_event(
        "indexed", "w", "", RecordState.INDEXED
    )
    record = record.with_event("backup", "webarcfs").with_event(CHECKING, "webarcfs")
    at = progress_of(record)
    assert (
        at.done == {WorkflowStep.COUNT, WorkflowStep.CONVERT, WorkflowStep.INDEX, WorkflowStep.BACKUP}
        and at.looks_wanted
        and at.passed
    )
    assert next_by_itself(at, replace(_BY_HAND, backs_up=True)) is None
    looked = record.with_event(LOOKED, "anna", "Contact: good")
    assert progress_of(looked).looks_wanted and progress_of(looked).checkers == {"anna", "webarcfs"}
    for beside in ("edited", "measure", "attached", "replaced", "noted", "detached"):
        assert progress_of(looked.with_event(beside, "anna")).looks_wanted, beside
    checked = looked.with_event("checked", "anna", "1 of 6 pages", RecordState.CHECKED)
    assert not progress_of(checked).passed and not progress_of(checked).looks_wanted
    again = checked.with_event("converted", "anna", "", RecordState.CONVERTED)
    assert progress_of(again).done == {WorkflowStep.COUNT, WorkflowStep.CONVERT, WorkflowStep.BACKUP}
    assert progress_of(replace(record, state=RecordState.OPEN, job="20261121T040000-p")).is_fetching
