"""What decisions about readers read of webarc.db: whole in whatever pages, and one thread of a process at a time."""

from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.archives import DOMAIN
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import database
from webarcfs.archive.index.database import CaptureIndex

pytestmark = pytest.mark.store


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Four pages with several versions each."""
    found = archives.make_archive(tmp_path_factory.mktemp("held"))
    for number in range(3):
        archives.publish(found, pages={name: b"%d" % (number // each) for each, name in enumerate("abcd", start=1)})
    recover(found)
    return found


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 1_000])
def test_pages_of_versions_are_all_versions(archive: Archive, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(database.versions_of(archive.database, DOMAIN))
    assert len(whole) > 5
    assert len({(each.path, each.first) for each in whole}) == len(whole)
    monkeypatch.setattr(database, "_ROWS", rows)
    assert list(database.versions_of(archive.database, DOMAIN)) == whole
    assert list(database.versions_of(archive.database, "other.example")) == []


def test_a_reader_between_two_pages_holds_up_no_writer(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_ROWS", 1)
    versions = database.versions_of(archive.database, DOMAIN)
    next(versions)
    writer = sqlite3.connect(archive.database, timeout=0, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")  # fails at once where somebody reads
    writer.execute("ROLLBACK")
    writer.close()
    versions.close()


def test_threads_read_in_turn(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """fcntl(2) locks are the process's: where reads of its threads overlap without end, no writer ever gets in."""
    counting, reading, most = threading.Lock(), 0, 0

    class Counted(sqlite3.Connection):
        def execute(self, *given: object) -> sqlite3.Cursor:
            nonlocal reading, most
            with counting:
                reading += 1
                most = max(most, reading)
            try:
                time.sleep(0.002)
                return super().execute(*given)  # type: ignore[arg-type] # as it was called
            finally:
                with counting:
                    reading -= 1

    def counted(database: Path, *, of_one_thread: bool = True) -> sqlite3.Connection:
        return sqlite3.connect(database, factory=Counted, check_same_thread=of_one_thread)

    monkeypatch.setattr(database, "connected", counted)

    def read(number: int) -> None:
        if number % 3 == 0:
            list(database.versions_of(archive.database, DOMAIN))
        elif number % 3 == 1:
            database.count_versions(archive.database)
        else:
            with CaptureIndex(archive.database) as index:
                index.at(f"/{DOMAIN}/a")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(read, range(24)))
    assert most == 1
