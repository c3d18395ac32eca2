"""The symbolic links of the history folders."""

# ruff: noqa: D102 # view/node.py specifies the methods
from __future__ import annotations

import os
from dataclasses import dataclass

from webarcfs.view.node import Attrs, Node, NodeKind, number


@dataclass(frozen=True)
class Symlink(Node):
    """A link. `key` determines its inode number."""

    key: str
    target: str
    mtime: int
    kind = NodeKind.LINK

    @property
    def old(self) -> bool:
        return True

    @property
    def ino(self) -> int:
        return number("link", self.key)

    def attrs(self) -> Attrs:
        return Attrs(self.kind, len(os.fsencode(self.target)), self.mtime, self.ino)
