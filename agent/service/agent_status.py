"""The output of `webarc-agent status`: the agent, each publication, each open job. README.md documents the fields.

It is read from files only, so it is the same whether the agent runs or not. One process holds the lock of an archive's
agent; a file beside it identifies the process. The kernel releases the lock when the process dies, so nothing must be
removed by hand.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Any

from agent.crawl import job_folder
from agent.crawl.job_folder import AT_WORK, JobState, Phase
from agent.service import scheduler
from agent.service.scheduler import History
from webarcfs.archive.catalogue.record import is_beside_schedule, is_import
from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Busy, Damaged, SettingsError
from webarcfs.archive.model.metadata import format_time, now, parse_time
from webarcfs.archive.repair import damage_note
from webarcfs.archive.system import files, locks
from webarcfs.archive.system.processes import Process

# == lock =============================================================================================================


#: Seconds that a start waits for an agent that is just ending; and for the lock of one that was killed: a process that
#: it had just forked has the lock, too, until it executes its program.
_SECONDS_TO_TRY, _SECONDS_BEHIND_A_KILLED_ONE = 1.0, 60.0


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
    began = time.monotonic()
    while (fd := locks.try_exclusive(_lock(archive))) is None:
        seconds = _SECONDS_TO_TRY if running(archive) else _SECONDS_BEHIND_A_KILLED_ONE
        if time.monotonic() - began > seconds:
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
    files.write_json(_file(archive), dataclasses.asdict(agent))


def running(archive: Archive) -> Agent | None:
    """Return the running agent; None if none runs."""
    try:
        content = files.read_json(_file(archive))
        if content is None:
            return None
        agent = Agent(int(content["pid"]), int(content["ticks"]), content["since"], tuple(content["faults"]))
    except (Damaged, KeyError, TypeError, ValueError):
        return None
    return agent if Process(agent.pid, agent.ticks).runs() else None


def _who(archive: Archive) -> str:
    agent = running(archive)
    if agent is None:
        lock = _lock(archive)
        return f"no agent runs, but a process holds {lock}: stop it (`fuser {lock}` prints it), and start again"
    who = f"process {agent.pid} since {agent.since}"
    return f"{archive.root} has an agent already: {who}; `webarc-agent stop --archive {archive.root}` ends it"


# == status ===========================================================================================================


def overview(archive: Archive) -> dict[str, Any]:
    """Return the content of `status --json`."""
    agent = running(archive)
    faults: list[str] = list(agent.faults) if agent else []
    try:
        apart: dict[str, list[str]] = {}
        settings = settings_files.load(archive.settings, apart=apart)[0]
        faults = [fault for own_faults in apart.values() for fault in own_faults] or faults
    except SettingsError as error:
        settings, faults = Settings(), list(error.faults)
    past = scheduler.read(archive)
    return {
        "archive": str(archive.root),
        "agent": None if agent is None else {"pid": agent.pid, "since": agent.since},
        "damage_met": None if (met := damage_note.met_at(archive)) is None else format_time(met),
        "settings_faults": faults,
        "settings_warnings": [*map(str, disagreements(settings))],
        "publications": [_publication(archive, named, past) for named in _all(settings, past)],
        "jobs": [_job(job) for job in past.open],
        "refused": list(past.refused),
    }


def damage_line(summary: dict[str, Any]) -> str:
    """Return the line on damage that was met, by the content of `status --json`. Pure."""
    command = f"webarc-agent verify --archive {quote(summary['archive'])}"
    return f"something in the archive could not be read, {summary['damage_met']}; `{command}` names it"


@dataclass(frozen=True, slots=True)
class StatusFault:
    """What is not as it should be, for people; a grave one means that something is not archived."""

    text: str
    is_grave: bool = True


def problems(summary: dict[str, Any], at: datetime) -> list[StatusFault]:
    """Return what is wrong by the content of `status --json`, the gravest first. Pure."""
    faults = [StatusFault(f"webarc.toml: {line}") for line in summary["settings_faults"]]
    if summary["damage_met"]:
        faults.append(StatusFault(damage_line(summary)))
    crawled = [publication for publication in summary["publications"] if publication["next"] is not None]
    if summary["agent"] is None and crawled:
        faults.append(StatusFault("no agent runs"))
    faults += [StatusFault(line) for line in summary["refused"]]
    for job in summary["jobs"]:
        if job["state"] == Phase.FAILED:
            faults.append(StatusFault(f"{job['job']}: failed: {job['reason']}"))
        elif job["held"]:
            faults.append(StatusFault(f"{job['job']}: waits for an order: {job['held']}", is_grave=False))
    for publication in crawled:
        name, last = publication["name"], publication["last"]
        latest = Interval.parse(publication["interval"]).after(parse_time(publication["next"]))
        if latest < at and not publication["jobs"]:
            faults.append(StatusFault(f"{name}: due since {publication['next']}, longer than its interval"))
        if last is not None and last["complete"] is False:
            faults.append(StatusFault(f"{name}: its newest crawl {last['job']} is incomplete", is_grave=False))
    return sorted(faults, key=lambda fault: not fault.is_grave)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Publications of one host that differ in when readers may see their crawls; all of the host, by their names."""

    host: str
    publications: tuple[Publication, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the publications."""
        return tuple(publication.name for publication in self.publications)

    def others(self, name: str) -> tuple[Publication, ...]:
        """Return those whose rule is another than that of one of them; none if that is none of them."""
        rules = {publication.name: _rule_of(publication) for publication in self.publications}
        return tuple(known for known in self.publications if name in rules and _rule_of(known) != rules[name])

    def __str__(self) -> str:
        """Return it as a line for who has a terminal."""
        rules = [
            f"{publication.name} ({publication.release}"
            + (f", closed_for {publication.closed_for}" if publication.closed_for is not None else "")
            + ")"
            for publication in self.publications
        ]
        return (
            f"{self.host}: {', '.join(rules[:-1])} and {rules[-1]} differ in release or closed_for; readers see a page "
            "as soon as any of them shows it; `webarc-agent publication edit NAME --set release=WORD` sets them alike"
        )


def _rule_of(publication: Publication) -> tuple[str, str]:
    return str(publication.release), str(publication.closed_for or "")


def disagreements(settings: Settings) -> list[Disagreement]:
    """Return the hosts of publications that differ in when readers may see their crawls, without retired ones."""
    by_host: dict[str, dict[str, Publication]] = {}
    for publication in settings.publications:
        for url in publication.named_urls if not publication.retired else ():
            by_host.setdefault(split(arc_path(url))[0], {})[publication.name] = publication
    return [
        Disagreement(host, tuple(publication for _, publication in sorted(known.items())))
        for host, known in sorted(by_host.items())
        if len(set(map(_rule_of, known.values()))) > 1
    ]


def shown_state(job: JobState) -> Phase:
    """Return the state of an open job: interrupted if its process died without writing its end."""
    return job.state if job.runs or job.state not in AT_WORK or not job.pid else Phase.INTERRUPTED


def state_word(job: JobState) -> str:
    """Return the state of an open job as people are told: `paused`, or `deadline`, of one that waits for an order.

    The process of such a job may end, and the job is not interrupted by that.
    """
    state = shown_state(job)
    return job.held if job.held and state in {*AT_WORK, Phase.INTERRUPTED} else str(state)


def _all(settings: Settings, past: History) -> list[tuple[str, Publication | None]]:
    """Return the publications of webarc.toml in its order, then those given on a command line only; no imports."""
    listed = [(publication.name, publication) for publication in settings.publications]
    others = set(past.runs) - {name for name, _ in listed}
    return [*listed, *((name, None) for name in sorted(others) if not is_import(name) and not is_beside_schedule(name))]


def _publication(archive: Archive, named: tuple[str, Publication | None], past: History) -> dict[str, Any]:
    name, publication = named
    at = now()
    jobs = [job.job for job in past.open if job.publication == name]
    return {
        "name": name,
        "urls": list(publication.named_urls) if publication else [],
        "interval": str(publication.crawl.interval) if publication else None,
        "next": _next(publication, past, at),
        "retired": publication is not None and publication.retired,
        "jobs": jobs,
        "last": _last(archive, past.newest(name)),
    }


def _next(publication: Publication | None, past: History, at: datetime) -> str | None:
    if publication is None or publication.retired:
        return None
    return format_time(scheduler.next_due(publication, past.runs.get(publication.name, ()), at))


def _last(archive: Archive, name: str | None) -> dict[str, Any] | None:
    """Return the result of a publication's newest finished job; values missing in its report are empty."""
    if name is None:
        return None
    folder = archive.reports / name
    try:
        summary = files.read_json(folder / "summary.json") or {}
        ended = job_folder.load_item(folder)
    except Damaged:
        summary, ended = {}, None
    return {
        "job": name,
        "state": str(ended.state if ended else Phase.ARCHIVED),
        "started": summary.get("started"),
        "finished": summary.get("finished"),
        "complete": summary.get("complete"),
        "warnings": list(ended.warnings) if ended else [],
        "commit_tags": summary.get("commit_tags", []),
        "filter_errors": summary.get("filter_errors", {}),
        "arcs": summary.get("arcs", {}),
        "redirects": summary.get("redirects", {}),
        "bytes": summary.get("bytes", 0),
    }


def _job(job: JobState) -> dict[str, Any]:
    kept = (
        *("job", "publication", "due", "begun", "updated", "stage", "done", "known", "urls", "views", "bytes"),
        *("documents", "failures", "again", "a_second", "left", "latest_end", "held", "orders"),
    )
    values = dataclasses.asdict(job if job.runs else dataclasses.replace(job, a_second=0.0, left=None))
    ended_silently = shown_state(job) != job.state and not job.held
    return {name: values[name] for name in kept} | {
        "state": state_word(job),
        "urls": job.counted_urls,
        "unread": job.unread,
        "running": job.runs,
        "reason": job.reason or "its process ended without a word" * ended_silently,
    }
