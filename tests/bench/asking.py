"""What questions cost: `webarc query` over webarc.db as it grows, its size, and `webarc log` of an old page.

The database is filled by `Database.record`, as a crawl fills it; each query opens it anew, as the command does.
Tarântula 2001, for comparison: 2 s for a query over 76,640 rows, 78 s over 562,480.
"""

from __future__ import annotations

import gc
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tests.bench.measure import cost
from tests.support.archives import CREATED, DOMAIN, FIRST, HEAD, make_archive, metadata, store_of
from tests.support.indexing import change
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import MAIN, RefUpdate, Repository
from webarcfs.archive.history import versions
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.index.database import Database, DocumentChange
from webarcfs.archive.index.query import ask
from webarcfs.archive.model import arc_paths
from webarcfs.archive.model.metadata import COMMITTER, CommitMessage, CommitTag, CrawlMessage, MetaData, format_time
from webarcfs.archive.repair import repacking

SNAPSHOTS = 20
_DOMAINS = 10
_CHANGED = 0.01
_LIMIT = 100
_REPEATS = 40
_TYPES = (
    *["text/html"] * 70,
    *["image/jpeg"] * 20,
    *["application/pdf"] * 5,
    *["text/css", "text/javascript", "image/png", "application/msword", "text/plain"],
)
#: Snapshots in the life of the page whose log is asked for, and documents beside it.
_LIFE, _BESIDE = 1_000, 2_000


@dataclass(frozen=True, slots=True)
class Site:
    """The made-up archive that a question draws its words from."""

    documents: int
    draw: random.Random

    def url(self) -> str:
        """Of any document."""
        return _document(self.draw.randrange(self.documents), 0).url

    def tag(self) -> CommitTag:
        """Of any snapshot."""
        return _tag(self.draw.randrange(_DOMAINS), self.draw.randrange(SNAPSHOTS))


#: Name → its condition and order, with words that are drawn anew each time.
_QUESTIONS: dict[str, Callable[[Site], tuple[str, str]]] = {
    "by url": lambda site: (f"url = '{site.url()}'", ""),
    "by url, newest first": lambda site: (f"url = '{site.url()}'", "crawlTime DESC"),
    "by domain and time": lambda site: _domain_and_time(site.tag()),
    "by domain since a time": lambda site: _domain_and_time(site.tag(), ">="),
    "by type, oldest first": lambda _: ("mimeType = 'application/pdf'", "crawlTime"),
    "by type, newest first": lambda _: ("mimeType = 'application/pdf'", "crawlTime DESC"),
    "by type and domain": lambda site: (
        f"mimeType = 'application/pdf' AND domain = '{site.tag().domain}'",
        "crawlTime DESC",
    ),
    "a snapshot by path": lambda site: (f"commitTag = '{site.tag()}'", "path"),
    "a folder": lambda site: (f"path GLOB '/{site.tag().domain}/section-00000/*'", "path"),
}


def asking(sizes: tuple[int, ...]) -> None:
    """Ask archives of these many documents the same questions, and print the medians beside each other."""
    costs: dict[str, list[float]] = {name: [] for name in _QUESTIONS}
    worst = dict.fromkeys(_QUESTIONS, 0.0)
    print(f"\nwebarc query, {SNAPSHOTS} snapshots, {_CHANGED:.0%} changed in each, LIMIT {_LIMIT}   aim < 50 ms, flat")
    for documents in sizes:
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder) / "webarc.db"
            _fill(database, documents)
            site = Site(documents, random.Random(1))
            for name, question in _QUESTIONS.items():
                taken = [_seconds(database, *question(site)) for _ in range(_REPEATS)]
                costs[name].append(statistics.median(taken))
                worst[name] = max(taken)
    print(f"  {'':24}" + "".join(f"{size:>14,}" for size in sizes) + "   worst of the last; last / first")
    for name, medians in costs.items():
        cells = "".join(f"{seconds * 1000:11.2f} ms" for seconds in medians)
        print(f"  {name:24}{cells}   {worst[name] * 1000:8.2f} ms; {medians[-1] / medians[0]:.2f}")


def _fill(path: Path, documents: int) -> None:
    """Record the snapshots, and say what that cost."""
    draw, begun, rows = random.Random(0), time.process_time(), 0
    with Database(path) as database:
        for snapshot in range(SNAPSHOTS):
            for domain in range(_DOMAINS):
                numbers: range | list[int] = range(domain, documents, _DOMAINS)
                if snapshot:
                    numbers = sorted(draw.sample(numbers, int(len(numbers) * _CHANGED)))
                rows += len(numbers)
                tag, sequence = _tag(domain, snapshot), snapshot * _DOMAINS + domain + 1
                trailers = (("Publication", "bench"), ("Complete", "yes"), ("Sequence", str(sequence)))
                database.record(CommitMessage(tag, trailers), (_change(number, snapshot) for number in numbers))
        assert rows == database.count_versions()
    size, spent = path.stat().st_size, time.process_time() - begun
    print(
        f"  {documents:,} documents, {rows:,} versions: {size / rows:.0f} bytes a version ({size >> 20} MiB), "
        f"recorded {rows / spent:,.0f} a second of the processor"
    )


def _change(number: int, snapshot: int) -> DocumentChange:
    meta = _document(number, snapshot)
    return change(meta.path, meta)


def _document(number: int, snapshot: int) -> MetaData:
    """The document of that number: its domain goes by the number, its type by chance that the number decides."""
    tag = _tag(number % _DOMAINS, snapshot)
    inner = f"section-{number // 10_000:05}/{'' if number % 3 else 'archive/'}page-{number:08}.html"
    path = f"/{tag.domain}/{inner}"
    kind = _TYPES[number * 7919 // _DOMAINS % len(_TYPES)]
    created = CREATED + timedelta(seconds=number)
    title = f"Minutes of meeting {number}, item {snapshot}"
    return MetaData(f"http://{tag.domain}/{inner}", kind, title, path, tag.domain, tag.crawl_time, created, tag)


def _tag(domain: int, snapshot: int) -> CommitTag:
    """Each domain is crawled once a day, one after the other."""
    return CommitTag(FIRST + timedelta(days=snapshot, minutes=domain), f"www{domain}.example.org")


def _domain_and_time(tag: CommitTag, sign: str = "=") -> tuple[str, str]:
    return f"domain = '{tag.domain}' AND crawlTime {sign} '{format_time(tag.crawl_time)}'", ""


def _seconds(database: Path, where: str, order_by: str) -> float:
    gc.disable()
    begun = time.perf_counter()
    found = list(ask(database, where, order_by, _LIMIT))
    taken = time.perf_counter() - begun
    gc.enable()
    assert found, where
    return taken


def log(snapshots: int = _LIFE) -> None:
    """`webarc log` of a page that one snapshot in ten changed: as a command, and without Python's start."""
    with tempfile.TemporaryDirectory() as folder:
        archive = make_archive(Path(folder))
        store = _long_life(archive, snapshots)
        begun = time.process_time()
        steps = list(versions.steps(store, DOMAIN, "section-0/page-0.html"))
        inner = time.process_time() - begun
        assert len(steps) == -(-snapshots // 10), len(steps)
        words = ["log", "--archive", str(archive.root), f"http://{DOMAIN}/section-0/page-0.html"]
        whole = [cost([*_WEBARC, *words]) for _ in range(5)]
        empty = [cost([*_WEBARC, "log", "--help"]) for _ in range(5)]
    print(f"\nwebarc log, a page among {snapshots:,} snapshots of {_BESIDE:,} documents   aim < 0.5 s")
    for name, costs in (("the command", whole), ("its start alone", empty)):
        seconds, processor = (
            statistics.median(each) for each in zip(*((c.seconds, c.processor) for c in costs), strict=True)
        )
        print(f"  {name:16} {seconds:.3f} s, of the processor {processor:.3f} s")
    print(f"  finding the {len(steps)} changes: {inner:.3f} s of the processor")


_WEBARC = (sys.executable, "-c", "from webarcfs.commands.cli import main; main()")


def _long_life(archive: Archive, snapshots: int) -> Repository:
    """A repository of so many crawls, by the importer that crawls use; maintained, as the agent does once a day."""
    store = store_of(archive)
    head: str | None = None
    tree: str | None = None
    updates = []
    for number in range(snapshots):
        tag = CommitTag(FIRST + timedelta(hours=number), DOMAIN)
        with store.importer(tree) as importer:
            for path in _changed(number):
                meta = metadata(DOMAIN, path, tag)
                files = {arc_paths.DATA_XML: data_xml.describe(meta), arc_paths.HEADERS: HEAD}
                for name, body in (files | {"data.html": f"<p>{number}".encode()}).items():
                    importer.put(f"{path}/{name}", body)
            tree = importer.finish()
        message = str(CrawlMessage(tag, "bench", True, number + 1))
        when = int(tag.crawl_time.timestamp())
        head = store.write_commit(tree, [head] if head else [], message, COMMITTER, when)
        updates.append(RefUpdate(tag.ref, head, None))
        Feed(archive.changes).append(tag)
    store.update_refs([*updates, RefUpdate(MAIN, head, None)])
    repacking.repack(store.path)
    os.sync()
    return Repository(store.path)


def _changed(number: int) -> Iterator[str]:
    """The first crawl has all documents; each later one ten of them, and every tenth one ours."""
    if number == 0:
        yield from (f"section-{each % 20}/page-{each}.html" for each in range(_BESIDE))
        return
    if number % 10 == 0:
        yield "section-0/page-0.html"
    yield from (f"section-{each % 20}/page-{each}.html" for each in range(number % _BESIDE + 1, number % _BESIDE + 11))
