"""Man pages and units: each option is in its page and each page's options exist; tools take them as they are."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from agent import manual
from agent.cli import cli as agent_cli
from agent.commands import COMMANDS
from webarcfs.archive.config.settings_sample import sample_settings
from webarcfs.commands.cli import cli as reader_cli
from webarcfs.mount import options
from webarcfs.mount.process import cli

pytestmark = pytest.mark.store

ROOT = Path(__file__).parents[2]
PAGES = ("mount.webarcfs.8", "umount.webarcfs.8")
UNITS = sorted(path.name for path in (ROOT / "examples/systemd").iterdir())


def page(name: str) -> str:
    return (ROOT / "man" / name).read_text("utf-8").replace("\\-", "-")


@pytest.mark.parametrize(("name", "command"), [(PAGES[0], cli.mount), (PAGES[1], cli.umount)])
def test_every_option_is_in_the_page_and_every_one_there_exists(name: str, command: click.Command) -> None:
    """If this fails, an option came or went: tell of it in man/ as well."""
    context = click.Context(command, **command.context_settings)
    known = {word for each in command.get_params(context) for word in each.opts if word.startswith("-")}
    headings = re.findall(r"^\.TP\n(.*)$", page(name).partition(".SH OPTIONS")[2].partition(".SS")[0], re.MULTILINE)
    told = {
        word for line in headings for word in re.findall(r"(?<![\w-])--?[a-z]+", re.sub(r"\\f[BIR]|^\.B ", " ", line))
    }
    assert told == known


def test_every_option_of_o_is_in_the_page_and_every_one_there_exists() -> None:
    text = page("mount.webarcfs.8").partition(".SS Options of -o")[2].partition(".PP")[0]
    headings = re.findall(r"^\.TP\n(.*)$", text, re.MULTILINE)
    assert [re.sub(r"\\f[BIR]|^\.B ", "", line) for line in headings] == list(options.OURS)


def test_every_option_of_o_that_is_told_is_taken() -> None:
    for each in options.OURS:
        assert options.parse([each]) is not None


def test_the_page_of_settings_has_each_table() -> None:
    headings = re.findall(r"^\.SH \[(\w+)\]$", manual.settings_page(), re.MULTILINE)
    assert headings == re.findall(r"^\[(\w+)\]$", sample_settings(), re.MULTILINE)


def test_the_agents_page_has_each_command_and_option() -> None:
    text = manual.agent_page().replace("\\-", "-")
    for command in COMMANDS.values():
        assert f".SS {command.name}" in text
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.opts[0] in text


def test_groff_has_no_complaint(tmp_path: Path) -> None:
    assert manual.main([str(tmp_path)]) == 0
    for path in (*(ROOT / "man" / name for name in PAGES), *tmp_path.iterdir()):
        command = ["groff", "-man", "-Tutf8", "-P-c", "-P-b", "-P-u", "-ww", "-Wbreak", "-Kutf8", path]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
        assert done.stderr == "", path.name
        assert len(done.stdout.splitlines()) > 20
        assert "NAME" in done.stdout and "SEE ALSO" in done.stdout


@pytest.mark.parametrize("name", UNITS)
def test_units_are_whole(name: str) -> None:
    text = (ROOT / "examples/systemd" / name).read_text("utf-8")
    sections = re.findall(r"^\[(\w+)\]$", text, re.MULTILINE)
    assert sections == [
        "Unit",
        {"mount": "Mount", "automount": "Automount", "service": "Service"}[name.split(".")[1]],
        "Install",
    ]
    for line in text.splitlines():
        assert not line or line.startswith(("#", "[")) or re.fullmatch(r"[A-Z]\w+=\S.*", line), line
    if where := re.search(r"^Where=(.*)$", text, re.MULTILINE):
        assert name.split(".", maxsplit=1)[0] == where[1].strip("/").replace("/", "-")
    for wanted in re.findall(r"^Options=(.*)$", text, re.MULTILINE):
        assert options.parse([wanted])


@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_units(name: str) -> None:
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(ROOT / "examples/systemd" / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert [line for line in done.stderr.splitlines() if name in line] == []


def test_lines_of_fstab() -> None:
    lines = [line for line in (ROOT / "examples/fstab").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert len(lines) == 3
    for line in lines:
        _, where, kind, wanted, dump, check = line.split()
        assert (kind, dump, check) == ("webarcfs", "0", "0") and where.startswith("/mnt/")
        assert options.parse([wanted])


def helps(command: click.Command, context: click.Context | None = None) -> Iterator[str]:
    """What `--help` of a command prints, and of the commands below it."""
    own = click.Context(command, parent=context, info_name=command.name)
    yield command.get_help(own)
    for name in command.list_commands(own) if isinstance(command, click.Group) else ():
        below = command.get_command(own, name)
        assert below is not None
        yield from helps(below, own)


@pytest.mark.parametrize("program", [agent_cli, reader_cli, cli.mount, cli.umount])
def test_no_help_names_requirements(program: click.Command) -> None:
    """Their ids are for those who read the sources."""
    for text in helps(program):
        assert re.findall(r"/[A-Z][a-z]-[\d.]+/", text) == []
