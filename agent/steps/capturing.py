"""The step `capture`: the download of a record that was there before it. It is a job like any other."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

from agent.catalogue.describing import BEGUN, SYSTEM
from agent.jobfolder import definition, folders
from agent.jobfolder.definition import Definition
from agent.jobfolder.names import OCCASION
from agent.jobs import crawljob
from agent.jobs.ending import JobOutcome
from agent.steps.context import Progress
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Occasion, Record
from webarcfs.archive.config import settings_file
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.errors import Damaged, Interrupted, UsageError


def capture(
    archive: Archive, record: Record, stop: threading.Event, progress: Progress, *, by: str = ""
) -> JobOutcome | None:
    """Capture an open record for a person, or go on with its job; None if that has ended.

    Raises Interrupted, UsageError, Busy.
    """
    settings, _ = settings_file.load(archive.settings)
    publication = next((each for each in settings.publications if each.name == record.publication), None)
    if publication is None:
        raise UsageError(f"webarc.toml has no publication {record.publication} any more")
    folder = archive.jobs / record.job if record.job else None
    if folder is None or not folder.is_dir():
        if record.job and (archive.reports / record.job).is_dir():
            return None  # its record is written by the next start
        folder = _begun(archive, record, publication, settings, by or SYSTEM)
    outcome = crawljob.run(
        archive,
        publication,
        settings.profiles.get(publication.profile or ""),
        instances=settings.crawl.max_instances,
        folder=folder,
        stop=stop,
        progress=progress,
    )
    if outcome.interrupted:
        raise Interrupted(f"the capture of {record.id} was stopped; it goes on from there")
    return outcome


def _begun(archive: Archive, record: Record, publication: Publication, settings: Settings, by: str) -> Path:
    """Return the folder of the record's job, which is noted in the record; one that a killed process left is taken."""
    kind = record.publication + (OCCASION if record.id.endswith(OCCASION) else "")
    with folders.alone(archive, record.publication):
        left = (each for each in folders.folders_of(archive, kind) if _is_of(each, record))
        folder = next(left, None) or folders.new_folder(archive, kind)
        asked = Definition(
            publication=publication,
            profile=settings.profiles.get(publication.profile or ""),
            instances=settings.crawl.max_instances,
            record=record.id,
            occasion=record.text(5) if record.occasion is Occasion.OCCASION else "",
        )
        definition.save(folder, asked)
        catalogue = Catalogue(archive)
        current, blob = catalogue.read(record.id)
        begun = dataclasses.replace(current, job=folder.name).with_event(BEGUN, by, folder.name)
        catalogue.save([begun], by, f"{record.id}: begun", expected={record.id: blob})
    return folder


def _is_of(folder: Path, record: Record) -> bool:
    try:
        asked = definition.load(folder)
    except Damaged:
        return False
    return asked is not None and asked.record == record.id
