"""Private buffers of data.xml for its writers (/Xm-3/).

A writer gets a copy of the document; its changes there are private. Its close turns them into data nodes
(document_close.py). Errors that a write can detect fail the write: shells ignore the result of close.
"""

from __future__ import annotations

import threading

from webarcfs.archive.document import data_nodes
from webarcfs.archive.document.data_xml import LARGEST
from webarcfs.archive.model.addition import ArcVersion
from webarcfs.archive.model.arc_paths import DATA_XML
from webarcfs.archive.model.errors import InvalidDocument, NotSupported, WebarcError
from webarcfs.view.node import File
from webarcfs.view.state.ownership import Ownership


class DocumentBuffer:
    """The private buffer of one handle, with the methods of a draft (draft.py)."""

    path = DATA_XML
    #: It is never confirmed as a file.
    blob = ""

    def __init__(self, place: ArcVersion, old: bytes, maker: Ownership, *, rewriting: bool) -> None:
        self.place = place
        self.maker = maker
        self.old = old
        #: The buffer as it was last confirmed.
        self.seen = b""
        self.lock = threading.RLock()
        self.handles = 1
        self.dirty = False
        self.failed = False
        self._bytes = bytearray() if rewriting else bytearray(old)
        # Data written in order are checked at once.
        self._judge: data_nodes.IncrementalCheck | None = data_nodes.IncrementalCheck(old, rewriting=rewriting)
        self._refused: WebarcError | None = None

    @property
    def size(self) -> int:
        """Bytes in the buffer."""
        return len(self._bytes)

    def read(self, offset: int, size: int) -> bytes:
        """Return the writer's view of the document."""
        return bytes(self._bytes[offset : offset + size])

    def write(self, data: bytes, offset: int | None) -> int:
        """Write at `offset`, or at the end. Raises the refusal as early as it is certain."""
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
        """Cut the buffer, or extend it with NULs. Raises InvalidDocument when it is too large."""
        with self.lock:
            _check_size(size)
            if size != len(self._bytes):
                self._judge = data_nodes.IncrementalCheck(self.old, rewriting=True) if size == 0 else None
                self.dirty, self.failed = size > 0, False
                del self._bytes[size:]
                self._bytes.extend(bytes(size - len(self._bytes)))

    def allocate(self, _mode: int, _offset: int, _length: int) -> None:
        """Raise NotSupported: a document has no space to reserve."""
        raise NotSupported("no space is reserved for a document")

    def hold(self) -> None:
        """Do nothing: a buffer needs no count of its users."""

    def let_go(self) -> None:
        """Do nothing: a buffer needs no count of its users."""

    def written(self) -> bytes:
        """Return the document as written. Raises the refusal of a write."""
        if self._refused is not None:
            raise self._refused.with_traceback(None)
        return bytes(self._bytes)


def whole(file: File) -> bytes:
    """Return the content of a file that becomes, or is, a document. Raises InvalidDocument when it is too large."""
    _check_size(file.attrs().size)
    content = file.open()
    try:
        return content.read(0, LARGEST)
    finally:
        content.close()


def _check_size(size: int) -> None:
    if size > LARGEST:
        raise InvalidDocument(f"a document of {size} bytes; at most {LARGEST} are possible")
