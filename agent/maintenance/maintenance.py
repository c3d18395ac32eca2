"""The maintenance of an archive: once a day by `webarc-agent start`, or by `webarc-agent maintain`.

It never waits for a crawl: a domain or a job in use is left for the next time. A crawl that publishes on a domain under
maintenance waits for its end. Readers wait only while refs are packed or stale files are removed, for a moment; refs
are packed once in some fifty crawls.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.crawl.job_folder import publication_of
from agent.indexing import fulltext
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git import git_command
from webarcfs.archive.git.repository import INCOMING, Repository
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import from_epoch
from webarcfs.archive.repair import repacking
from webarcfs.archive.system import locks
from webarcfs.archive.system.clocks import Progress, unseen

#: The interval after which it is due.
INTERVAL = timedelta(days=1)
_STAMP = "maintained"


@dataclass
class Maintained:
    """The result: maintained domains, removed files and refs, busy domains and jobs, failures with their reasons."""

    domains: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def due(archive: Archive, now: datetime) -> bool:
    """Return whether a day has passed since the last maintenance, or none was done yet."""
    try:
        last = from_epoch((archive.log / _STAMP).stat().st_mtime)
    except FileNotFoundError:
        return True
    return now - last >= INTERVAL or last > now + INTERVAL  # the clock was set back


def maintain(archive: Archive, progress: Progress = unseen) -> Maintained:
    """Maintain all domains and jobs that are not in use. One failure does not affect the others."""
    done = Maintained()
    (archive.log / _STAMP).touch()
    domains = list(archive.domains())
    for number, domain in enumerate(domains):
        progress("repack repositories", number, len(domains))
        with locks.if_free(archive.publishing_lock(domain)) as free:
            if not free:
                done.busy.append(domain)
                continue
            try:
                done.removed += _maintain_domain(archive, domain)
                done.domains.append(domain)
            except (WebarcError, OSError) as error:
                done.failed.append(f"{domain}: {error}")
    progress("repack repositories", len(domains), len(domains))
    if archive.catalogue.is_dir():
        try:
            done.removed += _maintain_catalogue(archive)
        except (WebarcError, OSError) as error:
            done.failed.append(f"{archive.catalogue.name}: {error}")
    fulltext.remove_leftovers(archive)
    _remove_dead_jobs(archive, done)
    _remove_scratch(archive, done)
    return done


def _maintain_catalogue(archive: Archive) -> list[str]:
    """Pack the catalogue's objects: each record that is written makes some, and nobody fetches them.

    Return what was removed: half-written attachments, too, can be large.
    """
    removed = [*git_command.remove_left_locks(archive.catalogue)]
    for path in repacking.stale_files(archive.catalogue):
        path.unlink(missing_ok=True)
        removed.append(path)
    repacking.repack(archive.catalogue)
    return [str(path.relative_to(archive.root)) for path in removed]


def _maintain_domain(archive: Archive, domain: str) -> list[str]:
    """Maintain one domain; return what was removed.

    The caller holds the publishing lock: no crawl is preparing a commit, so leftovers of crawls are unused.
    """
    store = Repository(archive.repository(domain))
    removed = [str(path.relative_to(archive.root)) for path in git_command.remove_left_locks(store.path)]
    scratch = [f"{domain}: {INCOMING}{name}" for name in store.refs(INCOMING)]
    stale = repacking.stale_files(store.path)
    if scratch or stale:
        # Additions must not be committed meanwhile: a mount's unfinished pack looks like the leftover of a crash.
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
    if not repacking.is_packed(store.path):
        repacking.repack(store.path)
    if not repacking.has_graph(store.path):
        repacking.write_graph(store.path)
    return removed


@contextmanager
def _refs_stand_still(archive: Archive, domain: str) -> Iterator[None]:
    """Block all writers of refs and packs; readers of refs wait, too."""
    with locks.exclusive(archive.committing_lock(domain)), locks.Turnstile(archive.lock(domain)).exclusive():
        yield


def _remove_dead_jobs(archive: Archive, done: Maintained) -> None:
    """Remove the empty folders of jobs that were killed before they began: they cannot be resumed.

    A prepared job has a definition, an interrupted job a frontier; a job that is just being created is locked.
    """
    for path in sorted(archive.jobs.iterdir()):
        if path.name.startswith(".") or not path.is_dir() or not repacking.is_stale(path) or any(path.iterdir()):
            continue
        with _job_if_free(archive, path.name, done) as free:
            if free:
                with contextlib.suppress(OSError):  # the folder is no longer empty
                    path.rmdir()
                    done.removed.append(str(path.relative_to(archive.root)))


def _remove_scratch(archive: Archive, done: Maintained) -> None:
    """Remove the temporary folders of killed processes: unfinished reports and repositories, partly removed jobs."""
    for folder in (archive.reports, archive.jobs, archive.content, archive.root):
        for path in sorted(folder.glob(f".*{archive.catalogue.name}") if folder == archive.root else folder.iterdir()):
            if not path.name.startswith(".") or not repacking.is_stale(path):
                continue
            # Writing a large report does not update the mtime of its folder, so the job's lock decides.
            with (
                _job_if_free(archive, path.name, done)
                if folder in (archive.reports, archive.jobs)
                else nullcontext(True) as free
            ):
                if free:
                    shutil.rmtree(path, ignore_errors=True)
                    done.removed.append(str(path.relative_to(archive.root)))


@contextmanager
def _job_if_free(archive: Archive, job: str, done: Maintained) -> Iterator[bool]:
    """Lock a job, so that no process begins or resumes it; yield False, and list it as busy, if a process uses it."""
    with locks.if_free(archive.publication_lock(publication_of(job))) as free:
        if not free:
            done.busy.append(job)
        yield free
