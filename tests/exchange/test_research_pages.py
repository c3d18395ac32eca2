"""docs/research-*.md: their commands, programs and questions, as they stand there, and what they count."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import html
import io
import re
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from agent.indexing.fulltext import bring_in_step
from tests.support import warcreading, warcs, years
from tests.support.imports import import_files
from tests.support.readercommand import in_shell
from tests.support.sources import ROOT
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl

#: A time of the last year but one in UTC, and of the last one in CET.
_NEW_YEAR = f"{years.YEARS[-1] - 1}-12-31T23:30:00Z"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = years.make_years(tmp_path_factory.mktemp("years"))
    body = b"<title>Late</title><p>In CET the year has begun</p>"
    late = warcs.response("http://news.example.org/late.html", body, _NEW_YEAR)
    path = files_of(made) / "late.warc"
    warcs.write(path, [late])
    import_files(made, path, name="council")
    bring_in_step(made)
    return made


def files_of(archive: Archive) -> Path:
    """The folder of the WARC files that the archive was made of."""
    return archive.root.parent / "files"


def run(archive: Archive, folder: Path, command: str) -> str:
    return in_shell(command, folder, WEBARC_ARCHIVE=str(archive.root))


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


def blocks_of(name: str, heading: str) -> list[tuple[str, str]]:
    """Language and text of each block of a section."""
    page = (ROOT / "docs" / f"research-{name}.md").read_text("utf-8")
    return _BLOCK.findall(page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0])


def words_by_year(archive: Archive) -> dict[int, tuple[int, int]]:
    """Year → distinct versions of pages, and their words: of the WARC files that the archive was made of."""
    versions: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    for path in files_of(archive).iterdir():
        for record in warcreading.read(path):
            if record.kind != "response" or record.status != "200" or record.body.startswith(b"%PDF"):
                continue
            visible = re.sub(r"<title>.*?</title>", " ", record.body.decode(), flags=re.DOTALL)
            words = html.unescape(re.sub(r"</?(?:p|a)\b[^>]*>", " ", visible)).split()
            when = datetime.fromisoformat(record.fields["WARC-Date"]) + timedelta(hours=1)
            versions[when.year][record.uri, hashlib.sha1(record.body).hexdigest()] = len(words)
    return {year: (len(found), sum(found.values())) for year, found in sorted(versions.items())}


@pytest.mark.parametrize("name", ["pandas", "duckdb"])
def test_the_words_of_each_year_are_those_of_an_independent_count(
    archive: Archive, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (shell, command), (language, question) = blocks_of(name, "How many words the pages have in each year")
    assert shell == "sh"
    run(archive, tmp_path, command)
    if language == "sql":
        counted = {year: (versions, words) for year, versions, words, _ in duckdb.sql(question).fetchall()}
    else:
        counted = _by_year(question)
    expected = words_by_year(archive)
    assert counted == expected and list(expected) == list(years.YEARS)
    if name == "pandas":  # what the page says of captures
        run(archive, tmp_path, f"rm -r by-year\n{command.replace('--unit year', '--unit capture')}")
        dropped = 'texts = texts.drop_duplicates(["url", "sha1", "year"])'
        assert dropped.removeprefix("texts = ") in (ROOT / "docs" / "research-pandas.md").read_text("utf-8")
        lines = question.splitlines()
        assert _by_year("\n".join([*lines[:-1], dropped, lines[-1]])) == expected
        assert _by_year(question) != expected


def _by_year(program: str) -> dict[int, tuple[int, int]]:
    """Year → versions and words, as the table `texts` of a program has them."""
    variables: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(program, "research-pandas.md", "exec"), variables)
    return {int(year): (len(rows), int(rows["words"].sum())) for year, rows in variables["texts"].groupby("year")}


@pytest.mark.parametrize("name", ["pandas", "duckdb"])
def test_the_shares_of_words_are_those_of_curves(
    archive: Archive, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    heading = "Tables" if name == "duckdb" else "Words over time"
    commands = [text for language, text in blocks_of(name, heading) if language == "sh"]
    questions = [text for language, text in blocks_of(name, "Words over time") if language != "sh"]
    for command in commands:
        run(archive, tmp_path, command)
    if name == "duckdb":
        found = duckdb.sql(questions[0]).fetchall()
        shares = {(word, year): share for word, year, share, *_ in found}
    else:
        variables: dict[str, Any] = {"pd": pd}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(questions[0], "research-pandas.md", "exec"), variables)
        shares = dict(variables["shares"].stack().items())
    narrowed = "--type html" if name == "pandas" else ""
    answer = run(archive, tmp_path, f"webarc curve text:news text:version --exact --as-reader {narrowed} --format csv")
    points = list(csv.DictReader(answer.splitlines()))
    assert len(points) == 2 * len(years.YEARS)
    for point in points:
        key = point["words"].removeprefix("text:"), int(point["period"])
        assert round(shares[key], 6) == float(point["share"]) > 0, point


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
