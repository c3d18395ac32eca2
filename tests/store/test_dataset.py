"""Datasets of small archives: whose view they are, what narrows them, and what becomes of OUT."""

from __future__ import annotations

import csv
import errno
import importlib.util
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agent.indexing.fulltext import bring_in_step
from agent.indexing.recovery import recover
from tests.support import archives, forked
from tests.support.histories import DOMAIN, HISTORIES, NOW, History, Step
from tests.support.imports import killed_in
from tests.support.readercommand import COMMAND, webarc, webarc_bytes
from tests.support.recorded import published
from webarcfs.access import access_rules
from webarcfs.access.access_rules import Access
from webarcfs.access.gate import KnownGate, Reader
from webarcfs.access.visible_captures import VisibleCaptures
from webarcfs.archive.catalogue.record import RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import CaptureIndex, Span
from webarcfs.archive.system import locks
from webarcfs.dataset import dataset_folder, making, table_writers
from webarcfs.dataset.narrowing import DatasetUnit, Narrowing, year_of
from webarcfs.dataset.readers_versions import ReadersVersions
from webarcfs.export import export_result

pytestmark = pytest.mark.store

_ARCHIVES = int(os.environ.get("GATE_ARCHIVES", "8"))
_KINDS = ("pages", "text", "links", "types", "words", "hosts")


def table(archive: Archive, kind: str, *words: str) -> list[dict[str, str]]:
    """The rows of a dataset on standard output."""
    form = ("--format", "csv") if kind == "hosts" else ()
    done = forked.run([*COMMAND, "dataset", kind, *words, *form, "--archive", archive.root, "-"])
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def small(folder: Path) -> Archive:
    archive = archives.make_archive(folder)
    archive.settings.write_text("[index]\nlinks = true\n")
    body = b'<title>One</title><p>Words of the first page. <a href="http://other.example/x">out</a>'
    archives.publish(archive, pages={"a.html": body, "b.html": b"<p>other words", "c.pdf": b"%PDF-1.4 x"})
    archives.publish(archive, pages={"a.html": body + b" More."})
    archives.publish(archive, "other.example", pages={"x": b"plain"})
    recover(archive)
    bring_in_step(archive)
    return archive


# -- whose view --------------------------------------------------------------------------------------------------------


def units(archive: Archive, unit: DatasetUnit) -> list[tuple[Any, ...]]:
    gate = KnownGate(archive, Reader(), lambda: NOW)
    with ReadersVersions(gate, Narrowing(unit=unit)) as versions:
        return [
            (row.url, row.time, row.seq, row.version.row.blob, row.flag)
            for domain in versions.domains
            for row in versions.units(domain)
        ]


@settings(max_examples=_ARCHIVES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORIES)
def test_units_are_what_the_rules_say(tmp_path_factory: pytest.TempPathFactory, history: History) -> None:
    """Of random histories of two publications: captures as the room has them, states as the rules say."""
    archive = directory.create(tmp_path_factory.mktemp("units") / "archive")
    published(archive, history)
    recover(archive)
    gate = KnownGate(archive, Reader(), lambda: NOW)
    gate.look()
    expected = {
        (capture.url, capture.captured, capture.blob)
        for capture in VisibleCaptures(gate, CaptureIndex(archive.database)).below(
            Span("", "\U0010ffff"), with_met=True
        )
    }
    captures = units(archive, DatasetUnit.CAPTURE)
    assert {(url, time, blob) for url, time, _, blob, _ in captures} == expected
    assert len(captures) == len(expected)
    store = archives.store_of(archive, DOMAIN)
    states = Counter(
        (f"http://{DOMAIN}/{path}", history.seq(number), store.write_blob(body.encode()))
        for number in range(len(history.steps))
        if history.is_open(number)
        for path, body in history.at(number).items()
    )
    assert Counter((url, seq, blob) for url, _, seq, blob, _ in units(archive, DatasetUnit.SNAPSHOT)) == states
    versions = units(archive, DatasetUnit.VERSION)
    assert {(url, blob) for url, _, _, blob, _ in versions} == {(url, blob) for url, _, blob in expected}
    assert len(versions) == len({(url, blob) for url, _, blob in expected})
    by_year = Counter((url, blob, year_of(time)) for url, time, _, blob, _ in units(archive, DatasetUnit.YEAR))
    assert by_year == Counter({(url, blob, year_of(time)) for url, time, blob in expected})


def test_a_readers_half_is_exactly_the_other_half(tmp_path: Path) -> None:
    archive = directory.create(tmp_path / "archive")
    archive.settings.write_text("[index]\nlinks = true\n")
    page = "<p>{0} <a href='http://{0}.example/'>{0}</a>"
    steps = [Step("p", {"a.html": page.format("shown"), "b.html": page.format("both")})]
    steps += [
        Step("p", {"a.html": page.format("zebra"), "b.html": page.format("both")}, RecordState.COUNTED, held=True)
    ]
    steps += [Step("p", {"b.html": page.format("both"), "c.html": page.format("ruled")})]
    published(archive, History(steps))
    recover(archive)
    bring_in_step(archive)
    access_rules.withhold(archive, f"http://{DOMAIN}/c.html", "anna", "asked for", access=Access.EXCLUDE)
    for kind in _KINDS:
        for unit in DatasetUnit:
            whole = table(archive, kind, "--unit", unit)
            public = table(archive, kind, "--unit", unit, "--as-reader")
            assert "zebra" in str(whole) or kind in ("pages", "types")
            for hidden in ("zebra", "ruled", "c.html", "2020-01-02", "20200102"):
                assert hidden not in str(public), (kind, unit)
            assert public
    snapshots = table(archive, "pages", "--unit", "snapshot", "--as-reader")
    assert len(snapshots) == 3  # a and b in the first, b in the third
    done = webarc("dataset", "pages", "--archive", str(archive.root), "--as-reader", str(tmp_path / "out"))
    assert "left out" not in done.stderr
    with (tmp_path / "out" / "hosts.csv").open(encoding="utf-8") as file:
        assert [row["snapshots"] for row in csv.DictReader(file)] == ["2"]


def test_what_is_under_embargo_is_for_whom_a_rule_names(tmp_path: Path) -> None:
    archive = directory.create(tmp_path / "archive")
    steps = [Step("p", {"a": "open"}), Step("p", {"a": "open", "b": "closed"}, closed_for="30 years")]
    published(archive, History(steps))
    recover(archive)
    access_rules.withhold(archive, f"http://{DOMAIN}/b", "anna", "a reader", access=Access.ALLOW, user="ben")
    for unit in DatasetUnit:
        assert {row["url"] for row in table(archive, "pages", "--unit", unit, "--as-reader")} == {f"http://{DOMAIN}/a"}
        named = table(archive, "pages", "--unit", unit, "--reader", "ben")
        assert {row["url"] for row in named} == {f"http://{DOMAIN}/a", f"http://{DOMAIN}/b"}, unit


# -- narrowing ---------------------------------------------------------------------------------------------------------


def test_what_narrows(tmp_path: Path) -> None:
    archive = small(tmp_path)

    def count(*words: str, kind: str = "pages") -> int:
        return len(table(archive, kind, *words))

    assert count() == 5
    assert count("--domain", "other.example") == 1 and count("--domain", DOMAIN, "--domain", "other.example") == 5
    assert count("--type", "pdf") == 1 and count("--type", "text/*") == 3 and count("--type", "html") == 3
    assert count("--during", "2026") == 5 and count("--during", "2025") == 0 and count("--during", "2026-11-21") == 5
    assert count("--publication", "test") == 5 and count("--publication", "none") == 0
    assert count("--role", "resource") == 0 and count("--role", "any") == 5
    assert count("--unit", "snapshot") == 7
    assert count("--unit", "snapshot", "--at", f"2026-11-21T03:00:01@{DOMAIN}") == 3
    assert count("--unit", "snapshot", "--at", "2026-11-21T03:00:00") == 4
    assert count("--unit", "snapshot", "--at", "2026-11-20") == 0
    assert count(kind="links") == 2 and count("--type", "pdf", kind="links") == 0
    for words, message in (
        (("--at", "2026-11-21"), "--unit snapshot"), (("--during", "soon"), "a span of time is"),
        (("--domain", "none.example"), "no domain"), (("--type", "pfd"), "no kind"),
    ):  # fmt: skip
        done = webarc("dataset", "pages", "--archive", str(archive.root), *words, str(tmp_path / "out"))
        assert done.returncode != 0 and message in done.stderr
        assert not (tmp_path / "out").exists() and not (tmp_path / "out.part").exists()


def test_texts_are_read_from_documents_where_there_is_no_index(tmp_path: Path) -> None:
    archive = small(tmp_path)
    indexed, words = table(archive, "text"), table(archive, "words")
    assert {row["content"] for row in indexed} >= {"Words of the first page. out", "other words"}
    shutil.rmtree(archive.search)
    assert table(archive, "text") == indexed and table(archive, "words") == words
    done = webarc("dataset", "text", "--archive", str(archive.root), str(tmp_path / "out"))
    assert "no full-text index" in done.stderr and "no full-text index" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("library", ["tantivy", "pypdfium2", "striprtf", "py3langid"])
def test_texts_need_each_library_that_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    archive = small(tmp_path)
    monkeypatch.setattr(
        "webarcfs.texts.version_text.find_spec",
        lambda name: None if name == library else importlib.util.find_spec(name),
    )
    done = webarc("dataset", "text", "--archive", str(archive.root), str(tmp_path / "out"))
    assert done.returncode == 1 and "pip install 'webarcfs[search]'" in done.stderr
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.part").exists()


def test_without_the_index_of_links_there_are_none_and_that_is_an_error(tmp_path: Path) -> None:
    archive = small(tmp_path)
    archive.links.unlink()
    done = webarc("dataset", "links", "--archive", str(archive.root), str(tmp_path / "out"))
    assert done.returncode != 0 and "links.db" in done.stderr and not (tmp_path / "out").exists()


def test_snapshots_whose_links_are_not_indexed_are_counted(tmp_path: Path) -> None:
    archive = small(tmp_path)
    whole, before = table(archive, "links"), archive.links.read_bytes()
    archives.publish(archive, pages={"n.html": b'<a href="http://new.example/">new</a>'})
    recover(archive)
    assert len(table(archive, "links")) == len(whole) + 1
    archive.links.write_bytes(before)
    done = webarc("dataset", "links", "--archive", str(archive.root), "--json", str(tmp_path / "out"))
    told = json.loads(done.stdout)
    assert told["rows"] == len(whole)
    assert [number for reason, number in told["left_out"].items() if "not indexed yet" in reason] == [1]


# -- OUT ---------------------------------------------------------------------------------------------------------------


def test_nothing_is_replaced(tmp_path: Path) -> None:
    archive = small(tmp_path)
    words = ("dataset", "pages", "--archive", str(archive.root))
    (tmp_path / "file").write_text("mine")
    (tmp_path / "other.part").mkdir()
    (tmp_path / "other.part" / "mine").write_text("mine")
    for name in ("file", "other"):
        done = webarc(*words, str(tmp_path / name))
        assert done.returncode != 0 and done.stderr
    assert (tmp_path / "file").read_text() == (tmp_path / "other.part" / "mine").read_text() == "mine"
    homeless = webarc(*words, str(tmp_path / "none" / "out"))
    assert homeless.returncode != 0 and "is no folder; make it first" in homeless.stderr
    assert webarc(*words, str(tmp_path / "out")).returncode == 0
    assert webarc(*words, str(tmp_path / "out")).returncode != 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "README.md", "datapackage.json", "hosts.csv", "pages.csv",
    ]  # fmt: skip


def test_one_command_at_a_time_makes_it(tmp_path: Path) -> None:
    archive = small(tmp_path)
    (tmp_path / "out.part").mkdir()
    with locks.exclusive_or_busy(tmp_path / "out.part" / ".lock", "busy"):
        done = webarc("dataset", "pages", "--archive", str(archive.root), str(tmp_path / "out"))
    assert done.returncode != 0 and "another command" in done.stderr
    assert webarc("dataset", "pages", "--archive", str(archive.root), str(tmp_path / "out")).returncode == 0
    assert not (tmp_path / "out.part").exists()


_POINTS: dict[str, tuple[Any, str, int]] = {
    "first rows": (table_writers.CsvWriter, "write", 1),
    "description": (making, "write_description", 1),
    "sync": (dataset_folder, "sync_tree", 1),
    "after its name": (export_result, "sync_folder", 1),
}


@pytest.mark.parametrize("point", _POINTS)
def test_a_kill_leaves_nothing_under_the_name_that_is_not_whole(tmp_path: Path, point: str) -> None:
    archive = small(tmp_path)
    words = ("dataset", "pages", "--archive", str(archive.root), str(tmp_path / "out"))
    killed_in(lambda: webarc(*words), *_POINTS[point])
    if (tmp_path / "out").exists():
        assert point == "after its name"
        shutil.rmtree(tmp_path / "out")
    done = webarc(*words)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "out" / "pages.csv").read_text().splitlines()) == 6
    assert not (tmp_path / "out.part").exists()


def test_an_interruption_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = small(tmp_path)
    original = table_writers.CsvWriter.write

    def write(self: table_writers.CsvWriter, rows: Any) -> None:
        original(self, rows)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(table_writers.CsvWriter, "write", write)
    done = webarc("dataset", "pages", "--archive", str(archive.root), str(tmp_path / "out"))
    assert done.returncode != 0 and "begins it again" in done.stderr
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.part").exists()


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, small_disk: Path, form: str) -> None:
    archive = archives.make_archive(tmp_path)
    pages = {f"{number:04}-{os.urandom(100).hex()}.html": os.urandom(20) for number in range(3_000)}
    archives.publish_many(archive, pages.items())
    recover(archive)
    words = ["dataset", "pages", "--archive", str(archive.root), "--format", form]
    ballast = small_disk / "ballast"
    free = os.statvfs(small_disk)
    ballast.write_bytes(bytes(free.f_bavail * free.f_frsize - (100 << 10)))
    done = webarc(*words, str(small_disk / "out"))
    assert done.returncode != 0 and os.strerror(errno.ENOSPC) in done.stderr and "Traceback" not in done.stderr
    assert sorted(path.name for path in small_disk.iterdir()) == ["ballast"]
    ballast.unlink()
    assert webarc(*words, str(tmp_path / "out")).returncode == 0


def test_a_reader_that_ends_early_ends_the_command(tmp_path: Path) -> None:
    archive = archives.make_archive(tmp_path)
    archives.publish_many(archive, ((f"{number:05}.html", b"%d" % number) for number in range(20_000)))
    recover(archive)
    command = shlex.join([*COMMAND, "dataset", "pages", "-", "--archive", str(archive.root)])
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{command} | head -3"], capture_output=True, text=True, check=False
    )
    assert len(done.stdout.splitlines()) == 3 and "Traceback" not in done.stderr and "unexpected" not in done.stderr


def test_standard_output_has_the_table_alone(tmp_path: Path) -> None:
    archive = small(tmp_path)
    done = webarc_bytes("dataset", "pages", "-", "--format", "jsonl", "--archive", archive.root)
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 5
    assert b"5 rows" in done.stderr
