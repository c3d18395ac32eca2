"""Commands in messages can be typed as they stand."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from webarcfs.commands.lazy_commands import with_archive

_NAMED = ["webarc-agent", "crawl", "--archive", "/a b", "http://x.example/"]


@pytest.mark.parametrize("options", ["--archive|/a b", "--archive=/a b", "--archive|/c|--archive|/a b"])
def test_a_command_gets_the_archive_of_its_command_line(options: str) -> None:
    message = "`webarc-agent crawl --missing J` asks again; `webarc log URL` shows it"
    assert with_archive(message, ["webarc-agent", "report", *options.split("|")]) == (
        "`webarc-agent crawl --missing J --archive '/a b'` asks again; `webarc log URL --archive '/a b'` shows it"
    )


@pytest.mark.parametrize(
    "message",
    [
        "`webarc-agent init /new` makes one",
        "`webarc-agent restore /b ARCHIVE` makes one",
        "`webarc-agent --debug …` shows where",
        "`webarc log --archive /other URL` has it",
        "`chmod 600` it",
        "webarc-agent crawl, in words",
    ],
)
def test_what_is_no_command_to_type_here_stays(message: str) -> None:
    assert with_archive(message, _NAMED) == message


@pytest.mark.parametrize("arguments", [[], ["webarc-agent", "report"], ["webarc-agent", "crawl", "--archive"]])
def test_without_the_option_nothing_changes(arguments: list[str]) -> None:
    assert with_archive("`webarc-agent crawl J` goes on", arguments) == "`webarc-agent crawl J` goes on"


@settings(max_examples=examples(200), deadline=None)
@given(st.text(min_size=1).filter(lambda name: not name.startswith("-")))
def test_any_name_of_a_folder_comes_back_from_the_shell(name: str) -> None:
    told = with_archive("`webarc stat TAG`", ["webarc", "--archive", name]).strip("`")
    if "`" not in name:
        assert shlex.split(told) == ["webarc", "stat", "TAG", "--archive", name]
