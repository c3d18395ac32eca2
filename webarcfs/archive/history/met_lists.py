"""Reads the lists of what crawls met unchanged (`webarcfs.archive.model.met_list`), with the trees that they are of.

A list is of the tree that the crawl's publication saw, additions aside. Raises Damaged if one of them cannot be read,
or they do not belong together.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.git.tree_lines import FILE, FOLDERS, lines
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.model import met_list
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.met_list import Met, MetList, column
from webarcfs.archive.model.redirects import REDIRECTS, place_of

_NAME: Final = DATA_XML.encode()
_DOCUMENT: Final = b"%s %s\0" % (FILE, _NAME)


def read(store: Repository, blob: str) -> MetList:
    """Return the list in a blob."""
    try:
        return met_list.read(store.read(blob))
    except Damaged as error:
        raise Damaged(f"{store.path}: {blob}: {error}") from None


def of_crawl(store: Repository, crawl: Commit) -> MetList | None:
    """Return the list of a crawl's own commit; None if it has none, as before layout 3."""
    return read(store, crawl.message.met) if crawl.message.met else None


def seen_tree(crawl: Commit) -> str:
    """Return the tree that a crawl's list is of."""
    return crawl.message.seen or crawl.tree


def met_arcs(store: Repository, tree: str, found: MetList) -> Iterator[tuple[str, Met | None]]:
    """Yield the ARCs of the tree that a list is of, in their order, with what it says of each."""
    return found.arcs.along(arcs_in_order(store, tree))


def met_redirects(store: Repository, tree: str, found: MetList) -> Iterator[tuple[str, Met | None]]:
    """Yield the URLs of its redirects in the same way."""
    return found.redirects.along(_redirects_in_order(store, tree))


def check(store: Repository, tree: str, found: MetList) -> None:
    """Raise Damaged if a list is not of a tree."""
    for part in (met_arcs, met_redirects):
        deque(part(store, tree, found), 0)


def narrowed(store: Repository, found: MetList, of: str, tree: str) -> MetList:
    """Return what a list of the tree `of` says of another tree, which has no more than that."""
    met = MetInOrder(store, of, found)
    return MetList(
        column((arc, met.arc(arc)) for arc in arcs_in_order(store, tree)),
        column((url, met.redirect(url)) for url in _redirects_in_order(store, tree)),
    )


class MetInOrder:
    """Looks up what a crawl met: ARCs, then redirects, each asked for in the order of a tree."""

    def __init__(self, store: Repository, tree: str, found: MetList) -> None:
        self._arcs = _InOrder(met_arcs(store, tree, found), place_in_order)
        self._redirects = _InOrder(met_redirects(store, tree, found), lambda url: (place_of(url), url))

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
    return (each.url for each in redirect_lists.every(store, tree))


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
        stack.append(_folders(raw, f"{store.path}: {oid}", path))


def place_in_order(arc: str) -> bytes:
    """Return the key by which paths of ARCs are in the order of a tree."""
    return os.fsencode(arc) + b"/"


def _is_arc(raw: bytes, store: Repository, oid: str) -> bool:
    return any(name == _NAME and mode not in FOLDERS for mode, name, _ in lines(raw, f"{store.path}: {oid}"))


def _folders(raw: bytes, name: str, path: str) -> Iterator[tuple[str, str]]:
    for mode, entry, oid in lines(raw, name):
        if mode in FOLDERS:
            folder = os.fsdecode(entry)
            if path or folder != REDIRECTS:
                yield f"{path}/{folder}" if path else folder, oid.hex()
