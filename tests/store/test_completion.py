"""The Tab key, and help that teaches by examples: each example is a command line that would be taken."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import sqlite3
import subprocess
import tomllib
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import click
import pytest

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.mounts import SCRIPTS
from tests.support.named_snapshots import KEPT, PORT, TOWN, archive_of
from tests.support.rooms import Page, published
from webarcfs.archive.catalogue.catalogue import opened
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CommitTag, format_time
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


# -- the names of an archive -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    archive = archive_of(tmp_path_factory.mktemp("completion"))
    recover(archive)
    _open_catalogue(archive)
    archive.publications.mkdir()
    (archive.publications / "planned.toml").write_text("[[publication]]\n")
    (archive.jobs / "20190601T000000-town").mkdir()
    return archive


def _open_catalogue(archive: Archive) -> None:
    """Bring its tables in step, as every command does that asks them."""
    with opened(archive) as tables:
        assert tables.commit


def _offered(*words: str, archive: Path) -> list[str]:
    """What a program offers for the last of these words."""
    asked = {variable(words[0]): "bash_complete", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    lines = run(words[0], **asked, WEBARC_ARCHIVE=str(archive)).split()
    assert all(line.startswith("plain,") for line in lines), lines
    return [line.removeprefix("plain,") for line in lines]


NEWEST = max(KEPT, key=lambda row: row.time)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("webarc cat lat", ["latest", "latest~1"]),
        (f"webarc cat {NEWEST.tag[:16]}", [NEWEST.tag]),
        (f"webarc diff latest@{TOWN} {NEWEST.tag[:-3]}", [NEWEST.tag]),
        ("webarc stat latest~1@w", [f"latest~1@{TOWN}"]),
        ("webarc stat 2019-02@n", ["2019-02@news"]),
        ("webarc stat latest@nowhere", []),
        ("webarc links --count 2031", []),
        ("webarc snapshots w", [TOWN]),
        ("webarc search --domain p", [PORT]),
        ("webarc search --at lates", ["latest", "latest~1"]),
        ("webarc export --publication t", ["town"]),
        (f"webarc export --record {NEWEST.time.translate({45: None, 58: None})}", ["20190501T000048-town"]),
        ("webarc-agent record show 20190501", ["20190501T000048-town"]),
        ("webarc-agent publication show p", ["planned"]),
        ("webarc-agent job ", ["list", "show", "20190601T000000-town"]),
        ("webarc-agent job 20190601T000000-town pa", ["pause"]),
        ("webarc-agent job show 2", ["20190601T000000-town"]),
        ("webarc-agent crawl --resume 2", ["20190601T000000-town"]),
    ],
)
def test_names_of_the_archive_are_offered(archive: Archive, words: str, expected: list[str]) -> None:
    assert _offered(*words.split(" "), archive=archive.root) == expected


@pytest.mark.parametrize("word", ["", "2", "latest@", "www", "2019-02-08T23:59:29@"])
@pytest.mark.parametrize(
    "options", [["--archive", "/nowhere"], ["--as-reader"], ["--reader", "anna"], ["--mount", "/nowhere"]]
)
def test_nothing_is_offered_without_an_archive_or_to_readers(archive: Archive, options: list[str], word: str) -> None:
    offered = _offered("webarc", "stat", *options, word, archive=archive.root)
    assert offered == []
    assert _offered("webarc", "snapshots", *options, word, archive=archive.root) == []


def test_what_is_discarded_is_not_offered(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    for number, state in enumerate([RecordState.RELEASED, RecordState.DISCARDED]):
        when = archives.FIRST + timedelta(days=number)
        published(archive, TOWN, {f"http://{TOWN}/": Page(b"x")}, when, state=state)
    recover(archive)
    _open_catalogue(archive)
    assert _offered("webarc", "stat", "2026", archive=archive.root) == [f"2026-11-21T03:00:00@{TOWN}"]
    assert _offered("webarc-agent", "record", "show", "2026", archive=archive.root) == ["20261121T030000-p"]


def test_of_many_snapshots_years_months_and_days_are_offered(tmp_path: Path) -> None:
    """Never more than so many words, however many snapshots there are."""
    archive = archives.make_archive(tmp_path)
    published(archive, TOWN, {f"http://{TOWN}/": Page(b"x")}, archives.FIRST)
    recover(archive)
    with closing(sqlite3.connect(archive.database)) as database:
        ((domain,),) = database.execute("SELECT id FROM domain")
        times = [archives.FIRST + timedelta(hours=number) for number in range(1, 20_001)]
        rows = [
            (domain, int(time.timestamp()), format_time(time), str(CommitTag(time, TOWN)), number + 10, "p", 1)
            for number, time in enumerate(times)
        ]
        database.executemany("INSERT INTO snapshot VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        database.commit()
    offered = {
        text: _offered("webarc", "cat", text, archive=archive.root) for text in ("", "2028-0", "2028-02", "2028-02-0")
    }
    assert offered[""] == ["latest", "latest~1", "2029", "2028", "2027", "2026"]
    assert offered["2028-0"] == [f"2028-0{month}" for month in range(9, 0, -1)]
    assert offered["2028-02"] == [f"2028-02-{day:02}" for day in range(29, 0, -1)]
    assert offered["2028-02-0"] == [f"2028-02-0{day}" for day in range(9, 0, -1)]
    day = _offered("webarc", "cat", "2028-02-03", archive=archive.root)
    assert day == [f"2028-02-03T{hour:02}:00:00@{TOWN}" for hour in range(23, -1, -1)]
    assert len(_offered("webarc", "cat", "2028-02-03T", archive=archive.root)) == 24


def _typed(line: str, archive: Path, until: str) -> str:
    """What a terminal shows once Tab is pressed behind a line, up to a text."""
    environment = {**ENVIRONMENT, "WEBARC_ARCHIVE": str(archive), "PS1": "$ ", "TERM": "dumb", "HISTFILE": ""}
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
    shown = ""
    try:
        os.write(terminal, b'bind "set bell-style none"; eval "$(webarc completion bash)"; echo rea""dy\n')
        for word, typed in (("ready\r\n", f"{line}\t".encode()), (until, b"")):
            shown = ""
            while word not in shown:
                assert select.select([terminal], [], [], 120)[0], shown
                shown += os.read(terminal, 65_536).decode()
            os.write(terminal, typed)
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)
    return shown


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (f"webarc cat {NEWEST.tag[:14]}", f"webarc cat {NEWEST.tag} "),
        (f"webarc cat {NEWEST.tag[:16]}", f"webarc cat {NEWEST.tag} "),
        (f"webarc cat {NEWEST.tag[:20]}", f"webarc cat {NEWEST.tag} "),
        (f"webarc cat {NEWEST.tag[:22]}", f"webarc cat {NEWEST.tag} "),
        (f"webarc stat latest@{TOWN} latest~1@w", f"webarc stat latest@{TOWN} latest~1@{TOWN} "),
        (f"webarc export --at={NEWEST.tag[:15]}", f"webarc export --at={NEWEST.tag} "),
        ("webarc query --format=pa", "webarc query --format=paths "),
    ],
)
def test_a_terminal_completes_names_with_colons_and_at_signs(archive: Archive, typed: str, line: str) -> None:
    """Bash takes such words apart: nothing is doubled, and nothing is lost."""
    assert _typed(typed, archive.root, line).replace("\r", "").endswith(line)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("mount.webarcfs /sr", "dir"),
        ("umount.webarcfs /mn", "dir"),
        ("webarc query --archive /sr", "dir"),
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
