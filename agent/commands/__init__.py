"""The commands of `webarc-agent`, a module each; `COMMANDS` is their table, in the order of `--help`."""

from __future__ import annotations

import click

from agent.commands.backup import backup, restore
from agent.commands.crawl import crawl
from agent.commands.import_ import import_
from agent.commands.init import init
from agent.commands.maintain import maintain
from agent.commands.recover import recover
from agent.commands.report import report
from agent.commands.start import start
from agent.commands.status import status
from agent.commands.stop import stop
from agent.commands.verify import verify

COMMANDS: tuple[click.Command, ...] = (
    init,
    crawl,
    import_,
    start,
    stop,
    status,
    report,
    backup,
    restore,
    recover,
    verify,
    maintain,
)
