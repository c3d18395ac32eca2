"""A request that was given up ends: its time is over, or its client has gone. Costly ones keep no others waiting."""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.rooms import Page, Served, digits, published, served
from tests.support.waiting import PATIENCE, until
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git import git_command
from webarcfs.archive.index.database import CaptureIndex, CaptureRow, Span
from webarcfs.archive.model.errors import Interrupted, TookTooLong
from webarcfs.archive.model.metadata import CET, CommitTag
from webarcfs.archive.system import clocks
from webarcfs.archive.system.clocks import Deadline, under
from webarcfs.room.server import app
from webarcfs.web import limits
from webarcfs.web.answering import Answering

pytestmark = pytest.mark.store

DOMAIN = "www.example.org"
HOME = f"http://{DOMAIN}/"
TIMES = [datetime(2020, 5, 1, 12, tzinfo=CET) + timedelta(days=each) for each in range(10)]
RECORDS = [f"{each:%Y%m%dT%H%M%S}-p" for each in TIMES]
#: A version of each is in each snapshot. The soak has 100,000.
DOCUMENTS = int(os.environ.get("COSTLY_DOCUMENTS", "5000"))
#: Each may read all captures of the archive.
COSTLY = (
    f"/cdx?url={DOMAIN}/*&filter=original:nothing.*",
    f"/cdx?url={DOMAIN}/*&filter=!mimetype:(t+)%2Be.*&filter=statuscode:3.*",
    f"/cdx?url={DOMAIN}/*&showNumPages=true",
    f"/cdx?url={DOMAIN}/*&sort=closest&closest=2020&limit=10000",
    f"/cdx?url={DOMAIN}/*&collapse=mimetype&collapse=statuscode",
    f"/cdx?url={DOMAIN}/*&output=json&limit=-10000",
    f"/cdx?url={DOMAIN}/*&page=9",
    f"/web/*/{HOME}*",
    f"/urls?prefix={HOME}",
    f"/urls.csv?prefix={HOME}",
    "/crawls.json",
    f"/web/2020*/{HOME}page7",
    f"/timemap/link/{HOME}page7",
    f"/timemap/json/{HOME}page7",
    f"/compare/{RECORDS[0]}..{RECORDS[9]}",
    f"/snapshot/{RECORDS[4]}",
    f"/snapshot/{RECORDS[4]}/links.csv",
    f"/diff/{digits(TIMES[0])}..{digits(TIMES[9])}/{HOME}",
    "/search?q=words",
    "/search.csv?q=words",
    "/curve?q=words",
    "/curve.csv?q=words",
    "/api/v1/query",
    "/api/v1/query?where=title%20LIKE%20'%25a%25b%25c%25d'&order_by=title",
    "/api/v1/links?external=1&ever=1",
    "/api/v1/search?words=words",
    "/api/v1/records?xml=1",
    f"/api/v1/snapshots/{CommitTag(TIMES[9], DOMAIN)}/documents",
    f"/api/v1/snapshots/{CommitTag(TIMES[9], DOMAIN)}.tar",
    "/api/v1/changes",
)
#: A page of 10 kB that keeps difflib busy for hours.
HOSTILE = [b"<p>a b " * 1_600, b"<p>b a " * 1_600]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    made = archives.make_archive(tmp_path_factory.mktemp("large"))
    for number, when in enumerate(TIMES):
        published(made, DOMAIN, {HOME: Page(b"<p>words" + HOSTILE[number % 2])}, when)
    recover(made)
    with closing(sqlite3.connect(made.database)) as connection, connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)"
            "INSERT INTO document (domain, url, path, surt) SELECT domain.id, 'http://' || name || '/page' || i,"
            " '/' || name || '/page' || i, 'org,example,www)/page' || i FROM n, domain",
            (DOCUMENTS,),
        )
        connection.execute(
            "INSERT INTO version SELECT document.id, document.domain, snapshot.seq,"
            " coalesce((SELECT min(seq) FROM snapshot AS later WHERE later.seq > snapshot.seq), 9223372036854775807),"
            " snapshot.seq, 'text/html', 'title', crawlTime, crawlTime, 200,"
            " randomblob(20), randomblob(20), 10, randomblob(20), 0, ''"
            " FROM document, snapshot WHERE document.path LIKE '%/page%'"
        )
    return made


@pytest.fixture
def room(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Served, Answering]]:
    """A room whose answers may take half a second, or more where the machine is slow; and its threads."""
    found: list[Answering] = []

    class Watched(Answering):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type] # as they are
            found.append(self)

    monkeypatch.setattr(app, "Answering", Watched)
    with served(archive) as rooms:
        seconds = []
        for _ in range(4):
            begin = time.perf_counter()
            assert rooms.get("/about").status == 200
            seconds.append(time.perf_counter() - begin)
        monkeypatch.setattr(limits, "SECONDS", max(0.5, 40 * max(seconds[1:])))
        yield rooms, found[0]


@pytest.mark.parametrize("path", COSTLY)
def test_eight_costly_requests_at_once_leave_no_thread_at_work(
    room: tuple[Served, Answering], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served_room, answering = room
    with ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(served_room.get, path) for _ in range(8)]
        until(lambda: answering.at_work > 0 or all(each.done() for each in asked), every=0.001)
        begun = time.perf_counter()
        assert served_room.get("/about").status == 200
        print(f"/about after {time.perf_counter() - begun:.3f} s, beside eight of {path}")
        statuses = [each.result().status for each in asked]
    assert set(statuses) <= {200, 404, 503}
    until(lambda: answering.at_work == 0, every=0.01)

    def is_idle() -> bool:
        begin = time.process_time()
        time.sleep(0.3)
        return time.process_time() - begin < 0.2

    until(is_idle, every=0.01)
    monkeypatch.setattr(limits, "SECONDS", 30.0)
    assert served_room.get("/about").status == 200


def test_what_takes_too_long_says_what_to_do_and_is_counted(
    room: tuple[Served, Answering], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.05)
    for number in (1, 2):
        answer = room[0].get(COSTLY[2])
        assert answer.status == 503
        assert "This takes too long" in answer.text and "ask for less" in answer.text
        assert f"took too long, number {number} of this process, at '/cdx'" in caplog.text
    german = room[0].get(COSTLY[2], {"Accept-Language": "de"})
    assert "Das dauert zu lange" in german.text and "Bitte fragen Sie nach weniger" in german.text


def test_a_client_that_goes_ends_the_work_for_it(
    room: tuple[Served, Answering], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SECONDS", 600.0)
    served_room, answering = room
    path = f"/cdx?url={DOMAIN}/*&filter=original:nothing.*&filter=original:.*{'(a*)*' * 30}b"
    clients = [socket.create_connection(("127.0.0.1", served_room.port)) for _ in range(4)]
    for each in clients:
        each.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    until(lambda: answering.at_work == limits.COSTLY_THREADS, every=0.01)
    for each in clients:
        each.close()
    until(lambda: answering.at_work == 0, every=0.01)


def test_costly_requests_keep_no_others_waiting(
    room: tuple[Served, Answering], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While costly ones have all threads that they may have, and more of them wait, others are answered."""
    monkeypatch.setattr(limits, "SECONDS", 600.0)
    go_on = threading.Event()
    rows = CaptureIndex.below

    def held_back(index: CaptureIndex, span: Span, *, backwards: bool = False) -> Iterator[CaptureRow]:
        assert go_on.wait(PATIENCE)
        return rows(index, span, backwards=backwards)

    monkeypatch.setattr(CaptureIndex, "below", held_back)
    served_room, answering = room
    with ThreadPoolExecutor(8) as clients:
        try:
            asked = [clients.submit(served_room.get, f"/cdx?url={DOMAIN}/*&limit=1") for _ in range(8)]
            until(lambda: answering.at_work == limits.COSTLY_THREADS, every=0.01)
            for _ in range(2 * limits.THREADS):
                assert served_room.get("/about").status == 200
            assert not any(each.done() for each in asked)
        finally:
            go_on.set()
        assert {each.result().status for each in asked} == {200}


def test_a_long_answer_in_pieces_is_cut_when_all_its_work_took_too_long(
    room: tuple[Served, Answering], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "SECONDS", 30.0)
    monkeypatch.setattr(limits, "STREAM_SECONDS", 0.05)
    with pytest.raises(OSError), closing(socket.create_connection(("127.0.0.1", room[0].port))) as client:
        client.sendall(f"GET /cdx?url={DOMAIN}/*&limit=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        received = b""
        while piece := client.recv(65_536):
            received += piece
        assert b"200 OK" in received and not received.endswith(b"0\r\n\r\n")
        raise OSError("cut, as it should be")
    assert "of work; ask for less" in caplog.text


# -- the parts ---------------------------------------------------------------------------------------------------------


def test_a_deadline_is_that_of_its_thread_alone() -> None:
    clocks.check()
    with under(Deadline(-1)):
        with pytest.raises(TookTooLong):
            clocks.check()
        seen: list[bool] = []
        other = threading.Thread(target=lambda: seen.append(clocks.is_over()))
        other.start()
        other.join()
        assert seen == [False]
        with under(None):
            clocks.check()
        assert clocks.is_over()
    assert not clocks.is_over()
    cancelled = Deadline(100)
    cancelled.cancel()
    with under(cancelled), pytest.raises(Interrupted):
        clocks.check()


def test_a_question_to_the_database_ends_with_the_deadline(archive: Archive) -> None:
    with CaptureIndex(archive.database) as index:
        span = Span("org,example,", "org,example-")
        with under(Deadline(-1)), pytest.raises(TookTooLong):
            list(index.below(span))
        connection = index._opened()
        with under(Deadline(0.2)), pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute("SELECT count(*) FROM version AS a, version AS b").fetchone()
        assert len(list(index.below(span))) > DOCUMENTS  # it is asked as before


def test_a_copy_of_a_large_body_ends_with_the_deadline(tmp_path: Path) -> None:
    """A reader of a slow pipe takes the place of a large body on a slow disk."""
    made = archives.make_archive(tmp_path)
    blob = archives.store_of(made, DOMAIN).write_blob(b"x" * (1 << 20))
    reading, writing = os.pipe()
    try:
        begin = time.monotonic()
        with under(Deadline(0.3)), pytest.raises(TookTooLong):
            git_command.copy_blob(blob, made.repository(DOMAIN), writing)
        assert time.monotonic() - begin < 60  # for ever, without the deadline
    finally:
        os.close(reading)
        os.close(writing)
