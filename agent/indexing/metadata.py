"""Stage 9, index: adds the changes of a crawl to webarc.db (/Cr-15/). It reads only git, so `recover` does the same.

Only metadata count: a commit that only adds files or data nodes changes no row.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from agent.pipeline.domainrun import TreeReader
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.history import met_lists, redirect_lists
from webarcfs.archive.index.database import Database, DocumentChange, StoredVersion
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, is_data_file
from webarcfs.archive.model.errors import Damaged, DatabaseDamaged, InvalidDocument
from webarcfs.archive.model.met_list import Met
from webarcfs.archive.model.metadata import MetaData
from webarcfs.archive.model.redirects import Redirect
from webarcfs.exchange.bodies import digest_of

_log = logging.getLogger(__name__)


def index(database: Database, store: Repository, commit: Commit) -> None:
    """Record the snapshot of a crawl's commit, in one transaction. Raises Damaged if a data.xml cannot be read."""
    changes, redirects = changes_of(store, commit), redirects_of(store, commit)
    try:
        database.record(commit.message, changes, redirects, met_of(store, commit))
    except DatabaseDamaged:
        raise
    except Damaged as error:
        if not commit.message.met:
            raise
        # Without its list a snapshot is known all the same; if something else is damaged, this raises again.
        database.record(commit.message, changes_of(store, commit), redirects_of(store, commit))
        _log.error("%s: what its crawl met unchanged is not known to webarc.db: %s", commit.message.tag, error)


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


def met_of(store: Repository, commit: Commit) -> Iterator[tuple[str, Met]]:
    """Yield what a crawl met unchanged: paths of ARCs (`/<domain>/…`), then URLs of redirects."""
    found = met_lists.of_crawl(store, commit)
    if found is None:
        return
    domain, tree = commit.message.tag.domain, met_lists.seen_tree(commit)
    for arc, met in met_lists.met_arcs(store, tree, found):
        if met is not None:
            yield f"/{domain}/{arc}", met
    for url, met in met_lists.met_redirects(store, tree, found):
        if met is not None:
            yield url, met


def redirects_of(store: Repository, commit: Commit) -> Iterator[tuple[str, Redirect | None]]:
    """Yield URL and new redirect (None: it ended) for each redirect that a commit changed."""
    before = store.commit(commit.parents[0]).tree if commit.parents else None
    return ((each.url, each.new) for each in redirect_lists.differences(store, before, commit.tree))


def _version(store: Repository, shelf: TreeReader, arc: str, meta: MetaData) -> StoredVersion:
    """A version as the tables have it. Raises Damaged where the ARC has no body or no headers.http."""
    entries = (shelf.folder(arc) or {}).values()
    body = next((each for each in entries if not each.is_tree and is_data_file(each.name)), None)
    head = next((each for each in entries if not each.is_tree and each.name == HEADERS), None)
    if body is None or head is None:
        raise Damaged(f"{meta.path} has no {HEADERS if body else 'body'} ({store.path})")
    return StoredVersion(meta, body.oid, head.oid, store.size(body.oid), digest_of(store, body.oid))


def _metadata(store: Repository, blob: str | None, path: str) -> MetaData | None:
    if blob is None:
        return None
    document = store.read(blob)
    try:
        return data_xml.metadata(document)
    except (InvalidDocument, Damaged) as error:
        raise Damaged(f"{path}/{DATA_XML} ({blob} in {store.path}): {error}") from None
