"""Additions that the states of a mount do not have yet: pending ones, files being written, new folders; their owners.

Nodes show git's tree with this laid over it. An entry belongs to one version of an ARC (`ArcVersion`) and names its
content by git's id, so a file is the same version whether it is read from here or from git, and the kernel's caches
stay right when it is committed. An entry is removed when a state with it is in force. Memory only, safe for any thread;
its lock is held for moments and never across a call to another module (the owners' lock is taken under it).

The owner of an addition is its maker, who may still change it while it is open, and for a while after its last close.
With `settle` above 0 a closed file is provisional for so many seconds: its maker may write to it, rename and remove it
(SEMANTICS.md, S-settle). An empty one stays so until it has been written. With 0 a closed file is final, and its maker
may rename it for GRACE. Memory only, safe for any thread; the owners' lock is held for moments, and no other is taken
under it.

Confirmed additions of dead mounts that could not be committed, on a full disk or a read-only one, are shown, too. They
are read from the journal, which takes no room, and laid over the states as this mount's own are. Which of them can be
shown is decided as a commit decides it. When git has them, or their log is gone, the states show them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from webarcfs.archive.additions.journal_log import PROVISIONAL, SUFFIX, LogReader, LogRecord
from webarcfs.archive.additions.placement import AdditionTree
from webarcfs.archive.additions.waiting_additions import Waiting, read_progress, read_waiting, say_waiting
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository, TreeEntry
from webarcfs.archive.model.additions import AddFile, AddNodes, ArcVersion, Move
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.archive.system.cache import Cache
from webarcfs.archive.system.files import blob_id
from webarcfs.vfs.node import Maker, Node, uid_of

# == ownership ========================================================================================================


#: Seconds after its last close for which an addition belongs to its maker, where it is final at once.
GRACE = 60.0
#: Folders whose makers are remembered; beyond it, the oldest are forgotten.
MOST_FOLDERS = 100_000
#: Words for when a file settles, where no time is known.
OPEN, EMPTY = "open", "empty"


@dataclass(frozen=True, slots=True)
class Ownership:
    """The maker of an addition, and the end of ownership (monotonic seconds; None: it is not known yet)."""

    maker: Maker
    until: float | None = None
    #: Whether one of its handles may still write.
    is_open: bool = True
    #: Whether its maker may open it to write.
    is_writable: bool = True
    #: The end in seconds since 1970.
    settles_at: int = 0

    @property
    def uid(self) -> int | None:
        """The owner in stat(2), if the maker is a user of this machine."""
        return uid_of(self.maker)


class Owners:
    """The makers of additions through one mount. Paths are relative to the ARC."""

    def __init__(self) -> None:
        #: Seconds for which closed files are provisional.
        self.settle = 0.0
        self._lock = threading.Lock()
        self._files: dict[tuple[ArcVersion, str], Ownership] = {}
        self._folders: dict[tuple[ArcVersion, str], Ownership] = {}

    def of(self, place: ArcVersion | None, path: str) -> Ownership | None:
        """Return the maker of a file or folder, as long as it belongs to the maker; else None."""
        if place is None or not (self._files or self._folders):
            return None
        ownership = self._files.get((place, path)) or self._folders.get((place, path))
        return (
            None
            if ownership is None or (ownership.until is not None and ownership.until < time.monotonic())
            else ownership
        )

    def settles(self, place: ArcVersion | None, path: str) -> int | str | None:
        """Return when a provisional file settles, in seconds since 1970, or OPEN or EMPTY; None if it is final."""
        if not self.settle or place is None:
            return None
        ownership = self._files.get((place, path))
        if ownership is None or ownership.is_open:
            return None if ownership is None else OPEN
        return EMPTY if ownership.until is None else ownership.settles_at

    def file(self, place: ArcVersion, path: str, ownership: Ownership) -> None:
        """Note a new file."""
        with self._lock:
            self._files[place, path] = ownership

    def folder(self, place: ArcVersion, path: str, ownership: Ownership) -> None:
        """Note a new folder."""
        with self._lock:
            self._folders[place, path] = ownership
            if len(self._folders) > MOST_FOLDERS:
                del self._folders[next(iter(self._folders))]

    def folder_maker(self, place: ArcVersion, path: str) -> Maker | None:
        """Return who made a folder, or None."""
        ownership = self._folders.get((place, path))
        return ownership.maker if ownership is not None else None

    def folder_removed(self, place: ArcVersion, path: str) -> None:
        """Forget a folder that was removed."""
        with self._lock:
            self._folders.pop((place, path), None)

    def removed(self, place: ArcVersion, path: str) -> None:
        """Forget a file that was removed, or has settled."""
        with self._lock:
            self._files.pop((place, path), None)

    def renamed(self, place: ArcVersion, old: str, new: str) -> None:
        """Note a file's new name."""
        with self._lock:
            ownership = self._files.pop((place, old), None)
            if ownership is not None:
                self._files[place, new] = ownership

    def closed(self, place: ArcVersion, path: str, *, is_empty: bool = False) -> None:
        """Note the close of a file's last handle: it belongs to its maker for a while more."""
        with self._lock:
            ownership = self._files.get((place, path))
            if ownership is None:
                return
            seconds = self.settle or GRACE
            until = None if is_empty and self.settle else time.monotonic() + seconds
            at = round(time.time() + seconds)
            self._files[place, path] = Ownership(ownership.maker, until, False, bool(self.settle), at)

    def reopened(self, place: ArcVersion, path: str, maker: Maker) -> bool:
        """Note that the maker of a closed, provisional file opens it again, which keeps it from settling.

        Return False if it is not provisional, open already, or another one's.
        """
        return self.held(place, path, maker) is not None

    def held(self, place: ArcVersion, path: str, maker: Maker) -> Ownership | None:
        """Keep a closed, provisional file of its maker's from settling, as if it were open, until `let_go`.

        Return what it was for `let_go`; None as `reopened` returns False.
        """
        with self._lock:
            ownership = self._files.get((place, path))
            if ownership is None or ownership.is_open or not ownership.is_writable or ownership.maker != maker:
                return None
            if ownership.until is not None and ownership.until < time.monotonic():
                return None
            self._files[place, path] = Ownership(maker)
            return ownership

    def let_go(self, place: ArcVersion, path: str, ownership: Ownership) -> None:
        """Let a file settle as before, unless it was removed."""
        with self._lock:
            if (place, path) in self._files:
                self._files[place, path] = ownership

    def due(self) -> list[tuple[ArcVersion, str]]:
        """Return the provisional files whose time is over."""
        now = time.monotonic()
        with self._lock:
            return [
                key for key, ownership in self._files.items() if ownership.until is not None and ownership.until < now
            ]

    def end(self, *, with_empty: bool) -> None:
        """End the time of all files that are closed."""
        with self._lock:
            for key, ownership in self._files.items():
                if not ownership.is_open and (with_empty or ownership.until is not None):
                    self._files[key] = Ownership(ownership.maker, 0.0, False, ownership.is_writable, round(time.time()))

    def forget(self) -> None:
        """Forget makers whose time is over, unless their files settle first. Called periodically."""
        if self.settle:
            return
        for key in self.due():
            self.removed(*key)


# == overlay ==========================================================================================================


#: Superseded blobs that are remembered, and bytes of data.xml among them that only this mount ever has: long enough
#: for a reader that has just looked one up.
MOST_SUPERSEDED = 10_000
SUPERSEDED_BYTES = 16 << 20

#: A name in the overlay: an entry that git will have (without an id, if the file was removed), or a node without a
#: version yet.
OverlayEntry = TreeEntry | Node
#: An addition that git has: the ARC, the path in it, its entry.
CommittedFile = tuple[ArcVersion, str, TreeEntry]
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
    return isinstance(item, TreeEntry) and not item.oid and not item.is_tree


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
        entries = folders.get(folder) if folders is not None else None
        return entries.get(name) if entries is not None else None

    def listing(self, place: ArcVersion | None, folder: str) -> Mapping[str, OverlayEntry]:
        """Return all overlay entries of a folder."""
        folders = self._folders.get(place) if self._folders and place is not None else None
        entries = folders.get(folder) if folders is not None else None
        return dict(entries) if entries else _NOTHING

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

    def keep(self, place: ArcVersion, path: str) -> None:
        """Keep the bytes of a confirmed file that is about to be replaced, for who has looked its name up already.

        The kernel looks a name up once more on ESTALE, and not twice. A file of more than 64 KiB is not kept.
        """
        pending = self._pending.get(place.domain, {}).get((place, path))
        if pending is None or pending.body is not None or self._journal is None:
            return
        body = self._journal.read_blob(pending.blob)
        if isinstance(body, int):
            os.close(body)
        elif body is not None:
            kept = body
            self._past.get(pending.blob, lambda: kept)

    def is_superseded(self, blob: str) -> bool:
        """Return whether a newer version of its file replaced a blob: git may never have it."""
        return blob in self._superseded

    # -- events of writing -------------------------------------------------------------------------------------------

    def reserve(self, place: ArcVersion, path: str, item: OverlayEntry, ownership: Ownership) -> bool:
        """Add a new name; return False if the overlay already has it."""
        folder, name = _split(path)
        with self._lock:
            items = self._folders.setdefault(place, {}).setdefault(folder, {})
            if name in items and not is_gone(items[name]):
                return False
            items[name] = item
            (self.makers.folder if isinstance(item, TreeEntry) else self.makers.file)(place, path, ownership)
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
            item = TreeEntry(name, pending.blob, False) if shown is None else shown
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
                self._folders[place][folder][name] = TreeEntry(name, pending.blob, False)

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
                self._folders.setdefault(place, {}).setdefault(folder, {})[name] = TreeEntry(name, "", False)
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
            if isinstance(item, TreeEntry):
                item = TreeEntry(new_name, item.oid, False)
            if item is not None:
                self._folders.setdefault(place, {}).setdefault(new_folder, {})[new_name] = item
            self.makers.renamed(place, old, new)

    def remove_folder(self, place: ArcVersion, path: str) -> bool:
        """Remove a folder that only this mount has; return False if it is none, or not empty."""
        with self._lock:
            item = self._item(place, path)
            inside = self._folders.get(place, {}).get(path, {})
            if (
                not isinstance(item, TreeEntry)
                or not item.is_tree
                or any(not is_gone(entry) for entry in inside.values())
            ):
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
            for pending in self._pending.get(domain, {}).values():
                pending.committed = pending.committed or pending.number in numbers
            for key in [key for key, number in self._leaving.items() if key[0].domain == domain and number in numbers]:
                del self._leaving[key]
            self._note_committed(domain)

    def renumbered(self, domain: str, numbers: Mapping[Number, Number]) -> None:
        """Note that the journal has additions under new numbers: they were written again."""
        with self._lock:
            for pending in self._pending.get(domain, {}).values():
                pending.number = numbers.get(pending.number, pending.number)
            for key, number in self._leaving.items():
                self._leaving[key] = numbers.get(number, number)

    def late(self) -> set[str]:
        """Return the domains with additions that git has, but that are still shown from here."""
        with self._lock:
            return set(self._late)

    def committed_files(self, domain: str) -> list[CommittedFile]:
        """Return the additions that git has: a state that is read after this call may replace them."""
        with self._lock:
            committed = [
                (key, pending.blob) for key, pending in self._pending.get(domain, {}).items() if pending.committed
            ]
        return [(place, path, TreeEntry(_split(path)[1], blob, False)) for (place, path), blob in committed]

    def drop(self, files: Sequence[CommittedFile]) -> None:
        """Remove these files: a state with them is in force."""
        with self._lock:
            for place, path, entry in files:
                pending = self._pending.get(place.domain, {}).get((place, path))
                if pending is not None and pending.blob == entry.oid and pending.committed:
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
                    if isinstance(item, TreeEntry) and item.is_tree:
                        self._remove(place, path)

    def _bare(self, domain: str) -> Iterator[tuple[ArcVersion, list[str]]]:
        """Yield the ARCs that have only folders here, with the paths of those."""
        for place, folders in self._folders.items():
            if place.domain == domain:
                items = [(folder, name, item) for folder, names in folders.items() for name, item in names.items()]
                if all(isinstance(item, TreeEntry) and item.is_tree for _, _, item in items):
                    yield place, [f"{folder}/{name}" if folder else name for folder, name, _ in items]

    def _note_committed(self, domain: str) -> None:
        some = any(pending.committed for pending in self._pending.get(domain, {}).values())
        (self._late.add if some else self._late.discard)(domain)

    # ----------------------------------------------------------------------------------------------------------------

    def _keep_folders(self, place: ArcVersion, path: str) -> None:
        while path := path.rpartition("/")[0]:
            folder, name = _split(path)
            self._folders.setdefault(place, {}).setdefault(folder, {}).setdefault(name, TreeEntry(name, "", True))

    def _drop_folders(self, place: ArcVersion, path: str) -> None:
        """Remove the folders above a file that git has."""
        while path := path.rpartition("/")[0]:
            item = self._item(place, path)
            if isinstance(item, TreeEntry) and item.is_tree:
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


# == left additions ===================================================================================================


#: Seconds between two looks whether git has them by now.
_AGAIN = 1.0

_log = logging.getLogger(__name__)


class LeftAdditions:
    """The additions that dead mounts left. One thread calls `show` once, then any thread the others."""

    def __init__(self, archive: Archive, overlay: Overlay) -> None:
        self._archive = archive
        self._overlay = overlay
        self._bodies: dict[str, Waiting] = {}
        #: Domain → log → the numbers that are shown.
        self._shown: dict[str, dict[str, set[int]]] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    @property
    def lines(self) -> list[str]:
        """What waits, a line for each domain."""
        with self._lock:
            counts = {domain: sum(map(len, logs.values())) for domain, logs in self._shown.items()}
        return [say_waiting(domain, number) for domain, number in sorted(counts.items())]

    def show(self) -> None:
        """Lay what waits over the states, and follow it from then on."""
        try:
            left = read_waiting(self._archive, of_dead=True)
        except OSError as error:
            _log.error("the journal cannot be read: %s", error)
            return
        for domain, waiting in left.items():
            try:
                self._show(domain, waiting)
            except (WebarcError, OSError) as error:
                _log.error("%s: additions that wait in the journal cannot be shown: %s", domain, error)
        for line in self.lines:
            _log.warning("%s", line)
        if self._shown:
            threading.Thread(target=self._follow, name="left additions", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()

    def read_blob(self, blob: str) -> bytes | int | None:
        """Return a body: its bytes, or a descriptor that the caller closes; None once git has it."""
        waiting = self._bodies.get(blob)
        if waiting is None:
            return None
        log, record = waiting
        for reader in (log, LogReader(log.path.with_suffix(SUFFIX))):  # a log of provisional files is renamed
            with contextlib.suppress(FileNotFoundError):
                body = reader.body(record)
                return os.open(body, os.O_RDONLY | os.O_CLOEXEC) if isinstance(body, Path) else body
        return None

    def settle(self) -> bool:
        """Note what git has by now; return whether anything still waits."""
        with self._lock:
            for domain, logs in list(self._shown.items()):
                self._settle(domain, logs)
            return bool(self._shown)

    def _settle(self, domain: str, logs: dict[str, set[int]]) -> None:
        progress: Mapping[str, int] | None = None
        for log, numbers in list(logs.items()):
            settled = set(numbers)
            if any((self._archive.journal / f"{log}{suffix}").exists() for suffix in (SUFFIX, PROVISIONAL)):
                progress = progress if progress is not None else read_progress(self._archive, domain)
                settled = {number for number in numbers if number <= progress.get(log, 0)}
            numbers.difference_update(settled)
            self._overlay.committed(domain, {(log, number) for number in settled})
            if not numbers:
                del logs[log]
        if not logs:
            del self._shown[domain]
            _log.info("%s: committed what waited in the journal", domain)

    def _follow(self) -> None:
        while not self._stopped.wait(_AGAIN):
            try:
                if not self.settle():
                    return
            except Exception:
                _log.exception("looking for additions that were committed failed; it is tried again")

    # -- laying them over the states -------------------------------------------------------------------------------

    def _show(self, domain: str, waiting: list[Waiting]) -> None:
        store = Repository(self._archive.repository(domain))
        head = store.head()
        if head is None:
            raise Damaged(f"{domain} has no state")
        shown = _ShownTree(store, head.tree, self._overlay)
        for log, record in waiting:
            try:
                if isinstance(record.addition, AddFile):
                    _check_body(log, record)
                shown.place(log, record)
            except (WebarcError, OSError) as error:
                _log.error("%s: addition %d of %s is not shown: %s", domain, record.number, log.id, error)
                continue
            if isinstance(record.addition, AddFile):
                self._bodies[record.addition.blob] = log, record
            self._shown.setdefault(domain, {}).setdefault(log.id, set()).add(record.number)


class _ShownTree:
    """The tree that a commit of the additions would make, as far as the overlay needs it."""

    def __init__(self, store: Repository, tree: str, overlay: Overlay) -> None:
        self._store = store
        self._overlay = overlay
        self._documents: dict[str, bytes] = {}
        self._sizes: dict[str, int] = {}
        self._nodes: dict[ArcVersion, tuple[bytes, ...]] = {}
        self._ground = AdditionTree(store, tree, self._keep)

    def _keep(self, document: bytes) -> str:
        blob = blob_id(document)
        self._documents[blob] = document
        return blob

    def place(self, log: LogReader, record: LogRecord) -> None:
        """Show an addition. Raises the reason why a commit would refuse it."""
        addition, number = record.addition, (log.id, record.number)
        place = addition.place
        self._ground.judge(addition)
        self._ground.place(addition)
        match addition:
            case AddFile():
                self._sizes[addition.blob] = addition.size
                self._overlay.confirmed(place, addition.path, PendingFile(addition.blob, addition.size, number))
                self._overlay.with_folders(place, addition.path)
            case Move():
                blob = self._ground.tree.blob(f"{place.arc}/{addition.new}") or ""
                size = self._sizes.get(blob)
                moved = PendingFile(blob, self._store.size(blob) if size is None else size, number)
                self._overlay.moved(place, addition.old, addition.new, moved)
                self._overlay.with_folders(place, addition.new)
            case AddNodes():
                blob = self._ground.tree.blob(f"{place.arc}/{DATA_XML}") or ""
                document = self._documents[blob]
                nodes = self._nodes[place] = (*self._nodes.get(place, ()), addition.nodes)
                self._overlay.confirmed(place, DATA_XML, PendingFile(blob, len(document), number, document, nodes))
                if addition.source:
                    self._overlay.gone(place, addition.source, number)


def _check_body(log: LogReader, record: LogRecord) -> None:
    """Raise Damaged, OSError for a body that is not there in full length."""
    body = log.body(record)
    size = body.stat().st_size if isinstance(body, Path) else len(body)
    if size != record.size:
        raise Damaged("its body in the journal is damaged")
