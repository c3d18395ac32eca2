"""What is told: changes of state. From what people know and what is amiss now come notifications. Pure.

A condition is told when it begins, and again in one digest a day as long as it lasts; its end is told once. More than a
few that begin at once are one notification. So an archive whose network is gone sends one mail and not five hundred.

Each notification has an id that follows from the archive, the condition and its number. Times only go into texts and
bounds: a clock that is set back neither tells something twice nor keeps it secret.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from agent.notifying.conditions import (
    ENDED_BY_PEOPLE,
    OF_PUBLICATION,
    AmissCondition,
    Key,
    Observation,
    longer_than,
)
from webarcfs.archive.config.settings import NotificationKind, NotifySettings
from webarcfs.archive.config.validators import NEVER
from webarcfs.archive.model.metadata import CET, format_time

#: Notifications at once; more than these are one.
MOST_AT_ONCE = 20
_DAY = timedelta(days=1)


class NotificationGroup(StrEnum):
    """Types of notifications that are no single event."""

    DIGEST = "digest"
    SEVERAL = "several"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What is sent. `kind` is a `NotificationKind` or a `NotificationGroup`; `parts` are those of a collection."""

    id: str
    kind: str
    text: str
    at: datetime
    since: datetime
    subject: str = ""
    of: str = ""  # what is over, for `recovered`
    job: str = ""
    record: str = ""
    parts: tuple[Notification, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldCondition:
    """A condition that lasts: since when, when it was told (None: not yet), and its mark, which no other one has."""

    condition: AmissCondition
    since: datetime
    mark: str
    told: datetime | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What people know. `number` counts all conditions so far, `digest` is the time of the last digest."""

    held: Mapping[Key, HeldCondition] = field(default_factory=dict)
    number: int = 0
    digest: datetime | None = None


def advance(
    known: Known, seen: Observation, settings: NotifySettings, origin: str
) -> tuple[Known, tuple[Notification, ...]]:
    """Return what people know after an observation, and what is sent. `origin` tells this archive from all others."""
    teller = _Teller(known, seen, settings, origin)
    teller.take()
    messages = _bounded(teller.messages, seen.at, origin)
    slot, last = _slot(settings.digest, seen.at), known.digest
    if slot is not None:
        if last is not None and slot.date() > last.date():
            messages += _digest(known, teller, slot)
            last = slot
        elif last is None or last.date() - slot.date() > _DAY:
            last = slot  # nobody was told before, or by a clock that was set back since, by days
    return Known(teller.held, teller.number, last), tuple(messages)


def lasting(known: Known, at: datetime, settings: NotifySettings) -> tuple[AmissCondition, ...]:
    """Return what is amiss, whether it is told or not."""
    return tuple(held.condition for held in known.held.values() if is_long_enough(held, at, settings))


def is_long_enough(held: HeldCondition, at: datetime, settings: NotifySettings) -> bool:
    """Return whether a condition counts: an index may be behind for a while."""
    if held.condition.kind is not NotificationKind.INDEX_BEHIND:
        return True
    return longer_than(held.since, at, timedelta(seconds=settings.index_age.seconds))


class _Teller:
    """One observation as it is taken."""

    def __init__(self, known: Known, seen: Observation, settings: NotifySettings, origin: str) -> None:
        self.held = dict(known.held)
        self.number = known.number
        self.messages: list[Notification] = []
        self.seen = seen
        self.settings = settings
        self.origin = origin

    def take(self) -> None:
        now = {condition.key: condition for condition in self.seen.amiss}
        for condition in self.seen.passing:
            if condition.key in now or condition.key in self.held:
                continue  # it is told as what lasts
            passed = self._begin(condition)
            if self._tell(passed) and condition.lasts:
                self._end(passed)
        for key, condition in now.items():
            held = self.held.get(key) or self._begin(condition)
            held = replace(held, condition=condition, since=min(held.since, self.seen.at))
            if held.told is None and is_long_enough(held, self.seen.at, self.settings) and self._tell(held):
                held = replace(held, told=self.seen.at)
            self.held[key] = held
        for key in [key for key in self.held if key not in now and not self.seen.is_unsure(key)]:
            held = self.held.pop(key)
            is_gone = key[0] in OF_PUBLICATION and key[1] not in self.seen.publications
            if held.told is not None and key[0] not in ENDED_BY_PEOPLE and not is_gone:
                self._end(held)

    def _begin(self, condition: AmissCondition) -> HeldCondition:
        self.number += 1
        since = min(condition.since or self.seen.at, self.seen.at)
        return HeldCondition(condition, since, f"{condition.job or condition.record}#{self.number}")

    def _tell(self, held: HeldCondition) -> bool:
        """Tell that it began; return False where it is not wanted."""
        if held.condition.kind not in self.settings.events:
            return False
        self.messages.append(_message(held, held.condition.kind, held.condition.text, self.seen.at, self.origin))
        return True

    def _end(self, held: HeldCondition) -> None:
        if NotificationKind.RECOVERED in self.settings.events:
            text = f"it is over: {held.condition.text}"
            message = _message(held, NotificationKind.RECOVERED, text, self.seen.at, self.origin)
            self.messages.append(replace(message, of=held.condition.kind))


def _message(held: HeldCondition, kind: str, text: str, at: datetime, origin: str) -> Notification:
    condition = held.condition
    return Notification(
        id=event_id(origin, kind, *condition.key, held.mark),
        kind=kind,
        text=text,
        at=at,
        since=held.since,
        subject=condition.subject,
        job=condition.job,
        record=condition.record,
    )


def event_id(*parts: str) -> str:
    """Return the id of a notification."""
    return f"evt_{hashlib.sha256(chr(0).join(parts).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


# -- together ----------------------------------------------------------------------------------------------------------


def _bounded(messages: list[Notification], at: datetime, origin: str) -> list[Notification]:
    """Return the messages, or one that has them all where they are many."""
    if len(messages) <= MOST_AT_ONCE:
        return messages
    return [
        _together(NotificationGroup.SEVERAL, f"{len(messages)} things changed at once", messages, at=at, origin=origin)
    ]


def _together(
    kind: NotificationGroup, text: str, messages: list[Notification], *, at: datetime, origin: str, mark: str = ""
) -> Notification:
    return Notification(
        id=event_id(origin, kind, mark, *(message.id for message in messages)),
        kind=kind,
        text=text,
        at=at,
        since=min(message.since for message in messages),
        parts=tuple(messages),
    )


def _digest(known: Known, teller: _Teller, slot: datetime) -> list[Notification]:
    """Return the digest of what was told before and still is so, if there is any."""
    at, origin = teller.seen.at, teller.origin
    teller.number += 1  # two digests of one day, by a clock that was set back, have two ids
    messages = [
        _message(held, held.condition.kind, held.condition.text, at, origin)
        for key, held in teller.held.items()
        if key in known.held and known.held[key].told is not None and key[0] in teller.settings.events
    ]
    if not messages:
        return []
    text = "one thing still needs you" if len(messages) == 1 else f"{len(messages)} things still need you"
    return [
        _together(
            NotificationGroup.DIGEST, text, messages, at=at, origin=origin, mark=f"{format_time(slot)}#{teller.number}"
        )
    ]


def _slot(digest: str, at: datetime) -> datetime | None:
    """Return the last time of a digest that is not later than `at`; None where there is none."""
    if digest == NEVER:
        return None
    hour, _, minute = digest.partition(":")
    slot = at.astimezone(CET).replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
    return slot if slot <= at else slot - _DAY
