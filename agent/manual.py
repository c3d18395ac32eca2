"""The man pages that derive: webarc-agent(1) from the commands, webarc.toml(5) from the settings.

`python -m agent.manual FOLDER` writes them there (`make man`). They are made and not kept, so they cannot be out of
step; the mount's two pages are written by hand and lie in man/.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from agent.commands import COMMANDS
from agent.crawl.vocabulary import IN_CRAWL_LOG
from webarcfs import __version__
from webarcfs.archive.config import settings
from webarcfs.archive.config.validators import Interval

#: Table of webarc.toml → its settings.
TABLES: Mapping[str, type] = {
    **{
        "above all tables" if field.name == "release" else f"[{field.name}]": type(field.default)
        for field in dataclasses.fields(settings.Settings)
        if dataclasses.is_dataclass(field.default)
    },
    "[profile.NAME]": settings.Profile,
    "[[publication]]": settings.Publication,
    "[[publication.exclude]]": settings.Exclusion,
    "[[publication.server]]": settings.ServerSettings,
    "[[publication.browser]]": settings.BrowserRule,
    "[[publication.click]]": settings.Click,
    **{f"[[publication.{kind}]]": settings.HostSecret for kind in settings.SECRETS},
    "[[publication.rule]]": settings.LeavingRule,
    "[[publication.check]]": settings.ReferencePage,
    "[[publication.error_page]]": settings.ErrorPageMark,
}


def main(arguments: list[str]) -> int:
    """Write both pages into the folder that is named."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m agent.manual FOLDER\n")
        return 1
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "webarc-agent.1").write_text(agent_page(), "utf-8")
    (folder / "webarc.toml.5").write_text(settings_page(), "utf-8")
    return 0


def agent_page() -> str:
    """webarc-agent(1)."""
    lines = [
        *_head("webarc-agent", 1, "crawl web sites into an archive that is read as plain files"),
        *_section("SYNOPSIS", [".B webarc-agent", "[\\fB\\-\\-debug\\fR] [\\fB\\-q\\fR]", ".I COMMAND", "\\&..."]),
        *_section(
            "DESCRIPTION",
            [
                _text("An archive is a folder with one git repository for each domain; mount.webarcfs(8) shows it."),
                _text("Every command takes $WEBARC_ARCHIVE, else /srv/webarc, where no archive is named."),
            ],
        ),
        *_section(
            "COMMANDS",
            [
                line
                for command in COMMANDS.values()
                for line in (*_command(command), *_below(command, command.name or ""))
            ],
        ),
        *_section(
            "WORDS OF CRAWL.LOG",
            [line for word in IN_CRAWL_LOG for line in _item(str(word), word.sentence)],
        ),
        *_section(
            "EXIT STATUS",
            [
                *_item("0", "done"),
                *_item("1", "wrong usage, or settings that cannot be understood"),
                *_item("2", "failed"),
                *_item("3", "done, but incomplete: some start URL gave nothing, or a crawl was cut short"),
            ],
        ),
        *_section("SEE ALSO", [".BR mount.webarcfs (8),", ".BR webarc.toml (5)"]),
    ]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """webarc.toml(5)."""
    lines = [
        *_head("webarc.toml", 5, "settings of a web archive"),
        *_section(
            "DESCRIPTION",
            [
                _text(
                    "The file webarc.toml of an archive, in TOML. Without it the defaults hold. One that has a fault"
                ),
                _text("is refused as a whole, with all its faults. An option of a command goes before a publication's"),
                _text('own value, that before [crawl]. Times are CET all year; spans are as "2 weeks" or "10 days".'),
            ],
        ),
        *(line for table, kind in TABLES.items() for line in _section(table, list(_settings(kind)))),
        *_section(
            "EXAMPLE",
            [
                ".nf",
                *map(
                    _text, ("[crawl]", "wait = 2.0", 'user_agent = "our-archive/1 (+mailto:archive@example.org)"', "")
                ),
                *map(_text, ("[[publication]]", 'name = "example"', 'urls = ["http://www.example.org/"]')),
                *map(_text, ("start = 2026-12-01T22:00:00", 'interval = "1 month"')),
                ".fi",
            ],
        ),
        *_section("SEE ALSO", [".BR webarc\\-agent (1),", ".BR mount.webarcfs (8)"]),
    ]
    return "\n".join(lines) + "\n"


def _head(name: str, section: int, purpose: str) -> Iterator[str]:
    yield f'.TH {name.upper().replace("-", chr(92) + "-")} {section} "" "webarcfs {__version__}"'
    yield from _section("NAME", [f"{_text(name)} \\- {_text(purpose)}"])


def _section(name: str, lines: list[str]) -> Iterator[str]:
    yield f".SH {_text(name)}"
    yield from lines


def _command(command: click.Command, above: str = "") -> Iterator[str]:
    context = click.Context(command, info_name=command.name, help_option_names=["-h", "--help"])
    name = f"{above} {command.name or ''}".strip()
    yield f".SS {_text(' '.join([name, *command.collect_usage_pieces(context)]))}"
    # Paragraphs are separated by a blank line; one that begins with \b keeps its lines.
    for number, paragraph in enumerate(inspect.cleandoc(command.help or "").split("\n\n")):
        kept = paragraph.startswith("\b")
        yield from [".PP"] * bool(number) + [".nf"] * kept
        yield from (_text(line) for line in paragraph.removeprefix("\b").strip("\n").splitlines())
        yield from [".fi"] * kept
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record is not None and "--help" not in record[0]:
            yield from _item(*record)


def _below(command: click.Command, above: str) -> Iterator[str]:
    """The commands of a group."""
    for subcommand in command.commands.values() if isinstance(command, click.Group) else ():
        name = f"{above} {subcommand.name}"
        yield from _command(subcommand, above)
        yield from _below(subcommand, name)


def _settings(kind: type[Any]) -> Iterator[str]:
    for field in dataclasses.fields(kind):
        if "check" in field.metadata:
            yield from _item(
                field.metadata.get("key", field.name),
                f"{field.metadata['help'] or 'Must be given.'}{_default(field.default)}",
            )


def _default(value: object) -> str:
    if value is dataclasses.MISSING or value is None:
        return ""
    if isinstance(value, bool):
        shown = str(value).lower()
    elif isinstance(value, tuple):
        shown = f"[{', '.join(f'{chr(34)}{element}{chr(34)}' for element in value)}]"
    else:
        shown = f'"{value}"' if isinstance(value, str | Interval) else str(value)
    return f" The default is {shown}."


def _item(name: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield f"\\fB{_text(name)}\\fR"
    yield _text(text) or "\\&"


def _text(line: str) -> str:
    """A line for roff: no escapes, no control lines, hyphens that can be copied."""
    line = line.strip().replace("\\", "\\e").replace("-", "\\-").replace("\u2026", "...")
    return f"\\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
