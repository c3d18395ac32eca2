"""The interface of every node of the mount, and the caller of a request; folders.py and root.py implement the kinds.

Nodes are made on demand and discarded; they are immutable and safe for any thread. A node belongs to one state of one
domain for ever: a later publication makes other nodes. Folders have `children` and `lookup`, files `open`, links
`target`; all have `attrs` and `xattrs`. Knows no FUSE, no absolute path and no handle.

The maker of an addition is the user behind a request, or a person whom a server knows; `author` is how commits name
either.
"""

from __future__ import annotations

import pwd
import socket
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import ClassVar, Final, TypeVar

from mypy_extensions import mypyc_attr

from webarcfs.archive.model.additions import Author
from webarcfs.archive.model.errors import NotFound, NotPermitted, ReadOnly, WebarcError
from webarcfs.vfs.content import Content

# == caller ===========================================================================================================


#: Whoever makes an addition: a user of this machine, by the uid, or a person whom a server knows, as their commits
#: name them.
Maker = int | Author


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of the process that sent a request, and the person for whom a server sends it, if it is one."""

    uid: int
    gid: int
    person: Author | None = None

    @property
    def maker(self) -> Maker:
        """Whoever makes what the request makes."""
        return self.uid if self.person is None else self.person


def author(maker: Maker) -> Author:
    """Return whom a commit names as the author of what somebody makes."""
    return maker if isinstance(maker, Author) else _author_of_user(maker)


def uid_of(maker: Maker) -> int | None:
    """Return the uid of a user of this machine; None for a person, who has none."""
    return maker if isinstance(maker, int) else None


def author_named(name: str, login: str) -> Author:
    """Return `name <login@host>` for a person, without what is invalid in a commit's author line."""
    return Author(_clean(name) or _clean(login), f"{_clean(login)}@{_clean(socket.gethostname()) or 'localhost'}")


@lru_cache(maxsize=1000)
def _author_of_user(uid: int) -> Author:
    """Return `name <login@host>`, with the full name if there is one. A number without a user is `uid<n>`."""
    try:
        user = pwd.getpwuid(uid)
        login, name = user.pw_name, user.pw_gecos.partition(",")[0]
    except KeyError:
        login, name = f"uid{uid}", ""
    return author_named(name, login)


def _clean(text: str) -> str:
    """Return `text` without the characters that are invalid in a commit's author line."""
    return "".join(char for char in text if char.isprintable() and char not in "<>").strip()


# == node =============================================================================================================


T = TypeVar("T")

_NUMBER: Final = Struct(">Q")
#: Copying it takes a third of the time of making a new one.
_HASHER: Final = blake2b(digest_size=8)


def remember(node: object, name: str, value: T) -> T:
    """Set a field of a frozen dataclass that a property computes on first access; return `value`.

    functools.cached_property locks and gives each instance a dictionary, which costs more than the values here.
    """
    object.__setattr__(node, name, value)
    return value


class NodeKind(Enum):
    """The type of a node in stat(2); the value is the permission bits that all nodes of the kind have."""

    FILE = 0o444
    FOLDER = 0o755
    LINK = 0o777

    __hash__ = object.__hash__  # Enum's is a Python function, and each entry of a listing looks up its kind


#: The kinds as constants: access to an Enum's member calls a Python function, and a listing needs thousands.
FILE: Final = NodeKind.FILE
FOLDER: Final = NodeKind.FOLDER


class Attrs:
    """The attributes of a node in stat(2). `mtime` is in seconds since 1970.

    nlink is 1 for folders too, which means "not counted", as on btrfs. All nodes have the same owner, except recent
    additions: those belong to their maker (`owner`, a uid), so that the kernel lets the maker set times and mode.
    A file that accepts writes is `writable`. Immutable; no dataclass, since a listing makes thousands.
    """

    __slots__ = ("ino", "kind", "mtime", "nlink", "owner", "size", "writable")

    def __init__(  # noqa: PLR0917 # the fields of stat(2)
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
        """Return the permission bits, with `folder_mode` for folders: if a group may write folders, then also files."""
        if self.kind is NodeKind.FOLDER:
            return folder_mode
        return int(self.kind.value) | (0o200 | folder_mode & 0o020 if self.writable else 0)


# Some subclasses are compiled and some are not (compiled/loader.py).
@mypyc_attr(allow_interpreted_subclasses=True)
class Node:
    """Anything with a name in the mount.

    Not of ABCMeta, which makes isinstance many times slower; mypy checks the abstract methods without it.
    """

    kind: ClassVar[NodeKind]
    #: Whether its attributes stay the same until the mount learns of a publication; those of a node with an owner of
    #: its own may change at any time.
    attrs_cacheable: ClassVar[bool] = True

    @property
    def old(self) -> bool:
        """Whether it belongs to history and not to the current state."""
        return False

    @property
    def is_open(self) -> bool:
        """Whether handles of it are open that ask for its attributes, and not for those of its name."""
        return False

    @property
    @abstractmethod
    def ino(self) -> int:
        """The inode number of this version, the same in every mount, at any time."""

    @abstractmethod
    def attrs(self) -> Attrs:
        """Return its attributes."""

    def xattrs(self) -> Mapping[str, bytes]:
        """Return its extended attributes."""
        return {}

    def refusal(self) -> WebarcError:
        """Return the error for attempts to change it or to create a name in it (/Ar-1/)."""
        if self.old:
            return ReadOnly("older states take no changes")
        return NotPermitted("archived files are never changed; new files are made in the folder of a page")


@mypyc_attr(allow_interpreted_subclasses=True)
class Folder(Node):
    """A node that contains names."""

    kind: ClassVar[NodeKind] = NodeKind.FOLDER
    #: Whether its names mean the same until the mount learns of a publication.
    names_cacheable: ClassVar[bool] = True

    def is_slow(self, name: str = "") -> bool:  # noqa: ARG002 # most folders need no name to answer
        """Return whether finding `name` (or, without one, the names) takes so long that no other request may wait."""
        return False

    @abstractmethod
    def names(self) -> Iterator[str]:
        """Return the names that a listing shows."""

    @abstractmethod
    def lookup(self, name: str) -> Node:
        """Return the node of a name, listed or not. Raises NotFound."""

    def listed(self, name: str) -> Node:
        """Return the node of a listed name; also a node for one that cannot be read."""
        return self.lookup(name)

    def child_attrs(self, name: str) -> Attrs | None:  # noqa: ARG002
        """Return the attributes of a child file without making its node (a listing needs thousands).

        None if that is impossible, or `name` is no such file. `child_of` makes the node on demand.
        """
        return None

    def child_of(self, name: str) -> Node:
        """Return the node of a name whose attributes `child_attrs` returned: that version, whatever came since."""
        return self.lookup(name)

    def stamp(self, name: str) -> str | None:  # noqa: ARG002
        """Return what identifies the node of a name: an equal stamp means the same node. None if unknown."""
        return None

    def children(self) -> Iterator[tuple[str, Node]]:
        """Yield the listed names and nodes, without names that were renamed meanwhile."""
        for name in self.names():
            with suppress(NotFound):
                yield name, self.listed(name)

    def now(self) -> Folder:
        """Return this folder in the state now in force: `self`, or another node with the same inode number."""
        return self

    def in_force(self, ask: Callable[[Folder], T]) -> T:
        """Return `ask` of this folder, or of its node in the state that came into force meanwhile.

        Use this when the answer must be current. An addition leaves the overlay as soon as a state contains it; a
        lookup in the previous state could then miss it in both.
        """
        try:
            answers, missing = [ask(self)], None
        except NotFound as error:
            answers, missing = [], error
        now = self.now()
        if now is not self:
            return now.in_force(ask)
        if missing is not None:
            raise missing
        return answers[0]


@mypyc_attr(allow_interpreted_subclasses=True)
class File(Node):
    """A node that contains bytes."""

    kind: ClassVar[NodeKind] = NodeKind.FILE

    @abstractmethod
    def open(self) -> Content:
        """Return its content: always of this version, whatever is published meanwhile."""


def number(*parts: str) -> int:
    """Return an inode number from the parts of an identity: 63 bits make a collision in a billion files unlikely."""
    hasher = _HASHER.copy()
    hasher.update("\0".join(parts).encode("utf-8", "surrogateescape"))
    bits: int = _NUMBER.unpack(hasher.digest())[0]
    # Without the sign bit, which some tools mishandle; never 0 (no inode) or 1 (the root).
    return (bits >> 1) + 2


@lru_cache(4096)
def seconds(time: datetime) -> int:
    """Return a time in stat(2)'s whole seconds."""
    return int(time.timestamp())
