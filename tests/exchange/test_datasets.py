"""Datasets have exactly the captures that `webarc export` writes as WARC for the same asker, as warcio counts them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from frictionless import Package

from agent.indexing.fulltext import bring_in_step
from tests.support import warcreading, years
from tests.support.readercommand import webarc
from tests.support.warcreading import Read
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.model.metadata import CommitTag, utc
from webarcfs.dataset.narrowing import DatasetUnit

pytestmark = pytest.mark.crawl

_ALL = ("--role", "any", "--errors", "--redirects")
_CAPTURES = ("response", "revisit", "resource")
#: The asker → the options of both commands.
ASKERS = {"staff": (), "public": ("--as-reader",)}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = years.make_years(tmp_path_factory.mktemp("years"))
    bring_in_step(made)
    years.withhold_half(made)
    return made


def dataset(archive: Archive, kind: str, out: Path, *words: str) -> Path:
    done = webarc("dataset", kind, "--archive", str(archive.root), *words, str(out))
    assert done.returncode == 0, done.stderr
    return out


def rows(archive: Archive, kind: str, out: Path, *words: str) -> list[dict[str, str]]:
    folder = dataset(archive, kind, out, *words)
    name = "host-links" if kind == "hosts" else kind
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def records_of(archive: Archive, out: Path, *words: str) -> list[Read]:
    done = webarc("export", "--archive", str(archive.root), *words, str(out))
    assert done.returncode == 0, done.stderr
    return [record for path in sorted(out.iterdir()) for record in warcreading.read(path)]


# -- an independent count ----------------------------------------------------------------------------------------------


def original_tags(records: list[Read]) -> dict[str, str]:
    """Record id of a response → the snapshot whose crawl stored it, as its data.xml has it."""
    return {
        record.fields["WARC-Concurrent-To"]: str(data_xml.metadata(record.body).commit_tag)
        for record in records
        if record.fields.get("Webarcfs-File") == "data.xml" and "WARC-Concurrent-To" in record.fields
    }


def captures_of(records: list[Read]) -> Counter[tuple[str, str]]:
    """URL and time of each capture of some WARC files.

    A record that the exported snapshots do not date, since a hidden crawl made it, has the time at which the first of
    them met it, or that of the snapshot. What returns in a later snapshot is the same capture.
    """
    exported = {record.uri.removeprefix("urn:webarcfs:snapshot:") for record in records if ":snapshot:" in record.uri}
    stored = original_tags(records)
    again = {
        (record.tag, record.path): record.fields["WARC-Date"]
        for record in records
        if record.kind == "revisit" and record.fields.get("Webarcfs-Again") and record.uri.startswith("http")
    }
    captures: set[tuple[str, str]] = set()
    hidden: set[tuple[str, str]] = set()
    for record in records:
        if record.kind not in _CAPTURES or not record.uri.startswith("http"):
            continue
        when = record.fields["WARC-Date"]
        tag = stored.get(record.fields["WARC-Record-ID"])
        if record.kind != "revisit" and tag is not None and tag not in exported:
            if (record.uri, tag) in hidden:
                continue
            hidden.add((record.uri, tag))
            crawled = f"{utc(CommitTag.parse(record.tag).crawl_time):%Y-%m-%dT%H:%M:%SZ}"
            when = again.get((record.tag, record.path), crawled)
        captures.add((record.uri, "".join(filter(str.isdigit, when))))
    return Counter(captures)


def states_of(records: list[Read]) -> Counter[tuple[str, str]]:
    """Snapshot and URL of each document and redirect in each snapshot of some WARC files."""
    return Counter(
        (record.tag, record.fields.get("Webarcfs-URL") or record.uri)
        for record in records
        if "Webarcfs-Again" not in record.fields
        and ("Webarcfs-Carried" in record.fields or (record.kind in _CAPTURES and record.uri.startswith("http")))
    )


@pytest.mark.parametrize("asker", ASKERS)
def test_captures_are_those_of_the_exported_warcs(archive: Archive, tmp_path: Path, asker: str) -> None:
    records = records_of(archive, tmp_path / "warcs", *ASKERS[asker])
    table = rows(archive, "pages", tmp_path / "out", "--unit", "capture", *_ALL, *ASKERS[asker])
    expected = captures_of(records)
    assert Counter((row["url"], row["crawl_date"]) for row in table) == expected
    hosts = Counter(row["domain"] for row in table)
    assert len(hosts) == len(years.HOSTS) and {row["crawl_date"][:4] for row in table} == set(map(str, years.YEARS))
    assert {row["revisit"] for row in table} == {"true", "false"}
    # Versions share out the captures, and hosts.csv counts both alike.
    versions = rows(archive, "pages", tmp_path / "versions", *_ALL, *ASKERS[asker])
    assert sum(int(row["captures"]) for row in versions) == len(table) > len(versions)
    assert all(row["first"] <= row["last"] for row in versions)
    with (tmp_path / "out" / "hosts.csv").open(encoding="utf-8", newline="") as file:
        assert {row["domain"]: int(row["units"]) for row in csv.DictReader(file)} == hosts


@pytest.mark.parametrize("asker", ASKERS)
def test_states_are_those_of_the_exported_warcs(archive: Archive, tmp_path: Path, asker: str) -> None:
    records = records_of(archive, tmp_path / "warcs", *ASKERS[asker])
    table = rows(archive, "pages", tmp_path / "out", "--unit", "snapshot", *_ALL, *ASKERS[asker])
    assert Counter((row["snapshot"], row["url"]) for row in table) == states_of(records)
    assert {row["carried"] for row in table} == {"true", "false"}


@pytest.mark.parametrize("asker", ASKERS)
def test_years_have_each_version_that_was_captured_in_them_once(archive: Archive, tmp_path: Path, asker: str) -> None:
    captures = rows(archive, "pages", tmp_path / "captures", "--unit", "capture", *_ALL, *ASKERS[asker])
    table = rows(archive, "pages", tmp_path / "years", "--unit", "year", *_ALL, *ASKERS[asker])
    expected = Counter((row["url"], row["sha1"], row["crawl_date"][:4]) for row in captures)
    assert {(row["url"], row["sha1"], row["crawl_date"][:4]): int(row["captures"]) for row in table} == expected
    assert len(expected) == len(table) < len(captures)
    assert all(row["first"][:4] == row["last"][:4] == row["crawl_date"][:4] for row in table)
    assert "in each year in which a crawl captured it" in (tmp_path / "years" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("asker", ASKERS)
def test_counts_by_year_are_those_of_curves(archive: Archive, tmp_path: Path, asker: str) -> None:
    """`types` and `words` count by default what `webarc curve` counts: versions captured in the year."""
    types = rows(archive, "types", tmp_path / "types", *ASKERS[asker])
    words = rows(archive, "words", tmp_path / "words", *ASKERS[asker])
    asked = [row["word"] for row in words if row["word"] in {"nothing", "version", "zebra", "news", "2020"}]
    expressions = {f"text:{word}": word for word in asked}
    command = ("curve", *expressions, "--exact", "--format", "csv", "--archive", str(archive.root), *ASKERS[asker])
    done = webarc(*command)
    assert done.returncode == 0, done.stderr
    points = list(csv.DictReader(done.stdout.splitlines()))
    captured: Counter[str] = Counter()
    for row in types:
        captured[row["year"]] += int(row["pages"])
    assert captured == {point["period"]: int(point["captured"]) for point in points}
    pages = {(row["year"], row["word"]): int(row["pages"]) for row in words}
    for point in points:
        word = expressions[point["words"]]
        assert pages.get((point["period"], word), 0) == int(point["versions"]), point
    # What never changes is in each year. By versions it is in the year of its first capture alone.
    assert {year for year, word in pages if word == "nothing"} == set(map(str, years.YEARS))
    new = rows(archive, "words", tmp_path / "new", "--unit", "version", *ASKERS[asker])
    assert {row["year"] for row in new if row["word"] == "nothing"} == {str(years.YEARS[0])}
    assert "take `--unit year`" in (tmp_path / "new" / "README.md").read_text("utf-8")


def test_the_public_gets_nothing_of_what_is_withheld(archive: Archive, tmp_path: Path) -> None:
    _, year = years.HELD
    held = f"{year}0310"
    whole = rows(archive, "pages", tmp_path / "whole", "--unit", "capture", *_ALL)
    public = rows(archive, "pages", tmp_path / "public", "--unit", "capture", *_ALL, "--as-reader")
    prefix = years.WITHHELD.removesuffix("*")
    assert any(row["crawl_date"].startswith(held) for row in whole)
    assert any(row["url"].startswith(prefix) for row in whole)
    assert not any(row["crawl_date"].startswith(held) or row["url"].startswith(prefix) for row in public)
    others = [row for row in whole if not row["crawl_date"].startswith(held) and not row["url"].startswith(prefix)]
    # What the hidden crawl stored first, and a later one met, is dated by that one: no capture is lost, none is more.
    assert {(row["url"], row["crawl_date"]) for row in public} == {(row["url"], row["crawl_date"]) for row in others}
    hidden = {row["snapshot"] for row in whole} - {row["snapshot"] for row in public}
    assert hidden and all(f"{year}-03-10" in tag for tag in hidden)
    for kind in ("pages", "text", "links", "types", "words", "hosts"):
        for unit in map(str, DatasetUnit):
            out = tmp_path / f"{kind}-{unit}"
            folder = dataset(archive, kind, out, "--unit", unit, "--as-reader", "--format", "csv")
            for path in folder.iterdir():
                content = path.read_text("utf-8")
                assert f"{year}-03-10" not in content and held not in content, path
                assert "news.example.org/private/" not in content, path
    words = rows(archive, "words", tmp_path / "by-host", "--by-host", "--as-reader")
    assert "zebra" in {row["word"] for row in words if row["domain"] == "www.example.org"}
    assert "zebra" not in {row["word"] for row in words if row["domain"] == "news.example.org"}


# -- what programs read ------------------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


@pytest.mark.parametrize("kind", ["pages", "text", "links", "types", "words", "hosts"])
def test_pandas_duckdb_and_frictionless_read_the_same_rows(archive: Archive, tmp_path: Path, kind: str) -> None:
    folders = {
        form: dataset(archive, kind, tmp_path / form, "--format", form, "--unit", "version")
        for form in ("csv", "jsonl", "parquet")
    }
    name = "host-links" if kind == "hosts" else kind
    texts = {"crawl_date": str, "title": str, "content": str, "anchor": str, "word": str, "extension": str}
    frames = {
        "csv": pd.read_csv(folders["csv"] / f"{name}.csv", keep_default_na=False, dtype=texts),
        "jsonl": pd.read_json(folders["jsonl"] / f"{name}.jsonl", lines=True, dtype=False),
        "parquet": pd.read_parquet(folders["parquet"] / f"{name}.parquet"),
    }
    with (folders["csv"] / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        expected = list(csv.reader(file))
    assert len(expected) > 1
    for form, frame in frames.items():
        assert list(frame.columns) == expected[0], form
        for column in frame.select_dtypes(include=["datetimetz"]).columns:
            frame[column] = frame[column].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
        assert [[str(value) for value in row] for row in frame.itertuples(index=False)] == expected[1:], form
    for form, reads in (("csv", "read_csv('{}', all_varchar = true)"), ("parquet", "read_parquet('{}')")):
        path = folders[form] / f"{name}.{form}"
        [(number,)] = duckdb.sql(f"SELECT count(*) FROM {reads.format(path)}").fetchall()
        assert number == len(expected) - 1
        if form == "csv" and "title" in expected[0]:
            read = duckdb.sql(f"SELECT coalesce(title, '') FROM {reads.format(path)}").fetchall()
            at = expected[0].index("title")
            assert [row[0] for row in read] == [row[at] for row in expected[1:]]
    report = Package(folders["csv"] / "datapackage.json").validate()
    assert report.valid, report.flatten(["message"])
    package = json.loads((folders["parquet"] / "datapackage.json").read_text("utf-8"))
    assert [field["name"] for field in package["resources"][0]["schema"]["fields"]] == expected[0]
    assert package["resources"][0]["rows"] == len(expected) - 1
    readme = (folders["csv"] / "README.md").read_text("utf-8")
    assert all(f"| `{column}` |" in readme for column in expected[0])


def test_what_is_left_out_is_told(archive: Archive, tmp_path: Path) -> None:
    done = webarc("dataset", "pages", "--archive", str(archive.root), "--json", str(tmp_path / "out"))
    told = json.loads(done.stdout)
    whole = json.loads(
        webarc("dataset", "pages", "--archive", str(archive.root), "--json", *_ALL, str(tmp_path / "all")).stdout
    )
    assert told["rows"] < whole["rows"] and whole["left_out"] == {}
    assert any("error pages" in reason for reason in told["left_out"])
    assert any("redirects" in reason for reason in told["left_out"])
    assert told["incomplete_snapshots"] == sum(1 for _ in _incomplete(tmp_path / "out"))


def _incomplete(folder: Path) -> Iterator[int]:
    with (folder / "hosts.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            assert int(row["snapshots"]) == int(row["complete"]) + int(row["incomplete"])
            yield from range(int(row["incomplete"]))
