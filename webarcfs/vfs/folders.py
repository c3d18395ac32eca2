"""The files and folders of a domain's tree: one small class per kind, from those above ARCs down to those of users.

Knows no FUSE, no absolute path and no handle. A file is one version in one state of the domain, and names it (domain,
path, blob, mtime), so that any adapter can address it. vfs/node.py specifies the methods; root.py has the folders above
the domains' trees. Immutable, safe for any thread.

No dataclasses: if a frozen one inherits fields, mypyc reports them twice to Python's garbage collector, which then
takes a referenced object for garbage, and clears it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from webarcfs.archive.git.repository import TreeEntry
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.additions import ArcVersion
from webarcfs.archive.model.errors import Damaged, NotFound, ReadOnly, WebarcError
from webarcfs.archive.model.metadata import CommitTag, MetaData, format_time, from_epoch
from webarcfs.archive.model.url_lists import REDIRECTS
from webarcfs.vfs.content import Content
from webarcfs.vfs.domain_states import ArcTimes, DomainReader
from webarcfs.vfs.node import FILE, Attrs, File, Folder, Node, number, remember, seconds
from webarcfs.vfs.overlay import OverlayEntry, is_gone

# == files ============================================================================================================


# ruff: noqa: D102 # vfs/node.py specifies the methods


#: The extended attribute of a provisional addition.
SETTLES: Final = "user.webarc.settles"


@dataclass(frozen=True, slots=True)
class ShownState:
    """A state of a domain in one place of the mount: `place` is empty for the current state, else the tag.

    `is_older`: it is shown as the current one, since the newest crawl is discarded; it takes no additions.

    `now` returns the state that this place shows now.
    """

    reader: DomainReader
    tag: CommitTag
    tree: str
    now: Callable[[], ShownState] = field(compare=False, repr=False)
    place: str = ""
    is_older: bool = False

    def shows_what(self, other: ShownState) -> bool:
        """Return whether both have the same tree, in the same repository."""
        same = self.tree == other.tree and self.reader.store is other.reader.store
        return same and self.is_older == other.is_older


def older(domain: str) -> ReadOnly:
    """Return the refusal to add to a domain whose newest crawl is discarded: the addition would go with that."""
    return ReadOnly(f"the newest crawl of {domain} is discarded: this is an older state, which takes no additions")


class FileVersion(NamedTuple):
    """One version of one file: the same four make the same file for ever. `path` is inside the domain."""

    domain: str
    path: str
    blob: str
    mtime: int

    @property
    def ino(self) -> int:
        """The inode number of this version."""
        return version_ino(self.domain, self.path, self.blob, self.mtime)


def version_ino(domain: str, path: str, blob: str, mtime: int) -> int:
    """Return the inode number of a version without making it: a listing needs thousands."""
    return number("file", domain, path, blob, str(mtime))


@dataclass(frozen=True)
class StoredFile(File):
    """A file of the repository; `document` is its ARC's data.xml if it is the data file, `place` its ARC.

    A file without a `place` accepts no additions: it belongs to history, or to no ARC.
    """

    state: ShownState
    version: FileVersion
    document: str | None = None
    place: ArcVersion | None = None
    _ino: int = field(init=False, repr=False, compare=False)
    _stored_size: int = field(init=False, repr=False, compare=False)

    @property
    def old(self) -> bool:
        return bool(self.state.place)

    @property
    def ino(self) -> int:
        try:
            return self._ino
        except AttributeError:
            return remember(self, "_ino", self.version.ino)

    def refusal(self) -> WebarcError:
        return super().refusal() if self.old or not self.state.is_older else older(self.version.domain)

    @property
    def inner(self) -> str:
        """Its path relative to the ARC `place`."""
        assert self.place is not None
        return self.version.path[len(self.place.arc) + 1 :]

    @property
    def is_document(self) -> bool:
        """Whether it is the data.xml of a current ARC, to which data nodes can be added."""
        return self.place is not None and self.inner == arc_paths.DATA_XML

    def attrs(self) -> Attrs:
        if self.place is None or not self.state.reader.overlay.takes_additions:
            return Attrs(self.kind, self._size, self.version.mtime, self.ino)
        ownership = self.state.reader.overlay.makers.of(self.place, self.inner)
        if ownership is None:
            return Attrs(self.kind, self._size, self.version.mtime, self.ino, 1, None, self.is_document)
        # The kernel checks the mode before it asks whether the maker may open it again.
        writable = ownership.is_writable or self.is_document
        return Attrs(self.kind, self._size, self.version.mtime, self.ino, 1, ownership.uid, writable)

    @property
    def _size(self) -> int:
        try:
            return self._stored_size
        except AttributeError:
            return remember(self, "_stored_size", self.state.reader.size(self.version.blob))

    def xattrs(self) -> Mapping[str, bytes]:
        if self.document is not None:
            return metadata_xattrs(self.state.reader.described(self.document))
        makers = self.state.reader.overlay.makers
        return provisional_xattrs(makers.settles(self.place, self.inner)) if self.place is not None else {}

    def open(self) -> Content:
        return self.state.reader.open(self.version.blob, self._size)


def provisional_xattrs(settles: int | str | None) -> dict[str, bytes]:
    """Return the extended attributes of an addition. `settles` is in seconds since 1970, or a word; None if final."""
    if settles is None:
        return {}
    when = settles if isinstance(settles, str) else format_time(from_epoch(settles))
    return {SETTLES: when.encode("ascii")}


def metadata_xattrs(meta: MetaData | None) -> dict[str, bytes]:
    """Return the extended attributes of an ARC and its data file."""
    if meta is None:
        return {}
    named = {f"user.webarc.{field}": value for field, value in meta.as_fields().items()}
    named |= {"user.xdg.origin.url": meta.url, "user.mime_type": meta.mime_type}
    return {name: os.fsencode(value) for name, value in named.items()}


# == folders ==========================================================================================================


# ruff: noqa: D102 # vfs/node.py specifies the methods


class StoredFolder(Folder):
    """A folder of the repository above ARCs; `path` is relative to the domain, empty for the domain's own folder."""

    _ino: int
    _entries: Mapping[str, TreeEntry]

    def __init__(self, state: ShownState, path: str, tree: str) -> None:
        self.state: Final = state
        self.path: Final = path
        self.tree: Final = tree

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same folder in the same state: all else follows from these."""
        return (
            isinstance(other, StoredFolder)
            and type(other) is type(self)
            and (other.tree, other.path, other.state) == (self.tree, self.path, self.state)
        )

    def __hash__(self) -> int:
        return hash((self.tree, self.path))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.state!r}, {self.path!r}, {self.tree!r})"

    @property
    def old(self) -> bool:
        return bool(self.state.place)

    @property
    def ino(self) -> int:
        try:
            return self._ino
        except AttributeError:
            return remember(self, "_ino", self._number())

    def _number(self) -> int:
        return number("folder", self.state.place, self.state.reader.domain, self.path)

    @property
    def has_permanent_inode(self) -> bool:
        """Whether its inode number is permanent, whatever it contains later."""
        return self.enclosing is None

    @property
    def enclosing(self) -> Arc | None:
        """The ARC that this folder is, or was added to."""
        return None

    @property
    def place(self) -> ArcVersion | None:
        """The version of the ARC to which additions in this folder belong; None where none are possible."""
        return None

    @property
    def inner(self) -> str:
        """This folder's path relative to the ARC `place`."""
        return ""

    def refusal(self) -> WebarcError:
        return super().refusal() if self.old or not self.state.is_older else older(self.state.reader.domain)

    def attrs(self) -> Attrs:
        return Attrs(self.kind, 0, self.mtime, self.ino)

    @property
    def mtime(self) -> int:
        """The start of the crawl that made the state."""
        return seconds(self.state.tag.crawl_time)

    @property
    def _stored(self) -> Mapping[str, TreeEntry]:
        """Git's entries of it, by name."""
        try:
            return self._entries
        except AttributeError:
            return remember(self, "_entries", self.state.reader.entries(self.tree))

    @property
    def _taking(self) -> ArcVersion | None:
        """`place`, if this mount has additions: only then can the overlay have entries."""
        return self.place if self.state.reader.overlay.is_used else None

    @property
    def items(self) -> Mapping[str, OverlayEntry]:
        """Its entries by name: git's in its state, pending additions, and files being written."""
        stored, taking = self._stored, self._taking
        added = self.state.reader.overlay.listing(taking, self.inner) if taking is not None else None
        if not added:
            return stored
        items = {**stored, **{name: item for name, item in added.items() if not _is_in(stored, item)}}
        return {name: item for name, item in items.items() if not is_gone(item)}

    def names(self) -> Iterator[str]:
        items = self.items
        newer = self._newer()
        if newer is not None:
            return newer.names()
        # Found by name: no reader of pages walks into the redirects.
        return iter(items) if self.path else (name for name in items if name != REDIRECTS)

    def lookup(self, name: str) -> Node:
        taking = self._taking
        if taking is None:
            return self.in_state(name, None)
        item = self.state.reader.overlay.get(taking, self.inner, name)
        newer = self._newer()
        return self.in_state(name, item) if newer is None else newer.lookup(name)

    def child_attrs(self, name: str) -> Attrs | None:
        entry = self._stored.get(name)
        if entry is None or entry.is_tree:
            return None
        state, taking = self.state, self._taking
        if taking is not None and (self._is_overlaid(taking, name) or state.now() is not state):
            return None
        try:
            size = self._size(entry)
        except Damaged:  # a lookup of the name returns the error
            return None
        mtime = self._modified(name)
        ino = version_ino(state.reader.domain, self._path(name), entry.oid, mtime)
        return Attrs(FILE, size, mtime, ino, 1, None, self._grows(name))

    def child_of(self, name: str) -> Node:
        return self.in_state(name, None)

    def _is_overlaid(self, place: ArcVersion, name: str) -> bool:
        """Return whether a name may differ from git's entry, or belong to a maker."""
        overlay, inner = self.state.reader.overlay, self.inner
        return (
            overlay.get(place, inner, name) is not None
            or overlay.makers.of(place, f"{inner}/{name}" if inner else name) is not None
        )

    def _grows(self, name: str) -> bool:
        """Return whether a file in it accepts data nodes."""
        takes = self.place is not None and self.state.reader.overlay.takes_additions
        return takes and name == arc_paths.DATA_XML and not self.inner

    def in_state(self, name: str, item: OverlayEntry | None) -> Node:
        """Return the node of a name in this folder's state, whatever is in force now, under `item` of the overlay."""
        stored = self._stored
        if item is None or _is_in(stored, item):
            item = stored.get(name)
        if item is None or is_gone(item):
            raise NotFound(f"there is no {name!r} in {self.path!r} of {self.state.reader.domain}")
        return item if isinstance(item, Node) else self._node(item)

    def stamp(self, name: str) -> str | None:
        # In an ARC, the node of a name depends on additions; above ARCs, on git only.
        entry = self._stored.get(name) if self.enclosing is None else None
        return entry.oid if entry is not None and entry.is_tree else None

    def now(self) -> Folder:
        try:
            state = self.state.now()
            if state is self.state or state.shows_what(self.state):
                return self
            node = self._at_same_path(state)
        except NotFound:
            return self
        return node if isinstance(node, Folder) and node.ino == self.ino else self

    def _newer(self) -> StoredFolder | None:
        """Return this folder in a newer state, if there is one: its entries may have left the overlay meanwhile."""
        now = self.now() if self._taking is not None else self
        return now if now is not self and isinstance(now, StoredFolder) else None

    def _at_same_path(self, state: ShownState) -> Node:
        if not self.path:
            return self._top(state)
        node: Node = StoredFolder(state, "", state.tree)
        for name in self.path.split("/"):
            if not isinstance(node, Folder):
                raise NotFound(f"{self.path!r} leads through a file now")
            node = node.lookup(name)
        return node

    def _top(self, state: ShownState) -> StoredFolder:
        """Return the domain's own folder in another state."""
        return StoredFolder(state, "", state.tree)

    def _path(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name

    def _version(self, entry: TreeEntry) -> FileVersion:
        """Return the version of a file in it, in this state."""
        return FileVersion(self.state.reader.domain, self._path(entry.name), entry.oid, self._modified(entry.name))

    def _size(self, entry: TreeEntry) -> int:
        """Return the size of a file in it."""
        return self.state.reader.size(entry.oid)

    def _modified(self, name: str) -> int:  # noqa: ARG002 # in most folders, all files share it
        """Return the mtime of a file in it."""
        return self.mtime

    def _node(self, entry: TreeEntry) -> Node:
        if entry.is_tree:
            return self._folder(self._path(entry.name), entry.oid)
        return StoredFile(self.state, self._version(entry), place=self.place)

    def _folder(self, path: str, tree: str) -> Folder:
        reader = self.state.reader
        if not tree and self.enclosing is not None:  # new, and empty in git's terms
            return AddedFolder(self.state, path, tree, self.enclosing)
        entries = reader.entries(tree)
        document = entries.get(arc_paths.DATA_XML)
        if document is not None and document.is_document:
            arc = Arc(self.state, path, tree, document.oid, reader.dates(document.oid), reader.leads(tree, entries))
            remember(arc, "_entries", entries)
            return arc
        if self.enclosing is not None and not reader.leads_to_arcs(tree):
            return AddedFolder(self.state, path, tree, self.enclosing)
        return StoredFolder(self.state, path, tree)


class Arc(StoredFolder):
    """The folder of an archived file. Its version is the crawl that stored it; additions do not change it.

    An ARC above other ARCs has a permanent inode number like any folder above ARCs: those ARCs, and the kernel's caches
    of them, stay in place when it is replaced.
    """

    _place: ArcVersion | None

    def __init__(  # noqa: PLR0917 # the parts read from a tree, in order
        self, state: ShownState, path: str, tree: str, document: str, dates: ArcTimes | None, leads: bool
    ) -> None:
        super().__init__(state, path, tree)
        self.document: Final = document
        self.dates: Final = dates
        self.leads: Final = leads

    @property
    def has_permanent_inode(self) -> bool:
        return self.leads

    def _number(self) -> int:
        if self.has_permanent_inode:
            return super()._number()
        crawl = self.dates.crawl if self.dates is not None else ""
        return number("arc", self.state.place, self.state.reader.domain, self.path, crawl)

    @property
    def meta(self) -> MetaData | None:
        """Its metadata; None if they cannot be read."""
        return self.state.reader.described(self.document)

    @property
    def enclosing(self) -> Arc | None:
        return self

    @property
    def place(self) -> ArcVersion | None:
        try:
            return self._place
        except AttributeError:
            return remember(self, "_place", self._find_place())

    def _find_place(self) -> ArcVersion | None:
        if self.old or self.dates is None or self.state.is_older:
            return None
        return ArcVersion(self.state.reader.domain, self.path, self.dates.crawl)

    @property
    def mtime(self) -> int:
        return self.dates.crawled if self.dates is not None else seconds(self.state.tag.crawl_time)

    def xattrs(self) -> Mapping[str, bytes]:
        return metadata_xattrs(self.meta)

    def _size(self, entry: TreeEntry) -> int:
        if self.dates is not None and entry.oid == self.document:
            return self.dates.size
        return super()._size(entry)

    def _modified(self, name: str) -> int:
        if self.dates is None:
            return self.mtime
        return self.dates.created if arc_paths.is_data_file(name) else self.dates.crawled

    def _node(self, entry: TreeEntry) -> Node:
        if self.dates is None or entry.is_tree or not arc_paths.is_data_file(entry.name):
            return super()._node(entry)
        return StoredFile(self.state, self._version(entry), self.document)


class AddedFolder(StoredFolder):
    """A folder that a user made inside an ARC."""

    def __init__(self, state: ShownState, path: str, tree: str, arc: Arc) -> None:
        super().__init__(state, path, tree)
        self.arc: Final = arc

    def _number(self) -> int:
        return number("added", str(self.arc.ino), self.path)

    @property
    def place(self) -> ArcVersion | None:
        return self.arc.place

    @property
    def inner(self) -> str:
        return self.path[len(self.arc.path) + 1 :]

    @property
    def _maker(self) -> int | None:
        ownership = self.state.reader.overlay.makers.of(self.place, self.inner)
        return ownership.uid if ownership else None

    def attrs(self) -> Attrs:
        return Attrs(self.kind, 0, self.mtime, self.ino, 1, self._maker)

    @property
    def enclosing(self) -> Arc | None:
        return self.arc

    @property
    def mtime(self) -> int:
        return self.arc.mtime


def _is_in(stored: Mapping[str, TreeEntry], added: OverlayEntry) -> bool:
    """Return whether git now has a folder that was made through this mount (and not still a renamed file)."""
    entry = stored.get(added.name) if isinstance(added, TreeEntry) and added.is_tree else None
    return entry is not None and entry.is_tree
