"""Decisions about records, and who may take them and edit what: tables of cases (BT-rel, BT-edit, BT-role)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from webarcfs.archive.catalogue.record import BY_NUMBER, FIELDS, CrawlPart, Record, RecordState
from webarcfs.archive.catalogue.workflow import (
    RIGHTS,
    TABLE,
    Decision,
    Right,
    Role,
    WorkflowStep,
    apply_decision,
    edited,
    may_edit,
)
from webarcfs.archive.model.errors import Forbidden, UsageError
from webarcfs.archive.model.metadata import CET, CommitTag

pytestmark = pytest.mark.pure

_TAG = CommitTag(datetime(2026, 11, 21, 3, tzinfo=CET), "www.example.org")
_RECORD = Record(
    id="20261121T030000-p", number=1, publication="p", state=RecordState.COUNTED, parts=(CrawlPart(_TAG, True),)
)  # fmt: skip
_WAITING = {RecordState.CAPTURED, RecordState.COUNTED, RecordState.CONVERTED, RecordState.INDEXED, RecordState.CHECKED}


@pytest.mark.parametrize("state", list(RecordState))
@pytest.mark.parametrize("decision", list(Decision))
def test_a_decision_starts_in_the_right_states_only(decision: Decision, state: RecordState) -> None:
    allowed = {
        Decision.RELEASE: _WAITING,
        Decision.REJECT: _WAITING,
        Decision.REOPEN: {RecordState.REJECTED},
        Decision.WITHDRAW: {RecordState.RELEASED},
        Decision.DISCARD: _WAITING | {RecordState.RELEASED, RecordState.REJECTED},
        Decision.RESTORE: {RecordState.DISCARDED},
    }[decision]
    record = replace(_RECORD, state=state)
    if state not in allowed:
        with pytest.raises(UsageError):
            apply_decision(record, decision, "anna", "why")
        return
    after = apply_decision(record, decision, "anna", "why")
    assert after.events[-1].by == "anna" and after.events[-1].text == "why" and after.events[-1].state == after.state
    assert after.text(64) == f"{TABLE[WorkflowStep(decision)].event}: why"


def test_a_decision_and_its_way_back() -> None:
    released = apply_decision(_RECORD, Decision.RELEASE, "anna", "")
    assert (
        released.state is RecordState.RELEASED
        and released.text(61) == "anna"
        and released.text(60)
        and not released.text(64)
    )
    withdrawn = apply_decision(released, Decision.WITHDRAW, "bert", "wrong site")
    assert withdrawn.state is RecordState.CHECKED
    assert apply_decision(withdrawn, Decision.RELEASE, "anna", "").state is RecordState.RELEASED
    rejected = apply_decision(withdrawn, Decision.REJECT, "bert", "empty")
    assert rejected.state is RecordState.REJECTED
    assert apply_decision(rejected, Decision.REOPEN, "anna", "").state is RecordState.CHECKED
    fresh = replace(_RECORD, events=()).with_event("captured", "webarcfs", "", RecordState.COUNTED)
    again = apply_decision(apply_decision(fresh, Decision.REJECT, "anna", "x"), Decision.REOPEN, "anna", "")
    assert again.state is RecordState.COUNTED
    assert [event.what for event in again.events] == ["captured", "rejected", "reopened"]


@pytest.mark.parametrize("decision", [Decision.REJECT, Decision.WITHDRAW])
@pytest.mark.parametrize("reason", ["", "  "])
def test_what_takes_away_needs_a_reason(decision: Decision, reason: str) -> None:
    state = RecordState.RELEASED if decision is Decision.WITHDRAW else RecordState.COUNTED
    with pytest.raises(UsageError, match="reason"):
        apply_decision(replace(_RECORD, state=state), decision, "anna", reason)


def test_the_rights_of_roles() -> None:
    """BT-role-1."""
    first_six = {Right.CAPTURE, Right.PROCESS, Right.DESCRIBE, Right.REVIEW, Right.RELEASE, Right.WITHDRAW}
    assert RIGHTS[Role.ARCHIVIST] == first_six
    assert RIGHTS[Role.ADMINISTRATOR] == {Right.DESCRIBE, Right.PUBLICATIONS, Right.OPTIONS, Right.PEOPLE}
    assert RIGHTS[Role.REVIEWER] == {Right.REVIEW}
    assert RIGHTS[Role.CURATOR] == set(Right) - {Right.PEOPLE}


def test_who_may_edit_what() -> None:
    """BT-edit-1 … 3: the archivist 2–6, 20 and remarks always, 12, 13, 16 until it is fetched; nobody LOG, persons."""
    for field in FIELDS:
        always = field.number in {2, 3, 4, 5, 6, 20} or "remarks" in field.name.casefold()
        assert may_edit(field, {Role.ARCHIVIST}, is_fetched=True) == always
        assert may_edit(field, {Role.ARCHIVIST}, is_fetched=False) == (always or field.number in {12, 13, 16})
        assert not may_edit(field, {Role.REVIEWER}, is_fetched=False)
        either = may_edit(field, {Role.ARCHIVIST}, is_fetched=True) or may_edit(
            field, {Role.ADMINISTRATOR}, is_fetched=True
        )
        assert may_edit(field, {Role.CURATOR}, is_fetched=True) == may_edit(field, None, is_fetched=True) == either
    assert not any(may_edit(BY_NUMBER[number], None, is_fetched=True) for number in (1, 8, 21, 29, 61))


def test_edits() -> None:
    after = edited(_RECORD, {"remarks": "ünïcode ערב", "title": "T", "signature": ""}, "anna", {Role.ARCHIVIST})
    assert (after.text(6), after.values[6].by, after.title.text) == ("ünïcode ערב", "anna", "T")
    assert after.events[-1].what == "edited" and after.events[-1].text == "remarks, title, signature"
    assert edited(after, {"remarks": ""}, "anna", None).text(6) == ""
    with pytest.raises(Forbidden):
        edited(_RECORD, {"domain": "x"}, "anna", {Role.ARCHIVIST})  # it was fetched
    with pytest.raises(Forbidden):
        edited(_RECORD, {"bytes": "1"}, "anna", {Role.ARCHIVIST})
    for name in ("nonsense", "measureKind", "id"):
        with pytest.raises((UsageError, Forbidden)):
            edited(_RECORD, {name: "x"}, "anna", None)
