"""`python -m tests.soak.publications [--minutes 10]`: thirty publications with intervals of seconds under one agent.

It shows that each run starts when it is due or when there is room for it, none is lost or doubled, the agent's memory
and descriptors stay flat, and no zombie stays behind. Exit 1 if not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from tests.support.agents import RunningAgent, agent, configure, reports, status, summaries
from tests.support.site import Site
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.metadata import format_time, now, parse_time

_PUBLICATIONS = 30
#: Bytes by which the agent may grow from the first third of the time to the end.
_GROWTH = 8 << 20


@dataclass
class Seen:
    """What was seen of the agent while it ran."""

    memory: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    most_jobs: int = 0
    zombies: set[int] = field(default_factory=set)


def interval(number: int) -> int:
    """Seconds between two runs of a publication: 30 to 88, so that they come together in ever other ways."""
    return 30 + 2 * number


def watch(running: RunningAgent, seconds: float) -> Seen:
    """Look at the agent every second. A zombie is one that is there ten seconds in a row."""
    seen = Seen()
    dead: dict[int, int] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert running.process.poll() is None, f"the agent ended: {running.said.read_text()[-2000:]}"
        pid = running.process.pid
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        seen.memory.append(next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS")))
        seen.descriptors.append(len(list(Path(f"/proc/{pid}/fd").iterdir())))
        seen.most_jobs = max(seen.most_jobs, len(running.workers()))
        dead = {pid: dead.get(pid, 0) + 1 for pid in running.zombies()}
        seen.zombies |= {pid for pid, times in dead.items() if times >= 10}
        time.sleep(1)
    return seen


def faults_of_memory(seen: Seen) -> list[str]:
    """Whether the agent grew, leaked descriptors or left zombies."""
    faults = [f"zombies: {sorted(seen.zombies)}"] if seen.zombies else []
    third = len(seen.memory) // 3
    early, late = max(seen.memory[third // 2 : third]), max(seen.memory[-third:])
    if late - early > _GROWTH:
        faults.append(f"memory grew from {early >> 20} to {late >> 20} MiB")
    if max(seen.descriptors[-third:]) > max(seen.descriptors[:third]) + 20:
        faults.append(f"descriptors grew from {max(seen.descriptors[:third])} to {max(seen.descriptors[-third:])}")
    return faults


def faults_of_runs(archive: Archive, start: datetime, end: datetime) -> tuple[list[str], int, float]:
    """Runs that are missing or doubled; how many there were; the longest that one came late, in seconds.

    A run is due at the first time of its row after the one before began, or when that has ended, if it took longer.
    """
    faults: list[str] = []
    count, latest = 0, 0.0
    for number in range(_PUBLICATIONS):
        name, step = f"p{number}", timedelta(seconds=interval(number))
        told = summaries(archive, reports(archive, name))
        times = [(parse_time(each["started"]), parse_time(each["finished"])) for each in told]
        count += len(times)
        slots = [(begun - start) // step for begun, _ in times]
        if len(set(slots)) != len(slots):
            faults.append(f"{name} was doubled: {slots}")
        due = start
        for begun, finished in [*times, (end, end)]:
            late = (begun - due).total_seconds()
            if begun is not end:
                latest = max(latest, late)
            if late >= step.total_seconds():
                faults.append(f"{name} lost the run of {due}: the next began at {begun}")
            due = max(start + ((begun - start) // step + 1) * step, finished)
    return faults, count, latest


def main() -> int:
    """Run it, and say what it showed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        archive = directory.create(Path(folder) / "archive")
        sites = [stack.enter_context(Site()) for _ in range(6)]
        for site in sites:
            site.add_html("/", '<a href="/a">a</a>')
            site.add_html("/a", "a")
        start = now() + timedelta(seconds=5)
        publications = [
            {
                "name": f"p{number}",
                "urls": [sites[number % len(sites)].url("/")],
                "start": format_time(start),
                "interval": f"{interval(number)} seconds",
            }
            for number in range(_PUBLICATIONS)
        ]
        configure(archive, *publications)
        with agent(archive) as running:
            seen = watch(running, minutes * 60)
            end = now()
            assert running.stop() == 0, running.said.read_text()[-2000:]
        faults, count, latest = faults_of_runs(archive, start, end)
        faults += faults_of_memory(seen)
        left = [job for job in status(archive)["jobs"] if job["state"] == "failed"]
        faults += [f"failed: {job}" for job in left]
        lines = list(Feed(archive.changes).lines())
        faults += ["a tag stands twice in the feed"] if len(lines) != len(set(lines)) else []
        faults += [f"one site had {site.max_open()} connections" for site in sites if site.max_open() != 1]
    print(
        f"{count} runs of {_PUBLICATIONS} publications in {minutes:g} minutes, {seen.most_jobs} at once at most; "
        f"a run began at most {latest:.0f} s after it was due; memory of the agent {seen.memory[-1] >> 20} MiB"
    )
    for fault in faults:
        print(f"FAULT {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
