"""`python -m tests.bench.browser [--pages 20] [--rounds 1] [--option WORD …]`: what a crawl by browser costs.

Pages of seven requests each, three of which they share, are shown by Chromium that nobody records, by Chromium through
warcprox, and by a crawl with `--fetcher browser`. Each is done with one page and with all of them. The difference is
what a page costs; with one page it is what a start costs. A crawl shows each page in a tab of its own, so that no page
finds what another one left, and so do these. Ratios are against plain Chromium of the same run. What one tab for all
pages would cost is measured, too.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.bench.measure import agent
from tests.support.browsers import chromium
from tests.support.process_trees import TreeCost, WatchedTree
from tests.support.recorder import WARCPROX, warcprox
from tests.support.script_site import MAIN, ScriptSite
from tests.support.waiting import PATIENCE
from webarcfs.archive.config import directory

_MEBIBYTE = 1 << 20
#: Requests that a page alone makes, and those that all pages share.
_OWN, _SHARED = 4, 3


@dataclass(frozen=True, slots=True)
class PagesShown:
    """What it took to show some pages: of processes, and as the site saw it. `gap` is in seconds."""

    cost: TreeCost
    responses: int
    sent: int
    connections: int
    at_once: int
    gap: float

    @property
    def processor(self) -> float:
        """Processor seconds of all processes."""
        return self.cost.browser + self.cost.beside


@dataclass(frozen=True, slots=True)
class MeasuredWay:
    """A way to show pages: with one page, and with all."""

    name: str
    first: PagesShown
    all: PagesShown
    pages: int

    @property
    def page(self) -> float:
        """Processor seconds of one page more."""
        return (self.all.processor - self.first.processor) / (self.pages - 1)

    @property
    def browser_page(self) -> float:
        """Those of the browser alone."""
        return (self.all.cost.browser - self.first.cost.browser) / (self.pages - 1)


#: Shows pages of a site, by their numbers; a folder is for what it needs.
_Way = Callable[[ScriptSite, Sequence[int], Path], None]


def browser(pages: int = 20, rounds: int = 1, options: Sequence[str] = ()) -> None:
    """Measure each way in turn, and print a table."""
    print(f"\n{pages} pages of {_OWN + _SHARED} requests by browser, {rounds} rounds; medians")
    ways: dict[str, _Way] = {"plain Chromium": _plain, "plain, one tab for all": _plain_in_one_tab}
    if WARCPROX.exists():
        ways["through warcprox"] = _recorded
    else:
        print("  without warcprox, which needs `make warcprox`")
    ways["crawl --fetcher browser"] = lambda site, numbers, folder: _crawled(site, numbers, folder, options)
    rows: dict[str, list[MeasuredWay]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            rows[name].append(MeasuredWay(name, _show(way, 1), _show(way, pages), pages))
    _print_table(rows, pages)


def _show(way: _Way, pages: int) -> PagesShown:
    """Show so many pages in a way; all of them must have been asked for, with what they need."""
    with tempfile.TemporaryDirectory(prefix="webarc-bench-") as folder, ScriptSite() as site:
        with WatchedTree() as watched:
            way(site, range(pages), Path(folder))
        responses = [response for response in site.responses if response.path not in ("/robots.txt", "/favicon.ico")]
        missing = _needed(pages) - {response.path for response in responses}
        if missing:
            raise SystemExit(f"{len(missing)} URLs were not asked for, such as {min(missing)}")
        hosts = {response.host for response in responses}
        return PagesShown(
            cost=watched.cost,
            responses=len(responses),
            sent=sum(response.sent for response in responses),
            connections=max(site.connections(host) for host in hosts),
            at_once=max(site.max_open(host) for host in hosts),
            gap=min(site.smallest_gap(host) for host in hosts),
        )


def _needed(pages: int) -> set[str]:
    own = ("/small/{}.html", "/pic/own-{}.png", "/api/numbers?page={}", "/api/words?page={}")
    shared = {"/assets/small.css", "/assets/small.js", "/pic/small.png"}
    return shared | {path.format(number) for number in range(pages) for path in own}


def _plain(site: ScriptSite, numbers: Sequence[int], folder: Path) -> None:
    with chromium(folder, names={MAIN: site.host, "*": "~NOTFOUND"}) as shown:
        _visit(shown, numbers)


def _plain_in_one_tab(site: ScriptSite, numbers: Sequence[int], folder: Path) -> None:
    with chromium(folder, names={MAIN: site.host, "*": "~NOTFOUND"}) as shown:
        tab = shown.new_page()
        for number in numbers:
            _show_in(tab, number)


def _recorded(site: ScriptSite, numbers: Sequence[int], folder: Path) -> None:
    options = ("-z", "--dedup-db-file=/dev/null", "--stats-db-file=/dev/null")
    with warcprox(folder, *options, hosts={MAIN: site.port}) as proxy, chromium(folder, proxy=proxy) as shown:
        _visit(shown, numbers)


def _visit(shown: Browser, numbers: Sequence[int]) -> None:
    """Show one page after the other, each in a tab of its own, beside one that keeps the window."""
    context = shown.new_context()
    context.new_page()
    for number in numbers:
        tab = context.new_page()
        _show_in(tab, number)
        tab.close()


def _show_in(tab: Page, number: int) -> None:
    """Show a page until its own words are there."""
    tab.goto(f"http://{MAIN}/small/{number}.html")
    tab.wait_for_function(f"document.title === 'page {number}, shown'", timeout=1_000 * PATIENCE)


def _crawled(site: ScriptSite, numbers: Sequence[int], folder: Path, options: Sequence[str]) -> None:
    """A crawl of these pages from 127.0.0.1, into an archive of its own."""
    archive = directory.create(folder / "archive")
    urls = [site.url(f"/small/{number}.html") for number in numbers]
    words = ("--archive", str(archive.root), "--fetcher", "browser", "--wait", "0", "--no-sitemaps", *options)
    done = subprocess.run(agent("crawl", *words, *urls), check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the crawl ended with {done.returncode}: {done.stderr}")


def _print_table(rows: dict[str, list[MeasuredWay]], pages: int) -> None:
    plain = _median(rows["plain Chromium"], lambda row: row.page)
    print(
        f"  {'':24}{'processor seconds a page':^32}{'start':>8}{'memory':>9}{'browser':>9}   {'as the site saw it':^50}"
    )
    print(
        f"  {'':24}{'browser':>8}{'beside':>8}{'all':>8}{'/ plain':>8}{'s':>8}{'MiB':>9}{'MiB':>9}   "
        f"{'responses':>10}{'bytes':>11}{'connections':>12}{'at once':>9}{'gap, s':>8}"
    )
    for name, values in rows.items():
        page, own = _median(values, lambda row: row.page), _median(values, lambda row: row.browser_page)
        start = _median(values, lambda row: row.first.processor)
        memory = _median(values, lambda row: row.all.cost.memory / _MEBIBYTE)
        browsers = _median(values, lambda row: row.all.cost.browser_memory / _MEBIBYTE)
        last = values[-1].all
        costs = f"{own:8.3f}{page - own:8.3f}{page:8.3f}{page / plain:8.2f}{start:8.2f}{memory:9.0f}{browsers:9.0f}"
        seen = f"{last.responses:>10,}{last.sent:>11,}{last.connections:>12}{last.at_once:>9}{last.gap:>8.4f}"
        print(f"  {name:24}{costs}   {seen}")
    print(f"  {_OWN * pages + _SHARED} URLs; aim of our crawl: at most 0.6 s a page, at most 1.15 of plain Chromium")


def _median(rows: Sequence[MeasuredWay], value: Callable[[MeasuredWay], float]) -> float:
    return statistics.median(value(row) for row in rows)


def main() -> None:
    """Measure with as many pages as are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.browser", description=__doc__)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--option", action="append", default=[], help="a further word for our crawl")
    given = parser.parse_args()
    if given.pages < 2:
        parser.error("--pages is at least 2")
    browser(given.pages, given.rounds, given.option)


if __name__ == "__main__":
    main()
