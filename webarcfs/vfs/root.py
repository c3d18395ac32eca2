"""The shape of the mount above the trees of the domains, in one table: `SHAPE`.

Pure, apart from the view that it reads; safe for any thread. `Tree` finds the node of a path for adapters that use
paths, and has the root for those that use inodes. The history folders have symbolic links.

`.snapshots/` has the tree of a crawl by its commitTag, a domain's tags as links to those, and what a record has.

`.query/<condition>/` has the documents of a condition, as links into `.snapshots` (/Cl-6/). The kernel splits paths at
each slash, also inside the quotes of a condition. So a name that ends inside quotes is the beginning of a condition: a
folder in which the next name continues it.

A folder of links is one answer (query_answers.py), and its inode number identifies it: in another state of the archive,
the same condition is another folder. A process inside one, or reading its listing, keeps that answer. The kernel keeps
what is in such a folder, and asks for its name each time; so nothing has to be dropped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import OWN, CrawlPart
from webarcfs.archive.index.query import from_name, open_quote
from webarcfs.archive.model.arc_paths import LONGEST_NAME
from webarcfs.archive.model.errors import NameTooLong, NotADirectory, NotFound, WebarcError
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.vfs.domain_states import DomainState
from webarcfs.vfs.folders import ShownState, StoredFolder
from webarcfs.vfs.node import Attrs, Folder, Node, NodeKind, number, seconds
from webarcfs.vfs.query_answers import SLASH, Queries, QueryAnswer, Stamp, unanswered
from webarcfs.vfs.view import SCHEMAS, ChangesFile, SchemaFolder, View

# == symlink ==========================================================================================================


# ruff: noqa: D102 # vfs/node.py specifies the methods


class Symlink(Node):
    """A link. `key` determines its inode number."""

    kind: ClassVar[NodeKind] = NodeKind.LINK

    def __init__(self, key: str, target: str, mtime: int) -> None:
        self.key: Final = key
        self.target: Final = target
        self.mtime: Final = mtime

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symlink) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def _all(self) -> tuple[str, str, int]:
        return self.key, self.target, self.mtime

    @property
    def old(self) -> bool:
        return True

    @property
    def ino(self) -> int:
        return number("link", self.key)

    def attrs(self) -> Attrs:
        return Attrs(self.kind, len(os.fsencode(self.target)), self.mtime, self.ino)


# == snapshots folder =================================================================================================


# ruff: noqa: D102 # vfs/node.py specifies the methods


def snapshot_folder(view: View, domain: DomainState, tag: str) -> StoredFolder:
    """Return `.snapshots/<commitTag>/` in a state of the domain. Raises NotFound for an unknown tag."""
    state = _snapshot_state(view, domain, tag)
    return SnapshotFolder(state, "", state.tree)


def _snapshot_state(view: View, domain: DomainState, tag: str) -> ShownState:
    if tag not in domain.tags:
        raise NotFound(f"there is no snapshot {tag}")
    commit, name, mark = domain.reader.commit(domain.tags[tag]), domain.name, domain.mark

    def now() -> ShownState:
        domain_state = view.domain(name)
        return state if domain_state.mark is mark else _snapshot_state(view, domain_state, tag)

    state = ShownState(domain.reader, commit.message.tag, commit.tree, now, tag)
    return state


class SnapshotFolder(StoredFolder):
    """`.snapshots/<commitTag>/`: the tree of one crawl."""

    def lookup(self, name: str) -> Node:
        try:
            return super().lookup(name)
        except NotFound:
            # A document's path starts with its domain, so `.snapshots/$tag$path` must go through it.
            if name != self.state.tag.domain:
                raise
            return Symlink(f"{self.state.place}/{name}", ".", self.mtime)

    def _top(self, state: ShownState) -> StoredFolder:
        return SnapshotFolder(state, "", state.tree)


@dataclass(frozen=True)
class SnapshotsFolder(Folder):
    """`.snapshots/<domain>/`: a link for each commitTag of the domain."""

    view: View
    domain: str

    @property
    def old(self) -> bool:
        return True

    @property
    def ino(self) -> int:
        return history_ino(self.domain)

    def attrs(self) -> Attrs:
        newest = max(self._tags, default="")
        return Attrs(self.kind, 0, _mtime(newest) if newest else 0, self.ino)

    def names(self) -> Iterator[str]:
        return iter(self._tags)

    def lookup(self, name: str) -> Node:
        if name not in self._tags:
            raise NotFound(f"there is no {name!r}")
        return Symlink(f"history/{name}", f"../{name}", _mtime(name))

    @property
    def _tags(self) -> Mapping[str, str]:
        return self.view.domain(self.domain).tags


@dataclass(frozen=True)
class RecordFolder(Folder):
    """`.snapshots/<record>/`: the domains of a capture, each as its publication saw it.

    Where that is all of a snapshot, a domain is a link to it.
    """

    view: View
    record: str
    parts: Mapping[str, CrawlPart]

    @property
    def old(self) -> bool:
        return True

    @property
    def ino(self) -> int:
        return number("record", self.record)

    def attrs(self) -> Attrs:
        return Attrs(
            self.kind, 0, min((seconds(part.tag.crawl_time) for part in self.parts.values()), default=0), self.ino
        )

    def names(self) -> Iterator[str]:
        return iter(sorted(self.parts))

    def lookup(self, name: str) -> Node:
        part = self.parts.get(name)
        if part is None:
            raise NotFound(f"{self.record} has no domain {name!r}")
        if part.seen in ("", OWN):
            return Symlink(f"{self.record}/{name}", f"../{part.tag}", seconds(part.tag.crawl_time))
        reader, place = self.view.domain(name).reader, f"{self.record}/{name}"
        state = ShownState(reader, part.tag, part.seen, lambda: state, place)
        return SeenFolder(state, "", part.seen)


class SeenFolder(StoredFolder):
    """`.snapshots/<record>/<domain>/`: the tree that a publication saw, which never changes."""

    def _top(self, state: ShownState) -> StoredFolder:
        return SeenFolder(state, "", state.tree)


def record_folder(view: View, record_id: str) -> RecordFolder:
    """Return `.snapshots/<record>/`. Raises NotFound without that record, Damaged for a catalogue that is."""
    if record_id in view.discarded.ids():
        raise NotFound(f"{record_id} is discarded")
    record, _ = Catalogue(view.archive).read(record_id)
    return RecordFolder(view, record_id, {part.tag.domain: part for part in record.parts})


def history_ino(domain: str) -> int:
    """Return the inode number of `.snapshots/<domain>/`."""
    return number("history", domain)


def _mtime(tag: str) -> int:
    return seconds(CommitTag.parse(tag).crawl_time)


# == queries folder ===================================================================================================


# ruff: noqa: D102 # vfs/node.py specifies the methods


#: Its name in the mount's root.
QUERY = ".query"
#: The name of the folder of searches.
SEARCH = ".search"
#: Most bytes of a condition, as of a path (PATH_MAX); SQLite would accept sixteen times as many (query.py).
LONGEST = 4096
_NUMBER = re.compile(r"[0-9]{6}")


class QueryFolder(Folder):
    """`.query`: lists no names, and contains a folder for every condition that SQLite accepts."""

    names_cacheable: ClassVar[bool] = False
    attrs_cacheable: ClassVar[bool] = False

    def __init__(self, queries: Queries) -> None:
        self.queries: Final = queries

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueryFolder) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def _all(self) -> tuple[object, ...]:
        return type(self), self.queries

    @property
    def old(self) -> bool:
        return True

    @property
    def ino(self) -> int:
        return number("queries")

    def attrs(self) -> Attrs:
        try:
            time = self.queries.stamp().mtime
        except NotFound:
            time = 0
        return Attrs(self.kind, 0, time, self.ino)

    def is_slow(self, name: str = "") -> bool:
        condition, quote = self._with(name)
        return bool(name) and not quote and not self.queries.is_known(condition)

    def names(self) -> Iterator[str]:
        return iter(())

    def lookup(self, name: str) -> Node:
        condition, quote = self._with(name)
        if quote:
            return Beginning(self.queries, condition, quote)
        answer, stamp = self.queries.find(condition)
        return AnswerFolder(condition, stamp, answer)

    def _with(self, name: str) -> tuple[str, str]:
        """Return the condition up to and including a name in this folder, and the quote that it ends inside."""
        return name, _open_quote(name)


class SearchFolder(QueryFolder):
    """`.search`: lists no names, and contains a folder for every search; a slash in one is written `%2F`."""

    @property
    def ino(self) -> int:
        return number("searches")

    def _with(self, name: str) -> tuple[str, str]:
        return name, ""


class Beginning(QueryFolder):
    """`.query/path LIKE '`: the beginning of a condition, up to a slash inside quotes. Its listing is empty, and logs
    that the condition is incomplete.
    """

    def __init__(self, queries: Queries, begun: str, quote: str) -> None:
        super().__init__(queries)
        self.begun: Final = begun
        self.quote: Final = quote

    def _all(self) -> tuple[object, ...]:
        return *super()._all(), self.begun, self.quote

    @property
    def ino(self) -> int:
        return number("begun", self.begun)

    def names(self) -> Iterator[str]:
        unanswered(self.begun, f"the quote {self.quote} is never closed | {SLASH}")
        return iter(())

    def lookup(self, name: str) -> Node:
        condition, _ = self._with(name)
        if len(os.fsencode(condition)) > LONGEST:
            raise NameTooLong(f"a condition of more than {LONGEST} bytes")
        if self.begun.lower().endswith(("http:", "https:")):  # no URL begins so: the kernel drops one of two slashes
            raise unanswered(condition, "// within quotes comes here as one slash; it is written %2F%2F")
        return super().lookup(name)

    def _with(self, name: str) -> tuple[str, str]:
        return f"{self.begun}/{name}", _open_quote(name, f"{self.quote}/")


def _open_quote(name: str, before: str = "") -> str:
    """Return the quote that a name ends inside. Invalid text ends inside none: it is refused as a condition."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return ""
    return open_quote(before + from_name(name))


class AnswerFolder(Folder):
    """`.query/<condition>/`: `000001` and so on, a link for each hit, in the requested order.

    Each slash in the condition adds a folder above them. It equals any other one of its condition and moment.
    """

    def __init__(self, condition: str, moment: Stamp, answer: QueryAnswer) -> None:
        self.condition: Final = condition
        self.moment: Final = moment
        self.answer: Final = answer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnswerFolder) and (self.condition, self.moment) == (other.condition, other.moment)

    def __hash__(self) -> int:
        return hash((self.condition, self.moment))

    @property
    def old(self) -> bool:
        return True

    @property
    def ino(self) -> int:
        stamp = self.moment
        state = (str(stamp.inode), str(stamp.size), str(stamp.time), stamp.counter.hex())
        return number("answer", self.condition, *state)

    def attrs(self) -> Attrs:
        return Attrs(self.kind, 0, self.moment.mtime, self.ino)

    def is_slow(self, name: str = "") -> bool:  # noqa: ARG002 # any hit needs the whole answer
        return not self.answer.is_there

    def names(self) -> Iterator[str]:
        return (f"{place:06}" for place in range(1, len(self.answer.hits()) + 1))

    def lookup(self, name: str) -> Node:
        hits = self.answer.hits() if _NUMBER.fullmatch(name) else ()
        place = int(name) if hits else 0
        if not 1 <= place <= len(hits):
            raise NotFound(f"the condition {self.condition!r} has no hit {name!r}")
        up = "../" * (2 + self.condition.count("/"))
        target = f"{up}.snapshots/{hits[place - 1]}"
        tag = CommitTag.parse(hits[place - 1].partition("/")[0])
        return Symlink(f"query/{target}", target, seconds(tag.crawl_time))


# == root, pure =======================================================================================================


# ruff: noqa: D102 # vfs/node.py specifies the methods


#: The beginning of the name of a record; a domain has no capitals.
_RECORD = re.compile(r"[0-9]{8}T[0-9]{6}-")
#: Inode number of the root.
ROOT = 1


@dataclass(frozen=True, slots=True)
class FolderShape:
    """The content of a folder above the domains.

    `fixed` maps names to functions that return their nodes; a listing shows the names in `listed`, then the domains.
    `find` returns the node of any other name, or raises NotFound.
    """

    fixed: Mapping[str, Callable[[View], Node]]
    listed: tuple[str, ...]
    find: Callable[[View, str], Node]


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
        domain_state = view.domain(name)
        return state if domain_state.mark is mark else _current_state(view, domain_state)

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
SHAPE: Mapping[str, FolderShape] = {
    "/": FolderShape(
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
    "/.snapshots": FolderShape({}, (), _snapshot),
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
        return shape.fixed[name](self.view) if name in shape.fixed else shape.find(self.view, name)

    def listed(self, name: str) -> Node:
        try:
            return self.lookup(name)
        except WebarcError as error:
            return UnreadableFolder(number("unreadable", self.place, name), error)


@dataclass(frozen=True)
class UnreadableFolder(Folder):
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
