"""Writing, for every adapter: new files in current ARCs from create to last close, and data.xml (/Ar-1/, /Ar-10/).

`confirm` and `release` wait for the journal, and `tell` (the adapter's) for the kernel, so the threads that call them
take no requests (operations.py). All other methods return at once. Locks as in confirmation.py; no lock is held during
a notification of the kernel.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence

from webarcfs.archive.additions.journal import Journal, ProvisionalJournal
from webarcfs.archive.document.schemas import Schemas
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.additions import ArcVersion
from webarcfs.archive.model.errors import Exists, NotPermitted, Stale, WebarcError
from webarcfs.vfs.domain_states import DomainState
from webarcfs.vfs.folders import StoredFile, StoredFolder
from webarcfs.vfs.node import Caller, Folder, Maker, Node
from webarcfs.vfs.overlay import Ownership
from webarcfs.vfs.root import current_folder
from webarcfs.vfs.view import SchemaFolder, View
from webarcfs.writing import confirmation
from webarcfs.writing.addition_names import NewNames, ProvisionalNames, has, lookup
from webarcfs.writing.confirmation import (
    BufferClose,
    Committer,
    Confirmable,
    Confirmer,
    DocumentWriter,
    Done,
    NewFile,
    Outcome,
)
from webarcfs.writing.drafts import (
    LITTLE,
    DocumentBuffer,
    Draft,
    DraftFile,
    Opened,
    OpenFiles,
    SchemaDraft,
    whole,
)

#: Folders of one state that are remembered.
_NEAR = 1_000

_log = logging.getLogger(__name__)


class Writer:
    """The additions of one mount; `names` has the operations on their names.

    `tell` makes the kernel drop a name in a folder, and the folder's listing.
    """

    def __init__(  # noqa: PLR0917 # the parts of a mount
        self,
        view: View,
        journal: Journal,
        committer: Committer,
        schemas: Schemas,
        tell: Callable[[Folder, str], None] | None = None,
        provisional: ProvisionalJournal | None = None,
    ) -> None:
        self._view = view
        self._journal = journal
        self._committer = committer
        self._provisional = provisional
        self.confirmer = Confirmer(view, journal, committer, provisional)
        self._documents = DocumentWriter(view, self.confirmer, schemas)
        self._schemas = schemas
        self.files = OpenFiles(view.overlay, provisional)
        names = (
            ProvisionalNames(view, provisional, self.confirmer, self.files.drafts) if provisional is not None else None
        )
        self.names = NewNames(view, journal, committer, self._documents, self.files.drafts, names)
        #: Makes the kernel look up a name of a folder again.
        self.tell = tell or _tell_nobody
        self._near: tuple[DomainState | None, dict[str, Node]] = (None, {})

    def create(self, folder: Node, name: str, caller: Caller) -> tuple[Opened, DraftFile]:
        """Make a new file, open for writing. Raises Exists, the folder's refusal, and the errors of `names`."""
        maker = caller.maker
        if isinstance(folder, SchemaFolder) and not has(folder, name):
            return self._create_schema(folder, name, maker)
        place, path = self.names.free(folder, name)
        arc_paths.check_file(name, is_provisional=self._provisional is not None)
        draft = Draft(place, path, maker, folder.attrs().mtime, self._journal.draft)
        draft.provisional = self._provisional is not None
        node = DraftFile(draft)
        if not self._view.overlay.reserve(place, path, node, Ownership(maker)):
            draft.let_go()
            raise Exists(f"{name!r} is there")
        self.files.drafts[place, path] = draft
        return _in_use(Opened(draft)), node

    def make(self, folder: Node, name: str, caller: Caller) -> tuple[Opened, DraftFile]:
        """Make a new file without opening it (mknod(2)), which its maker may open to write; then `confirm`.

        Raises the errors of `create`, and the refusal of `.schemas/`, where an empty file is never a schema.
        """
        if isinstance(folder, SchemaFolder):
            raise Exists(f"{name!r} is there") if has(folder, name) else folder.refusal()
        opened, node = self.create(folder, name, caller)
        if self._provisional is None:
            self.release_kept()
            self.files.keep(node.draft)
        self.closing(opened)
        return opened, node

    def release_kept(self) -> None:
        """Release files that are kept open for a process that did not come."""
        for opened in self.files.kept_for_nothing():
            self.release(opened)

    def _create_schema(self, folder: SchemaFolder, name: str, maker: Maker) -> tuple[Opened, DraftFile]:
        draft = SchemaDraft(folder, name, maker, self._journal.draft)
        node = DraftFile(draft)
        try:
            draft.show(node)
        except Exists:
            draft.let_go()
            raise
        return Opened(draft), node

    def open(self, node: Node, flags: int, caller: Caller) -> Opened:
        """Open a node for writing: the caller's own draft (see `files.open_draft`), or data.xml.

        Raises the node's refusal, and Stale for a file that was renamed since.
        """
        append = bool(flags & os.O_APPEND)
        if isinstance(node, StoredFile) and node.is_document and node.place is not None:
            try:
                old = whole(node)
            except Stale:  # other writers extended it since the lookup
                old = self._documents.current(node.place)
            document = DocumentBuffer(node.place, old, caller.maker, rewriting=bool(flags & os.O_TRUNC))
            return Opened(document, direct=True, append=append)
        if not isinstance(node, DraftFile) or node.draft.maker != caller.maker:
            self.names.check_given(node)
            raise node.refusal()
        draft = node.draft
        draft.hold()
        with draft.lock:
            draft.handles += 1
        kept = self.files.kept(draft)
        if kept is not None:
            self.release(kept)
        opened = Opened(draft)
        try:
            if flags & os.O_TRUNC:
                self.truncate(opened, 0)
        except BaseException:
            self.release(opened)
            raise
        return _in_use(opened)

    def write(self, opened: Opened, data: bytes, offset: int | None, *, mapped: bool = False) -> int:
        """Write at `offset`, or at the end. Raises Stale as soon as the ARC is known to be replaced.

        `mapped` data come from the kernel's pages, by any handle of the file: that handle need not be in use.
        """
        draft = opened.draft
        try:
            if not isinstance(draft, SchemaDraft):
                confirmation.check_known(self._view, draft.place)
        except Stale:
            draft.dirty = True  # so that its close fails, too
            raise
        try:
            with draft.lock:
                self._use(opened, mapped=mapped)
                return draft.write(data, None if opened.append else offset)
        except WebarcError as error:
            if isinstance(draft, DocumentBuffer):
                self._documents.refused(draft.place, draft.maker, error)
            raise

    def truncate(self, opened: Opened, size: int) -> None:
        """Change a file's length (ftruncate(2)). Raises OSError, Stale, InvalidDocument."""
        with opened.draft.lock:
            self._use(opened)
            opened.draft.truncate(size)

    def cut(self, draft: Draft, size: int) -> Opened | None:
        """Change an open file's length by its name (truncate(2)).

        Return our own handle of it, for the caller to release: no handle of a process may be there to confirm it.
        """
        draft.truncate(size)
        return self.files.kept(draft)

    def allocate(self, opened: Opened, mode: int, offset: int, length: int) -> None:
        """Reserve space for a file (fallocate(2)). Raises OSError, Stale, NotSupported."""
        with opened.draft.lock:
            self._use(opened)
            opened.draft.allocate(mode, offset, length)

    def _use(self, opened: Opened, *, mapped: bool = False) -> None:
        """Mark a handle as used, even after its close. Under the draft's lock."""
        if isinstance(opened.draft, Draft):
            if not mapped:
                _in_use(opened)
            self.files.show(opened.draft)

    def closing(self, opened: Opened) -> None:
        """Mark a handle as closed: unless it was copied, it is no longer used. `confirm` follows."""
        if isinstance(opened.draft, Draft):
            opened.draft.in_use.discard(opened)

    def is_confirmed(self, opened: Opened) -> bool:
        """Return whether a close or fsync has nothing to do."""
        draft = opened.draft
        return not draft.dirty and not (isinstance(draft, Draft) and draft.shown and not draft.in_use)

    def confirm(self, opened: Opened) -> None:
        """Confirm a close or an fsync: new data become durable, then visible. Raises Stale, Exists, OSError."""
        for error in self.confirm_all([opened]):
            if error is not None:
                raise error

    def confirm_all(self, opened: Sequence[Opened]) -> Iterator[BaseException | None]:
        """Confirm several handles of one domain, at the cost of one; yield each error or None when it is visible.

        All are durable before the first is yielded. A schema is confirmed alone.
        """
        drafts = [handle.draft for handle in opened]
        if isinstance(drafts[0], SchemaDraft):
            yield self._confirm_schema(drafts[0])
            return
        outcomes = self.confirmer.confirm([self._confirming(draft) for draft in drafts])
        for draft, outcome in zip(drafts, outcomes, strict=True):
            yield self._confirmed(draft, outcome)

    def _confirming(self, draft: Draft | DocumentBuffer) -> Confirmable:
        return (
            BufferClose(self._documents, draft)
            if isinstance(draft, DocumentBuffer)
            else NewFile(draft, self._view, provisional=self._provisional is not None)
        )

    def _confirmed(self, draft: Draft | DocumentBuffer, outcome: Outcome) -> BaseException | None:
        """Notify the kernel of the outcome. A file without a used handle becomes a version."""
        error, closed = None, False
        if isinstance(outcome, BaseException):
            error = outcome
            draft.failed = True
            _log.warning("%s of %s: %s was not added: %s", draft.place.arc, draft.place.domain, draft.path, error)
            if isinstance(draft, Draft) and not draft.blob:
                self._view.overlay.removed(draft.place, draft.path)
        if isinstance(draft, Draft):
            with draft.lock:
                closed = not draft.dirty and not draft.in_use and self.files.hide(draft)
        elif outcome is True:
            closed = True
        # Also after a refusal: the kernel caches a file, or the written size of data.xml.
        if closed or (error is not None and (isinstance(draft, DocumentBuffer) or not draft.blob)):
            self.tell_of(draft.place, draft.path)
        return error

    def release_at_once(self, opened: Opened) -> bool:
        """Release a handle if that needs no wait; return whether it was released."""
        draft = opened.draft
        if isinstance(draft, SchemaDraft):
            if draft.failed and draft.handles == 1:
                draft.hide()  # a writer that saw the refusal may use the name at once
            return False
        if draft.size > LITTLE or not draft.lock.acquire(blocking=False):
            return False
        try:
            if draft.dirty or (isinstance(draft, Draft) and draft.shown):
                return False
            self.release(opened)
        finally:
            draft.lock.release()
        return True

    def release(self, opened: Opened) -> None:
        """Release a handle; the last one makes the file final. Confirms what was written after the last close."""
        draft = opened.draft
        self.closing(opened)
        with draft.lock:
            draft.handles -= 1
            last = not draft.handles
        try:
            if last and draft.dirty and not draft.failed:
                self.confirm(opened)
        finally:
            if last and isinstance(draft, SchemaDraft):
                draft.hide()
                self.tell(draft.folder, draft.path)
            elif last and isinstance(draft, Draft) and self.files.closed(draft):
                self.tell_of(draft.place, draft.path)
            draft.let_go()

    def discard(self, opened: Opened) -> None:
        """Give up a new file of one handle that was never confirmed: nothing of it stays, and its name is free.

        Of a document, what was not confirmed is given up. Raises NotPermitted for a file that was confirmed: it stays.
        """
        draft = opened.draft
        with draft.lock:
            if isinstance(draft, Draft) and draft.blob:
                raise NotPermitted(f"{draft.path!r} is kept already")
            was_refused = draft.failed
            draft.dirty, draft.failed = False, True
            if isinstance(draft, Draft) and not isinstance(draft, SchemaDraft):
                draft.removed = True
                if self.files.drafts.get((draft.place, draft.path)) is draft:
                    del self.files.drafts[draft.place, draft.path]
                    if not was_refused:  # else another one may have the name by now
                        self._view.overlay.removed(draft.place, draft.path)
        self.release(opened)

    def sync_folder(self, folder: Node, done: Done) -> None:
        """Commit the additions to the domain of `folder`, then call `done`."""
        place = folder.place if isinstance(folder, StoredFolder) else None
        if place is None:
            done(None)
        else:
            self._committer.sync(place.domain, done)

    def finish(self) -> None:
        """Confirm the files that were never closed: no process can write any more."""
        self.tell = _tell_nobody  # the kernel's session may have ended, and its descriptor may be another file's
        for draft in list(self.files.drafts.values()):
            draft.handles = 1
            try:
                self.release(Opened(draft))
            except Exception as error:
                _log.warning("%s of %s: %s is lost: %s", draft.place.arc, draft.place.domain, draft.path, error)

    # ----------------------------------------------------------------------------------------------------------------

    def _confirm_schema(self, draft: SchemaDraft) -> BaseException | None:
        """Store a schema in its folder, if it is valid."""
        if draft.dirty:
            try:
                draft.store(self._schemas)
            except BaseException as error:
                draft.failed = True
                _log.warning(".schemas/%s was not added: %s", draft.path, error)
                draft.refused(self._view.archive, error)
                return error
            self.tell(draft.folder, draft.path)
        return None

    def tell_of(self, place: ArcVersion, path: str) -> None:
        """Make the kernel drop its entry of a name in an ARC."""
        folder, _, name = path.rpartition("/")
        try:
            node = self._folder(place, f"{place.arc}/{folder}".rstrip("/"))
        except WebarcError:
            return  # its ARC is gone
        if isinstance(node, Folder):
            self.tell(node, name)

    def _folder(self, place: ArcVersion, path: str) -> Node:
        """Return a folder of an ARC in the state in force; cached, since additions often share an ARC."""
        state = self._view.domain(place.domain)
        known, folders = self._near
        if known is not state or len(folders) >= _NEAR:
            known, folders = self._near = state, {}
        node = folders.get(path)
        if node is None:
            above, _, name = path.rpartition("/")
            node = lookup(self._folder(place, above) if above else current_folder(self._view, state), name)
            folders[path] = node
        return node


def _in_use(opened: Opened) -> Opened:
    """Mark a handle as used."""
    if isinstance(opened.draft, Draft):
        opened.draft.in_use.add(opened)
    return opened


def _tell_nobody(_folder: Folder, _name: str) -> None:
    """Do nothing: no kernel caches anything."""
