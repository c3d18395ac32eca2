"""The decisions about a record: release, rejection, withdrawal, discarding, and their way back. Pure.

A decision needs a right, starts from some states only, and leads to one. Visibility follows the state (`gate`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from webarcfs.archive.catalogue.fields import BY_NAME, Edit, Field
from webarcfs.archive.catalogue.record import Record, State, Value
from webarcfs.archive.model.errors import Forbidden, UsageError
from webarcfs.archive.model.metadata import format_time, now


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
    """What a person is; each has one role."""

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


class Decision(StrEnum):
    """A decision about a record."""

    RELEASE = "release"
    REJECT = "reject"
    REOPEN = "reopen"
    WITHDRAW = "withdraw"
    DISCARD = "discard"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class Rule:
    """Where a decision may start, the right that it needs, its event, and whether it needs a reason."""

    right: Right
    starts: frozenset[State]
    event: str
    needs_reason: bool


_HELD = frozenset({State.CAPTURED, State.COUNTED, State.CONVERTED, State.INDEXED, State.CHECKED})
RULES: dict[Decision, Rule] = {
    Decision.RELEASE: Rule(Right.RELEASE, _HELD, "released", False),
    Decision.REJECT: Rule(Right.REVIEW, _HELD, "rejected", True),
    Decision.REOPEN: Rule(Right.REVIEW, frozenset({State.REJECTED}), "reopened", False),
    Decision.WITHDRAW: Rule(Right.WITHDRAW, frozenset({State.RELEASED}), "withdrawn", True),
    Decision.DISCARD: Rule(Right.WITHDRAW, _HELD | {State.RELEASED, State.REJECTED}, "discarded", True),
    Decision.RESTORE: Rule(Right.WITHDRAW, frozenset({State.DISCARDED}), "restored", False),
}


#: The state that a decision leads to; the others lead back to the one before.
_LEADS = {
    Decision.RELEASE: State.RELEASED,
    Decision.REJECT: State.REJECTED,
    Decision.WITHDRAW: State.CHECKED,
    Decision.DISCARD: State.DISCARDED,
}


def decided(record: Record, decision: Decision, person: str, reason: str) -> Record:
    """Return a record after a decision. Raises UsageError in the wrong state, or without a reason where one is due."""
    rule = RULES[decision]
    if record.state not in rule.starts:
        raise UsageError(
            f"{record.id} is {record.state}; to {decision} it, it must be {' or '.join(sorted(rule.starts))}"
        )
    if rule.needs_reason and not reason.strip():
        raise UsageError(f"to {decision} a snapshot needs a reason")
    changed = record.with_event(rule.event, person, reason, _next(record, decision))
    texts = {60: format_time(now()), 61: person} if decision is Decision.RELEASE else {}
    if reason:
        texts[64] = f"{rule.event}: {reason}"
    return changed.with_values(texts, person, now())


def _next(record: Record, decision: Decision) -> State:
    if decision in _LEADS:
        return _LEADS[decision]
    passed_over = {None, State.DISCARDED} | ({State.REJECTED} if decision is Decision.REOPEN else set())
    states = [event.state for event in record.events if event.state not in passed_over]
    return next((state for state in reversed(states) if state is not None), State.CAPTURED)


#: What can be edited beside the fields.
ABOUT = ("title", "language", "access")


def edited(record: Record, changes: dict[str, str], person: str, role: Role | None) -> Record:
    """Return a record with fields changed, by the names of their elements; an empty text takes a value away.

    `role` is None where an archive has no people: then everybody may edit what any role may. Raises UsageError for a
    field that does not exist, Forbidden for one that may not be edited.
    """
    result = record
    for name, text in changes.items():
        if name in ABOUT:
            value = Value(text, person, now())
            about = {each: getattr(result, each) for each in ABOUT} | {name: value}
            result = replace(result, title=about["title"], language=about["language"], access=about["access"])
            continue
        field = BY_NAME.get(name)
        if field is None or field.repeats:
            raise UsageError(f"there is no field {name} to edit; `webarc-agent record fields` lists them")
        if not may_edit(field, role, is_fetched=bool(record.parts)):
            raise Forbidden(f"the field {name} ({field.number}) is not for {role or 'people'} to edit")
        result = result.with_values({field.number: text}, person, now())
    names = ", ".join(changes)
    return result if result == record else result.with_event("edited", person, names)


def may_edit(field: Field, role: Role | None, *, is_fetched: bool) -> bool:
    """Return whether a person of that role may edit a field, before or after the download."""
    archivist = field.archivist is Edit.ALWAYS or (field.archivist is Edit.UNTIL_FETCHED and not is_fetched)
    if role is None or role is Role.CURATOR:
        return archivist or field.administrator
    if role is Role.ADMINISTRATOR:
        return field.administrator
    return role is Role.ARCHIVIST and archivist
