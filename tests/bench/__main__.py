"""`python -m tests.bench [--large]`: measures, and prints ratios against baselines of the same run (`make bench`)."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable

from tests.bench import (
    additions,
    asking,
    browser,
    crawl,
    dataset,
    desk,
    export,
    first_pages,
    folder,
    fulltext,
    growth,
    links,
    mount,
    records,
    redirects,
    resource_hosts,
    room,
    search_versions,
    steps,
    wordcount,
)

#: Name → the benchmark; with the full sizes where `large` is asked for.
PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "crawl": lambda given: crawl.whole_crawl(given.pages or 10_000, _rounds(given)),
    "mount": lambda given: mount.reading(rounds=_rounds(given)),
    "additions": lambda _: additions.additions(),
    "memory": lambda given: crawl.memory((1_000, 10_000, 30_000) if given.large else (1_000, 30_000)),
    "pipeline": lambda given: growth.pipeline((1_000, 10_000, 50_000) if given.large else (1_000, 5_000)),
    "folder": lambda given: folder.folder(folder.SIZES if given.large else folder.SIZES[:2]),
    "frontier": lambda _: growth.frontier(),
    "asking": lambda given: asking.asking((100_000, 1_000_000) if given.large else (10_000, 100_000)),
    "log": lambda _: asking.log(),
    "wordcount": lambda given: wordcount.wordcount(_rounds(given), wordcount.SIZES[0 if given.large else -1 :]),
    "redirects": lambda given: redirects.redirects(redirects.SIZES if given.large else redirects.SIZES[:1]),
    "resource-hosts": lambda given: resource_hosts.resource_hosts(*((10_000, 100) if given.large else (300, 10))),
    "records": lambda _: records.records(),
    "search": lambda given: fulltext.search(1_200_000 if given.large else 100_000),
    "search-versions": lambda given: search_versions.search_versions(1_200_000 if given.large else 100_000),
    "links": lambda given: links.links(10_000_000 if given.large else 300_000),
    "steps": lambda given: steps.steps(65_000 if given.large else 5_000),
    "export": lambda given: export.export((1_000, 10_000, 100_000) if given.large else (1_000, 10_000)),
    "dataset": lambda given: dataset.dataset((10_000, 1_000_000) if given.large else (10_000, 100_000)),
    "desk": lambda _: desk.desk(),
    "first-pages": lambda given: first_pages.first_pages(_rounds(given)),
    "browser": lambda given: browser.browser(rounds=_rounds(given)),
    "room": lambda given: room.room(large=bool(given.large)),
}


def main() -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--large", action="store_true", help="the full sizes, several rounds (make bench-large)")
    parser.add_argument("--pages", type=int, help="pages of the site that is crawled")
    parser.add_argument("--rounds", type=int, help="how often each measurement is repeated")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"only these of {', '.join(PARTS)}")
    given = parser.parse_args()
    print(f"{os.cpu_count()} processors, Linux {platform.release()}, Python {platform.python_version()}")
    for name in given.only or PARTS:
        PARTS[name](given)


def _rounds(given: argparse.Namespace) -> int:
    return int(given.rounds or (5 if given.large else 1))


if __name__ == "__main__":
    main()
