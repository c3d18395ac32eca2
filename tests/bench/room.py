"""The reading room beside pywb, in one run: real pages of about 50 kB, which pywb reads from a compressed WARC.

Both answer with one process on this machine, which the clients share with them, so the processor's seconds say more
than the clock. A page that was never shown is one that its process has not seen: each round starts both anew, and warms
them with other pages. Then what grows: versions of a URL, snapshots, URLs, requests; and what readers cost the crawler.
"""

from __future__ import annotations

import http.client
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.indexing import fulltext
from agent.indexing.recovery import catch_up_domain
from tests.bench import load, room_archives, room_processes
from tests.bench.room_archives import Pages
from tests.bench.room_processes import Server
from tests.support import archives, rooms
from tests.support.archives import FIRST
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import CommitTag
from webarcfs.room.replay.replay_url import digits_of

_SITE, _URLS, _LONG, _CRAWLED = "www.example.org", "urls.example.org", "long.example.org", "crawled.example.org"
_CLIENTS = (1, 8, 64)
_WARMING = 60
#: Pages that are asked for at a time; a process keeps more of them, so the second time all were shown before.
_SLICE = 120
#: Domains, and the snapshots of each.
_DOMAINS, _SNAPSHOTS = 10, 1_000
_VERY_MANY = 10_000
_COUNT_OF_URLS = 100_000
#: Crawls that are published with readers, and without; so many in a row.
_CRAWLS, _IN_A_ROW = 40, 10


def room(large: bool) -> None:
    """Measure all of it: fewer rounds and requests, and no domain of 10,000 snapshots, where not `large`."""
    rounds, slices = 6 if large else 2, _SLICE
    with tempfile.TemporaryDirectory(prefix="bench-room-") as folder:
        archive = archives.make_archive(Path(folder))
        pages = room_archives.pages(_SITE, len(_CLIENTS) * slices + _WARMING)
        tag = archives.publish_many(archive, pages.bodies.items(), _SITE)
        catch_up_domain(archive, _SITE)
        room_archives.save_records(archive, [tag], "test")
        warc = Path(folder) / "pages.warc.gz"
        pages.write_warc(warc, FIRST.astimezone(UTC))
        _beside_pywb(archive, pages, warc, rounds, slices)
        fulltext.bring_in_step(archive)
        tags = [tag for number in range(_DOMAINS) for tag in _small_site(archive, number, _SNAPSHOTS)]
        if large:
            tags += room_archives.many_snapshots(archive, _LONG, _VERY_MANY, "long")
            catch_up_domain(archive, _LONG)
        _many_snapshots(archive, tags, large=large)
        _many_urls(archive)
        _home(archive, len(tags) + 1)
        _memory(archive, pages, tags, 100_000 if large else 10_000)
        _crawls(archive, pages)


# -- beside pywb -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Series:
    """What the rounds of one kind of load took: pages, pages a second, processor seconds a page, times in ms."""

    speeds: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    middles: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)

    def add(self, server: Server, paths: Sequence[str], clients: int) -> None:
        """Put a load on a server."""
        before = server.processor
        done = load.put(server.replay, paths, clients)
        self.speeds.append(len(paths) / done.seconds)
        self.costs.append((server.processor - before) / len(paths))
        self.middles.append(done.percentile(0.5))
        self.ends.append(done.percentile(0.95))

    def times(self) -> str:
        """The median and the 95th percentile."""
        return f"{statistics.median(self.middles):6.1f} {statistics.median(self.ends):6.1f}"


@dataclass(slots=True)
class _Pair:
    """The same loads on the room and on pywb."""

    ours: _Series = field(default_factory=_Series)
    pywb: _Series = field(default_factory=_Series)

    def line(self) -> str:
        """Pages a second, and processor seconds of 1,000 pages, of both, with ratios; then times of both."""
        speeds = [statistics.median(each.speeds) for each in (self.ours, self.pywb)]
        costs = [1000 * statistics.median(each.costs) for each in (self.ours, self.pywb)]
        return (
            f"{speeds[0]:7.0f} {speeds[1]:6.0f} {speeds[0] / speeds[1]:6.1f}"
            f"   {costs[0]:6.2f} {costs[1]:6.2f} {costs[1] / costs[0]:6.1f}"
            f"   {self.ours.times()}   {self.pywb.times()}"
        )


def _beside_pywb(archive: Archive, pages: Pages, warc: Path, rounds: int, size: int) -> None:
    average = sum(map(len, pages.bodies.values())) / len(pages.bodies)
    print(
        f"\na page of {average / 1000:.0f} kB, beside pywb   aim: 3 times pywb's pages a second if never shown, else 10"
    )
    fresh, shown = ({clients: _Pair() for clients in _CLIENTS} for _ in range(2))
    with_two = {clients: _Series() for clients in _CLIENTS}
    urls = pages.urls()
    for number in range(rounds):
        with room_processes.room(archive) as ours, room_processes.pywb(warc) as pywb:
            asked = {"ours": _replays(urls), "pywb": _replays(urls, "pages")}
            order = [("ours", ours), ("pywb", pywb)][:: -1 if number % 2 else 1]
            for name, server in order:
                load.put(server.replay, asked[name][-_WARMING:], 4)
            for at, clients in enumerate(_CLIENTS):
                part = slice(at * size, (at + 1) * size)
                for pair in (fresh[clients], shown[clients]):
                    for name, server in order:
                        (pair.ours if name == "ours" else pair.pywb).add(server, asked[name][part], clients)
        with room_processes.room(archive, workers=2) as ours:
            load.put(ours.replay, asked["ours"][-_WARMING:], 8)
            for at, clients in enumerate(_CLIENTS):
                with_two[clients].add(ours, asked["ours"][at * size : (at + 1) * size], clients)
    print("                      pages a second         processor s / 1,000    ours: median, 95 %, pywb's, in ms")
    print("                         ours   pywb  ratio     ours   pywb  ratio")
    for what, pairs in (("never shown", fresh), ("shown before", shown)):
        for clients, pair in pairs.items():
            print(f"  {what:12} {clients:2} clients {pair.line()}", flush=True)
    for clients, series in with_two.items():
        print(
            f"  never shown  {clients:2} clients {statistics.median(series.speeds):7.0f} with two workers",
            f"                                    {series.times()}",
        )


def _replays(urls: Sequence[str], collection: str = "web", modifier: str = "mp_") -> list[str]:
    digits = digits_of(int(FIRST.timestamp()))
    return [f"/{collection}/{digits}{modifier}/{url}" for url in urls]


# -- what grows --------------------------------------------------------------------------------------------------------


def _small_site(archive: Archive, number: int, snapshots: int) -> list[CommitTag]:
    domain = _small(number)
    tags = room_archives.many_snapshots(archive, domain, snapshots, f"p{number}")
    catch_up_domain(archive, domain)
    return tags


def _small(number: int) -> str:
    return f"www{number}.example.org"


def _asked(server: Server, path: str, *, replay: bool = False) -> tuple[float, bytes]:
    """Ask once, on a new connection; the time in ms, and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.replay if replay else server.port)
    begun = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    taken = 1000 * (time.perf_counter() - begun)
    connection.close()
    assert answer.status == 200, (path, answer.status, body[:200])
    return taken, body


def _many_snapshots(archive: Archive, tags: Sequence[CommitTag], *, large: bool) -> None:
    print(f"\na URL with a version in each snapshot of its domain, among {len(tags):,} snapshots, in ms: first, later")
    with room_processes.room(archive) as server:
        for domain, count in [(_small(0), _SNAPSHOTS), *([(_LONG, _VERY_MANY)] if large else [])]:
            own = [each for each in tags if each.domain == domain]
            middle, last = (digits_of(int(own[at].crawl_time.timestamp())) for at in (len(own) // 2, -1))
            url = f"http://{domain}/page.html"
            for name, path, is_replay in (
                ("a page", f"/web/{middle}mp_/{url}", True),
                ("another page", f"/web/{last}mp_/http://{domain}/second.html", True),
                ("its frame", f"/web/{middle}/{url}", False),
                ("TimeMap", f"/timemap/link/{url}", False),
                ("calendar", f"/web/*/{url}", False),
                ("CDX", f"/cdx?url={url}", False),
            ):
                times = [_asked(server, path, replay=is_replay)[0] for _ in range(12)]
                print(f"  {count:6,} snapshots: {name:14} {times[0]:8.1f} {statistics.median(times[1:]):8.1f}")


def _many_urls(archive: Archive) -> None:
    tag = archives.publish(archive, _URLS, {"index.html": b"<p>one</p>"}, FIRST + timedelta(hours=1))
    room_archives.index_urls(archive, tag, _COUNT_OF_URLS)
    with room_processes.room(archive) as server:
        _asked(server, f"/cdx?url={_URLS}&matchType=host&limit=1000")
        memory, processor, begun = server.memory, server.processor, time.perf_counter()
        counts, first = [], 0.0
        most = memory
        for count, taken in _pages_of_cdx(server):
            counts.append(count)
            first = first or taken
            most = max(most, server.memory)
        seconds = time.perf_counter() - begun
        assert sum(counts) == _COUNT_OF_URLS, counts
        print(f"\nCDX of {_COUNT_OF_URLS:,} URLs, {len(counts)} pages of {max(counts):,} rows   aim: flat memory")
        print(f"  rows a second           {sum(counts) / seconds:9,.0f}, a processor second ", end="")
        print(f"{sum(counts) / (server.processor - processor):,.0f}")
        print(f"  the first page          {first:9,.0f} ms")
        print(f"  the worker, in MiB      {memory:9.1f} before, {most:.1f} at most, {server.memory:.1f} after")


def _pages_of_cdx(server: Server) -> Iterator[tuple[int, float]]:
    """Yield rows of each page, and its time in ms."""
    query = f"/cdx?url={_URLS}&matchType=host&showResumeKey=true&limit=10000"
    following = ""
    while True:
        taken, body = _asked(server, query + following)
        lines = body.decode().splitlines()
        if len(lines) < 2 or lines[-2]:
            yield len(lines), taken
            return
        yield len(lines) - 2, taken
        following = f"&resumeKey={lines[-1]}"


def _home(archive: Archive, snapshots: int) -> None:
    with room_processes.room(archive) as server:
        empty = server.memory
        first = _asked(server, "/")[0]
        alone = server.memory
        later = statistics.median(_asked(server, "/")[0] for _ in range(20))
        all_threads = load.put(server.port, ["/"] * 64, 16, pages=False)
        listed = statistics.median(_asked(server, "/?publication=p3&order=oldest&page=7")[0] for _ in range(20))
        found = statistics.median(_asked(server, "/?q=www3")[0] for _ in range(20))
        print(f"\n/ with {snapshots:,} snapshots, in ms")
        print(f"  first in a worker, later   {first:9.0f} {later:6.1f}; the longest of 16 at once ", end="")
        print(f"{all_threads.percentile(1):.0f}")
        print(f"  chosen, by words           {listed:9.1f} {found:6.1f}")
        print(f"  the worker, in MiB         {empty:9.1f} before, {alone:.1f} after one, {server.memory:.1f} after all")


# -- requests ----------------------------------------------------------------------------------------------------------


def _memory(archive: Archive, pages: Pages, tags: Sequence[CommitTag], count: int) -> None:
    urls = pages.urls()
    every = tags[:: max(len(tags) // 500, 1)]
    mixed = [
        *_replays(urls[:500], modifier=""),
        *(f"/web/{digits_of(int(each.crawl_time.timestamp()))}/http://{each.domain}/page.html" for each in every),
        *(f"/timemap/link/http://{each.domain}/page.html" for each in every[::50]),
        *(f"/web/*/http://{each.domain}/page.html" for each in every[::50]),
        *(f"/snapshot/{room_archives.job_of(each, f'p{number}')}" for number, each in enumerate(every[:5])),
        *(f"/cdx?url={url}" for url in urls[:200]),
        *(f"/cdx?url={_URLS}/section-00{number:02}/&matchType=prefix" for number in range(20)),
        *(f"/search?q={word}" for word in ("python", "table", "index", "select", "debian", "server") * 4),
        *(f"/web/{digits_of(int(FIRST.timestamp()))}/http://{_SITE}/gone-{number}.html" for number in range(50)),
        *["/", "/about", "/?publication=p1", "/publication/p2", "/status.json", "/news.atom"] * 10,
    ]
    with room_processes.room(archive) as server:
        before, processor = server.memory, server.processor
        steps: list[float] = []
        statuses: Counter[str] = Counter()
        step = count // 10
        replay = _replays(urls)
        seconds = 0.0
        for number in range(10):
            half = step // 2
            for port, paths in ((server.replay, replay), (server.port, mixed)):
                begin = number * half % len(paths)
                asked = (paths[begin:] + paths * (half // len(paths) + 1))[:half]
                done = load.put(port, asked, 8, pages=False)
                seconds += done.seconds
                statuses.update(done.statuses)
            steps.append(server.memory)
        said = ", ".join(f"{times:,} {status}" for status, times in sorted(statuses.items()))
        print(f"\n{count:,} requests of all kinds to one worker   aim: at most 150 MiB")
        print(
            f"  its memory in MiB          {before:9.1f} before; after each tenth {' '.join(f'{s:.0f}' for s in steps)}"
        )
        print(f"  requests a second          {count / seconds:9.0f}; a processor second ", end="")
        print(f"{count / (server.processor - processor):.0f}; answers: {said}")


# -- the crawler -------------------------------------------------------------------------------------------------------


def _crawls(archive: Archive, pages: Pages) -> None:
    """Record published crawls in webarc.db, as the agent does: without readers; with readers of a copy of the archive,
    who take as much of the processor, but share no lock; and with readers of this one.
    """
    streams = [f"/cdx?url={_URLS}&matchType=host&limit=10000"] * 4
    others = ["/search?q=python", *_replays(pages.urls()[:3], modifier=""), f"/cdx?url={_SITE}/c0/*&limit=500", "/"]
    copy = Archive(archive.root.with_name("copy"))
    shutil.copytree(archive.root, copy.root)
    when = FIRST + timedelta(days=1)
    with room_processes.room(archive) as server, room_processes.room(copy) as other:
        kinds = {"without readers": None, "with 8 readers of a copy": other, "with 8 readers": server}
        times: dict[str, list[float]] = {name: [] for name in kinds}
        for each in (server, other):
            _asked(each, "/search?q=python")
        _recorded(archive, when)
        for _ in range(_CRAWLS // _IN_A_ROW):
            for name, asked in kinds.items():
                with nullcontext() if asked is None else load.slow_readers(asked.port, streams, others):
                    for _ in range(_IN_A_ROW):
                        when += timedelta(hours=1)
                        times[name].append(_recorded(archive, when))
    print(f"\na crawl is recorded, {_CRAWLS} of each, four of the readers in the midst of a long answer, in ms", end="")
    print("   aim: it waits for none, 200 at most")
    for name, found in times.items():
        print(f"  {name:26} {statistics.median(found):8.1f}, the longest {max(found):.1f}")
    alone, elsewhere, here = (statistics.median(each) for each in times.values())
    print(f"  ratio to readers of a copy {here / elsewhere:8.2f}, to none {here / alone:.2f}")


def _recorded(archive: Archive, when: datetime) -> float:
    """Publish a crawl, and return how long it takes to record it, in ms."""
    page = rooms.Page(f"<html><title>Now</title><p>{when}</html>".encode())
    rooms.published(archive, _CRAWLED, {f"http://{_CRAWLED}/": page}, when)
    begun = time.perf_counter()
    catch_up_domain(archive, _CRAWLED)
    return 1000 * (time.perf_counter() - begun)
