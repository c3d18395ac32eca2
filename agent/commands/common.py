"""Shared by several commands: options, settings, signals, the output of an outcome."""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import threading
import tomllib
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import click

from webarcfs.archive.config import directory, settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings, Settings
from webarcfs.archive.config.validators import Interval
from webarcfs.archive.model.errors import NotFound, UsageError
from webarcfs.archive.system import json_log
from webarcfs.archive.system.clocks import Progress
from webarcfs.commands import lazy_commands, log_format
from webarcfs.commands.listing import Form, Mood, error_console

if TYPE_CHECKING:
    from agent.jobs.publishing import JobOutcome  # its imports are slow, and few commands need them

_F = TypeVar("_F", bound=Callable[..., Any])
_R = TypeVar("_R")
#: Where progress and logs go; results go to stdout.
console = error_console()
_log = logging.getLogger("webarc")
archive_option = lazy_commands.archive_option


def opened(archive: str | None) -> Archive:
    """Open the archive that the option names, or the default one."""
    return directory.open_archive(directory.default_root(archive))


def settings_of(place: Archive) -> Settings:
    """Return the settings of webarc.toml; log a warning if it exists and cannot be read (/Cr-1/)."""
    apart: dict[str, list[str]] = {}
    settings, warning = settings_files.load(place.settings, apart=apart)
    for fault in (fault for faults in apart.values() for fault in faults):
        _log.warning("%s; that publication is skipped", fault)
    if warning is not None and place.settings.exists():
        _log.warning("%s", warning)
    return settings


def log_as_asked(option: str | None, place: Archive) -> bool:
    """Log JSON from now on if the option, or else the settings, say so; return whether they do."""
    as_json = log_format.wants_json(option, place)
    if as_json:
        json_log.log_json()
    return as_json


def crawl_options(command: _F) -> _F:
    """Add an option for each setting of `[crawl]`."""
    hints = get_type_hints(CrawlSettings)
    for field in reversed(dataclasses.fields(CrawlSettings)):
        name = field.name.replace("_", "-")
        explain = f"{field.metadata['help']} [default: {_shown(field.default)}]"
        kind = hints[field.name]
        if "words" in field.metadata:
            option = click.option(f"--{name}", field.name, type=_NumberOrWords(), default=None, help=explain)
        elif kind is bool:
            option = click.option(f"--{name}/--no-{name}", field.name, default=None, help=explain)
        elif kind in (int, float):
            option = click.option(f"--{name}", field.name, type=kind, default=None, help=explain)
        elif kind is str or kind.__name__ == "Interval":
            option = click.option(f"--{name}", field.name, default=None, help=explain)
        else:
            option = click.option(f"--{name}", field.name, multiple=True, help=f"{explain} May be given again.")
        command = option(command)
    return command


class _NumberOrWords(click.ParamType):  # type: ignore[type-arg] # not generic when it runs
    """A number, or what its setting takes in words: `unlimited`, `500 kB`."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """Return the number where it is one; the setting's own check judges the rest."""
        return int(value) if isinstance(value, str) and value.lstrip("-").isdecimal() else value


def _shown(default: Any) -> str:
    return " ".join(default) or "none" if isinstance(default, tuple) else str(default)


def stop_on_signals() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set; a second signal raises KeyboardInterrupt."""
    stop = threading.Event()

    def ask(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        _log.warning("stopping; the fetched documents are kept (once more ends it at once)")
        stop.set()

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)
    return stop


def sums_of(outcome: JobOutcome, *, judged: bool = True) -> dict[str, Any]:
    """Return how a job ended, as JSON has it; `complete` is null where nobody judges it."""
    loses_nothing = not outcome.interrupted and not outcome.warnings
    return {
        "job": outcome.job,
        "commit_tags": [str(tag) for tag in outcome.tags],
        "complete": outcome.complete if judged or outcome.complete else None,
        "interrupted": outcome.interrupted,
        "whole": outcome.is_whole if judged else loses_nothing,
        "warnings": list(outcome.warnings),
        "arcs": outcome.summary.get("arcs", {}),
        "urls": outcome.summary.get("urls", {}),
        "bytes": outcome.summary.get("bytes"),
        "report": None if outcome.report is None else str(outcome.report),
    }


#: What words for states mean to who reads a list.
_MOODS: Mapping[str, Mood] = {
    **dict.fromkeys(("released", "archived", "complete", "sound"), Mood.GOOD),
    **dict.fromkeys(("captured", "counted", "converted", "indexed", "checked", "open", "waiting"), Mood.WAITS),
    **dict.fromkeys(("interrupted", "paused", "deadline", "retired"), Mood.WAITS),
    **dict.fromkeys(("failed", "rejected", "discarded", "empty", "incomplete"), Mood.BAD),
}


def mood_of(state: str) -> Mood | None:
    """Return the mood of a state of a record or of a job; None for one that says nothing good or bad."""
    return _MOODS.get(str(state))


def warn_of_root() -> None:
    """Say once, where work begins that fetches what strangers wrote, that root is not needed."""
    if os.geteuid() == 0:
        _log.info("running as root; the agent never needs it: a user of its own is safer")


def tell(outcome: JobOutcome, *, judged: bool = True, form: Form = Form.TABLE) -> None:
    """Print how a job ended; with `judged`, also whether it was complete. As JSON it is the caller who prints."""
    for warning in outcome.warnings:
        _log.warning("%s", warning)
    for tag in outcome.tags if form is Form.TABLE else ():
        click.echo(tag)
    if outcome.report is not None:
        from agent.reports import report  # noqa: PLC0415 # most commands need none of this

        arcs = outcome.summary["arcs"]
        assert isinstance(arcs, dict)
        counts = ", ".join(f"{count} {what}" for what, count in arcs.items())
        verdict = ("; complete" if outcome.complete else "; incomplete") if judged else ""
        if judged and outcome.complete and outcome.lacks.lost:
            verdict += " but for what failed"
        for line in outcome.lacks.lines():
            _log.warning("%s", line)
        patched = str(outcome.summary.get("patches") or "")
        if judged:
            for line in outcome.lacks.what_to_do(patched or outcome.job, is_published=bool(patched or outcome.tags)):
                _log.warning("%s", line)
        for remark in report.remarks_in(outcome.summary):
            _log.log(logging.WARNING if remark.is_warning else logging.INFO, "%s", remark.text)
        _log.info("%s%s: report in %s", counts, verdict, outcome.report)


def tell_release(place: Archive, record: str) -> None:
    """Log that readers do not see a crawl yet, and what leads on; nothing where they do, or where it has no record."""
    from agent.operations.records import text_of_release  # noqa: PLC0415 # most commands need none of this

    with suppress(NotFound):  # a watched feed without news has none
        if text := text_of_release(place, record):
            _log.warning("%s", text)


def follow(place: Archive, record: str, progress: Progress | None = None) -> bool:
    """Run the steps that wait for a record, where no agent does; return whether all went well."""
    from agent.catalogue import stepfolders  # noqa: PLC0415 # most commands need none of this
    from agent.crawl.job_folder import step_of  # noqa: PLC0415
    from agent.service import agent_status  # noqa: PLC0415

    waits = any((step_of(name) or ("",))[0] == record for name in stepfolders.waiting(place))
    if not waits or agent_status.running(place) is not None:
        return True
    from agent.steps import running  # noqa: PLC0415
    from webarcfs.commands.output import Display  # noqa: PLC0415

    with nullcontext(progress) if progress is not None else Display(console) as shown:
        faults = running.run_waiting(place, record, stop=stop_on_signals(), progress=shown)
    for line in faults:
        _log.error("%s", line)
    return not faults


def tell_renamed(former: str, now: str) -> None:
    """Say on stderr what an option of former versions, which holds for one more release, is called."""
    click.echo(f"{former} is called {now} now", err=True)


def of_former(former: str, former_value: _R | None, now: str, value: _R) -> _R:
    """Return the value of an option that was renamed; say so where it came by its former name."""
    if former_value is None:
        return value
    tell_renamed(former, now)
    return former_value


def say_how_often(interval: Interval | str) -> str:
    """Return an interval as people say it: every week, every 2 weeks."""
    return f"every {str(interval).removeprefix('1 ')}"


def values_of(sets: tuple[str, ...]) -> dict[str, Any]:
    """Return settings from KEY=VALUE; a value that is no TOML is text. Raises UsageError."""
    values: dict[str, Any] = {}
    for setting in sets:
        key, sign, text = setting.partition("=")
        if not sign or not key.strip():
            raise UsageError(f"{setting!r} is not KEY=VALUE, as depth=3")
        try:
            values[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[key.strip()] = text
    return values
