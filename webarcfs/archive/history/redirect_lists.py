"""Reads the lists of a domain from its trees: its redirects, and what crawls met unchanged.

The format of the lists is in `webarcfs.archive.model.url_lists`. Redirects are read one, all, or those that differ
between two trees. A list of what a crawl met is of the tree that the crawl's publication saw, additions aside. Raises
Damaged if a list cannot be read, or lists and trees do not belong together.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webarcfs.archive.git.repository import Commit, Repository, TreeEntry
from webarcfs.archive.git.writing import FILE, FOLDER, FOLDERS, read_lines
from webarcfs.archive.history.versions import snapshots
from webarcfs.archive.model import url_lists
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.model.url_lists import REDIRECTS, Met, MetList, Redirect, column, is_place, place_of, read_list

# == redirect lists ===================================================================================================


@dataclass(frozen=True, slots=True)
class RedirectChange:
    """The redirect of a URL before and after a change; None where there is none."""

    url: str
    old: Redirect | None
    new: Redirect | None

    @property
    def what(self) -> str:
        """The change in a word: added, changed or removed."""
        return "added" if self.old is None else "removed" if self.new is None else "changed"


def of_url(store: Repository, tree: str, url: str) -> Redirect | None:
    """Return the redirect of a canonical URL in the tree of its domain; None without one."""
    place = place_of(url)
    return next((redirect for redirect in lines(store, store.find(tree, place), place) if redirect.url == url), None)


def every(store: Repository, tree: str) -> Iterator[Redirect]:
    """Yield all redirects of a domain's tree, list by list."""
    for place, entry in places(store, store.find(tree, REDIRECTS)):
        yield from lines(store, entry, place)


def places(store: Repository, top: TreeEntry | None) -> Iterator[tuple[str, TreeEntry]]:
    """Yield path and entry of each list, in order; `top` is the entry `%redirects` of a domain's tree."""
    for outer in store.each(top.oid) if top is not None and top.is_tree else ():
        for inner in store.each(outer.oid) if outer.is_tree else ():
            if is_place(place := f"{REDIRECTS}/{outer.name}/{inner.name}") and not inner.is_tree:
                yield place, inner


def lines(store: Repository, entry: TreeEntry | None, place: str = "") -> list[Redirect]:
    """Return the redirects of a list; none where there is no list."""
    if entry is None or entry.is_tree:
        return []
    try:
        return read_list(store.read(entry.oid), place)
    except Damaged as error:
        raise Damaged(f"{store.path}: {place or entry.oid}: {error}") from None


def urls(store: Repository, entry: TreeEntry | None) -> frozenset[str]:
    """Return the URLs of a list."""
    return frozenset(redirect.url for redirect in lines(store, entry))


def differences(store: Repository, old: str | None, new: str | None) -> Iterator[RedirectChange]:
    """Yield the redirects that differ between two trees of a domain, list by list; equal lists are not read."""
    before, after = (_top(store, tree) for tree in (old, new))
    for difference in store.differences(before, after, f"{REDIRECTS}/"):
        if not is_place(difference.path):
            continue
        was, now = (_by_url(store, blob, difference.path) for blob in (difference.old, difference.new))
        for url in sorted(was.keys() | now.keys()):
            if was.get(url) != now.get(url):
                yield RedirectChange(url, was.get(url), now.get(url))


def steps(store: Repository, domain: str, urls: Sequence[str]) -> Iterator[tuple[CommitTag, RedirectChange]]:
    """Yield the changes of the redirects of some URLs, with their snapshots, oldest first."""
    known: dict[str, Redirect | None] = dict.fromkeys(urls)
    top = None
    for tag, oid in snapshots(store, domain):
        tree = store.commit(oid).tree
        before, top = top, _top(store, tree)
        for url in urls if top != before else ():
            was, now = known[url], of_url(store, tree, url)
            if was != now:
                known[url] = now
                yield tag, RedirectChange(url, was, now)


def _top(store: Repository, tree: str | None) -> str | None:
    entry = store.find(tree, REDIRECTS) if tree else None
    return entry.oid if entry is not None and entry.is_tree else None


def _by_url(store: Repository, blob: str | None, place: str) -> dict[str, Redirect]:
    entry = TreeEntry(place, blob, False) if blob else None
    return {redirect.url: redirect for redirect in lines(store, entry, place)}


# == met lists ========================================================================================================


_NAME: Final = DATA_XML.encode()
_DOCUMENT: Final = b"%s %s\0" % (FILE, _NAME)
_HAS_FOLDER: Final = b"%s " % FOLDER


def read_met_list(store: Repository, blob: str) -> MetList:
    """Return the list in a blob."""
    try:
        return url_lists.read_met_list(store.read(blob))
    except Damaged as error:
        raise Damaged(f"{store.path}: {blob}: {error}") from None


def of_crawl(store: Repository, crawl: Commit) -> MetList | None:
    """Return the list of a crawl's own commit; None if it has none, as before layout 3."""
    return read_met_list(store, crawl.message.met) if crawl.message.met else None


def seen_tree(crawl: Commit) -> str:
    """Return the tree that a crawl's list is of."""
    return crawl.message.seen or crawl.tree


def met_arcs(store: Repository, tree: str, met_list: MetList) -> Iterator[tuple[str, Met | None]]:
    """Yield the ARCs of the tree that a list is of, in their order, with what it says of each."""
    return met_list.arcs.along(arcs_in_order(store, tree))


def met_redirects(store: Repository, tree: str, met_list: MetList) -> Iterator[tuple[str, Met | None]]:
    """Yield the URLs of its redirects in the same way."""
    return met_list.redirects.along(_redirects_in_order(store, tree))


def check_met_list(store: Repository, tree: str, met_list: MetList) -> None:
    """Raise Damaged if a list is not of a tree."""
    for part in (met_arcs, met_redirects):
        deque(part(store, tree, met_list), 0)


def narrowed(store: Repository, met_list: MetList, of: str, tree: str) -> MetList:
    """Return what a list of the tree `of` says of another tree, which has no more than that."""
    met = MetInOrder(store, of, met_list)
    return MetList(
        column((arc, met.arc(arc)) for arc in arcs_in_order(store, tree)),
        column((url, met.redirect(url)) for url in _redirects_in_order(store, tree)),
    )


class MetInOrder:
    """Looks up what a crawl met: ARCs, then redirects, each asked for in the order of a tree."""

    def __init__(self, store: Repository, tree: str, met_list: MetList) -> None:
        self._arcs = _InOrder(met_arcs(store, tree, met_list), place_in_order)
        self._redirects = _InOrder(met_redirects(store, tree, met_list), lambda url: (place_of(url), url))

    def arc(self, path: str) -> Met | None:
        """Return when the ARC at a path was met. Raises Damaged if the list is of other ARCs."""
        return self._arcs.find(path)

    def redirect(self, url: str) -> Met | None:
        """Return when the redirect of a URL was met. Raises Damaged as well."""
        return self._redirects.find(url)


class _InOrder:
    def __init__(self, rows: Iterator[tuple[str, Met | None]], key: Callable[[str], Any]) -> None:
        self._rows, self._key = rows, key
        self._row = next(rows, None)

    def find(self, name: str) -> Met | None:
        wanted = self._key(name)
        while self._row is not None and self._key(self._row[0]) < wanted:
            self._row = next(self._rows, None)
        return self._row[1] if self._row is not None and self._row[0] == name else None


def _redirects_in_order(store: Repository, tree: str) -> Iterator[str]:
    return (redirect.url for redirect in every(store, tree))


def arcs_in_order(store: Repository, tree: str) -> Iterator[str]:
    """Yield the paths of a tree's ARCs in git's order: sorted by their bytes with a slash at the end."""
    stack: list[Iterator[tuple[str, str]]] = [iter([("", tree)])]
    while stack:
        folder = next(stack[-1], None)
        if folder is None:
            stack.pop()
            continue
        path, oid = folder
        raw = store.read_tree(oid)
        if _DOCUMENT in raw and _is_arc(raw, store, oid):
            yield path
        if _HAS_FOLDER in raw:  # the folders of most ARCs have none
            stack.append(_folders(raw, f"{store.path}: {oid}", path))


def place_in_order(arc: str) -> bytes:
    """Return the key by which paths of ARCs are in the order of a tree."""
    return os.fsencode(arc) + b"/"


def _is_arc(raw: bytes, store: Repository, oid: str) -> bool:
    return any(name == _NAME and mode not in FOLDERS for mode, name, _ in read_lines(raw, f"{store.path}: {oid}"))


def _folders(raw: bytes, name: str, path: str) -> Iterator[tuple[str, str]]:
    for mode, entry, oid in read_lines(raw, name):
        if mode in FOLDERS:
            folder = os.fsdecode(entry)
            if path or folder != REDIRECTS:
                yield f"{path}/{folder}" if path else folder, oid.hex()
