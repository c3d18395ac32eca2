"""Lists of records from catalogue.db: chosen, counted and sorted without reading the records."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from agent.operations import registers
from webarcfs.archive.catalogue.catalogue import Catalogue, CatalogueDatabase, RecordSelection, opened
from webarcfs.archive.catalogue.record import CrawlPart, Occasion, Record, RecordState, Value
from webarcfs.archive.catalogue.workflow import with_status
from webarcfs.archive.config.directory import Archive, sql
from webarcfs.archive.model.metadata import CommitTag, compact_time, parse_time

pytestmark = pytest.mark.store
FIRST = parse_time("2024-12-30T03:00:00")


def record(at: int, publication: str, state: RecordState, **more: object) -> Record:
    when = FIRST + timedelta(days=at)
    values = {4: Value("Internet"), 12: Value("www.example.org"), 22: Value(str(1000 + at)), 23: Value(str(10 + at))}
    crawl = Record(
        id=f"{compact_time(when)}-{publication}", number=0, publication=publication, state=state, complete=at % 2 == 0,
        title=Value(f"Bundestag {at} \u4f8b"), values=values,
        parts=() if state is RecordState.EMPTY else (CrawlPart(CommitTag(when, "www.example.org"), at % 2 == 0),),
        **more,  # type: ignore[arg-type]
    )  # fmt: skip
    return crawl.with_event("captured", "webarcfs", "", RecordState.COUNTED if state is RecordState.COUNTED else None)


def test_lists_choose_sort_and_count(archive: Archive) -> None:
    catalogue = Catalogue(archive)
    catalogue.save(
        [
            record(0, "a", RecordState.RELEASED), record(1, "b", RecordState.COUNTED),
            record(2, "a", RecordState.COUNTED),
            record(3, "a", RecordState.EMPTY), record(4, "a", RecordState.REJECTED, occasion=Occasion.OCCASION),
        ],
        "test",
        "some",
    )  # fmt: skip
    with opened(archive, catalogue) as tables:
        rows = tables.listed(RecordSelection())
        assert [row.number for row in rows] == [5, 4, 3, 2, 1]
        assert [row.number for row in tables.listed(RecordSelection(), oldest=True, limit=2, offset=1)] == [2, 3]
        waiting = RecordSelection(waits=True)
        assert tables.count_of(waiting) == 2
        assert tables.numbers(waiting, 10) == [3, 2]
        assert tables.numbers(RecordSelection(waits=True, complete=True, passed=True), 10) == [3]
        assert [row.number for row in tables.listed(RecordSelection(publication="a", state="released"))] == [1]
        assert [row.number for row in tables.listed(RecordSelection(words="BUNDESTAG \u4f8b 0103T"))] == [5]
        assert [row.number for row in tables.listed(RecordSelection(year="2025"))] == [5, 4, 3]
        assert tables.count_of(RecordSelection(year="2024")) == 2
        assert tables.count_of(RecordSelection(state="counted")) == 2
        assert tables.newest(["none", "a"]) == {"a": (4, int(rows[0].date.timestamp()))}
        third = rows[2]
        assert (third.before, third.documents, third.documents_before, third.bytes_before) == (
            rows[4].id,
            12,
            10,
            1000,
        )
        assert third.domain == "www.example.org" and third.complete and third.date == FIRST + timedelta(days=2)
        assert tables.row(third.id) == third
        assert tables.row("none") is None
        assert rows[0].is_occasion and not rows[1].has_parts


def test_the_registers_count_the_newest_crawl_of_each_publication(archive: Archive) -> None:
    """Records that were not counted by extension are skipped."""
    records = [record(at, "ab"[at % 2], RecordState.COUNTED) for at in range(20)]
    counted = [
        replace(crawl, values={**crawl.values, 25: Value(f"html {at}, pdf 1")}) if at < 17 else crawl
        for at, crawl in enumerate(records)
    ]
    Catalogue(archive).save(counted, "test", "some")
    with opened(archive) as tables:
        assert tables.newest_by_extension() == [counted[16].id, counted[15].id]
    assert registers.newest_counts(archive) == {"html": 31, "pdf": 2}


@pytest.mark.parametrize("year", ["", "0000", "9999", "20x5", "99999", "\u0662\u0660\u0662\u0664"])
def test_a_year_that_is_none_chooses_all_or_nothing(archive: Archive, year: str) -> None:
    Catalogue(archive).save([record(0, "a", RecordState.RELEASED)], "test", "one")
    with opened(archive) as tables:
        assert tables.count_of(RecordSelection(year=year)) in (0, 1)


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("list_shown", "record_shown"), ("list_shown_oldest", "record_shown"), ("group_shown", "record_grouped"),
        ("newest_shown", "record_shown_of_publication"), ("years_shown", "record_shown_of_publication"),
        ("shown_of_publication", "record_shown_of_publication"), ("shown_before", "record_shown_of_publication"),
        ("shown_after", "record_shown_of_publication"), ("list_released", "record_released"),
        ("count_open", "record_released"), ("newest_by_extension", "record_by_extension"),
        ("group_found", "record_grouped"), ("find_head", "sqlite_autoindex_record_1"),
        ("list_collected", "record_shown"), ("find_places", "sqlite_autoindex_record_1"), ("last_gone", "record_gone"),
        ("parts_of_records", "part_of_record"), ("heads_of_records", "sqlite_autoindex_record_1"),
    ],
)  # fmt: skip
def test_lists_of_readers_are_cut_from_an_index(archive: Archive, statement: str, index: str) -> None:
    """A list is in the order of an index: no statement sorts all records, or scans the records themselves."""
    Catalogue(archive).save([record(0, "a", RecordState.RELEASED)], "test", "one")
    with opened(archive):
        pass
    steps = _plan(archive, statement)
    assert any(f"INDEX {index} " in f"{step} " for step in steps), steps
    assert not [step for step in steps if step.startswith("SCAN") and "INDEX" not in step and "json" not in step
                and "VIRTUAL" not in step], steps  # fmt: skip
    outer = next(step for step in steps if "VIRTUAL" not in step)  # the rows of a json_each are a few names
    assert "rowid=?" in outer or index in outer, steps


def test_the_sites_are_counted_by_one_scan_of_the_parts(archive: Archive) -> None:
    with CatalogueDatabase(archive.catalogue_database, Catalogue(archive)):
        pass
    steps = _plan(archive, "count_sites")
    assert [step for step in steps if step.startswith("SCAN")] == ["SCAN part", "SCAN d"], steps
    assert {"SEARCH p USING PRIMARY KEY (domain=?)", "SEARCH r USING INDEX sqlite_autoindex_record_1 (id=?)"} < {*steps}


def _plan(archive: Archive, statement: str) -> list[str]:
    """Return the steps of SQLite for a statement."""
    text = sql(f"catalogue/{statement}")
    lists = dict.fromkeys(("publications", "records", "numbers"), "[]")
    values = dict.fromkeys(re.findall(r":(\w+)", re.sub("--.*", "", text)), 1) | lists
    with closing(sqlite3.connect(archive.catalogue_database)) as connection:
        return [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]


@pytest.mark.parametrize(
    ("record_id", "complete", "parts", "known"),
    [
        ("20200101T000000-a", True, 1, True), ("20200101T000000-a", False, 1, False),
        ("20200101T000000-a+1a2b", True, 1, True), ("20200101T000000-a+1a2b", False, 1, None),
        ("20200101T000000-a+1a2b.0003", False, 1, None), ("20200101T000000-a+1a2b", False, 0, False),
        ("20200101T000000-a+occasion", False, 1, False), ("20200101T000000-a+patch", False, 1, False),
    ],
)  # fmt: skip
def test_an_import_is_incomplete_nowhere_unless_it_says_so(
    archive: Archive, record_id: str, complete: bool, parts: int, known: bool | None
) -> None:
    """What record.xml says of it stays; lists neither flag nor find it."""
    crawl = replace(record(0, "a", RecordState.RELEASED), id=record_id, complete=complete)
    crawl = crawl if parts else replace(crawl, parts=())
    Catalogue(archive).save([crawl], "test", "one")
    with opened(archive) as tables:
        (row,) = tables.listed(RecordSelection())
        assert (row.complete, tables.count_of(RecordSelection(complete=False))) == (known, int(known is False))
        assert tables.count_of(RecordSelection(complete=True)) == int(known is True)
        head = tables.head(record_id)
        assert (head.complete if head is not None else False) == known
    stored = Catalogue(archive).read(record_id)[0]
    assert stored.complete == complete and stored.as_fields()["complete"] == ("yes" if complete else "no")
    assert (
        with_status(stored, "x", FIRST)
        .text(21)
        .startswith({True: "complete", False: "incomplete", None: "imported"}[known] if parts else "released")
    )
