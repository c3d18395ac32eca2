"""`webarc query`, as people call it: formats, places, exit codes (/Cl-6/, DESIGN.md section 6)."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.recover import catch_up
from tests.support import archives
from webarcfs.archive.directory import Archive
from webarcfs.archive.model import FIELDS

pytestmark = pytest.mark.store
PAGES = {"index.html": b"<title>home</title>", "a b/\u00fc.pdf": b"%PDF", "x.html": b"x"}


def webarc(*words: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.argv[0] = 'webarc'; from webarcfs.commands.cli import main; main()"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(
        command, env=os.environ | (environment or {}), capture_output=True, text=True, encoding="utf-8", check=False
    )


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = archives.make_archive(tmp_path_factory.mktemp("webarc"))
    archives.publish(made, pages=PAGES)
    archives.publish(made, pages={"x.html": None})
    catch_up(made)
    return made


def test_formats(archive: Archive) -> None:
    """/Cl-6/: one answer, in the form that is asked for."""
    where, root = "path LIKE '%.pdf'", str(archive.root)
    found = json.loads(webarc("query", "--archive", root, where, "--order-by", "crawlTime", "--format", "json").stdout)
    assert [each["crawlTime"] for each in found] == ["2026-11-21T03:00:00", "2026-11-21T03:00:01"]
    assert list(found[0]) == list(FIELDS) and found[0]["path"] == "/www.example.org/a b/\u00fc.pdf"
    answer = webarc("query", where, "--order-by", "crawlTime", "--format", "csv", environment={"WEBARC_ARCHIVE": root})
    assert list(csv.DictReader(io.StringIO(answer.stdout))) == found
    answer = webarc("query", "--archive", root, where, "--format", "paths", "--limit", "1")
    assert answer.stdout == "/.snapshots/2026-11-21T03:00:00@www.example.org/a b/\u00fc.pdf\n"
    answer = webarc("query", "--archive", root)
    assert len(answer.stdout.splitlines()) == 1 + 5 and "commitTag" in answer.stdout


def test_nothing_found_is_an_answer(archive: Archive) -> None:
    answer = webarc("query", "--archive", str(archive.root), "0", "--format", "json")
    assert (answer.returncode, json.loads(answer.stdout)) == (0, [])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["mimetype_ = 1"], 1, "no such column"),
        (["url = "], 1, "syntax error"),
        (["1", "--format", "xml"], 1, "Invalid value"),
        (["1", "--mount", "/"], 2, "in no mounted archive"),
        (["(SELECT count(*) FROM metadata, metadata AS b, metadata AS c, metadata AS d, metadata AS e, metadata AS f,"
          " metadata AS g, metadata AS h, metadata AS i, metadata AS j) > 0", "--seconds", "0.2"], 2, "took more than"),
    ],
)  # fmt: skip
def test_errors_are_a_line_and_an_exit_code(archive: Archive, words: list[str], code: int, said: str) -> None:
    answer = webarc("query", *words, environment={"WEBARC_ARCHIVE": str(archive.root)})
    assert (answer.returncode, answer.stdout) == (code, "")
    assert said in answer.stderr and "Traceback" not in answer.stderr


def test_an_archive_without_database(tmp_path: Path) -> None:
    made = archives.make_archive(tmp_path)
    answer = webarc("query", "--archive", str(made.root))
    assert answer.returncode == 2 and "recover" in answer.stderr


def test_a_reader_that_goes_is_no_error(archive: Archive) -> None:
    code = f"{sys.executable} -c 'from webarcfs.commands.cli import main; main()' query --archive {archive.root} | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", code], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
