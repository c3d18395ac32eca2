"""Additions of this mount that its states do not have yet: pending ones, files being written, new folders.

Nodes show git's tree with this laid over it. An entry belongs to one version of an ARC (`ArcVersion`) and names its
content by git's id, so a file is the same version whether it is read from here or from git, and the kernel's caches
stay right when it is committed. An entry is removed when a state with it is in force. Memory only, safe for any thread;
its lock is held for moments and never across a call to another module (the owners' lock is taken under it).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from webarcfs.archive.git.objects import Entry
from webarcfs.archive.model.addition import ArcVersion
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.system.cache import Cache
from webarcfs.view.node import Node
from webarcfs.view.state.ownership import Owners, Ownership

#: Superseded blobs that are remembered, and bytes of data.xml among them that only this mount ever has: long enough
#: for a reader that has just looked one up.
MOST_SUPERSEDED = 10_000
SUPERSEDED_BYTES = 16 << 20

#: A name in the overlay: an entry that git will have (without an id, if the file was removed), or a node without a
#: version yet.
OverlayEntry = Entry | Node
#: An addition that git has: the ARC, the path in it, its entry.
CommittedFile = tuple[ArcVersion, str, Entry]
#: The journal's key of an addition: the log and the number in it.
Number = tuple[str, int]
_NOTHING: Mapping[str, OverlayEntry] = {}


@dataclass(slots=True)
class PendingFile:
    """A confirmed addition with its journal `number`. When `committed`, it is in git.

    A data.xml with new nodes has its `body` only here, with the `nodes` that were added. Without a `blob` it is a
    removed name.
    """

    blob: str
    size: int
    number: Number
    body: bytes | None = None
    nodes: tuple[bytes, ...] = ()
    committed: bool = False


def is_gone(item: OverlayEntry | None) -> bool:
    """Return whether an item means that the name was removed."""
    return isinstance(item, Entry) and not item.oid and not item.is_tree


class PendingBodies(Protocol):
    """The source of bodies of pending additions: the journal."""

    def read_blob(self, blob: str) -> bytes | int | None:
        """Return its bytes, or, for a large one, a descriptor that the caller closes; None once it is in git."""


class Overlay:
    """The overlay of one mount. Paths are relative to the ARC, which is the empty path itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._journal: PendingBodies | None = None
        self._read_only = False
        self._folders: dict[ArcVersion, dict[str, dict[str, OverlayEntry]]] = {}
        self._pending: dict[str, dict[tuple[ArcVersion, str], PendingFile]] = {}
        self._late: set[str] = set()
        self._leaving: dict[tuple[ArcVersion, str], Number] = {}
        self._blobs: Counter[str] = Counter()
        self._sizes: dict[str, int] = {}
        self._bodies: dict[str, bytes] = {}
        self._superseded: dict[str, int] = {}
        self._past: Cache[str, bytes] = Cache(SUPERSEDED_BYTES, len)
        #: The owners of its entries.
        self.makers = Owners()

    @property
    def is_used(self) -> bool:
        """Whether there may be entries."""
        return self._journal is not None

    @property
    def takes_additions(self) -> bool:
        """Whether the mount accepts additions."""
        return self._journal is not None and not self._read_only

    def begin(self, journal: PendingBodies, settle: float = 0.0, *, read_only: bool = False) -> None:
        """Accept additions from now on, unless `read_only`; `journal` has the bodies of pending ones.

        Closed files are provisional for `settle` seconds.
        """
        self._journal, self._read_only = journal, read_only
        self.makers.settle = settle

    # -- queries of nodes --------------------------------------------------------------------------------------------

    def get(self, place: ArcVersion | None, folder: str, name: str) -> OverlayEntry | None:
        """Return the overlay's entry of a name in a folder of an ARC, or None."""
        folders = self._folders.get(place) if self._folders and place is not None else None
        found = folders.get(folder) if folders is not None else None
        return found.get(name) if found is not None else None

    def listing(self, place: ArcVersion | None, folder: str) -> Mapping[str, OverlayEntry]:
        """Return all overlay entries of a folder."""
        folders = self._folders.get(place) if self._folders and place is not None else None
        found = folders.get(folder) if folders is not None else None
        return dict(found) if found else _NOTHING

    def size(self, blob: str) -> int | None:
        """Return the size of a pending or superseded blob, or None."""
        size = self._sizes.get(blob)
        return size if size is not None else self._superseded.get(blob)

    def read_blob(self, blob: str) -> bytes | int | None:
        """Return the bytes of a pending blob, or a descriptor that the caller closes; None if it is not pending."""
        if self._journal is None or self.size(blob) is None:
            return None
        body = self._bodies.get(blob)
        if body is None:
            body = self._past.held(blob)
        return body if body is not None else self._journal.read_blob(blob)

    def is_superseded(self, blob: str) -> bool:
        """Return whether a newer version of its file replaced a blob: git may never have it."""
        return blob in self._superseded

    # -- events of writing -------------------------------------------------------------------------------------------

    def reserve(self, place: ArcVersion, path: str, item: OverlayEntry, made: Ownership) -> bool:
        """Add a new name; return False if the overlay already has it."""
        folder, name = _split(path)
        with self._lock:
            items = self._folders.setdefault(place, {}).setdefault(folder, {})
            if name in items and not is_gone(items[name]):
                return False
            items[name] = item
            (self.makers.folder if isinstance(item, Entry) else self.makers.file)(place, path, made)
        return True

    def confirmed(self, place: ArcVersion, path: str, pending: PendingFile, shown: Node | None = None) -> None:
        """Note a file in the journal: its name means this version, or `shown`, which is still being written."""
        folder, name = _split(path)
        with self._lock:
            known = self._pending.setdefault(place.domain, {})
            before = known.pop((place, path), None)
            if before is not None:
                self._supersede(before)
                self._let_go(before)
            known[place, path] = pending
            self._blobs[pending.blob] += 1
            self._sizes[pending.blob] = pending.size
            if pending.body is not None:
                self._bodies[pending.blob] = pending.body
            item = Entry(name, pending.blob, False) if shown is None else shown
            self._folders.setdefault(place, {}).setdefault(folder, {})[name] = item

    def shown(self, place: ArcVersion, path: str, node: Node) -> None:
        """Note that a file is written to again: its name means `node`, whatever was confirmed of it."""
        folder, name = _split(path)
        with self._lock:
            self._folders.setdefault(place, {}).setdefault(folder, {})[name] = node

    def closed(self, place: ArcVersion, path: str, node: Node) -> None:
        """Note that a file is no longer written: if its name means `node`, it now means the version confirmed last."""
        folder, name = _split(path)
        with self._lock:
            if self._item(place, path) != node:
                return
            pending = self._pending.get(place.domain, {}).get((place, path))
            if pending is None:  # a state with it is in force
                self._remove(place, path)
            else:
                self._folders[place][folder][name] = Entry(name, pending.blob, False)

    def nodes(self, place: ArcVersion) -> tuple[bytes, ...]:
        """Return the data nodes added to an ARC that no state shows yet."""
        with self._lock:
            pending = self._pending.get(place.domain, {}).get((place, DATA_XML))
            return pending.nodes if pending else ()

    def removed(self, place: ArcVersion, path: str) -> None:
        """Remove a file that was being written."""
        folder, name = _split(path)
        with self._lock:
            self._remove(place, path)
            before = self._pending.get(place.domain, {}).get((place, path))
            if before is not None and not before.blob:  # git still has the file that was renamed before
                self._folders.setdefault(place, {}).setdefault(folder, {})[name] = Entry(name, "", False)
            self.makers.removed(place, path)

    def settled(self, place: ArcVersion, path: str, number: Number) -> None:
        """Note that a provisional file has settled: it is to be committed, and has this number."""
        with self._lock:
            pending = self._pending.get(place.domain, {}).get((place, path))
            if pending is not None:
                pending.number = number
            self.makers.removed(place, path)

    def withdrawn(self, place: ArcVersion, path: str) -> None:
        """Remove a provisional file, which no state has."""
        with self._lock:
            self._take_out(place, path)
            self._remove(place, path)
            self.makers.removed(place, path)

    def replaced(self, place: ArcVersion, old: str, new: str) -> None:
        """Rename a provisional file to a name that is free, or another provisional file's."""
        (folder, name), (new_folder, new_name) = _split(old), _split(new)
        with self._lock:
            self._take_out(place, new)
            item = self._folders.get(place, {}).get(folder, {}).get(name)
            self._remove(place, old)
            pending = self._pending.get(place.domain, {}).pop((place, old), None)
            if pending is not None:
                self._pending[place.domain][place, new] = pending
            if isinstance(item, Entry):
                item = Entry(new_name, item.oid, False)
            if item is not None:
                self._folders.setdefault(place, {}).setdefault(new_folder, {})[new_name] = item
            self.makers.renamed(place, old, new)

    def remove_folder(self, place: ArcVersion, path: str) -> bool:
        """Remove a folder that only this mount has; return False if it is none, or not empty."""
        with self._lock:
            item = self._item(place, path)
            inside = self._folders.get(place, {}).get(path, {})
            if not isinstance(item, Entry) or not item.is_tree or any(not is_gone(each) for each in inside.values()):
                return False
            self._remove(place, path)
            self.makers.folder_removed(place, path)
            return True

    def renamed(self, place: ArcVersion, old: str, new: str) -> None:
        """Rename a file that is being written, and was never confirmed."""
        (folder, name), (new_folder, new_name) = _split(old), _split(new)
        with self._lock:
            item = self._folders.get(place, {}).get(folder, {}).pop(name, None)
            if item is not None:
                self._folders.setdefault(place, {}).setdefault(new_folder, {})[new_name] = item
            self.makers.renamed(place, old, new)

    def moved(self, place: ArcVersion, old: str, new: str, pending: PendingFile, shown: Node | None = None) -> None:
        """Rename a confirmed file; its old name is removed, whatever states contain."""
        self.confirmed(place, new, pending, shown)
        self.gone(place, old, pending.number)
        self.makers.renamed(place, old, new)

    def gone(self, place: ArcVersion, path: str, number: Number) -> None:
        """Remove a confirmed file; keep the folders above it, though git stores no empty ones."""
        self.confirmed(place, path, PendingFile("", 0, number))
        with self._lock:
            self._leaving[place, path] = number
            self._keep_folders(place, path)

    def with_folders(self, place: ArcVersion, path: str) -> None:
        """Note the folders above a file that another mount confirmed: git may not have them yet."""
        with self._lock:
            self._keep_folders(place, path)

    def is_leaving(self, place: ArcVersion, path: str) -> bool:
        """Return whether git may still have a file under a name that this mount removed."""
        return (place, path) in self._leaving

    # -- events of commits and states --------------------------------------------------------------------------------

    def committed(self, domain: str, numbers: Container[Number]) -> None:
        """Note that git has the additions with these journal numbers; the states do not show them yet."""
        with self._lock:
            for each in self._pending.get(domain, {}).values():
                each.committed = each.committed or each.number in numbers
            for key in [key for key, number in self._leaving.items() if key[0].domain == domain and number in numbers]:
                del self._leaving[key]
            self._note_committed(domain)

    def renumbered(self, domain: str, numbers: Mapping[Number, Number]) -> None:
        """Note that the journal has additions under new numbers: they were written again."""
        with self._lock:
            for each in self._pending.get(domain, {}).values():
                each.number = numbers.get(each.number, each.number)
            for key, number in self._leaving.items():
                self._leaving[key] = numbers.get(number, number)

    def late(self) -> set[str]:
        """Return the domains with additions that git has, but that are still shown from here."""
        with self._lock:
            return set(self._late)

    def committed_files(self, domain: str) -> list[CommittedFile]:
        """Return the additions that git has: a state that is read after this call may replace them."""
        with self._lock:
            found = [(key, each.blob) for key, each in self._pending.get(domain, {}).items() if each.committed]
        return [(place, path, Entry(_split(path)[1], blob, False)) for (place, path), blob in found]

    def drop(self, files: Sequence[CommittedFile]) -> None:
        """Remove these files: a state with them is in force."""
        with self._lock:
            for place, path, entry in files:
                each = self._pending.get(place.domain, {}).get((place, path))
                if each is not None and each.blob == entry.oid and each.committed:
                    self._let_go(self._pending[place.domain].pop((place, path)))
                    if self._item(place, path) == entry:
                        self._remove(place, path)
                    if not is_gone(entry):
                        self._drop_folders(place, path)
            for domain in {place.domain for place, _, _ in files}:
                self._note_committed(domain)

    def forget_empty(self, domain: str, is_current: Callable[[ArcVersion], bool]) -> None:
        """Forget empty folders of users in ARCs that are no longer current: git stores none."""
        with self._lock:
            bare = dict(self._bare(domain))
        for place in [place for place in bare if not is_current(place)]:
            with self._lock:
                for path in bare[place]:
                    item = self._item(place, path)
                    if isinstance(item, Entry) and item.is_tree:
                        self._remove(place, path)

    def _bare(self, domain: str) -> Iterator[tuple[ArcVersion, list[str]]]:
        """Yield the ARCs that have only folders here, with the paths of those."""
        for place, folders in self._folders.items():
            if place.domain == domain:
                items = [(folder, name, item) for folder, names in folders.items() for name, item in names.items()]
                if all(isinstance(item, Entry) and item.is_tree for _, _, item in items):
                    yield place, [f"{folder}/{name}" if folder else name for folder, name, _ in items]

    def _note_committed(self, domain: str) -> None:
        some = any(each.committed for each in self._pending.get(domain, {}).values())
        (self._late.add if some else self._late.discard)(domain)

    # ----------------------------------------------------------------------------------------------------------------

    def _keep_folders(self, place: ArcVersion, path: str) -> None:
        while path := path.rpartition("/")[0]:
            folder, name = _split(path)
            self._folders.setdefault(place, {}).setdefault(folder, {}).setdefault(name, Entry(name, "", True))

    def _drop_folders(self, place: ArcVersion, path: str) -> None:
        """Remove the folders above a file that git has."""
        while path := path.rpartition("/")[0]:
            item = self._item(place, path)
            if isinstance(item, Entry) and item.is_tree:
                self._remove(place, path)

    def _item(self, place: ArcVersion, path: str) -> OverlayEntry | None:
        folder, name = _split(path)
        return self._folders.get(place, {}).get(folder, {}).get(name)

    def _remove(self, place: ArcVersion, path: str) -> None:
        folder, name = _split(path)
        folders = self._folders.get(place, {})
        folders.get(folder, {}).pop(name, None)
        if not folders.get(folder):
            folders.pop(folder, None)
        if not folders:
            self._folders.pop(place, None)

    def _take_out(self, place: ArcVersion, path: str) -> None:
        """Forget what was confirmed of a name. Who has looked it up looks again."""
        pending = self._pending.get(place.domain, {}).pop((place, path), None)
        if pending is not None:
            self._supersede(pending)
            self._let_go(pending)

    def _supersede(self, pending: PendingFile) -> None:
        """Remember a blob before it is removed: readers hold no lock, and must find it either way."""
        self._superseded[pending.blob] = pending.size
        if len(self._superseded) > MOST_SUPERSEDED:
            del self._superseded[next(iter(self._superseded))]
        if pending.body is not None:
            body = pending.body
            self._past.get(pending.blob, lambda: body)

    def _let_go(self, pending: PendingFile) -> None:
        blob = pending.blob
        self._blobs[blob] -= 1
        if self._blobs[blob] <= 0:
            del self._blobs[blob]
            self._sizes.pop(blob, None)
            self._bodies.pop(blob, None)


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name
