"""`webarc-agent backup` and `restore`: an incremental copy of an archive, and an archive from a copy."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from agent.commands.common import archive_option, console, opened
from agent.upkeep import backups
from webarcfs.archive.model.errors import Exit, WebarcError
from webarcfs.lazy_commands import AbsolutePath
from webarcfs.terminal.progressbar import Display

_log = logging.getLogger("webarc")
_FOLDER = AbsolutePath()


@click.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@archive_option
@click.option("--quick", is_flag=True, help="Do not read what is there already: damage of the disk's is not noticed.")
def backup(folder: Path, archive: str | None, quick: bool) -> None:
    """Copy what is new in the archive to the backup in DIR.

    The archive may be in use meanwhile. The first time DIR must be empty or new. Nothing that was backed up is deleted
    there.

    Unless it is told to be quick, it reads what is in DIR as well, as fast as the disk is, since a disk may damage what
    nobody reads. A repository that is damaged there is copied anew, and the damaged one put aside; it says so, and ends
    with 2.
    """
    place = opened(archive)
    with Display(console) as display:
        copied = backups.backup(place, folder, display, quick=quick)
    left_out = "; what was there before was not read" if quick else ""
    state = "is not whole" if copied.failed else "is up to date"
    for line in copied.notes:
        click.echo(line)
    click.echo(f"{copied.domains} domains, {copied.moved} of them with something new: {folder} {state}{left_out}")
    _complain(copied)


@click.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.argument("archive", type=_FOLDER)
@click.option("--partial", is_flag=True, help="Make an archive also where not all of the backup can be read.")
def restore(folder: Path, archive: Path, partial: bool) -> None:
    """Make an archive anew from the backup in DIR.

    ARCHIVE must be an empty or new folder. Where something of the backup cannot be read, ARCHIVE is no archive yet:
    when the backup is whole again, the same command goes on; with --partial it makes an archive of what can be read.
    """
    with Display(console) as display:
        copied, recovered, finished = backups.restore(folder, archive, display, partial=partial)
    complaints = [f"not copied: {line}" for line in copied.failed]
    complaints += [f"not mended: {line}" for line in recovered.left]
    complaints += [f"not readable: {', '.join(recovered.damaged)}"] if recovered.damaged else []
    if complaints and not partial:
        complaints.append(
            f"{archive} is no archive yet. When {folder} is whole again (`webarc-agent backup` mends it from a sound"
            " archive), the same command goes on; with --partial it makes an archive of what there is"
        )
    else:
        if complaints:
            complaints.append(f"what is missing in {archive} is said in its file `missing`; remove that when you know")
        click.echo(f"{copied.domains} domains, {recovered.snapshots} snapshots: {archive} is an archive again")
    if complaints:
        raise WebarcError("\n".join(complaints))
    if not finished:
        _log.warning("the last backup to %s was not finished: what it had is restored", folder)
        sys.exit(Exit.INCOMPLETE)


def _complain(copied: backups.Copied) -> None:
    complaints = [f"not copied: {line}" for line in copied.failed]
    complaints += [f"was damaged: {line}" for line in copied.mended]
    if complaints:
        raise WebarcError("\n".join(complaints))
