"""The states of domains as they were taken over, and when to do that again.

A state is taken over under the domain's shared lock (/Ar-2/): the refs are read once, the lock is let go; all that is
read later is found from those refs. A domain is taken over when somebody first asks for it, and again when its refs
moved. Any thread may ask; whether something moved, one at a time.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, Commit, Repository
from webarcfs.archive.model.errors import NotFound, WebarcError
from webarcfs.archive.model.metadata import CET, CommitTag
from webarcfs.archive.system.locks import Turnstile
from webarcfs.view.state.domain_reader import Caches, DomainReader
from webarcfs.view.state.overlay import Overlay

_log = logging.getLogger(__name__)

_EXPECTED = WebarcError, OSError

Signature = tuple[object, ...]


class StateToken:
    """Tells one state from all others, by its identity."""


@dataclass(frozen=True)
class DomainState:
    """What was found when a domain was taken over: the newest commit, and the commit of each commitTag in order.

    It grows with the number of snapshots, and goes when the next one is in force: nodes, which stay as long as the
    kernel knows them, know it again by its `mark`.
    """

    name: str
    reader: DomainReader
    main: Commit | None
    tags: Mapping[str, str]
    signature: Signature
    mark: StateToken = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DomainChange:
    """A domain that may have moved: its state before, None if nobody had asked for it, and the one in force now.

    That is None if nobody asked, or it cannot be read.
    """

    name: str
    old: DomainState | None
    new: DomainState | None


class DomainStates:
    """The newest state of each domain of an archive, as far as somebody asked for it."""

    def __init__(self, archive: Archive, overlay: Overlay) -> None:
        self._caches = Caches()
        self._overlay = overlay
        self._archive = archive
        self._repositories: tuple[int, frozenset[str]] = (0, frozenset())
        self._states: dict[str, DomainState] = {}
        self._faults: dict[str, str] = {}
        self._mutexes: dict[str, threading.Lock] = {}

    def domains(self) -> Iterator[str]:
        """The domains that have been crawled, in order, with those that cannot be read."""
        for name in self._archive.domains():
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

    def known(self, name: str) -> DomainState | None:
        """The state of a domain in force; None if nobody asked for it yet, or it cannot be read."""
        return self._states.get(name)

    # -- what moved --------------------------------------------------------------------------------------------------

    def moved(self) -> set[str]:
        """Domains that moved since they were taken over, appeared or went. Only one thread at a time may call it."""
        return {name for name, state in self._states.copy().items() if self._has_moved(state)} | self._come_or_gone()

    def renewed(self, name: str) -> DomainChange:
        """Take a domain over once more, if anybody asked for it."""
        old, new = self._states.get(name), None
        # Domains that nobody ever asked for are read when somebody does, and then as they are by then. The mutex tells,
        # and not the state: a take-over may be under way that read the refs before they moved.
        if name in self._mutexes:
            # It is in the log, and answered when somebody asks. Whatever it is: others that moved must be told of.
            with contextlib.suppress(Exception):
                new = self._take_over(name)
        return DomainChange(name, old, new)

    def let_go(self) -> None:
        """A mount lives for months: packs that a repack removed must not stay open, and on the disk, so long."""
        for state in self._states.copy().values():
            with contextlib.suppress(OSError, WebarcError):  # it is gone or damaged; whoever reads it is told
                if state.reader.store.let_go():
                    _log.debug("%s: repacked", state.name)

    def _come_or_gone(self) -> frozenset[str]:
        """Domains whose repositories appeared or went since the last look: not each one is announced by the feed."""
        time, known = self._repositories
        now = self._archive.content.stat().st_mtime_ns
        if now == time:
            return frozenset()
        found = frozenset(self._archive.domains())
        self._repositories = now, found
        return found ^ known

    def _has_moved(self, state: DomainState) -> bool:
        try:
            return _signature(self._archive.repository(state.name)) != state.signature
        except OSError:
            return True

    # -- taking over -------------------------------------------------------------------------------------------------

    def _take_over(self, name: str) -> DomainState:
        if not _is_domain(name) or not self._archive.repository(name).is_dir():
            self._states.pop(name, None)
            raise self._archive.missing(f"the archive has no domain {name}")
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
        path = self._archive.repository(name)
        signature = _signature(path)  # first: what moves after it is noticed by the next look
        store = self._store(name, path, signature)
        with self._shared(name):
            main, crawls = store.head(), store.refs(CRAWLS)
        tags = {str(CommitTag(time, name)): oid for compact, oid in crawls.items() if (time := _time(compact))}
        return DomainState(
            name, DomainReader(name, store, self._caches, self._overlay), main, tags, signature, StateToken()
        )

    def _store(self, name: str, path: Path, signature: Signature) -> Repository:
        old = self._states.get(name)
        # The same folder, not one that was put in its place meanwhile (by a restore, say).
        return old.reader.store if old is not None and old.signature[0] == signature[0] else Repository(path)

    @contextlib.contextmanager
    def _shared(self, name: str) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(Turnstile(self._archive.lock(name)).shared())
            except OSError as error:
                # An archive on read-only media, or one that we may not write to and nobody ever locked.
                _log.info("%s: read without its lock: %s", name, error)
            yield

    def _note(self, name: str, error: Exception) -> None:
        if self._faults.get(name) != str(error):
            self._faults[name] = str(error)
            _log.error("%s cannot be shown: %s", name, error, exc_info=None if isinstance(error, _EXPECTED) else error)


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
