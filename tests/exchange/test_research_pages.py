"""docs/research-*.md: their commands, programs and questions, as they stand there, in their order."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from agent.indexing.fulltext import bring_in_step
from tests.support import years
from tests.support.sources import ROOT
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = years.make_years(tmp_path_factory.mktemp("years"))
    bring_in_step(made)
    return made


def run(archive: Archive, folder: Path, command: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "WEBARC_ARCHIVE": str(archive.root), "PATH": path}
    words = ["bash", "-e", "-o", "pipefail", "-c", command]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


@pytest.mark.parametrize("name", ["pandas", "duckdb", "gephi"])
def test_each_block_runs_and_answers(
    archive: Archive, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = _BLOCK.findall((ROOT / "docs" / f"research-{name}.md").read_text("utf-8"))
    assert len(blocks) >= 3
    monkeypatch.chdir(tmp_path)
    variables: dict[str, object] = {}
    for language, block in blocks:
        if language == "sh":
            run(archive, tmp_path, block)
        elif language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block, f"research-{name}.md", "exec"), variables)
            assert printed.getvalue().strip(), block
        else:
            assert language == "sql"
            answer = duckdb.sql(block).fetchall()
            assert answer, block


def test_each_command_of_the_readme_writes_its_table(archive: Archive, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    section = readme.partition("## Tables for research\n")[2].partition("\n## ")[0]
    commands = re.findall(r"^ {4}(webarc .*)$", section, re.MULTILINE)
    assert len(commands) == 7
    (tmp_path / "webarc").symlink_to(archive.root)
    for command in commands:
        run(archive, tmp_path, f"export HOME={tmp_path}\n{command.replace('| head -1', '| wc -l')}")
    names = {"pages", "texts", "links", "types", "words", "graph"}
    assert names == {path.name for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()}
    assert all((tmp_path / name / "README.md").exists() for name in names)
