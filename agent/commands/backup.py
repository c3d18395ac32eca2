"""`webarc-agent backup` and `restore`: an incremental copy of an archive, and the way back."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from agent import backup as backups
from agent.commands.common import archive_option, console, opened
from agent.progress import Display
from webarcfs.archive.errors import Exit, WebarcError

_log = logging.getLogger("webarc")
_FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@archive_option
def backup(folder: Path, archive: str | None) -> None:
    """Copy what is new in the archive to the backup in DIR.

    The archive may be in use meanwhile. The first time DIR must be empty or new. Nothing that was backed up is deleted
    there.
    """
    place = opened(archive)
    with Display(console) as display:
        copied = backups.backup(place, folder, display)
    click.echo(f"{copied.domains} domains, {copied.moved} of them with something new: {folder} is up to date")
    _complain(copied)


@click.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.argument("archive", type=_FOLDER)
def restore(folder: Path, archive: Path) -> None:
    """Make an archive anew from the backup in DIR.

    ARCHIVE must be an empty or new folder.
    """
    with Display(console) as display:
        copied, recovered, finished = backups.restore(folder, archive, display)
    click.echo(f"{copied.domains} domains, {recovered.snapshots} snapshots: {archive} is an archive again")
    _complain(copied)
    if recovered.damaged:
        raise WebarcError(f"not readable: {', '.join(recovered.damaged)}")
    if not finished:
        _log.warning("the last backup to %s was not finished: what it had is restored", folder)
        sys.exit(Exit.INCOMPLETE)


def _complain(copied: backups.Copied) -> None:
    if copied.failed:
        raise WebarcError("\n".join(f"not copied: {line}" for line in copied.failed))
