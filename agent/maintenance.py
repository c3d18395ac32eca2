"""Keeps an archive in good order, unasked: once a day by `webarc-agent start`, or by `webarc-agent maintain`.

It never waits for a crawl and never makes one wait: a domain or a job that somebody is at work on is left for the next
time, and readers are not concerned.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from webarcfs.archive import locks, upkeep
from webarcfs.archive.directory import Archive
from webarcfs.archive.errors import WebarcError
from webarcfs.archive.model import from_epoch
from webarcfs.archive.store import INCOMING, Store

#: How often it is due.
INTERVAL = timedelta(days=1)
_STAMP = "maintained"
_NAME_LENGTH = len("YYYYmmddTHHMMSS-")


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
    for path in [*_dead_jobs(archive, done), *_scratch(archive)]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        done.removed.append(str(path.relative_to(archive.root)))
    return done


def _maintain_domain(archive: Archive, domain: str) -> list[str]:
    """The caller holds the publishing lock: no crawl is preparing a commit here, and what one left is nobody's."""
    store = Store(archive.repository(domain))
    removed = [f"{domain}: {INCOMING}{name}" for name in store.refs(INCOMING)]
    if removed:
        store.drop_scratch()
    stale = upkeep.stale_files(store.path)
    if stale:
        # Nobody commits additions meanwhile either; a lock an hour old is not theirs, and they would fail at it.
        with locks.exclusive(archive.committing_lock(domain)), locks.Turnstile(archive.lock(domain)).exclusive():
            for path in filter(upkeep.is_stale, stale):
                path.unlink(missing_ok=True)
                removed.append(str(path.relative_to(archive.root)))
    upkeep.repack(store.path)
    upkeep.write_graph(store.path)
    return removed


def _dead_jobs(archive: Archive, done: Maintained) -> Iterator[Path]:
    """Folders of jobs that were killed before they had begun: there is nothing in them to go on from.

    A job that is prepared or alive holds its publication's lock, and an interrupted one has a frontier or an item.
    """
    for path in sorted(archive.jobs.iterdir()):
        if not upkeep.is_stale(path) or (path.is_dir() and any(path.iterdir())):
            continue
        with locks.if_free(archive.root / "lock" / f".publication-{path.name[_NAME_LENGTH:]}") as free:
            if free and path.is_dir() and not any(path.iterdir()):
                yield path
            elif not free:
                done.busy.append(path.name)


def _scratch(archive: Archive) -> Iterator[Path]:
    """What was being made when something died: reports, repositories."""
    for folder in (archive.reports, archive.content):
        for path in sorted(folder.iterdir()):
            if path.name.startswith(".") and upkeep.is_stale(path):
                yield path
