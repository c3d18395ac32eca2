"""Looks of persons at reference pages with `by = "person"`: which pages wait for one, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from agent.steps.checking import Outcome, name_of, pages_in_force
from webarcfs.archive.catalogue.record import Event, Record, State
from webarcfs.archive.catalogue.steps import CHECKING, LOOKED, TABLE, Step, progress_of, with_status
from webarcfs.archive.config.settings import Publication, ReferencePage
from webarcfs.archive.model.metadata import now

_BETWEEN = "; "


def waiting(record: Record, publication: Publication) -> list[ReferencePage]:
    """Return the reference pages of a snapshot that a person has to look at."""
    if not progress_of(record).looks_wanted:
        return []
    told = record.text(62).split(_BETWEEN)
    pages = pages_in_force(publication, record)
    return [each for each in pages if any(line.startswith(_waits(each)) for line in told)]


def looked(record: Record, page: ReferencePage, wait: Sequence[ReferencePage], person: str, outcome: Outcome) -> Record:
    """Return a record after a person looked at one of the pages that `wait`; the last look ends the check.

    The person is told by the event: readers see field 62.
    """
    told = [line for line in record.text(62).split(_BETWEEN) if not line.startswith(_waits(page))]
    changed = record.with_values({62: _BETWEEN.join([*told, outcome.told])}, person, now())
    changed = changed.with_event(LOOKED, person, outcome.told)
    if len(wait) > 1:
        return changed
    state = None if record.state is State.RELEASED else State.CHECKED
    checked = changed.with_event(TABLE[Step.CHECK].event, person, _BETWEEN.join(_faults(changed.events)), state)
    return with_status(checked, person, now())


def _faults(events: Sequence[Event]) -> list[str]:
    """Return what the last check found wrong: by programs, then by persons."""
    found: list[str] = []
    for event in events:
        if event.what == CHECKING:
            found = [event.text] if event.text else []
        elif event.what == LOOKED and ": failed: " in event.text:
            found.append(event.text)
    return found


def _waits(page: ReferencePage) -> str:
    return Outcome(name_of(page), waits=True).told
