"""Whether an addition may still be made: is its ARC the version that it was begun in, is its name free (/Ar-10/)?

Judged per ARC: a crawl that left it alone changes nothing for who writes to it. Any thread may ask.
"""

from __future__ import annotations

from collections.abc import Container

from webarcfs.archive.additions import Place
from webarcfs.archive.errors import Exists, Stale
from webarcfs.archive.layout import DATA_XML
from webarcfs.archive.objects import Entry
from webarcfs.archive.store import Commit
from webarcfs.mount.reader import Reader
from webarcfs.mount.view import View


def check_known(view: View, place: Place) -> None:
    """Raise Stale when this mount knows already that the ARC was replaced."""
    state = view.domain(place.domain)
    _arc(state.reader, state.main, place)


def check_free(view: View, place: Place, path: str, own: Container[str] = ()) -> None:
    """Raise Stale or Exists, by main as it is on disk; a blob of `own` may be there. Under the domain's lock.

    What this mount has given another name is there until that is committed, before what takes its old name.
    """
    reader, at = _on_disk(view, place)
    parts = path.split("/")
    for depth, name in enumerate(parts, 1):
        last = depth == len(parts)
        found = reader.entries(at.oid).get(name)
        if found is None or (last and not found.is_tree and (found.oid in own or view.overlay.is_leaving(place, path))):
            return
        if last or not found.is_tree:
            break
        if reader.is_arc(found.oid) or reader.leads_to_arcs(found.oid):
            raise Stale(f"{name!r} in {place.arc} of {place.domain} is, or leads to, an ARC of its own by now")
        at = found
    raise Exists(f"{path!r} is there")


def document(view: View, place: Place) -> bytes:
    """The ARC's data.xml in main as it is on disk. Raises Stale. Under the domain's lock."""
    reader, arc = _on_disk(view, place)
    return reader.document(reader.entries(arc.oid)[DATA_XML].oid)


def _on_disk(view: View, place: Place) -> tuple[Reader, Entry]:
    reader = view.domain(place.domain).reader
    return reader, _arc(reader, reader.store.head(), place)


def _arc(reader: Reader, main: Commit | None, place: Place) -> Entry:
    """The folder of the ARC in a state, if it is that version."""
    arc = reader.arc(main.tree, place) if main is not None else None
    if arc is None:
        raise Stale(f"{place.arc} of {place.domain} was replaced or removed by a crawl")
    return arc
