"""Shows the progress of long work and the time left: bars on a terminal, periodic log lines elsewhere."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from webarcfs.terminal.speed import Speed, described

_log = logging.getLogger("webarc")
_SECONDS_BETWEEN_LINES = 10.0


class Display:
    """A context manager that is called with (what, done, known). For a count of bytes, `what` contains "(bytes)"."""

    def __init__(self, console: Console) -> None:
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._speeds: defaultdict[str, Speed] = defaultdict(Speed)
        self._told = time.monotonic()
        if console.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            speed = TextColumn("{task.fields[speed]}")
            self._bars = Progress(*columns, TimeElapsedColumn(), speed, console=console, transient=True)

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
        """Show that `done` of `known` things of the work `what` are done."""
        now, speed = time.monotonic(), self._speeds[what]
        speed.note(now, done)
        told = described(speed.a_second, speed.left(known), in_bytes="(bytes)" in what)
        if self._bars is not None:
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(what, total=known, speed="")
            self._bars.update(self._tasks[what], completed=done, total=max(known, done), speed=told)
        elif now - self._told > _SECONDS_BETWEEN_LINES:
            self._told = now
            _log.info("%s: %d of %d%s", what, done, known, f", {told}" if told else "")
