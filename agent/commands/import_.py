"""`webarc-agent import`: what other crawlers wrote."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack
from pathlib import Path

import click

from agent.catalogue.keeping import catch_up_records
from agent.commands.common import archive_option, console, follow, opened, settings_of, stop_on_signals, tell
from agent.importing import sources
from agent.indexing import recovery
from agent.jobs import exportedjob, importjob
from webarcfs.archive.config import validators
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.errors import Damaged, Exit, Interrupted, UsageError
from webarcfs.lazy_commands import AbsolutePath
from webarcfs.terminal.progressbar import Display

_log = logging.getLogger("webarc")


@click.command("import")
@click.argument("files", nargs=-1, metavar="FILE...", type=AbsolutePath(allow_dash=True))
@archive_option
@click.option(
    "--list", "list_", metavar="FILE", help="Paths, one a line, beside FILE...", type=AbsolutePath(allow_dash=True)
)
@click.option("--complete", is_flag=True, help="The files hold all that there was: remove what is missing in them.")
@click.option("--publication", metavar="NAME", help="Whose crawl it is; its settings in webarc.toml hold.")
@click.option("--accept-shrink", is_flag=True, help="With --complete: also if much less is left than there was.")
@click.option("--as-exported", is_flag=True, help="The files are of `webarc export`: make the same snapshots again.")
def import_(  # noqa: PLR0917 # click passes them by name
    files: tuple[Path, ...],
    archive: str | None,
    list_: Path | None,
    complete: bool,
    publication: str | None,
    accept_shrink: bool,
    as_exported: bool,
) -> None:
    """Take in what any crawler wrote: WARC and ARC files (plain, gzip, zstd), WACZ, and mirrors of HTTrack.

    FILE may be a folder: all such files in it are taken, in order of their paths. `-` is one from standard input.

    All files of one command are one crawl. Each host becomes a snapshot at the time of its first record, in its place
    between those that are there. A file that was imported before changes nothing.

    With --as-exported, each snapshot comes back as it was exported, with its publication, additions and data nodes; one
    whose files are not all there, or were changed, is refused.
    """
    files = (*files, *(sources.listed(list_) if list_ else ()))
    if not files:
        raise UsageError("FILE or --list is missing: what is to be imported")
    if as_exported and (complete or publication or accept_shrink):
        raise UsageError("--as-exported takes everything as it was; no other option changes that")
    place = opened(archive)
    settings = settings_of(place)
    recovery.catch_up(place)
    catch_up_records(place)
    if as_exported:
        with ExitStack() as stack:
            _as_exported(place, sources.files_of(files, place.log, stack))
        return
    with ExitStack() as stack, Display(console) as display:
        given = sources.chosen(files, place.log, stack, display)
        if complete and given.faults:  # what is in these would be removed as missing
            raise Damaged("\n".join(given.faults))
        whose = _publication(settings, publication or sources.name_of(given.sources))
        profile = settings.profiles[whose.profile] if whose.profile else None
        done = importjob.run(
            place,
            given.sources,
            whose,
            profile,
            complete=complete,
            accept_shrink=accept_shrink,
            stop=stop_on_signals(),
            progress=display,
        )
    for known in done.known:
        click.echo(f"{known.place} was imported already")
    for fault in given.faults:
        _log.warning("%s", fault)
    for remark in (*given.remarks, *done.remarks):
        _log.info("%s", remark)
    if done.outcome is not None:
        tell(done.outcome, judged=False)
        follow(place, done.outcome.job)
    if given.faults or (done.outcome is not None and (done.outcome.interrupted or done.outcome.warnings)):
        sys.exit(Exit.INCOMPLETE)


def _as_exported(place: Archive, files: tuple[Path, ...]) -> None:
    """Make the snapshots of exported files again, and tell what came of it."""
    try:
        with Display(console) as display:
            done = exportedjob.run(place, files, stop=stop_on_signals(), progress=display)
    except Interrupted as error:
        _log.warning("%s", error)
        sys.exit(Exit.INCOMPLETE)
    for line in done.faults:
        _log.warning("%s", line)
    for tag in done.published:
        click.echo(tag)
    for line in done.remarks:
        _log.warning("%s", line)
    _log.info("%d snapshots made, %d were there already", len(done.published), len(done.there))
    if done.refused:
        raise Damaged("\n".join(done.refused))


def _publication(settings: Settings, name: str) -> Publication:
    """Return the publication of that name in webarc.toml, else a new one."""
    try:
        validators.name(name)
    except ValueError as error:
        raise UsageError(f"--publication: {error}") from None
    known = (each for each in settings.publications if each.name == name)
    return next(known, settings.unlisted(name))
