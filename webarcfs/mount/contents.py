"""Contents of files that nobody opens: on a read-only mount the kernel reads a version without asking for it before.

Memory, and the temporary files of a few large blobs. Safe for any thread: each read has a content of its own, so none
is closed under another; what is kept only keeps large ones from being written to a temporary file for each read.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from webarcfs.mount.base import File
from webarcfs.mount.blobs import Content

#: How many large files are kept readable when nobody reads them just now.
HELD = 4


class Kept:
    """The large files that were read last."""

    def __init__(self) -> None:
        self._contents: OrderedDict[int, Content] = OrderedDict()
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
        if content is not None:
            content.close()

    def _keep(self, inode: int, content: Content) -> None:
        surplus = [content]
        if content.dear:
            with self._lock:
                if inode not in self._contents:
                    self._contents[inode] = surplus.pop()
                self._contents.move_to_end(inode)
                if len(self._contents) > HELD:
                    surplus.append(self._contents.popitem(last=False)[1])
        for each in surplus:
            each.close()
