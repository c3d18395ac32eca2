"""The whole matrix of a snapshot's steps: state × step × right, as written here by hand (BT-wf-1, -3, -5, -7)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from webarcfs.archive.catalogue.record import Part, Record, State
from webarcfs.archive.catalogue.workflow import (
    CHECKING,
    LOOKED,
    ORDER,
    RIGHTS,
    TABLE,
    Progress,
    Right,
    Role,
    Step,
    Way,
    judged,
    next_by_itself,
    next_of_person,
    progress_of,
)
from webarcfs.archive.model.metadata import CET, CommitTag

pytestmark = pytest.mark.pure

_ALL = frozenset(ORDER)
_BY_HAND = Way(set_up=_ALL, release="by-hand")
_COLUMNS = [*map(str, State)]
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


def _at(state: State) -> Progress:
    """Where a snapshot is that came to a state through all steps before it; a released one was counted alone."""
    return Progress(state=state, done=frozenset({Step.COUNT}))


@pytest.mark.parametrize("row", _MATRIX_ROWS, ids=lambda row: row[0])
def test_the_matrix(row: list[str]) -> None:
    step = Step(row[0])
    for name, expected in zip(_COLUMNS, row[1:], strict=True):
        state = State(name)
        verdict = judged(step, _at(state), _BY_HAND, reason="why", person="anna")
        assert verdict.is_allowed == (expected != "."), (step, state, verdict)
        if verdict.is_allowed and expected != "?":
            own = TABLE[step].leads if step in (Step.NEW, Step.CANCEL, Step.CAPTURE) else verdict.state
            assert str(own or state) == (name if expected == "=" else expected), (step, state)
        if not verdict.is_allowed:
            assert name in verdict.refused or "first" in verdict.refused or "already" in verdict.refused


@pytest.mark.parametrize("step", list(Step))
@pytest.mark.parametrize("state", list(State))
def test_each_right_and_role(step: Step, state: State) -> None:
    needed = next(right for right, steps in _RIGHTS.items() if step in steps.split())
    without = set(Right) - {Right(needed)}
    refused = judged(step, _at(state), _BY_HAND, without, reason="why", person="anna").refused
    assert refused == f"it needs the right to {needed}"
    own = judged(step, _at(state), _BY_HAND, {Right(needed)}, reason="why", person="anna")
    assert own == judged(step, _at(state), _BY_HAND, None, reason="why", person="anna")
    for role, expected in {
        Role.ARCHIVIST: True,
        Role.ADMINISTRATOR: False,
        Role.REVIEWER: needed == "review",
        Role.CURATOR: True,
    }.items():
        verdict = judged(step, _at(state), _BY_HAND, RIGHTS[role], reason="why", person="anna")
        assert ("right to" not in verdict.refused) == expected


def test_a_locked_snapshot_takes_no_step() -> None:
    for step in Step:
        for state in State:
            at = replace(_at(state), is_locked=True)
            assert "being worked on" in judged(step, at, _BY_HAND, reason="why").refused


def test_what_is_not_set_up_is_passed_over() -> None:
    for set_up in ({Step.CONVERT}, {Step.INDEX}, {Step.CHECK}, {Step.CONVERT, Step.CHECK}, set[Step]()):
        way = Way(set_up=frozenset(set_up), release="by-hand")
        at = Progress(State.CAPTURED)
        walked = []
        while (step := next_by_itself(at, way)) is not None:
            assert judged(step, at, way).is_allowed
            walked.append(step)
            at = replace(at, state=ORDER[step])
        assert walked == [each for each in ORDER if each is Step.COUNT or each in set_up]
        assert judged(Step.RELEASE, at, way).state is State.RELEASED and next_of_person(at, way) is Step.RELEASE


def test_again_goes_back_and_what_follows_is_due_once_more() -> None:
    for number, (step, state) in enumerate(ORDER.items()):
        for later in list(ORDER.values())[number:]:
            at = Progress(later)
            assert "--again" in judged(step, at, _BY_HAND).refused
            assert judged(step, at, _BY_HAND, again=True).state is state
        assert "not" in judged(step, Progress(State.CAPTURED), _BY_HAND, again=True).refused
    released = Progress(State.RELEASED, frozenset(ORDER))
    assert judged(Step.CONVERT, released, _BY_HAND, again=True).state is None  # its state stays
    assert "--again" in judged(Step.CONVERT, released, _BY_HAND).refused


def test_automatic_snapshots_are_released_and_their_fields_filled_afterwards() -> None:
    way = Way(set_up=_ALL, backs_up=True)
    at = Progress(State.RELEASED, frozenset({Step.COUNT}))
    walked = []
    while (step := next_by_itself(at, way)) is not None:
        assert judged(step, at, way).is_allowed and judged(step, at, way).state is None
        walked.append(step)
        at = replace(at, done=at.done | {step})
    assert walked == [Step.CONVERT, Step.INDEX, Step.CHECK, Step.BACKUP]
    assert next_of_person(at, way) is None


@pytest.mark.parametrize(
    ("is_complete", "passed", "goes"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_when_checked_releases_what_is_complete_and_passed(is_complete: bool, passed: bool, goes: bool) -> None:
    way = Way(set_up=_ALL, release="when-checked")
    at = Progress(State.CHECKED, is_complete=is_complete, passed=passed)
    assert (next_by_itself(at, way) is Step.RELEASE) == goes
    assert next_by_itself(replace(at, is_taken_back=True), way) is None  # a person withdrew it
    assert next_by_itself(Progress(State.COUNTED, is_complete=True), Way(release="when-checked")) is Step.RELEASE
    assert next_by_itself(at, replace(way, release="by-hand")) is None


def test_step_by_step_nothing_comes_by_itself() -> None:
    for way in (
        replace(_BY_HAND, step_by_step=True, backs_up=True),
        Way(set_up=_ALL, step_by_step=True, backs_up=True),
    ):
        for state in State:
            assert next_by_itself(Progress(state), way) is None
    at, walked = Progress(State.OPEN), []
    way = replace(_BY_HAND, step_by_step=True, backs_up=True)
    while (step := next_of_person(at, way)) is not None:
        assert judged(step, at, way).is_allowed
        walked.append(str(step))
        at = replace(at, state=TABLE[step].leads or at.state, done=at.done | {step})
    assert walked == ["capture", "count", "convert", "index", "check", "release", "backup"]


def test_two_persons() -> None:
    way = replace(_BY_HAND, two_persons=True)
    assert next_by_itself(Progress(State.INDEXED), way) is None  # a person has to check
    checked = Progress(State.CHECKED, checkers=frozenset({"anna"}))
    assert "another person" in judged(Step.RELEASE, checked, way, person="anna").refused
    assert judged(Step.RELEASE, checked, way, person="bert").is_allowed
    assert judged(Step.RELEASE, checked, _BY_HAND, person="anna").is_allowed


def test_a_failed_check_asks_for_a_reason_and_never_forbids() -> None:
    at = Progress(State.CHECKED, passed=False)
    assert "reason" in judged(Step.RELEASE, at, _BY_HAND).refused
    assert judged(Step.RELEASE, at, _BY_HAND, reason="a banner is missing").is_allowed


def test_a_capture_that_has_begun_is_neither_cancelled_nor_begun_again() -> None:
    at = Progress(State.OPEN, is_fetching=True)
    for step in (Step.CANCEL, Step.CAPTURE):
        assert "begun" in judged(step, at, _BY_HAND).refused
    assert next_of_person(at, _BY_HAND) is None


def test_where_a_record_is() -> None:
    tag = CommitTag(datetime(2026, 11, 21, 3, tzinfo=CET), "www.example.org")
    record = Record(id="20261121T030000-p", number=1, publication="p", state=State.OPEN, parts=(Part(tag, True),))
    record = record.with_event("captured", "webarcfs", "", State.COUNTED)
    assert progress_of(record).done == {Step.COUNT}
    record = record.with_event("converted", "webarcfs", "", State.CONVERTED).with_event(
        "indexed", "w", "", State.INDEXED
    )
    record = record.with_event("backup", "webarcfs").with_event(CHECKING, "webarcfs")
    at = progress_of(record)
    assert at.done == {Step.COUNT, Step.CONVERT, Step.INDEX, Step.BACKUP} and at.looks_wanted and at.passed
    assert next_by_itself(at, replace(_BY_HAND, backs_up=True)) is None
    looked = record.with_event(LOOKED, "anna", "Contact: good")
    assert progress_of(looked).looks_wanted and progress_of(looked).checkers == {"anna", "webarcfs"}
    checked = looked.with_event("checked", "anna", "1 of 6 pages", State.CHECKED)
    assert not progress_of(checked).passed and not progress_of(checked).looks_wanted
    again = checked.with_event("converted", "anna", "", State.CONVERTED)
    assert progress_of(again).done == {Step.COUNT, Step.CONVERT, Step.BACKUP}
    assert progress_of(replace(record, state=State.OPEN, job="20261121T040000-p")).is_fetching
