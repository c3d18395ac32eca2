"""What took long while a request was answered, so that the log can say why it was slow. Safe for any thread.

Kept by thread, and few: a request is answered by one thread from its beginning to its end.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

#: Seconds from which a cause is kept.
_LONG = 0.02
_KEPT = 4
_OWN = threading.local()
#: Thread → the latest cause that another thread noted for it, and when.
_OF_OTHERS: dict[int, tuple[float, str]] = {}


@contextmanager
def timed(cause: str) -> Iterator[None]:
    """Keep `cause`, with its seconds, if what is inside takes long."""
    begun = time.monotonic()
    try:
        yield
    finally:
        ended = time.monotonic()
        if ended - begun >= _LONG:
            _causes().append((begun, f"{cause} took {ended - begun:.2f} s"))


def note(thread: int, cause: str) -> None:
    """Keep `cause` for another thread."""
    _OF_OTHERS[thread] = time.monotonic(), cause


def since(begun: float) -> list[str]:
    """Return the causes that were kept for this thread since the monotonic time `begun`."""
    noted = _OF_OTHERS.get(threading.get_ident())
    return [cause for at, cause in (*_causes(), *([noted] if noted else ())) if at >= begun]


def _causes() -> deque[tuple[float, str]]:
    found: deque[tuple[float, str]] | None = getattr(_OWN, "causes", None)
    if found is None:
        found = _OWN.causes = deque(maxlen=_KEPT)
    return found
