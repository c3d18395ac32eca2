"""Several domains at once, with every nastiness there is: each limit holds exactly, and crawl.log explains each URL.

One crawl by the command; what the servers saw is counted and timed from their own log.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest

from agent.crawl.vocabulary import Status
from tests.support import crawls
from tests.support.crawls import Line, run_command
from tests.support.site import Site
from tests.support.world import LINKS, World
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import now

pytestmark = pytest.mark.crawl

_WAIT = 0.2
_SETTINGS = f"""
[crawl]
wait = {_WAIT}
depth = 7
max_instances = 3
timeout = 2
max_document_time = "2 seconds"
max_file_size = 200000
max_total_size = 10000000
max_hosts = 3
max_queries = 12
max_path_depth = 4
max_repeats = 3
max_parameters = 20
max_years_ahead = 2
sitemaps = false
filters = ["mime", "adverts"]
user_agent = "webarcfs-test/1 (+mailto:tester@example.org)"

[profile.text]
include = ["text/*"]
"""
_PUBLICATION = """
[[publication]]
name = "world"
urls = {urls}
hosts = ["*.many.example", "excluded.example"]
exclude_hosts = ["excluded.*"]
proxy = {proxy}
start = 2026-01-01T00:00:00
"""


@dataclass(frozen=True)
class Crawled:
    """The world after its crawl."""

    site: Site
    world: World
    archive: Archive
    log: dict[str, Line]
    summary: dict[str, object]

    def notes(self, word: str) -> set[str]:
        """The URLs whose line has a word."""
        return {url for url, line in self.log.items() if word in line.notes}

    def times(self, host: str) -> list[float]:
        """When a host was asked."""
        return [request.time for request in self.site.requests if request.host == host]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with Site() as site:
        world = World(site)
        archive = directory.create(tmp_path_factory.mktemp("world") / "archive")
        publication = _PUBLICATION.format(urls=json.dumps(world.starts), proxy=json.dumps(site.proxy))
        archive.settings.write_text(_SETTINGS + publication, "utf-8")
        done = run_command("start", "--archive", archive.root, "--once", timeout=240)
        assert done.code in (0, 3), done.err
        (report,) = archive.reports.iterdir()
        yield Crawled(
            site, world, archive, crawls.log_lines(archive, report.name), crawls.summary_of(archive, report.name)
        )


def test_every_host_is_archived_and_the_crawl_is_complete(crawled: Crawled) -> None:
    assert crawled.summary["complete"] is True
    assert set(crawled.world.hosts) <= set(crawled.archive.domains())


def test_every_url_that_is_seen_and_not_archived_is_explained(crawled: Crawled) -> None:
    archived = {"added", "changed", "unchanged"}
    for url, line in crawled.log.items():
        explained = line.status not in (200, 0) and (line.status > 0 or line.notes)
        refused = any(note.startswith("filter:") for note in line.notes)
        assert archived & set(line.notes) or explained or refused or line.path.endswith("P"), line
        assert line.status != Status.TRAP or any(note.startswith("trap:") for note in line.notes), url


def test_every_request_is_in_the_log_and_no_other(crawled: Crawled) -> None:
    asked = {f"http://{request.host}{request.path}" for request in crawled.site.requests}
    tried = {url for url, line in crawled.log.items() if line.worker != "#000"}
    assert asked == tried


def test_a_server_is_asked_one_thing_at_a_time_with_pauses(crawled: Crawled) -> None:
    for host in {request.host for request in crawled.site.requests}:
        assert crawled.site.max_open(host) == 1, host
        times = crawled.times(host)
        assert min((later - earlier for earlier, later in pairwise(times)), default=_WAIT) >= _WAIT * 0.95, host
    polite = crawled.times("polite.example")[1:]
    assert min(later - earlier for earlier, later in pairwise(polite)) >= 0.38, "its robots.txt asks for 0.4 s"
    assert {request.headers["user-agent"] for request in crawled.site.requests} == {
        "webarcfs-test/1 (+mailto:tester@example.org)"
    }


def test_what_is_forbidden_excluded_or_foreign_is_not_asked(crawled: Crawled) -> None:
    assert crawled.notes("robots") == {"http://polite.example/private"}
    assert crawled.notes("excluded-host") == {"http://excluded.example/"}
    assert crawled.notes("host") == {"http://foreign.test/", "http://foreign.test/x"}
    assert crawled.site.count("/private") == 0


def test_a_busy_server_is_left_alone(crawled: Crawled) -> None:
    requests = [request for request in crawled.site.requests if request.host == "busy.example"]
    first = next(number for number, request in enumerate(requests) if request.path == "/2")
    assert requests[first + 1].time - requests[first].time >= 2
    assert crawls.arcs(crawled.archive, "busy.example") == {"index.html", "1", "2", "3"}


def test_troubles_end_and_cost_no_other_page(crawled: Crawled) -> None:
    said = {url.rpartition("/")[2]: (line.status, line.notes) for url, line in crawled.log.items() if "broken" in url}
    assert said["drip"] == (Status.TIME_LIMIT, ("time-limit",))
    assert said["endless"] == (Status.QUOTA, ("too-big",))
    assert said["hang"] == (Status.TIMEOUT, ("timeout", "tries:3"))
    assert said["cut"] == (Status.CONNECTION_LOST, ("truncated", "tries:3"))
    assert said["503"] == (503, ("tries:3",))
    assert said["loop"] == (302, ("redirect-loop",))
    assert crawls.arcs(crawled.archive, "broken.example") == {"index.html", "longer", "good"}


def test_traps_end_at_their_bounds(crawled: Crawled) -> None:
    year = now().year
    words = Counter(note for line in crawled.log.values() for note in line.notes if note.startswith("trap:"))
    assert crawled.notes("trap:calendar") == {f"http://traps.example/{year + 3}/01/"}
    assert words["trap:parameters"] == 1
    assert "http://traps.example/1/2/3/4/5/6" in crawled.notes("trap:path-depth")
    assert words["trap:queries"] == LINKS - 12
    assert sum(request.path.startswith("/list?") for request in crawled.site.requests) == 12
    found = {request.host for request in crawled.site.requests} - set(crawled.world.hosts)
    assert len(found) == 3 and words["trap:hosts"] > 0
    assert all(request.path.partition("?")[0].count("/") <= 4 for request in crawled.site.requests)
