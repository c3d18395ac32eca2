"""How the agent and the servers write the lines of their logs: `--log-format`, else `[log] format` of webarc.toml."""

from __future__ import annotations

from collections.abc import Callable

import click

from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import LogFormat
from webarcfs.archive.system.json_log import message_line

#: The option that says how lines of logs are written.
log_format_option = click.option(
    "--log-format",
    type=click.Choice([str(form) for form in LogFormat]),
    help="How lines of the log are written; json: an object a line. [default: [log] format of webarc.toml, else text]",
)


def wants_json(option: str | None, archive: Archive) -> bool:
    """Return whether logs are JSON, by the option or else the settings."""
    return LogFormat(option or settings_files.load_usable(archive).log.format) is LogFormat.JSON


def printer(*, as_json: bool) -> Callable[[str], None]:
    """Return what prints the messages of a server on standard output."""
    return (lambda text: click.echo(message_line(text))) if as_json else click.echo
