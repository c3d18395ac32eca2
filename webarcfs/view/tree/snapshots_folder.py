"""`.snapshots/`: the tree of a crawl by its commitTag, a domain's tags as links to those, and what a record has."""

# ruff: noqa: D102 # view/node.py specifies the methods
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import OWN, Part
from webarcfs.archive.model.errors import NotFound
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.view.node import Attrs, Folder, Node, number, seconds
from webarcfs.view.state.domain_states import DomainState
from webarcfs.view.tree.files import ShownState
from webarcfs.view.tree.folders import StoredFolder
from webarcfs.view.tree.symlink import Symlink
from webarcfs.view.tree.view import View


def snapshot_folder(view: View, domain: DomainState, tag: str) -> StoredFolder:
    """Return `.snapshots/<commitTag>/` in a state of the domain. Raises NotFound for an unknown tag."""
    state = _snapshot_state(view, domain, tag)
    return SnapshotFolder(state, "", state.tree)


def _snapshot_state(view: View, domain: DomainState, tag: str) -> ShownState:
    if tag not in domain.tags:
        raise NotFound(f"there is no snapshot {tag}")
    commit, name, mark = domain.reader.commit(domain.tags[tag]), domain.name, domain.mark

    def now() -> ShownState:
        found = view.domain(name)
        return state if found.mark is mark else _snapshot_state(view, found, tag)

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
    parts: Mapping[str, Part]

    @property
    def old(self) -> bool:
        return True

    @property
    def ino(self) -> int:
        return number("record", self.record)

    def attrs(self) -> Attrs:
        return Attrs(
            self.kind, 0, min((seconds(each.tag.crawl_time) for each in self.parts.values()), default=0), self.ino
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
