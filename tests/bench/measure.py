"""Runs commands and tells what they cost: wall seconds, and the peak memory of the largest process among them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command cost. `peak` is in MiB, `processor` in seconds, those of its children included."""

    seconds: float
    peak: float
    exit_code: int
    processor: float = 0.0


def cost(command: Sequence[str], cwd: Path | None = None) -> Cost:
    """Run a command to its end, its output thrown away.

    What ran before has its files on disk by then: else whoever comes second pays for the writes of the first.
    """
    os.sync()
    begun = time.monotonic()
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        message = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 8):  # wget says 8 for a broken link
        sys.stderr.write(message.decode("utf-8", "replace"))
    processor = usage.ru_utime + usage.ru_stime
    return Cost(time.monotonic() - begun, usage.ru_maxrss / 1024, process.returncode, processor)


def agent(*arguments: str) -> list[str]:
    """A `webarc-agent` command line of this checkout."""
    return [sys.executable, "-c", "from agent.cli import main; main()", "--quiet", *arguments]
