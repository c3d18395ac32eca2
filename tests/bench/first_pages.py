"""The first page that a process of the reading room shows: with 10,001 crawls in the catalogue, beside ten.

Each page is asked of a room that has just begun. Its processor seconds have what the process imports and compiles for
its first page, so the figure is what 10,001 crawls add to that. The second request is measured, too.
"""

from __future__ import annotations

import http.client
import tempfile
from pathlib import Path

from tests.bench import desk, room_processes
from tests.bench.room_processes import Server
from webarcfs.archive.catalogue.catalogue import opened
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import Database

_FEW, _MANY, _PUBLICATIONS = 10, 10_001, 5
_PAGES = (
    "/",
    "/?all=1",
    "/?q=example",
    "/publication/p1",
    "/collections",
    "/collection/c",
    "/search",
    "/about",
    "/status.json",
    "/news.atom",
)
#: What 10,001 crawls may add to a first page, in seconds of the processor.
_AIM = 0.3


def first_pages(rounds: int) -> None:
    """Measure each page of both archives, in turn."""
    with tempfile.TemporaryDirectory(prefix="bench-first-") as folder:
        few, many = (_make(Path(folder), count) for count in (_FEW, _MANY))
        print(f"\nthe first page of a process, in processor ms: {_FEW} crawls, {_MANY:,}   aim: {1000 * _AIM:.0f} more")
        print("                        first         ratio   second        ratio")
        worst = 0.0
        for path in _PAGES:
            pairs = [(_asked(few, path), _asked(many, path)) for _ in range(rounds)]
            (first, second), (first_many, second_many) = (
                [min(times) for times in zip(*column, strict=True)] for column in zip(*pairs, strict=True)
            )
            worst = max(worst, first_many - first)
            print(
                f"  {path:18} {1000 * first:6.0f} {1000 * first_many:6.0f} {first_many / first:9.2f}"
                f" {1000 * second:6.0f} {1000 * second_many:6.0f}   {second_many / max(second, 0.01):6.2f}",
                flush=True,
            )
        print(f"first page: {_MANY:,} crawls add {1000 * worst:.0f} ms at most")


def _make(folder: Path, crawls: int) -> Archive:
    beside = folder / str(crawls)
    beside.mkdir()
    archive, _ = desk.make(beside, crawls, _PUBLICATIONS)
    archive.collections.mkdir()
    (archive.collections / "c.toml").write_text('title = "C"\npublications = ["p1", "p2"]\n')
    with opened(archive), Database(archive.database):
        pass  # as the agent leaves them
    return archive


def _asked(archive: Archive, path: str) -> tuple[float, float]:
    """Return what the first and the second request of a fresh process cost it, in processor seconds."""
    with room_processes.room(archive) as server:
        return _cost(server, path), _cost(server, path)


def _cost(server: Server, path: str) -> float:
    before = server.processor
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 200, (path, answer.status)
    return server.processor - before
