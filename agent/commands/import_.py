"""`webarc-agent import`: WARC files of other crawlers."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from agent.catalogue.keeping import catch_up_records
from agent.commands.common import archive_option, console, opened, settings_of, stop_on_signals, tell
from agent.indexing import recovery
from agent.jobs import importjob
from agent.system.progressbar import Display
from webarcfs.archive.config import validators
from webarcfs.archive.config.settings import Publication, Settings
from webarcfs.archive.model.errors import Exit, UsageError

_log = logging.getLogger("webarc")


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@archive_option
@click.option("--complete", is_flag=True, help="The files hold all that there was: remove what is missing in them.")
@click.option("--publication", metavar="NAME", help="Whose crawl it is; its settings in webarc.toml hold.")
@click.option("--accept-shrink", is_flag=True, help="With --complete: also if much less is left than there was.")
def import_(
    files: tuple[Path, ...], archive: str | None, complete: bool, publication: str | None, accept_shrink: bool
) -> None:
    """Take in WARC files, plain or gzip, of any crawler.

    All files of one command are one crawl. Each host becomes a snapshot at the time of its first record, in its place
    between those that are there. A file that was imported before changes nothing.
    """
    place = opened(archive)
    settings = settings_of(place)
    recovery.catch_up(place)
    catch_up_records(place)
    with Display(console) as display:
        sources = importjob.sources_of(files, display)
        whose = _publication(settings, publication or importjob.name_of(sources))
        profile = settings.profiles[whose.profile] if whose.profile else None
        done = importjob.run(
            place,
            sources,
            whose,
            profile,
            complete=complete,
            accept_shrink=accept_shrink,
            stop=stop_on_signals(),
            progress=display,
        )
    for path in done.known:
        click.echo(f"{path} was imported already")
    for remark in done.remarks:
        _log.info("%s", remark)
    if done.outcome is not None:
        tell(done.outcome, judged=False)
        if done.outcome.interrupted or done.outcome.warnings:
            sys.exit(Exit.INCOMPLETE)


def _publication(settings: Settings, name: str) -> Publication:
    """Return the publication of that name in webarc.toml, else a new one."""
    try:
        validators.name(name)
    except ValueError as error:
        raise UsageError(f"--publication: {error}") from None
    known = (each for each in settings.publications if each.name == name)
    return next(known, settings.unlisted(name))
