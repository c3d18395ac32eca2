"""Keeps an archive in good order, unasked: once a day by `webarc-agent start`, or by `webarc-agent maintain`.

It never waits for a crawl: a domain or a job that somebody is at work on is left for the next time. A crawl that comes
to publish on a domain which is just being put in order waits until that is done; readers are not concerned, but for the
moment in which refs are packed, once in some fifty crawls.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.jobfolder.names import publication_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git import leftlocks
from webarcfs.archive.git.repository import INCOMING, Repository
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.repair import repacking
from webarcfs.archive.system import locks

#: How often it is due.
INTERVAL = timedelta(days=1)
_STAMP = "maintained"


@dataclass
class Maintained:
    """What was done: the domains that were put in order, what was removed, what was busy, what failed and why."""

    domains: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def due(archive: Archive, now: datetime) -> bool:
    """Whether a day has passed since the last time, or it never was done."""
    try:
        last = from_epoch((archive.log / _STAMP).stat().st_mtime)
    except FileNotFoundError:
        return True
    return now - last >= INTERVAL or last > now + INTERVAL  # the clock was set back


def maintain(archive: Archive) -> Maintained:
    """Put everything in order that nobody is at work on. What is wrong with one domain costs no other."""
    done = Maintained()
    (archive.log / _STAMP).touch()
    for domain in archive.domains():
        with locks.if_free(archive.publishing_lock(domain)) as free:
            if not free:
                done.busy.append(domain)
                continue
            try:
                done.removed += _maintain_domain(archive, domain)
                done.domains.append(domain)
            except (WebarcError, OSError) as error:
                done.failed.append(f"{domain}: {error}")
    _remove_dead_jobs(archive, done)
    _remove_scratch(archive, done)
    return done


def _maintain_domain(archive: Archive, domain: str) -> list[str]:
    """The caller holds the publishing lock: no crawl is preparing a commit here, and what one left is nobody's."""
    store = Repository(archive.repository(domain))
    removed = [str(path.relative_to(archive.root)) for path in leftlocks.remove(store.path)]
    scratch = [f"{domain}: {INCOMING}{name}" for name in store.refs(INCOMING)]
    stale = repacking.stale_files(store.path)
    if scratch or stale:
        # Nobody commits additions meanwhile either: a mount's unfinished pack looks like one that a crash left.
        with _refs_stand_still(archive, domain):
            if scratch:
                store.drop_scratch()
                removed += scratch
            for path in filter(repacking.is_stale, stale):
                path.unlink(missing_ok=True)
                removed.append(str(path.relative_to(archive.root)))
    if repacking.has_many_refs(store.path):
        with _refs_stand_still(archive, domain):
            repacking.pack_refs(store.path)
    repacking.repack(store.path)
    repacking.write_graph(store.path)
    return removed


@contextmanager
def _refs_stand_still(archive: Archive, domain: str) -> Iterator[None]:
    """Keep all from moving refs and storing packs; readers from looking for them, for a moment."""
    with locks.exclusive(archive.committing_lock(domain)), locks.Turnstile(archive.lock(domain)).exclusive():
        yield


def _remove_dead_jobs(archive: Archive, done: Maintained) -> None:
    """Remove folders of jobs that were killed before they had begun: there is nothing in them to go on from.

    One that is prepared has a definition, one that was interrupted a frontier; one that is just being made is locked.
    """
    for path in sorted(archive.jobs.iterdir()):
        if path.name.startswith(".") or not path.is_dir() or not repacking.is_stale(path) or any(path.iterdir()):
            continue
        with _job_if_free(archive, path.name, done) as free:
            if free:
                with contextlib.suppress(OSError):  # something is in it now
                    path.rmdir()
                    done.removed.append(str(path.relative_to(archive.root)))


def _remove_scratch(archive: Archive, done: Maintained) -> None:
    """Remove what was being made when something died (reports, repositories), or being removed (jobs)."""
    for folder in (archive.reports, archive.jobs, archive.content):
        for path in sorted(folder.iterdir()):
            if not path.name.startswith(".") or not repacking.is_stale(path):
                continue
            # Writing a large report does not touch the time of its folder.
            with _job_if_free(archive, path.name, done) if folder != archive.content else nullcontext(True) as free:
                if free:
                    shutil.rmtree(path, ignore_errors=True)
                    done.removed.append(str(path.relative_to(archive.root)))


@contextmanager
def _job_if_free(archive: Archive, job: str, done: Maintained) -> Iterator[bool]:
    """Hold a job, so that nobody begins or goes on with it; yields False, and says so, where a process is at it."""
    with locks.if_free(archive.publication_lock(publication_of(job))) as free:
        if not free:
            done.busy.append(job)
        yield free
