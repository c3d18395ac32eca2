"""`webarc-agent crawl`: one crawl, now."""

from __future__ import annotations

import sys
from typing import Any

import click

from agent import jobs
from agent import recover as recovery
from agent.commands.common import (
    archive_option,
    console,
    crawl_options,
    opened,
    settings_of,
    start_url,
    stop_on_signals,
    tell,
)
from agent.progress import Display
from webarcfs.archive import config
from webarcfs.archive.config import Publication
from webarcfs.archive.errors import Exit


@click.command()
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@archive_option
@click.option("--accept-shrink", is_flag=True, help="Believe a crawl that finds much less than the last one did.")
@crawl_options
def crawl(urls: tuple[str, ...], archive: str | None, accept_shrink: bool, **given: Any) -> None:
    """Crawl from the start URLs once, now, and publish what came of it.

    The options override webarc.toml. A crawl that was interrupted goes on when the same command is given again; what
    was fetched is not fetched again.
    """
    place = opened(archive)
    settings = settings_of(place)
    values = {key: value for key, value in given.items() if value is not None and value != ()}
    crawl_settings = config.override(settings.crawl, values, "command line")
    start = tuple(dict.fromkeys(start_url(url) for url in urls))
    publication = Publication(name=jobs.command_line_name(start), urls=start, crawl=crawl_settings)
    recovery.catch_up(place)
    with Display(console) as display:
        outcome = jobs.run(
            place, publication, None, accept_shrink=accept_shrink, stop=stop_on_signals(), progress=display
        )
    tell(outcome)
    if outcome.interrupted or not outcome.complete or outcome.warnings:
        sys.exit(Exit.INCOMPLETE)
