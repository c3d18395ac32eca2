"""Bounds the inodes that the kernel knows, and so the memory for them: it drops the ARCs known longest first.

One thread of its own, because a notification waits for requests; it holds no lock meanwhile. The kernel replies with
forgets, and looks up again what a process needs.
"""

from __future__ import annotations

import threading

from webarcfs.mount.kernel.inode_table import Inodes
from webarcfs.mount.kernel.invalidation import Kernel
from webarcfs.view import limits

#: Seconds between two checks of the number of inodes.
_INTERVAL = 0.5
_AT_ONCE = 2_000


class Trimmer(threading.Thread):
    """The thread."""

    def __init__(self, inodes: Inodes, kernel: Kernel, most: int | None = None) -> None:
        super().__init__(name="trimmer", daemon=True)
        self._inodes = inodes
        self._kernel = kernel
        self._most = most if most is not None else limits.inodes()
        self._end = threading.Event()

    def run(self) -> None:
        """Trim repeatedly."""
        while not self._end.wait(_INTERVAL):
            self.trim()

    def trim(self) -> None:
        """Reduce the number of inodes to nine tenths of the limit, as far as the kernel can drop them."""
        if len(self._inodes) <= self._most:
            return
        tries = 2 * len(self._inodes) // _AT_ONCE + 1
        while len(self._inodes) > self._most * 9 // 10 and tries and not self._end.wait(0.01):
            tries -= 1
            for _, folder, name in self._inodes.oldest_arcs(_AT_ONCE):
                self._kernel.forget_name(folder, name)

    def stop(self) -> None:
        """End the thread."""
        self._end.set()
        self.join()
