"""Decisions about snapshots, and edits of their descriptions, each in one commit by the person.

A form says which state it was made for: a decision that comes late changes nothing. An edit names the blob that it was
made from; if somebody else was faster, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.catalogue import ways
from agent.catalogue.keeping import ask_next
from agent.steps import running
from webarcfs.archive.catalogue import workflow
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.record import Record, State
from webarcfs.archive.catalogue.steps import Step, judged, progress_of, with_status
from webarcfs.archive.catalogue.workflow import RULES, Decision
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Busy, StepRefused
from webarcfs.archive.model.metadata import now


def decide(
    archive: Archive,
    record_id: str,
    decision: Decision,
    acting: Acting,
    reason: str = "",
    *,
    expected: State | None = None,
) -> Record:
    """Decide about a record; return it as it is then, with the step asked for that follows by itself.

    `expected` is the state that the person saw. Raises Busy if another process works on it, or it has another state
    than that; StepRefused if it does not allow the decision; NotFound.
    """
    with running.locked(archive, record_id):
        catalogue = Catalogue(archive)
        found, blob = catalogue.read(record_id)
        if expected is not None and found.state is not expected:
            last = found.events[-1] if found.events else None
            who = f", by {last.by}" if last is not None else ""
            raise Busy(f"{record_id} is {found.state} by now, and not {expected} any more{who}; nothing was done")
        way = ways.of_record(archive, found)
        verdict = judged(Step(decision), progress_of(found), way, person=acting.name, reason=reason)
        if not verdict.is_allowed:
            raise StepRefused(f"{found.id}: {verdict.refused}")
        changed = with_status(workflow.decided(found, decision, acting.name, reason), acting.name, now())
        catalogue.save([changed], acting.name, f"{found.id}: {RULES[decision].event}", expected={found.id: blob})
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
    found, blob = catalogue.read(record_id)
    if expected is not None and blob != expected:
        raise Busy(f"the record {record_id} was changed meanwhile; look at it again")
    changed = workflow.edited(found, dict(changes), acting.name, acting.role)
    if changed != found:
        message = f"{found.id}: edited {', '.join(changes)}"
        catalogue.save([changed], acting.name, message, expected={found.id: blob})
    return changed
