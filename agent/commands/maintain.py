"""`webarc-agent maintain`: repacks, writes commit-graphs, and removes the leftovers of crashes."""

from __future__ import annotations

import click

from agent.commands.common import archive_option, opened
from agent.upkeep import maintenance
from webarcfs.archive.model.errors import WebarcError


@click.command()
@archive_option
def maintain(archive: str | None) -> None:
    """Repack many small packs, and remove what crashes left.

    `start` does it once a day.
    """
    done = maintenance.maintain(opened(archive))
    click.echo(f"{len(done.domains)} domains in order, {len(done.removed)} leftovers removed")
    for line in done.removed:
        click.echo(f"removed {line}")
    for name in done.busy:
        click.echo(f"{name} is in use; skipped")
    if done.failed:
        raise WebarcError("\n".join(done.failed))
