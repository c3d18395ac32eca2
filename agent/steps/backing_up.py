"""The step `backup`: a backup of the archive that follows a capture, or a release (fields 65 to 73)."""

from __future__ import annotations

import os
from pathlib import Path

from agent.steps.context import Clock, StepContext, StepResult
from agent.upkeep import backups
from webarcfs import __version__
from webarcfs.archive.model.errors import UsageError, WebarcError


def back_up(step: StepContext) -> StepResult:
    """Bring the backup up to date. Raises UsageError where none is set up, WebarcError if it is not whole."""
    how = step.settings.backup
    if not how.to:
        raise UsageError(f"{step.archive.settings} says no folder for backups; write `[backup]` and `to = …` there")
    clock, target = Clock(), Path(how.to)
    copied = backups.backup(step.archive, target, step.progress, quick=True)
    if copied.failed:
        raise WebarcError("; ".join(copied.failed))
    texts = {
        65: clock.begun,
        66: step.person,
        67: clock.told,
        68: str(_bytes(target)),
        69: f"webarcfs {__version__}, git fetch",
        70: "--quick: what the backup has already is not read",
        71: how.medium or "disk",
        72: str(target.resolve()),
        73: "; ".join(copied.mended),
    }
    return StepResult(texts)


def _bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            size += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 # half the time of a Path
    return size
