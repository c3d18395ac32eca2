"""Stage 9, unless `[index] links = false`: adds links of pages to links.db, after a crawl or where they are missing.

A crawl adds the links of the pages that it changed: those of the body, and of the DOM that a browser showed. It reads
only git, so `recover` does the same. A page that git cannot read is logged and skipped: other pages and later
snapshots need not wait for its repair.

Snapshots of git that are missing in links.db are added for each domain in the order of their publication, so several
processes may do it at once. An error of links.db stops no crawl: it is logged, and the next start tries again. The same
applies if links.db cannot be written (a full disk, another user's file) or `recover` has just replaced it.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from webarcfs.archive.config import directory, settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Commit, Repository, TreeEntry
from webarcfs.archive.history import rendered_forms
from webarcfs.archive.index.links import ArchivedLink, LinksDatabase, PageChange
from webarcfs.archive.index.sqlite_file import journal, remove
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, is_data_file
from webarcfs.archive.model.errors import (
    Busy,
    Damaged,
    DatabaseDamaged,
    Interrupted,
    InvalidDocument,
    NotAnArchive,
    SettingsError,
)
from webarcfs.archive.system import locks
from webarcfs.archive.system.cache import identity
from webarcfs.archive.system.clocks import Progress, unseen
from webarcfs.content import mimetype, outlinks, text
from webarcfs.warc.http_response import LONGEST_OF_ARC, content_type_in

# == links ============================================================================================================


_log = logging.getLogger(__name__)
_CHUNK = 1 << 20


def index_links(
    base: LinksDatabase, store: Repository, commit: Commit, stop: Callable[[], bool] = lambda: False
) -> None:
    """Record the snapshot of a crawl's commit.

    Raises Damaged if a folder cannot be read, and Interrupted between two pages if `stop` returns True; the pages
    stored until then need not be read again.
    """
    heads: dict[str, str] = {}  # path of the current page → the blob of its head

    def changes() -> Iterator[PageChange]:
        before = store.commit(commit.parents[0]).tree if commit.parents else None
        for path, entries in _changed(store, before, commit.tree, f"/{commit.message.tag.domain}/"):
            if stop():
                raise Interrupted(f"stopped before all of {commit.message.tag} was read")
            heads.clear()
            heads[path] = entries[HEADERS].oid if HEADERS in entries else ""
            yield _page(store, path, entries)

    base.record(commit.message.tag, changes(), lambda change: links_of(store, change, heads[change.path]))


def links_of(store: Repository, change: PageChange, head: str) -> Iterator[ArchivedLink]:
    """Yield the links of a page, from its body's blob and its head's (empty: none), as far as git can read them.

    With the DOM that a browser showed come those of its links that the body has not, or not as often.
    """
    if change.page is None:
        return
    url, blob = change.page
    own: Counter[ArchivedLink] = Counter()
    try:
        for link in _read_links(store, url, blob, head):
            if change.dom:
                own[link] += 1
            yield link
    except Damaged as error:
        _log.error("links of %s were not added: %s", change.path, error)
    if not change.dom:
        return
    try:
        for link in _read_links(store, url, change.dom, None):
            if own[link]:
                own[link] -= 1
            else:
                yield link
    except Damaged as error:
        _log.error("links of what a browser showed of %s were not added: %s", change.path, error)


def _read_links(store: Repository, url: str, blob: str, head: str | None) -> Iterator[ArchivedLink]:
    """Yield the links of HTML. Without `head`, it is UTF-8."""
    with _chunks(store, blob) as chunks:
        charset = "utf-8"
        if head is not None:
            sample = next(iter(chunks), b"")[: mimetype.SAMPLE]
            charset = text.decode_charset(sample, content_type_in(store.read_short(head, LONGEST_OF_ARC)))
        base = outlinks.base_of(chunks, charset) if any(map(outlinks.may_have_base, chunks)) else ""
        yield from outlinks.anchors_of(chunks, url, charset, base)


@contextmanager
def _chunks(store: Repository, blob: str) -> Iterator[Iterable[bytes]]:
    """Yield the chunks of a body; each iteration begins at its start."""
    if store.size(blob) <= _CHUNK:
        yield (store.read(blob),)
        return
    with tempfile.TemporaryFile() as file:
        store.copy(blob, file.fileno())

        yield _Chunks(file.fileno())


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The chunks of a body in a file; each iteration begins at its start."""

    fd: int

    def __iter__(self) -> Iterator[bytes]:
        at = 0
        while at < outlinks.LONGEST_PAGE and (chunk := os.pread(self.fd, _CHUNK, at)):
            yield chunk
            at += len(chunk)


def _changed(
    store: Repository, old: str | None, new: str | None, prefix: str
) -> Iterator[tuple[str, dict[str, TreeEntry]]]:
    """Yield (path, entries now) of the ARCs whose data.xml differs between two trees. Equal subtrees are skipped."""
    before = {entry.name: entry for entry in store.entries(old)} if old else {}
    after = {entry.name: entry for entry in store.entries(new)} if new else {}
    if before.get(DATA_XML) != after.get(DATA_XML):
        yield prefix.rstrip("/"), after
    for name in sorted(before.keys() | after.keys()):
        was, now = (
            entry if entry is not None and entry.is_tree else None for entry in (before.get(name), after.get(name))
        )
        if was != now:
            yield from _changed(store, was.oid if was else None, now.oid if now else None, f"{prefix}{name}/")


def _page(store: Repository, path: str, entries: dict[str, TreeEntry]) -> PageChange:
    """Return the state of an ARC: that of an HTML page, none for other types and for a damaged ARC."""
    document = entries.get(DATA_XML)
    data = next((entry for entry in entries.values() if not entry.is_tree and is_data_file(entry.name)), None)
    if document is None or not document.is_document or data is None:
        return PageChange(path, None)
    try:
        meta = data_xml.metadata(store.read(document.oid))
    except (InvalidDocument, Damaged) as error:
        _log.error("%s/%s (%s in %s), its links are left out: %s", path, DATA_XML, document.oid, store.path, error)
        return PageChange(path, None)
    if meta.mime_type not in text.HTML_TYPES:
        return PageChange(path, None, meta.is_resource)
    return PageChange(path, (meta.url, data.oid), meta.is_resource, _dom(store, path, meta.rendered))


def _dom(store: Repository, path: str, rendered: str) -> str:
    """Return the blob of the DOM that a browser showed; empty without one. The log has a line on one that is lost."""
    try:
        return rendered_forms.html_blob(store, rendered) if rendered else ""
    except Damaged as error:
        _log.error("links of what a browser showed of %s are left out: %s", path, error)
        return ""


# == synchronising ====================================================================================================


def wanted(archive: Archive) -> bool:
    """Return whether links are kept: from layout 2 on, unless `[index] links = false`.

    False for faulty settings, which other users of them report.
    """
    with suppress(NotAnArchive):  # it is being restored
        if directory.layout_of(archive.root) < directory.WITH_CATALOGUE:
            return False
    with suppress(SettingsError):
        return _wanted_in(archive.settings, identity(archive.settings, archive.publications))
    return False


@lru_cache(maxsize=4)
def _wanted_in(settings: Path, _state: tuple[object, ...]) -> bool:
    """Return what a state of the settings says: a crawl asks for each of its hosts, which may be thousands."""
    return settings_files.load(settings)[0].index.links


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
        _log.info("links of %s: %s; the next crawl or start resumes it", domain, error)
    except (Damaged, Busy, OSError) as error:
        _log.error("links of %s were not added: %s", domain, error)


def behind(archive: Archive, tags: Mapping[str, Set[str]]) -> list[str]:
    """Return the domains of which links.db lacks a snapshot, in order; `tags` are git's, by domain.

    Nearly always none; to ask domain by domain would open the database, and the repository, for each.
    """
    if not wanted(archive):
        return []
    try:
        with LinksDatabase(archive.links) as base:
            return sorted(domain for domain, own in tags.items() if own - base.indexed(domain))
    except (Damaged, Busy, OSError):
        return sorted(tags)  # `add_missing` tells what is wrong


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


def rebuild(
    archive: Archive, snapshots: Sequence[tuple[str, str]], damaged: set[str], progress: Progress = unseen
) -> int | None:
    """Rebuild links.db from snapshots (domain, commit) in the order of publication; return the number of links.

    Returns None if links are not wanted. The domains in `damaged` are skipped; a domain that proves damaged keeps the
    snapshots before the damage. Crawls continue meanwhile; the caller adds their publications afterwards.
    """
    if not wanted(archive):
        remove(archive.links)
        return None
    with locks.exclusive(archive.links_lock):
        return _rebuild(archive, snapshots, damaged, progress)


def _rebuild(archive: Archive, snapshots: Sequence[tuple[str, str]], damaged: set[str], progress: Progress) -> int:
    scratch = archive.links.with_name(".links.db.new")
    remove(scratch)
    bad = set(damaged)
    with LinksDatabase(scratch) as base:
        for number, (domain, oid) in enumerate(snapshots):
            progress("read links of snapshots", number, len(snapshots))
            if domain not in bad:
                try:
                    store = Repository(archive.repository(domain))
                    index_links(base, store, store.commit(oid))
                except DatabaseDamaged:
                    raise
                except Damaged as error:
                    _log.error("%s", error)
                    bad.add(domain)
        progress("read links of snapshots", len(snapshots), len(snapshots))
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
