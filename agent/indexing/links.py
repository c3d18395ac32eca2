"""Stage 9, unless `[index] links` says no: adds the links of the pages that a crawl changed to links.db.

It reads only git, so `recover` does the same. A page that git cannot read is logged and skipped: other pages and later
snapshots need not wait for its repair.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from agent.indexing import bodies
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.objects import Entry
from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.index.links_database import LinksDatabase, PageChange
from webarcfs.archive.index.links_words import ArchivedLink
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, is_data_file
from webarcfs.archive.model.errors import Damaged, Interrupted, InvalidDocument
from webarcfs.content import anchors, mimetype, text

_log = logging.getLogger(__name__)


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
            yield PageChange(path, _page(store, path, entries))

    base.record(commit.message.tag, changes(), lambda change: links_of(store, change, heads[change.path]))


def links_of(store: Repository, change: PageChange, head: str) -> Iterator[ArchivedLink]:
    """Yield the links of a page, from its body's blob and its head's (empty: none), as far as git can read them."""
    if change.page is None:
        return
    try:
        yield from _read_links(store, *change.page, head)
    except Damaged as error:
        _log.error("links of %s were not added: %s", change.path, error)


def _read_links(store: Repository, url: str, blob: str, head: str) -> Iterator[ArchivedLink]:
    with bodies.chunks(store, blob) as chunks:
        sample = next(iter(chunks), b"")[: mimetype.SAMPLE]
        charset = text.decode_charset(sample, bodies.content_type(store, head))
        base = anchors.base_of(chunks, charset) if any(map(anchors.may_have_base, chunks)) else ""
        yield from anchors.anchors_of(chunks, url, charset, base)


def _changed(
    store: Repository, old: str | None, new: str | None, prefix: str
) -> Iterator[tuple[str, dict[str, Entry]]]:
    """Yield (path, entries now) of the ARCs whose data.xml differs between two trees. Equal subtrees are skipped."""
    before = {entry.name: entry for entry in store.entries(old)} if old else {}
    after = {entry.name: entry for entry in store.entries(new)} if new else {}
    if before.get(DATA_XML) != after.get(DATA_XML):
        yield prefix.rstrip("/"), after
    for name in sorted(before.keys() | after.keys()):
        was, now = (each if each is not None and each.is_tree else None for each in (before.get(name), after.get(name)))
        if was != now:
            yield from _changed(store, was.oid if was else None, now.oid if now else None, f"{prefix}{name}/")


def _page(store: Repository, path: str, entries: dict[str, Entry]) -> tuple[str, str] | None:
    """Return URL and body's blob of an ARC with an HTML page; None for other types, and for a damaged ARC."""
    document = entries.get(DATA_XML)
    data = next((entry for entry in entries.values() if not entry.is_tree and is_data_file(entry.name)), None)
    if document is None or not document.is_document or data is None:
        return None
    try:
        meta = data_xml.metadata(store.read(document.oid))
    except (InvalidDocument, Damaged) as error:
        _log.error("%s/%s (%s in %s), its links are left out: %s", path, DATA_XML, document.oid, store.path, error)
        return None
    return (meta.url, data.oid) if meta.mime_type in text.HTML_TYPES else None
