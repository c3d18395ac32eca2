"""Which state of each domain the mount shows, and since when.

A domain is taken over (domain_states.py) when somebody first asks for it, and again when its refs moved. One background
thread watches for that: the feed names what was published, and the ref of main moves for additions too. Only when a
state is taken over does its line appear in `.changes`, so that whoever read a commitTag there finds that state or a
newer one. Any thread may ask; the thread is started with `start`, after every fork.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.view.node import Node
from webarcfs.view.state.domain_states import DomainChange, DomainState, DomainStates
from webarcfs.view.state.overlay import CommittedFile, Overlay, is_gone
from webarcfs.view.state.query_answers import Queries
from webarcfs.view.tree.changes_file import Changes
from webarcfs.view.tree.schemas_folder import Watch

#: Seconds between two looks at the feed; a publication must show within a second.
FEED_INTERVAL = 0.05
#: Looks at the feed between two looks at the refs of all domains in use (additions make no line in the feed).
REFS_EVERY = 16

_log = logging.getLogger(__name__)


class ViewListener(Protocol):
    """Hears of publications by the view's thread, which holds no lock meanwhile."""

    def moved(self, changes: Sequence[DomainChange], tags: Sequence[CommitTag]) -> None:
        """These states are in force; the lines of `tags` appear in `.changes` when this returns."""

    def files_superseded(self, state: DomainState, paths: Sequence[str]) -> None:
        """These files of the domain are other versions in git than this mount showed until now."""

    def shown(self) -> None:
        """`.changes` has grown."""

    def schemas(self, names: Sequence[str]) -> None:
        """These names in `.schemas` mean something else now."""


class View:
    """The states that a mount of `archive` shows. `overlay` is what this mount added that they do not have yet."""

    def __init__(self, archive: Archive, overlay: Overlay | None = None) -> None:
        self.archive = archive
        self.overlay = overlay if overlay is not None else Overlay()
        self.listener: ViewListener | None = None
        self.changes = Changes(archive.changes)
        self._schemas = Watch(archive.schemas)
        #: Schemas that are being written, by name.
        self.schema_drafts: dict[str, Node] = {}
        #: What conditions find.
        self.queries = Queries(archive)
        self._states = DomainStates(archive, self.overlay)
        self._looks = 0
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="view", daemon=True)

    def start(self, listener: ViewListener | None = None) -> None:
        """Show what has been published so far, and watch for more, of which `listener` hears."""
        self.refresh()
        self.listener = listener
        self._watcher.start()

    def stop(self) -> None:
        """End the thread; what is shown stays readable."""
        self._stop.set()
        if self._watcher.is_alive():
            self._watcher.join(timeout=5)
        self.listener = None  # should the thread still wait for a lock: there is no kernel to be told of it

    @property
    def mtime(self) -> int:
        """When the archive last changed: the time of the folders above the domains."""
        return self.changes.mtime or int(self.archive.format.stat().st_mtime)

    def domains(self) -> Iterator[str]:
        """The domains that have been crawled, in order, with those that cannot be read."""
        return self._states.domains()

    def domain(self, name: str) -> DomainState:
        """The state of a domain. Raises NotFound, or Damaged when its repository cannot be read."""
        return self._states.domain(name)

    def refresh(self) -> None:
        """One look at the archive. Only one thread at a time may call it."""
        pending = self.changes.pending()
        tags = pending.tags if pending else ()
        try:
            with contextlib.ExitStack() as after:
                self._follow({tag.domain for tag in tags} | self._looked(after), tags)
        finally:
            if pending:
                self.changes.release(pending)
                if self.listener is not None:
                    self.listener.shown()

    def _looked(self, after: contextlib.ExitStack) -> set[str]:
        """Now and then, the domains that moved without a line in the feed; and what else is looked at.

        Exceptions are deferred to `after`, so that new lines of the feed are followed although a check failed.
        """
        self._looks += 1
        moved: set[str] = set()
        looks: Sequence[Callable[[], None]] = ()
        if self._looks % REFS_EVERY == 1:
            looks = (lambda: self._look_at_refs(moved), self._look_at_schemas, self._states.let_go)
        for look in looks:
            try:
                look()
            except Exception as error:
                after.callback(_raise, error)
        return moved

    def _look_at_refs(self, moved: set[str]) -> None:
        # Another mount may have committed what came by this one, and main was seen to move before we knew.
        moved |= self.overlay.late()
        moved |= self._states.moved()

    def _look_at_schemas(self) -> None:
        schemas = self._schemas.changed()
        if schemas and self.listener is not None:
            self.listener.schemas(schemas)

    def _follow(self, moved: set[str], tags: Sequence[CommitTag]) -> None:
        """Take the states over that moved, those of `tags` among them, and expire what they made untrue."""
        committed = [(name, found) for name in moved if (found := self.overlay.committed_files(name))]
        changes = [self._states.renewed(name) for name in moved]
        if self.listener is not None and changes:
            self.listener.moved(changes, tags)
        for name, found in committed:
            self._settle(name, found)
        for change in changes:
            self._forget_empty(change)

    def _forget_empty(self, change: DomainChange) -> None:
        """After a crawl: what users made in ARCs that it replaced, and left empty, can nobody find any more."""
        old, new = (state.main if state else None for state in (change.old, change.new))
        if change.new is None or new is None or (old is not None and old.message.tag == new.message.tag):
            return
        reader, tree = change.new.reader, new.tree
        self.overlay.forget_empty(change.name, lambda place: reader.arc(tree, place) is not None)

    def _settle(self, name: str, committed: Sequence[CommittedFile]) -> None:
        """What git had before the state was read is shown from git now."""
        state = self._states.known(name)
        if state is None or state.main is None:
            return
        paths = ((f"{place.arc}/{path}", None if is_gone(entry) else entry) for place, path, entry in committed)
        other = [path for path, entry in paths if state.reader.find(state.main.tree, path) != entry]
        self.overlay.drop(committed)
        if other and self.listener is not None:
            self.listener.files_superseded(state, other)

    def _watch(self) -> None:
        while not self._stop.wait(FEED_INTERVAL):
            try:
                self.refresh()
            except Exception:
                _log.exception("looking for publications failed; it is tried again")


def _raise(error: Exception) -> None:
    raise error
