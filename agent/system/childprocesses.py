"""The agent's child processes: starts one per job, logs their lines, and reaps them."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

_log = logging.getLogger("webarc")
_LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARNING": logging.WARNING, "ERROR": logging.ERROR}


@dataclass
class Child:
    """A process and the thread that reads its lines. Its stdin stays open as long as the agent lives."""

    name: str
    process: subprocess.Popen[bytes]
    reader: threading.Thread
    said: list[str]  # its last line, if any
    since: float = field(default_factory=time.monotonic)


class Children:
    """The running child processes, by name."""

    def __init__(self) -> None:
        self._running: dict[str, Child] = {}
        self._last_words: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[str]:
        return iter(self._running)

    def start(self, name: str, *arguments: str) -> None:
        """Run `python argument…`. Raises OSError if no process can be created."""
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={key: value for key, value in os.environ.items() if key not in ("NOTIFY_SOCKET", "WATCHDOG_USEC")},
            start_new_session=True,
        )
        assert process.stderr is not None
        said: list[str] = []
        reader = threading.Thread(target=_take_lines, args=(name, process.stderr, said), daemon=True)
        reader.start()
        self._running[name] = Child(name, process, reader, said)

    def ended(self) -> list[tuple[str, int]]:
        """Remove the processes that have ended; return their names and exit codes (a signal's number is negative)."""
        done = [child for child in self._running.values() if child.process.poll() is not None]
        for child in done:
            self._forget(child)
        return [(child.name, child.process.returncode) for child in done]

    def last_words(self, name: str) -> str:
        """Return and forget the last line of an ended process; after a failure, this is the reason."""
        return self._last_words.pop(name, "")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to each."""
        for child in self._running.values():
            child.process.send_signal(number)

    def _forget(self, child: Child) -> None:
        del self._running[child.name]
        child.reader.join(1)  # a descendant may still hold stderr; other children must not wait for it
        assert child.process.stdin is not None
        child.process.stdin.close()
        self._last_words[child.name] = "".join(child.said)


def _take_lines(name: str, stream: IO[bytes], said: list[str]) -> None:
    """Log the lines of a child; the first word of a line is its level."""
    with stream:
        for raw in stream:
            line = raw.decode("utf-8", "replace").rstrip()
            word, _, rest = line.partition(" ")
            said[:] = [rest if word in _LEVELS else line]
            if word in _LEVELS:
                _log.log(_LEVELS[word], "%s: %s", name, rest)
            else:
                _log.error("%s: %s", name, line)  # a traceback, or a message of another program
