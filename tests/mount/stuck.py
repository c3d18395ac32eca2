"""`python -m tests.mount.stuck CONNECTIONS ARCHIVE MOUNTPOINT`: a mount with the one fault that the keeper is for.

Whoever looks up `slow` in its root waits for ever, holding the folder's lock; and a thread of the mount waits inside
the kernel for that lock. Says `stuck` on stdout when both do. Without the keeper nothing would end them, not even
SIGKILL.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from webarcfs.mount.adapters.libfuse3 import operations
from webarcfs.mount.adapters.libfuse3 import session as loop
from webarcfs.mount.process import cli, mountpoint

asked = threading.Event()
lookup = operations.Operations.lookup


def slow_lookup(self: operations.Operations, parent: int, name: bytes) -> bytes:
    if name == b"slow":
        asked.set()
        threading.Event().wait()
    return lookup(self, parent, name)


class Caches(loop.KernelCaches):
    """Also waits for the folder's lock."""

    def __init__(self, session: int) -> None:
        super().__init__(session)
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        asked.wait()
        threading.Thread(target=self._tell, daemon=True).start()
        self.forget_name(1, "slow")

    def _tell(self) -> None:
        while not any(_waits(thread) for thread in os.listdir("/proc/self/task")):  # noqa: PTH208
            time.sleep(0.01)
        os.write(1, b"stuck\n")


def _waits(thread: str) -> bool:
    """Whether a thread of this process waits in the kernel for a folder's lock."""
    with open(f"/proc/self/task/{thread}/stat", encoding="utf-8") as file:  # noqa: PTH123
        return file.read().rpartition(") ")[2][:1] == "D"


def main(arguments: list[str]) -> Any:
    operations.Operations.lookup = slow_lookup  # type: ignore[method-assign]
    loop.KernelCaches = Caches  # type: ignore[misc]
    mountpoint.CONNECTIONS = Path(arguments[0])
    return cli.main(["-f", "-o", "binding=libfuse3", *arguments[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
