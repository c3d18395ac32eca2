"""What commands show on terminals and in pipes: progress, colours, tables as wide as they may be; sums as JSON."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from fcntl import ioctl
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from agent.cli import cli as agent_cli
from tests.support.mounts import SCRIPTS
from tests.support.surfaces import archive_of
from tests.support.terminals import read_to_end
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive
from webarcfs.commands.cli import cli as reader_cli
from webarcfs.commands.listing import CUT, Mood, error_console, has_colours, styled
from webarcfs.commands.output import Display, count_of

pytestmark = pytest.mark.store

_HOME = "http://www.example.org/"
#: Commands without `--format`, and why. A command that lists, or that sums up what it did, has it.
_WITHOUT = {
    "its --format is of what it writes": {"webarc export", *(f"webarc dataset {kind}" for kind in (
        "pages", "text", "links", "types", "words", "hosts")), "webarc-agent record export"},
    "it writes one document, or a script": {"webarc cat", "webarc completion"},
    "it writes a unit of systemd": {"webarc-agent service install", "webarc-agent service print"},
    "its --format is of metrics": {"webarc-agent metrics"},
    "it says what it sent": {"webarc-agent notify test", "webarc-agent notify retry"},
    "it follows one save": {"webarc-agent save"},
    "it serves until it is stopped": {
        "webarc serve", "webarc-agent start", "webarc-agent desk", "webarc-agent gateway",
    },
    "it says one line": {
        "webarc-agent init", "webarc-agent stop", "webarc-agent archives add", "webarc-agent archives remove",
    },
    "it is an order or a decision, and says what it did in a line": {
        *(f"webarc-agent job {word}" for word in (
            "pause", "resume", "stop", "discard", "deadline", "exclude", "add", "wait")),
        *(f"webarc-agent record {word}" for word in (
            "edit", "release", "reject", "discard", "restore", "reopen", "withdraw", "new", "cancel", "step", "look",
            "measure", "attach", "detach")),
        *(f"webarc-agent collection {word}" for word in ("add", "change", "remove")),
        *(f"webarc-agent people {word}" for word in ("add", "password", "remove", "token revoke")),
        "webarc-agent publication retire", "webarc-agent register set",
    },
}  # fmt: skip
#: Commands that work long: what they need behind them in the archive of this test, and a key of their sums.
_SUMS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "verify": ((), "sound"),
    "maintain": ((), "domains"),
    "index": ((), "documents"),
    "recover": ((), "snapshots"),
    "upgrade": ((), "layout"),
    "backup": (("{folder}/backup",), "whole"),
    "restore": (("{folder}/backup", "{folder}/restored"), "restored"),
    "import": (("{folder}/empty.warc",), "crawls"),
}


def _leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for word in command.list_commands(context):
        below = command.get_command(context, word)
        if below is not None and not below.hidden:
            yield from _leaves(below, f"{name} {word}")


def _commands() -> dict[str, click.Command]:
    return dict([*_leaves(reader_cli, "webarc"), *_leaves(agent_cli, "webarc-agent")])


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return archive_of(tmp_path_factory.mktemp("terminal"))


def _run(archive: Archive, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program with pipes."""
    program, *rest = words
    return subprocess.run(
        [SCRIPTS / program, *rest],
        env={**_environment(archive), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _environment(archive: Archive) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}}
    return {**kept, "WEBARC_ARCHIVE": str(archive.root), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}


def _on_terminal(archive: Archive, columns: int, *words: str, **environment: str) -> str:
    """Run a program on a terminal of so many columns; return what it shows."""
    program, *rest = words
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [SCRIPTS / program, *rest],
        env={**_environment(archive), **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = read_to_end(ours)
    assert process.wait() in {0, 3}, shown
    return shown.decode().replace("\r\n", "\n")


# == formats ==========================================================================================================


def test_each_command_has_the_forms_or_a_reason_to_have_none() -> None:
    without = {name for names in _WITHOUT.values() for name in names}
    commands = _commands()
    assert without <= commands.keys()
    for name, command in commands.items():
        options = {word for option in command.params for word in option.opts}
        if name in without:
            assert "form" not in {option.name for option in command.params} or "--format" in options
        else:
            assert {"--format", "--json"} <= options, f"{name} has no --format: use `format_option` of listing.py"


def test_each_option_of_one_thing_has_one_name() -> None:
    """What an option is about is said by its name: the same word takes a value of the same kind everywhere."""
    metavars: dict[str, set[tuple[str, bool]]] = {}
    for command in _commands().values():
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag and option.metavar is not None:
                for word in option.opts:
                    metavars.setdefault(word, set()).add((option.metavar, option.multiple))
    for word in ("--archive", "--publication", "--reason", "--domain", "--during", "--mount", "--reader", "--set"):
        assert len({metavar for metavar, _ in metavars[word]}) == 1, (word, metavars[word])


def test_the_rows_of_a_table_are_limited_by_one_option() -> None:
    for name, command in _commands().items():
        words = {word for option in command.params for word in option.opts if not getattr(option, "hidden", False)}
        assert not words & {"--top", "--max", "--count-rows", "--rows", "-n"}, name


def test_a_former_name_of_an_option_says_what_it_is_called_now(archive: Archive) -> None:
    hidden = {
        (name, word)
        for name, command in _commands().items()
        for option in command.params
        if isinstance(option, click.Option) and option.hidden and name.startswith("webarc-agent")
        for word in option.opts
    }
    hidden.remove(("webarc-agent watch", "--from-agent"))  # how the agent calls it, and no former name
    assert hidden == {("webarc-agent report", "--top"), ("webarc-agent index", "--anew")}
    done = _run(archive, "webarc-agent", "report", "--storage", "--top", "1")
    assert done.returncode == 0 and done.stderr == "--top is called --limit now\n"
    assert "--anew is called --rebuild now\n" in _run(archive, "webarc-agent", "index", "--anew").stderr


@pytest.mark.parametrize("words", [("crawls",), ("record", "list"), ("report", "--storage")])
def test_a_limit_below_nothing_is_an_error(archive: Archive, words: tuple[str, ...]) -> None:
    done = _run(archive, "webarc-agent", *words, "--limit", "-1")
    assert done.returncode == 1 and "--limit" in done.stderr and "unexpected" not in done.stderr


@pytest.mark.parametrize("name", _SUMS)
def test_the_sums_of_long_work_are_one_object_on_standard_output(archive: Archive, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty.warc").write_bytes(b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n")
    if name == "restore":
        assert _run(archive, "webarc-agent", "backup", str(tmp_path / "backup")).returncode == 0
    words, key = _SUMS[name]
    given = [word.format(folder=tmp_path) for word in words]
    done = _run(archive, "webarc-agent", name, *given, "--json")
    assert done.returncode in {0, 3}, done.stderr
    assert key in json.loads(done.stdout)


def test_a_damaged_archive_has_its_findings_in_the_sums(tmp_path: Path) -> None:
    damaged = archive_of(tmp_path)
    damaged.changes.write_text("", "utf-8")
    done = _run(damaged, "webarc-agent", "verify", "--format", "json")
    sums = json.loads(done.stdout)
    assert done.returncode == 2 and not sums["sound"] and any("changes: " in line for line in sums["findings"])


#: Words that only we know; what help says instead. "ARC file" is the format of the Internet Archive.
_HOUSE_WORDS = (
    (re.compile(r"\(/[A-Z][A-Za-z]*-[\d.]+/?\)?"), "no id of a requirement"),
    (re.compile(r"\bseed ?[123]\b"), "no source of a requirement"),
    (re.compile(r"feed `?changes|\bfeed, database"), "the list of snapshots"),
    (re.compile(r"(?<!\()\bARCs?\b(?! files)(?!, gzip)"), "document folder (ARC)"),
    (re.compile(r"\bcommitTag\b"), "snapshot"),
)
#: Help that says what a commitTag is, or has it as the name of a column; formats that are called ARC.
_EXPLAINED = {"webarc", "webarc snapshots", "webarc query", "webarc-agent report", "webarc-agent import"}


def _helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    context = click.Context(command, info_name=name, terminal_width=120)
    yield name, command.get_help(context).partition("\nCommands:")[0]
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            if below is not None:
                yield from _helps(below, f"{name} {word}")


def test_help_has_no_house_words() -> None:
    texts = [*_helps(reader_cli, "webarc"), *_helps(agent_cli, "webarc-agent")]
    assert len(texts) > 60
    wrong = [
        f"{name}: {match[0]} ({instead})"
        for name, text in texts
        for pattern, instead in _HOUSE_WORDS
        for match in pattern.finditer(text)
        if name not in _EXPLAINED or instead not in {"snapshot", "document folder (ARC)"}
    ]
    assert not wrong


# == progress =========================================================================================================


def _lines_of_progress(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_line_comes_though_a_single_thing_takes_long(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "webarc"), Display(error_console(), between_lines=0.05) as display:
        display("copy repositories", 1, 3)
        until(lambda: len(caplog.records) >= 3, "lines come", every=0.01)
    assert {line.partition(",")[0] for line in _lines_of_progress(caplog)} == {"copy repositories: 1 of 3"}
    assert count_of(3, 0) == "3"


def test_lines_are_no_more_than_one_in_their_time(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "webarc"), Display(error_console(), between_lines=3600) as display:
        for number in range(10_000):
            display("check documents", number, 0)
    assert not _lines_of_progress(caplog)


def test_rate_and_rest_are_said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("webarcfs.commands.output.time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    with caplog.at_level(logging.INFO, "webarc"), Display(error_console(), between_lines=0.05) as display:
        for number in range(5):
            display("index snapshots", number, 10)
        until(lambda: caplog.records, "a line comes", every=0.01)
    assert re.fullmatch(r"index snapshots: 4 of 10, [0-9.]+/s, .* left", _lines_of_progress(caplog)[0])


@pytest.mark.parametrize("name", ["verify", "recover", "maintain"])
def test_a_quiet_command_shows_no_progress(archive: Archive, name: str) -> None:
    shown = _on_terminal(archive, 80, "webarc-agent", "--quiet", name)
    assert "\x1b[?25l" not in shown  # the cursor is hidden while bars are drawn
    assert "\x1b[?25l" in _on_terminal(archive, 80, "webarc-agent", name)


def test_export_is_quiet_too(archive: Archive, tmp_path: Path) -> None:
    assert "\x1b[?25l" in _on_terminal(archive, 80, "webarc", "export", str(tmp_path / "a"))
    assert "\x1b[?25l" not in _on_terminal(archive, 80, "webarc", "-q", "export", str(tmp_path / "b"))


def test_bars_are_on_terminals_alone(archive: Archive) -> None:
    assert "\x1b" not in _run(archive, "webarc-agent", "verify").stderr
    forced = _run(archive, "webarc-agent", "verify", FORCE_COLOR="1")
    assert "\x1b[?25l" not in forced.stderr and "\x1b[?25l" not in forced.stdout
    assert "\x1b" not in _on_terminal(archive, 80, "webarc-agent", "verify", TERM="dumb")


def test_what_is_found_goes_to_a_pipe_while_bars_are_drawn(tmp_path: Path) -> None:
    damaged = archive_of(tmp_path)
    damaged.changes.write_text("", "utf-8")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [SCRIPTS / "webarc-agent", "verify"],
        env=_environment(damaged),
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    assert process.stdout is not None
    drawn = read_to_end(ours)
    findings = process.stdout.read()
    process.stdout.close()
    assert process.wait() == 2
    assert "changes: there is no line for " in findings and "\x1b" not in findings
    assert b"changes: " not in drawn


# == colours ==========================================================================================================


@pytest.mark.parametrize(
    ("environment", "is_terminal", "expected"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colours_are_for_terminals_that_know_them(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], is_terminal: bool, expected: bool
) -> None:
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    assert has_colours() is expected
    assert (styled("sound", Mood.GOOD) != "sound") is expected


@pytest.mark.parametrize("words", [("verify",), ("status",), ("record", "list"), ("crawls",)])
def test_states_are_coloured_on_terminals_and_read_the_same_without(archive: Archive, words: tuple[str, ...]) -> None:
    plain = _run(archive, "webarc-agent", *words)
    assert "\x1b" not in plain.stdout + plain.stderr
    forced = _run(archive, "webarc-agent", *words, FORCE_COLOR="1")
    assert "\x1b[3" in forced.stdout
    assert re.sub(r"\x1b\[[0-9;]*m", "", forced.stdout) == plain.stdout
    assert "\x1b[3" in _on_terminal(archive, 200, "webarc-agent", *words)
    assert "\x1b[3" not in _on_terminal(archive, 200, "webarc-agent", *words, NO_COLOR="1").replace("\x1b[3A", "")


# == tables ===========================================================================================================


_TABLES = [
    ("webarc-agent", "record", "list"),
    ("webarc-agent", "crawls"),
    ("webarc-agent", "record", "fields"),
    ("webarc", "query", "1"),
    ("webarc", "links", "--from", _HOME),
    ("webarc", "snapshots"),
]


@pytest.mark.parametrize("words", _TABLES)
def test_in_a_pipe_a_table_is_whole(archive: Archive, words: tuple[str, ...]) -> None:
    narrow = _run(archive, *words, COLUMNS="20").stdout
    assert narrow == _run(archive, *words, COLUMNS="500").stdout and "…" not in narrow and narrow.count("\n") > 1


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_on_a_terminal_names_of_records_are_whole_at_any_width(archive: Archive, columns: int) -> None:
    names = {
        row["record"] for row in map(json.loads, _run(archive, "webarc-agent", "crawls", "--json").stdout.splitlines())
    }
    shown = _on_terminal(archive, columns, "webarc-agent", "crawls")
    assert names and all(name in shown for name in names)
    assert (CUT.partition(";")[0] in shown) == ("…" in shown.replace(CUT, ""))
