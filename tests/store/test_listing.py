"""Every command that lists prints the same rows as a table, JSON, lines of JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import pty
from collections.abc import Iterator
from contextlib import redirect_stderr
from typing import Any

import click
import pytest
from click.testing import CliRunner

from agent.cli import cli as agent_cli
from agent.indexing.fulltext import bring_in_step
from agent.notifying.changes import Notification
from agent.notifying.notification_store import NotificationStore
from tests.support import sinks
from tests.support.surfaces import archive_of
from tests.support.terminals import read_to_end
from webarcfs.archive.catalogue import people
from webarcfs.archive.catalogue.people import Acting, Person
from webarcfs.archive.catalogue.tokens import Scope
from webarcfs.archive.catalogue.workflow import Role
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import UsageError
from webarcfs.archive.model.metadata import now
from webarcfs.commands.cli import cli as reader_cli
from webarcfs.commands.listing import LIST, OBJECT, error_console
from webarcfs.commands.output import Display

pytestmark = pytest.mark.store

_HOME = "http://www.example.org/"
_TAGS = ("2020-05-01T12:00:00@www.example.org", "2020-06-10T12:00:00@www.example.org")
_JOB = "20200501T120000-p"
#: Command → words that list something in the archive of this test, and how many rows.
_LISTS: dict[str, tuple[tuple[str, ...], int]] = {
    "webarc log": ((_HOME,), 3),
    "webarc diff": (_TAGS, 3),
    "webarc query": (("1",), 5),
    "webarc search": (("home",), 1),
    "webarc links": (("--from", _HOME), 3),
    "webarc curve": (("home",), 1),
    "webarc snapshots": ((), 2),
    "webarc-agent job list": ((), 1),
    "webarc-agent job show": (("q",), 1),
    "webarc-agent publication list": ((), 1),
    "webarc-agent publication profiles": ((), 1),
    "webarc-agent collection list": ((), 1),
    "webarc-agent record list": ((), 3),
    "webarc-agent crawls": ((), 3),
    "webarc-agent record fields": ((), 81),
    "webarc-agent record log": (("1",), 1),
    "webarc-agent record attachments": (("1",), 1),
    "webarc-agent register formats": ((), 1),
    "webarc-agent register types": ((), 1),
    "webarc-agent register programs": ((), 1),
    "webarc-agent people list": ((), 1),
    "webarc-agent people token list": ((), 2),
    "webarc-agent notify list": ((), 1),
    "webarc-agent report": ((_JOB,), 4),
    "webarc-agent withhold": (("--list",), 1),
}
#: Commands with --json whose --format is another question: the format of what they export.
_OTHER = {
    "webarc export",
    *(f"webarc dataset {kind}" for kind in ("pages", "text", "links", "types", "words", "hosts")),
}
#: Lists of what is no archive's: their own tests try the forms.
_ELSEWHERE = {"webarc-agent archives list"}
#: A text of people and a host that look like markup and emoji.
_LIKE_MARKUP = "see [/Cl-6/] [bold]x[/bold] :on: [no answer] \\[y]"
_HOST = "[fe80::1]:8080"
_ROOTS = {"webarc": reader_cli, "webarc-agent": agent_cli}


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, dict[str, click.Parameter]]]:
    """Yield the commands below one, each with its options."""
    yield name, {word: option for option in command.params for word in option.opts}
    if isinstance(command, click.Group):
        for word in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), word)
            if below is not None:
                yield from _commands(below, f"{name} {word}")


def _forms() -> dict[str, tuple[str, ...]]:
    """The forms of each command that has `--format` or `--json`."""
    return {
        name: tuple(getattr(options["--format"].type, "choices", ())) if "--format" in options else ()
        for root, command in _ROOTS.items()
        for name, options in _commands(command, root)
        if "--json" in options
    }


def test_every_command_that_has_json_has_the_forms() -> None:
    forms = {name: choices for name, choices in _forms().items() if name not in _OTHER}
    assert {name for name, choices in forms.items() if choices[:4] == LIST} == _LISTS.keys() | _ELSEWHERE
    assert {choices for name, choices in forms.items() if name not in _LISTS.keys() | _ELSEWHERE} == {OBJECT}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """An archive in which each command has something to list."""
    folder = tmp_path_factory.mktemp("listing")
    made = archive_of(folder)
    bring_in_step(made)
    (folder / "a.txt").write_text("a", "utf-8")
    (folder / "b.txt").write_text("b", "utf-8")
    (made.root / "webarc.toml").write_text(
        f'[[publication]]\nname = "p"\nurls = ["{_HOME}"]\n[profile.x]\ndescription = "ä, \\"b\\""\n', "utf-8"
    )
    made.collections.mkdir()
    (made.collections / "c.toml").write_text('title = "Wahlen, \\"18. Wahlperiode\\""\npublications = ["p"]\n', "utf-8")
    for words in (
        ("record", "attach", "1", str(folder / "a.txt"), "--note", 'a, "b"\nc'),
        ("record", "attach", "1", str(folder / "b.txt"), "--note", _LIKE_MARKUP),
        ("record", "edit", "1", f"remarks={_LIKE_MARKUP}"),
        ("withhold", f"{_HOME}b", "--reason", 'a; "b", ä'),
        ("register", "set", "application/pdf", "--description", 'a, "b"'),
        ("register", "set", "pdf", "--read-by", "x"),
    ):
        _run("webarc-agent", made, *words)
    tell = Notification(id="evt_1", kind="crawl-failed", text=f'ä, "b"; {_LIKE_MARKUP}', at=now(), since=now())
    with NotificationStore(made) as store:
        sinks.queue(store, [tell], "mail", now())
    people.save(made, Person("anna", "Anna Ä", (Role.ADMINISTRATOR,), "anna"))
    by = Acting("Anna Ä", (Role.ADMINISTRATOR,), "anna")
    for name in ("laptop", "other"):
        people.add_token(made, "anna", name, [Scope.READ, Scope.MIRROR], by=by)
    (made.jobs / "20300101T000000-q").mkdir()
    report = made.reports / _JOB
    report.mkdir()
    (report / "summary.json").write_text(
        json.dumps({"job": _JOB, "complete": True, "started": "", "finished": "", "commit_tags": [], "arcs": {}}),
        "utf-8",
    )
    (report / "crawl.log").write_text(
        "2020-05-01T11:00:00.000Z 200 5 http://www.example.org/ - - text/html #001 - - - -\n", "utf-8"
    )
    return made


def _run(command: str, archive: Archive, *words: str) -> str:
    root, *below = command.split()
    runner = CliRunner(env={"WEBARC_ARCHIVE": str(archive.root)})
    done = runner.invoke(_ROOTS[root], [*below, *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout_bytes.decode()


def _of_json(text: str) -> list[dict[str, Any]]:
    """The rows of JSON: an array, the list of an object, or an object a line."""
    try:
        content = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]
    if isinstance(content, dict):
        return next((content[name] for name in ("hits", "tables") if name in content), [content])
    return list(content)


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("command", _LISTS)
def test_the_forms_of_a_list_have_the_same_rows(archive: Archive, command: str) -> None:
    words, least = _LISTS[command]

    def printed(*more: str) -> str:
        return _run(command, archive, *more, *words)

    text = printed("--format", "json")
    assert text == printed("--json")
    rows = _of_json(text)
    assert len(rows) >= least
    assert [json.loads(line) for line in printed("--format", "jsonl").splitlines()] == rows
    cells = printed("--format", "csv")
    assert ("\r\n" in cells) != (command == "webarc-agent report")  # whose --csv has always had lines of Unix
    table = list(csv.DictReader(io.StringIO(cells, newline=""), strict=True))
    columns = table[0].keys()
    assert {key for row in rows for key in row} - columns <= {"marks"}
    assert table == [{key: _cell(row.get(key)) for key in columns} for row in rows]
    shown = printed()
    assert (
        shown == printed("--format", "table")
        and shown.strip()
        and "\x1b" not in shown
        and " \n" not in shown
        and ("…" not in shown or command == "webarc search")
    )


def test_records_as_csv_end_their_lines_as_lists_do(archive: Archive) -> None:
    cells = _run("webarc-agent record export", archive, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(cells, newline=""), strict=True))
    assert len(rows) == 3 and cells.count("\r\n") == 1 + len(rows) and cells.endswith("\r\n")


@pytest.mark.parametrize("command", [("record show", "1"), ("record show", "1", "--all"), ("report", "--storage")])
def test_no_line_ends_in_blanks(archive: Archive, command: tuple[str, ...]) -> None:
    shown = _run(f"webarc-agent {command[0]}", archive, *command[1:])
    assert shown.count("\n") > 3 and " \n" not in shown


def test_json_and_another_form_exclude_each_other() -> None:
    done = CliRunner().invoke(agent_cli, ["record", "fields", "--json", "--format", "csv"])
    assert isinstance(done.exception, UsageError)


def test_a_table_is_not_cut_where_there_is_no_terminal(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    lines = _run("webarc-agent record list", archive).splitlines()
    assert len(lines) == 6 and all(_JOB.partition("-")[0][:2] in line for line in lines[1:4])
    assert lines[4] == "3 crawls: 2 released, 1 counted; 0 files in 0 of them, 0 bytes" and lines[5].startswith(
        "not released: "
    )
    assert f"/{_TAGS[0].partition('@')[2]}/index.html" in _run("webarc query", archive, "1")


def test_a_record_shows_what_people_wrote_as_they_wrote_it(archive: Archive) -> None:
    assert _run("webarc-agent record show", archive, "1").count(_LIKE_MARKUP) == 2
    assert _LIKE_MARKUP in _run("webarc-agent record attachments", archive, "1")


def test_a_report_shows_what_sites_are_called_and_why_they_failed(archive: Archive) -> None:
    end = {"host": _HOST, "role": "page", "complete": False, "failed": 1, "reason": _LIKE_MARKUP}
    summary = {
        "job": _LIKE_MARKUP, "complete": False, "started": ":on:", "finished": "", "commit_tags": [_LIKE_MARKUP],
        "arcs": {}, "hosts": [end], "missing": {"resources": {_HOST: 1}, "rows": [[_HOST, "[lost]", 1]]},
    }  # fmt: skip
    report = archive.reports / "20200502T120000-q"
    report.mkdir()
    (report / "summary.json").write_text(json.dumps(summary), "utf-8")
    (report / "crawl.log").write_text(
        f"2020-05-01T11:00:00.000Z 200 5 http://{_HOST}/ - - text/html #001 - - - -\n", "utf-8"
    )
    lines = _run("webarc-agent report", archive, report.name).splitlines()
    assert lines[0] == f"{_LIKE_MARKUP}: incomplete, :on: to" and lines[1].strip() == _LIKE_MARKUP
    assert [line for line in lines if line.startswith(f"{_HOST} ") and line.endswith(_LIKE_MARKUP)]
    assert [line for line in lines if line.startswith(f"{_HOST} ") and "[lost]" in line]
    assert sum(line.startswith(f"{_HOST} ") for line in lines) == 3  # the hosts of the log, too


def test_what_is_done_is_shown_on_a_terminal_as_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(logging.getLogger("webarc"), "level", logging.INFO)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, redirect_stderr(terminal), Display(error_console()) as progress:
        progress(f"{_HOST} :on:", 1, 2)
    shown = read_to_end(ours).decode()
    assert f"{_HOST} :on:" in shown and "1 of 2" in shown
