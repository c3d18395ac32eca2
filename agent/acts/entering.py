"""Enters a snapshot before it is fetched, and gives one up that was not fetched yet."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta

from agent.acts.stepping import must_allow
from agent.catalogue import circumstances, stepfolders
from agent.catalogue.describing import SYSTEM
from agent.jobfolder.names import OCCASION, step_folder
from agent.steps import running
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.record import Occasion, Record, State
from webarcfs.archive.catalogue.steps import TABLE, Step, Way
from webarcfs.archive.catalogue.workflow import edited
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import compact_time, now


def publication_called(settings: Settings, name: str) -> Publication:
    """Return a publication of the settings. Raises UsageError, which says what there is."""
    found = next((each for each in settings.publications if each.name == name), None)
    if found is None:
        known = ", ".join(each.name for each in settings.publications) or "none"
        raise UsageError(f"webarc.toml has no publication {name}; there are: {known}")
    return found


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

    `reason` is why it is made beside the schedule; with `shift` the schedule goes on from it. Raises UsageError for
    what does not go together, and what `workflow.edited` raises.
    """
    found = publication_called(settings, publication)
    why = reason.strip()
    if (occasion is Occasion.OCCASION) != bool(why):
        raise UsageError("an occasion and its reason (--type occasion, --reason) go together")
    catalogue = Catalogue(archive)
    host = split(arc_path(found.urls[0]))[0]
    name = _free_name(archive, catalogue, publication + (OCCASION if why and not shift else ""))
    texts = {
        **circumstances.wanted(found, found.describe),
        **circumstances.how(found, settings.crawl.max_instances),
        1: name,
        5: why or Occasion.REGULAR,
        8: acting.name,
        10: f"{archive.content.name}/{host}.git",
        12: host,
        21: str(State.OPEN),
    }
    made = Record(
        id=name,
        number=0,
        publication=publication,
        state=State.OPEN,
        occasion=occasion,
        release=found.release,
        closed_for="" if found.closed_for is None else str(found.closed_for),
    )
    made = made.with_values(texts, SYSTEM, now())
    if changes:
        made = dataclasses.replace(edited(made, dict(changes), acting.name, acting.role), events=())
    made = made.with_event(TABLE[Step.NEW].event, acting.name, reason, State.OPEN)
    (saved,) = catalogue.save([made], acting.name, f"{name}: new", expected={name: None})
    return saved


def _free_name(archive: Archive, catalogue: Catalogue, kind: str) -> str:
    at = now()
    while catalogue.has(name := f"{compact_time(at)}-{kind}") or (archive.jobs / name).exists():
        at += timedelta(seconds=1)
    return name


def cancel(archive: Archive, record_id: str, acting: Acting, reason: str = "") -> Record:
    """Give a capture up that has not begun; return its record. Raises Busy, NotFound, StepRefused."""
    catalogue = Catalogue(archive)
    with running.locked(archive, record_id):
        found, blob = catalogue.read(record_id)
        must_allow(found, Step.CANCEL, Way(), acting)
        changed = found.with_event(TABLE[Step.CANCEL].event, acting.name, reason, State.CANCELLED)
        texts = {21: str(State.CANCELLED)} | ({6: "; ".join(filter(None, (found.text(6), reason)))} if reason else {})
        changed = changed.with_values(texts, acting.name, now())
        catalogue.save([changed], acting.name, f"{found.id}: cancelled", expected={found.id: blob})
        stepfolders.done(archive, step_folder(found.id, Step.CAPTURE))
    return changed
