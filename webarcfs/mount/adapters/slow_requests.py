"""Names in the log the requests that took long, by operation and path: where to look when reading is slow.

At most one line a second, so that a slow disk does not fill the log; the next line counts those left out. An answer
that waits for the disk, as a close does, is measured until it is sent. Safe for any thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

#: Seconds from which on a request is slow.
SLOW: Final = 0.1
_BETWEEN_LINES = 1.0

_log = logging.getLogger(__name__)


class SlowRequests:
    """The slow requests of one mount; `path_of` makes a path of what an operation is asked about."""

    def __init__(self, path_of: Callable[[object], str]) -> None:
        self._path_of = path_of
        self._lock = threading.Lock()
        self._next_line = 0.0
        self._left_out = 0

    def note(self, operation: str, where: object, begun: float) -> None:
        """Log a request that began at the monotonic time `begun` and ended now, if it was slow."""
        now = time.monotonic()
        if now - begun < SLOW:
            return
        with self._lock:
            if now < self._next_line:
                self._left_out += 1
                return
            self._next_line, left_out, self._left_out = now + _BETWEEN_LINES, self._left_out, 0
        more = f"; {left_out} more before it" if left_out else ""
        _log.info("slow: %s %s took %.2f s%s", operation, self._path_of(where), now - begun, more)
