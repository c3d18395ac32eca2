"""The desk with few and with many: processor time and rows of SQL of each page, and what watchers of live pages cost.

Each page with 10,000 snapshots and 300 publications is asked beside the same with 100 and 10: at most twice as much.
100 open live pages are watched while a job's figures change each second; the agent, which writes them anyway, and the
desk are measured.
"""

from __future__ import annotations

import http.client
import socket
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from agent.crawl import job_folder
from agent.crawl.job_folder import JobState, Phase
from tests.support import archives, desks
from tests.support.desks import Client, ServedDesk
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import CrawlPart, Record, RecordState, Value
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.sqlite_file import SqliteFile
from webarcfs.archive.model.metadata import CommitTag, compact_time, parse_time

_SIZES = ((100, 10), (10_000, 300))
_ROUNDS = 9
_PAGES = (
    "/", "/snapshots", "/snapshots?state=counted", "/snapshots?q=example&page=2", "/snapshots?waits=yes&tick=passed",
    "/snapshot/{record}", "/snapshots/edit?ticked=1-5", "/new", "/running", "/publications", "/publications/p3",
    "/publications/+new", "/registers", "/access", "/options", "/password",
)  # fmt: skip
_BEGIN = parse_time("2026-01-01T00:00:00")
_WATCHERS, _SECONDS = 100, 10.0


def desk() -> None:
    """Measure both."""
    found: dict[tuple[int, int], dict[str, tuple[float, int]]] = {}
    for size in _SIZES:
        with tempfile.TemporaryDirectory(prefix="bench-desk-") as folder:
            archive, record = make(Path(folder), *size)
            with desks.served(archive) as served:
                found[size] = dict(pages(served, record))
                if size == _SIZES[0]:
                    watchers(archive, served)
    few, many = (found[size] for size in _SIZES)
    worst = 0.0
    for path in few:
        (ms, rows), (ms_many, rows_many) = few[path], many[path]
        worst = max(worst, ms_many / ms)
        ratio = f"{ms_many:6.1f} ms ({ms_many / ms:.2f}), {rows_many:4} rows"
        print(f"desk {path:40} {ms:6.1f} ms, {rows:4} rows; with many {ratio}")
    print(f"desk: {_SIZES[1][0]} snapshots cost {worst:.2f} times the processor that {_SIZES[0][0]} cost, at most")


def make(folder: Path, records: int, publications: int) -> tuple[Archive, str]:
    """An archive with records and publications of their own files; and a record in the middle."""
    archive = archives.make_archive(folder / "archive")
    (archive.settings).write_text("[index]\nsearch = false\n")
    beside = archive.settings.with_name("publications.d")
    beside.mkdir()
    for number in range(publications):
        (beside / f"p{number}.toml").write_text(
            f'[[publication]]\nname = "p{number}"\nurls = ["http://www{number}.example.org/"]\nrelease = "by-hand"\n'
        )
    made = [_record(number, publications) for number in range(records)]
    catalogue = Catalogue(archive)
    for start in range(0, records, 1_000):
        catalogue.save(made[start : start + 1_000], "bench", "many")
    for each in made:
        (archive.reports / each.id).mkdir()
    desks.with_people(archive)
    return archive, made[records // 2].id


def _record(number: int, publications: int) -> Record:
    name = f"p{number % publications}"
    when = _BEGIN + timedelta(hours=number)
    values = {
        2: "5100", 3: "office", 4: "Internet", 12: f"www.{name}.example.org", 22: str(10**6 + number),
        23: str(1000 + number), 25: "html 900, png 100", 34: "yes",
    }  # fmt: skip
    made = Record(
        id=f"{compact_time(when)}-{name}", number=0, publication=name, state=RecordState.COUNTED, release="by-hand",
        complete=number % 7 > 0, title=Value(f"Internet: {name}"),
        values={key: Value(text) for key, text in values.items()},
        parts=(CrawlPart(CommitTag(when, f"www.{name}.example.org"), True, "", True),),
    )  # fmt: skip
    state = (RecordState.RELEASED, RecordState.COUNTED, RecordState.REJECTED)[number % 3]
    return made.with_event("captured", "webarcfs", "", RecordState.COUNTED).with_event("looked at", "x", "", state)


def pages(served: ServedDesk, record: str) -> Iterator[tuple[str, tuple[float, int]]]:
    """Yield each page with its processor time in ms, and the rows that its statements returned."""
    client = served.client("carl")
    for path in _PAGES:
        place = path.replace("{record}", record)
        assert client.get(place).status == 200, place  # what is kept between requests is there now
        times = []
        for _ in range(_ROUNDS):
            begun = time.process_time()
            client.get(place)
            times.append((time.process_time() - begun) * 1000)
        with _counted() as rows:
            client.get(place)
        yield path, (statistics.median(times), rows[0])


@contextmanager
def _counted() -> Iterator[list[int]]:
    """Count the rows that statements of our databases return."""
    rows = [0]
    plain = SqliteFile._run

    def counted(self: SqliteFile, statement: str, **values: object) -> object:
        found = plain(self, statement, **values).fetchall()
        rows[0] += len(found)
        return _Rows(found)

    SqliteFile._run = counted  # type: ignore[method-assign, assignment]
    try:
        yield rows
    finally:
        SqliteFile._run = plain  # type: ignore[method-assign]


class _Rows:
    """Rows that were read already, as a cursor has them."""

    def __init__(self, rows: list[sqlite3.Row]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[sqlite3.Row]:
        return self._rows

    def fetchone(self) -> sqlite3.Row | None:
        return next(self._rows, None)

    def fetchall(self) -> list[sqlite3.Row]:
        return list(self._rows)


def watchers(archive: Archive, served: ServedDesk) -> None:
    """Watch the figures of a job in 100 pages, with the process that serves them measured; the agent does nothing."""
    client: Client = served.client("carl")
    folder = archive.jobs / "20261010T030000-p1"
    folder.mkdir()
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    own = [_watch(served.port, cookie) for _ in range(_WATCHERS)]
    begun, clock = time.process_time(), time.monotonic()
    number = 0
    while time.monotonic() - clock < _SECONDS:
        number += 1
        job_folder.save_item(
            folder, JobState(job=folder.name, publication="p1", state=Phase.COLLECTING, documents=number), durable=False
        )
        time.sleep(1)
    spent = time.process_time() - begun
    for each in own:
        assert each.sock is not None
        each.sock.setblocking(False)
        assert len(each.sock.recv(1 << 16)) > 100 * (_SECONDS - 3), "each watcher hears of each change"
        each.close()
    share = spent / (time.monotonic() - clock)
    print(f"desk: {_WATCHERS} live pages cost the desk {share:.1%} of a processor, the agent nothing: it writes anyway")


def _watch(port: int, cookie: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.connect()
    assert connection.sock is not None
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    connection.sock.sendall(f"GET /events HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n\r\n".encode())
    return connection
