"""`python -m tests.bench [--large]`: measures, and prints ratios against baselines of the same run (`make bench`)."""

from __future__ import annotations

import argparse
import os
import platform

from tests.bench import additions, crawl, growth, mount


def main() -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--large", action="store_true", help="the full sizes, several rounds (make bench-large)")
    parser.add_argument("--pages", type=int, help="pages of the site that is crawled")
    parser.add_argument("--rounds", type=int, help="how often each measurement is repeated")
    given = parser.parse_args()
    print(f"{os.cpu_count()} processors, Linux {platform.release()}, Python {platform.python_version()}")
    crawl.whole_crawl(given.pages or 10_000, given.rounds or (5 if given.large else 1))
    mount.reading(rounds=given.rounds or (5 if given.large else 1))
    additions.additions()
    crawl.memory((1_000, 10_000, 30_000) if given.large else (1_000, 30_000))
    growth.pipeline((1_000, 10_000, 50_000) if given.large else (1_000, 5_000))
    growth.frontier()


if __name__ == "__main__":
    main()
