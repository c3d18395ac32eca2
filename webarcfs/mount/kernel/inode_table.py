"""The inodes that the kernel knows: number → node, with the kernel's lookup count.

Memory only, safe for any thread; its lock is held for moments and never across a call to another module. A node stays
until the kernel forgets it. Folders whose inode number outlives their content are renewed on each access, so that no
request sees an older state than the one in force.

Contents of files without handles are here, too: on a read-only mount the kernel reads a version without an open before.
They are in memory; a few large blobs have temporary files. Each read has a content of its own, so none is closed under
another; the kept ones only avoid a temporary file for each read of a large file.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Container, Iterable, Iterator
from typing import Final

from webarcfs.archive.model.errors import LookAgain
from webarcfs.vfs import content
from webarcfs.vfs.content import Content
from webarcfs.vfs.folders import Arc
from webarcfs.vfs.node import File, Folder, Node, NodeKind
from webarcfs.vfs.root import AnswerFolder, Beginning

# == inode table ======================================================================================================


#: Set in the kernel's number of a node of history. A version that is also current has the same st_ino in both places,
#: but other permissions, so the kernel needs two inodes.
_OLD: Final = 1 << 63
#: The most names of a path in the log.
_DEEPEST: Final = 100
#: Folders that the kernel must drop, with all inside them, when it knows too many inodes.
_TRIMMED: Final = (Arc, AnswerFolder, Beginning)


def nodeid(node: Node) -> int:
    """Return the number by which the kernel knows a node."""
    return node.ino | _OLD if node.old else node.ino


def ino_of(number: int) -> int:
    """Return the st_ino (stat(2)) of the inode with this number in the kernel."""
    return number & ~_OLD


def old_nodeid(ino: int) -> int:
    """Return the kernel's number of a node of history, from its st_ino."""
    return ino | _OLD


class ListedEntry:
    """An entry that the kernel received in a listing; valid while the name has this stamp (`Folder.stamp`)."""

    __slots__ = ("ino", "kind", "number", "stamp")

    def __init__(self, stamp: str, ino: int, kind: NodeKind, number: int) -> None:
        self.stamp = stamp
        self.ino = ino
        self.kind = kind
        self.number = number


class LazyFile:
    """A file whose attributes a folder returned without making its node (`Folder.child_attrs`)."""

    __slots__ = ("folder", "name")

    def __init__(self, folder: Folder, name: str) -> None:
        self.folder = folder
        self.name = name


class _Known:
    """A node, its lookup count and last known place; of a folder, also the entries that the kernel received.

    `children`: of a folder in which files may be renamed, the inode that the kernel found last under each name.
    `is_nameless`: the name under which the kernel knows it means another node by now.
    """

    __slots__ = ("children", "is_nameless", "lookups", "name", "node", "parent", "told")

    def __init__(self, node: Node | LazyFile, parent: int, name: str) -> None:
        self.node = node
        self.parent = parent
        self.name = name
        self.lookups = 0
        self.is_nameless = False
        self.told: dict[str, ListedEntry] | None = None
        self.children: dict[str, int] | None = None


class Inodes(Container[int]):
    """The table of one mount. It always contains the root."""

    def __init__(self, root: Folder) -> None:
        self._lock = threading.Lock()
        self._known: dict[int, _Known] = {nodeid(root): _Known(root, nodeid(root), "")}
        self._root = nodeid(root)
        self._remembered = 0
        self._most_told = content.most_inodes() // content.OF_AN_ARC

    def __contains__(self, number: object) -> bool:
        return number in self._known

    def __len__(self) -> int:
        return len(self._known)

    def node(self, number: int) -> Node:
        """Return the current node of an inode. Raises Stale for an unknown inode, and the errors of `Folder.now`."""
        known = self._known.get(number)
        if known is None:
            raise LookAgain(f"inode {number} is not known")
        node = known.node
        if isinstance(node, LazyFile):
            node = known.node = node.folder.child_of(node.name)
        elif isinstance(node, Folder):
            node = known.node = node.now()
        return node

    def named(self, number: int) -> Node:
        """Return the current node of an inode that the kernel found by a name, as `node`.

        Raises LookAgain where that name means another node by now: the kernel then looks the name up.
        """
        known = self._known.get(number)
        if known is not None and known.is_nameless:
            raise LookAgain(f"{known.name} is another file by now")
        return self.node(number)

    def path(self, number: int) -> str:
        """Return the path by which an inode was found last, as far as the folders above are known."""
        names: list[str] = []
        known = self._known.get(number)
        while known is not None and known.name and len(names) < _DEEPEST:
            names.append(known.name)
            known = self._known.get(known.parent)
        return "/" + "/".join(reversed(names))

    def parent(self, number: int) -> int:
        """Return the inode of the folder in which an inode was found last."""
        known = self._known.get(number)
        return known.parent if known else self._root

    def add(self, node: Node, parent: int, name: str) -> int:
        """Count one lookup of a node by the kernel; return its number."""
        return self._add(nodeid(node), node, parent, name)

    def add_briefed(self, file: LazyFile, ino: int, parent: int) -> int:
        """Count one lookup of a file whose node is made on demand; `ino` is its st_ino."""
        return self._add(ino | _OLD if file.folder.old else ino, file, parent, file.name)

    def _add(self, number: int, node: Node | LazyFile, parent: int, name: str) -> int:
        with self._lock:
            known = self._known.get(number)
            if known is None:
                known = self._known[number] = _Known(node, parent, name)
            else:
                known.node, known.parent, known.name, known.is_nameless = node, parent, name, False
            known.lookups += 1
            above = self._known.get(parent)
            if above is not None and above.children is not None:
                above.children[name] = number
        return number

    def follow(self, folder: int) -> None:
        """Remember from now on which inode the kernel finds under each name of a folder, for `rename`."""
        with self._lock:
            known = self._known.get(folder)
            if known is not None and known.children is None:
                known.children = {}

    def rename(self, old: tuple[int, str], node: Node, new: tuple[int, str]) -> None:
        """Let the inode that the kernel found last under a name be the node of its new name: it continues with that.

        A name is that of a folder and in it; both folders are followed. What is open stays the node of its handles: the
        kernel asks for their attributes by inode. `named` refuses it then, until the kernel has looked the name up.
        """
        with self._lock:
            source, target = self._known.get(old[0]), self._known.get(new[0])
            number = source.children.pop(old[1], None) if source is not None and source.children else None
            known = self._known.get(number) if number is not None else None
            if number is None or known is None:
                return
            if not isinstance(known.node, Node) or not known.node.is_open:
                known.node = node
            known.is_nameless = known.node != node
            known.parent, known.name = new
            if target is not None and target.children is not None:
                target.children[new[1]] = number

    def forget(self, number: int, lookups: int) -> bool:
        """Subtract `lookups` from the node's count; return True if the kernel no longer knows it."""
        with self._lock:
            known = self._known.get(number)
            if known is None or number == self._root:
                return False
            known.lookups -= lookups
            if known.lookups > 0:
                return False
            del self._known[number]
            self._remembered -= len(known.told or ())
            above = self._known.get(known.parent)
            if above is not None and above.children is not None and above.children.get(known.name) == number:
                del above.children[known.name]
            return True

    @property
    def remembered(self) -> int:
        """The number of remembered entries of listings."""
        return self._remembered

    # -- listings ----------------------------------------------------------------------------------------------------

    def told(self, folder: int, name: str, stamp: str) -> ListedEntry | None:
        """Return the entry that the kernel received for a name, if it is valid and the kernel still knows its node."""
        known = self._known.get(folder)
        listed_entry = known.told.get(name) if known is not None and known.told is not None else None
        return (
            listed_entry
            if listed_entry is not None and listed_entry.stamp == stamp and listed_entry.number in self._known
            else None
        )

    def remember(self, folder: int, name: str, listed_entry: ListedEntry) -> None:
        """Remember the entry that the kernel receives for a name, as long as the kernel knows the folder."""
        with self._lock:
            known = self._known.get(folder)
            if known is None:
                return
            names = known.told = known.told if known.told is not None else {}
            if name not in names:
                if self._remembered >= self._most_told:
                    return
                self._remembered += 1
            names[name] = listed_entry

    def retain_listed(self, folder: int, names: Collection[str]) -> None:
        """Forget the entries of a folder under other names than these."""
        known = self._known.get(folder)
        if known is None or known.told is None or len(known.told) <= len(names):
            return
        with self._lock:
            if self._known.get(folder) is not known:  # the kernel forgot it meanwhile, and `forget` subtracted these
                return
            for name in set(known.told).difference(names):
                del known.told[name]
                self._remembered -= 1

    # ----------------------------------------------------------------------------------------------------------------

    def folders_of(self, domain: str) -> list[int]:
        """Return the known folders of a domain's trees."""
        with self._lock:
            known = list(self._known.items())
        return [number for number, entry in known if _domain_of(entry.node) == domain]

    def oldest_arcs(self, count: int) -> list[tuple[int, int, str]]:
        """Return inode, parent and name of up to `count` ARCs, those known longest first; the next call returns others.

        Answers and beginnings of conditions count as ARCs: they contain many links.
        """
        with self._lock:
            arcs = list(itertools.islice(self._trimmed(), count))
            for number, entry in arcs:
                del self._known[number]
                self._known[number] = entry
        return [(number, entry.parent, entry.name) for number, entry in arcs]

    def _trimmed(self) -> Iterator[tuple[int, _Known]]:
        for number, entry in self._known.items():
            if isinstance(entry.node, _TRIMMED):
                yield number, entry


def undo(inodes: Inodes, numbers: Iterable[int]) -> None:
    """Take back one lookup of each inode: the kernel did not receive the answer."""
    for number in numbers:
        inodes.forget(number, 1)


def _domain_of(node: Node | LazyFile) -> str | None:
    state = getattr(node, "state", None) if isinstance(node, Folder) else None
    return state.reader.domain if state is not None else None


# == handleless reads =================================================================================================


#: Number of large files that are kept readable while no process reads them.
HELD = 4
#: Seconds after its last read for which a file counts as being read, and the most such files.
BUSY = 10.0
MOST = 64


class OpenContents:
    """The large files that were read last: all that are being read, and `HELD` idle ones."""

    def __init__(self, busy: float = BUSY) -> None:
        self._busy = busy
        self._contents: OrderedDict[int, Content] = OrderedDict()
        self._read: dict[int, float] = {}
        self._lock = threading.Lock()

    def read(self, inode: int, file: File, offset: int, size: int) -> bytes:
        """Return bytes of a file."""
        content = file.open()
        try:
            return content.read(offset, size)
        finally:
            self._keep(inode, content)

    def forget(self, inode: int) -> None:
        """Close the content of a file that the kernel no longer knows."""
        with self._lock:
            content = self._contents.pop(inode, None)
            self._read.pop(inode, None)
        if content is not None:
            content.close()

    def _keep(self, inode: int, content: Content) -> None:
        surplus = [content]
        if content.dear:
            with self._lock:
                if inode not in self._contents:
                    self._contents[inode] = surplus.pop()
                self._contents.move_to_end(inode)
                self._read[inode] = time.monotonic()
                surplus += self._idle()
        for surplus_content in surplus:
            surplus_content.close()

    def _idle(self) -> Iterator[Content]:
        """Yield the contents to close. A fixed limit makes git write a file again for each read of one too many."""
        while len(self._contents) > HELD:
            inode = next(iter(self._contents))
            if len(self._contents) <= MOST and time.monotonic() - self._read[inode] < self._busy:
                return
            del self._read[inode]
            yield self._contents.pop(inode)
