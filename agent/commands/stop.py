"""`webarc-agent stop`: ends the agent, and waits for its end."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import click

from agent.commands.common import archive_option, opened
from agent.service import agentlock
from agent.system.processid import Process
from webarcfs.archive.model.errors import WebarcError


@click.command()
@archive_option
@click.option("--timeout", default=120.0, show_default=True, help="Seconds to wait for its jobs to stop.")
def stop(archive: str | None, timeout: float) -> None:
    """End the running agent. Its jobs keep what they have fetched; the next start goes on with them."""
    place = opened(archive)
    agent = agentlock.running(place)
    if agent is None:
        click.echo(f"no agent runs for {place.root}")
        return
    process = Process(agent.pid, agent.ticks)
    until = time.monotonic() + timeout
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(agent.pid, signal.SIGTERM)
    while process.runs():
        if time.monotonic() > until:
            raise WebarcError(f"process {agent.pid} has not ended within {timeout:g} s; it is still stopping its jobs")
        time.sleep(0.05)
    click.echo(f"the agent of {place.root} has ended")
