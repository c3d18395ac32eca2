"""Which state of each domain the mount shows, and since when.

A state is taken over under the domain's shared lock (/Ar-2/): the refs are read once, the lock is let go; all that is
read later is found from those refs. A domain is taken over when somebody first asks for it, and again when its refs
moved. One background thread watches for that: the feed names what was published, and the ref of main moves for
additions too. Only when a state is taken over does its line appear in `.changes`, so that whoever read a commitTag
there finds that state or a newer one. Any thread may ask; the thread is started with `start`, after every fork.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from webarcfs.archive.directory import Archive
from webarcfs.archive.errors import NotFound, WebarcError
from webarcfs.archive.locks import Turnstile
from webarcfs.archive.model import CET, CommitTag
from webarcfs.archive.store import CRAWLS, Commit, Store
from webarcfs.mount.base import Node
from webarcfs.mount.changes import Changes
from webarcfs.mount.overlay import Overlay, Settled, is_gone
from webarcfs.mount.reader import Bodies, Caches, Reader
from webarcfs.mount.schemafolder import Watch

#: Seconds between two looks at the feed; a publication must show within a second.
FEED_INTERVAL = 0.2
#: Looks at the feed between two looks at the refs of all domains in use (additions make no line in the feed).
REFS_EVERY = 4

_log = logging.getLogger(__name__)

Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class DomainState:
    """What was found when a domain was taken over: the newest commit, and the commit of each commitTag in order."""

    name: str
    reader: Reader
    main: Commit | None
    tags: Mapping[str, str]
    signature: Signature


@dataclass(frozen=True, slots=True)
class Change:
    """A domain that may have moved: its state before, None if nobody had asked for it, and the one in force now, None
    if
    nobody asked or it cannot be read.
    """

    name: str
    old: DomainState | None
    new: DomainState | None


class Listener(Protocol):
    """Told of publications by the view's thread, which holds no lock meanwhile."""

    def moved(self, changes: Sequence[Change], tags: Sequence[CommitTag]) -> None:
        """These states are in force; the lines of `tags` appear in `.changes` when this returns."""

    def settled(self, state: DomainState, paths: Sequence[str]) -> None:
        """These files of the domain are other versions in git than this mount showed until now."""

    def shown(self) -> None:
        """`.changes` has grown."""

    def schemas(self, names: Sequence[str]) -> None:
        """These names in `.schemas` mean something else now."""


class View:
    """The states that a mount of `archive` shows. `listener` may be set at any time."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.listener: Listener | None = None
        self.changes = Changes(archive.changes)
        self._repositories: tuple[int, frozenset[str]] = (0, frozenset())
        self._schemas = Watch(archive.schemas)
        #: Schemas that are being written, by name.
        self.schema_drafts: dict[str, Node] = {}
        self._caches = Caches()
        self._states: dict[str, DomainState] = {}
        self._faults: dict[str, str] = {}
        self._mutexes: dict[str, threading.Lock] = {}
        self._looks = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="view", daemon=True)

    @property
    def overlay(self) -> Overlay:
        """What this mount added that is not yet in the states."""
        return self._caches.overlay

    def take_additions(self, bodies: Bodies) -> None:
        """From now on there may be pending additions, whose contents are read there."""
        self._caches.bodies = bodies

    def start(self) -> None:
        """Show what has been published so far, and watch for more."""
        self.refresh()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what is shown stays readable."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        self.listener = None  # should the thread still wait for a lock: there is no kernel to be told of it

    @property
    def mtime(self) -> int:
        """When the archive last changed: the time of the folders above the domains."""
        return self.changes.mtime or int(self.archive.format.stat().st_mtime)

    def domains(self) -> Iterator[str]:
        """The domains that have been crawled, in order, with those that cannot be read."""
        for name in self.archive.domains():
            try:
                if self.domain(name).main is not None:
                    yield name
            except NotFound:
                continue
            except WebarcError:
                yield name

    def domain(self, name: str) -> DomainState:
        """The state of a domain. Raises NotFound, or Damaged when its repository cannot be read."""
        state = self._states.get(name)
        return state if state is not None else self._take_over(name)

    # -- taking over -------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """One look at the archive. Only one thread at a time may call it."""
        pending = self.changes.pending()
        tags = pending.tags if pending else ()
        moved = {tag.domain for tag in tags}
        if self._looks % REFS_EVERY == 0:
            moved |= {name for name, state in self._states.copy().items() if self._has_moved(state)}
            moved |= self._come_or_gone()
            schemas = self._schemas.changed()
            if schemas and self.listener is not None:
                self.listener.schemas(schemas)
            self._let_go()
        self._looks += 1
        settled = [(name, found) for name in moved if (found := self.overlay.settled(name))]
        try:
            changes = [self._renewed(name) for name in moved]
            if self.listener is not None and changes:
                self.listener.moved(changes, tags)
            for name, found in settled:
                self._settle(name, found)
        finally:
            if pending:
                self.changes.release(pending)
                if self.listener is not None:
                    self.listener.shown()

    def _settle(self, name: str, settled: Sequence[Settled]) -> None:
        """What git had before the state was read is shown from git now."""
        state = self._states.get(name)
        if state is None or state.main is None:
            return
        self.overlay.drop(settled)
        paths = ((f"{place.arc}/{path}", None if is_gone(entry) else entry) for place, path, entry in settled)
        other = [path for path, entry in paths if state.reader.find(state.main.tree, path) != entry]
        if other and self.listener is not None:
            self.listener.settled(state, other)

    def _renewed(self, name: str) -> Change:
        old, new = self._states.get(name), None
        # Domains that nobody ever asked for are read when somebody does, and then as they are by then. The mutex tells,
        # and not the state: a take-over may be under way that read the refs before they moved.
        if name in self._mutexes:
            with contextlib.suppress(WebarcError, OSError):  # it is in the log, and answered when somebody asks
                new = self._take_over(name)
        return Change(name, old, new)

    def _come_or_gone(self) -> frozenset[str]:
        """Domains whose repositories appeared or went since the last look: not each one is announced by the feed."""
        time, known = self._repositories
        now = self.archive.content.stat().st_mtime_ns
        if now == time:
            return frozenset()
        found = frozenset(self.archive.domains())
        self._repositories = now, found
        return found ^ known

    def _let_go(self) -> None:
        """A mount lives for months: packs that a repack removed must not stay open, and on the disk, so long."""
        for state in self._states.copy().values():
            with contextlib.suppress(OSError, WebarcError):  # it is gone or damaged; whoever reads it is told
                if state.reader.store.let_go():
                    _log.debug("%s: repacked", state.name)

    def _take_over(self, name: str) -> DomainState:
        if not _is_domain(name) or not self.archive.repository(name).is_dir():
            self._states.pop(name, None)
            raise NotFound(f"the archive has no domain {name}")
        with self._mutexes.setdefault(name, threading.Lock()):
            try:
                state = self._states[name] = self._read(name)
            except Exception as error:
                # An old state must not outlive a tag that is about to be shown.
                self._states.pop(name, None)
                self._note(name, error)
                raise
            self._faults.pop(name, None)
            return state

    def _read(self, name: str) -> DomainState:
        path = self.archive.repository(name)
        signature = _signature(path)  # first: what moves after it is noticed by the next look
        store = self._store(name, path, signature)
        with self._shared(name):
            main, crawls = store.head(), store.refs(CRAWLS)
        tags = {str(CommitTag(time, name)): oid for compact, oid in crawls.items() if (time := _time(compact))}
        return DomainState(name, Reader(name, store, self._caches), main, tags, signature)

    def _store(self, name: str, path: Path, signature: Signature) -> Store:
        old = self._states.get(name)
        # The same folder, not one that was put in its place meanwhile (by a restore, say).
        return old.reader.store if old is not None and old.signature[0] == signature[0] else Store(path)

    @contextlib.contextmanager
    def _shared(self, name: str) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(Turnstile(self.archive.lock(name)).shared())
            except OSError as error:
                # An archive on read-only media, or one that we may not write to and nobody ever locked.
                _log.info("%s: read without its lock: %s", name, error)
            yield

    def _has_moved(self, state: DomainState) -> bool:
        try:
            return _signature(self.archive.repository(state.name)) != state.signature
        except OSError:
            return True

    def _note(self, name: str, error: Exception) -> None:
        if self._faults.get(name) != str(error):
            self._faults[name] = str(error)
            _log.error("%s cannot be shown: %s", name, error)

    def _watch(self) -> None:
        while not self._stop.wait(FEED_INTERVAL):
            try:
                self.refresh()
            except Exception:
                _log.exception("looking for publications failed; it is tried again")


def _is_domain(name: str) -> bool:
    return not name.startswith(".") and "@" not in name


def _signature(repository: Path) -> Signature:
    """Changes when main moves: the folder's identity, and that of the file that holds the ref."""
    folder = repository.stat()
    for name in ("refs/heads/main", "packed-refs"):
        with contextlib.suppress(FileNotFoundError):
            found = (repository / name).stat()
            return (folder.st_dev, folder.st_ino), name, found.st_ino, found.st_mtime_ns, found.st_size
    return ((folder.st_dev, folder.st_ino),)


def _time(compact: str) -> datetime | None:
    try:
        return datetime.strptime(compact, "%Y%m%dT%H%M%S").replace(tzinfo=CET)
    except ValueError:
        return None
