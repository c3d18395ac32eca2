"""Adds the snapshots of git that are missing in links.db, unless `[index] links` says no.

All missing snapshots of a domain are added in the order of their publication, so several processes may do it at once.
An error of links.db stops no crawl: it is logged, and the next start tries again. The same applies if links.db cannot
be written (a full disk, another user's file) or `recover` has just replaced it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from agent.indexing.links import index_links
from webarcfs.archive.config import directory, settings_file
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.index.links_database import LinksDatabase
from webarcfs.archive.index.sqlite_file import journal, remove
from webarcfs.archive.model.errors import Busy, Damaged, DatabaseDamaged, Interrupted, NotAnArchive, SettingsError
from webarcfs.archive.system import locks

_log = logging.getLogger(__name__)


def wanted(archive: Archive) -> bool:
    """Return whether links are kept: from layout 2 on, unless `[index] links` says no.

    False for faulty settings, which other users of them report.
    """
    with suppress(NotAnArchive):  # it is being restored
        if directory.layout_of(archive.root) < directory.WITH_CATALOGUE:
            return False
    try:
        return settings_file.load(archive.settings)[0].index.links
    except SettingsError:
        return False


def add_missing(
    archive: Archive, domain: str, commits: Callable[[set[str]], Iterable[Commit]], stop: Callable[[], bool]
) -> None:
    """Add the missing snapshots of a domain until `stop` returns True; the next call continues there.

    `commits` returns all commits except those of the given tags. The first call with links enabled takes long;
    publishing need not wait for it.
    """
    if not wanted(archive):
        return
    try:
        with LinksDatabase(archive.links) as base:
            store = Repository(archive.repository(domain))
            for commit in commits(base.indexed(domain)):
                index_links(base, store, commit, stop)
    except Interrupted as error:
        _log.info("links of %s: %s; the next crawl or start goes on", domain, error)
    except (Damaged, Busy, OSError) as error:
        _log.error("links of %s were not added: %s", domain, error)


def drop_vanished(archive: Archive, tags: dict[str, set[str]], damaged: set[str]) -> None:
    """Remove the domains with a snapshot in links.db that git does not contain; `tags` are git's, by domain.

    The domains in `damaged` stay, since git cannot be read there. A database that cannot be read is removed, to be
    rebuilt. The caller must block publications.
    """
    if not wanted(archive) or not archive.links.exists():
        return
    try:
        with LinksDatabase(archive.links) as base:
            for domain in base.domains():
                if domain not in damaged and base.indexed(domain) - tags.get(domain, set()):
                    _log.warning("%s: its snapshots of %s do not match git; they are rebuilt", archive.links, domain)
                    base.forget(domain)
    except DatabaseDamaged as error:
        _log.warning("%s", error)
        remove(archive.links)
    except (Busy, OSError) as error:
        _log.error("links.db was not checked: %s", error)


def rebuild(archive: Archive, snapshots: Sequence[tuple[str, str]], damaged: set[str]) -> int | None:
    """Rebuild links.db from snapshots (domain, commit) in the order of publication; return the number of links.

    Returns None if links are not wanted. The domains in `damaged` are skipped; a domain that proves damaged keeps the
    snapshots before the damage. Crawls continue meanwhile; the caller adds their publications afterwards.
    """
    if not wanted(archive):
        remove(archive.links)
        return None
    with locks.exclusive(archive.links_lock):
        return _rebuild(archive, snapshots, damaged)


def _rebuild(archive: Archive, snapshots: Sequence[tuple[str, str]], damaged: set[str]) -> int:
    scratch = archive.links.with_name(".links.db.new")
    remove(scratch)
    bad = set(damaged)
    with LinksDatabase(scratch) as base:
        for domain, oid in snapshots:
            if domain not in bad:
                try:
                    store = Repository(archive.repository(domain))
                    index_links(base, store, store.commit(oid))
                except DatabaseDamaged:
                    raise
                except Damaged as error:
                    _log.error("%s", error)
                    bad.add(domain)
        count = base.counts()["links"]
    _replace(archive.links, scratch)
    return count


def _replace(path: Path, new: Path) -> None:
    """Replace the database at `path`, locked: a writer of the old one would remove the new one's journal."""
    with ExitStack() as stack:
        with suppress(DatabaseDamaged, OSError):
            stack.enter_context(LinksDatabase(path)).hold()
        if journal(path).exists():
            remove(path)
        new.replace(path)
