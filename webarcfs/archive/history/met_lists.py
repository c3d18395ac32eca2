"""Reads the lists of what crawls met unchanged (`webarcfs.archive.model.met_list`), with the trees that they are of.

A list is of the tree that the crawl's publication saw, additions aside. Raises Damaged if one of them cannot be read,
or they do not belong together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from webarcfs.archive.git.repository import Commit, Repository
from webarcfs.archive.git.tree_lines import FILE, FOLDERS, lines
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.model import met_list
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged
from webarcfs.archive.model.met_list import Met, MetList
from webarcfs.archive.model.redirects import REDIRECTS

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


def met_arcs(store: Repository, crawl: Commit, found: MetList) -> Iterator[tuple[str, Met | None]]:
    """Yield the ARCs that a crawl's publication saw, in their order, with what the crawl's list says of each."""
    return found.arcs.along(arcs_in_order(store, seen_tree(crawl)))


def met_redirects(store: Repository, crawl: Commit, found: MetList) -> Iterator[tuple[str, Met | None]]:
    """Yield the URLs of the redirects that it saw in the same way."""
    return found.redirects.along(each.url for each in redirect_lists.every(store, seen_tree(crawl)))


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
