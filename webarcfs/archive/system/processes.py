"""Checks whether a process runs (proc(5))."""

from __future__ import annotations

from pathlib import Path


def lives(process: int) -> bool:
    """Return whether a process runs. A killed one is a zombie as long as one of its threads is stuck."""
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(") ")[2][:1]
    except OSError:
        return False
    return state not in ("Z", "X")
