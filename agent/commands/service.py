"""The commands of `webarc-agent` for the unattended agent.

`start` runs it; `stop` ends it, and waits for its end; `status` shows running jobs, next crawls and errors.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from agent.commands.common import (
    archive_option,
    log_as_asked,
    mood_of,
    opened,
    say_how_often,
    settings_of,
    warn_of_root,
)
from agent.crawl import browser_check
from agent.notifying import channels, notifier
from agent.reports.shown_pages import text_of_views
from agent.service import agent_status, loop
from agent.service.agent_status import overview
from webarcfs.archive.catalogue.record import is_import
from webarcfs.archive.config import collection_files, settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.validators import start_url
from webarcfs.archive.model.errors import Exit, WebarcError
from webarcfs.archive.model.metadata import now
from webarcfs.archive.system.processes import Process
from webarcfs.commands.listing import OBJECT, Form, Mood, format_option, print_object, styled
from webarcfs.commands.log_format import log_format_option
from webarcfs.commands.output import described
from webarcfs.web.listeners import address as listen_address

# == start ============================================================================================================


_log = logging.getLogger("webarc")
_READY = b"READY=1"
#: Set for the process that `--detach` starts: it stops writing to stderr once it is ready.
_DETACHED = "WEBARC_DETACHED"
_COMMAND = (sys.executable, "-c", "from agent.cli import main; main()")


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL...]")
@archive_option
@click.option(
    "--detach",
    is_flag=True,
    help="Go to the background, once the agent is ready. It does not survive a restart of the machine.",
)
@click.option("--once", is_flag=True, help="Crawl what is due now, then end.")
@click.option(
    "--metrics-listen",
    metavar="ADDRESS",
    help="Answer monitoring systems at a PORT of this machine, HOST:PORT or unix:PATH; see `webarc-agent metrics -h`.",
)
@log_format_option
def start(  # noqa: PLR0917 # click calls it by names
    urls: tuple[str, ...],
    archive: str | None,
    detach: bool,
    once: bool,
    metrics_listen: str | None,
    log_format: str | None,
) -> None:
    """Crawl each publication of webarc.toml when it is due.

    It ends with SIGTERM (`webarc-agent stop`). URLs make one more publication, for as long as this agent runs: crawled
    at once, then at the interval of `[crawl]`. Jobs that were interrupted come first. SIGHUP reloads webarc.toml.
    The agent never needs to be root.
    With --once it ends as `crawl` does: with 3 if a crawl was incomplete, with 2 if one failed.
    """
    place = opened(archive)
    as_json = log_as_asked(log_format, place)
    settings = settings_of(place)
    detached = os.environ.pop(_DETACHED, None) is not None
    if not detach:
        loop.to_file(place.log, as_json=as_json)
    warn_of_root()
    first = tuple(dict.fromkeys(start_url(url) for url in urls))
    if metrics_listen is not None:
        listen_address(metrics_listen)  # a wrong one is said at once
    if not settings.publications and not first:
        _log.warning("%s has no publication: nothing is crawled until it has one (kill -HUP reads it)", place.settings)
    for fault in channels.faults_of(place, settings):
        _log.warning("notifications cannot be sent: %s", fault)
    if detach:
        listens = [] if metrics_listen is None else ["--metrics-listen", metrics_listen]
        logs = [] if log_format is None else ["--log-format", log_format]
        _detach(place, [*first, *(["--once"] if once else []), *listens, *logs])
        return
    agent = loop.Service(
        place,
        loop.given(first, settings),
        once=once,
        ready=loop.only_to_file if detached else None,
        metrics_listen=metrics_listen,
    )
    if code := agent.run():
        sys.exit(code)


def _detach(archive: Archive, arguments: list[str]) -> None:
    """Start the agent as a separate process, and wait until it notifies, by systemd's protocol, that it is ready."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        listener.bind(f"{folder}/ready")
        stderr = stack.enter_context((Path(folder) / "said").open("w+b"))
        process = subprocess.Popen(
            [*_COMMAND, "start", "--archive", str(archive.root), *arguments],
            env={**os.environ, "NOTIFY_SOCKET": f"{folder}/ready", _DETACHED: "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd="/",
            start_new_session=True,
        )
        if not _ready(listener, process):
            stderr.seek(0)
            text = stderr.read().decode("utf-8", "replace").strip()
            click.echo(text, err=True)
            sys.exit(process.returncode or Exit.FAILED)
    click.echo(f"the agent of {archive.root} runs as process {process.pid}")


def _ready(listener: socket.socket, process: subprocess.Popen[bytes]) -> bool:
    """Wait for READY=1; return False if the process ends without it."""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        while process.poll() is None:
            if selector.select(0.1) and _READY in listener.recv(4096).splitlines():
                return True
    return False


@click.command()
@archive_option
@click.option("--timeout", default=120.0, show_default=True, help="Seconds to wait for its jobs to stop.")
def stop(archive: str | None, timeout: float) -> None:
    """End the running agent. Its jobs keep what they have fetched; the next start resumes them."""
    place = opened(archive)
    agent = agent_status.running(place)
    if agent is None:
        click.echo(f"no agent runs for {place.root}")
        return
    process = Process(agent.pid, agent.ticks)
    until = time.monotonic() + timeout
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(agent.pid, signal.SIGTERM)
    while process.runs():
        if time.monotonic() > until:
            raise WebarcError(f"process {agent.pid} has not ended within {timeout:g} s; it is still stopping its jobs")
        time.sleep(0.05)
    click.echo(f"the agent of {place.root} has ended")


# == status ===========================================================================================================


@click.command()
@archive_option
@click.option("--check", is_flag=True, help="Print only what is wrong, for monitoring; see above.")
@format_option(*OBJECT)
def status(archive: str | None, check: bool, form: Form) -> None:
    """Show what runs, what comes next, and how jobs ended.

    It needs no agent. Where a publication needs a browser, it says whether one can show pages here, as whoever asks.

    With --check it prints a line for each thing that is wrong, or `ok`. It exits with 2 if no agent runs, settings have
    faults, something in the archive could not be read, a job failed, or a publication is overdue by its interval. It
    exits with 3 if only the newest crawl of a publication is incomplete, or a job waits for an order; with 0 if all is
    well.

    Nagios and Icinga take 1 for a warning and 3 for unknown: examples/check_webarc is a plugin for them.
    """
    place = opened(archive)
    if check:
        _check(place, form)
        return
    settings = settings_files.load_usable(place)
    browser = browser_check.needed_check(settings, place.root)
    summary = overview(place) | {
        "collection_faults": collection_files.faults_of(place),
        "kept_at_old_defaults": settings_files.kept_at_old_defaults(place),
        "browser": None if browser is None else dataclasses.asdict(browser),
        "notifications": notifier.overview(place, settings),
    }
    if form is Form.JSON:
        print_object(summary)
        return
    for line in (*_lines(summary), *(f"  {line}" for line in browser_check.lines_of(browser))):
        click.echo(line)


def _check(archive: Archive, form: Form) -> None:
    faults = agent_status.problems(overview(archive), now())
    if form is Form.JSON:
        print_object({"ok": not faults, "problems": [dataclasses.asdict(fault) for fault in faults]})
    else:
        for fault in faults:
            click.echo(f"{'FAULT  ' if fault.is_grave else 'warning'}  {fault.text}")
        if not faults:
            click.echo("ok")
    if faults:
        sys.exit(Exit.FAILED if faults[0].is_grave else Exit.INCOMPLETE)


def _lines(summary: dict[str, Any]) -> Iterator[str]:
    agent = summary["agent"]
    runs = f"agent {agent['pid']} runs since {agent['since']}" if agent else styled("no agent runs", Mood.WAITS)
    yield f"{summary['archive']}: {runs}"
    if summary["damage_met"]:
        yield f"  {agent_status.damage_line(summary)}"
    yield from (f"  webarc.toml: {fault}" for fault in summary["settings_faults"])
    yield from (f"  webarc.toml: {line}" for line in summary["settings_warnings"])
    yield from (f"  {fault}" for fault in summary["collection_faults"])
    if kept := summary["kept_at_old_defaults"]:
        yield f"  crawled as before the upgrade: {', '.join(kept)}"
        yield "    `webarc-agent publication try NAME` shows what the new defaults would bring (until the comments go)"
    notifications = summary["notifications"]
    yield from (f"  notifications cannot be sent: {fault}" for fault in notifications["faults"])
    if notifications["waiting"] or notifications["given_up"]:
        yield f"  notifications: {notifications['waiting']} wait, {notifications['given_up']} were given up"
        yield "    `webarc-agent notify list` says why"
    yield from (f"  refused: {line}" for line in summary["refused"])
    for job in summary["jobs"]:
        why = f" ({job['reason']}{_next_try(job)})" if job["reason"] else ""
        held = f", {job['held']}" if job["held"] and job["held"] not in {job["reason"], job["state"]} else ""
        until = f", ends by {job['latest_end']}" if job["latest_end"] and job["stage"] == "capture" else ""
        state = styled(job["state"], mood_of(job["held"] or job["state"]))
        yield f"  {job['job']}: {state}{why}{held}, {_progress(job)}, {job['bytes']} bytes{until}"
        if shown := text_of_views(job["views"]):
            yield f"    {shown}"
    for publication in summary["publications"]:
        yield from _publication(
            publication, "webarc.toml cannot be read" if summary["settings_faults"] else "not in webarc.toml"
        )


def _next_try(job: dict[str, Any]) -> str:
    """Return when the running agent tries a failed job again, as text."""
    if job["state"] != "failed" or not job["failures"]:
        return ""
    return f"; failures in a row: {job['failures']}, next try {job['again'] or 'when it is due'}"


def _progress(job: dict[str, Any]) -> str:
    """Return the progress of a job as text: URLs while a crawl fetches, else the units of its stage."""
    urls = job["urls"]
    if job["stage"] and job["running"]:
        kind = " URLs" if job["stage"] == "capture" else ""
        what = "" if kind else f"{job['stage']}: "
        speed = described(job["a_second"] or None, job["left"], in_bytes="(bytes)" in job["stage"])
        return f"{what}{job['done']} of {job['known']}{kind}" + (f", {speed}" if speed else "")
    if is_import(job["job"]):
        return f"{urls.get('done', 0)} captures"
    fetched, known = urls.get("done", 0) + urls.get("failed", 0), sum(urls.values()) - urls.get("refused", 0)
    return f"{fetched} of {known} URLs"


def _publication(publication: dict[str, Any], undated: str) -> Iterator[str]:
    often, due = say_how_often(publication["interval"]), publication["next"]
    coming = f"{often}, next {due}" if due else undated
    coming = "retired" if publication["retired"] else coming
    last = publication["last"]
    yield f"  {publication['name']}: {coming}" + (
        f"; last {last['job']}: {styled(last['state'], mood_of(last['state']))}" if last else "; never finished yet"
    )
    if last and last["complete"] is False:
        yield f"    {styled('incomplete', Mood.BAD)}: nothing was removed"
    yield from (f"    {warning}" for warning in (last["warnings"] if last else []))
    for name, failure in (last["filter_errors"] if last else {}).items():
        yield f"    filter {name} failed on {failure['documents']} documents, and kept them: {failure['error']}"
