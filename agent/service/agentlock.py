"""Who runs an archive's agent: a lock that only one process holds, and a file beside it that says who.

The kernel lets go of the lock when the process dies, so nothing is left to clear away by hand.
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
    """A running agent: its process, since when, and what is wrong with the settings that it could not read again."""

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
    """Be the archive's agent. Raises Busy, which says who is."""
    until = time.monotonic() + _SECONDS_TO_TRY  # one that is just ending is waited for
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
    """Write down who the agent is, and what it complains about."""
    jsonfile.write(_file(archive), dataclasses.asdict(agent))


def running(archive: Archive) -> Agent | None:
    """The agent that runs; None when none does."""
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
