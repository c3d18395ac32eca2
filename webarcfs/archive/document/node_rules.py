"""What is asked of data nodes that users add (/Xm-3.1/, /Xm-5/): rules for node_parser.py, pure."""

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
        """Refuses a name that is taken."""
        if name in self._taken:
            raise Exists(f"there is a data node {name} already")
        self._taken.add(name)
        if len(self._taken) > MOST:
            raise InvalidDocument(f"data.xml would have more than {MOST} data nodes")


class OldNodesUnchanged(UniqueNames):
    """The metadata and the old nodes must be there, in order and unchanged (/Xm-5/); others must be new."""

    digests = True

    def __init__(self, old: bytes) -> None:
        super().__init__(())
        record = _Record()
        read_old(old, record)
        self._meta, self._old = record.fields, record.nodes
        self._next = 0
        self.names = {name for name, _ in record.nodes}

    def meta(self, fields: Mapping[str, str]) -> None:
        """The metadata are locked (/Xm-5.2/)."""
        if dict(fields) != self._meta:
            raise NotPermitted("the metadata in data.xml cannot be changed")

    def begins(self, name: str) -> None:
        """An old node must be the next one."""
        super().begins(name)
        if name in self.names and self._old[self._next][0] != name:
            raise _gone(self._old[self._next][0])

    def ends(self, name: str, digest: bytes) -> None:
        """An old node must be what it was (/Xm-5.1/)."""
        if name in self.names:
            if self._old[self._next][1] != digest:
                raise NotPermitted(f"data node {name} cannot be changed")
            self._next += 1

    def finish(self) -> None:
        """No old node may be missing at the end."""
        if self._next < len(self._old):
            raise _gone(self._old[self._next][0])


class _Record(NodeRules):
    """Keeps what it is told."""

    digests = True

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.nodes: list[tuple[str, bytes]] = []

    def meta(self, fields: Mapping[str, str]) -> None:
        """The metadata."""
        self.fields = dict(fields)

    def ends(self, name: str, digest: bytes) -> None:
        """A node."""
        self.nodes.append((name, digest))


def read_old(document: bytes, rules: NodeRules) -> None:
    """Hold a data.xml of the archive against rules. Raises Damaged if it is none: that is not the writer's fault."""
    try:
        read(document, rules, whole=True)
    except InvalidDocument as error:
        raise Damaged(f"the data.xml in the archive cannot be read: {error}") from None


def _gone(name: str) -> NotPermitted:
    return NotPermitted(f"data node {name} is missing or not where it was")
