"""Additions that came while a crawl was being prepared, put into the crawl's tree (DESIGN.md section 6, publish).

Nothing but additions can move main meanwhile: new files in ARCs, and data.xml with new data nodes. One belongs to the
version of the ARC that it was made in: where the crawl replaced or removed the ARC, it is dropped (/Ar-10/).
"""

from __future__ import annotations

import logging

from webarcfs.archive.layout import DATA_XML, is_data_file
from webarcfs.archive.store import Store

_log = logging.getLogger(__name__)


def additions_since(store: Store, before: str, after: str, crawled: str) -> str:
    """The tree `crawled`, made on `before`, with what came between `before` and `after`."""
    changes: dict[str, str | None] = {}
    for difference in store.differences(before, after):
        arc = _arc_of(store, after, difference.path)
        if arc is not None and _version(store, before, arc) == _version(store, crawled, arc):
            changes[difference.path] = difference.new
        else:
            _log.warning("%s: the addition went, because a crawl replaced or removed its ARC", difference.path)
    return store.edit(crawled, changes) if changes else crawled


def _arc_of(store: Store, tree: str, path: str) -> str | None:
    """The innermost ARC around a file."""
    folder = path.rpartition("/")[0]
    while folder:
        entry = store.find(tree, f"{folder}/{DATA_XML}")
        if entry is not None and not entry.is_tree:
            return folder
        folder = folder.rpartition("/")[0]
    return None


def _version(store: Store, tree: str, arc: str) -> tuple[tuple[str, str], ...]:
    """What makes an ARC this version: its own files, but for the data.xml that additions extend."""
    folder = store.find(tree, arc)
    if folder is None or not folder.is_tree:
        return ()
    entries = store.entries(folder.oid)
    return tuple((each.name, each.oid) for each in entries if not each.is_tree and _is_own(each.name))


def _is_own(name: str) -> bool:
    return is_data_file(name) or name == "headers.http"
