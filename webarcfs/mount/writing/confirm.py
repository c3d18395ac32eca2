"""Confirms additions of one domain in the journal, all that wait in one batch.

A batch shares the costs: the domain's lock, a read of its main, its names' lock and a sync. One failure does not affect
the others. Any thread may confirm. Locks, in this order: those of the additions, the domain's (shared, from "is this
ARC current?" until the journal has them all), the overlay's. A thread that holds the locks of one addition never waits
for another's, so no two threads can wait for each other.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from webarcfs.archive.journal.journal import Journal, JournalPosition, StoredBody, Wanted
from webarcfs.archive.model.addition import AddFile, ArcVersion
from webarcfs.archive.system.locks import Turnstile
from webarcfs.mount.writing.committer import Committer
from webarcfs.mount.writing.draft import Draft, DraftFile
from webarcfs.mount.writing.preconditions import LockedHead
from webarcfs.view.caller import author
from webarcfs.view.state.overlay import PendingFile
from webarcfs.view.tree.view import View

#: Result of an addition: True if it contained anything new, False if not, or the error.
Outcome = bool | BaseException


class Lock(Protocol):
    """A lock of a thread."""

    def acquire(self, blocking: bool = True) -> bool:  # as in threading
        """Take it; return whether that succeeded."""

    def release(self) -> None:
        """Release it."""


class Confirmable:
    """An addition to be confirmed. One thread calls its methods, in their order, while it holds `locks`."""

    place: ArcVersion
    #: Whether it is provisional: it goes into the journal of such files, and git has to wait.
    provisional: bool = False

    @property
    def key(self) -> Hashable:
        """Two additions with the same key are never confirmed in one batch."""
        raise NotImplementedError

    @property
    def locks(self) -> Sequence[Lock]:
        """The locks to hold from `prepare` on, in this order."""
        raise NotImplementedError

    def prepare(self) -> bool:
        """Do the work that needs no read of the archive; return whether there is anything new. Raises the refusal."""
        raise NotImplementedError

    def judged(self, main: LockedHead) -> Wanted:
        """Return the journal's record, if the addition is permitted. Raises the refusal."""
        raise NotImplementedError

    def confirmed(self, ticket: JournalPosition) -> None:
        """Show the addition: the journal has it."""
        raise NotImplementedError

    def refused(self, error: BaseException) -> None:
        """Handle the refusal: the addition was not confirmed."""


class NewFile(Confirmable):
    """The unconfirmed content of a draft."""

    def __init__(self, draft: Draft, view: View, *, provisional: bool = False) -> None:
        self.place = draft.place
        self.provisional = provisional
        self._draft = draft
        self._overlay = view.overlay
        self._blob, self._body = "", StoredBody(0, b"")

    @property
    def key(self) -> Hashable:
        """The draft."""
        return id(self._draft)

    @property
    def locks(self) -> Sequence[Lock]:
        """The draft's."""
        return (self._draft.lock,)

    def prepare(self) -> bool:
        """Compute the blob id. Raises the error of a failed write."""
        if self._draft.removed:
            self._draft.dirty = False
        if self._draft.dirty:
            self._blob, self._body = self._draft.body()
        return self._draft.dirty

    def judged(self, main: LockedHead) -> Wanted:
        """Return the record of a new file. Raises Stale, Exists."""
        draft = self._draft
        main.check_free(draft.place, draft.path, draft.blobs)
        by = author(draft.maker.uid)
        size = self._body.size
        return AddFile(draft.place, draft.path, self._blob, size, by, int(time.time()), draft.blob), self._body

    def confirmed(self, ticket: JournalPosition) -> None:
        """Show the version that git will have; the name means the draft until its handles are closed."""
        draft = self._draft
        pending = PendingFile(self._blob, self._body.size, (ticket.log, ticket.number))
        self._overlay.confirmed(draft.place, draft.path, pending, DraftFile(draft) if draft.shown else None)
        draft.blob, draft.blob_size, draft.dirty, draft.failed = self._blob, self._body.size, False, False
        draft.blobs.add(self._blob)


@dataclass(slots=True)
class _Attempt:
    """An addition under way."""

    addition: Confirmable
    wanted: Wanted | None = None
    outcome: Outcome | None = None

    @property
    def ended(self) -> bool:
        return self.outcome is not None

    def fail(self, error: BaseException) -> None:
        if self.outcome is None:
            self.outcome = error
            self.addition.refused(error)

    def show(self, ticket: JournalPosition) -> None:
        try:
            self.addition.confirmed(ticket)
            self.outcome = True
        except BaseException as error:  # the journal has the others, too: their writers must not see this error
            self.fail(error)


class Confirmer:
    """Confirms the additions of one mount."""

    def __init__(self, view: View, journal: Journal, committer: Committer, provisional: Journal | None = None) -> None:
        self._view = view
        self._journal = journal
        self._provisional = provisional
        self._committer = committer

    def confirm(self, additions: Sequence[Confirmable]) -> list[Outcome]:
        """Confirm additions of one domain; return the outcome of each. They are then durable and shown.

        Additions whose locks other threads hold are confirmed afterwards, alone.
        """
        attempts = [_Attempt(addition) for addition in additions]
        self._together(attempts, wait=len(attempts) == 1)
        for each in attempts:
            if not each.ended:
                self._together([each], wait=True)
        return [each.outcome if each.outcome is not None else False for each in attempts]

    def one(self, addition: Confirmable) -> bool:
        """Confirm one addition; return whether it contained anything new. Raises the refusal."""
        [outcome] = self.confirm([addition])
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _together(self, attempts: Sequence[_Attempt], *, wait: bool) -> None:
        with ExitStack() as held:
            keys: set[Hashable] = set()
            going = []
            for each in attempts:
                if each.addition.key not in keys and _take(each.addition.locks, held, wait=wait):
                    keys.add(each.addition.key)
                    going.append(each)
            self._confirm([each for each in going if _is_new(each)])

    def _confirm(self, attempts: Sequence[_Attempt]) -> None:
        if not attempts:
            return
        domain = attempts[0].addition.place.domain
        try:
            reader = self._view.domain(domain).reader
            with Turnstile(self._view.archive.lock(domain)).shared():
                self._put(attempts, LockedHead.now(reader))
        except BaseException as error:
            for each in attempts:
                each.fail(error)
        self._committer.added(domain, sum(each.outcome is True and not each.addition.provisional for each in attempts))

    def _put(self, attempts: Sequence[_Attempt], main: LockedHead) -> None:
        """Write the additions to the journal and the overlay. Under the domain's lock."""
        for each in attempts:
            try:
                each.wanted = each.addition.judged(main)
            except BaseException as error:
                each.fail(error)
        for journal, provisional in ((self._journal, False), (self._provisional, True)):
            going = [each for each in attempts if not each.ended and each.addition.provisional is provisional]
            if going and journal is not None:
                self._put_into(journal, going)

    @staticmethod
    def _put_into(journal: Journal, going: Sequence[_Attempt]) -> None:
        found = journal.confirm_all([each.wanted for each in going if each.wanted is not None])
        for each, ticket in zip(going, found, strict=True):
            if isinstance(ticket, BaseException):
                each.fail(ticket)
            else:
                each.show(ticket)


def _take(locks: Sequence[Lock], held: ExitStack, *, wait: bool) -> bool:
    """Take all locks, to be released with `held`; without `wait`, take none and return False if one is not free."""
    with ExitStack() as taken:
        for lock in locks:
            if not lock.acquire(wait):
                return False
            taken.callback(lock.release)
        held.push(taken.pop_all())
    return True


def _is_new(each: _Attempt) -> bool:
    """Return whether there is anything to confirm; otherwise set the outcome."""
    try:
        if each.addition.prepare():
            return True
        each.outcome = False
    except BaseException as error:
        each.fail(error)
    return False
