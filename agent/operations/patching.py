"""Patches of crawls, as people ask for them: what is missing, and whether the record takes a patch now."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from agent.catalogue import patches, recording
from agent.crawl import job_folder
from agent.crawl.job_folder import Definition, Patch, publication_of
from agent.jobs import patchjob
from agent.operations.records import catalogue_of
from agent.reports import missing_urls
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.people import Acting
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Settings
from webarcfs.archive.model.errors import NotFound, StepRefused, UsageError


@dataclass(frozen=True, slots=True)
class PlannedPatch:
    """A patch that may begin: its definition, and how many URLs it asks for again; 0: nothing is missing.

    1 stands for any number where nobody asked for it.
    """

    definition: Definition
    patch: Patch
    urls: int


def plan(
    archive: Archive,
    settings: Settings,
    job: str,
    *,
    word: str = "",
    url: str = "",
    acting: Acting | None = None,
    counts: bool = True,
) -> PlannedPatch:
    """Return the patch of the crawl of a job that has ended. Unless it `counts`, it reads no further than to one URL.

    Raises NotFound without its report or record, StepRefused if the record takes none, Forbidden, and UsageError for a
    word or a pattern that fits nothing that is missing.
    """
    acting = acting or people.acting(archive, Right.CAPTURE)
    if not (archive.reports / job).is_dir():
        raise NotFound(f"there is no report of {job}")
    catalogue = catalogue_of(archive)
    record = patches.find_record(catalogue, job, publication_of(job))
    if why := patches.refusal(archive, catalogue, record):
        raise StepRefused(f"{record.id} takes no patch: {why}")
    patch = Patch(record=record.id, job=job, word=word.strip(), url=_pattern(url), by=acting.name)
    asked = recording.definition_of(archive, record, settings)
    asked = dataclasses.replace(asked, instances=settings.crawl.max_instances, only_adds=True, patch=patch)
    return PlannedPatch(asked, patch, _count(archive, patch, asked.publication.watch, counts=counts))


def begin(archive: Archive, planned: PlannedPatch) -> Path:
    """Write a patch down as a job, which the agent then runs; return its folder. Raises Busy."""
    with job_folder.alone(archive, planned.definition.publication.name):
        return patchjob.begun(archive, planned.definition)


def _pattern(url: str) -> str:
    if not url:
        return ""
    try:
        return validators.url_pattern(url.strip().partition("://")[2] or url.strip())
    except ValueError as error:
        raise UsageError(str(error)) from None


def _count(archive: Archive, patch: Patch, feed: str, *, counts: bool) -> int:
    """Return how many URLs are asked for again. Raises UsageError if word and pattern alone leave none of them."""
    number = 0
    words = Counter[str]()
    for line in patchjob.not_archived(archive, patch, feed):
        words[line.reason] += 1
        number += missing_urls.is_chosen(line, patch.word, patch.url)
        if number and not counts:
            break
    if number or not words or not (patch.word or patch.url):
        return number
    by_word = ", ".join(
        f"{word} {count}" for word, count in sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    raise UsageError(f"nothing of that is missing from {patch.job}; its URLs that did not come: {by_word}")
