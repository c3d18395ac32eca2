"""The files open for writing through one mount: their handles, and what their names mean meanwhile.

The maker of a provisional file may open it again: it becomes a draft once more, with the bytes that were confirmed
last. The kernel looks the name up before it opens the draft (it writes to one inode of a file), so a handle of the
mount's own keeps the draft until then. Safe for any thread; no method waits for the disk's confirmation.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from webarcfs.archive.journal.provisional_journal import ProvisionalJournal
from webarcfs.archive.journal.provisional_states import FileKey
from webarcfs.archive.model.addition import ArcVersion
from webarcfs.archive.model.errors import NotFound
from webarcfs.mount.writing.document_buffer import DocumentBuffer
from webarcfs.mount.writing.draft import Draft, DraftFile, Drafts
from webarcfs.mount.writing.schema_draft import SchemaDraft
from webarcfs.view.caller import Caller
from webarcfs.view.node import Node
from webarcfs.view.state.overlay import Overlay
from webarcfs.view.state.ownership import GRACE, Ownership
from webarcfs.view.tree.files import StoredFile, version_ino

#: Files up to this size, in bytes, are released on the request's thread.
LITTLE = 1 << 20
#: Seconds for which a draft is kept for an open that the kernel should send at once.
KEPT = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A handle for writing. `direct`: the kernel may not cache its pages. `append`: writes ignore the offset.

    Each is distinct, even if two belong to the same file.
    """

    draft: Draft | DocumentBuffer
    direct: bool = False
    append: bool = False

    @property
    def is_dear(self) -> bool:
        """Whether confirming it may take long, and no other close should wait for it."""
        return isinstance(self.draft, SchemaDraft) or self.draft.size > LITTLE


class OpenFiles:
    """The drafts of one mount, by name."""

    def __init__(self, overlay: Overlay, provisional: ProvisionalJournal | None) -> None:
        self.drafts: Drafts = {}
        self._overlay = overlay
        self._provisional = provisional
        self._reviving = threading.Lock()
        #: Handles of our own, and until when they are kept (monotonic).
        self._kept: dict[Draft, tuple[Opened, float]] = {}

    def of(self, node: Node) -> Draft | None:
        """Return the draft of a version that is still open."""
        if not isinstance(node, StoredFile) or node.place is None:
            return None
        return self.drafts.get((node.place, node.inner))

    def is_open(self, node: Node) -> bool:
        """Return whether a version belongs to a file that is still open: its name may mean the draft again."""
        return bool(self.drafts) and self.of(node) is not None

    def open_draft(self, node: Node, caller: Caller) -> DraftFile | None:
        """Return the draft of a file that its maker has open or may open again, and show it under its name; or None.

        `node` is a version, or a draft that is closed by now. Raises OSError.
        """
        match node:
            case StoredFile(place=ArcVersion() as place):
                key, mtime = (place, node.inner), node.version.mtime
            case DraftFile() if node.draft.has_name and not isinstance(node.draft, SchemaDraft):
                key, mtime = (node.draft.place, node.draft.path), node.draft.mtime
            case _:
                return None
        draft = self.drafts.get(key)
        if draft is None or (draft.maker.uid == caller.uid and not self._hold(draft)):
            with self._reviving:
                draft = self.drafts.get(key) or self._revived(key, mtime, caller)
        if draft is None or draft.maker.uid != caller.uid:
            return None
        with draft.lock:
            self.show(draft)
        return DraftFile(draft)

    def _hold(self, draft: Draft) -> bool:
        """Keep a draft: its last handle may be released before the kernel opens it. Return False if it is over."""
        with draft.lock:
            if self.drafts.get((draft.place, draft.path)) is not draft:
                return False
            if draft not in self._kept:
                draft.hold()
                draft.handles += 1
                self._kept[draft] = Opened(draft), time.monotonic() + KEPT
            return True

    def _revived(self, key: FileKey, mtime: int, caller: Caller) -> Draft | None:
        """Make a draft of a provisional file of the caller's."""
        place, path = key
        if self._provisional is None or not self._overlay.makers.reopened(place, path, caller.uid):
            return None
        try:
            state = self._provisional.state(key)
            if state is None:
                raise NotFound(f"{path} is not in the journal")
            draft = Draft(place, path, Ownership(caller.uid), mtime, self._provisional.draft)
            with self._provisional.body(key) as body:
                draft.take_over(state.blob, body)
            draft.provisional = True
            draft.ino = version_ino(place.domain, f"{place.arc}/{path}", state.blob, mtime)
        except BaseException:
            self._overlay.makers.closed(place, path)
            raise
        self.drafts[key] = draft
        self._kept[draft] = Opened(draft), time.monotonic() + KEPT
        return draft

    def keep(self, draft: Draft) -> None:
        """Keep a draft open that mknod(2) made, where a closed file is final: its maker may open it for a while."""
        draft.hold()
        with draft.lock:
            draft.handles += 1
        self._kept[draft] = Opened(draft), time.monotonic() + GRACE

    def kept(self, draft: Draft) -> Opened | None:
        """Take our own handle of a draft; the caller releases it."""
        kept = self._kept.pop(draft, None) if self._kept else None
        return kept[0] if kept is not None else None

    def kept_for_nothing(self) -> list[Opened]:
        """Take our own handles whose time is over; the caller releases them."""
        now = time.monotonic()
        over = [draft for draft, (_, until) in list(self._kept.items()) if until < now]
        return [opened for draft in over if (opened := self.kept(draft)) is not None]

    def show(self, draft: Draft) -> None:
        """Make the name of a draft mean the draft, and not the version confirmed last. Under its lock."""
        if not draft.shown and draft.blob and draft.has_name:
            self._overlay.shown(draft.place, draft.path, DraftFile(draft))
            draft.shown = True

    def hide(self, draft: Draft) -> bool:
        """Make the name of a draft mean the version confirmed last; return whether that changed. Under its lock."""
        if not draft.shown or not draft.blob or not draft.has_name:
            return False
        self._overlay.closed(draft.place, draft.path, DraftFile(draft))
        draft.shown = False
        return True

    def closed(self, draft: Draft) -> bool:
        """Note that the last handle of a draft was closed; return whether its name means another version now."""
        if draft.removed or self.drafts.get((draft.place, draft.path), draft) is not draft:  # a successor has the name
            return False
        with draft.lock:
            if draft.handles:  # it was opened meanwhile
                return False
            hidden = self.hide(draft)
            # Before it is no draft any more: whoever finds none opens it again, if it is closed.
            self._overlay.makers.closed(draft.place, draft.path, is_empty=not draft.blob_size)
            self.drafts.pop((draft.place, draft.path), None)
        return hidden
