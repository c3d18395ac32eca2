"""Whether costs grow: the pipeline per document at several sizes, and the frontier at the count of rows of seed 3.

Tarântula 2001: 0.2 s for each row inserted, and 78 s for one query at 562,480 rows. Its figures stand beside ours.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from agent.crawl.frontier import FoundUrl, Frontier, UrlOutcome
from tests.bench.crawl import STAGES, crawl_once, own_archive, summary_of
from tests.bench.serve import running

_ROWS = 562_480
_BATCH = 400
_DOMAINS = 40


def pipeline(sizes: tuple[int, ...]) -> None:
    """Documents a second after the download, stage by stage: a first crawl, and one of the unchanged site."""
    print("\nafter the download, documents a second by size of the site   aim: flat, all 1,000 or more")
    for pages in sizes:
        with running("--generate", str(pages)) as port, own_archive() as archive:
            for which in ("first", "unchanged"):
                crawl_once(archive, port)
                seconds = summary_of(archive)["seconds"]
                whole = sum(seconds[stage] for stage in STAGES)
                parts = " ".join(f"{stage} {pages / max(seconds[stage], 1e-3):,.0f}" for stage in STAGES)
                print(f"  {pages:7,} {which:9} all {pages / whole:8,.0f}   {parts}")


def frontier(rows: int = _ROWS) -> None:
    """Rows in, a batch out and settled, and the queries of a running crawl, at the beginning and at the end."""
    with tempfile.TemporaryDirectory() as folder:
        book = Frontier(Path(folder) / "frontier.db")
        small, large = _fill(book, 0, rows // 50), _fill(book, rows // 50, rows)
        print(f"\nthe frontier at {rows:,} rows (Tarântula 2001: 0.2 s a row, 78 s a query)")
        print(f"  a row inserted     {large * 1e6:8.1f} µs; among the first {rows // 50:,}: {small * 1e6:.1f} µs")
        for name, seconds in _queries(book):
            print(f"  {name:18} {seconds * 1000:8.2f} ms")
        book.close()


def _fill(book: Frontier, start: int, end: int) -> float:
    """Insert rows as a crawl does, some hundred at a time; seconds a row."""
    begun = time.perf_counter()
    for first in range(start, end, _BATCH):
        with book.changes():
            book.add(_find(number) for number in range(first, min(first + _BATCH, end)))
    return (time.perf_counter() - begun) / (end - start)


def _find(number: int) -> FoundUrl:
    domain = f"www{number % _DOMAINS}.example.org"
    url = f"http://{domain}/f{number // 200:05d}/page-{number:07d}.html"
    return FoundUrl(url=url, domain=domain, kind="link", depth=1 + number // 200_000, hops="L")


def _queries(book: Frontier) -> Iterator[tuple[str, float]]:
    domain, now = "www0.example.org", time.time()
    yield "which servers wait", _seconds(book.waiting)
    yield "the next batch", _seconds(lambda: book.next(domain, now, _BATCH))
    rows = book.next(domain, now, _BATCH)
    begun = time.perf_counter()
    with book.changes():
        book.take(rows, 1, domain)
        book.settle(UrlOutcome(id=row.id, state="done", status=200, arc=f"a/{row.id}") for row in rows)
    yield "a batch settled", time.perf_counter() - begun
    yield "one URL", _seconds(lambda: book.by_url("http://www3.example.org/f00000/page-0000003.html"))
    yield "documents, counted", _seconds(lambda: book.count_documents(domain))
    yield "all, by state", _seconds(book.counts)


def _seconds(call: object) -> float:
    assert callable(call)
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
