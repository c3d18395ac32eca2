"""Contents of files that nobody opens: on a read-only mount the kernel reads a version without asking for it before.

Memory, and the temporary files of a few large blobs. Safe for any thread: each read has a content of its own, so none
is closed under another; what is kept only keeps large ones from being written to a temporary file for each read.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator

from webarcfs.view.content import Content
from webarcfs.view.node import File

#: How many large files are kept readable when nobody reads them just now.
HELD = 4
#: Seconds for which one counts as being read after the last read, and how many of those there may be.
BUSY = 10.0
MOST = 64


class OpenContents:
    """The large files that were read last: all that are being read, and a few more."""

    def __init__(self, busy: float = BUSY) -> None:
        self._busy = busy
        self._contents: OrderedDict[int, Content] = OrderedDict()
        self._read: dict[int, float] = {}
        self._lock = threading.Lock()

    def read(self, inode: int, file: File, offset: int, size: int) -> bytes:
        """Bytes of a file."""
        content = file.open()
        try:
            return content.read(offset, size)
        finally:
            self._keep(inode, content)

    def forget(self, inode: int) -> None:
        """The kernel knows the file no more."""
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
        """Those that go. With a fixed number, readers of one file more would make git write each anew for each read."""
        while len(self._contents) > HELD:
            inode = next(iter(self._contents))
            if len(self._contents) <= MOST and time.monotonic() - self._read[inode] < self._busy:
                return
            del self._read[inode]
            yield self._contents.pop(inode)
