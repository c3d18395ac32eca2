"""Places additions in a domain's tree, by the rules of names and places."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from webarcfs.archive.commit.tree_editor import LazyTree, TreeFolder
from webarcfs.archive.document import data_xml
from webarcfs.archive.document.data_nodes import merge_nodes
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.model.addition import AddFile, Addition, AddNodes, ArcVersion, Move, Removal
from webarcfs.archive.model.arc_paths import DATA_XML, is_git_name, is_reserved
from webarcfs.archive.model.errors import Damaged, Exists, InvalidDocument, NotPermitted, Replaced
from webarcfs.archive.model.metadata import format_time
from webarcfs.archive.model.name_rules import LONGEST_NAME


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
                raise NotPermitted(f"{addition.path} cannot be removed: what is in git is final")

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

    Not `name_rules.check`: journals of older mounts are checked here, too, which had fewer rules.
    """
    if is_reserved(parts[0]) or parts[-1] == DATA_XML:
        raise NotPermitted(f"{'/'.join(parts)} is a name that ARCs keep for themselves")
    for name in parts:
        if name in ("", ".", "..") or "\0" in name or is_git_name(name) or len(os.fsencode(name)) > LONGEST_NAME:
            raise NotPermitted(f"{name!r} cannot be the name of an addition")
