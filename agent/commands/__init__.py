"""The commands of `webarc-agent`, a module each; `COMMANDS` is their table, in the order of `--help`."""

from __future__ import annotations

import click

from agent.commands.crawl import crawl
from agent.commands.init import init
from agent.commands.recover import recover

COMMANDS: tuple[click.Command, ...] = (init, crawl, recover)
