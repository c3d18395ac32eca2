"""How fast `webarc dataset` writes captures, in each form, and whether its memory is flat.

The archive is made in webarc.db, with a commit a snapshot in git, as the gate reads them. A capture is a row of
webarc.db where the crawl stored the page, and a place in the list of what the crawl met where it did not. Times are
processor seconds of the command, its start included.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tests.bench.measure import cost
from tests.support import archives
from tests.support.archives import CREATED, FIRST
from tests.support.indexing import change
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.index.database import Database, DocumentChange
from webarcfs.archive.model.metadata import CommitTag, CrawlMessage, MetaData, parse_message
from webarcfs.archive.model.url_lists import Met

_HOSTS, _CRAWLS = 5, 10
_FORMS = ("csv", "jsonl", "parquet")
#: One page in so many is stored anew by a crawl after the first one.
_SHAPES = {"each capture stored": 1, "nine of ten met unchanged": 10}


def dataset(sizes: Sequence[int]) -> None:
    """Rows a second of the largest size, memory of all."""
    print("\nwebarc dataset pages --unit capture   aim: 50,000 rows a processor second, memory flat")
    for shape, every in _SHAPES.items():
        print(f"  {shape}")
        for size in sizes:
            with _archive(size, every) as archive:
                for form in _FORMS:
                    _measure(archive, size, form)


def _measure(archive: Archive, size: int, form: str) -> None:
    out = archive.root.parent / form
    words = ["dataset", "pages", "--unit", "capture", "--format", form, "--archive", str(archive.root), str(out)]
    done = cost([sys.executable, "-c", "from webarcfs.commands.cli import main; main()", *words])
    if done.exit_code:
        raise SystemExit(f"the dataset ended with {done.exit_code}")
    written = sum(path.stat().st_size for path in out.iterdir())
    print(
        f"    {size:9,} captures as {form:8} {size / done.processor:9,.0f} rows a second, {done.together:5.0f} MiB, "
        f"{written >> 20:5,} MiB written"
    )


@contextmanager
def _archive(captures: int, every: int) -> Iterator[Archive]:
    """An archive of so many captures: each of some crawls of each host captures all pages."""
    with tempfile.TemporaryDirectory() as folder:
        archive = directory.create(Path(folder) / "archive")
        pages = captures // (_HOSTS * _CRAWLS)
        with Database(archive.database) as database:
            for number in range(_HOSTS):
                _host(archive, database, number, pages, every)
        yield archive


def _host(archive: Archive, database: Database, host: int, pages: int, every: int) -> None:
    domain = f"www{host}.example.org"
    store = archives.store_of(archive, domain)
    empty = store.write_tree([])
    for crawl in range(_CRAWLS):
        tag = CommitTag(FIRST + timedelta(days=30 * crawl), domain)
        message = str(CrawlMessage(tag, "bench", True, host * _CRAWLS + crawl + 1))
        archives.commit(store, empty, message, tag, new_tag=True)
        changed = [page for page in range(pages) if not crawl or not (page + crawl) % every]
        met = sorted(set(range(pages)) - set(changed))
        at = int(tag.crawl_time.timestamp())
        database.record(
            parse_message(message),
            (_change(page, tag, crawl) for page in changed),
            met=((f"/{domain}/{_inner(page)}", Met(at + page % 86_400)) for page in met),
        )


def _change(page: int, tag: CommitTag, crawl: int) -> DocumentChange:
    inner = _inner(page)
    path = f"/{tag.domain}/{inner}"
    meta = MetaData(
        f"http://{tag.domain}/{inner}", "text/html", f"Minutes of meeting {page}, item {crawl}", path, tag.domain,
        tag.crawl_time, CREATED + timedelta(seconds=page), tag,
    )  # fmt: skip
    stored = change(path, meta)
    assert stored.version is not None
    digest = hashlib.sha1(f"{path} {crawl}".encode(), usedforsecurity=False)
    version = replace(stored.version, blob=digest.hexdigest(), digest=digest.digest())
    return replace(stored, version=version)


def _inner(page: int) -> str:
    return f"section-{page // 1_000:05}/page-{page:08}.html"
