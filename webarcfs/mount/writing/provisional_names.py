"""Renames and removals of provisional files, by their maker (SEMANTICS.md, S-settle).

They wait for the journal, so the threads that call them take no requests (workers.py). A thread may hold the locks of
two drafts here: the kernel lets nobody else rename in the two folders meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from webarcfs.archive.journal.provisional_journal import ProvisionalJournal
from webarcfs.archive.model.addition import ArcVersion, Move
from webarcfs.archive.model.errors import LookAgain, NotPermitted
from webarcfs.archive.system.locks import Turnstile
from webarcfs.mount.writing.confirm import Confirmer, NewFile
from webarcfs.mount.writing.draft import Draft, Drafts
from webarcfs.mount.writing.preconditions import LockedHead
from webarcfs.view.caller import Caller, author
from webarcfs.view.node import Node
from webarcfs.view.state.ownership import Ownership
from webarcfs.view.tree.files import StoredFile
from webarcfs.view.tree.view import View

#: A file: its path in the ARC, and its node.
PathAndNode = tuple[str, Node]


@dataclass(slots=True)
class _Held:
    """A file that cannot settle for now: its path, and its draft, or how long it is its maker's."""

    path: str
    draft: Draft | None
    made: Ownership | None = None


class ProvisionalNames:
    """The names of one mount's provisional files. `drafts` are those that are open for writing."""

    def __init__(self, view: View, journal: ProvisionalJournal, confirmer: Confirmer, drafts: Drafts) -> None:
        self._view = view
        self._journal = journal
        self._confirmer = confirmer
        self._drafts = drafts

    def remove(self, place: ArcVersion, file: PathAndNode, caller: Caller) -> None:
        """Remove a provisional file of the caller's. Raises its refusal.

        Its handles go on without a name.
        """
        with self.held(place, file, caller) as held:
            self._take_name(place, held)
            self.forget(place, held.path)

    def forget(self, place: ArcVersion, path: str) -> None:
        """Forget a file that is removed, or has become nodes of the document."""
        with Turnstile(self._view.archive.lock(place.domain)).shared():  # a publication may be reading it
            self._journal.remove([(place, path)])
        self._view.overlay.withdrawn(place, path)

    def rename(self, place: ArcVersion, source: PathAndNode, target: tuple[str, Node | None], caller: Caller) -> None:
        """Rename a provisional file of the caller's, to a free name or onto another one.

        Onto a final file with the same bytes, it removes the source. Raises the source's refusal, NotPermitted for any
        other target, Stale, Exists, OSError.
        """
        new, there = target
        with self.held(place, source, caller) as held:
            draft = held.draft
            if there is None:
                self._move(place, held, new, caller)
                return
            if draft is not None and (draft.dirty or not draft.blob):  # the other file goes: this one must be durable
                self._confirmer.one(NewFile(draft, self._view, provisional=True))
            if self._is_same(place, held.path, new, there):
                self._take_name(place, held)
                self.forget(place, held.path)
                return
            with self.held(place, (new, there), caller, onto=True) as other:
                self._move(place, held, new, caller)
                self._take_name(place, other)

    def _is_same(self, place: ArcVersion, old: str, new: str, there: Node) -> bool:
        """Return whether a file that is final has the bytes of a provisional one."""
        state = self._journal.state((place, old))
        if state is None or not isinstance(there, StoredFile) or there.place is None or there.is_document:
            return False
        is_final = self._journal.state((place, new)) is None and (place, new) not in self._drafts
        return is_final and there.version.blob == state.blob

    @contextmanager
    def held(self, place: ArcVersion, file: PathAndNode, caller: Caller, *, onto: bool = False) -> Iterator[_Held]:
        """Keep a provisional file of the caller's from settling; if it is open, under the lock of its draft.

        Raises the file's refusal, or NotPermitted if it is a target.
        """
        path, node = file
        refusal = NotPermitted(f"{path!r} is there") if onto else node.refusal()
        draft = self._drafts.get((place, path))
        if draft is not None:
            if draft.maker.uid != caller.uid:
                raise refusal
            with draft.lock:
                if self._drafts.get((place, path)) is not draft:
                    raise LookAgain(f"{path} was closed just now")
                yield _Held(path, draft)
            return
        makers = self._view.overlay.makers
        made = makers.held(place, path, caller.uid)
        if made is None:
            raise refusal
        held = _Held(path, None, made)
        try:
            yield held
        finally:
            if held.made is not None:
                makers.let_go(place, held.path, held.made)

    def _move(self, place: ArcVersion, held: _Held, new: str, caller: Caller) -> None:
        """Rename a file that is held, onto one that is held, too, if the name is taken."""
        old, draft, other = held.path, held.draft, self._drafts.get((place, new))
        if self._journal.state((place, old)) is not None:
            reader = self._view.domain(place.domain).reader
            with Turnstile(self._view.archive.lock(place.domain)).shared():
                LockedHead.now(reader).check_free(place, new)
                self._journal.confirm(Move(place, old, new, author(caller.uid), int(time.time())))
        self._view.overlay.replaced(place, old, new)
        held.path = new
        if draft is not None:
            draft.path = new
            if self._drafts.get((place, old)) is draft:  # unless its last handle was closed since
                del self._drafts[place, old]
                self._drafts[place, new] = draft
        elif other is not None:
            del self._drafts[place, new]

    def _take_name(self, place: ArcVersion, held: _Held) -> None:
        """Take the name away from a file that is open: its handles go on, and confirm nothing."""
        if held.draft is not None:
            held.draft.removed, held.draft.dirty = True, False
            if self._drafts.get((place, held.path)) is held.draft:
                del self._drafts[place, held.path]
        held.made = None
