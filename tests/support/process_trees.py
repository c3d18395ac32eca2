"""What is below a process: who runs, what all of it costs, and whether anything is left. By proc(5).

Processes in a PID namespace of their own are seen, too, by their numbers outside of it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_SET_CHILD_SUBREAPER = 36  # prctl(2)
_SECONDS_BETWEEN_SAMPLES = 0.02
#: Shares of memory are dear to ask for: once in so many samples.
_SAMPLES_BETWEEN_SHARES = 12


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A process at one moment. `began` tells it from another one of the same number; `seconds` are of processors."""

    pid: int
    parent: int
    began: int
    state: str
    name: str
    seconds: float

    @property
    def command(self) -> list[str]:
        """Its command line; empty once it has ended."""
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
        except OSError:
            return []

    @property
    def is_chromium(self) -> bool:
        """Whether it is a browser, or one of a browser's processes."""
        return self.name.startswith(("chromium", "chrome"))


def adopt_orphans() -> None:
    """Let this process be the parent of all below it whose own parent ends (PR_SET_CHILD_SUBREAPER of prctl(2)).

    So what outlives its parent still stands below this process. Whoever calls it reaps them by `reap`.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def reap(but: int = 0) -> None:
    """Take the ends of children that nobody waits for, apart from one."""
    for process in processes_below(os.getpid()):
        if process.state == "Z" and process.parent == os.getpid() and process.pid != but:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def processes_below(pid: int) -> list[RunningProcess]:
    """All processes below one, each behind its parent; also zombies."""
    children: dict[int, list[RunningProcess]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process)
    below = list(children.get(pid, ()))
    for process in below:
        below += children.get(process.pid, ())
    return below


def _processes() -> Iterator[RunningProcess]:
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                yield _parse(int(entry.name), Path(f"/proc/{entry.name}/stat").read_text("utf-8", "replace"))


def _parse(pid: int, text: str) -> RunningProcess:
    """The fields of /proc/PID/stat; the name may have blanks and brackets."""
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    seconds = (int(fields[11]) + int(fields[12])) / _TICK
    return RunningProcess(pid, int(fields[1]), int(fields[19]), fields[0], name, seconds)


@dataclass(frozen=True, slots=True)
class TreeCost:
    """Processor seconds of browsers and of all else, and the most bytes (PSS) of all and of browsers at one time."""

    browser: float
    beside: float
    memory: int
    browser_memory: int


class WatchedTree:
    """Adds up what the processes below this one cost while its `with` block runs.

    It asks 50 times a second, so of each process the last hundredths of a second are missing. What ran before counts
    from the beginning of the block.
    """

    def __init__(self) -> None:
        self._before = {(process.pid, process.began): process.seconds for process in processes_below(os.getpid())}
        self._seconds: dict[tuple[int, int], tuple[bool, float]] = {}
        self._most = self._most_of_browsers = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> WatchedTree:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def cost(self) -> TreeCost:
        """What it has come to so far."""
        totals = {True: 0.0, False: 0.0}
        for key, (is_browser, seconds) in list(self._seconds.items()):
            totals[is_browser] += seconds - self._before.get(key, 0.0)
        return TreeCost(totals[True], totals[False], self._most, self._most_of_browsers)

    def _watch(self) -> None:
        samples = 0
        while True:
            processes = processes_below(os.getpid())
            for process in processes:
                # A child begins with its parent's name: only what it is in the end counts.
                self._seconds[process.pid, process.began] = (process.is_chromium, process.seconds)
            if samples % _SAMPLES_BETWEEN_SHARES == 0:
                shares = [(process.is_chromium, share_of(process.pid)) for process in processes]
                self._most = max(self._most, sum(share for _, share in shares))
                self._most_of_browsers = max(self._most_of_browsers, sum(share for own, share in shares if own))
            samples += 1
            if self._done.wait(_SECONDS_BETWEEN_SAMPLES):
                return


def share_of(pid: int) -> int:
    """A process's share of memory in bytes (PSS: what several share is divided among them); 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def wait_for_none(within: float) -> list[RunningProcess]:
    """Wait until nothing runs below this process; return what still does after so many seconds."""
    end = time.monotonic() + within
    while True:
        reap()
        left = [process for process in processes_below(os.getpid()) if process.state != "Z"]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)
