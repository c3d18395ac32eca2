"""`webarc-agent verify`: checks whether the archive is whole; prints one line per finding."""

from __future__ import annotations

import sys

import click

from agent.commands.common import archive_option, opened
from agent.upkeep import backup_verification, verification
from agent.upkeep.backupmark import is_backup
from webarcfs.archive.config import directory
from webarcfs.archive.model.errors import Exit


@click.command()
@archive_option
@click.option("--quick", is_flag=True, help="Leave out what takes long; see above.")
def verify(archive: str | None, quick: bool) -> None:
    """Check whether the archive is whole; a line a finding.

    Git, every data.xml, refs, feed, database and journal are held against each other. Ends with 0 where all is sound,
    with 2 where something was found.

    With --quick it looks at HEAD, settings, refs and history of each repository, and at the data.xml that came since
    the last verification. It does not read all objects of git, the commit-graphs, or all pages of webarc.db and
    links.db: what a disk damaged there only the full form finds.

    The archive may also be a backup, to which nothing is written. Of one the quick form compares the checksums of the
    files that hold objects, and looks whether all are there, but reads no object or document for itself.
    """
    root = directory.default_root(archive)
    if is_backup(root):
        lines, left_out = backup_verification.verify_backup(root, quick=quick), backup_verification.LEFT_OUT
    else:
        lines, left_out = verification.verify(opened(archive), quick=quick), verification.LEFT_OUT
    findings = 0
    for line in lines:
        click.echo(line)
        findings += 1
    told = f"; not read: {left_out}" if quick else ""
    click.echo(("sound" if not findings else f"{findings} findings") + told, err=bool(findings))
    if findings:
        sys.exit(Exit.FAILED)
