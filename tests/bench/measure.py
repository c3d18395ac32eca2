"""Runs commands and tells what they cost: wall seconds, and the peak memory of all their processes together."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_SECONDS_BETWEEN_LOOKS = 0.25


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command cost. `peak` is of its largest process, `together` of all that it ran at a time, `anonymous` the
    same without files that are mapped, such as git's packs, which the kernel drops when it needs the room: all in MiB.
    `processor` is in seconds, those of its children included.
    """

    seconds: float
    peak: float
    together: float
    exit_code: int
    processor: float = 0.0
    anonymous: float = 0.0


def cost(command: Sequence[str], cwd: Path | None = None) -> Cost:
    """Run a command to its end, its output thrown away.

    What ran before has its files on disk by then: else whoever comes second pays for the writes of the first.
    """
    os.sync()
    begun = time.monotonic()
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        with Watched(process.pid) as watched:
            message = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 8):  # wget says 8 for a broken link
        sys.stderr.write(message.decode("utf-8", "replace"))
    processor = usage.ru_utime + usage.ru_stime
    peaks = (usage.ru_maxrss / 1024, watched.most / (1 << 20))
    return Cost(time.monotonic() - begun, *peaks, process.returncode, processor, watched.anonymous / (1 << 20))


class Watched:
    """The most memory that a process and all below it ever had at once, in bytes: the sum of their shares (PSS, which
    counts what several of them share once; proc(5)), looked at some times a second. `anonymous` is without files.
    """

    def __init__(self, pid: int) -> None:
        self.most = self.anonymous = 0
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        seen: set[int] = set()
        while not self._done.wait(_SECONDS_BETWEEN_LOOKS):
            pids = {pid: parent for parent, pid in _with_children(self._pid)}
            shares = [_shares(pid) for pid, parent in pids.items() if pid in seen or not _is_parent_yet(pid, parent)]
            seen = set(pids)
            self.most = max(self.most, sum(share.get("Pss", 0) for share in shares))
            self.anonymous = max(self.anonymous, sum(share.get("Pss_Anon", 0) for share in shares))


def _with_children(pid: int, parent: int = 0) -> Iterator[tuple[int, int]]:
    """Yield a process and all below it, each behind its parent."""
    yield parent, pid
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _with_children(int(child), pid)


def _is_parent_yet(pid: int, parent: int) -> bool:
    """Return whether a process has its parent's command line, as one of vfork(2) has for a moment: its memory, too."""
    try:
        return bool(parent) and _command_of(pid) == _command_of(parent)
    except OSError:
        return True


def _command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _shares(pid: int) -> dict[str, int]:
    """A process's shares of memory in bytes, by the kernel's names for them; empty once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return {}
    words = (line.split() for line in lines if line.startswith("Pss"))
    return {name.rstrip(":"): int(size) << 10 for name, size, _ in words}


def agent(*arguments: str) -> list[str]:
    """A `webarc-agent` command line of this checkout."""
    return [sys.executable, "-c", "from agent.cli import main; main()", "--quiet", *arguments]
