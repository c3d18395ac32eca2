"""The files of a domain's tree: each is one version of a file, in one state of the domain.

Knows no FUSE, no absolute path and no handle. A file names its version (domain, path, blob, mtime), so that any adapter
can address it. Immutable, safe for any thread.
"""

# ruff: noqa: D102 # view/node.py specifies the methods
from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.addition import ArcVersion
from webarcfs.archive.model.errors import ReadOnly, WebarcError
from webarcfs.archive.model.metadata import CommitTag, MetaData, format_time, from_epoch
from webarcfs.view.content import Content
from webarcfs.view.node import Attrs, File, number, remember
from webarcfs.view.state.domain_reader import DomainReader

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


class Version(NamedTuple):
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
    version: Version
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
        made = self.state.reader.overlay.makers.of(self.place, self.inner)
        if made is None:
            return Attrs(self.kind, self._size, self.version.mtime, self.ino, 1, None, self.is_document)
        # The kernel checks the mode before it asks whether the maker may open it again.
        writable = made.is_writable or self.is_document
        return Attrs(self.kind, self._size, self.version.mtime, self.ino, 1, made.uid, writable)

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
