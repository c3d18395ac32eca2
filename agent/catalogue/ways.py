"""How the snapshots of a publication go: which steps are set up, by the settings as they are now.

A snapshot that is released as it is published is worked on afterwards only where something asks for it: conf/tidy.conf
and error pages for `convert`, checks for `check`, `[backup]` for `backup`. `index` goes along with them.
"""

from __future__ import annotations

from agent.indexing import fulltext
from agent.jobfolder import definition
from agent.jobfolder.definition import Definition
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import Record
from webarcfs.archive.catalogue.steps import ORDER, Step, Way
from webarcfs.archive.config import settings_file
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.errors import Damaged, SettingsError


def settings_now(archive: Archive) -> Settings:
    """Return the settings; the defaults where webarc.toml has faults, which others report."""
    try:
        return settings_file.load(archive.settings)[0]
    except SettingsError:
        return Settings()


def publication_of(archive: Archive, record: Record, settings: Settings) -> Publication:
    """Return a record's publication as webarc.toml has it, else as it was when it was captured last."""
    known = next((each for each in settings.publications if each.name == record.publication), None)
    if known is not None:
        return known
    said = Catalogue(archive).file(f"publications/{record.publication}.json")
    kept: Definition | None = None
    if said is not None:
        try:
            kept = definition.parsed(said)
        except Damaged:
            kept = None
    return settings.unlisted(record.publication) if kept is None else kept.publication


def way_of(archive: Archive, publication: Publication, settings: Settings, release: str = "") -> Way:
    """Return the way of a publication's snapshots; `release` is what its record says, else the publication's word."""
    checks = bool(publication.check or publication.checks or publication.check_search)
    wanted = {
        Step.CONVERT: archive.converter_settings.exists() or bool(publication.error_page),
        Step.CHECK: checks or publication.two_persons,
    }
    set_up = {step for step, is_wanted in wanted.items() if is_wanted}
    if publication.step_by_step:
        set_up = set(ORDER)
    set_up.discard(Step.INDEX)
    if set_up and fulltext.wanted(archive):
        set_up.add(Step.INDEX)
    return Way(
        set_up=frozenset(set_up),
        release=release or publication.release,
        step_by_step=publication.step_by_step,
        two_persons=publication.two_persons,
        backs_up=bool(settings.backup.to),
        backs_up_late=settings.backup.after == "release",
    )


def of_record(archive: Archive, record: Record) -> Way:
    """Return the way of a record."""
    settings = settings_now(archive)
    return way_of(archive, publication_of(archive, record, settings), settings, record.release)
