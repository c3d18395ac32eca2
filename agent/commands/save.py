"""`webarc-agent save`: one page, now."""

from __future__ import annotations

import logging
import shlex
import sys
import threading
from dataclasses import asdict

import click

from agent.catalogue.recording import catch_up_records, crawl_as_before
from agent.commands.common import (
    archive_option,
    console,
    follow,
    opened,
    settings_of,
    stop_on_signals,
    tell,
    tell_release,
)
from agent.crawl.job_folder import Definition, SavedPage
from agent.indexing import recovery
from agent.jobs import crawljob
from agent.jobs.publishing import JobOutcome
from agent.operations import saving
from agent.operations.saving import AskedPage, SaveState, UrlRefusal
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Fetcher
from webarcfs.archive.model.errors import Busy, Exit, NotFound, UsageError
from webarcfs.archive.model.metadata import format_time
from webarcfs.commands.output import Display

_log = logging.getLogger("webarc")
#: Seconds until another look at a page that another process saves.
_SOON = 0.5


@click.command()
@click.argument("typed", metavar="URL")
@archive_option
@click.option("--description", default="", metavar="TEXT", help="Why it is saved; kept in the record.")
@click.option(
    "--fetcher",
    type=click.Choice([*map(str, Fetcher)]),
    default=None,
    help="Whether a browser shows the page, so that what its scripts ask for is saved. [default: as [crawl] says]",
)
@click.option(
    "--private-addresses", is_flag=True, help="Also save what is at addresses of one's own network or machine."
)
def save(typed: str, archive: str | None, description: str, fetcher: str | None, *, private_addresses: bool) -> None:
    """Save one page now, with all that it needs to be shown.

    No publication is needed: the page is added to saved-HOST, and nothing is removed. Its record says who asked for it.
    The same URL is saved once at a time: if another process saves it, the command waits for that. A person may save 60
    pages an hour; `crawl --list FILE` is for more.

    The command ends with 0 if the page was saved, and with 3 if it did not come or lacks something.

    \b
    Examples:
      webarc-agent save https://www.example.org/article
      webarc-agent save https://www.example.org/app --fetcher browser --description 'before the relaunch'
    """
    place = opened(archive)
    crawl_as_before(place)
    definition = _define(place, typed, description, fetcher or "", private_addresses=private_addresses)
    assert definition.page is not None
    asked = saving.ask(place, definition)
    _must_be_taken(asked)
    if asked.state is SaveState.RECENT:
        click.echo(f"saved a moment ago: {asked.job}")
        lines = saving.lines_of(place, asked.job, definition.page.url)
        _tell_way(place, asked.job, lines[-1].url if lines else definition.page.url, archive)
        return
    recovery.catch_up(place)
    catch_up_records(place)
    stop = stop_on_signals()
    with Display(console) as display:
        outcome = _saved(place, asked.job, definition, stop, display)
        if outcome is not None and not outcome.interrupted:
            follow(place, asked.job, display)
    if outcome is not None:
        tell(outcome)
    tell_release(place, asked.job)
    lines = saving.lines_of(place, asked.job, definition.page.url)
    if not lines or not lines[-1].archived:
        for line in saving.why_not(lines):
            _log.error("%s", line)
        sys.exit(Exit.INCOMPLETE)
    _tell_way(place, asked.job, lines[-1].url, archive)
    if outcome is not None and not outcome.is_whole:
        sys.exit(Exit.INCOMPLETE)


def _define(place: Archive, typed: str, description: str, fetcher: str, *, private_addresses: bool) -> Definition:
    """Return how the page is saved. Raises UsageError, Forbidden, SettingsError."""
    acting = people.acting(place, Right.CAPTURE)
    url = saving.read_url(typed)
    if isinstance(url, UrlRefusal):
        raise UsageError(str(url))
    page = SavedPage(
        url=url,
        by=acting.name,
        description=saving.description_of(description),
        **asdict(acting.warrant(Right.CAPTURE)),
    )
    values = {"private_addresses": True} if private_addresses else {}
    definition = saving.define(settings_of(place), page, fetcher=fetcher, values=values)
    if saving.is_kept_out(definition):
        raise UsageError(f"{UrlRefusal.PRIVATE} --private-addresses saves it all the same")
    return definition


def _must_be_taken(asked: AskedPage) -> None:
    if asked.state is SaveState.FULL:
        raise Busy("too many pages wait to be saved; try again in some minutes")
    if asked.again is not None:
        when = format_time(asked.again)
        raise Busy(f"you saved {saving.PER_HOUR} pages within an hour; the next one may follow at {when}")


def _saved(
    place: Archive, job: str, definition: Definition, stop: threading.Event, display: Display
) -> JobOutcome | None:
    """Save a page, or wait until another process has done so; None then, or if the command is stopped."""
    waits = False
    while not (place.reports / job).is_dir():
        try:
            return crawljob.run(
                place,
                definition.publication,
                definition.profile,
                instances=saving.SLOTS,
                folder=place.jobs / job,
                stop=stop,
                progress=display,
            )
        except Busy as error:
            if not waits:
                _log.info("waiting: %s", error)
            waits = True
        except NotFound:
            if not (place.reports / job).is_dir():
                raise
        if stop.wait(_SOON):
            break
    return None


def _tell_way(place: Archive, job: str, url: str, archive: str | None) -> None:
    """Print the commands that show a saved page, by the snapshot that has it; `archive` as the command line names it.

    `latest` would not do: it counts the complete crawls of the page's host, and a saved page is none.
    """
    option = f" --archive {shlex.quote(archive)}" if archive else ""
    tag = saving.snapshot_of(place, job, url)
    if tag:
        click.echo(f"look at it: webarc cat{option} {shlex.quote(tag)} {shlex.quote(url)}")
    click.echo(f"with its pictures, in the reading room: webarc serve{option} --open")
