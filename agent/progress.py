"""Shows how far long work is: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import logging
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

_log = logging.getLogger("webarc")
_SECONDS_BETWEEN_LINES = 10.0


class Display:
    """A context manager that is called with (what, done, known)."""

    def __init__(self, console: Console) -> None:
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._told = time.monotonic()
        if console.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self._bars = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)

    def __enter__(self) -> Display:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, what: str, done: int, known: int) -> None:
        """Show that of `known` things of a kind `done` are done."""
        if self._bars is not None:
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(what, total=known)
            self._bars.update(self._tasks[what], completed=done, total=max(known, done))
        elif time.monotonic() - self._told > _SECONDS_BETWEEN_LINES:
            self._told = time.monotonic()
            _log.info("%s: %d of %d", what, done, known)
