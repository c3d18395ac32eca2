"""links.db at its size: links taken in, and how long `webarc links` takes to answer.

The pages are made up: of 50 links each, half are the menu of their domain; of the rest most lead to other pages of the
domain, as often as pages are popular, and some elsewhere; each is named by two to four of 20,000 words, some of them
far more often than others. They are numbered and stored as the agent does it; what is left out is reading git and HTML.
"""

from __future__ import annotations

import gc
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.links import ArchivedLink, AskedKind, LinksDatabase, PageChange, Question, ask, figures
from webarcfs.archive.model.metadata import CET, CommitTag

_PAGES = 10_000  # of a domain
_LINKS = 50  # of a page
_WORDS = 20_000
_ASKED = 40
_LIMIT = 100
_TIME = datetime(2026, 11, 21, 3, 0, 0, tzinfo=CET)


def links(rows: int) -> None:
    """So many links in, domain by domain; then questions; then a crawl that changes one page."""
    with tempfile.TemporaryDirectory() as folder:
        archive = directory.create(Path(folder) / "archive")
        print(f"\nlinks.db at {rows:,} links   aim: 50,000 a second or more; each answer in less than 50 ms")
        speeds = _fill(archive, rows)
        print(f"  taken in, links a second   {speeds[0]:9,.0f} at first, {speeds[-1]:,.0f} at the end", end="")
        print(f" (the slowest domain {min(speeds):,.0f})")
        size = archive.links.stat().st_size
        with LinksDatabase(archive.links) as base:
            counts = base.counts()
        print(f"  the file                   {size / counts['links']:9.1f} bytes a link; ", end="")
        print(", ".join(f"{number:,} {name}" for name, number in counts.items()))
        domains = max(rows // (_PAGES * _LINKS), 1)
        for name, questions in _questions(domains):
            _answer(archive, name, questions)
        begun = time.perf_counter()
        found = figures(archive, CommitTag(_TIME, _domain(0)), 600)
        print(
            f"  --count of {_PAGES:,} pages     {(time.perf_counter() - begun) * 1000:9.1f} ms, {found.total:,} links"
        )
        _one_page(archive, counts["links"])


def _fill(archive: Archive, rows: int) -> list[float]:
    speeds = []
    with LinksDatabase(archive.links) as base:
        for number, first in enumerate(range(0, rows, _PAGES * _LINKS)):
            pages = min(_PAGES, (rows - first) // _LINKS)
            # Made before the clock runs: what is measured is the database.
            made = {f"/{_domain(number)}/{page}.html": list(_page(number, page)) for page in range(pages)}
            changes = [
                PageChange(path, (f"http:/{path}", f"{number:08x}{page:032x}")) for page, path in enumerate(made)
            ]
            gc.collect()
            gc.freeze()  # nor the search for garbage among these
            begun = time.process_time()
            base.record(CommitTag(_TIME, _domain(number)), changes, lambda change, made=made: made[change.path])  # type: ignore[misc]
            speeds.append(pages * _LINKS / (time.process_time() - begun))
            gc.unfreeze()
    return speeds


def _domain(number: int) -> str:
    return f"www{number}.example.org"


def _page(domain: int, page: int) -> Iterator[ArchivedLink]:
    # Not random.Random's own way to pick, which takes longer than the database.
    pick = random.Random(domain * _PAGES + page).random
    host = f"http://{_domain(domain)}"
    for number in range(_LINKS // 2):
        yield ArchivedLink(AskedKind.HTTP, f"{host}/menu/{number}.html", f"menu {number} of {domain}")
    for _ in range(_LINKS - _LINKS // 2 - 5):
        yield ArchivedLink(AskedKind.HTTP, f"{host}/{int(_PAGES * pick() ** 3)}.html", _text(pick))
    for _ in range(3):
        yield ArchivedLink(
            AskedKind.HTTP, f"http://other{int(1000 * pick() ** 2)}.net/{int(1000 * pick() ** 2)}", _text(pick)
        )
    yield ArchivedLink(AskedKind.IMAGE, f"{host}/images/{page}.png", _text(pick))
    yield ArchivedLink(AskedKind.MAIL, f"mailto:someone{int(200 * pick())}@{_domain(domain)}", "mail")


def _text(pick: Callable[[], float]) -> str:
    return " ".join(f"word{int(_WORDS * pick() ** 2)}" for _ in range(2 + int(3 * pick())))


def _questions(domains: int) -> Iterator[tuple[str, list[Question]]]:
    chance = random.Random(7)
    numbers = [(chance.randrange(domains), chance.randrange(_PAGES)) for _ in range(_ASKED)]
    pages = [f"{_domain(domain)}/{page}.html" for domain, page in numbers]
    yield "--from a page", [Question(path=f"/{page}", limit=_LIMIT) for page in pages]
    yield "--to a page", [Question(targets=(f"http://{page}",), limit=_LIMIT) for page in pages]
    yield (
        "--to a page of the menu",
        [Question(targets=(f"http://{_domain(d)}/menu/{n % 25}.html",), limit=_LIMIT) for d, n in numbers],
    )
    yield "--word, a rare one", [Question(word=f"word{_WORDS - 1 - n}", limit=_LIMIT) for _, n in numbers]
    yield "--word, a frequent one", [Question(word=f"word{n}", limit=_LIMIT) for n in range(_ASKED)]
    yield "--word, two at once", [Question(word=f"word{n} word{n + 1}", limit=_LIMIT) for n in range(_ASKED)]


def _answer(archive: Archive, name: str, questions: Iterable[Question]) -> None:
    """How long each answer takes, the database opened for it as the command does."""
    times, rows = [], 0
    for question in questions:
        begun = time.perf_counter()
        rows += sum(1 for _ in ask(archive, question, 600))
        times.append((time.perf_counter() - begun) * 1000)
    times.sort()
    print(
        f"  {name:26} {statistics.median(times):9.1f} ms in the middle, {times[-1]:.1f} at most;"
        f" {rows / len(times):.0f} rows each, {_LIMIT} at most"
    )


def _one_page(archive: Archive, before: int) -> None:
    """A crawl that changed one page costs its rows, whatever the size."""
    path = f"/{_domain(0)}/17.html"
    with LinksDatabase(archive.links) as base:
        begun = time.perf_counter()
        written = _written()
        changed = PageChange(path, (f"http:/{path}", "f" * 40))
        base.record(CommitTag(_TIME + timedelta(days=1), _domain(0)), [changed], lambda _: _page(0, 17))
        seconds, written = time.perf_counter() - begun, _written() - written
        rows = base.counts()["links"] - before
    print(f"  a crawl that changed a page {seconds * 1000:8.1f} ms, {rows} rows, {written / 1024:,.0f} KiB written")


def _written() -> int:
    lines = Path(f"/proc/{os.getpid()}/io").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])
