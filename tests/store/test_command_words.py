"""One order of words in all commands: the group, the verb, the object. Documents and messages follow it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from agent.cli import cli as agent_cli
from agent.crawl.job_orders import OrderWord, describe_orders
from tests.support.archives import make_archive
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import UsageError
from webarcfs.commands.cli import cli as reader_cli
from webarcfs.commands.lazy_commands import VerbGroup

pytestmark = pytest.mark.store

_REPOSITORY = Path(__file__).parents[2]
_JOB = "20300101T000000-q"


def _groups() -> dict[str, click.Group]:
    """The groups of commands below both programs, by what one types."""
    below = {
        f"{program} {name}": root.get_command(click.Context(root), name)
        for program, root in (("webarc", reader_cli), ("webarc-agent", agent_cli))
        for name in root.list_commands(click.Context(root))
    }
    return {words: command for words, command in below.items() if isinstance(command, click.Group)}


def _texts() -> Iterator[tuple[Path, str]]:
    for folder, endings in (("", ".md"), ("docs", ".md"), ("agent", ".py .html .po"), ("webarcfs", ".py .html .po")):
        pattern = "**/*" if folder else "*"
        for path in sorted((_REPOSITORY / folder).glob(pattern)):
            if path.suffix and path.suffix in endings.split() and path.name != "CHANGELOG.md":
                yield path, path.read_text("utf-8")


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    made = make_archive(tmp_path)
    (made.jobs / _JOB).mkdir()
    return made


def _run(archive: Archive, *words: str) -> Result:
    return CliRunner(env={"WEBARC_ARCHIVE": str(archive.root)}).invoke(agent_cli, words, prog_name="webarc-agent")


def test_every_group_has_the_verb_first() -> None:
    assert {words for words, group in _groups().items() if not isinstance(group, VerbGroup)} <= {"webarc dataset"}


def test_documents_and_messages_name_verbs_behind_groups() -> None:
    groups = {words: set(group.list_commands(click.Context(group))) for words, group in _groups().items()}
    said = re.compile(rf"({'|'.join(sorted(groups, key=len, reverse=True))}) ([^\s`'\".,;:)]+)")
    wrong: list[str] = []
    count = 0
    for path, text in _texts():
        for match in said.finditer(text):
            words, verb = match.groups()
            if verb.startswith(("--", "<", "\\", "{")):
                continue
            count += 1
            if not set(verb.split("|")) <= groups[words]:
                wrong.append(f"{path.name}: {match[0]}")
    assert count > 60
    assert not wrong


def _groups_with_lists() -> list[str]:
    """The groups whose `list`, or `types`, is about an archive."""
    lists = {words: group.commands.get("list", group.commands.get("types")) for words, group in _groups().items()}
    return [
        words
        for words, command in lists.items()
        if words.startswith("webarc-agent")
        and command is not None
        and "archive" in {option.name for option in command.params}
    ]


@pytest.mark.parametrize("words", _groups_with_lists())
def test_options_may_stand_before_the_verb(archive: Archive, words: str) -> None:
    name = words.removeprefix("webarc-agent ")
    verb = "list" if "list" in _groups()[words].list_commands(click.Context(agent_cli)) else "types"
    with_options_first = _run(archive, name, "--archive", str(archive.root), "--json", verb)
    assert with_options_first.exit_code == 0 and not with_options_first.stderr, with_options_first.output
    assert with_options_first.stdout == _run(archive, name, verb, "--archive", str(archive.root), "--json").stdout


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ((_JOB, "pause"), f"job pause {_JOB}"),
        (("q", "exclude", "a.example", "--reason", "a trap"), "job exclude q a.example --reason 'a trap'"),
        (("--reason", "pause", "q", "stop"), "job stop q --reason pause"),
        (("q", "add", "http://a.example/", "http://b.example/"), "job add q http://a.example/ http://b.example/"),
    ],
)
def test_the_former_order_of_a_job_holds_and_names_the_one_of_today(
    archive: Archive, former: tuple[str, ...], now: str
) -> None:
    done = _run(archive, "job", *former)
    assert done.exit_code == 0 and done.stderr == f"webarc-agent: now it is `webarc-agent {now}`\n", done.output
    (given,) = describe_orders(archive.jobs / _JOB)
    assert now.split()[1] == given["order"]


def test_a_job_without_words_lists_what_is_open(archive: Archive) -> None:
    done = _run(archive, "job", "--json")
    assert done.exit_code == 0 and _JOB in done.stdout
    assert done.stderr == "webarc-agent: now it is `webarc-agent job list --json`\n"


@pytest.mark.parametrize("word", [*OrderWord, "list", "show"])
def test_a_job_may_be_called_as_an_order(archive: Archive, word: str) -> None:
    (archive.jobs / f"20300102T000000-{word}").mkdir()
    done = _run(archive, "job", "pause", word)
    assert done.exit_code == 0 and not done.stderr
    assert done.stdout.startswith(f"20300102T000000-{word}: pause, given")


@pytest.mark.parametrize(
    ("words", "text"),
    [(("q",), "`webarc-agent job show q`"), (("q", "dance"), "dance is no order; there are: pause, ")],
)
def test_a_job_without_an_order_is_told_what_there_is(archive: Archive, words: tuple[str, ...], text: str) -> None:
    done = _run(archive, "job", *words)
    assert isinstance(done.exception, UsageError) and text in str(done.exception)
