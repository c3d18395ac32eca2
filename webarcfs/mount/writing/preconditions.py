"""Conditions of an addition: its ARC is still the version that it was begun in, and its name is free (/Ar-10/).

Checked per ARC: a crawl that left an ARC alone does not affect its writers. Safe for any thread.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from webarcfs.archive.git.objects import Entry
from webarcfs.archive.git.repository import Commit
from webarcfs.archive.model.addition import ArcVersion
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Exists, Replaced
from webarcfs.view.state.domain_reader import DomainReader
from webarcfs.view.tree.view import View


def check_known(view: View, place: ArcVersion) -> None:
    """Raise Stale if this mount already knows that the ARC was replaced."""
    state = view.domain(place.domain)
    _arc(state.reader, state.main, place)


@dataclass(frozen=True, slots=True)
class LockedHead:
    """A domain's main on disk, which does not change while the domain's lock is held."""

    reader: DomainReader
    main: Commit | None

    @classmethod
    def now(cls, reader: DomainReader) -> LockedHead:
        """Return the current main. Under the domain's lock.

        The caller asks the view for the reader before it takes that lock: the view may have to take the domain over,
        under the same lock, and a publisher that waits by then lets nobody share it a second time.
        """
        return cls(reader, reader.origin.head())

    def check_free(self, place: ArcVersion, path: str, own: Container[str] = ()) -> None:
        """Raise Stale or Exists if `path` is taken; a blob in `own` is no obstacle.

        A renamed addition keeps its old name in git until the rename is committed, before any successor at that name.
        """
        reader, at = self.reader, _arc(self.reader, self.main, place)
        parts = path.split("/")
        for depth, name in enumerate(parts, 1):
            last = depth == len(parts)
            found = reader.entries(at.oid).get(name)
            if found is None or (last and not found.is_tree and self._is_given_up(found, place, path, own)):
                return
            if last or not found.is_tree:
                break
            if reader.is_arc(found.oid) or reader.leads_to_arcs(found.oid):
                raise Replaced(f"{name!r} in {place.arc} of {place.domain} is, or leads to, an ARC of its own by now")
            at = found
        raise Exists(f"{path!r} is there")

    def document(self, place: ArcVersion) -> bytes:
        """Return the ARC's data.xml. Raises Stale."""
        arc = _arc(self.reader, self.main, place)
        return self.reader.document(self.reader.entries(arc.oid)[DATA_XML].oid)

    def _is_given_up(self, found: Entry, place: ArcVersion, path: str, own: Container[str]) -> bool:
        return found.oid in own or self.reader.overlay.is_leaving(place, path)


def _arc(reader: DomainReader, main: Commit | None, place: ArcVersion) -> Entry:
    """Return the folder of the ARC in a state. Raises Stale if it is another version."""
    arc = reader.arc(main.tree, place) if main is not None else None
    if arc is None:
        raise Replaced(f"{place.arc} of {place.domain} was replaced or removed by a crawl")
    return arc
