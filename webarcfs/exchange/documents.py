"""What a snapshot has, document by document, beside what the one exported before it had and what its publication saw.

Trees are read folder by folder, in git's order, an ARC before those below it; where folders are equal, one look at both
tells it. Memory holds the folders on the way to the current one, as git's bytes. Bodies are not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from webarcfs.archive.git.repository import Repository
from webarcfs.archive.git.tree_lines import FILE, FOLDERS, Line, key, lines
from webarcfs.archive.history import met_lists, redirect_lists
from webarcfs.archive.history.met_lists import MetInOrder
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, is_data_file
from webarcfs.archive.model.met_list import Met, MetList
from webarcfs.archive.model.redirects import REDIRECTS, Redirect
from webarcfs.exchange.selection import Exported

#: Files of a folder that belong to its ARC: path inside the folder → blob.
Files = Mapping[str, str]
_NONE: Final[Files] = {}
_DOCUMENT: Final = b"%s %s\0" % (FILE, DATA_XML.encode())


@dataclass(frozen=True, slots=True)
class Document:
    """The own files of an ARC: data, data.xml, head and additions; or files in a folder that is none.

    `path` is that of its folder in the domain. `before` has the files that it had in the snapshot exported before,
    `seen` those that the publication saw; None: it was not there.
    """

    path: str
    files: Files
    before: Files | None
    seen: Files | None

    @property
    def data(self) -> str:
        """The name of its data file; empty without one."""
        return data_of(self.files)

    @property
    def data_xml(self) -> str:
        """The blob of its data.xml; empty without one."""
        return self.files.get(DATA_XML, "")

    @property
    def head(self) -> str:
        """The blob of its headers.http; empty without one."""
        return self.files.get(HEADERS, "")

    @property
    def is_whole(self) -> bool:
        """Whether it has what makes a document: data.xml and a data file."""
        return bool(self.data_xml and self.data)

    @property
    def is_changed(self) -> bool:
        """Whether any of its files differs from what it was before."""
        return self.files is not self.before and self.files != self.before

    def additions(self) -> Iterator[tuple[str, str]]:
        """Yield path and blob of what users added, in order."""
        own = (DATA_XML, HEADERS, self.data)
        return ((path, self.files[path]) for path in sorted(self.files) if path not in own)


def data_of(files: Files) -> str:
    """Return the name of the data file among the own files of an ARC; empty without one."""
    return next((path for path in files if is_data_file(path) and "/" not in path), "")


@dataclass(frozen=True, slots=True)
class ListedRedirect:
    """A line of a list of redirects: whether it was there before, whether the publication saw it.

    `only_seen`: the state has another line of this URL, or none.
    """

    redirect: Redirect
    was_there: bool
    is_seen: bool
    only_seen: bool = False


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder of a tree, with the same folder before and as it was seen; None where it is not there."""

    path: str
    tree: str
    before: str | None
    seen: str | None


def documents(
    store: Repository, tree: str, before: str | None = None, seen: str = "", *, every: bool = True
) -> Iterator[Document]:
    """Yield the documents of a tree, in its order. Raises Damaged if a tree cannot be read.

    `seen` is what the publication saw, empty for all of it. Without `every`, only those that differ from `before`.
    """
    stack = [iter((_Folder("", tree, before, seen or tree),))]
    while stack:
        folder = next(stack[-1], None)
        if folder is None:
            stack.pop()
        elif every or folder.tree != folder.before:
            found, below = _opened(store, folder)
            if found is not None and (every or found.is_changed):
                yield found
            if below is not None:
                stack.append(below)


def listed_redirects(
    store: Repository, tree: str, before: str | None = None, seen: str = ""
) -> Iterator[ListedRedirect]:
    """Yield the redirects of a domain's tree, list by list, by URL. Raises Damaged."""
    tops = [store.find(each, REDIRECTS) if each else None for each in (tree, before, seen or tree)]
    for place, entry in redirect_lists.places(store, tops[0]):
        was, saw = (
            store.find(top.oid, place.partition("/")[2]) if top is not None and top.is_tree else None
            for top in tops[1:]
        )
        now = redirect_lists.lines(store, entry, place)
        old, witnessed = (now if each == entry else redirect_lists.lines(store, each, place) for each in (was, saw))
        there, watched = frozenset(old), frozenset(witnessed)
        found = [ListedRedirect(each, each in there, each in watched) for each in now]
        found += [ListedRedirect(each, False, True, only_seen=True) for each in watched.difference(now)]
        yield from sorted(found, key=lambda each: (each.redirect, each.only_seen))


@dataclass(frozen=True, slots=True)
class Unit:
    """What is exported in one piece: the snapshot itself (None), a document, a redirect, the list of what was met.

    `met` tells when the crawl met a document or redirect unchanged.
    """

    what: Document | ListedRedirect | MetList | None = None
    met: Met | None = None


def units(exported: Exported, skipped: int = 0) -> Iterator[Unit]:
    """Yield what a snapshot has, but for the first `skipped` pieces, whose bodies are not read."""
    return islice(_units(exported), skipped, None)


def _units(exported: Exported) -> Iterator[Unit]:
    yield Unit()
    store, place = exported.store, (exported.store, exported.tree, exported.before, exported.seen)
    found = exported.met()
    met = MetInOrder(store, exported.met_in, found) if found is not None else None
    for document in documents(*place):
        yield Unit(document, met.arc(document.path) if met is not None and document.seen is not None else None)
    for listed in listed_redirects(*place):
        yield Unit(listed, met.redirect(listed.redirect.url) if met is not None and listed.is_seen else None)
    if found is not None:
        yield Unit(met_lists.narrowed(store, found, exported.met_in, exported.seen or exported.tree))


def _opened(store: Repository, folder: _Folder) -> tuple[Document | None, Iterator[_Folder] | None]:
    """Return the document of a folder, and the folders below that may have more."""
    raw = store.read_tree(folder.tree)
    files, inner = _own(store, raw, folder.tree, is_root=not folder.path)
    others: list[Files | None] = []
    for other in (folder.before, folder.seen):
        beside = raw if other == folder.tree else b"" if other is None else store.read_tree(other)
        if other is None or (_DOCUMENT in raw) != (_DOCUMENT in beside):
            others.append(None)  # what belongs to an ARC here belongs to another one there
        elif other == folder.tree:
            others.append(files)
        else:
            others.append(_own(store, beside, other, is_root=not folder.path)[0] or None)
    found = Document(folder.path, files, *others) if files else None
    return found, None if inner is None else _below(store, folder, raw, inner)


def _own(store: Repository, raw: bytes, tree: str, *, is_root: bool) -> tuple[Files, frozenset[str] | None]:
    """Return the own files of a folder, and the names of folders in it that belong to its ARC; None: it has no folders.

    Folders of an ARC belong to it unless they lead to other ARCs.
    """
    is_arc = _DOCUMENT in raw
    files: dict[str, str] = {}
    own: list[str] = []
    has_folders = False
    for mode, name, oid in lines(raw, f"{store.path}: {tree}"):
        if mode not in FOLDERS:
            files[os.fsdecode(name)] = oid.hex()
            continue
        has_folders = True
        if is_arc and not _leads_to_arcs(store, oid.hex()):
            folder = os.fsdecode(name)
            own.append(folder)
            files |= store.files(oid.hex(), folder)
    if is_root and REDIRECTS not in own and has_folders:
        own.append(REDIRECTS)
    return files or _NONE, frozenset(own) if has_folders else None


def _leads_to_arcs(store: Repository, tree: str) -> bool:
    """Return whether a folder is an ARC or contains one, at any depth; most are, which their bytes tell."""
    raw = store.read_tree(tree)
    if _DOCUMENT in raw:
        return True
    return any(
        _leads_to_arcs(store, oid.hex()) for mode, _, oid in lines(raw, f"{store.path}: {tree}") if mode in FOLDERS
    )


def _below(store: Repository, folder: _Folder, raw: bytes, own: frozenset[str]) -> Iterator[_Folder]:
    """Yield the folders in a folder, but for its `own`, each with the same one before and as it was seen."""
    others = [
        None if other is None else None if other == folder.tree else _Finder(store, other)
        for other in (folder.before, folder.seen)
    ]
    for line in lines(raw, f"{store.path}: {folder.tree}"):
        if line[0] not in FOLDERS:
            continue
        name, oid = os.fsdecode(line[1]), line[2].hex()
        if name in own:
            continue
        before, seen = (
            finder.find(line) if finder is not None else oid if other == folder.tree else None
            for finder, other in zip(others, (folder.before, folder.seen), strict=True)
        )
        yield _Folder(f"{folder.path}/{name}" if folder.path else name, oid, before, seen)


class _Finder:
    """Finds folders in another tree by the lines of one, in git's order."""

    def __init__(self, store: Repository, tree: str) -> None:
        self._lines = lines(store.read_tree(tree), f"{store.path}: {tree}")
        self._line: Line | None = next(self._lines, None)

    def find(self, line: Line) -> str | None:
        """Return the id of the folder of that name; None without one. Names are asked for in order."""
        wanted = key(line)
        while self._line is not None and key(self._line) < wanted:
            self._line = next(self._lines, None)
        if self._line is None or self._line[0] not in FOLDERS or key(self._line) != wanted:
            return None
        return self._line[2].hex()
