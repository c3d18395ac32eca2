"""`webarc-agent verify`: whether the archive is whole, a line a finding."""

from __future__ import annotations

import sys

import click

from agent import verification
from agent.commands.common import archive_option, opened
from webarcfs.archive.errors import Exit


@click.command()
@archive_option
@click.option("--quick", is_flag=True, help="Only what came since the last time; objects are not all read.")
def verify(archive: str | None, quick: bool) -> None:
    """Check whether the archive is whole; a line a finding.

    Git, every data.xml, refs, feed, database and journal are held against each other. Ends with 0 where all is sound,
    with 2 where something was found.
    """
    findings = 0
    for line in verification.verify(opened(archive), quick=quick):
        click.echo(line)
        findings += 1
    click.echo("sound" if not findings else f"{findings} findings", err=bool(findings))
    if findings:
        sys.exit(Exit.FAILED)
