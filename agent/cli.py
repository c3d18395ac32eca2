"""`webarc-agent`: the commands that write to an archive. Decides nothing: reads the command line and calls the rest."""

from __future__ import annotations

import logging
import os
import sys

import click
from rich.logging import RichHandler

import webarcfs
from agent.commands import COMMANDS
from agent.commands.common import ROOT_WARNING, console
from webarcfs.archive.model.errors import Exit, WebarcError, exit_code_of
from webarcfs.archive.system.json_log import is_json
from webarcfs.archive.system.standard_streams import prepare_streams
from webarcfs.commands.lazy_commands import ProgramGroup, with_archive

_log = logging.getLogger("webarc")


@click.group(
    "webarc-agent",
    cls=ProgramGroup,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
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
        _log.info("%s", ROOT_WARNING)


def _log_to_stderr(level: int) -> None:
    """Lines above the bars on a terminal, and plain ones with the time elsewhere."""
    handler: logging.Handler = logging.StreamHandler()
    form = "%(asctime)s %(message)s"
    if console.is_terminal:
        handler = RichHandler(console=console, show_time=False, show_path=False, show_level=False, markup=False)
        form = "%(message)s"
    handler.setFormatter(_Formatter(form))
    logging.basicConfig(level=level, handlers=[handler], force=True)


class _Formatter(logging.Formatter):
    """Lines whose commands can be typed as they stand."""

    def format(self, record: logging.LogRecord) -> str:
        return with_archive(super().format(record))


def main() -> None:
    """The entry point: errors become one line and an exit code, here and nowhere else."""
    prepare_streams()
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
            console.print_exception()
        _complain(str(error) or type(error).__name__)
        sys.exit(exit_code_of(error))
    except Exception as error:
        if debug:
            console.print_exception()
        _complain(f"unexpected {type(error).__name__}: {error}; `webarc-agent --debug …` shows where, please report it")
        sys.exit(exit_code_of(error))


def _complain(message: str) -> None:
    if is_json():
        _log.error("%s", with_archive(message))
        return
    for line in with_archive(message).splitlines():
        click.echo(f"webarc-agent: {line}", err=True)
