"""`/healthz`: whether a server can answer, for load balancers and monitoring.

It says `ok` or `not ok` and no more, since anybody may ask. The answer is kept for a second, so that many who ask cost
as much as one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from webarcfs.archive.model.errors import Interrupted, WebarcError

PATH: Final = "/healthz"
#: Seconds for which an answer is kept.
HOLD: Final = 1.0
_log = logging.getLogger("webarc")


class Health:
    """Whether what a server stands on can be read. Any thread may ask."""

    def __init__(self, look: Callable[[], object]) -> None:
        """`look` raises an error of the family, or OSError, if something cannot be read."""
        self._look = look
        self._lock = threading.Lock()
        self._known: tuple[bool, float] = (False, float("-inf"))

    def answer(self, _request: Request) -> Response:
        """Return 200 or 503, without a reason; a reason is logged when the answer changes."""
        is_well = self.is_well()
        status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
        return PlainTextResponse("ok\n" if is_well else "not ok\n", status, {"Cache-Control": "no-store"})

    def is_well(self) -> bool:
        """Look, unless somebody did a moment ago."""
        before, at = self._known
        if time.monotonic() - at < HOLD:
            return before
        if not self._lock.acquire(blocking=at == float("-inf")):
            return before  # another thread looks; it may take long
        try:
            self._known = self._is_readable(was_well=before), time.monotonic()
            return self._known[0]
        finally:
            self._lock.release()

    def _is_readable(self, *, was_well: bool) -> bool:
        try:
            self._look()
        except Interrupted:  # the client has gone; that says nothing
            return was_well
        except (WebarcError, OSError) as error:
            if was_well or self._known[1] == float("-inf"):
                _log.warning("not well: %s: %s", type(error).__name__, error)
            return False
        return True
