"""Merges additions that came while a crawl was being prepared into the crawl's tree.

Only additions can move main meanwhile: new files in ARCs, and data.xml with new data nodes. An addition belongs to the
version of its ARC: if the crawl replaced or removed the ARC, or needs the addition's place for a page, it is dropped
(/Ar-10/). Only folders that additions changed are read.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from webarcfs.archive.git.objects import Entry
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, is_data_file

_log = logging.getLogger(__name__)
_Entry = Entry | None
_Folder = dict[str, Entry]


def additions_since(store: Repository, before: str, after: str, crawled: str) -> str:
    """Return the tree `crawled`, made on `before`, with the changes between `before` and `after`."""
    root = _Place("", before, after, crawled)
    return _merge(store, root, takes=False) or store.write_tree([])


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder as the crawl found it, as additions left it, and as the crawl made it; None if there is none."""

    path: str
    before: str | None
    after: str | None
    crawled: str | None

    def folders(self, store: Repository) -> tuple[_Folder, _Folder, _Folder]:
        """Return name → entry, for each of the three."""
        before, after, crawled = (
            {entry.name: entry for entry in store.entries(tree)} if tree else {}
            for tree in (self.before, self.after, self.crawled)
        )
        return before, after, crawled


def _merge(store: Repository, place: _Place, *, takes: bool) -> str | None:
    """Return the crawl's folder with its additions; `takes` says whether the ARC around it is unchanged."""
    if place.before == place.after:
        return place.crawled
    before, after, crawled = place.folders(store)
    untouched = place.before == place.crawled
    takes = _own(before) == _own(crawled) if _is_file(before.get(DATA_XML)) else takes and untouched
    if takes and untouched:
        return place.after
    merged = dict(crawled)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            now = _child(store, f"{place.path}{name}", (before.get(name), after.get(name), crawled.get(name)), takes)
            merged.pop(name, None)
            merged |= {name: now} if now else {}
    if merged == crawled:
        return place.crawled
    return store.write_tree(list(merged.values())) if merged else None


def _child(store: Repository, path: str, states: tuple[_Entry, _Entry, _Entry], takes: bool) -> _Entry:
    """Return the final entry of a name that additions changed; `states` as in _Place."""
    before, after, crawled = states
    if not any(_is_file(each) for each in states):
        place = _Place(f"{path}/", *(each.oid if each else None for each in states))
        tree = _merge(store, place, takes=takes)
        return Entry(path.rpartition("/")[2], tree, True) if tree else None
    if takes and before == crawled:
        return after
    _log.warning("%s: the addition went, because a crawl replaced or removed its ARC or needs its place", path)
    return crawled


def _own(folder: _Folder) -> _Folder:
    """Return the entries that define an ARC's version, with data.xml as the crawl found it, users' nodes included."""
    return {name: entry for name, entry in folder.items() if _is_own(name) and not entry.is_tree}


def _is_own(name: str) -> bool:
    return name in (DATA_XML, HEADERS) or is_data_file(name)


def _is_file(entry: _Entry) -> bool:
    return entry is not None and not entry.is_tree
