"""The thread that puts confirmed additions into git, many in one commit.

It commits each domain when that is due (pacing.py), at once for an fsync of a folder, and the rest at the end. It never
notifies the kernel: a committed addition looks the same as before. A failed commit is repeated; the journal keeps the
additions meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from webarcfs.archive.commit import commit_additions
from webarcfs.archive.commit.pacing import next_commit
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.journal.journal import Journal
from webarcfs.archive.model.committed import Cost
from webarcfs.view import limits
from webarcfs.view.state.overlay import Overlay

#: Seconds until a failed commit is repeated.
AGAIN = 5.0
#: Receives None when the confirmed additions are in git, or the error.
Done = Callable[[BaseException | None], None]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Domain:
    """The state of one domain: waiting additions, cost of the last commit. Times are monotonic seconds."""

    waiting: int = 0
    busy: bool = False
    oldest: float = 0.0
    cost: Cost = field(default_factory=Cost)
    ended: float = 0.0
    not_before: float = 0.0
    synced: list[Done] = field(default_factory=list)


class Committer(threading.Thread):
    """The thread of one mount."""

    def __init__(self, archive: Archive, journal: Journal, overlay: Overlay, interval: float) -> None:
        super().__init__(name="committer", daemon=True)
        self._archive = archive
        self._journal = journal
        self._overlay = overlay
        self._interval = interval
        self._domains: dict[str, _Domain] = {}
        self._read: commit_additions.Read = {}
        self._changed = threading.Condition()
        self._ending = False

    def added(self, name: str, number: int = 1) -> None:
        """Count `number` more confirmed additions of a domain."""
        if not number:
            return
        with self._changed:
            domain = self._domains.setdefault(name, _Domain())
            if not domain.waiting:
                domain.oldest = time.monotonic()
                self._changed.notify()
            domain.waiting += number

    def sync(self, name: str, done: Done) -> None:
        """Commit at once; this thread calls `done` when the additions confirmed until now are in git."""
        with self._changed:
            domain = self._domains.setdefault(name, _Domain())
            if (domain.waiting and not self._ending) or domain.busy:
                domain.synced.append(done)
                self._changed.notify()
                return
        done(None)

    def run(self) -> None:
        """Commit due domains repeatedly."""
        memory = limits.Memory()
        while (name := self._next()) is not None:
            self._commit(name)
            self._overlay.makers.forget()
            memory.give_back()

    def stop(self) -> None:
        """Commit the rest, and end. Additions that cannot be committed now stay in the journal."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self.join()

    def _next(self) -> str | None:
        """Wait until a domain is due; return None at the end."""
        with self._changed:
            while True:
                due = {name: self._due(each) for name, each in self._domains.items() if each.waiting}
                if not due:
                    if self._ending:
                        return None
                    self._changed.wait()
                    continue
                name = min(due, key=lambda each: due[each])
                wait = due[name] - time.monotonic()
                if wait <= 0:
                    return name
                self._changed.wait(wait)

    def _due(self, domain: _Domain) -> float:
        if self._ending or domain.synced:
            return 0.0
        due = next_commit(self._interval, domain.cost, domain.ended, domain.oldest, domain.waiting)
        return max(due, domain.not_before)

    def _commit(self, name: str) -> None:
        with self._changed:
            domain = self._domains[name]
            waiting, domain.waiting = domain.waiting, 0
            synced, domain.synced, domain.busy = domain.synced, [], True
        try:
            self._commit_now(name, domain)
        except BaseException as error:
            _log.exception("%s: additions were not committed; they stay in the journal and are tried again", name)
            with self._changed:
                domain.waiting += 0 if self._ending else waiting
                domain.not_before = time.monotonic() + AGAIN
            failure: BaseException | None = error
        else:
            failure = None
        with self._changed:
            domain.busy = False
            if failure is not None or not domain.waiting:  # later calls of `sync` waited for this commit only
                synced, domain.synced = synced + domain.synced, []
        for done in synced:
            done(failure)

    def _commit_now(self, name: str, domain: _Domain) -> None:
        committed = commit_additions.commit_additions(self._archive, name, self._read)
        domain.cost, domain.ended, domain.not_before = committed.cost, time.monotonic(), 0.0
        released = self._journal.release(committed)
        self._overlay.committed(name, {(ticket.log, ticket.number) for ticket in released})
