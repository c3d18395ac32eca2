"""The names of additions: rules for new names, renames inside an ARC, and permissions (/Ar-1/).

Makers rename and remove provisional files here, too (SEMANTICS.md, S-settle). Renames and removals wait for the
journal, so the threads that call them take no requests (operations.py). Locks are as in writer.py; those of provisional
files come first. A thread may hold the locks of two drafts here: the kernel lets nobody else rename in the two folders
meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from webarcfs.archive.additions.journal import Journal, ProvisionalJournal
from webarcfs.archive.git.repository import TreeEntry
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.additions import ArcVersion, Move
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Exists, LookAgain, NotEmpty, NotFound, NotPermitted, Replaced
from webarcfs.archive.system.locks import Turnstile
from webarcfs.vfs.folders import StoredFile, StoredFolder
from webarcfs.vfs.node import Caller, File, Folder, Node, author
from webarcfs.vfs.overlay import Ownership, PendingFile, is_gone
from webarcfs.vfs.view import View
from webarcfs.writing import confirmation
from webarcfs.writing.confirmation import Committer, Confirmer, DocumentWriter, LockedHead, NewFile
from webarcfs.writing.drafts import Draft, DraftFile, Drafts, whole

# == provisional names ================================================================================================


#: A file: its path in the ARC, and its node.
PathAndNode = tuple[str, Node]


@dataclass(slots=True)
class _Held:
    """A file that cannot settle for now: its path, and its draft, or how long it is its maker's."""

    path: str
    draft: Draft | None
    ownership: Ownership | None = None


class ProvisionalNames:
    """The names of one mount's provisional files. `drafts` are those that are open for writing."""

    def __init__(self, view: View, journal: ProvisionalJournal, confirmer: Confirmer, drafts: Drafts) -> None:
        self._view = view
        self._journal = journal
        self._confirmer = confirmer
        self._drafts = drafts

    def remove(self, place: ArcVersion, file: PathAndNode, caller: Caller) -> None:
        """Remove a provisional file of the caller's. Raises its refusal.

        Its handles continue without a name.
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
            if draft.maker != caller.maker:
                raise refusal
            with draft.lock:
                if self._drafts.get((place, path)) is not draft:
                    raise LookAgain(f"{path} was closed just now")
                yield _Held(path, draft)
            return
        makers = self._view.overlay.makers
        ownership = makers.held(place, path, caller.maker)
        if ownership is None:
            raise refusal
        held = _Held(path, None, ownership)
        try:
            yield held
        finally:
            if held.ownership is not None:
                makers.let_go(place, held.path, held.ownership)

    def _move(self, place: ArcVersion, held: _Held, new: str, caller: Caller) -> None:
        """Rename a file that is held, onto one that is held, too, if the name is taken."""
        old, draft, other = held.path, held.draft, self._drafts.get((place, new))
        self._view.overlay.keep(place, new)
        if self._journal.state((place, old)) is not None:
            reader = self._view.domain(place.domain).reader
            with Turnstile(self._view.archive.lock(place.domain)).shared():
                LockedHead.now(reader).check_free(place, new)
                self._journal.confirm(Move(place, old, new, author(caller.maker), int(time.time())))
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
        """Take the name away from a file that is open: its handles continue, and confirm nothing."""
        if held.draft is not None:
            held.draft.removed, held.draft.dirty = True, False
            if self._drafts.get((place, held.path)) is held.draft:
                del self._drafts[place, held.path]
        held.ownership = None


# == addition names ===================================================================================================


#: renameat2(2).
NOREPLACE = 1

#: A folder and a name in it.
ParentAndName = tuple[Node, str]


class NewNames:
    """The names that one mount gives to additions. `drafts` are the files open for writing.

    Without `provisional`, closed files are final.
    """

    def __init__(  # noqa: PLR0917 # the parts of a mount
        self,
        view: View,
        journal: Journal,
        committer: Committer,
        documents: DocumentWriter,
        drafts: Drafts,
        provisional: ProvisionalNames | None = None,
    ) -> None:
        self._view = view
        self._journal = journal
        self._committer = committer
        self._documents = documents
        self._drafts = drafts
        self.provisional = provisional

    def free(self, folder: Node, name: str) -> tuple[ArcVersion, str]:
        """Return the ARC that a new name in a folder belongs to, and the path in it.

        Raises Exists, the folder's refusal, Stale, and the errors of `arc_paths.check_name`.
        """
        if has(folder, name):
            raise Exists(f"{name!r} is there")
        if not isinstance(folder, StoredFolder) or folder.place is None:
            raise folder.refusal()
        arc_paths.check_name(folder.inner, name)
        confirmation.check_known(self._view, folder.place)
        return folder.place, _join(folder.inner, name)

    def mkdir(self, folder: Node, name: str, caller: Caller) -> None:
        """Make a folder. Only this mount remembers it until it contains a file: git stores no empty folder."""
        place, path = self.free(folder, name)
        if not self._view.overlay.reserve(place, path, TreeEntry(name, "", True), Ownership(caller.maker)):
            raise Exists(f"{name!r} is there")

    def rename(self, source: ParentAndName, target: ParentAndName, flags: int, caller: Caller) -> list[ParentAndName]:
        """Rename an addition inside its ARC; wait for the journal; return the names to invalidate after the answer.

        A rename onto data.xml rewrites that document. Raises the refusal of a node that may not be renamed,
        NotPermitted or Exists for an existing name, and the errors of the new name.
        """
        (folder, name), (above, new_name) = source, target
        node = lookup(folder, name)
        place = folder.place if isinstance(folder, StoredFolder) else None
        if place is None or not isinstance(above, StoredFolder) or above.place != place or flags & ~NOREPLACE:
            raise (above if above.old else node).refusal()
        assert isinstance(folder, StoredFolder)
        old, new = _join(folder.inner, name), _join(above.inner, new_name)
        self._check_owner(place, old, caller, node)
        if new == DATA_XML and isinstance(node, File) and not flags:
            self._rewrite(place, old, node, caller)
            return [source, target]
        there = find(above, new_name)
        if there is not None and flags & NOREPLACE:
            raise Exists(f"{new_name!r} is there")
        if not isinstance(node, File):
            raise NotPermitted(f"{new_name!r} is there") if there is not None else node.refusal()
        if there is None:
            arc_paths.check_name(above.inner, new_name)
            arc_paths.check_file(new_name)
        if self.provisional is not None:
            self.provisional.rename(place, (old, node), (new, there), caller)
        elif there is not None:
            raise NotPermitted(f"{new_name!r} is there")
        else:
            self._move(place, old, new, (source, caller))
        return [source, target]

    def unlink(self, folder: Node, name: str, caller: Caller) -> None:
        """Remove one's own provisional file. Raises the refusal of any other node."""
        node = lookup(folder, name)
        place = folder.place if isinstance(folder, StoredFolder) else None
        if place is None or self.provisional is None or not isinstance(node, StoredFile | DraftFile):
            raise node.refusal()
        assert isinstance(folder, StoredFolder)
        self.provisional.remove(place, (_join(folder.inner, name), node), caller)

    def rmdir(self, folder: Node, name: str, caller: Caller) -> None:
        """Remove one's own empty folder. Raises NotEmpty, and the refusal of any other node."""
        node = lookup(folder, name)
        place = folder.place if isinstance(folder, StoredFolder) else None
        if place is None or self.provisional is None or not isinstance(node, StoredFolder):
            raise node.refusal()
        overlay = self._view.overlay
        if overlay.makers.folder_maker(place, node.inner) != caller.maker or node.place != place:
            raise node.refusal()
        if next(node.names(), None) is not None:
            raise NotEmpty(f"{node.inner} is not empty")
        if not overlay.remove_folder(place, node.inner):
            raise node.refusal()

    def may_change(self, node: Node, caller: Caller) -> None:
        """Allow setting mode, owner and times of a node, without effect. Raises its refusal, and Stale."""
        if isinstance(node, DraftFile):
            return
        self.check_given(node)
        place = node.place if isinstance(node, StoredFile | StoredFolder) else None
        if place is None or not isinstance(node, StoredFile | StoredFolder):
            raise node.refusal()
        self._check_owner(place, node.inner, caller, node)

    def is_recent(self, node: Node) -> bool:
        """Return whether a node is a user's recent addition, whose mode, owner and times may be set."""
        place = node.place if isinstance(node, StoredFile | StoredFolder) else None
        if place is None or not isinstance(node, StoredFile | StoredFolder):
            return isinstance(node, DraftFile)
        return self._view.overlay.makers.of(place, node.inner) is not None

    def check_given(self, node: Node) -> None:
        """Raise LookAgain if the file was renamed, and the kernel still uses its old name."""
        if isinstance(node, StoredFile) and node.place is not None:
            folder, _, name = node.inner.rpartition("/")
            if is_gone(self._view.overlay.get(node.place, folder, name)):
                raise LookAgain(f"{node.inner} has another name")

    def _check_owner(self, place: ArcVersion, path: str, caller: Caller, node: Node) -> None:
        ownership = self._view.overlay.makers.of(place, path)
        if ownership is None or ownership.maker != caller.maker:
            raise node.refusal()

    def _rewrite(self, place: ArcVersion, old: str, file: File, caller: Caller) -> None:
        """Turn the file `old` into data.xml."""
        draft = file.draft if isinstance(file, DraftFile) else self._drafts.get((place, old))
        # No close may confirm it meanwhile: the removed file would come back from git. Nor may it settle.
        held = self.provisional.held(place, (old, file), caller) if self.provisional is not None else nullcontext()
        with held, draft.lock if draft is not None else nullcontext():
            new = whole(file)
            confirmed = not isinstance(file, DraftFile) or bool(file.draft.blob)
            source = old if confirmed and self.provisional is None else ""
            self._documents.rewrite(place, new, caller.maker, source)
            if draft is not None and self._drafts.get((place, old)) is draft:
                del self._drafts[place, old]
                draft.dirty, draft.gone = False, True  # open handles have nothing left to confirm
            if self.provisional is not None:
                self.provisional.forget(place, old)
            elif draft is not None and not confirmed:
                self._view.overlay.removed(place, old)

    def _move(self, place: ArcVersion, old: str, new: str, who: tuple[ParentAndName, Caller]) -> None:
        draft = self._drafts.get((place, old))
        if draft is None:
            self._move_confirmed(place, old, new, who)
            return
        with draft.lock:
            if draft.blob:
                self._move_confirmed(place, old, new, who, draft)
            else:
                self._view.overlay.renamed(place, old, new)
            draft.path = new
            if self._drafts.pop((place, old), None) is draft:  # unless its last handle was closed since
                self._drafts[place, new] = draft

    def _move_confirmed(
        self, place: ArcVersion, old: str, new: str, who: tuple[ParentAndName, Caller], draft: Draft | None = None
    ) -> None:
        spot, caller = who
        shown = DraftFile(draft) if draft is not None and draft.shown else None
        if draft is not None:
            blob, size = draft.blob, draft.blob_size
        else:
            file = lookup(*spot)  # again: a close since the first lookup has made it a version
            if not isinstance(file, StoredFile):
                raise Replaced(f"{old!r} is not what it was")
            blob, size = file.version.blob, file.attrs().size
        reader = self._view.domain(place.domain).reader
        with Turnstile(self._view.archive.lock(place.domain)).shared():
            LockedHead.now(reader).check_free(place, new)
            ticket = self._journal.confirm(Move(place, old, new, author(caller.maker), int(time.time())))
            pending = PendingFile(blob, size, (ticket.log, ticket.number))
            self._view.overlay.moved(place, old, new, pending, shown)
        self._committer.added(place.domain)


def lookup(folder: Node, name: str) -> Node:
    """Return the node of a name. Raises NotFound, also if `folder` is no folder."""
    if not isinstance(folder, Folder):
        raise NotFound(f"there is no {name!r}")
    return folder.in_force(lambda current_folder: current_folder.lookup(name))


def has(folder: Node, name: str) -> bool:
    """Return whether a name exists."""
    return find(folder, name) is not None


def find(folder: Node, name: str) -> Node | None:
    """Return the node of a name, or None."""
    try:
        return lookup(folder, name)
    except NotFound:
        return None


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
