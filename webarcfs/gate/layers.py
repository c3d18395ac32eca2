"""Makes the tree that a reader sees of a domain: without what rules forbid, and of several publications together.

The trees are written into a store of the reader's own, which reads the archive's objects and writes none there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from webarcfs.archive.document.data_xml import describe, has_no_nodes, metadata
from webarcfs.archive.git.objects import Entry
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.history.versions import arcs, is_arc, leads_to_arcs
from webarcfs.archive.model.arc_paths import is_reserved
from webarcfs.archive.model.errors import InvalidDocument
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.model.redirects import REDIRECTS, Redirect, write_list


def without(store: Repository, tree: str, paths: Iterable[str], lists: Callable[[str, Entry], str | None]) -> str:
    """Return a tree without the ARCs at some paths and their additions.

    `lists` returns the blob of the list of redirects that takes the place of one, None for none.
    """
    changes: dict[str, str | None] = {}
    for path in paths:
        changes |= {f"{path}/{entry.name}": None for entry in _own(store, tree, path)}
    for place, entry in redirect_lists.places(store, store.find(tree, REDIRECTS)):
        blob = lists(place, entry)
        if blob != entry.oid:
            changes[place] = blob
    return store.edit(tree, changes) if changes else tree


class WithoutAdditions:
    """Takes what users added from the trees of a store; remembers folders, so that equal ones cost nothing."""

    def __init__(self, store: Repository) -> None:
        self._store = store
        self._known: dict[str, str | None] = {}

    def of(self, tree: str) -> str:
        """Return a domain's tree without additions: files and folders beside an ARC's own, and data nodes."""
        top = {entry.name: entry for entry in self._store.each(tree)}
        left = self._of(tree) or self._store.write_tree([])
        if REDIRECTS not in top:
            return left
        return self._store.write_tree([*self._store.each(left), top[REDIRECTS]])

    def _of(self, tree: str) -> str | None:
        if tree not in self._known:
            self._known[tree] = self._made(tree)
        return self._known[tree]

    def _made(self, tree: str) -> str | None:
        """Return a folder without additions; None if nothing is left, as of a folder of additions."""
        kept = []
        entries = self._store.entries(tree)
        for entry in entries:
            if entry.is_tree:
                inner = self._of(entry.oid) if entry.name != REDIRECTS else None
                kept += [Entry(entry.name, inner, True)] if inner is not None else []
            elif entry.is_document:
                kept.append(Entry(entry.name, self._plain(entry.oid), False))
            elif is_reserved(entry.name) and is_arc(entries):
                kept.append(entry)
        return self._store.write_tree(kept) if kept else None

    def _plain(self, document: str) -> str:
        content = self._store.read(document)
        if has_no_nodes(content):
            return document
        try:
            return self._store.write_blob(describe(metadata(content)))
        except InvalidDocument:
            return self._store.write_blob(b"")  # what cannot be read cannot be judged


def only(store: Repository, tree: str, paths: Iterable[str]) -> str:
    """Return a tree with nothing but the ARCs at some paths."""
    changes: dict[str, str | None] = {}
    for path in paths:
        for entry in _own(store, tree, path):
            if not entry.is_tree:
                changes[f"{path}/{entry.name}"] = entry.oid
            else:
                changes |= dict(store.files(entry.oid, f"{path}/{entry.name}"))
    return store.edit(store.write_tree([]), changes)


def stored_by(store: Repository, tree: str, tags: set[CommitTag]) -> str:
    """Return a tree with nothing but the ARCs whose versions some crawls stored: all that layout 1 tells."""

    def is_one(document: str) -> bool:
        try:
            return metadata(store.read(document)).commit_tag in tags
        except InvalidDocument:
            return False

    return only(store, tree, [arc.path for arc in arcs(store, tree) if is_one(arc.data_xml)])


def union(store: Repository, trees: Sequence[str]) -> str:
    """Return what several trees have together, the newest first: for each ARC, and each redirect, the newest."""
    distinct = list(dict.fromkeys(trees))
    if len(distinct) == 1:
        return distinct[0]
    tops = [store.find(tree, REDIRECTS) for tree in distinct]
    merged = {entry.name: entry for entry in _merged(store, distinct) if entry.name != REDIRECTS}
    redirects = _redirects(store, [top for top in tops if top is not None])
    if redirects is not None:
        merged[REDIRECTS] = Entry(REDIRECTS, redirects, True)
    return store.write_tree(list(merged.values()))


def _merged(store: Repository, trees: Sequence[str]) -> Iterator[Entry]:
    """Yield the entries of a folder: an ARC with its additions is one, and comes from the newest tree that has it."""
    layers = [{entry.name: entry for entry in store.each(tree)} for tree in trees]
    owner = next((layer for layer in layers if is_arc(layer.values())), {})
    own = {name: entry for name, entry in owner.items() if not entry.is_tree or not leads_to_arcs(store, entry.oid)}
    yield from own.values()
    for name in sorted(set().union(*layers) - own.keys()):
        inner = [layer[name].oid for layer in layers if name in layer and _is_above_arcs(store, layer[name])]
        distinct = list(dict.fromkeys(inner))
        if len(distinct) == 1:
            yield Entry(name, distinct[0], True)
        elif distinct:
            yield Entry(name, store.write_tree(list(_merged(store, distinct))), True)


def _is_above_arcs(store: Repository, entry: Entry) -> bool:
    return entry.is_tree and leads_to_arcs(store, entry.oid)


def _redirects(store: Repository, tops: Sequence[Entry]) -> str | None:
    """Return the folder of the redirects that several trees have together; None if none has any."""
    found: dict[str, dict[str, Redirect]] = {}
    for top in reversed(tops):
        for place, entry in redirect_lists.places(store, top):
            found.setdefault(place, {}).update({each.url: each for each in redirect_lists.lines(store, entry, place)})
    if not found:
        return None
    blobs: dict[str, str | None] = {
        place.removeprefix(f"{REDIRECTS}/"): store.write_blob(write_list(lines.values()))
        for place, lines in found.items()
    }
    return store.edit(store.write_tree([]), blobs)


def _own(store: Repository, tree: str, path: str) -> Iterator[Entry]:
    """Yield the entries of an ARC, without the ARCs below it."""
    folder = store.find(tree, path)
    for entry in store.each(folder.oid) if folder is not None and folder.is_tree else ():
        if not entry.is_tree or not leads_to_arcs(store, entry.oid):
            yield entry
