"""`webarc-agent init`: a new, empty archive; `upgrade`: one of an older layout."""

from __future__ import annotations

from pathlib import Path

import click

from agent.catalogue.keeping import catch_up_records
from agent.commands.common import archive_option, opened
from agent.importing.plan.flattened import flattened_imports
from agent.indexing import recovery
from webarcfs.archive.config import directory
from webarcfs.archive.history import sequence
from webarcfs.gate import access_file
from webarcfs.lazy_commands import AbsolutePath


@click.command()
@click.argument("archive", type=AbsolutePath())
def init(archive: Path) -> None:
    """Make a new, empty archive in the folder ARCHIVE."""
    made = directory.create(archive)
    click.echo(f"{made.root} is an archive now; `webarc-agent crawl --archive {made.root} URL` fills it")


@click.command()
@archive_option
def upgrade(archive: str | None) -> None:
    """Bring an archive of an older webarcfs to this one's layout.

    The next crawl does it, too. What was archived stays as it is, and webarc.db is made anew where it is of an older
    webarcfs. It names imports of older versions that made one snapshot of captures of several days. Older programs
    refuse the archive from then on, so stop theirs before.
    """
    found = opened(archive)
    before = directory.layout_of(found.root)
    with sequence.hold(found):
        raised = directory.raise_layout(found)
    recovery.catch_up(found)
    catch_up_records(found)
    said = f"had layout {before} and has layout {directory.LAYOUT} now" if raised else f"has layout {before} already"
    click.echo(f"{found.root} {said}")
    for earlier in flattened_imports(found):
        click.echo(earlier.line())
    count = access_file.load(found).count_without_public_text()
    if count:
        click.echo(
            f"access.aclj: the reasons of {count} rules are for staff now; readers of these pages are told nothing "
            "but that they are withheld, unless a rule has a public_text"
        )
