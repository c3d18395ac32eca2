"""`python -m tests.soak.many_shown [--pages 500]`: a crawl by browser of many pages, and what it takes of memory.

Each life of the browser must end with at most 1.3 times the memory that it had after 20 pages, and the crawl with at
most 1.3 times that of its first life then. Memory is the share (PSS) of all processes of the browser. It prints the
processor seconds of a page, too. Exit 1 if not.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import agent
from tests.support.process_trees import WatchedTree, processes_below, share_of
from tests.support.script_site import ScriptSite, add_small_pages
from webarcfs.archive.config import directory

_MEBIBYTE = 1 << 20
#: Pages after which a browser has what it needs, and those around them and at the end whose memory counts.
_WARM, _NEAR = 20, 10
_MOST_GROWTH = 1.3
_SECONDS_BETWEEN_LOOKS = 0.25


@dataclass(frozen=True, slots=True)
class MemorySample:
    """The bytes of a browser, by its process, when so many pages of the crawl had been shown."""

    browser: int
    pages: int
    memory: int


@dataclass(frozen=True, slots=True)
class BrowserLife:
    """The memory of one browser after its first pages and at its end, and how many pages it showed."""

    pages: int
    warm: float
    end: float


def lives_of(samples: Sequence[MemorySample]) -> list[BrowserLife]:
    """Return the lives of the browsers that showed pages enough to tell."""
    lives: list[BrowserLife] = []
    for browser in dict.fromkeys(sample.browser for sample in samples):
        own = [sample for sample in samples if sample.browser == browser]
        first, last = own[0].pages, own[-1].pages
        warm = [sample.memory for sample in own if abs(sample.pages - first - _WARM) <= _NEAR]
        end = [sample.memory for sample in own if sample.pages >= last - _NEAR]
        if last - first > _WARM + 2 * _NEAR and warm and end:
            lives.append(BrowserLife(last - first, statistics.median(warm), statistics.median(end)))
    return lives


def crawl(site: ScriptSite, pages: int, folder: Path) -> list[MemorySample]:
    """Crawl so many pages by browser; return what was seen of its memory."""
    archive = directory.create(folder / "archive")
    urls = folder / "urls"
    urls.write_text("".join(site.url(f"/small/{number}.html\n") for number in range(pages)))
    words = ("--archive", str(archive.root), "--fetcher", "browser", "--wait", "0", "--list", str(urls))
    # A list alone opens no private address.
    command = agent("crawl", *words, "--private-addresses", "--depth", "0", "--no-sitemaps")
    samples: list[MemorySample] = []
    process = subprocess.Popen(["setpriv", "--pdeathsig=KILL", *command], stdin=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            own = [running for running in processes_below(os.getpid()) if running.is_chromium]
            shown = sum(response.path.startswith("/api/words?") for response in list(site.responses))
            if own:
                memory = sum(share_of(running.pid) for running in own)
                samples.append(MemorySample(own[0].pid, shown, memory))
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise SystemExit(f"the crawl ended with {process.returncode}")
    return samples


def main() -> int:
    """Crawl, and say what it took."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.many_shown", description=__doc__)
    parser.add_argument("--pages", type=int, default=500)
    given = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="webarc-soak-") as folder, ScriptSite() as site:
        add_small_pages(site, range(given.pages))
        with WatchedTree() as watched:
            samples = crawl(site, given.pages, Path(folder))
        missing = given.pages - len({response.path for response in site.responses if "/api/words?" in response.path})
    cost, seconds = watched.cost, time.monotonic() - begun
    print(
        f"{given.pages} pages, {missing} not shown, in {seconds:.0f} s; processor seconds a page: browser "
        f"{cost.browser / given.pages:.3f}, beside it {cost.beside / given.pages:.3f}"
    )
    lives = lives_of(samples)
    for life in lives:
        print(
            f"a browser showed {life.pages} pages: {life.warm / _MEBIBYTE:.0f} MiB after {_WARM}, "
            f"{life.end / _MEBIBYTE:.0f} at its end ({life.end / life.warm:.2f})"
        )
    growths = [life.end / life.warm for life in lives] + [life.end / lives[0].warm for life in lives[-1:]]
    return int(missing > 0 or not growths or max(growths) > _MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
