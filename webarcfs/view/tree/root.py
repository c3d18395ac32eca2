"""The shape of the mount above the trees of the domains, in one table: `SHAPE`.

Pure, apart from the view that it reads; safe for any thread. `Tree` finds the node of a path for adapters that use
paths, and has the root for those that use inodes.
"""

# ruff: noqa: D102 # view/node.py specifies the methods
from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from webarcfs.archive.model.errors import NameTooLong, NotADirectory, NotFound, WebarcError
from webarcfs.archive.model.name_rules import LONGEST_NAME
from webarcfs.view.node import Attrs, Folder, Node, number
from webarcfs.view.state.domain_states import DomainState
from webarcfs.view.tree.changes_file import ChangesFile
from webarcfs.view.tree.files import ShownState
from webarcfs.view.tree.folders import StoredFolder
from webarcfs.view.tree.queries_folder import QUERY, SEARCH, QueryFolder, SearchFolder
from webarcfs.view.tree.schemas_folder import SCHEMAS, SchemaFolder
from webarcfs.view.tree.snapshots_folder import SnapshotsFolder, record_folder, snapshot_folder
from webarcfs.view.tree.view import View

#: The beginning of the name of a record; a domain has no capitals.
_RECORD = re.compile(r"[0-9]{8}T[0-9]{6}-")
#: Inode number of the root.
ROOT = 1


@dataclass(frozen=True, slots=True)
class Shape:
    """The content of a folder above the domains.

    `fixed` maps names to functions that return their nodes; a listing shows the names in `listed`, then the domains.
    `found` returns the node of any other name, or raises NotFound.
    """

    fixed: Mapping[str, Callable[[View], Node]]
    listed: tuple[str, ...]
    found: Callable[[View, str], Node]


def _current(view: View, name: str) -> Node:
    """`<domain>/`: the tree of main."""
    return current_folder(view, view.domain(name))


def current_folder(view: View, domain: DomainState) -> StoredFolder:
    """Return `<domain>/` in a state of the domain. Raises NotFound if the domain was not crawled yet."""
    state = _current_state(view, domain)
    return StoredFolder(state, "", state.tree)


def _current_state(view: View, domain: DomainState) -> ShownState:
    if domain.main is None:
        raise NotFound(f"nothing of {domain.name} has been crawled yet")

    name, mark = domain.name, domain.mark

    def now() -> ShownState:
        found = view.domain(name)
        return state if found.mark is mark else _current_state(view, found)

    state = ShownState(domain.reader, domain.main.message.tag, domain.main.tree, now, is_older=domain.is_older)
    return state


def _snapshot(view: View, name: str) -> Node:
    """`.snapshots/<commitTag>/`, `.snapshots/<record>/`, or `.snapshots/<domain>/`."""
    if _RECORD.match(name):
        return record_folder(view, name)
    _, is_tag, domain = name.partition("@")
    if is_tag:
        return snapshot_folder(view, view.domain(domain), name)
    view.domain(name)
    return SnapshotsFolder(view, name)


#: Folder → its content. Lookups also find names that are not listed: find, grep -r and tar do not walk history.
SHAPE: Mapping[str, Shape] = {
    "/": Shape(
        {
            ".changes": lambda view: ChangesFile(view.changes),
            ".snapshots": lambda view: Table(view, "/.snapshots"),
            SCHEMAS: lambda view: SchemaFolder(view.archive, view.schema_drafts),
            QUERY: lambda view: QueryFolder(view.queries),
            SEARCH: lambda view: SearchFolder(view.searches),
        },
        (".changes",),
        _current,
    ),
    "/.snapshots": Shape({}, (), _snapshot),
}


@dataclass(frozen=True)
class Table(Folder):
    """A folder in `SHAPE`."""

    view: View
    place: str

    @property
    def old(self) -> bool:
        return self.place != "/"

    @property
    def ino(self) -> int:
        return ROOT if self.place == "/" else number("table", self.place)

    def attrs(self) -> Attrs:
        return Attrs(self.kind, 0, self.view.mtime, self.ino)

    def xattrs(self) -> Mapping[str, bytes]:
        return {} if self.old else {"user.webarc.archive": os.fsencode(self.view.archive.root)}

    def names(self) -> Iterator[str]:
        yield from SHAPE[self.place].listed
        yield from self.view.domains()

    def lookup(self, name: str) -> Node:
        shape = SHAPE[self.place]
        return shape.fixed[name](self.view) if name in shape.fixed else shape.found(self.view, name)

    def listed(self, name: str) -> Node:
        try:
            return self.lookup(name)
        except WebarcError as error:
            return Unreadable(number("unreadable", self.place, name), error)


@dataclass(frozen=True)
class Unreadable(Folder):
    """A folder that exists and cannot be read: it is listed, and every access raises the reason."""

    inode: int
    error: WebarcError

    @property
    def ino(self) -> int:
        return self.inode

    def attrs(self) -> Attrs:
        raise self.error

    def names(self) -> Iterator[str]:
        raise self.error

    def lookup(self, name: str) -> Node:  # noqa: ARG002
        raise self.error


class Tree:
    """The whole mount."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.root: Folder = Table(view, "/")

    def find(self, path: str) -> Node:
        """Return the node of an absolute path in the mount; links are not followed. Raises NotFound, NotADirectory."""
        node: Node = self.root
        for name in path.split("/"):
            if name:
                node = self.child(node, name)
        return node

    @staticmethod
    def child(parent: Node, name: str) -> Node:
        """Return the node of one name in a folder. Raises NotFound, NotADirectory, NameTooLong."""
        if len(os.fsencode(name)) > LONGEST_NAME:
            raise NameTooLong(f"a name of {len(os.fsencode(name))} bytes; at most {LONGEST_NAME} are possible")
        if not isinstance(parent, Folder):
            raise NotADirectory(f"{name!r} is looked for in something that is no folder")
        return parent.in_force(lambda folder: folder.lookup(name))
