"""The states of domains that the mount shows, and the thread that follows publications.

A domain is taken over (domain_states.py) on first access, and again when its refs have moved. One background thread
watches for that: the feed names publications, and the ref of main also moves for additions. A line appears in
`.changes` only after its state was taken over, so that a reader of a commitTag finds that state or a newer one. Safe
for any thread; `start` starts the thread, after every fork.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.archive.system.temporary_folders import OF_READERS, remove_left
from webarcfs.view.node import Node
from webarcfs.view.state.discarded import Discarded
from webarcfs.view.state.domain_states import DomainChange, DomainState, DomainStates
from webarcfs.view.state.overlay import CommittedFile, Overlay, is_gone
from webarcfs.view.state.query_answers import Queries
from webarcfs.view.state.search_answers import Searches
from webarcfs.view.tree.changes_file import Changes
from webarcfs.view.tree.schemas_folder import Watch

#: Seconds between two checks of the feed; a publication must show within a second.
FEED_INTERVAL = 0.05
#: Checks of the feed between two checks of the refs of all domains in use (additions add no line to the feed).
REFS_EVERY = 16

_log = logging.getLogger(__name__)


class ViewListener(Protocol):
    """Receives publications from the view's thread, which holds no lock meanwhile."""

    def moved(self, changes: Sequence[DomainChange], tags: Sequence[CommitTag]) -> None:
        """Handle changed states, now in force; the lines of `tags` appear in `.changes` when this returns."""

    def files_superseded(self, state: DomainState, paths: Sequence[str]) -> None:
        """Handle files of the domain whose versions in git differ from those that this mount showed until now."""

    def shown(self) -> None:
        """Handle new lines of `.changes`."""

    def schemas(self, names: Sequence[str]) -> None:
        """Handle changed names in `.schemas`."""


class View:
    """The states that a mount of `archive` shows. `overlay` has the additions of this mount that they lack."""

    def __init__(self, archive: Archive, overlay: Overlay | None = None) -> None:
        self.archive = archive
        self.overlay = overlay if overlay is not None else Overlay()
        self.listener: ViewListener | None = None
        self.changes = Changes(archive.changes)
        self._schemas = Watch(archive.schemas)
        #: Schemas that are being written, by name.
        self.schema_drafts: dict[str, Node] = {}
        #: The answers to conditions.
        self.discarded = Discarded(archive)
        self.queries = Queries(archive, self.discarded)
        self.searches = Searches(archive, self.discarded)
        self._states = DomainStates(archive, self.overlay, self.discarded)
        self._looks = 0
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="view", daemon=True)

    def start(self, listener: ViewListener | None = None) -> None:
        """Show the publications so far, and watch for later ones, which `listener` receives."""
        remove_left(OF_READERS)
        self.refresh()
        self.listener = listener
        self._watcher.start()

    def stop(self) -> None:
        """End the thread; the states stay readable."""
        self._stop.set()
        if self._watcher.is_alive():
            self._watcher.join(timeout=5)
        self.listener = None  # if the thread still waits for a lock: there is no kernel to notify

    def close(self) -> None:
        """Remove what was made for the states; nothing can be read any more."""
        self.discarded.close()

    @property
    def mtime(self) -> int:
        """The time of the archive's last change: that of the folders above the domains."""
        return self.changes.mtime or int(self.archive.format.stat().st_mtime)

    def domains(self) -> Iterator[str]:
        """Return the domains that have been crawled, in order, including those that cannot be read."""
        return self._states.domains()

    def domain(self, name: str) -> DomainState:
        """Return the state of a domain. Raises NotFound, or Damaged when its repository cannot be read."""
        return self._states.domain(name)

    def refresh(self) -> None:
        """Check the archive once. For one thread at a time."""
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
        """Every REFS_EVERY-th call: return the domains that moved without a line in the feed; check schemas and packs.

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
        # Another mount may have committed this one's additions, in a state that was taken over before we knew.
        moved |= self.overlay.late()
        moved |= self._states.moved()

    def _look_at_schemas(self) -> None:
        schemas = self._schemas.changed()
        if schemas and self.listener is not None:
            self.listener.schemas(schemas)

    def _follow(self, moved: set[str], tags: Sequence[CommitTag]) -> None:
        """Take over the states that moved, those of `tags` among them, and invalidate what changed."""
        committed = [(name, found) for name in moved if (found := self.overlay.committed_files(name))]
        changes = [self._states.renewed(name) for name in moved]
        if self.listener is not None and changes:
            self.listener.moved(changes, tags)
        for name, found in committed:
            self._settle(name, found)
        for change in changes:
            self._forget_empty(change)

    def _forget_empty(self, change: DomainChange) -> None:
        """Forget empty folders of users in ARCs that a crawl replaced: no process can find them any more."""
        old, new = (state.main if state else None for state in (change.old, change.new))
        if change.new is None or new is None or (old is not None and old.message.tag == new.message.tag):
            return
        reader, tree = change.new.reader, new.tree
        self.overlay.forget_empty(change.name, lambda place: reader.arc(tree, place) is not None)

    def _settle(self, name: str, committed: Sequence[CommittedFile]) -> None:
        """Show from git the additions that git had before the state was read."""
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
