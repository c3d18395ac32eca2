"""Invalidates what a publication changed in the kernel's caches, and nothing else; bounds the inodes that it knows.

The view's thread calls it when the new states are in force, but before `.changes` shows their lines; it returns when
the kernel has dropped the old data. The kernel keeps names and attributes for ever (readdir.ALWAYS), so what is not
invalidated here stays wrong.

Why this cannot deadlock: to invalidate a name, the kernel waits until the requests in that folder are answered. The
request threads never wait for this thread: it holds neither the view's mutexes, which it releases before the call, nor
the table's. A request thread may wait for a publisher's lock, and publishers do not wait for mounts.

Why no old data survive: states come into force first, and folders are always read in their current state
(inode_table.py), so a later answer is right. An earlier answer is either waited for, because invalidating a name takes
the folder's lock, or, for attributes and listings, ignored by the kernel, which counts the changes of an inode. So
names come first, then the folder; and a name is invalidated even if it did not exist, since the kernel caches that too.

The bound of inodes, and so of the memory for them, has one thread of its own, because a notification waits for
requests; it holds no lock meanwhile. It makes the kernel drop the ARCs known longest first. The kernel replies with
forgets, and looks up again what a process needs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from webarcfs.archive.git.repository import TreeEntry
from webarcfs.archive.model.errors import WebarcError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.mount.kernel.inode_table import Inodes, nodeid, old_nodeid
from webarcfs.vfs import content
from webarcfs.vfs.domain_states import DomainChange, DomainState
from webarcfs.vfs.folders import Arc, StoredFolder
from webarcfs.vfs.node import Node, number
from webarcfs.vfs.overlay import OverlayEntry
from webarcfs.vfs.root import ROOT, Table, Tree, current_folder, history_ino, snapshot_folder

# == invalidation =====================================================================================================


_log = logging.getLogger(__name__)


class Kernel(Protocol):
    """Invalidations; both methods return when the kernel is done, and ignore what it does not know."""

    def forget_name(self, folder: int, name: str) -> None:
        """Invalidate a name, and the nodes below it unless they are in use."""

    def forget_inode(self, inode: int) -> None:
        """Invalidate the attributes, the listing and the pages."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a folder that now means something else."""

    folder: int
    name: str


@dataclass(frozen=True, slots=True)
class Inode:
    """An inode whose attributes or listing changed."""

    number: int


def differences(old: StoredFolder, new: StoredFolder, known: Container[int]) -> Iterator[Name | Inode]:
    """Yield the differences between two states of the same inode, as far as the kernel may know them.

    The kernel knows nothing inside a folder that it does not know.
    """
    folder = nodeid(new)
    if old.tree == new.tree or folder not in known:
        return
    relisted = False
    before, after = old.items, new.items  # once: each access reads the whole folder
    for name in {name for name, _ in before.items() ^ after.items()}:
        folders = _one_folder((old, before.get(name)), (new, after.get(name)))
        if folders is None:
            relisted = True
            yield Name(folder, name)
            sides = (old, before.get(name)), (new, after.get(name))
            alternates = _alternates(*sides)
            for above, item in sides:
                yield from _inside(above, item, known, alternates=alternates)
            continue
        was, now = folders
        yield from differences(was, now, known)
        if isinstance(now, Arc) and was.mtime != now.mtime:
            yield Inode(nodeid(now))
    if relisted:
        yield Inode(folder)


def _alternates(old: tuple[StoredFolder, OverlayEntry | None], new: tuple[StoredFolder, OverlayEntry | None]) -> bool:
    """Return whether a name is the same version of an ARC in both, which began or ceased to lead to other ARCs: in
    either form its inode number comes back."""
    was, now = (above.in_state(item.name, item) if isinstance(item, TreeEntry) else None for above, item in (old, new))
    return isinstance(was, Arc) and isinstance(now, Arc) and was.place == now.place


def _inside(
    above: StoredFolder, item: OverlayEntry | None, known: Container[int], *, alternates: bool = False
) -> Iterator[Name | Inode]:
    """Yield all names in a folder that appeared or disappeared, if its inode number comes back: while a process is
    inside, the kernel keeps the folder and its cache of what is below. Folders that lead to ARCs have one inode per
    path."""
    if not (isinstance(item, TreeEntry) and item.is_tree):
        return
    inner = above.in_state(item.name, item)
    if not isinstance(inner, StoredFolder) or nodeid(inner) not in known:
        return
    if not (inner.has_permanent_inode or alternates):
        return
    for name, child in inner.items.items():
        yield Name(nodeid(inner), name)
        yield from _inside(inner, child, known)
    yield Inode(nodeid(inner))


def _one_folder(
    old: tuple[StoredFolder, OverlayEntry | None], new: tuple[StoredFolder, OverlayEntry | None]
) -> tuple[StoredFolder, StoredFolder] | None:
    """Return a name's folder in two states, if it is the same inode in both."""
    (above, before), (beside, after) = old, new
    if not (isinstance(before, TreeEntry) and isinstance(after, TreeEntry) and before.is_tree and after.is_tree):
        return None
    was, now = above.in_state(before.name, before), beside.in_state(after.name, after)
    if isinstance(was, StoredFolder) and isinstance(now, StoredFolder) and nodeid(was) == nodeid(now):
        return was, now
    return None


class Expiry:
    """The view's listener for one mount."""

    def __init__(self, tree: Tree, inodes: Inodes, kernel: Kernel) -> None:
        self._view = tree.view
        self._inodes = inodes
        self._kernel = kernel
        self._snapshots = nodeid(Table(tree.view, "/.snapshots"))
        self._discarded = tree.view.discarded.ids()

    def moved(self, changes: Sequence[DomainChange], tags: Sequence[CommitTag]) -> None:
        """Invalidate what differs between the states, and each new tag as a name that the kernel may have looked up."""
        expired = [name_or_inode for change in changes for name_or_inode in self._of_change(change)]
        for tag in tags:
            expired += self._of_tag(str(tag), tag.domain)
        expired += self._of_records()
        self._tell(dict.fromkeys(expired))  # a new tag is also among the changes of its domain

    def files_superseded(self, state: DomainState, paths: Sequence[str]) -> None:
        """Invalidate files that git stores in another version than this mount confirmed."""
        for path in paths:
            folder, _, name = path.rpartition("/")
            try:
                node: Node = current_folder(self._view, state)
                for part in folder.split("/"):
                    node = Tree.child(node, part)
            except WebarcError:
                continue  # its ARC is gone, and was invalidated with it
            self._tell([Name(nodeid(node), name), Inode(nodeid(node))])

    def shown(self) -> None:
        """Invalidate what shows the last publication: `.changes`, and the times of the folders above the domains."""
        for inode in (number("changes"), ROOT, self._snapshots):
            self._kernel.forget_inode(inode)

    def schemas(self, names: Sequence[str]) -> None:
        """Invalidate names in `.schemas`."""
        folder = number("schemas")
        self._tell([*(Name(folder, name) for name in names), Inode(folder)])

    def _of_change(self, change: DomainChange) -> list[Name | Inode]:
        if change.old is None or change.new is None or change.old.reader.origin is not change.new.reader.origin:
            return list(self._all_of(change))
        try:
            return list(self._between(change.old, change.new))
        except Exception as error:
            unexpected = None if isinstance(error, WebarcError) else error
            _log.warning(
                "%s: the changes are unknown, so all of it is reloaded: %s", change.name, error, exc_info=unexpected
            )
            return list(self._all_of(change))

    def _between(self, old: DomainState, new: DomainState) -> Iterator[Name | Inode]:
        if old.main is None or new.main is None:
            yield Name(ROOT, new.name)
            yield Inode(ROOT)
        else:
            yield from differences(current_folder(self._view, old), current_folder(self._view, new), self._inodes)
        for tag in old.tags.keys() | new.tags.keys():
            if tag not in old.tags or tag not in new.tags:
                yield from self._of_tag(tag, new.name)
            elif old.tags[tag] != new.tags[tag]:
                was, now = (snapshot_folder(self._view, state, tag) for state in (old, new))
                yield from differences(was, now, self._inodes)

    def _of_records(self) -> list[Name]:
        """Return the records that were discarded or restored since the last call."""
        discarded = self._view.discarded.ids()
        changed, self._discarded = discarded ^ self._discarded, discarded
        return [Name(self._snapshots, record_id) for record_id in changed]

    def _all_of(self, change: DomainChange) -> Iterator[Name | Inode]:
        """Yield the names of a domain, and its folders: a process may be inside one."""
        for table in (ROOT, self._snapshots):
            yield Name(table, change.name)
            yield Inode(table)
        for state in (change.old, change.new):
            for tag in state.tags if state else ():
                yield from self._of_tag(tag, change.name)
        yield from map(Inode, self._inodes.folders_of(change.name))

    def _of_tag(self, tag: str, domain: str) -> Iterator[Name | Inode]:
        history = old_nodeid(history_ino(domain))
        yield Name(self._snapshots, tag)
        yield Name(history, tag)
        yield Inode(history)

    def _tell(self, expired: Iterable[Name | Inode]) -> None:
        for name_or_inode in expired:
            if isinstance(name_or_inode, Name):
                self._kernel.forget_name(name_or_inode.folder, name_or_inode.name)
            else:
                self._kernel.forget_inode(name_or_inode.number)


# == trimmer ==========================================================================================================


#: Seconds between two checks of the number of inodes.
_INTERVAL = 0.5
_AT_ONCE = 2_000


class Trimmer(threading.Thread):
    """The thread."""

    def __init__(self, inodes: Inodes, kernel: Kernel, most: int | None = None) -> None:
        super().__init__(name="trimmer", daemon=True)
        self._inodes = inodes
        self._kernel = kernel
        self._most = most if most is not None else content.most_inodes()
        self._end = threading.Event()

    def run(self) -> None:
        """Trim repeatedly."""
        while not self._end.wait(_INTERVAL):
            self.trim()

    def trim(self) -> None:
        """Reduce the number of inodes to nine tenths of the limit, as far as the kernel can drop them."""
        if len(self._inodes) <= self._most:
            return
        tries = 2 * len(self._inodes) // _AT_ONCE + 1
        while len(self._inodes) > self._most * 9 // 10 and tries and not self._end.wait(0.01):
            tries -= 1
            for _, folder, name in self._inodes.oldest_arcs(_AT_ONCE):
                self._kernel.forget_name(folder, name)

    def stop(self) -> None:
        """End the thread."""
        self._end.set()
        self.join()
