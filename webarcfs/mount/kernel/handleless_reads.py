"""Contents of files without handles: on a read-only mount the kernel reads a version without an open before.

Memory, and the temporary files of a few large blobs. Safe for any thread: each read has a content of its own, so none
is closed under another; the kept ones only avoid a temporary file for each read of a large file.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator

from webarcfs.view.content import Content
from webarcfs.view.node import File

#: Number of large files that are kept readable while no process reads them.
HELD = 4
#: Seconds after its last read for which a file counts as being read, and the most such files.
BUSY = 10.0
MOST = 64


class OpenContents:
    """The large files that were read last: all that are being read, and `HELD` idle ones."""

    def __init__(self, busy: float = BUSY) -> None:
        self._busy = busy
        self._contents: OrderedDict[int, Content] = OrderedDict()
        self._read: dict[int, float] = {}
        self._lock = threading.Lock()

    def read(self, inode: int, file: File, offset: int, size: int) -> bytes:
        """Return bytes of a file."""
        content = file.open()
        try:
            return content.read(offset, size)
        finally:
            self._keep(inode, content)

    def forget(self, inode: int) -> None:
        """Close the content of a file that the kernel no longer knows."""
        with self._lock:
            content = self._contents.pop(inode, None)
            self._read.pop(inode, None)
        if content is not None:
            content.close()

    def _keep(self, inode: int, content: Content) -> None:
        surplus = [content]
        if content.dear:
            with self._lock:
                if inode not in self._contents:
                    self._contents[inode] = surplus.pop()
                self._contents.move_to_end(inode)
                self._read[inode] = time.monotonic()
                surplus += self._idle()
        for each in surplus:
            each.close()

    def _idle(self) -> Iterator[Content]:
        """Yield the contents to close. A fixed limit makes git write a file again for each read of one too many."""
        while len(self._contents) > HELD:
            inode = next(iter(self._contents))
            if len(self._contents) <= MOST and time.monotonic() - self._read[inode] < self._busy:
                return
            del self._read[inode]
            yield self._contents.pop(inode)
