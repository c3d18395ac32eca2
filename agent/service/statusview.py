"""The output of `webarc-agent status`: the agent, each publication, each open job. README.md documents the fields.

It is read from files only, so it is the same whether the agent runs or not.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from agent.jobfolder import jobstate
from agent.jobfolder.jobstate import AT_WORK, JobState, Phase
from agent.jobfolder.names import is_import, is_occasion
from agent.service import agentlock, history, scheduler
from agent.service.history import History
from agent.system import jsonfile
from webarcfs.archive.config import settings_file
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import Damaged, SettingsError
from webarcfs.archive.model.metadata import format_time, now


def overview(archive: Archive) -> dict[str, Any]:
    """Return the content of `status --json`."""
    agent = agentlock.running(archive)
    faults: list[str] = list(agent.faults) if agent else []
    try:
        apart: dict[str, list[str]] = {}
        settings = settings_file.load(archive.settings, apart=apart)[0]
        faults = [fault for told in apart.values() for fault in told] or faults
    except SettingsError as error:
        settings, faults = Settings(), list(error.faults)
    past = history.read(archive)
    return {
        "archive": str(archive.root),
        "agent": None if agent is None else {"pid": agent.pid, "since": agent.since},
        "settings_faults": faults,
        "settings_warnings": disagreeing(settings),
        "publications": [_publication(archive, each, past) for each in _all(settings, past)],
        "jobs": [_job(each) for each in past.open],
        "refused": list(past.refused),
    }


def disagreeing(settings: Settings) -> list[str]:
    """Return a line for each host of two publications that differ in when readers may see their captures."""
    said: dict[str, dict[tuple[str, str], str]] = {}
    for each in settings.publications:
        for url in each.urls:
            host = split(arc_path(url))[0]
            said.setdefault(host, {}).setdefault((each.release, str(each.closed_for or "")), each.name)
    return [
        f"{host}: {' and '.join(sorted(names.values()))} differ in release or closed_for; readers see what any shows"
        for host, names in sorted(said.items())
        if len(names) > 1
    ]


def shown_state(each: JobState) -> Phase:
    """Return the state of an open job: interrupted if its process died without writing its end."""
    return each.state if each.runs or each.state not in AT_WORK or not each.pid else Phase.INTERRUPTED


def _all(settings: Settings, past: History) -> list[tuple[str, Publication | None]]:
    """Return the publications of webarc.toml in its order, then those given on a command line only; no imports."""
    known = [(each.name, each) for each in settings.publications]
    others = set(past.runs) - {name for name, _ in known}
    return [*known, *((name, None) for name in sorted(others) if not is_import(name) and not is_occasion(name))]


def _publication(archive: Archive, named: tuple[str, Publication | None], past: History) -> dict[str, Any]:
    name, publication = named
    at = now()
    running = [each.job for each in past.open if each.publication == name]
    return {
        "name": name,
        "urls": list(publication.urls) if publication else [],
        "interval": str(publication.crawl.interval) if publication else None,
        "next": _next(publication, past, at),
        "retired": publication is not None and publication.retired,
        "jobs": running,
        "last": _last(archive, past.last.get(name)),
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
        summary = jsonfile.read(folder / "summary.json") or {}
        ended = jobstate.load(folder)
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


def _job(each: JobState) -> dict[str, Any]:
    kept = (
        *("job", "publication", "due", "begun", "updated", "stage", "done", "known", "urls", "bytes", "documents"),
        *("failures", "again", "a_second", "left", "latest_end", "held", "orders"),
    )
    values = dataclasses.asdict(each if each.runs else dataclasses.replace(each, a_second=0.0, left=None))
    return {name: values[name] for name in kept} | {
        "state": str(shown_state(each)),
        "running": each.runs,
        "reason": each.reason or ("its process ended without a word" if shown_state(each) != each.state else ""),
    }
