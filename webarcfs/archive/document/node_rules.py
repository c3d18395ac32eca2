"""Rules for data nodes that users add (/Xm-3.1/, /Xm-5/), for node_parser.py. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from webarcfs.archive.document.node_parser import NodeRules, read
from webarcfs.archive.model.errors import Damaged, Exists, InvalidDocument, NotPermitted

#: Data nodes of one document.
MOST = 50_000


class UniqueNames(NodeRules):
    """Each node's name must be a new one (/Xm-3.1/)."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def begins(self, name: str) -> None:
        """Refuse a taken name."""
        if name in self._taken:
            raise Exists(f"there is a data node {name} already")
        self._taken.add(name)
        if len(self._taken) > MOST:
            raise InvalidDocument(f"data.xml would have more than {MOST} data nodes")


class OldNodesUnchanged(UniqueNames):
    """The metadata and the old nodes must exist, in order and unchanged (/Xm-5/); other nodes must be new."""

    digests = True

    def __init__(self, old: bytes) -> None:
        super().__init__(())
        record = _Record()
        read_old(old, record)
        self._meta, self._old = record.fields, record.nodes
        self._next = 0
        self.names = {name for name, _ in record.nodes}

    def meta(self, fields: Mapping[str, str]) -> None:
        """Refuse changed metadata (/Xm-5.2/)."""
        if dict(fields) != self._meta:
            raise NotPermitted("the metadata in data.xml cannot be changed")

    def begins(self, name: str) -> None:
        """Refuse an old node out of order."""
        super().begins(name)
        if name in self.names and self._old[self._next][0] != name:
            raise _gone(self._old[self._next][0])

    def ends(self, name: str, digest: bytes) -> None:
        """Refuse a changed old node (/Xm-5.1/)."""
        if name in self.names:
            if self._old[self._next][1] != digest:
                raise NotPermitted(f"data node {name} cannot be changed")
            self._next += 1

    def finish(self) -> None:
        """Refuse a missing old node."""
        if self._next < len(self._old):
            raise _gone(self._old[self._next][0])


class _Record(NodeRules):
    """Records metadata and nodes."""

    digests = True

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.nodes: list[tuple[str, bytes]] = []

    def meta(self, fields: Mapping[str, str]) -> None:
        """Record the metadata."""
        self.fields = dict(fields)

    def ends(self, name: str, digest: bytes) -> None:
        """Record a node."""
        self.nodes.append((name, digest))


def read_old(document: bytes, rules: NodeRules) -> None:
    """Check a data.xml of the archive against rules. Raises Damaged for an invalid one: not the writer's fault."""
    try:
        read(document, rules, whole=True)
    except InvalidDocument as error:
        raise Damaged(f"the data.xml in the archive cannot be read: {error}") from None


def _gone(name: str) -> NotPermitted:
    return NotPermitted(f"data node {name} is missing or not where it was")
