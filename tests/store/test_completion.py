"""The Tab key, and help that teaches by examples: each example is a command line that would be taken."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import click
import pytest

from tests.support.mounts import SCRIPTS
from webarcfs.commands.cli import cli
from webarcfs.commands.lazy_commands import PROGRAMS, variable

pytestmark = pytest.mark.store

ENVIRONMENT = {**os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"}


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env={**ENVIRONMENT, **environment}
    )
    assert done.stderr == "", done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("webarc qu", ["query"]),
        ("webarc query --form", ["--format"]),
        ("webarc query --format js", ["json", "jsonl"]),
        ("webarc-agent ma", ["maintain"]),
        ("mount.webarcfs -o ro,bind", ["ro,binding="]),
        ("umount.webarcfs --he", ["--help"]),
    ],
)
def test_bash_completes(words: str, expected: list[str]) -> None:
    """As when Tab is pressed behind these words."""
    program, *_, last = words.split()
    script = (
        f'eval "$(webarc completion bash)"; COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}\n'
        f'"$(complete -p {program} | sed "s/.* -F //; s/ .*//")" {program} {last}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    assert run("bash", "--norc", "-c", script).split() == expected


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("mount.webarcfs /sr", "dir"),
        ("umount.webarcfs /mn", "dir"),
        ("webarc query --archive /sr", "file"),
        ("webarc-agent import x.warc", "file"),
    ],
)
def test_folders_and_files_are_left_to_the_shell(words: str, kind: str) -> None:
    program, *rest = words.split()
    asked = {variable(program): "bash_complete", "COMP_WORDS": words.replace(" ", "\n"), "COMP_CWORD": str(len(rest))}
    assert run(program, **asked).startswith(f"{kind},")


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete -o"), ("zsh", "compdef "), ("fish", "complete ")])
def test_every_shell_is_told_of_every_program(shell: str, word: str) -> None:
    script = run(str(SCRIPTS / "webarc"), "completion", shell)
    for program in PROGRAMS:
        assert re.search(rf"^ *{word}.*{re.escape(program)}\b", script, re.MULTILINE), program


def test_the_programs_are_those_that_are_installed() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert set(PROGRAMS) == set(project["project"]["scripts"])


EXAMPLES = [
    (name, line.strip())
    for name, command in {"": cli, **cli.commands}.items()
    for line in (command.help or "").replace("\\\n", " ").splitlines()
    if line.strip().startswith("webarc ")
]


@pytest.mark.parametrize("line", [line for _, line in EXAMPLES])
def test_examples_are_taken(line: str) -> None:
    """Each example of a help is a command line without a fault, as far as that can be told without an archive."""
    words = shlex.split(line.partition(" > ")[0].partition(" | ")[0], comments=True)[1:]
    command = cli.commands[words[0]]
    if isinstance(command, click.Group):
        command, words = command.commands[words[1]], words[1:]
    with command.make_context(words[0], words[1:], parent=click.Context(cli)) as context:
        assert context.params


def test_every_command_has_an_example() -> None:
    assert {name for name, _ in EXAMPLES} >= {"", *cli.commands} - {"completion"}
    shown = "\n".join(line for name, line in EXAMPLES if not name)
    assert all(f"webarc {name} " in shown for name in {*cli.commands} - {"completion"})
