"""A patch of a crawl: a job that asks again for URLs which the crawl did not get, each with what it needs.

Its URLs come from the crawl's own log, with how the crawl came to them: a resource stays one, the target of a redirect
stays one, and the server gets the page that named a URL (Referer). Hosts, excludes and private addresses are those of
the crawl, but that the feed which a publication watches opens no private address: `private_addresses` does. Links of
its pages are not followed. It only adds, as a list of URLs does; what it publishes belongs to the record of the crawl.
Items of a feed that it publishes are captured; the feed itself is no page, and is left to the next crawl.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from agent.catalogue import patches, stepfolders
from agent.crawl import job_folder
from agent.crawl.discovery import Discovery
from agent.crawl.frontier import ASKED, ASKED_URLS, HOSTS, PAGE_HOSTS
from agent.crawl.job_folder import Definition, Job, Patch
from agent.reports import missing_urls
from agent.reports.report import hosts_in
from agent.reports.tables import LogLine
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication
from webarcfs.archive.model.errors import Damaged, Interrupted, NotFound
from webarcfs.archive.system import files


def alone(archive: Archive, patch: Patch | None) -> AbstractContextManager[object]:
    """Hold the lock of the record that is patched, so that nobody decides about it meanwhile. Raises Busy."""
    return nullcontext() if patch is None else stepfolders.locked(archive, patch.record)


def narrowed(publication: Publication) -> Publication:
    """Return a publication whose crawl asks for the URLs that it is given, and for what they need."""
    crawl = dataclasses.replace(publication.crawl, depth=0, sitemaps=False)
    return dataclasses.replace(publication, list="", watch="", crawl=crawl)


def refusal(archive: Archive, patch: Patch) -> str:
    """Return why the record takes the patch no more; empty if it does. It may have been decided about meanwhile."""
    catalogue = Catalogue(archive)
    try:
        why = patches.refusal(archive, catalogue, catalogue.read(patch.record)[0])
    except NotFound as error:
        return str(error)
    return f"{patch.record} takes no patch: {why}" if why else ""


def is_closed(archive: Archive, patch: Patch | None) -> bool:
    """Return whether readers do not see the record that is patched."""
    if patch is None:
        return False
    try:
        return Catalogue(archive).read(patch.record)[0].state is not RecordState.RELEASED
    except NotFound:
        return True


def begun(archive: Archive, asked: Definition) -> Path:
    """Return the folder of a patch that begins, or of the same one that waits or was interrupted, whoever asked for it.

    The caller holds the lock of the publication.
    """
    assert asked.patch is not None
    same = dataclasses.replace(asked.patch, by="")
    kind = asked.publication.name + job_folder.PATCH
    for folder in job_folder.folders_of(archive, kind):
        earlier = patch_in(folder)
        if earlier is not None and dataclasses.replace(earlier, by="") == same and job_folder.usable(folder):
            return folder
    folder = job_folder.new_folder(archive, kind)
    job_folder.save(folder, asked)
    return folder


def patch_in(folder: Path) -> Patch | None:
    """Return what the job of a folder asks for again; None if it is no patch, or cannot be read."""
    try:
        asked = job_folder.load(folder)
    except Damaged:
        return None
    return None if asked is None else asked.patch


def feed_of(folder: Path) -> str:
    """Return the feed that the publication of a job watches, also where `narrowed` leaves it out; empty for none."""
    asked = job_folder.load(folder)
    return "" if asked is None else asked.publication.watch


def not_archived(archive: Archive, patch: Patch, feed: str) -> Iterator[LogLine]:
    """Yield the lines of the URLs that a patch could ask for again, but for the watched feed. Raises NotFound, Damaged.

    Where the thread has a deadline, it raises its errors as well.
    """
    for line in missing_urls.lines(archive, patch.job):
        if line.url != feed and missing_urls.could_be_asked_for(line):
            yield line


def _hosts_with_pages(archive: Archive, patch: Patch) -> set[str]:
    """Return the hosts of which the crawl had pages: by its report, also where it published nothing new of them."""
    record, _ = Catalogue(archive).read(patch.record)
    summary = files.read_json(archive.reports / patch.job / "summary.json") or {}
    by_report = {end.host for end in hosts_in(summary) if end.is_page}
    return by_report | {part.tag.domain for part in record.parts if not part.is_resource}


def add_missing(job: Job) -> None:
    """Add the URLs that the job asks for again, once. The caller wraps it in a transaction.

    Raises Interrupted where the job shall stop; then none of them is in the frontier.
    """
    assert job.patch is not None
    if job.frontier.get(ASKED_URLS) is not None:
        return
    lines = _until_stopped(job, missing_urls.lines(job.archive, job.patch.job))
    hosts = {line.host for line in lines if not line.path.strip("-R")}
    job.frontier.set(HOSTS, sorted(hosts))
    job.frontier.set(PAGE_HOSTS, sorted(_hosts_with_pages(job.archive, job.patch)))
    discovery = Discovery(job.frontier, job.publication, job.profile)
    number = 0
    for line in _until_stopped(job, not_archived(job.archive, job.patch, feed_of(job.folder))):
        if not missing_urls.is_chosen(line, job.patch.word, job.patch.url):
            continue
        number += 1
        hops = line.path.strip("-")
        discovery.once_more(line.url, hops)
        job.frontier.set(ASKED.of(line.url), line.referrer.strip("-") if hops.strip("R") else "")
    discovery.flush()
    job.frontier.set(ASKED_URLS, number)


def _until_stopped(job: Job, lines: Iterator[LogLine]) -> Iterator[LogLine]:
    for line in lines:
        if job.stop.is_set():
            raise Interrupted("stopped while it added what is missing; the next run starts with that")
        yield line
