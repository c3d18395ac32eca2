"""A command that a program does not have: the message says who has it, or what is called nearly so."""

from __future__ import annotations

import subprocess

import pytest

from agent.commands import COMMANDS as AGENT_COMMANDS
from tests.support.mounts import SCRIPTS
from webarcfs.commands.cli import COMMANDS as READER_COMMANDS
from webarcfs.commands.unknown_commands import _MEANT, COMMANDS_OF, explain_unknown

pytestmark = pytest.mark.store


def test_the_names_are_those_of_the_programs() -> None:
    assert {name: set(words) for name, words in COMMANDS_OF.items()} == {
        "webarc": set(READER_COMMANDS),
        "webarc-agent": set(AGENT_COMMANDS),
    }


def test_what_is_said_instead_of_other_words_exists() -> None:
    for word, line in _MEANT.items():
        program, *command = line.split()
        assert all(word not in words for words in COMMANDS_OF.values())
        assert command[0] in COMMANDS_OF[program] if command else program.endswith("mount.webarcfs")


@pytest.mark.parametrize("program", COMMANDS_OF)
def test_each_command_of_the_other_program_is_named(program: str) -> None:
    for other, words in COMMANDS_OF.items():
        for word in words if other != program else ():
            assert f"`{other} {word}` does that" in explain_unknown(program, word, COMMANDS_OF[program])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("webarc status", "webarc has no command 'status'; `webarc-agent status` does that"),
        ("webarc-agent search words", "webarc-agent has no command 'search'; `webarc search` does that"),
        ("webarc snapshot", "did you mean `webarc snapshots`?"),
        ("webarc-agent snapshot", "did you mean `webarc snapshots`?"),
        ("webarc ls", "`webarc snapshots` does that"),
        ("webarc-agent publicatoin list", "did you mean `webarc-agent publication`?"),
        ("webarc-agent jobs", "`webarc-agent job list` does that"),
        ("webarc xyzzy", "`webarc --help` lists them"),
        ("webarc-agent record 20190501T000048-town show", "`webarc-agent record show 20190501T000048-town`"),
        ("webarc-agent publication town show", "`webarc-agent publication show town`"),
        ("webarc-agent record xyzzy", "No such command"),
    ],
)
def test_the_message_leads_on(line: str, said: str) -> None:
    program, *words = line.split()
    done = subprocess.run([SCRIPTS / program, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "") and said in done.stderr, done.stderr
