"""`webarc-agent metrics`: the figures of an archive for monitoring systems."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from agent.commands.common import archive_option, opened
from agent.service import agent_status
from agent.service.metrics import ArchiveMetrics
from agent.service.metrics_listener import IsWell, MetricsListener
from webarcfs.archive.config import settings_files
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.system import processes
from webarcfs.archive.system.processes import Signals
from webarcfs.commands.lazy_commands import AbsolutePath
from webarcfs.web.exposition import MetricForm
from webarcfs.web.listeners import Address, address


@click.command()
@archive_option
@click.option(
    "--format",
    "form",
    type=click.Choice([str(form) for form in MetricForm]),
    default=str(MetricForm.PROMETHEUS),
    show_default=True,
    help="Prometheus' text format 0.0.4, or OpenMetrics 1.0. A listener answers with what it is asked for.",
)
@click.option("--to", metavar="FILE", type=AbsolutePath(dir_okay=False), help="Replace this file, at once as a whole.")
@click.option("--listen", metavar="ADDRESS", help="Answer at this address until SIGTERM, also without an agent.")
def metrics(archive: str | None, form: str, to: Path | None, listen: str | None) -> None:
    """Print the figures of the archive for Prometheus and others: OpenMetrics.

    They say whether the agent runs, and of each publication when its last complete crawl was, how the newest one ended,
    its documents, bytes and duration, and when it is due next. They count jobs, steps, crawls that wait for a release
    and snapshots that the index lacks. They have the free space of the disk and the time of the last backup.

    The agent answers at an address of its own if `[metrics] listen` in webarc.toml names one, or its option
    --metrics-listen: `/metrics` has the figures, `/healthz` is 200 while the agent runs. ADDRESS is a PORT of this
    machine, HOST:PORT, or unix:PATH. The figures name publications, so other machines are not answered unless HOST is
    an address that they reach.

    \b
    Examples:
      webarc-agent start --metrics-listen 9464
      webarc-agent metrics
      webarc-agent metrics --to /var/lib/prometheus/node-exporter/webarc.prom    # for the textfile collector
      webarc-agent metrics --listen 9464
    """
    if listen is not None and to is not None:
        raise UsageError("--listen and --to are different ways to hand figures over; give one")
    place = opened(archive)
    figures = ArchiveMetrics(place)
    if listen is not None:
        _answer(figures, address(listen), lambda: agent_status.running(place) is not None)
        return
    content = figures.page(MetricForm(form))
    if to is None:
        click.echo(content, nl=False)
        return
    settings_files.replace_file(to, content)


def _answer(figures: ArchiveMetrics, where: Address, is_well: IsWell) -> None:
    with Signals() as signals:
        listener = MetricsListener(where, figures.page, is_well)
        listener.start()
        try:
            click.echo(f"metrics are at {listener.address.origin or listener.address}/metrics")
            sys.stdout.flush()
            processes.notify("READY=1", f"STATUS=at {listener.address}")
            while not signals.stop:
                signals.wait(1.0)
        finally:
            listener.close()
