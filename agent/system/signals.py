"""Signal handling of a service: records signals without loss, and waits for them without polling (set_wakeup_fd)."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from types import FrameType, TracebackType
from typing import Any

_TAKEN = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


class Signals:
    """A context manager for the main thread. `stop` after SIGTERM or SIGINT; SIGHUP asks to read the settings again."""

    def __init__(self) -> None:
        self.stop = False
        self._reload = False
        self._read, self._write = -1, -1
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._before = {each: signal.signal(each, self._note) for each in _TAKEN}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(-1)
        os.close(self._read)
        os.close(self._write)

    def take_reload(self) -> bool:
        """Return whether SIGHUP arrived since the last call."""
        asked, self._reload = self._reload, False
        return asked

    def wait(self, seconds: float) -> None:
        """Sleep until a signal arrives, SIGCHLD included, or the time has passed."""
        select.select([self._read], [], [], max(0.0, seconds))
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 512):
                pass

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self.stop = True
        elif number == signal.SIGHUP:
            self._reload = True
