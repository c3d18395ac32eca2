"""`.schemas/`: the archive's folder of schemas for data nodes, `ARCHIVE/xsd` (/Xm-3.3/).

Not in git: a schema is a plain file that any user may put there, through a mount or not. So the view's thread checks
for changes (`Watch`), and notifies the kernel as for publications. Safe for any thread.
"""

# ruff: noqa: D102 # view/node.py specifies the methods
from __future__ import annotations

import os
import stat
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document.schemas import NAME, Stamp
from webarcfs.archive.model.errors import NotFound
from webarcfs.view.content import Content
from webarcfs.view.node import Attrs, File, Folder, Node, number

#: Its name in the mount's root.
SCHEMAS = ".schemas"


@dataclass(frozen=True)
class SchemaFolder(Folder):
    """The folder. It shows no files other than schemas, and no folders."""

    archive: Archive
    #: New schemas that are being written through this mount, by name.
    drafts: MutableMapping[str, Node] = field(default_factory=dict, compare=False)
    attrs_cacheable: ClassVar[bool] = False

    @property
    def path(self) -> Path:
        """The folder in the archive."""
        return self.archive.schemas

    @property
    def ino(self) -> int:
        return number("schemas")

    def attrs(self) -> Attrs:
        try:
            time = int(self.path.stat().st_mtime)
        except OSError:
            time = 0
        return Attrs(self.kind, 0, time, self.ino)

    def names(self) -> Iterator[str]:
        found = stamps(self.path)
        if not found and not self.archive.is_there:
            raise self.archive.missing("schemas")
        return iter(sorted(found.keys() | self.drafts.keys()))

    def lookup(self, name: str) -> Node:
        draft = self.drafts.get(name)
        if draft is not None:
            return draft
        found = _stamp(self.path / name) if NAME.fullmatch(name) else None
        if found is None:
            raise self.archive.missing(f"there is no schema {name!r}")
        return SchemaFile(self.path / name, found)


@dataclass(frozen=True)
class SchemaFile(File):
    """One schema, as it was at its lookup."""

    path: Path
    stamp: Stamp

    @property
    def ino(self) -> int:
        return number("schema", self.path.name, *map(str, self.stamp))

    def attrs(self) -> Attrs:
        time, size, _ = self.stamp
        return Attrs(self.kind, size, time // 10**9, self.ino)

    def open(self) -> Content:
        try:
            return _Opened(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        except FileNotFoundError:
            raise NotFound(f"the schema {self.path.name!r} is gone") from None


class _Opened:
    """An open schema."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @property
    def dear(self) -> bool:
        return False

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._fd, size, offset)

    def close(self) -> None:
        os.close(self._fd)


class Watch:
    """Detects changes in the folder. For one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, Stamp] | None = None

    def changed(self) -> list[str]:
        """Return the names that changed since the last call; none at the first."""
        old, self._seen = self._seen, stamps(self._folder)
        return sorted({name for name, _ in old.items() ^ self._seen.items()}) if old is not None else []


def stamps(folder: Path) -> dict[str, Stamp]:
    """Return the schemas of the folder; none if the folder is missing."""
    try:
        names = [path.name for path in folder.iterdir() if NAME.fullmatch(path.name)]
    except OSError:
        return {}
    return {name: found for name in names if (found := _stamp(folder / name)) is not None}


def _stamp(path: Path) -> Stamp | None:
    """Return the stamp of a regular file; None for a link, which might lead to files outside."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if stat.S_ISREG(found.st_mode) else None
