"""Synchronises the data derived from git: webarc.db, links.db and the feed (/Db-6/, /Cr-2.3/).

`recover` rebuilds everything, unless damage would leave a snapshot out, and repairs the small files of repositories as
far as possible. `catch_up` adds snapshots that are missing after a crash between publishing and indexing.

Stage 9, index, adds the changes of a crawl to webarc.db (/Cr-15/). It reads only git, so `recover` does the same. Only
metadata count: a commit that only adds files or data nodes changes no row.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

from agent.indexing.links import add_missing, behind, drop_vanished, rebuild
from agent.pipeline.domain_run import TreeReader
from webarcfs.archive.additions.commit_additions import replay
from webarcfs.archive.catalogue.catalogue import remove_damaged
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git import git_command
from webarcfs.archive.git.repository import CRAWLS, Commit, Repository
from webarcfs.archive.history import redirect_lists, sequence
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.index.database import Database, DocumentChange, StoredVersion
from webarcfs.archive.index.sqlite_file import journal, remove
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, is_data_file
from webarcfs.archive.model.errors import Busy, Damaged, DatabaseDamaged, DatabaseOutdated, InvalidDocument, WebarcError
from webarcfs.archive.model.metadata import CommitTag, MetaData, parse_compact_time
from webarcfs.archive.model.url_lists import Met, Redirect
from webarcfs.archive.repair.mending import mend
from webarcfs.archive.system.clocks import Progress, unseen

# == metadata =========================================================================================================


_log = logging.getLogger(__name__)
#: The ARCs that a crawl met, in the order of its tree; None: its list and its tree say it.
_MetArcs = Sequence[tuple[str, Met]] | None


def index(database: Database, store: Repository, commit: Commit, met_arcs: _MetArcs = None) -> None:
    """Record the snapshot of a crawl's commit, in one transaction. Raises Damaged if a data.xml cannot be read.

    `met_arcs` is what its list says of ARCs, if whoever wrote it has it at hand.
    """
    changes, redirects = changes_of(store, commit), redirects_of(store, commit)
    try:
        database.record(commit.message, changes, redirects, met_of(store, commit, met_arcs))
    except DatabaseDamaged:
        raise
    except Damaged as error:
        if not commit.message.met:
            raise
        # Without its list a snapshot is known all the same; if something else is damaged, this raises again.
        database.record(commit.message, changes_of(store, commit), redirects_of(store, commit))
        _log.error("%s: webarc.db does not know what its crawl met unchanged: %s", commit.message.tag, error)


def changes_of(store: Repository, commit: Commit) -> Iterator[DocumentChange]:
    """Yield the documents whose metadata a commit changed, in order of path."""
    before = store.commit(commit.parents[0]).tree if commit.parents else None
    domain, shelf = commit.message.tag.domain, TreeReader(store, commit.tree)
    for difference in store.differences(before, commit.tree):
        folder, _, name = difference.path.rpartition("/")
        if name != DATA_XML:
            continue
        path = f"/{domain}/{folder}"
        old, new = (_metadata(store, blob, path) for blob in (difference.old, difference.new))
        if old != new:
            yield DocumentChange(path, None if new is None else _version(store, shelf, folder, new))


def met_of(store: Repository, commit: Commit, met_arcs: _MetArcs = None) -> Iterator[tuple[str, Met]]:
    """Yield what a crawl met unchanged: paths of ARCs (`/<domain>/…`), then URLs of redirects.

    Without `met_arcs` the tree is walked, which takes longer than all the rest.
    """
    met_list = redirect_lists.of_crawl(store, commit)
    if met_list is None:
        return
    domain, tree = commit.message.tag.domain, redirect_lists.seen_tree(commit)
    for arc, met in redirect_lists.met_arcs(store, tree, met_list) if met_arcs is None else met_arcs:
        if met is not None:
            yield f"/{domain}/{arc}", met
    for url, met in redirect_lists.met_redirects(store, tree, met_list):
        if met is not None:
            yield url, met


def redirects_of(store: Repository, commit: Commit) -> Iterator[tuple[str, Redirect | None]]:
    """Yield URL and new redirect (None: it ended) for each redirect that a commit changed."""
    before = store.commit(commit.parents[0]).tree if commit.parents else None
    return ((change.url, change.new) for change in redirect_lists.differences(store, before, commit.tree))


def _version(store: Repository, shelf: TreeReader, arc: str, meta: MetaData) -> StoredVersion:
    """A version as the tables have it. Raises Damaged where the ARC has no body or no headers.http."""
    entries = (shelf.folder(arc) or {}).values()
    body = next((entry for entry in entries if not entry.is_tree and is_data_file(entry.name)), None)
    head = next((entry for entry in entries if not entry.is_tree and entry.name == HEADERS), None)
    if body is None or head is None:
        raise Damaged(f"{meta.path} has no {HEADERS if body else 'body'} ({store.path})")
    return StoredVersion(meta, body.oid, head.oid, store.size(body.oid), store.digest(body.oid))


def _metadata(store: Repository, blob: str | None, path: str) -> MetaData | None:
    if blob is None:
        return None
    document = store.read(blob)
    try:
        return data_xml.metadata(document)
    except (InvalidDocument, Damaged) as error:
        raise Damaged(f"{path}/{DATA_XML} ({blob} in {store.path}): {error}") from None


# == recovery =========================================================================================================


@dataclass(frozen=True, slots=True, order=True)
class IndexedSnapshot:
    """A crawl's commit; the order of instances is the order of the feed."""

    sequence: int
    domain: str
    oid: str
    tag: CommitTag


@dataclass(frozen=True, slots=True)
class Recovered:
    """The numbers of rebuilt rows and lines, and the unreadable repositories. `links` is None if links are not wanted.

    `mended` and `left` are lines on repaired and on remaining damage in repositories. `left_out` are the snapshots of
    unreadable repositories that what was rebuilt lacks; if `is_kept`, nothing was rebuilt for their sake.
    """

    snapshots: int
    versions: int
    lines: int
    damaged: tuple[str, ...]
    links: int | None = None
    mended: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    is_kept: bool = False


def recover(archive: Archive, progress: Progress = unseen, *, leave_out: bool = False) -> Recovered:
    """Rebuild webarc.db, `changes` and, if wanted, links.db from the repositories; remove a damaged catalogue.db.

    Publications wait meanwhile, except during the rebuild of links.db, which takes longest. First, locks left by a
    killed git are removed, and HEAD, refs and configurations are repaired as far as their content can be determined.
    Then the additions that dead mounts left in the journal are committed.

    If a repository cannot be read as a whole, its later snapshots would be gone from webarc.db. Unless told to leave
    them out, it keeps a webarc.db that has them, with the feed and links.db.
    """
    mended, left = _mend(archive, progress)
    replay(archive)
    with sequence.hold(archive):
        snapshots, damaged = _all_snapshots(archive, {})
        scratch = archive.database.with_name(".webarc.db.new")
        remove(scratch)
        with Database(scratch) as database:
            damaged |= _index_all(archive, database, snapshots, progress)
            versions = database.count_versions()
            known = _indexed(archive)
            left_out = _left_out(archive, database, damaged, known)
        if not leave_out and known.keys() & left_out:
            remove(scratch)
            _log.error("nothing is rebuilt: %s cannot be read, and would be left out", ", ".join(left_out))
            unread = tuple(sorted(damaged))
            lines = sum(1 for _ in Feed(archive.changes).lines())
            return Recovered(len(known), versions, lines, unread, None, mended, left, tuple(left_out), is_kept=True)
        if journal(archive.database).exists():
            remove(archive.database)
        scratch.replace(archive.database)
        lines = Feed(archive.changes).rewrite(snapshot.tag for snapshot in snapshots)
    links = rebuild(archive, [(snapshot.domain, snapshot.oid) for snapshot in snapshots], damaged, progress)
    for domain in sorted(set(archive.domains()) - damaged) if links is not None else ():
        catch_up_links(archive, domain)  # snapshots published meanwhile
    try:
        remove_damaged(archive)  # whoever reads it next rebuilds it
    except (Busy, OSError) as error:
        left = (*left, f"{archive.catalogue_database.name}: {error}")
    unread = tuple(sorted(damaged))
    return Recovered(len(snapshots), versions, lines, unread, links, mended, left, tuple(left_out))


def _left_out(archive: Archive, database: Database, damaged: set[str], known: Mapping[str, int]) -> list[str]:
    """Return the snapshots of damaged domains that the new database lacks, by the old one, the feed and git's refs."""
    tags = {tag for tag in (*known, *Feed(archive.changes).lines()) if tag.partition("@")[2] in damaged}
    for domain in damaged:
        with suppress(Damaged):
            names = Repository(archive.repository(domain)).ref_names(CRAWLS)
            tags |= {str(CommitTag(parse_compact_time(name), domain)) for name in names}
    return sorted(tags - set().union(*(database.indexed(domain) for domain in damaged))) if damaged else []


def _mend(archive: Archive, progress: Progress) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Repair each repository; return lines on repaired and remaining damage. One failure does not affect the others."""
    done, left = [], []
    domains = list(archive.domains())
    for number, domain in enumerate(domains):
        progress("check repositories", number, len(domains))
        git_command.remove_left_locks(archive.repository(domain))
        try:
            mended = mend(archive, domain)
        except WebarcError as error:
            left.append(f"{domain}: {error}")
            continue
        done += [f"{domain}: {line}" for line in mended.done]
        left += [f"{domain}: {line}" for line in mended.left]
    progress("check repositories", len(domains), len(domains))
    return tuple(done), tuple(left)


def catch_up(archive: Archive, stop: Callable[[], bool] = lambda: False, progress: Progress = unseen) -> None:
    """Index published snapshots that are not indexed, and complete the feed. If none is missing, it only lists refs.

    The additions that dead mounts left in the journal are committed first. `stop` ends the reading of links, which may
    cover the whole history; the next call or crawl continues.
    """
    replay(archive)
    with sequence.hold(archive):
        snapshots, damaged = _all_snapshots(archive, _indexed(archive))
        _complete_feed(archive, snapshots, damaged)
        tags: dict[str, set[str]] = {domain: set() for domain in archive.domains()}
        for snapshot in snapshots:
            tags[snapshot.domain].add(str(snapshot.tag))
        drop_vanished(archive, tags, damaged)
        in_step = _index_missing(archive, snapshots, progress)
    if in_step:
        for domain in behind(archive, {domain: own for domain, own in tags.items() if domain not in damaged}):
            catch_up_links(archive, domain, stop)
        return
    _log.warning("%s did not match git; it is rebuilt", archive.database)
    recover(archive, progress)


def catch_up_domain(archive: Archive, domain: str, met_arcs: Mapping[str, _MetArcs] = MappingProxyType({})) -> None:
    """Index the published snapshots of one domain that are not indexed yet, oldest first.

    `met_arcs` has what is known of commits that this process has published. A database of another version is rebuilt: a
    crawl by hand may be the first that writes to it.
    """
    store = Repository(archive.repository(domain))
    try:
        with Database(archive.database) as database:
            indexed = dict.fromkeys(database.indexed(domain), 0)
            for snapshot in sorted(_snapshots(store, domain, indexed)):
                if str(snapshot.tag) not in indexed:
                    index(database, store, store.commit(snapshot.oid), met_arcs.get(snapshot.oid))
    except DatabaseOutdated as error:
        _log.warning("%s; it is rebuilt", error)
        recover(archive)


def catch_up_links(archive: Archive, domain: str, stop: Callable[[], bool] = lambda: False) -> None:
    """Add the missing snapshots of one domain to links.db; `stop` ends it between two pages."""
    store = Repository(archive.repository(domain))

    def commits(indexed: set[str]) -> Iterator[Commit]:
        for snapshot in sorted(_snapshots(store, domain, dict.fromkeys(indexed, 0))):
            if str(snapshot.tag) not in indexed:
                yield store.commit(snapshot.oid)

    add_missing(archive, domain, commits, stop)


def _complete_feed(archive: Archive, snapshots: list[IndexedSnapshot], damaged: set[str]) -> None:
    """Rewrite the feed if it differs from git, unless a repository cannot be read: its lines would be lost."""
    feed = Feed(archive.changes)
    lines = [line for line in feed.lines() if line.partition("@")[2] not in damaged]
    if lines == [str(snapshot.tag) for snapshot in snapshots]:
        return
    if damaged:
        _log.error("%s does not match git; repair %s first", archive.changes, ", ".join(sorted(damaged)))
        return
    _log.warning("%s did not match git; it is rewritten", archive.changes)
    feed.rewrite(snapshot.tag for snapshot in snapshots)


def _index_missing(archive: Archive, snapshots: list[IndexedSnapshot], progress: Progress) -> bool:
    """Index missing snapshots; return False if the database must be rebuilt: damaged, or with snapshots not in git."""
    domains = {snapshot.domain for snapshot in snapshots}
    tags = {str(snapshot.tag) for snapshot in snapshots}
    try:
        with Database(archive.database) as database:
            indexed = set().union(*(database.indexed(domain) for domain in domains)) if domains else set()
            if indexed - tags:
                return False
            missing = [snapshot for snapshot in snapshots if str(snapshot.tag) not in indexed]
            _index_all(archive, database, missing, progress)
    except DatabaseDamaged as error:
        _log.warning("%s", error)
        return False
    return True


def _index_all(archive: Archive, database: Database, snapshots: list[IndexedSnapshot], progress: Progress) -> set[str]:
    """Index snapshots in order; log and return the damaged domains, which keep the snapshots before the damage."""
    damaged: set[str] = set()
    for number, snapshot in enumerate(snapshots, 1):
        if snapshot.domain not in damaged:
            try:
                store = Repository(archive.repository(snapshot.domain))
                index(database, store, store.commit(snapshot.oid))
            except DatabaseDamaged:
                raise
            except Damaged as error:
                _log.error("%s", error)
                damaged.add(snapshot.domain)
        progress("index snapshots", number, len(snapshots))
    return damaged


def _indexed(archive: Archive) -> dict[str, int]:
    """Return commitTag → number of each snapshot in the database; empty if it cannot be read."""
    try:
        with Database(archive.database) as database:
            return {tag: number for number, tag in database.since(0)}
    except DatabaseDamaged:
        return {}  # the database will be rebuilt


def _all_snapshots(archive: Archive, known: Mapping[str, int]) -> tuple[list[IndexedSnapshot], set[str]]:
    """Return every snapshot in the order of the feed, and the domains that cannot be read, which are logged."""
    snapshots_per_domain: list[list[IndexedSnapshot]] = []
    damaged: set[str] = set()
    for domain in archive.domains():
        try:
            snapshots_per_domain.append(sorted(_snapshots(Repository(archive.repository(domain)), domain, known)))
        except Damaged as error:
            _log.error("%s", error)
            damaged.add(domain)
    return list(heapq.merge(*snapshots_per_domain)), damaged


def _snapshots(store: Repository, domain: str, known: Mapping[str, int]) -> Iterator[IndexedSnapshot]:
    """Yield the snapshots of a domain. For a known number the commit is not read, and `oid` is empty."""
    for name in store.ref_names(CRAWLS):
        tag = CommitTag(parse_compact_time(name), domain)
        if str(tag) in known:
            yield IndexedSnapshot(known[str(tag)], domain, "", tag)
        elif (commit := _crawl(store, tag)) is not None:
            yield IndexedSnapshot(commit.message.sequence, domain, commit.oid, commit.message.tag)


def _crawl(store: Repository, tag: CommitTag) -> Commit | None:
    target = store.ref(tag.ref)
    commit = sequence.crawl_commit(store, target) if target else None
    if target and commit is None:
        raise Damaged(f"{store.path}: {tag.ref} is on no crawl's commit")
    return commit
