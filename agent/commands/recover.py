"""`webarc-agent recover`: what derives from git, made anew."""

from __future__ import annotations

import click

from agent import recover as recovery
from agent.commands.common import archive_option, console, opened
from agent.progress import Display
from webarcfs.archive.errors import WebarcError


@click.command()
@archive_option
def recover(archive: str | None) -> None:
    """Make anew what derives from the git repositories.

    That is webarc.db, the feed `changes` and, with `[index] links`, links.db. Locks that a killed git left in a
    repository are removed.
    """
    place = opened(archive)
    with Display(console) as display:
        done = recovery.recover(place, lambda number, of: display("snapshots", number, of))
    click.echo(f"{done.snapshots} snapshots, {done.versions} document versions, {done.lines} lines in changes")
    if done.links is not None:
        click.echo(f"{done.links} links of pages")
    if done.damaged:
        raise WebarcError(f"not readable, and left out: {', '.join(done.damaged)}")
