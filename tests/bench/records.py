"""The cost of records: a list of 50 among 100 and among 10,000, one more record, and the tables made anew."""

from __future__ import annotations

import statistics
import time
from datetime import datetime, timedelta

from tests.bench.crawl import agent, own_archive
from tests.bench.measure import cost
from webarcfs.archive.catalogue.catalogue import Catalogue, opened
from webarcfs.archive.catalogue.record import CrawlPart, Record, RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CET, CommitTag, compact_time, format_time

SIZES = (100, 10_000)
_ROUNDS = 5
_FIRST = datetime(2000, 1, 1, tzinfo=CET)


def records() -> None:
    """Measure each size, and print the ratio of the larger to the smaller."""
    print("\nrecords   aim: a list of 50 among 10,000 for twice the processor time among 100 at most")
    taken: dict[int, float] = {}
    for size in SIZES:
        with own_archive() as archive:
            for start in range(0, size, 1000):
                Catalogue(archive).save(
                    [_record(number) for number in range(start, min(start + 1000, size))], "bench", "many"
                )
            command = agent("record", "list", "--archive", str(archive.root))
            done = [cost(command) for _ in range(_ROUNDS)]
            taken[size] = statistics.median(each.processor for each in done)
            one, tables = _one_more(archive, size), _tables(archive)
        print(
            f"  {size:6,}: list {taken[size]:.2f} s of the processor; one more {one * 1000:.1f} ms;"
            f" catalogue.db anew {tables:.2f} s",
            flush=True,
        )
    print(f"  list among {SIZES[1]:,} / among {SIZES[0]}: {taken[SIZES[1]] / taken[SIZES[0]]:.2f}")


def _record(number: int) -> Record:
    time = _FIRST + timedelta(hours=number)
    name = f"{compact_time(time)}-p{number % 10}"
    part = CrawlPart(CommitTag(time, "www.example.org"), True)
    record = Record(id=name, number=0, publication=f"p{number % 10}", state=RecordState.RELEASED, parts=(part,))
    return record.with_values({1: name, 7: format_time(time), 22: "10", 23: "1"}, "bench", time)


def _one_more(archive: Archive, size: int) -> float:
    begun = time.process_time()
    for number in range(_ROUNDS):
        Catalogue(archive).save([_record(size + number)], "bench", "one more")
    return (time.process_time() - begun) / _ROUNDS


def _tables(archive: Archive) -> float:
    archive.catalogue_database.unlink(missing_ok=True)
    begun = time.process_time()
    with opened(archive):
        return time.process_time() - begun
