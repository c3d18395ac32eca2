"""Takes additions of one domain into the journal, as many together as are there.

Each costs the domain's lock, a look at its main, its names' lock and a sync; those that are confirmed together share
them. One failure does not affect the others. Any thread may confirm. Locks, in this order: those of the additions, the
domain's (shared, from "is this ARC current?" until the journal has them all), the overlay's. A thread that holds the
locks of one addition never waits for another's, so no two threads can wait for each other.
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

#: What became of an addition: whether there was anything new, or what it was refused for.
Outcome = bool | BaseException


class Lock(Protocol):
    """A lock of a thread."""

    def acquire(self, blocking: bool = True) -> bool:  # as threading has it
        """Take it; whether that was done."""

    def release(self) -> None:
        """Give it back."""


class Confirmable:
    """An addition that is to be confirmed. One thread calls its methods, in their order, while it holds `locks`."""

    place: ArcVersion

    @property
    def key(self) -> Hashable:
        """Two additions with the same key are never confirmed in one batch."""
        raise NotImplementedError

    @property
    def locks(self) -> Sequence[Lock]:
        """What is held from `prepare` on, in this order."""
        raise NotImplementedError

    def prepare(self) -> bool:
        """Do what needs no look at the archive; whether there is anything new. Raises what it is refused for."""
        raise NotImplementedError

    def judged(self, main: LockedHead) -> Wanted:
        """What the journal is to take, if that may be there. Raises what it is refused for."""
        raise NotImplementedError

    def confirmed(self, ticket: JournalPosition) -> None:
        """The journal has it: show it."""
        raise NotImplementedError

    def refused(self, error: BaseException) -> None:
        """It was not confirmed."""


class NewFile(Confirmable):
    """What is new of a draft."""

    def __init__(self, draft: Draft, view: View) -> None:
        self.place = draft.place
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
        """Name the bytes as git will. Raises what a write failed with."""
        if self._draft.dirty:
            self._blob, self._body = self._draft.body()
        return self._draft.dirty

    def judged(self, main: LockedHead) -> Wanted:
        """Raises Stale, Exists."""
        draft = self._draft
        main.check_free(draft.place, draft.path, draft.blobs)
        by = author(draft.maker.uid)
        size = self._body.size
        return AddFile(draft.place, draft.path, self._blob, size, by, int(time.time()), draft.blob), self._body

    def confirmed(self, ticket: JournalPosition) -> None:
        """Git will have this version; its name means the draft until its handles are closed."""
        draft = self._draft
        pending = PendingFile(self._blob, self._body.size, (ticket.log, ticket.number))
        self._overlay.confirmed(draft.place, draft.path, pending, DraftFile(draft) if draft.shown else None)
        draft.blob, draft.blob_size, draft.dirty, draft.failed = self._blob, self._body.size, False, False
        draft.blobs.add(self._blob)


@dataclass(slots=True)
class _Attempt:
    """An addition on its way."""

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
        except BaseException as error:  # the journal has the others, too: they are not to be told that they failed
            self.fail(error)


class Confirmer:
    """Confirms the additions of one mount."""

    def __init__(self, view: View, journal: Journal, committer: Committer) -> None:
        self._view = view
        self._journal = journal
        self._committer = committer

    def confirm(self, additions: Sequence[Confirmable]) -> list[Outcome]:
        """Additions of one domain, which are durable and shown when this returns; what became of each.

        Those whose locks others hold are confirmed afterwards, alone.
        """
        attempts = [_Attempt(addition) for addition in additions]
        self._together(attempts, wait=len(attempts) == 1)
        for each in attempts:
            if not each.ended:
                self._together([each], wait=True)
        return [each.outcome if each.outcome is not None else False for each in attempts]

    def one(self, addition: Confirmable) -> bool:
        """One addition; whether there was anything new. Raises what it was refused for."""
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
            with Turnstile(self._view.archive.lock(domain)).shared():
                self._put(attempts, LockedHead.now(self._view, domain))
        except BaseException as error:
            for each in attempts:
                each.fail(error)
        self._committer.added(domain, sum(each.outcome is True for each in attempts))

    def _put(self, attempts: Sequence[_Attempt], main: LockedHead) -> None:
        """Into the journal, and the overlay. Under the domain's lock."""
        for each in attempts:
            try:
                each.wanted = each.addition.judged(main)
            except BaseException as error:
                each.fail(error)
        going = [each for each in attempts if not each.ended]
        found = self._journal.confirm_all([each.wanted for each in going if each.wanted is not None])
        for each, ticket in zip(going, found, strict=True):
            if isinstance(ticket, BaseException):
                each.fail(ticket)
            else:
                each.show(ticket)


def _take(locks: Sequence[Lock], held: ExitStack, *, wait: bool) -> bool:
    """Take all locks, to be given back with `held`; False, and none, if one is not free and `wait` is not said."""
    with ExitStack() as taken:
        for lock in locks:
            if not lock.acquire(wait):
                return False
            taken.callback(lock.release)
        held.push(taken.pop_all())
    return True


def _is_new(each: _Attempt) -> bool:
    """Whether there is anything to confirm; if not, that is what became of it."""
    try:
        if each.addition.prepare():
            return True
        each.outcome = False
    except BaseException as error:
        each.fail(error)
    return False
