"""catalogue.db among several processes, threads and users: in step with git, rebuilt where it is damaged, bounded."""

from __future__ import annotations

import errno
import gc
import os
import resource
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

from tests.support.archives import DOMAIN
from webarcfs.archive.catalogue import catalogue as catalogue_module
from webarcfs.archive.catalogue.catalogue import (
    MOST_WORDS,
    Catalogue,
    CatalogueDatabase,
    CatalogueState,
    RecordSelection,
    ShownSelection,
    opened,
)
from webarcfs.archive.catalogue.record import CrawlPart, Record, RecordState, Value, read_record
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import sqlite_file
from webarcfs.archive.model.errors import DatabaseDamaged, DatabaseOutdated, Interrupted, TookTooLong, WebarcError
from webarcfs.archive.model.metadata import CommitTag, compact_time, parse_time
from webarcfs.archive.system import clocks
from webarcfs.archive.system.clocks import Deadline
from webarcfs.web import limits

pytestmark = pytest.mark.store
_BEGIN = parse_time("2020-01-01T03:00:00")
#: Seconds that one side of a race waits for the other, which may be kept waiting by it.
_MEANWHILE = 1.0


def _record(number: int) -> Record:
    time = _BEGIN + timedelta(hours=number)
    return Record(
        id=f"{compact_time(time)}-p", number=0, publication="p", state=RecordState.RELEASED,
        title=Value(f"Crawl {number}"), parts=(CrawlPart(CommitTag(time, DOMAIN), True),),
    )  # fmt: skip


# -- two that bring it in step -----------------------------------------------------------------------------------------


def test_who_comes_late_writes_nothing_older_over_what_another_wrote(archive: Archive) -> None:
    """A thread reads a release, and a withdrawal comes before it writes."""
    catalogue = Catalogue(archive)
    (record, _) = catalogue.save([_record(1), _record(2)], "anna", "new")
    reads, is_withdrawn = threading.Event(), threading.Event()

    class Slow(Catalogue):
        def changed(self, since: str | None) -> Iterator[tuple[str, Record | None]]:
            for change in super().changed(since):
                reads.set()
                is_withdrawn.wait(_MEANWHILE)
                yield change

    def follow() -> None:
        with opened(archive, Slow(archive)):
            pass

    with opened(archive):
        pass
    (record,) = catalogue.save([record.with_event("edited", "anna", "", None)], "anna", "edited")
    late = threading.Thread(target=follow)
    late.start()
    try:
        assert reads.wait(60)
        catalogue.save([record.with_event("withdrawn", "anna", "x", RecordState.REJECTED)], "anna", "withdrawn")
        with opened(archive) as tables:
            is_withdrawn.set()
            late.join()
            row = tables.row(record.id)
    finally:
        is_withdrawn.set()
        late.join()
    assert row is not None and row.state is RecordState.REJECTED


def test_who_waits_for_another_that_brings_it_in_step_reads_nothing_again(archive: Archive) -> None:
    Catalogue(archive).save([_record(number) for number in range(5)], "anna", "new")
    read: list[str] = []
    has_asked_twice = threading.Event()

    class First(Catalogue):
        def changed(self, since: str | None) -> Iterator[tuple[str, Record | None]]:
            other.start()
            has_asked_twice.wait(_MEANWHILE)
            for change in super().changed(since):
                read.append(change[0])
                yield change

    class Second(Catalogue):
        questions = 0

        def state(self) -> CatalogueState | None:
            state = super().state()
            self.questions += 1
            if self.questions > 1:
                has_asked_twice.set()
            return state

        def changed(self, since: str | None) -> Iterator[tuple[str, Record | None]]:
            for change in super().changed(since):
                read.append(change[0])
                yield change

    def follow() -> None:
        with opened(archive, Second(archive)):
            pass

    other = threading.Thread(target=follow)
    with opened(archive, First(archive)):
        pass
    other.join()
    assert len(read) == 5


# -- a file that is damaged, outdated or not there ---------------------------------------------------------------------


def test_two_may_make_it_at_once(archive: Archive) -> None:
    Catalogue(archive).save([_record(number) for number in range(3)], "anna", "new")
    both = threading.Barrier(2, timeout=60)

    class Maker(CatalogueDatabase):
        def _one(self, statement: str) -> Any:
            value = super()._one(statement)
            if statement == "count_tables":
                both.wait()
            return value

    def make() -> int:
        with Maker(archive.catalogue_database, Catalogue(archive)) as tables:
            return tables.count_of(RecordSelection())

    with ThreadPoolExecutor(2) as threads:
        assert [future.result() for future in [threads.submit(make), threads.submit(make)]] == [3, 3]


def test_who_comes_late_does_not_remove_what_another_rebuilt(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes open an outdated file. The slower one removes it when the faster one has rebuilt it."""
    catalogue = Catalogue(archive)
    catalogue.save([_record(number) for number in range(3)], "anna", "new")
    with opened(archive):
        pass
    with closing(sqlite3.connect(archive.catalogue_database)) as file:
        file.execute("PRAGMA user_version = 1")
    rebuilt: list[int] = []
    ready = CatalogueDatabase._ready

    def slow(self: CatalogueDatabase, schema: str) -> None:
        try:
            ready(self, schema)
        except DatabaseOutdated:
            if not rebuilt:
                rebuilt.append(0)
                with opened(archive):
                    rebuilt[0] = archive.catalogue_database.stat().st_ino
            raise

    monkeypatch.setattr(CatalogueDatabase, "_ready", slow)
    with opened(archive) as tables:
        assert tables.count_of(RecordSelection()) == 3
    assert archive.catalogue_database.stat().st_ino == rebuilt[0]


@pytest.mark.parametrize("dropped", ["TABLE part", "TABLE record", "INDEX record_shown", "TABLE state"])
def test_a_file_that_lacks_a_table_is_rebuilt(archive: Archive, dropped: str) -> None:
    Catalogue(archive).save([_record(number) for number in range(3)], "anna", "new")
    with opened(archive):
        pass
    with closing(sqlite3.connect(archive.catalogue_database)) as file:
        file.execute(f"DROP {dropped}")
        file.commit()
    with suppress(DatabaseDamaged), opened(archive) as tables:  # a question may meet it, and the next one does not
        tables.count_sites()
        tables.count_of(RecordSelection())
    with opened(archive) as tables:
        assert tables.count_sites() == 1 and tables.count_of(RecordSelection()) == 3


def test_a_process_with_too_many_files_removes_no_sound_file(archive: Archive) -> None:
    catalogue = Catalogue(archive)
    catalogue.save([_record(1)], "anna", "new")
    with opened(archive, catalogue):
        pass
    file = os.open(archive.catalogue_database, os.O_RDONLY)  # so that no other file gets its number
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        with suppress(WebarcError, OSError), opened(archive, catalogue):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        number = os.fstat(file).st_ino
        os.close(file)
    assert archive.catalogue_database.stat().st_ino == number


def _damage(archive: Archive) -> int:
    """Save many records, and spoil the first page of their table and of each of its indexes; return their number."""
    Catalogue(archive).save([_record(number) for number in range(100)], "anna", "new")
    with opened(archive):
        pass
    with closing(sqlite3.connect(archive.catalogue_database)) as tables:
        (size,) = tables.execute("PRAGMA page_size").fetchone()
        pages = tables.execute("SELECT rootpage FROM sqlite_master WHERE tbl_name = 'record'").fetchall()
    with archive.catalogue_database.open("r+b") as file:
        for (page,) in pages:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)
    return 100


def _count(archive: Archive) -> int:
    with opened(archive) as tables:
        return sum(group.count for group in tables.groups())


def _may_not_remove(path: Path) -> None:
    raise PermissionError(errno.EACCES, "not yours", str(path))


def test_a_damaged_file_that_may_not_be_removed_is_not_copied(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_module, "remove", _may_not_remove)
    count = _damage(archive)
    Catalogue(archive).save([_record(1_000)], "anna", "another")
    assert [_count(archive), _count(archive)] == [count + 1] * 2


@pytest.mark.parametrize("is_removable", [True, False])
def test_damage_that_a_list_meets_is_repaired_for_the_next(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, is_removable: bool
) -> None:
    count = _damage(archive)
    spoilt = archive.catalogue_database.read_bytes()
    with monkeypatch.context() as patch:
        if not is_removable:
            patch.setattr(catalogue_module, "remove", _may_not_remove)
        with pytest.raises(DatabaseDamaged):
            _count(archive)
        assert [_count(archive), _count(archive)] == [count] * 2
        assert (archive.catalogue_database.read_bytes() == spoilt) is not is_removable
    archive.catalogue_database.unlink()
    assert _count(archive) == count and archive.catalogue_database.exists()


def test_a_copy_keeps_writers_out_and_waits_for_none(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may not write copies the file. A writer comes when it has read the version, before the pages."""
    Catalogue(archive).save([_record(number) for number in range(3)], "anna", "new")
    with opened(archive):
        pass
    read: list[bytes] = []
    version = sqlite_file.version_of

    def reading(content: bytes) -> Record:
        read.append(content)
        return read_record(content)

    with closing(sqlite3.connect(archive.catalogue_database, timeout=0, isolation_level=None)) as writer:

        def version_of(schema: str) -> int:
            with suppress(sqlite3.OperationalError):
                writer.execute("BEGIN EXCLUSIVE")
            return version(schema)

        with monkeypatch.context() as patch:
            patch.setattr(catalogue_module, "read_record", reading)
            patch.setattr(sqlite_file, "version_of", version_of)
            with CatalogueDatabase(
                Path(":memory:"), Catalogue(archive), copied_from=archive.catalogue_database
            ) as tables:
                assert tables.count_of(RecordSelection()) == 3
    assert not read


def test_damage_of_another_file_removes_no_sound_one(archive: Archive) -> None:
    Catalogue(archive).save([_record(1)], "anna", "new")
    with pytest.raises(DatabaseDamaged), opened(archive):
        number = archive.catalogue_database.stat().st_ino
        raise DatabaseDamaged("webarc.db")
    assert archive.catalogue_database.stat().st_ino == number


def test_a_reader_waits_for_no_long_writer_and_returns_to_the_file(archive: Archive) -> None:
    Catalogue(archive).save([_record(number) for number in range(3)], "anna", "new")
    with opened(archive):
        pass
    with closing(sqlite3.connect(archive.catalogue_database, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with clocks.under(Deadline(limits.SECONDS)), opened(archive) as tables:
            assert tables.count_of(RecordSelection()) == 3
            clocks.check()
        with opened(archive) as again:
            assert again is tables
    kept = ref(tables)
    del tables, again
    with opened(archive):
        gc.collect()
        assert kept() is None


def test_one_thread_at_a_time_reads_the_file(archive: Archive) -> None:
    """Otherwise a writer would wait for a chain of readers. Readers of webarc.db have a turn of their own."""
    Catalogue(archive).save([_record(1)], "anna", "new")

    def read() -> int:
        with opened(archive) as tables:
            return len(tables.parts(DOMAIN))

    with ThreadPoolExecutor(2) as threads:
        with sqlite_file.IN_TURN:
            assert threads.submit(read).result(60) == 1
        with catalogue_module._IN_TURN:
            second = threads.submit(read)
            with pytest.raises(TimeoutError):
                second.result(0.3)
        assert second.result(60) == 1


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_a_question_ends_with_its_deadline_and_the_file_stays(archive: Archive) -> None:
    Catalogue(archive).save([_record(number) for number in range(1_000)], "anna", "new")
    with opened(archive) as tables:
        words = ShownSelection(words="crawl craw cra cr c")
        assert tables.groups(words)
        over, cancelled = Deadline(-1), Deadline(60)
        cancelled.cancel()
        for deadline, error in ((over, TookTooLong), (cancelled, Interrupted)):
            with clocks.under(deadline), pytest.raises(error):
                tables.groups(words)
    file = archive.catalogue_database.stat()
    with clocks.under(over), opened(archive), pytest.raises(TookTooLong):
        clocks.check()
    assert archive.catalogue_database.stat().st_ino == file.st_ino


def test_few_words_choose_and_each_counts_once() -> None:
    words = ["B", "b", *(f"w{number}" for number in range(MOST_WORDS)), "w1"]
    parameters = ShownSelection(words=" ".join(words)).parameters()
    chosen = [parameters[f"word{number}"] for number in range(1, MOST_WORDS + 1)]
    assert chosen == ["b", *(f"w{number}" for number in range(MOST_WORDS - 1))]
