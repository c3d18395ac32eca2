"""Closes of data.xml: finds the new data nodes and adds them to the document (/Xm-3/).

New nodes go into the journal, and the document with them is a new version of the file. A refusal stores nothing, and is
logged.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Sequence

from webarcfs.archive.document import data_nodes, validation_log
from webarcfs.archive.document.schemas import Schemas
from webarcfs.archive.journal.journal import JournalPosition, Wanted
from webarcfs.archive.model.addition import AddNodes, ArcVersion, blob_id
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import Exists, InvalidDocument, NotPermitted, WebarcError
from webarcfs.mount.writing.confirm import Confirmable, Confirmer, Lock
from webarcfs.mount.writing.document_buffer import DocumentBuffer
from webarcfs.mount.writing.preconditions import LockedHead
from webarcfs.view.caller import author
from webarcfs.view.state.overlay import Number, PendingFile
from webarcfs.view.tree.view import View

#: Locks that keep two threads from extending one document at once; many, so that few documents share one.
_STRIPES = 1024


class NodeAddition(Confirmable):
    """The nodes that the document `new` has beyond `old`; the addition `source` is removed with them."""

    def __init__(
        self, documents: DocumentWriter, place: ArcVersion, uid: int, texts: tuple[bytes, bytes] = (b"", b"")
    ) -> None:
        self.place = place
        self.source = ""
        self.nodes = b""
        self.old, self.new = texts
        self._documents = documents
        self._uid = uid
        self._merged: tuple[bytes, tuple[bytes, ...]] = (b"", ())

    @property
    def key(self) -> Hashable:
        """The ARC: each addition to its document is merged with the earlier ones."""
        return self.place

    @property
    def locks(self) -> Sequence[Lock]:
        """The lock of the ARC's stripe: two threads must not extend one document at once."""
        return (self._documents.stripe(self.place),)

    def prepare(self) -> bool:
        """Find and check the nodes. Raises InvalidDocument, Exists, NotPermitted."""
        self.nodes = self._documents.nodes(self.old, self.new)
        return bool(self.nodes or self.source)

    def judged(self, main: LockedHead) -> Wanted:
        """Merge the nodes with the current document. Raises Stale, Exists."""
        document, before = self._documents.merged(self.place, main)
        self._merged = data_nodes.merge_nodes(document, self.nodes), (*before, self.nodes)
        return AddNodes(self.place, self.nodes, author(self._uid), int(time.time()), self.source), None

    def confirmed(self, ticket: JournalPosition) -> None:
        """Show the document with the nodes as a new version of the file."""
        document, nodes = self._merged
        number = ticket.log, ticket.number
        self._documents.show(self.place, PendingFile(blob_id(document), len(document), number, document, nodes))
        if self.source:
            self._documents.hide(self.place, self.source, number)

    def refused(self, error: BaseException) -> None:
        """Log an error of the writer's (/Xm-4/)."""
        if isinstance(error, InvalidDocument | Exists | NotPermitted):
            self._documents.refused(self.place, self._uid, error)


class BufferClose(NodeAddition):
    """The unconfirmed nodes of a buffer."""

    def __init__(self, documents: DocumentWriter, document: DocumentBuffer) -> None:
        super().__init__(documents, document.place, document.maker.uid)
        self._document = document
        self._buffer = b""

    @property
    def locks(self) -> Sequence[Lock]:
        """The buffer's lock, too."""
        return (self._document.lock, *super().locks)

    def prepare(self) -> bool:
        """Also raises the refusal of a write."""
        document = self._document
        if not document.dirty:
            return False
        self._buffer = document.written()
        # Confirmed nodes are in `old`, in their place; in the buffer they may follow the end of the document.
        more = bool(document.seen) and self._buffer.startswith(document.seen)
        self.old = document.old
        self.new = self.old + self._buffer[len(document.seen) :] if more else self._buffer
        if super().prepare():
            return True
        self._seen()
        return False

    def confirmed(self, ticket: JournalPosition) -> None:
        """Also make the next close of the buffer continue from here."""
        super().confirmed(ticket)
        self._document.old = data_nodes.merge_nodes(self.old, self.nodes)
        self._seen()

    def _seen(self) -> None:
        self._document.seen, self._document.dirty, self._document.failed = self._buffer, False, False


class DocumentWriter:
    """The data nodes that are added through one mount."""

    def __init__(self, view: View, confirmer: Confirmer, schemas: Schemas) -> None:
        self._view = view
        self._confirmer = confirmer
        self._schemas = schemas
        self._stripes = [threading.Lock() for _ in range(_STRIPES)]

    def rewrite(self, place: ArcVersion, new: bytes, uid: int, source: str) -> None:
        """Add the nodes that a document has beyond the current one; remove the addition `source` in the same step.

        Raises InvalidDocument, Exists, NotPermitted, Stale, OSError.
        """
        addition = NodeAddition(self, place, uid, (self.current(place), new))
        addition.source = source
        self._confirmer.one(addition)

    def refused(self, place: ArcVersion, uid: int, error: WebarcError) -> None:
        """Log the refusal (/Xm-4/)."""
        who = author(uid)
        path = f"/{place.domain}/{place.arc}/{DATA_XML}"
        validation_log.refused(self._view.archive, f"{who.name} <{who.mail}>", path, error)

    def current(self, place: ArcVersion) -> bytes:
        """Return the document as this mount shows it now. Raises Stale."""
        return self.merged(place, LockedHead.now(self._view.domain(place.domain).reader))[0]

    # -- for the additions -------------------------------------------------------------------------------------------

    def stripe(self, place: ArcVersion) -> threading.Lock:
        """Return the lock of a place; several places share one."""
        return self._stripes[hash(place) % _STRIPES]

    def nodes(self, old: bytes, new: bytes) -> bytes:
        """Return the new nodes of a document that fits its schemas. Raises InvalidDocument, Exists, NotPermitted."""
        return data_nodes.extended(old, new, self._schemas.judge)

    def merged(self, place: ArcVersion, main: LockedHead) -> tuple[bytes, tuple[bytes, ...]]:
        """Return main's document with the pending nodes, and those nodes that main does not have yet. Raises Stale."""
        document, kept = main.document(place), []
        for nodes in self._view.overlay.nodes(place):
            try:
                document = data_nodes.merge_nodes(document, nodes)
            except Exists:
                continue
            kept.append(nodes)
        return document, tuple(kept)

    def show(self, place: ArcVersion, pending: PendingFile) -> None:
        """Show a document that is in the journal."""
        self._view.overlay.confirmed(place, DATA_XML, pending)

    def hide(self, place: ArcVersion, path: str, number: Number) -> None:
        """Hide an addition that became nodes of the document."""
        self._view.overlay.gone(place, path, number)
