"""Places additions in a domain's tree, by the rules of names and places.

A domain's tree is built while additions are put into it: folders are read on first access, and written once. So many
additions cost what they change, however large the folders around them are. Trees are kept as git's bytes: a commit must
not make 60,000 objects of a folder of 60,000 ARCs.

Additions that came while a crawl was being prepared are merged into the crawl's tree. Only additions can move main
meanwhile: new files in ARCs, and data.xml with new data nodes. An addition belongs to the version of its ARC: if the
crawl replaced or removed the ARC, or needs the addition's place for a page, it is dropped (/Ar-10/). Only folders that
additions changed are read.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from webarcfs.archive.document import data_xml
from webarcfs.archive.document.data_nodes import merge_nodes
from webarcfs.archive.git.repository import Repository, TreeEntry
from webarcfs.archive.model.additions import AddFile, Addition, AddNodes, ArcVersion, Move, Removal
from webarcfs.archive.model.arc_paths import DATA_XML, HEADERS, LONGEST_NAME, is_data_file, is_git_name, is_reserved
from webarcfs.archive.model.errors import Damaged, Exists, InvalidDocument, NotPermitted, Replaced
from webarcfs.archive.model.metadata import format_time

# == tree editor ======================================================================================================


FOLDER = b"40000"
FILE = b"100644"
_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0([\0-\xff]{20})", re.DOTALL)
_DATA_XML = DATA_XML.encode()


class TreeFolder:
    """One folder: name → (mode, id in 20 bytes), and the inner folders read so far."""

    __slots__ = ("changed", "entries", "inside", "leads")

    def __init__(self, raw: bytes = b"") -> None:
        self.entries = {match[2]: (match[1], match[3]) for match in _ENTRY.finditer(raw)}
        self.inside: dict[bytes, TreeFolder] = {}
        self.changed = False
        self.leads: bool | None = None

    def is_folder(self, name: bytes) -> bool:
        """Return whether it contains a folder of that name."""
        entry = self.entries.get(name)
        return name in self.inside or (entry is not None and entry[0] == FOLDER)

    def is_file(self, name: bytes) -> bool:
        """Return whether it contains a file of that name."""
        return name in self.entries and not self.is_folder(name)

    @property
    def is_arc(self) -> bool:
        """Whether it is an ARC."""
        return self.is_file(_DATA_XML)


class LazyTree:
    """The tree `tree`, read with `read` (id → git's bytes of a tree). For one thread at a time."""

    def __init__(self, read: Callable[[str], bytes], tree: str) -> None:
        self._read = read
        self._tree = tree
        self._root = TreeFolder(read(tree))

    def folder(self, path: str) -> TreeFolder | None:
        """Return the folder at `path`, or None."""
        folder: TreeFolder | None = self._root
        for name in os.fsencode(path).split(b"/") if path else []:
            folder = self.inside(folder, name) if folder is not None else None
        return folder

    def blob(self, path: str) -> str | None:
        """Return the blob at `path`; None if there is no file."""
        above, _, name = path.rpartition("/")
        folder = self.folder(above)
        raw = os.fsencode(name)
        return folder.entries[raw][1].hex() if folder is not None and folder.is_file(raw) else None

    def put(self, path: str, blob: str) -> None:
        """Place a file; make the folders above it."""
        *above, name = os.fsencode(path).split(b"/")
        folder = self._root
        folder.changed = True
        for folder_name in above:
            inner = self.inside(folder, folder_name)
            if inner is None:
                inner = folder.inside[folder_name] = TreeFolder()
                folder.entries[folder_name] = (FOLDER, b"")
            folder = inner
            folder.changed = True
        folder.entries[name] = (FILE, bytes.fromhex(blob))

    def remove(self, path: str) -> None:
        """Remove a file, and folders that become empty."""
        folder, row = self._root, []
        *above, name = os.fsencode(path).split(b"/")
        for folder_name in above:
            inner = self.inside(folder, folder_name)
            if inner is None:
                return
            row.append((folder, folder_name))
            folder = inner
        if folder.entries.pop(name, None) is None:
            return
        folder.changed = True
        for outer, folder_name in reversed(row):
            outer.changed = True
            if not outer.inside[folder_name].entries:
                del outer.inside[folder_name], outer.entries[folder_name]

    def write(self, store: Callable[[str, bytes], str]) -> str:
        """Store the changes with `store` (path, git's bytes → id), inner folders first; return the root's id."""
        if self._root.changed:
            self._tree = _write(self._root, "", store)
        return self._tree

    def leads_to_arcs(self, folder: TreeFolder) -> bool:
        """Return whether a folder is an ARC or contains one; computed once, since additions never change it."""
        if folder.leads is None:
            inner = (self.inside(folder, name) for name, (mode, _) in folder.entries.items() if mode == FOLDER)
            folder.leads = folder.is_arc or any(
                subfolder is not None and self.leads_to_arcs(subfolder) for subfolder in inner
            )
        return folder.leads

    def inside(self, folder: TreeFolder, name: bytes) -> TreeFolder | None:
        """Return the folder `name` in a folder of this tree, or None."""
        inner = folder.inside.get(name)
        if inner is None and folder.is_folder(name):
            inner = folder.inside[name] = TreeFolder(self._read(folder.entries[name][1].hex()))
        return inner


def _write(folder: TreeFolder, path: str, store: Callable[[str, bytes], str]) -> str:
    for name, inner in folder.inside.items():
        if inner.changed:
            oid = _write(inner, f"{path}{os.fsdecode(name)}/", store)
            folder.entries[name] = (FOLDER, bytes.fromhex(oid))
    folder.changed = False
    return store(path.rstrip("/"), serialised(folder))


def serialised(folder: TreeFolder) -> bytes:
    """Return git's bytes of a tree: entries in the order of their names, folders as if their names ended in a slash."""
    rows = sorted((name + b"/" if mode == FOLDER else name, mode, oid) for name, (mode, oid) in folder.entries.items())
    return b"".join(b"%s %s\0%s" % (mode, key[:-1] if mode == FOLDER else key, oid) for key, mode, oid in rows)


# == placement ========================================================================================================


class AdditionTree:
    """A domain's tree, which checks additions and accepts them. For one thread at a time."""

    def __init__(self, store: Repository, tree: str, keep: Callable[[bytes], str] | None = None) -> None:
        """`keep` stores a new data.xml and returns its blob."""
        self.tree = LazyTree(partial(store.read_tree), tree)
        self._store = store
        self._keep = keep
        self._versions: dict[str, str] = {}
        self._documents: dict[str, bytes] = {}
        self._last = "", b""

    def has_version(self, place: ArcVersion) -> bool:
        """Return whether the tree has this version of an ARC."""
        try:
            self._current(place)
        except Replaced:
            return False
        return True

    def judge(self, addition: Addition) -> None:
        """Check an addition.

        Raises Stale for another version of the ARC than the addition's (/Ar-10/), Exists for a taken name, NotPermitted
        where no addition is allowed.
        """
        arc = self._current(addition.place)
        match addition:
            case AddFile():
                self._check_name(arc, addition.path, (addition.blob, addition.replaces))
            case Move():
                self._check_name(arc, addition.new, ())
            case AddNodes():
                pass  # the merge compares the nodes
            case Removal():
                raise NotPermitted(f"{addition.path} cannot be removed: files in git are final")

    def place(self, addition: Addition) -> None:
        """Put a checked addition into the tree. Raises InvalidDocument for nodes that cannot be merged."""
        arc = addition.place.arc
        match addition:
            case AddFile():
                self.tree.put(f"{arc}/{addition.path}", addition.blob)
            case Move():
                blob = self.tree.blob(f"{arc}/{addition.old}")
                if blob is None or is_reserved(addition.old.partition("/")[0]):
                    raise NotPermitted(f"{addition.old} is no addition that could be renamed")
                self.tree.remove(f"{arc}/{addition.old}")
                self.tree.put(f"{arc}/{addition.new}", blob)
            case AddNodes():
                self._extend(addition)

    def has(self, addition: Addition) -> bool:
        """Return whether the tree has an addition already, of an ARC that is current."""
        arc = addition.place.arc
        match addition:
            case AddFile():
                return self.tree.blob(f"{arc}/{addition.path}") == addition.blob
            case Move():
                return self.tree.blob(f"{arc}/{addition.old}") is None
            case AddNodes():
                document = self.tree.blob(f"{arc}/{DATA_XML}")
                return document is not None and addition.nodes.strip() in self._document(document)
            case Removal():
                return False

    def _extend(self, addition: AddNodes) -> None:
        path = f"{addition.place.arc}/{DATA_XML}"
        old = self.tree.blob(path)
        assert old is not None and self._keep is not None
        document = merge_nodes(self._document(old), addition.nodes)
        new = self._keep(document)
        self._documents.pop(old, None)
        self._documents[new] = document
        self._versions[new] = addition.place.version
        self.tree.put(path, new)
        if addition.source and not is_reserved(addition.source.partition("/")[0]):
            self.tree.remove(f"{addition.place.arc}/{addition.source}")

    def _current(self, place: ArcVersion) -> TreeFolder:
        """Return the ARC's folder. Raises Stale if it is missing or another version."""
        arc = self.tree.folder(place.arc) if place.arc else None
        if arc is None or not arc.is_arc:
            raise Replaced(f"/{place.domain}/{place.arc} is no ARC any more")
        blob = arc.entries[os.fsencode(DATA_XML)][1].hex()
        if self._version(blob) != place.version:
            raise Replaced(f"/{place.domain}/{place.arc} was replaced by a crawl")
        return arc

    def _version(self, blob: str) -> str:
        if blob not in self._versions:
            try:
                self._versions[blob] = format_time(data_xml.metadata(self._document(blob)).crawl_time)
            except (InvalidDocument, Damaged):
                self._versions[blob] = ""
        return self._versions[blob]

    def _document(self, blob: str) -> bytes:
        known = self._documents.get(blob)
        if known is not None:
            return known
        if self._last[0] != blob:  # the caller has read its version, and extends it next
            self._last = blob, self._store.read(blob)
        return self._last[1]

    def _check_name(self, arc: TreeFolder, path: str, allowed: tuple[str, ...]) -> None:
        parts = path.split("/")
        check_names(parts)
        folder = arc
        for name in parts[:-1]:
            raw = os.fsencode(name)
            if folder.is_file(raw):
                raise Exists(f"{path}: {name} is a file")
            inner = self.tree.inside(folder, raw)
            if inner is None:
                return
            if self.tree.leads_to_arcs(inner):
                raise NotPermitted(f"{path}: {name} is or leads to an ARC of its own")
            folder = inner
        last = os.fsencode(parts[-1])
        if folder.is_folder(last) or (folder.is_file(last) and folder.entries[last][1].hex() not in allowed):
            raise Exists(f"{path} exists already")


def check_names(parts: list[str]) -> None:
    """Check the names of a path inside an ARC. Raises NotPermitted.

    Not `arc_paths.check_name`: journals of older mounts are checked here, too, which had fewer rules.
    """
    if is_reserved(parts[0]) or parts[-1] == DATA_XML:
        raise NotPermitted(f"{'/'.join(parts)} is a name that ARCs keep for themselves")
    for name in parts:
        if name in ("", ".", "..") or "\0" in name or is_git_name(name) or len(os.fsencode(name)) > LONGEST_NAME:
            raise NotPermitted(f"{name!r} cannot be the name of an addition")


# == merge ============================================================================================================


_log = logging.getLogger(__name__)
_Entry = TreeEntry | None
_Folder = dict[str, TreeEntry]


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
    if not any(_is_file(entry) for entry in states):
        place = _Place(f"{path}/", *(entry.oid if entry else None for entry in states))
        tree = _merge(store, place, takes=takes)
        return TreeEntry(path.rpartition("/")[2], tree, True) if tree else None
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
