"""Logs slow requests, by operation and path, with what took long meanwhile (`view/slow_causes.py`).

At most one line a second, so that a slow disk does not fill the log; the next line counts those left out. An answer
that waits for the disk, such as a close's, is measured until it is sent. Safe for any thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from webarcfs.view import slow_causes

#: Seconds from which a request is slow.
SLOW: Final = 0.1
_BETWEEN_LINES = 1.0

_log = logging.getLogger(__name__)


class SlowRequests:
    """The slow requests of one mount; `path_of` returns the path of an operation's argument."""

    def __init__(self, path_of: Callable[[object], str]) -> None:
        self._path_of = path_of
        self._lock = threading.Lock()
        self._next_line = 0.0
        self._left_out = 0

    def note(self, operation: str, where: object, begun: float) -> None:
        """Log a request that began at the monotonic time `begun` and ends now, if it was slow."""
        now = time.monotonic()
        if now - begun < SLOW:
            return
        with self._lock:
            if now < self._next_line:
                self._left_out += 1
                return
            self._next_line, left_out, self._left_out = now + _BETWEEN_LINES, self._left_out, 0
        more = f"; {left_out} more before it" if left_out else ""
        why = "".join(f"; {cause}" for cause in slow_causes.since(begun))
        _log.info("slow: %s %s took %.2f s%s%s", operation, self._path_of(where), now - begun, why, more)
