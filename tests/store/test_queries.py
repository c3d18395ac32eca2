"""Conditions of a mount (query_answers.py): bounds of time, rows and memory, whatever binding asks."""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from agent.indexing.recovery import catch_up
from tests.support import archives
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index import query
from webarcfs.archive.model.errors import Busy, NotFound, Stale, TookTooLong, TooMany
from webarcfs.vfs import query_answers
from webarcfs.vfs.query_answers import Queries

pytestmark = pytest.mark.store
ENDLESS = f"(SELECT count(*) FROM {', '.join(f'metadata {name}' for name in 'abcdefghijkl')}) > 0"


@pytest.fixture
def archive(tmp_path: object) -> Archive:
    archive = archives.make_archive(tmp_path)  # type: ignore[arg-type]
    archives.publish(archive, pages={f"p{number}.html": b"page" for number in range(20)})
    catch_up(archive)
    return archive


def settle(archive: Archive, seconds: float) -> None:
    archive.settings.write_text(f"[mount]\nquery_seconds = {seconds}\n", "utf-8")


def test_an_answer_is_of_one_state_and_found_again_in_it(archive: Archive) -> None:
    asked = Queries(archive)
    answer, stamp = asked.find("1 ORDER BY path LIMIT 2")
    assert not answer.is_there and asked.is_known("1 ORDER BY path LIMIT 2") and not asked.is_known("2")
    assert [hit.partition("/")[2] for hit in answer.hits()] == ["p0.html", "p1.html"]
    assert answer.is_there and asked.find("1 ORDER BY path LIMIT 2") == (answer, stamp)
    archives.publish(archive, pages={"a.html": b"new"})
    catch_up(archive)
    assert not asked.is_known("1 ORDER BY path LIMIT 2")
    newer, later = asked.find("1 ORDER BY path LIMIT 2")
    assert newer.hits()[0].endswith("/a.html") and later != stamp
    assert not answer.hits()[0].endswith("/a.html")


def test_every_change_of_the_database_is_another_state(archive: Archive) -> None:
    """Also where size and time are the same; and the file that is looked at is never closed (see query_answers.py)."""
    asked = Queries(archive)
    seen = {asked.stamp()}
    with sqlite3.connect(archive.database) as database:
        for number in range(10):
            database.execute("UPDATE snapshot SET publication = ?", (str(number),))
            database.commit()
            seen.add(asked.stamp())
    assert len({stamp.counter for stamp in seen}) == 11
    copy = archive.database.with_name("copy.db")
    shutil.copy(archive.database, copy)
    copy.replace(archive.database)
    seen.add(asked.stamp())
    assert len(seen) == 12
    archive.database.unlink()
    with pytest.raises(NotFound, match="recover"):
        asked.stamp()
    with pytest.raises(NotFound, match="recover"):
        asked.find("1")


def test_time_and_rows_are_bounded(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(archive, 0.2)
    asked = Queries(archive)
    with pytest.raises(TookTooLong, match="narrow"):
        asked.find(ENDLESS)[0].hits()
    monkeypatch.setattr(query_answers, "ROWS", 19)
    with pytest.raises(TooMany, match="LIMIT 19"):
        asked.find("1")[0].hits()
    assert len(asked.find("1 LIMIT 19")[0].hits()) == 19
    with pytest.raises(TooMany):
        asked.find("1 LIMIT 20")[0].hits()


def test_settings_that_cannot_be_read_leave_the_usual_time(archive: Archive) -> None:
    assert Queries(archive).seconds == 10.0
    settle(archive, 0.5)
    assert Queries(archive).seconds == 0.5
    archive.settings.write_text("[mount", "utf-8")
    assert Queries(archive).seconds == 10.0


def test_so_many_are_answered_at_a_time_and_nobody_waits_for_long(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_answers, "AT_ONCE", 1)
    settle(archive, 0.3)
    asked = Queries(archive)
    begun, go_on = threading.Event(), threading.Event()

    def endless(*_: object) -> list[tuple[str, str]]:
        begun.set()
        assert go_on.wait(60)
        return []

    with monkeypatch.context() as patched, ThreadPoolExecutor() as threads:
        patched.setattr(query, "places", endless)
        slow = threads.submit(asked.find("0")[0].hits)
        assert begun.wait(60)
        with pytest.raises(Busy, match="try again"):
            asked.find("1")[0].hits()
        go_on.set()
        assert slow.result(60) == ()
    assert len(asked.find("1")[0].hits()) == 20


def test_who_asks_the_same_at_once_is_given_one_answer(archive: Archive) -> None:
    asked = Queries(archive)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: asked.find("1")[0].hits(), range(40)))
    assert len({id(hits) for hits in answers}) == 1


def test_what_was_asked_for_long_ago_gives_way(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_answers, "KEPT_HITS", 50)
    asked = Queries(archive)
    first, second = asked.find("1")[0], asked.find("2")[0]
    first.hits(), second.hits(), asked.find("1")
    third = asked.find("3")[0]
    assert len(third.hits()) == 20
    assert first.size == 20 and second.size == 0
    with pytest.raises(Stale):
        second.hits()
    assert len(asked.find("2")[0].hits()) == 20
    monkeypatch.setattr(query_answers, "KEPT", 3)
    for number in range(10):
        asked.find(f"{number} = 0")
    assert [asked.is_known(f"{number} = 0") for number in range(10)] == [False] * 7 + [True] * 3


def test_a_database_that_is_being_written_to_is_waited_for(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crawl that is indexed holds it alone for moments; one that takes longer than SQLite waits is Busy."""
    asked = Queries(archive)
    connect = sqlite3.connect
    monkeypatch.setattr(query.sqlite3, "connect", lambda *words, **more: connect(*words, **more, timeout=0.1))
    writer = connect(archive.database, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(Busy, match="being written"):
            asked.find("1")
    finally:
        writer.execute("ROLLBACK")
        writer.close()
    assert len(asked.find("1")[0].hits()) == 20


def test_who_waits_for_an_answer_shares_its_failure() -> None:
    """S-query-4: ETIMEDOUT comes after `query_seconds`, however many wait for one condition, and not one by one."""
    looks, waiting = [], threading.Barrier(9)

    def look() -> query_answers.Hits:
        looks.append(1)
        if len(looks) == 1:
            begun.set()
            waiting.wait(60)
            time.sleep(0.5)  # until they wait indeed
        raise TookTooLong("too long")

    answer, begun = query_answers.QueryAnswer(look), threading.Event()

    def ask(first: bool = False) -> None:
        if not first:
            waiting.wait(60)
        with pytest.raises(TookTooLong):
            answer.hits()

    with ThreadPoolExecutor(9) as pool:
        asked = [pool.submit(ask, True)]
        assert begun.wait(60)
        asked += [pool.submit(ask) for _ in range(8)]
        for each in asked:
            each.result(60)
    assert len(looks) < 9
    before = len(looks)
    ask(first=True)
    assert len(looks) == before + 1, "who asks anew has it looked for anew"
