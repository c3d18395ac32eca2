"""`webarc snapshots`: all snapshots that somebody may see, in order, each with what is known of it."""

from __future__ import annotations

import csv
import io
import json

import pytest

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.named_snapshots import KEPT, OLD, PORT, TOWN, Kept, archive_of
from tests.support.readercommand import webarc
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import Repository
from webarcfs.archive.history.versions import statistics
from webarcfs.archive.index import names
from webarcfs.archive.model.metadata import CommitTag

pytestmark = pytest.mark.store


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    archive = archive_of(tmp_path_factory.mktemp("list"))
    recover(archive)
    return archive


def _listed(archive: Archive, *words: str) -> list[dict[str, object]]:
    done = webarc("snapshots", *words, "--format", "jsonl", "--archive", str(archive.root))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _newest_first(rows: list[Kept]) -> list[str]:
    by_host = sorted(rows, key=lambda row: row.host)
    return [row.tag for row in sorted(by_host, key=lambda row: row.time, reverse=True)]


@pytest.mark.parametrize("rows_of_a_page", [1, 3, 1_000])
@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_every_snapshot_is_listed_once_in_order(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, order: str, rows_of_a_page: int
) -> None:
    monkeypatch.setattr(names, "_ROWS", rows_of_a_page)
    for host in ("", TOWN, OLD):
        for during in ("", "2019", "2019-02", "2018-12-31", "2019-02-08T23:59"):
            rows = [row for row in KEPT if host in ("", row.host) and row.time.startswith(during)]
            found = _listed(archive, host, *(["--during", during] if during else []), "--sort", order)
            expected = _newest_first(rows)
            if order == "oldest":
                expected = [row.tag for row in sorted(rows, key=lambda row: (row.time, row.host))]
            assert [row["commitTag"] for row in found] == expected, (host, during)


def test_each_has_what_is_known_of_it(archive: Archive) -> None:
    found = {row["commitTag"]: row for row in _listed(archive)}
    for row in KEPT:
        tag = CommitTag.parse(row.tag)
        store = Repository(archive.repository(row.host))
        assert found[row.tag] == {
            "commitTag": row.tag,
            "host": row.host,
            "time": row.time,
            "publication": row.publication,
            "complete": "complete" if row.is_complete else "unknown" if row.is_import else "incomplete",
            "documents": statistics(store, store.snapshot_tree(tag)).documents,
            "record": f"{row.time.translate({45: None, 58: None})}-{row.publication}",
        }
    counts = {row["documents"] for row in found.values()}
    assert len(counts) > 5, "nothing comes or goes"


def test_readers_are_shown_what_is_open_and_no_number_of_what_is_hidden(archive: Archive) -> None:
    found = _listed(archive, "--as-reader")
    assert [row["commitTag"] for row in found] == _newest_first([row for row in KEPT if not row.is_hidden])
    hosts = {row.host for row in KEPT if row.is_hidden}
    assert {row["documents"] for row in found if row["host"] in hosts} == {None}
    done = webarc("snapshots", "--as-reader", "--archive", str(archive.root))
    shown = {row["host"] for row in found} & hosts
    assert f"the documents of {len(shown)} hosts are not counted" in done.stderr


def test_it_is_narrowed_and_cut_by_choice(archive: Archive) -> None:
    news = [row for row in KEPT if row.publication == "news"]
    assert [row["commitTag"] for row in _listed(archive, "--publication", "news")] == _newest_first(news)
    of_port = _newest_first([row for row in KEPT if row.host == PORT])
    for words in ([PORT], ["--domain", PORT.upper()], [f"http://{PORT}/x"], [PORT, "--domain", PORT]):
        assert [row["commitTag"] for row in _listed(archive, *words, "--limit", "2")] == of_port[:2]


def test_forms(archive: Archive) -> None:
    rows, root = _listed(archive, OLD), str(archive.root)
    assert json.loads(webarc("snapshots", OLD, "--json", "--archive", root).stdout) == rows
    table = webarc("snapshots", OLD, "--format", "csv", "--archive", root).stdout
    assert list(csv.DictReader(io.StringIO(table))) == [
        {name: str(value) for name, value in row.items()} for row in rows
    ]
    lines = webarc("snapshots", OLD, "--archive", root).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["commitTag", *(row["commitTag"] for row in rows)]
    assert webarc("snapshots", TOWN, "--during", "1999", "--archive", root).stdout == "none\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["www.town.exampl"], 2, f"did you mean {TOWN} or"),
        (["--publication", "twon"], 2, "did you mean town?"),
        (["--during", "lately"], 1, "--during: 'lately': a span of time is"),
        ([TOWN, "--domain", PORT], 1, "two hosts"),
        (["../x"], 2, "no host and no publication"),
    ],
)
def test_what_is_not_there_is_said(archive: Archive, words: list[str], code: int, said: str) -> None:
    done = webarc("snapshots", *words, "--archive", str(archive.root))
    assert (done.returncode, done.stdout) == (code, "") and said in done.stderr, done.stderr


def test_a_new_archive_has_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = archives.make_archive(tmp_path_factory.mktemp("empty"))
    assert webarc("snapshots", "--archive", str(empty.root)).stdout == "none\n"
    archives.publish(empty)
    done = webarc("snapshots", "--archive", str(empty.root))
    assert done.returncode == 2 and "recover" in done.stderr
