"""The lock of an archive's agent, held by one process, and a file beside it that identifies the process.

The kernel releases the lock when the process dies, so nothing must be removed by hand.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.system import jsonfile
from agent.system.processid import Process
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Busy, Damaged
from webarcfs.archive.model.metadata import format_time, now
from webarcfs.archive.system import locks

_SECONDS_TO_TRY = 1.0


@dataclass(frozen=True, slots=True)
class Agent:
    """A running agent: its process, its start, and the errors in settings that it could not reload."""

    pid: int
    ticks: int
    since: str
    faults: tuple[str, ...] = ()


def _lock(archive: Archive) -> Path:
    return archive.root / "lock" / ".agent"


def _file(archive: Archive) -> Path:
    return archive.root / "lock" / ".agent.json"


@contextmanager
def hold(archive: Archive) -> Iterator[Agent]:
    """Hold the lock of the archive's agent. Raises Busy, which names the agent that holds it."""
    until = time.monotonic() + _SECONDS_TO_TRY  # an agent may be just ending
    while (fd := locks.try_exclusive(_lock(archive))) is None:
        if time.monotonic() > until:
            raise Busy(_who(archive))
        time.sleep(0.05)
    try:
        process = Process.current()
        agent = Agent(process.pid, process.ticks, format_time(now()))
        tell(archive, agent)
        yield agent
    finally:
        _file(archive).unlink(missing_ok=True)
        os.close(fd)


def tell(archive: Archive, agent: Agent) -> None:
    """Write the agent's process and the errors in its settings."""
    jsonfile.write(_file(archive), dataclasses.asdict(agent))


def running(archive: Archive) -> Agent | None:
    """Return the running agent; None if none runs."""
    try:
        content = jsonfile.read(_file(archive))
        if content is None:
            return None
        agent = Agent(int(content["pid"]), int(content["ticks"]), content["since"], tuple(content["faults"]))
    except (Damaged, KeyError, TypeError, ValueError):
        return None
    return agent if Process(agent.pid, agent.ticks).runs() else None


def _who(archive: Archive) -> str:
    agent = running(archive)
    who = f"process {agent.pid} since {agent.since}" if agent else "another process"
    return f"{archive.root} has an agent already: {who}; `webarc-agent stop --archive {archive.root}` ends it"
