"""`webarc-agent init`: a new, empty archive."""

from __future__ import annotations

from pathlib import Path

import click

from webarcfs.archive.config import directory


@click.command()
@click.argument("archive", type=click.Path(path_type=Path))
def init(archive: Path) -> None:
    """Make a new, empty archive in the folder ARCHIVE."""
    made = directory.create(archive)
    click.echo(f"{made.root} is an archive now; `webarc-agent crawl --archive {made.root} URL` fills it")
