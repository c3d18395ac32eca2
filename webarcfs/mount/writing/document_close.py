"""Closes of data.xml: which data nodes are new, and that they become part of it (/Xm-3/).

New nodes go into the journal, and the document with them is a new version of the file. A refusal stores nothing, and is
written down.
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

#: Locks that keep two threads from extending one document at once: many, so that few documents share one.
_STRIPES = 1024


class NodeAddition(Confirmable):
    """The nodes that a document `new` has beyond an old one; the addition `source` goes with them."""

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
        """The ARC: each addition to its document is merged with those before."""
        return self.place

    @property
    def locks(self) -> Sequence[Lock]:
        """The ARC's, as good as: two threads must not extend one document at once."""
        return (self._documents.stripe(self.place),)

    def prepare(self) -> bool:
        """Find and check the nodes. Raises InvalidDocument, Exists, NotPermitted."""
        self.nodes = self._documents.nodes(self.old, self.new)
        return bool(self.nodes or self.source)

    def judged(self, main: LockedHead) -> Wanted:
        """Raises Stale, Exists."""
        document, before = self._documents.merged(self.place, main)
        self._merged = data_nodes.merge_nodes(document, self.nodes), (*before, self.nodes)
        return AddNodes(self.place, self.nodes, author(self._uid), int(time.time()), self.source), None

    def confirmed(self, ticket: JournalPosition) -> None:
        """The document with the nodes is a new version of the file."""
        document, nodes = self._merged
        number = ticket.log, ticket.number
        self._documents.show(self.place, PendingFile(blob_id(document), len(document), number, document, nodes))
        if self.source:
            self._documents.hide(self.place, self.source, number)

    def refused(self, error: BaseException) -> None:
        """Write down what is the writer's fault (/Xm-4/)."""
        if isinstance(error, InvalidDocument | Exists | NotPermitted):
            self._documents.refused(self.place, self._uid, error)


class BufferClose(NodeAddition):
    """What is new of a buffer."""

    def __init__(self, documents: DocumentWriter, document: DocumentBuffer) -> None:
        super().__init__(documents, document.place, document.maker.uid)
        self._document = document
        self._buffer = b""

    @property
    def locks(self) -> Sequence[Lock]:
        """The buffer's as well."""
        return (self._document.lock, *super().locks)

    def prepare(self) -> bool:
        """Raises what a write was refused for, too."""
        document = self._document
        if not document.dirty:
            return False
        self._buffer = document.written()
        # What was confirmed before is in `old`, in its place; in the buffer it may stand behind the end.
        more = bool(document.seen) and self._buffer.startswith(document.seen)
        self.old = document.old
        self.new = self.old + self._buffer[len(document.seen) :] if more else self._buffer
        if super().prepare():
            return True
        self._seen()
        return False

    def confirmed(self, ticket: JournalPosition) -> None:
        """The next close of the buffer goes on from here."""
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
        """Add the nodes that a document has beyond the one that is there; the addition `source` goes with that.

        Raises InvalidDocument, Exists, NotPermitted, Stale, OSError.
        """
        addition = NodeAddition(self, place, uid, (self.current(place), new))
        addition.source = source
        self._confirmer.one(addition)

    def refused(self, place: ArcVersion, uid: int, error: WebarcError) -> None:
        """Write down what was wrong (/Xm-4/)."""
        who = author(uid)
        path = f"/{place.domain}/{place.arc}/{DATA_XML}"
        validation_log.refused(self._view.archive, f"{who.name} <{who.mail}>", path, error)

    def current(self, place: ArcVersion) -> bytes:
        """The document as this mount shows it now. Raises Stale."""
        return self.merged(place, LockedHead.now(self._view, place.domain))[0]

    # -- for the additions -------------------------------------------------------------------------------------------

    def stripe(self, place: ArcVersion) -> threading.Lock:
        """The lock of a place, and of some others."""
        return self._stripes[hash(place) % _STRIPES]

    def nodes(self, old: bytes, new: bytes) -> bytes:
        """What is new in a document, if it is as schemas want it. Raises InvalidDocument, Exists, NotPermitted."""
        return data_nodes.extended(old, new, self._schemas.judge)

    def merged(self, place: ArcVersion, main: LockedHead) -> tuple[bytes, tuple[bytes, ...]]:
        """Main's document with what is pending here; and that, without what main has by now. Raises Stale."""
        document, kept = main.document(place), []
        for nodes in self._view.overlay.nodes(place):
            try:
                document = data_nodes.merge_nodes(document, nodes)
            except Exists:
                continue
            kept.append(nodes)
        return document, tuple(kept)

    def show(self, place: ArcVersion, pending: PendingFile) -> None:
        """A document is in the journal."""
        self._view.overlay.confirmed(place, DATA_XML, pending)

    def hide(self, place: ArcVersion, path: str, number: Number) -> None:
        """An addition became nodes of the document."""
        self._view.overlay.gone(place, path, number)
