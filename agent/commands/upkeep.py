"""`webarc-agent verify`, `recover`, `maintain`: whether an archive is whole, and what mends and keeps it."""

from __future__ import annotations

import sys
from collections import Counter

import click

from agent.catalogue.keeping import catch_up_records
from agent.commands.common import archive_option, console, opened
from agent.indexing import fulltext, recovery
from agent.upkeep import backup_verification, maintenance, verification
from agent.upkeep.backupmark import is_backup
from webarcfs.archive.commit.waiting import count_waiting, say_waiting
from webarcfs.archive.config import directory
from webarcfs.archive.model.errors import Exit, WebarcError
from webarcfs.terminal.progressbar import Display


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


@click.command()
@archive_option
def recover(archive: str | None) -> None:
    """Make anew what derives from the git repositories, and mend what can be mended of these.

    What derives is webarc.db, the feed `changes` and, if `[index]` allows, links.db and the full-text index, which is
    brought in step, and made anew only where it has faults. HEAD, settings, refs and
    the commit-graph of a repository are mended where a byte was damaged, as far as the repository tells what they were;
    what was there before is kept in `damaged/` in it. Locks that a killed git left are removed. What cannot be mended
    is named, and it ends with 2.
    """
    place = opened(archive)
    with Display(console) as display:
        done = recovery.recover(place, lambda number, of: display("snapshots", number, of))
    click.echo(f"{done.snapshots} snapshots, {done.versions} document versions, {done.lines} lines in changes")
    if done.links is not None:
        click.echo(f"{done.links} links of pages")
    if (documents := fulltext.recovered(place)) is not None:
        click.echo(f"{documents} documents put into the full-text index")
    described = catch_up_records(place)
    if described:
        click.echo(f"{described} records of captures")
    for line in done.mended:
        click.echo(f"mended: {line}")
    complaints = [f"not mended: {line}" for line in done.left]
    if done.damaged:
        complaints.append(f"not readable, and left out: {', '.join(done.damaged)}")
    if complaints:
        raise WebarcError("\n".join(complaints))


@click.command()
@archive_option
@click.option("--quick", is_flag=True, help="Leave out what takes long; see above.")
def verify(archive: str | None, quick: bool) -> None:
    """Check whether the archive is whole; a line a finding.

    Git, every data.xml, refs, feed, database and journal are held against each other. Ends with 0 where all is sound,
    with 2 where something was found. Additions that wait in the journal are counted; they are no finding.

    With --quick it looks at HEAD, settings, refs and history of each repository, and at the data.xml that came since
    the last verification. It does not read all objects of git, the commit-graphs, or all pages of webarc.db and
    links.db: what a disk damaged there only the full form finds.

    The archive may also be a backup, to which nothing is written. Of one the quick form compares the checksums of the
    files that hold objects, and looks whether all are there, but reads no object or document for itself.
    """
    root = directory.default_root(archive)
    waiting: Counter[str] = Counter()
    if is_backup(root):
        lines, left_out = backup_verification.verify_backup(root, quick=quick), backup_verification.LEFT_OUT
    else:
        place = opened(archive)
        lines, left_out = verification.verify(place, quick=quick), verification.LEFT_OUT
        waiting = count_waiting(place)
    findings = 0
    for line in lines:
        click.echo(line)
        findings += 1
    for name, number in sorted(waiting.items()):
        click.echo(say_waiting(name, number))
    told = f"; not read: {left_out}" if quick else ""
    click.echo(("sound" if not findings else f"{findings} findings") + told, err=bool(findings))
    if findings:
        sys.exit(Exit.FAILED)
