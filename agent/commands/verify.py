"""`webarc-agent verify`: whether the archive is whole, a line a finding."""

from __future__ import annotations

import sys

import click

from agent import verification
from agent.commands.common import archive_option, opened
from webarcfs.archive.errors import Exit


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
    """
    findings = 0
    for line in verification.verify(opened(archive), quick=quick):
        click.echo(line)
        findings += 1
    left_out = f"; not read: {verification.LEFT_OUT}" if quick else ""
    click.echo(("sound" if not findings else f"{findings} findings") + left_out, err=bool(findings))
    if findings:
        sys.exit(Exit.FAILED)
