"""Commands that messages tell people to type. They name the archive where the command that tells them was told it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence

#: A command in a message. `init` and `restore` name their folders themselves; `--debug …` is no whole command.
_COMMAND = re.compile(r"`(webarc(?:-agent)? (?!init\b|restore\b|--)[^`\n]*)`")


def with_archive(message: str, arguments: Sequence[str] | None = None) -> str:
    """Return a message whose commands have the `--archive` of a command line (`sys.argv`), if that has one."""
    named = _named(sys.argv if arguments is None else arguments) if "`webarc" in message else ""
    if not named:
        return message
    option = f" --archive {shlex.quote(named)}"
    return _COMMAND.sub(lambda found: found[0] if "--archive" in found[1] else f"`{found[1]}{option}`", message)


def _named(arguments: Sequence[str]) -> str:
    """Return the archive that a command line names; the last one counts."""
    named = ""
    for number, argument in enumerate(arguments):
        if argument == "--archive":
            named = arguments[number + 1] if number + 1 < len(arguments) else ""
        elif argument.startswith("--archive="):
            named = argument.partition("=")[2]
    return named
