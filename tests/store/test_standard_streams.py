"""What both programs write: where nobody reads it any more, and of names that are not UTF-8."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.support import archives
from tests.support.surfaces import archive_of
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import WebarcError
from webarcfs.commands.lazy_commands import ProgramGroup

pytestmark = pytest.mark.store

_HOME = "http://www.example.org/"
_TAG = "2020-05-01T12:00:00@www.example.org"
_MODULES = {"webarc": "webarcfs.commands.cli", "webarc-agent": "agent.cli"}
_COMMANDS = [
    ("webarc", "--help"),
    ("webarc", "query", "1"),
    *(("webarc", "query", "1", "--format", form) for form in ("json", "jsonl", "csv", "paths")),
    ("webarc", "log", _HOME),
    ("webarc", "cat", _TAG, _HOME),
    ("webarc", "export", "-"),
    ("webarc-agent", "--help"),
    ("webarc-agent", "record", "--help"),
    ("webarc-agent", "record", "list"),
    ("webarc-agent", "record", "fields", "--format", "csv"),
    ("webarc-agent", "record", "show", "1", "--json"),
    *(("webarc-agent", "record", "export", "1", "--format", form) for form in ("xml", "json", "csv")),
    ("webarc-agent", "report", "--words"),
]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return archive_of(tmp_path_factory.mktemp("streams"))


def _run_unread(archive: Archive, *words: str, stderr: bool = True, **environment: str) -> tuple[int, str]:
    """Run a command whose output nobody reads; return its exit code and what it said on stderr, if that is read."""
    program, *arguments = words
    code = f"import sys; sys.argv[0] = {program!r}; from {_MODULES[program]} import main; main()"
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, "WEBARC_ARCHIVE": str(archive.root), **environment},
            stdin=subprocess.DEVNULL, stdout=write_end, stderr=subprocess.PIPE if stderr else write_end,
            text=True, check=False, timeout=240,
        )  # fmt: skip
    finally:
        os.close(write_end)
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize("words", _COMMANDS, ids=" ".join)
def test_a_reader_that_has_gone_is_no_error(archive: Archive, words: tuple[str, ...]) -> None:
    assert _run_unread(archive, *words) == (0, "")


@pytest.mark.parametrize("words", [("webarc", "query", "1"), ("webarc-agent", "record", "list")])
def test_nor_without_buffers(archive: Archive, words: tuple[str, ...]) -> None:
    assert _run_unread(archive, *words, PYTHONUNBUFFERED="1") == (0, "")


@pytest.mark.parametrize(
    ("words", "code"),
    [(("webarc", "query", "no column"), 1), (("webarc-agent", "record", "show", "99"), 2), (("webarc", "--none"), 1)],
)
def test_an_error_that_nobody_reads_keeps_its_code(archive: Archive, words: tuple[str, ...], code: int) -> None:
    assert _run_unread(archive, *words, stderr=False)[0] == code


def test_a_finding_that_nobody_reads_is_one(archive: Archive) -> None:
    head = archives.store_of(archive).path / "HEAD"
    text = head.read_text("utf-8")
    head.write_text("ref: refs/heads/none\n", "utf-8")
    try:
        code, complaint = _run_unread(archive, "webarc-agent", "verify")
    finally:
        head.write_text(text, "utf-8")
    assert code == 2 and complaint.endswith("findings\n")


@pytest.mark.parametrize("how", ["print_lines(rows)", "print_array(rows)", "print_csv(rows, ['n'])"])
def test_a_list_ends_with_its_reader(how: str) -> None:
    """What nobody reads is not made: a list of millions would run on for minutes."""
    code = (
        "import sys; from webarcfs.archive.system.standard_streams import prepare_streams; prepare_streams();"
        "from webarcfs.commands.listing import print_array, print_csv, print_lines;"
        f"rows = ({{'n': sys.stderr.write('row ') }} for _ in range(1000)); {how}"
    )
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=True)
    finally:
        os.close(write_end)
    assert done.stderr.count("row") <= 1


def test_another_pipe_that_breaks_is_an_error() -> None:
    @click.command()
    def command() -> None:
        raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(WebarcError, match="has ended"):
        ProgramGroup(commands={"command": command})(["command"], standalone_mode=False)


# -- names -------------------------------------------------------------------------------------------------------------

_ODD = b"o\xff.warc"


def _run_in(archive: Archive, program: str, *words: str | bytes, encoding: str) -> tuple[int, bytes, bytes]:
    """Run a command with an encoding of standard output; return its exit code and what it wrote."""
    code = f"from {_MODULES[program]} import main; main()"
    environment = {**os.environ, "WEBARC_ARCHIVE": str(archive.root), "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_name_that_is_not_utf8_is_printed_as_it_is(archive: Archive, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/" + _ODD
    code, text, complaint = _run_in(archive, "webarc", "export", path, encoding="utf-8:strict")
    assert code == 0 and complaint.startswith(b"webarc: included, and hidden from readers: ")
    assert text.startswith(path + b": ")
    Path(os.fsdecode(path)).unlink()
    code, text, complaint = _run_in(archive, "webarc", "export", "--json", path, encoding="utf-8:strict")
    assert code == 0
    assert os.fsencode(json.loads(text.decode("utf-8"))["out"]) == path


@pytest.mark.parametrize("program", _MODULES)
def test_an_error_about_such_a_name_is_a_line(archive: Archive, program: str, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/" + _ODD
    words = ("query", "--archive", path) if program == "webarc" else ("record", "list", "--archive", path)
    code, text, complaint = _run_in(archive, program, *words, encoding="utf-8:strict")
    assert (code, text) == (2, b"") and path in complaint and b"unexpected" not in complaint


def test_a_letter_that_the_encoding_lacks_is_escaped(archive: Archive, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "ü€.warc")
    code, text, _ = _run_in(archive, "webarc", "export", path, encoding="latin-1:strict")
    assert code == 0 and os.fsencode(tmp_path) + b"/\xfc\\u20ac.warc: " in text
