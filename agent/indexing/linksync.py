"""Adds to links.db the snapshots that git has and it has not, if `[index] links` is set; else does nothing.

All missing snapshots of a domain are added in the order of their publication, so several processes may do it at once. A
fault of links.db stops no crawl: it is logged, and the next start tries again. The same holds when it cannot be written
(a full disk, another user's file) or when `recover` has just replaced it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from agent.indexing.links import index_links
from webarcfs.archive.config import settings
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.index.links_database import LinksDatabase
from webarcfs.archive.index.sqlite_file import journal, remove
from webarcfs.archive.model.errors import Busy, Damaged, DatabaseDamaged, Interrupted, SettingsError
from webarcfs.archive.system import locks

_log = logging.getLogger(__name__)


def wanted(archive: Archive) -> bool:
    """Whether `[index] links` is set. Faulty settings are for those to tell who run on them."""
    try:
        return settings.load(archive.settings)[0].index.links
    except SettingsError:
        return False


def add_missing(
    archive: Archive, domain: str, commits: Callable[[set[str]], Iterable[Commit]], stop: Callable[[], bool]
) -> None:
    """Take in the snapshots of a domain that are not in yet, until it is to `stop`; the next call goes on from there.

    `commits` are all but those of the tags it is given. It takes long where links were not kept before, and publishing
    need not wait for it.
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
        _log.error("links of %s were not taken in: %s", domain, error)


def drop_vanished(archive: Archive, tags: dict[str, set[str]], damaged: set[str]) -> None:
    """Forget the domains of which links.db has a snapshot that git has not; `tags` are git's, by domain.

    Of `damaged` ones nobody knows what git has, so they stay. A database that cannot be read is removed, to be
    made anew. Publications must be waiting.
    """
    if not wanted(archive) or not archive.links.exists():
        return
    try:
        with LinksDatabase(archive.links) as base:
            for domain in base.domains():
                if domain not in damaged and base.indexed(domain) - tags.get(domain, set()):
                    _log.warning("%s: what it has of %s is not what git has; it is made anew", archive.links, domain)
                    base.forget(domain)
    except DatabaseDamaged as error:
        _log.warning("%s", error)
        remove(archive.links)
    except (Busy, OSError) as error:
        _log.error("links.db was not looked at: %s", error)


def rebuild(archive: Archive, snapshots: Sequence[tuple[str, str]], damaged: set[str]) -> int | None:
    """Make links.db anew from snapshots (domain, commit) in the order of publication; how many links, None without it.

    Domains that prove damaged are left where they stood, and not looked at if they are in `damaged` already. Crawls go
    on meanwhile; what they publish is to be added afterwards.
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
