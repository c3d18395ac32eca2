"""What every node of the mount answers, whatever its kind; the kinds are files.py's, folders.py's and root.py's.

Nodes are made when asked for and thrown away again; they are immutable and safe for any thread. A node belongs to one
state of one domain for ever: what a crawl publishes meanwhile is other nodes. Folders have `children` and `lookup`,
files `open`, links `target`; all have `attrs` and `xattrs`. Knows no FUSE, no absolute path and no handle.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import ClassVar, Final, TypeVar

from mypy_extensions import mypyc_attr

from webarcfs.archive.model.errors import NotFound, NotPermitted, ReadOnly, WebarcError
from webarcfs.view.content import Content

T = TypeVar("T")

_NUMBER: Final = Struct(">Q")
#: A copy of it is made in a third of the time that a new one takes.
_HASHER: Final = blake2b(digest_size=8)


def remember(node: object, name: str, value: T) -> T:
    """Set a field of a frozen dataclass that a property computes when it is first asked for, unset until then.

    functools.cached_property locks and makes each instance a dictionary, which costs more than what is computed here.
    """
    object.__setattr__(node, name, value)
    return value


class NodeKind(Enum):
    """What stat(2) calls the type; the value is the permission bits that all nodes of the kind have."""

    FILE = 0o444
    FOLDER = 0o755
    LINK = 0o777

    __hash__ = object.__hash__  # Enum's is a function in Python, and kinds are looked up for each entry of a listing


#: The kinds themselves: to ask an Enum for a member is a call of a function in Python, and a listing asks thousands.
FILE: Final = NodeKind.FILE
FOLDER: Final = NodeKind.FOLDER


class Attrs:
    """What stat(2) tells of a node. `mtime` is seconds since 1970.

    nlink is 1 for folders too, which says "not counted", as on btrfs. The owner is the same for all nodes, but for what
    a user makes just now: that is theirs (`owner`, a uid), so that the kernel lets them set its times and mode.
    A file that takes writes is `writable`. Never changed; no dataclass, since a listing makes thousands.
    """

    __slots__ = ("ino", "kind", "mtime", "nlink", "owner", "size", "writable")

    def __init__(  # noqa: PLR0917 # as many as stat(2) tells
        self,
        kind: NodeKind,
        size: int,
        mtime: int,
        ino: int,
        nlink: int = 1,
        owner: int | None = None,
        writable: bool = False,
    ) -> None:
        self.kind = kind
        self.size = size
        self.mtime = mtime
        self.ino = ino
        self.nlink = nlink
        self.owner = owner
        self.writable = writable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attrs) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def _all(self) -> tuple[object, ...]:
        return self.kind, self.size, self.mtime, self.ino, self.nlink, self.owner, self.writable

    def mode(self, folder_mode: int) -> int:
        """The permission bits, where those of folders are `folder_mode`: what its group may do, it may with files."""
        if self.kind is NodeKind.FOLDER:
            return folder_mode
        return int(self.kind.value) | (0o200 | folder_mode & 0o020 if self.writable else 0)


# Some kinds of node are compiled and some are not (native/loader.py), whichever of them inherits.
@mypyc_attr(allow_interpreted_subclasses=True)
class Node:
    """Anything that has a name in the mount.

    Not of ABCMeta, which makes isinstance many times as dear; mypy holds subclasses to the abstract methods without.
    """

    kind: ClassVar[NodeKind]
    #: Whether its attributes stay as they are until the mount is told of a publication; those of what has an owner of
    #: its own do not, whatever this says.
    attrs_cacheable: ClassVar[bool] = True

    @property
    def old(self) -> bool:
        """Whether it is part of history and not of the current state."""
        return False

    @property
    @abstractmethod
    def ino(self) -> int:
        """Number of this version of this thing, the same in every mount, at any time."""

    @abstractmethod
    def attrs(self) -> Attrs:
        """Its attributes."""

    def xattrs(self) -> Mapping[str, bytes]:
        """Its extended attributes."""
        return {}

    def refusal(self) -> WebarcError:
        """Why it cannot be changed, and nothing made in it (/Ar-1/)."""
        if self.old:
            return ReadOnly("older states take no changes")
        return NotPermitted("what is archived is never changed")


@mypyc_attr(allow_interpreted_subclasses=True)
class Folder(Node):
    """A node with names in it."""

    kind: ClassVar[NodeKind] = NodeKind.FOLDER
    #: Whether its names mean the same until the mount is told of a publication.
    names_cacheable: ClassVar[bool] = True

    def is_slow(self, name: str = "") -> bool:  # noqa: ARG002 # of most folders it is known
        """Whether a name in it (without one: its names) takes long to find, so that no other request may wait."""
        return False

    @abstractmethod
    def names(self) -> Iterator[str]:
        """The names that a listing shows."""

    @abstractmethod
    def lookup(self, name: str) -> Node:
        """The node of that name, listed or not. Raises NotFound."""

    def listed(self, name: str) -> Node:
        """The node of a name that a listing shows; one that cannot be read is a node all the same."""
        return self.lookup(name)

    def child_attrs(self, name: str) -> Attrs | None:  # noqa: ARG002
        """Attributes of a child file, without making its node (a listing needs thousands); None if that is impossible.

        The node is made when somebody asks for more (`child_of`). None for what is no such file.
        """
        return None

    def child_of(self, name: str) -> Node:
        """The node of a name that `child_attrs` has told of: that version, whatever came since."""
        return self.lookup(name)

    def stamp(self, name: str) -> str | None:  # noqa: ARG002
        """What the node of a name is made of: with the same stamp it is the same. None when that cannot be told."""
        return None

    def children(self) -> Iterator[tuple[str, Node]]:
        """What a listing shows, without what was renamed meanwhile."""
        for name in self.names():
            with suppress(NotFound):
                yield name, self.listed(name)

    def now(self) -> Folder:
        """This folder in the state now in force: itself, or another node with the same inode number."""
        return self

    def in_force(self, ask: Callable[[Folder], T]) -> T:
        """The answer of `ask` about this folder, or about its node in the state that came into force meanwhile.

        For who takes the answer for what is so now. What was added through a mount is laid over its states until one
        has it, and then goes: who still asks the one before would find it in neither.
        """
        try:
            found, missing = [ask(self)], None
        except NotFound as error:
            found, missing = [], error
        now = self.now()
        if now is not self:
            return now.in_force(ask)
        if missing is not None:
            raise missing
        return found[0]


@mypyc_attr(allow_interpreted_subclasses=True)
class File(Node):
    """A node with bytes in it."""

    kind: ClassVar[NodeKind] = NodeKind.FILE

    @abstractmethod
    def open(self) -> Content:
        """Its bytes: of this version to the end, whatever is published meanwhile."""


def number(*parts: str) -> int:
    """An inode number from what the thing is: 63 bits, so that a collision in a billion files is unlikely."""
    hasher = _HASHER.copy()
    hasher.update("\0".join(parts).encode("utf-8", "surrogateescape"))
    found: int = _NUMBER.unpack(hasher.digest())[0]
    # Without the sign bit, which some tools mishandle; never 0 (no inode) or 1 (the root).
    return (found >> 1) + 2


@lru_cache(4096)
def seconds(time: datetime) -> int:
    """A time as stat(2) has it."""
    return int(time.timestamp())
