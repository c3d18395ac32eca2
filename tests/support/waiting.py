"""Waiting for a state: what a test does that cannot be told when another process is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: Seconds after which a state that has not come never will, on a loaded machine too.
PATIENCE = 120.0


def until(found: Callable[[], Any], what: str = "", within: float = PATIENCE, every: float = 0.1) -> Any:
    """Wait until `found` gives something true, and give that back; it is asked each `every` seconds."""
    end = time.monotonic() + within
    while not (value := found()):
        assert time.monotonic() < end, f"not within {within:g} s: {what}"
        time.sleep(every)
    return value


def eventually(found: Callable[[], object], within: float = PATIENCE) -> float:
    """Wait until `found` is true; the seconds that it took."""
    start = time.monotonic()
    until(found, within=within, every=0.02)
    return time.monotonic() - start
