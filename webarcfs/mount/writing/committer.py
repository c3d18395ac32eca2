"""The thread that puts confirmed additions into git, many in one commit.

It commits each domain when that is due (pacing.py), at once for an fsync of a folder, and the rest at the end. It never
notifies the kernel: a committed addition looks the same as before. A failed commit is repeated; the journal keeps the
additions meanwhile. What others removed from the journal before it was in git is written again, or reported as lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from webarcfs.archive.commit import batches, commit_additions
from webarcfs.archive.commit.pacing import next_commit
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.journal.journal import Journal, JournalPosition
from webarcfs.archive.journal.survey import find_on_disk
from webarcfs.archive.model.addition import AddFile, Addition, Move
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.committed import Committed, Cost
from webarcfs.archive.model.errors import Damaged, WebarcError
from webarcfs.archive.system.locks import Turnstile
from webarcfs.view import limits
from webarcfs.view.state.overlay import Overlay

#: Seconds until a failed commit is repeated.
AGAIN = 5.0
#: Commits in a row, if each finds that additions are gone from the journal.
ROUNDS = 3
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
    #: What is to be said of lost additions by the next `sync`.
    loss: WebarcError | None = None


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
        self._ending = self._ended = False
        #: Lines for whoever unmounts: lost additions, and in the end what waits in the journal.
        self.remains: list[str] = []

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
        """Commit at once; this thread calls `done` when the additions confirmed until now are in git, or with an error.

        The error of lost additions is told once.
        """
        with self._changed:
            domain = self._domains.setdefault(name, _Domain())
            if (domain.waiting and not self._ended) or domain.busy:
                domain.synced.append(done)
                self._changed.notify()
                return
            answer, domain.loss = domain.loss, None
            if domain.waiting:
                answer = WebarcError(f"{name}: the mount has ended; its additions wait in the journal")
        done(answer)

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
        self._report_remains()

    def _next(self) -> str | None:
        """Wait until a domain is due; return None at the end."""
        with self._changed:
            while True:
                due = {name: self._due(each) for name, each in self._domains.items() if each.waiting}
                if not due:
                    if self._ending:
                        self._ended = True
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
            _log.exception("%s: additions were not committed; it is tried again", name)
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
            if synced and failure is None:
                failure, domain.loss = domain.loss, None
        for done in synced:
            done(failure)

    def _commit_now(self, name: str, domain: _Domain) -> None:
        self._journal.make_folder()
        for attempt in range(ROUNDS):
            waited = self._journal.pending(name)
            committed = commit_additions.commit_additions(self._archive, name, self._read)
            domain.cost, domain.ended, domain.not_before = committed.cost, time.monotonic(), 0.0
            untaken = self._journal.untaken(committed, waited)
            self._settle(name, self._journal.release(committed, besides=untaken))
            if not untaken or not self._rescue(name, untaken, committed, first=attempt == 0):
                return
        raise Damaged(f"{name}: others keep removing additions from the journal")

    def _settle(self, name: str, positions: Sequence[JournalPosition]) -> None:
        self._overlay.committed(name, {position.key for position in positions})

    # -- additions that are gone from the journal ------------------------------------------------------------------

    def _rescue(self, name: str, untaken: Sequence[JournalPosition], committed: Committed, *, first: bool) -> bool:
        """Write additions again that a commit did not find; return whether another commit is needed.

        Raises Damaged for additions that are in the journal all the same, OSError where the disk does not take them.
        """
        refused = {(each.log, each.number): each.reason for each in committed.dropped}
        missing = [position for position in untaken if position.key not in refused]
        on_disk = find_on_disk(self._archive, missing) if missing else set()
        if on_disk and first:
            return True
        if on_disk:
            raise Damaged(f"{name}: {len(on_disk)} additions are in the journal and could not be committed")
        damaged = any(each.damaged for each in committed.dropped)
        if not missing and not (damaged and first):
            self._lose(name, {position: refused[position.key] for position in untaken})
            return False
        _log.warning("%s: %d additions were gone from the journal before they were in git", name, len(untaken))
        return self._write_again(name)

    def _write_again(self, name: str) -> bool:
        """Write all additions that a domain waits for again, in their order; return whether any could be.

        Not only those that are gone: another one may replace or rename them. Raises OSError.
        """
        with Turnstile(self._archive.lock(name)).exclusive():  # nobody confirms meanwhile
            waiting = self._journal.pending(name)
            newest = batches.newest(position.addition for position in waiting)
            outcomes = self._journal.write_again({waiting[index]: addition for index, addition in newest.items()})
            written = {old: new for old, new in outcomes.items() if isinstance(new, JournalPosition)}
            self._overlay.renumbered(name, {old.key: new.key for old, new in written.items()})
            paths = {_path_of(old.addition) for old in written}
            replaced = [each for each in waiting if each not in outcomes and _path_of(each.addition) in paths]
            self._journal.forget(replaced, lost=False)
        self._lose(name, {old: str(error) for old, error in outcomes.items() if isinstance(error, WebarcError)})
        for error in outcomes.values():
            if isinstance(error, BaseException) and not isinstance(error, WebarcError):
                raise error
        return bool(written)

    def _lose(self, name: str, reasons: Mapping[JournalPosition, str]) -> None:
        """Report additions as lost, and take their names away."""
        if not reasons:
            return
        for position, reason in reasons.items():
            self._report(position, reason)
        self._journal.forget(reasons.keys(), lost=True)
        self._settle(name, list(reasons))
        with self._changed:
            self._domains[name].loss = Damaged(f"{len(reasons)} additions are lost; the log names them")

    def _report_remains(self) -> None:
        """Report what is left outside of git at the end, in the journal or nowhere."""
        pending = self._journal.pending()
        on_disk = find_on_disk(self._archive, pending)
        for position in pending:
            if position.key not in on_disk:
                self._report(position, f"{self._archive.journal} was removed or replaced")
        waiting = Counter(position.addition.place.domain for position in pending if position.key in on_disk)
        for name, number in sorted(waiting.items()):
            line = f"{name}: {number} additions wait in the journal; the next mount or agent commits them"
            _log.warning("%s", line)
            self.remains.append(line)

    def _report(self, position: JournalPosition, reason: str) -> None:
        line = f"{_path_of(position.addition)} is lost: it is in neither git nor the journal ({reason})"
        _log.error("%s", line)
        self.remains.append(line)


def _path_of(addition: Addition) -> str:
    """Return the path of an addition below the mount point."""
    place = addition.place
    match addition:
        case AddFile():
            name = addition.path
        case Move():
            name = addition.new
        case _:
            name = DATA_XML
    return f"/{place.domain}/{place.arc}/{name}"
