"""Real agents for tests: `webarc-agent start` as a process, publications on a Site, and what became of their items.

Everything waits for a state, with a deadline that a loaded machine keeps too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import crawls, forked
from tests.support.waiting import PATIENCE, until
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import compact_time, now


def configure(archive: Archive, *publications: Mapping[str, Any], more: str = "", **crawl: Any) -> None:
    """Write webarc.toml: `[crawl]`, `more` tables, and publications; values as JSON spells them, TOML for these."""
    settings = {"wait": 0.0, "timeout": 120.0, "robots": False, "sitemaps": False, **crawl}
    lines = ["[crawl]", *(f"{key} = {_toml(value)}" for key, value in settings.items()), more]
    for each in publications:
        lines += ["", "[[publication]]", *(f"{key} = {_toml(value)}" for key, value in each.items())]
    scratch = archive.settings.with_name(".webarc.toml.new")
    scratch.write_text("\n".join(lines) + "\n", "utf-8")
    scratch.replace(archive.settings)


def _toml(value: Any) -> str:
    return value if isinstance(value, str) and value.startswith("20") and "T" in value[:12] else json.dumps(value)


class RunningAgent:
    """`webarc-agent start` in the foreground, its output in a file beside the archive."""

    def __init__(self, archive: Archive, *arguments: str, **environment: str) -> None:
        self.archive = archive
        self.said = archive.root.parent / "agent.said"
        with self.said.open("ab") as output:
            self.process = forked.Popen(
                [*crawls.COMMAND, "start", "--archive", archive.root, *arguments],
                env={**os.environ, "COLUMNS": forked.COLUMNS, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def ready(self) -> RunningAgent:
        """Wait until it works."""
        until(lambda: self.process.poll() is not None or status(self.archive)["agent"], "the agent runs")
        assert self.process.poll() is None, self.said.read_text()
        return self

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """kill -9 of the agent and of all its processes, as a machine does that loses its power."""
        children = self.children()
        self.process.kill()
        for pid in children:
            _kill(pid)
        self.process.wait(PATIENCE)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), "its processes are gone")

    def workers(self) -> list[int]:
        """The processes of its jobs: neither the indexer nor maintenance, which come when they are due."""
        return [pid for pid in self.children() if b"agent.service.worker" in command_of(pid)]

    def children(self) -> list[int]:
        """All its processes."""
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            return [int(pid) for pid in task.read_text().split()]
        except OSError:
            return []

    def zombies(self) -> list[int]:
        """Children that ended and were not taken note of."""
        return [pid for pid in self.children() if _state(pid) == "Z"]

    def clear(self) -> None:
        """End it, whatever has happened."""
        if self.process.poll() is None:
            self.kill()


@contextmanager
def agent(archive: Archive, *arguments: str, **environment: str) -> Iterator[RunningAgent]:
    """A running agent, which does not outlive the block."""
    running = RunningAgent(archive, *arguments, **environment)
    try:
        yield running.ready()
    finally:
        running.clear()


def status(archive: Archive) -> dict[str, Any]:
    """What `status --json` tells, asked in this process."""
    from agent.service.agent_status import overview

    return overview(archive)


def job_of(archive: Archive, publication: str) -> dict[str, Any] | None:
    """The open job of a publication, as status tells it."""
    return next((job for job in status(archive)["jobs"] if job["publication"] == publication), None)


def reports(archive: Archive, publication: str) -> list[str]:
    """The finished jobs of a publication, oldest first."""
    names = (path.name for path in archive.reports.iterdir() if not path.name.startswith("."))
    return sorted(name for name in names if name.partition("-")[2] == publication)


def summaries(archive: Archive, names: Sequence[str]) -> list[dict[str, Any]]:
    """summary.json of finished jobs."""
    return [crawls.summary_of(archive, name) for name in names]


def fake_report(archive: Archive, publication: str, seconds_ago: float) -> str:
    """The report of a run in the past, which is all that the scheduler remembers of it."""
    from webarcfs.archive.model.metadata import from_epoch

    name = f"{compact_time(from_epoch(now().timestamp() - seconds_ago))}-{publication}"
    (archive.reports / name).mkdir()
    return name


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def command_of(pid: int) -> bytes:
    """The command line of a process; empty once it has gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
