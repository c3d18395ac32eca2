"""`webarc-agent`: the commands that write to an archive. Decides nothing: reads the command line and calls the rest."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import click
from rich.console import Console
from rich.logging import RichHandler

import webarcfs
from agent import jobs
from agent import recover as recovery
from agent.progress import Display
from webarcfs.archive import checks, config, directory
from webarcfs.archive.config import CrawlSettings, Publication
from webarcfs.archive.errors import Exit, UsageError, WebarcError, exit_code_of

_F = TypeVar("_F", bound=Callable[..., Any])
# `localhost:8080` has none: what follows its colon is a port.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")
_console = Console(stderr=True)
_log = logging.getLogger("webarc")

_archive = click.option(
    "--archive", metavar="DIR", help="The archive; else $WEBARC_ARCHIVE, else /srv/webarc.", type=click.Path()
)


def _crawl_options(command: _F) -> _F:
    """An option for each setting of `[crawl]` (DESIGN.md section 6)."""
    hints = get_type_hints(CrawlSettings)
    for field in reversed(dataclasses.fields(CrawlSettings)):
        name = field.name.replace("_", "-")
        explain = f"{field.metadata['help']} [default: {_shown(field.default)}]"
        kind = hints[field.name]
        if kind is bool:
            option = click.option(f"--{name}/--no-{name}", field.name, default=None, help=explain)
        elif kind in (int, float):
            option = click.option(f"--{name}", field.name, type=kind, default=None, help=explain)
        elif kind is str or kind.__name__ == "Interval":
            option = click.option(f"--{name}", field.name, default=None, help=explain)
        else:
            option = click.option(f"--{name}", field.name, multiple=True, help=f"{explain} May be given again.")
        command = option(command)
    return command


def _shown(default: Any) -> str:
    return " ".join(default) or "none" if isinstance(default, tuple) else str(default)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(webarcfs.__version__, prog_name="webarc-agent")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, and every step.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors.")
@click.pass_context
def cli(context: click.Context, debug: bool, quiet: bool) -> None:
    """Crawl web sites into an archive that is read as plain files.

    \b
    A first archive:
      webarc-agent init ~/webarc
      webarc-agent crawl --archive ~/webarc --depth 2 http://www.example.org/
      mkdir ~/web && mount.webarcfs ~/webarc ~/web
      ls ~/web/www.example.org

    Exit codes: 0 done, 1 usage, 2 failed, 3 done but incomplete.
    """
    _log_to_stderr(logging.DEBUG if debug else logging.WARNING if quiet else logging.INFO)
    context.obj = {"debug": debug}
    if os.geteuid() == 0 and context.invoked_subcommand == "crawl":
        _log.info("running as root; the agent never needs it: a user of its own is safer")


@cli.command()
@click.argument("archive", type=click.Path(path_type=Path))
def init(archive: Path) -> None:
    """Make a new, empty archive in the folder ARCHIVE."""
    made = directory.create(archive)
    click.echo(f"{made.root} is an archive now; `webarc-agent crawl --archive {made.root} URL` fills it")


@cli.command()
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@_archive
@click.option("--accept-shrink", is_flag=True, help="Believe a crawl that finds much less than the last one did.")
@_crawl_options
def crawl(urls: tuple[str, ...], archive: str | None, accept_shrink: bool, **given: Any) -> None:
    """Crawl from the start URLs once, now, and publish what came of it.

    The options override webarc.toml. A crawl that was interrupted goes on when the same command is given again; what
    was fetched is not fetched again.
    """
    place = directory.open_archive(directory.default_root(archive))
    settings, warning = config.load(place.settings)
    if warning is not None and place.settings.exists():
        _log.warning("%s", warning)
    values = {key: value for key, value in given.items() if value is not None and value != ()}
    crawl_settings = config.override(settings.crawl, values, "command line")
    start = tuple(dict.fromkeys(_start_url(url) for url in urls))
    publication = Publication(name=jobs.command_line_name(start), urls=start, crawl=crawl_settings)
    recovery.catch_up(place)
    with Display(_console) as display:
        outcome = jobs.run(
            place, publication, None, accept_shrink=accept_shrink, stop=_stop_on_signals(), progress=display
        )
    _tell(outcome)
    if outcome.interrupted or not outcome.complete or outcome.warnings:
        sys.exit(Exit.INCOMPLETE)


@cli.command()
@_archive
def recover(archive: str | None) -> None:
    """Make webarc.db and the feed `changes` anew from the git repositories."""
    place = directory.open_archive(directory.default_root(archive))
    with Display(_console) as display:
        done = recovery.recover(place, lambda number, of: display("snapshots", number, of))
    click.echo(f"{done.snapshots} snapshots, {done.versions} document versions, {done.lines} lines in changes")
    if done.damaged:
        raise WebarcError(f"not readable, and left out: {', '.join(done.damaged)}")


def _log_to_stderr(level: int) -> None:
    """Lines that stand above the bars on a terminal, and plain ones with the time elsewhere."""
    handler: logging.Handler = logging.StreamHandler()
    form = "%(asctime)s %(message)s"
    if _console.is_terminal:
        handler = RichHandler(console=_console, show_time=False, show_path=False, show_level=False, markup=False)
        form = "%(message)s"
    logging.basicConfig(level=level, format=form, handlers=[handler], force=True)


def _start_url(url: str) -> str:
    try:
        return str(checks.url(url if _SCHEME.match(url) else f"http://{url}"))
    except ValueError as error:
        raise UsageError(str(error)) from None


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()

    def ask(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        _log.warning("stopping; what was fetched is kept (once more ends it at once)")
        stop.set()

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)
    return stop


def _tell(outcome: jobs.Outcome) -> None:
    for warning in outcome.warnings:
        _log.warning("%s", warning)
    for tag in outcome.tags:
        click.echo(tag)
    if outcome.report is not None:
        arcs = outcome.summary["arcs"]
        assert isinstance(arcs, dict)
        told = ", ".join(f"{count} {what}" for what, count in arcs.items())
        _log.info("%s; %s: report in %s", told, "complete" if outcome.complete else "incomplete", outcome.report)


def main() -> None:
    """The entry point: errors become one line and an exit code, here and nowhere else."""
    debug = "--debug" in sys.argv
    try:
        cli(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(Exit.FAILED)
    except click.ClickException as error:
        error.show()
        sys.exit(Exit.USAGE)
    except (WebarcError, OSError, KeyboardInterrupt) as error:
        if debug:
            _console.print_exception()
        _complain(str(error) or type(error).__name__)
        sys.exit(exit_code_of(error))
    except Exception as error:
        if debug:
            _console.print_exception()
        _complain(f"unexpected {type(error).__name__}: {error}; `webarc-agent --debug …` shows where, please report it")
        sys.exit(exit_code_of(error))


def _complain(message: str) -> None:
    for line in message.splitlines():
        click.echo(f"webarc-agent: {line}", err=True)
