"""`webarc-agent recover`: rebuilds all data derived from git."""

from __future__ import annotations

import click

from agent.commands.common import archive_option, console, opened
from agent.indexing import recovery
from agent.system.progressbar import Display
from webarcfs.archive.model.errors import WebarcError


@click.command()
@archive_option
def recover(archive: str | None) -> None:
    """Make anew what derives from the git repositories, and mend what can be mended of these.

    What derives is webarc.db, the feed `changes` and, with `[index] links`, links.db. HEAD, settings, refs and the
    commit-graph of a repository are mended where a byte was damaged, as far as the repository tells what they were;
    what was there before is kept in `damaged/` in it. Locks that a killed git left are removed. What cannot be mended
    is named, and it ends with 2.
    """
    place = opened(archive)
    with Display(console) as display:
        done = recovery.recover(place, lambda number, of: display("snapshots", number, of))
    click.echo(f"{done.snapshots} snapshots, {done.versions} document versions, {done.lines} lines in changes")
    if done.links is not None:
        click.echo(f"{done.links} links of pages")
    for line in done.mended:
        click.echo(f"mended: {line}")
    complaints = [f"not mended: {line}" for line in done.left]
    if done.damaged:
        complaints.append(f"not readable, and left out: {', '.join(done.damaged)}")
    if complaints:
        raise WebarcError("\n".join(complaints))
