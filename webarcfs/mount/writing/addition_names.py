"""The names of additions: rules for new names, renames inside an ARC, and permissions (/Ar-1/).

`rename` waits for the journal, so the threads that call it take no requests (workers.py). Locks as in writer.py. Those
of provisional files are in provisional_names.py.
"""

from __future__ import annotations

import time
from contextlib import nullcontext

from webarcfs.archive.git.objects import Entry
from webarcfs.archive.journal.journal import Journal
from webarcfs.archive.model import name_rules
from webarcfs.archive.model.addition import ArcVersion, Move
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Exists, LookAgain, NotEmpty, NotFound, NotPermitted, Replaced
from webarcfs.archive.system.locks import Turnstile
from webarcfs.mount.writing import preconditions
from webarcfs.mount.writing.committer import Committer
from webarcfs.mount.writing.document_buffer import whole
from webarcfs.mount.writing.document_close import DocumentWriter
from webarcfs.mount.writing.draft import Draft, DraftFile, Drafts
from webarcfs.mount.writing.preconditions import LockedHead
from webarcfs.mount.writing.provisional_names import ProvisionalNames
from webarcfs.view.caller import Caller, author
from webarcfs.view.node import File, Folder, Node
from webarcfs.view.state.overlay import PendingFile, is_gone
from webarcfs.view.state.ownership import Ownership
from webarcfs.view.tree.files import StoredFile
from webarcfs.view.tree.folders import StoredFolder
from webarcfs.view.tree.view import View

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

        Raises Exists, the folder's refusal, Stale, and the errors of `name_rules.check`.
        """
        if has(folder, name):
            raise Exists(f"{name!r} is there")
        if not isinstance(folder, StoredFolder) or folder.place is None:
            raise folder.refusal()
        name_rules.check(folder.inner, name)
        preconditions.check_known(self._view, folder.place)
        return folder.place, _join(folder.inner, name)

    def mkdir(self, folder: Node, name: str, caller: Caller) -> None:
        """Make a folder. Only this mount remembers it until it contains a file: git stores no empty folder."""
        place, path = self.free(folder, name)
        if not self._view.overlay.reserve(place, path, Entry(name, "", True), Ownership(caller.uid)):
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
            name_rules.check(above.inner, new_name)
            name_rules.check_file(new_name)
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
        if overlay.makers.folder_maker(place, node.inner) != caller.uid or node.place != place:
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
        made = self._view.overlay.makers.of(place, path)
        if made is None or made.uid != caller.uid:
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
            self._documents.rewrite(place, new, caller.uid, source)
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
            ticket = self._journal.confirm(Move(place, old, new, author(caller.uid), int(time.time())))
            pending = PendingFile(blob, size, (ticket.log, ticket.number))
            self._view.overlay.moved(place, old, new, pending, shown)
        self._committer.added(place.domain)


def lookup(folder: Node, name: str) -> Node:
    """Return the node of a name. Raises NotFound, also if `folder` is no folder."""
    if not isinstance(folder, Folder):
        raise NotFound(f"there is no {name!r}")
    return folder.in_force(lambda each: each.lookup(name))


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
