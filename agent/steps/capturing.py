"""The step `capture`: the download of a record that was there before it. It is a job like any other."""

from __future__ import annotations

import dataclasses
import threading

from agent.catalogue import ways
from agent.catalogue.describing import SYSTEM
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
from webarcfs.archive.model.errors import Interrupted, UsageError


def capture(archive: Archive, record: Record, stop: threading.Event, progress: Progress) -> JobOutcome | None:
    """Capture an open record, or go on with its job; None if that has ended. Raises Interrupted, UsageError, Busy."""
    settings, _ = settings_file.load(archive.settings)
    publication = next((each for each in settings.publications if each.name == record.publication), None)
    if publication is None:
        raise UsageError(f"webarc.toml has no publication {record.publication} any more")
    folder = archive.jobs / record.job if record.job else None
    if folder is None or not folder.is_dir():
        if record.job and (archive.reports / record.job).is_dir():
            return None  # its record is written by the next start
        with folders.alone(archive, record.publication):
            kind = record.publication + (OCCASION if record.id.endswith(OCCASION) else "")
            folder = folders.new_folder(archive, kind)
            asked = Definition(
                publication=publication,
                profile=settings.profiles.get(publication.profile or ""),
                instances=settings.crawl.max_instances,
                record=record.id,
                occasion=record.text(5) if record.occasion is Occasion.OCCASION else "",
            )
            definition.save(folder, asked)
            begun = dataclasses.replace(record, job=folder.name).with_event("begun", SYSTEM, folder.name)
            catalogue = Catalogue(archive)
            _, blob = catalogue.read(record.id)
            catalogue.save([begun], SYSTEM, f"{record.id}: begun", expected={record.id: blob})
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


def way_is_plain(archive: Archive, record: Record) -> bool:
    """Return whether nothing follows a capture."""
    return ways.is_plain(ways.of_record(archive, record))
