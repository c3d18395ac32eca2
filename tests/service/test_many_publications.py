"""Seed 3's own test: many publications, each limited to its servers, under one agent, all due at once.

Twelve in CI. `make soak` has 126 on 200 hosts: PUBLICATIONS, PUBLICATION_HOSTS and PUBLICATION_PAGES say how many.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from agent.crawl import crawl_log
from agent.reports import tables
from tests.support import crawls
from tests.support.agents import agent, configure, reports, summaries
from tests.support.crawls import run_command
from tests.support.site import Answer, Site, page
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive

archive = crawls.archive
pytestmark = pytest.mark.crawl

PUBLICATIONS = int(os.environ.get("PUBLICATIONS", "8"))
HOSTS = int(os.environ.get("PUBLICATION_HOSTS", "12"))
PAGES = int(os.environ.get("PUBLICATION_PAGES", "6"))
_PLACES = 4


class _Server:
    """Pages in a tree of depth, images, broken links, links to other servers, a part that robots.txt forbids."""

    def __init__(self, host: str) -> None:
        self._host = host

    def find(self, path: str) -> Answer | None:
        if path == "/robots.txt":
            return page("User-agent: *\nDisallow: /private", "text/plain")
        if path == "/":
            return self._page(0)
        if path.endswith(".gif"):
            return page(b"GIF89a" + path.encode() * 300, "image/gif")
        number = path.removeprefix("/p").removesuffix(".html")
        return self._page(int(number)) if number.isdecimal() and 0 < int(number) < PAGES else None

    def _page(self, number: int) -> Answer:
        below = [f"/p{2 * number + each}.html" for each in (1, 2) if 2 * number + each < PAGES]
        links = "".join(
            f'<a href="{each}">x</a>' for each in [*below, "/gone.html", "/private/x", "http://out.example/"]
        )
        return page(
            f'<html><body>{self._host} {number} <img src="/i{number % 3}.gif">{links}{"x" * 3000}</body></html>'
        )


def test_many_publications_under_one_agent(archive: Archive, capfd: pytest.CaptureFixture[str]) -> None:
    """Each is crawled once and whole; places and connections keep to their bounds; the agent stays small."""
    names = [f"pub{number:03}" for number in range(PUBLICATIONS)]
    hosts = {name: [f"www.{name}.example"] for name in names}
    for number in range(HOSTS - PUBLICATIONS):
        hosts[names[number % PUBLICATIONS]].append(f"s{number}.{names[number % PUBLICATIONS]}.example")
    with Site() as site:
        for each in (host for group in hosts.values() for host in group):
            site.mount(_Server(each), host=each)
        configure(
            archive,
            *(
                {"name": name, "urls": [f"http://{host}/" for host in hosts[name]], "interval": "1 month"}
                for name in names
            ),
            robots=True,
            depth=6,
            max_instances=_PLACES,
            wget_args=list(crawls.through(site.proxy)),
        )
        with agent(archive) as running:
            until(lambda: all(reports(archive, name) for name in names), "each has run", within=60 * PUBLICATIONS)
            memory = _memory(running.process.pid)
            until(lambda: not running.workers(), "the jobs have ended")
            assert running.stop() == 0
        assert [site.max_open(host) for group in hosts.values() for host in group] == [1] * HOSTS
        pages = Counter((request.host, request.path) for request in site.requests)
    assert set(pages.values()) == {1}, "nothing was asked for twice"
    assert not any(path.startswith("/private") for _, path in pages)
    told = [summary for name in names for summary in summaries(archive, reports(archive, name))]
    assert len(told) == PUBLICATIONS and all(each["complete"] for each in told)
    documents = PAGES + min(3, PAGES)
    assert sum(each["arcs"]["added"] for each in told) == HOSTS * documents
    assert sum(len(each["commit_tags"]) for each in told) == HOSTS
    found = tables.Tables()
    for each in told:
        with crawl_log.reading(archive.reports / each["job"]) as log:
            for number, line in enumerate(log, 1):
                found.add(tables.parse(line, number))
    whole = sum(row.urls for row in found.states.values())
    with capfd.disabled():
        for state, row in sorted(found.states.items(), key=lambda item: -item[1].urls):
            meaning = tables.state_meaning(state)
            print(f"{state:>5} {meaning:28} {row.urls:7} {100 * row.urls / whole:5.1f} %")
        print(f"{PUBLICATIONS} publications, {HOSTS} hosts, {whole} URLs; the agent has {memory >> 20} MiB")
    assert {state: row.urls for state, row in found.states.items()} == {
        "200": HOSTS * (documents + 1), "404": HOSTS, "-5": PUBLICATIONS, "-7": HOSTS,
    }  # fmt: skip
    assert run_command("verify", "--archive", archive.root, "--quick", timeout=600).code == 0


def _memory(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))
