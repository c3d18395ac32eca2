"""`webarc-agent status`: running jobs, next crawls, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from agent.commands.common import archive_option, opened
from agent.jobfolder.names import is_import
from agent.service.statusview import overview
from webarcfs.terminal.speed import described


@click.command()
@archive_option
@click.option("--json", "as_json", is_flag=True, help="All of it, for programs.")
def status(archive: str | None, as_json: bool) -> None:
    """Show what runs, what comes next, and how jobs ended.

    It needs no agent.
    """
    told = overview(opened(archive))
    if as_json:
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    for line in _lines(told):
        click.echo(line)


def _lines(told: dict[str, Any]) -> Iterator[str]:
    agent = told["agent"]
    runs = f"agent {agent['pid']} runs since {agent['since']}" if agent else "no agent runs"
    yield f"{told['archive']}: {runs}"
    yield from (f"  webarc.toml: {fault}" for fault in told["settings_faults"])
    yield from (f"  webarc.toml: {line}" for line in told["settings_warnings"])
    yield from (f"  refused: {line}" for line in told["refused"])
    for job in told["jobs"]:
        why = f" ({job['reason']}{_next_try(job)})" if job["reason"] else ""
        held = f", {job['held']}" if job["held"] and job["held"] != job["reason"] else ""
        until = f", ends by {job['latest_end']}" if job["latest_end"] and job["stage"] == "capture" else ""
        yield f"  {job['job']}: {job['state']}{why}{held}, {_progress(job)}, {job['bytes']} bytes{until}"
    for each in told["publications"]:
        yield from _publication(each, "webarc.toml cannot be read" if told["settings_faults"] else "not in webarc.toml")


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


def _publication(each: dict[str, Any], undated: str) -> Iterator[str]:
    coming = f"every {each['interval']}, next {each['next']}" if each["next"] else undated
    coming = "retired" if each["retired"] else coming
    last = each["last"]
    yield f"  {each['name']}: {coming}" + (f"; last {last['job']}: {last['state']}" if last else "; never finished yet")
    if last and last["complete"] is False:
        yield "    incomplete: nothing was removed"
    yield from (f"    {warning}" for warning in (last["warnings"] if last else []))
    for name, failure in (last["filter_errors"] if last else {}).items():
        yield f"    filter {name} failed on {failure['documents']} documents, and kept them: {failure['error']}"
