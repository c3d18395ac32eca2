"""Writing to data.xml: private buffers, of which a close makes data nodes (/Xm-3/, DESIGN.md section 5).

A writer gets a copy of the document; what is appended or rewritten there nobody sees. Its close says which nodes are
new; they go into the journal, and the document with them is a new version of the file. A refusal stores nothing. What
can be told while it is written fails the write: shells lose what close says.
"""

from __future__ import annotations

import threading
import time

from webarcfs.archive import datanodes, validationlog
from webarcfs.archive.additions import AddNodes, Place, blob_id
from webarcfs.archive.arcxml import LARGEST
from webarcfs.archive.errors import Exists, InvalidDocument, NotPermitted, NotSupported, WebarcError
from webarcfs.archive.journal import Journal
from webarcfs.archive.layout import DATA_XML
from webarcfs.archive.locks import Turnstile
from webarcfs.archive.schemas import Schemas
from webarcfs.mount import judging
from webarcfs.mount.authors import author
from webarcfs.mount.base import File
from webarcfs.mount.committer import Committer
from webarcfs.mount.makers import Made
from webarcfs.mount.overlay import Pending
from webarcfs.mount.view import View

#: Locks that keep two threads from extending one document at once.
_STRIPES = 64


class Document:
    """The private buffer of one handle. Its methods are those of a draft (drafts.py)."""

    path = DATA_XML
    #: No blob of it is confirmed as a file.
    blob = ""

    def __init__(self, place: Place, old: bytes, maker: Made, *, rewriting: bool) -> None:
        self.place = place
        self.maker = maker
        self.old = old
        #: The buffer as it was confirmed last.
        self.seen = b""
        self.lock = threading.RLock()
        self.handles = 1
        self.dirty = False
        self.failed = False
        self._bytes = bytearray() if rewriting else bytearray(old)
        # What is written in order can be judged as it comes.
        self._judge: datanodes.Judge | None = datanodes.Judge(old, rewriting=rewriting)
        self._refused: WebarcError | None = None

    @property
    def size(self) -> int:
        """Bytes in the buffer."""
        return len(self._bytes)

    def read(self, offset: int, size: int) -> bytes:
        """What the writer sees."""
        return bytes(self._bytes[offset : offset + size])

    def write(self, data: bytes, offset: int | None) -> int:
        """Write at `offset`, or at the end. Raises what it is refused for, as early as it is certain."""
        with self.lock:
            at = len(self._bytes) if offset is None else offset
            _check_size(at + len(data))
            if self._judge is not None and at == len(self._bytes):
                try:
                    self._judge.feed(data)
                except WebarcError as error:
                    self._refused = error
                    raise
            else:
                self._judge = None
            self.dirty, self.failed = True, False
            self._bytes.extend(bytes(max(0, at - len(self._bytes))))
            self._bytes[at : at + len(data)] = data
        return len(data)

    def truncate(self, size: int) -> None:
        """Cut it, or lengthen it with NULs. Raises InvalidDocument when it is too large."""
        with self.lock:
            _check_size(size)
            if size != len(self._bytes):
                self._judge = datanodes.Judge(self.old, rewriting=True) if size == 0 else None
                self.dirty, self.failed = size > 0, False
                del self._bytes[size:]
                self._bytes.extend(bytes(size - len(self._bytes)))

    def allocate(self, _mode: int, _offset: int, _length: int) -> None:
        """There is nothing to reserve."""
        raise NotSupported("no space is reserved for a document")

    def hold(self) -> None:
        """Handles are counted only."""

    def let_go(self) -> None:
        """Handles are counted only."""

    def written(self) -> bytes:
        """The document as it was written. Raises what a write was refused for."""
        if self._refused is not None:
            raise self._refused.with_traceback(None)
        return bytes(self._bytes)


class Documents:
    """The data nodes that are added through one mount."""

    def __init__(self, view: View, journal: Journal, committer: Committer, schemas: Schemas) -> None:
        self._schemas = schemas
        self._view = view
        self._journal = journal
        self._committer = committer
        self._stripes = [threading.Lock() for _ in range(_STRIPES)]

    def confirm(self, document: Document) -> bool:
        """Make data nodes of what was written; False if that was nothing."""
        with document.lock:
            if not document.dirty:
                return False
            new = document.written()
            # What was confirmed before is in `old`, in its place; in the buffer it may stand behind the end.
            more = bool(document.seen) and new.startswith(document.seen)
            whole = document.old + new[len(document.seen) :] if more else new
            nodes = self.extend(document.place, document.old, whole, document.maker.uid)
            if nodes:
                document.old = datanodes.merge_nodes(document.old, nodes)
            document.seen, document.dirty, document.failed = new, False, False
        return bool(nodes)

    def extend(self, place: Place, old: bytes, new: bytes, uid: int, source: str = "") -> bytes:
        """Add the nodes that a document has beyond an old one; the addition `source` goes with that.

        Returns them. Raises InvalidDocument, Exists, NotPermitted, Stale, OSError.
        """
        try:
            nodes = datanodes.extended(old, new, self._schemas.judge)
            self._add(place, nodes, uid, source)
        except (InvalidDocument, Exists, NotPermitted) as error:
            self.refused(place, uid, error)
            raise
        return nodes

    def refused(self, place: Place, uid: int, error: WebarcError) -> None:
        """Write down what was wrong (/Xm-4/)."""
        who = author(uid)
        path = f"/{place.domain}/{place.arc}/{DATA_XML}"
        validationlog.refused(self._view.archive, f"{who.name} <{who.mail}>", path, error)

    def current(self, place: Place) -> bytes:
        """The document as this mount shows it now. Raises Stale."""
        return self._merged(place)[0]

    def _add(self, place: Place, nodes: bytes, uid: int, source: str) -> None:
        if not nodes and not source:
            return
        with self._stripes[hash(place) % _STRIPES], Turnstile(self._view.archive.lock(place.domain)).shared():
            document, before = self._merged(place)
            document = datanodes.merge_nodes(document, nodes)
            addition = AddNodes(place, nodes, author(uid), int(time.time()), source)
            ticket = self._journal.confirm(addition)
            number = ticket.log, ticket.number
            pending = Pending(blob_id(document), len(document), number, document, (*before, nodes))
            self._view.overlay.confirmed(place, DATA_XML, pending)
            if source:
                self._view.overlay.gone(place, source, number)
        self._committer.added(place.domain)

    def _merged(self, place: Place) -> tuple[bytes, tuple[bytes, ...]]:
        """Main's document with what is pending here; and that, without what main has by now."""
        document, kept = judging.document(self._view, place), []
        for nodes in self._view.overlay.nodes(place):
            try:
                document = datanodes.merge_nodes(document, nodes)
            except Exists:
                continue
            kept.append(nodes)
        return document, tuple(kept)


def whole(file: File) -> bytes:
    """All of a file that becomes, or is, a document. Raises InvalidDocument when it is too large for one."""
    _check_size(file.attrs().size)
    content = file.open()
    try:
        return content.read(0, LARGEST)
    finally:
        content.close()


def _check_size(size: int) -> None:
    if size > LARGEST:
        raise InvalidDocument(f"a document of {size} bytes; at most {LARGEST} are possible")
