"""How many URLs of one path, and how many hosts, a crawl takes: exact, whatever is in the frontier already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.crawl.discovery import QUERIES, TOO_MANY_HOSTS, UrlQuotas
from agent.crawl.frontier import FoundUrl, Frontier
from agent.crawl.scope import ScopeVerdict, domain_in
from agent.crawl.vocabulary import LinkKind
from webarcfs.archive.config.settings import CrawlSettings

pytestmark = pytest.mark.store

_SETTINGS = CrawlSettings(max_queries=2, max_hosts=2)
_OWN = "www.example.org"


@pytest.fixture
def frontier(tmp_path: Path) -> Iterator[Frontier]:
    """One that knows the start URL alone."""
    made = Frontier(tmp_path / "frontier.db")
    _found(made, f"http://{_OWN}/", kind=LinkKind.SEED)
    yield made
    made.close()


def _found(frontier: Frontier, *urls: str, kind: LinkKind = LinkKind.LINK, state: str = "waiting") -> None:
    finds = [FoundUrl(url=url, domain=domain_in(url), kind=kind, depth=1, hops="L", state=state) for url in urls]
    with frontier.changes():
        frontier.add(finds)


def _judge(crowd: UrlQuotas, url: str) -> ScopeVerdict | None:
    return crowd.judge(url, domain_in(url), domain_in(url) == _OWN)


@pytest.mark.parametrize(
    ("known", "asked", "verdicts"),
    [
        ([], ["/a?1", "/a?2", "/a?3"], [None, None, QUERIES]),
        (["/a?1"], ["/a?2", "/a?3"], [None, QUERIES]),
        (["/a?1", "/a?2"], ["/a?3", "/b?1"], [QUERIES, None]),
        (["/a?1", "/a?2"], ["/a", "/a/"], [None, None]),  # no query, no crowd
        (["/a", "/a/x?1"], ["/a?1", "/a?2"], [None, None]),  # other paths
        ([], ["/a?", "/a?x?y", "/a?z"], [None, None, QUERIES]),
    ],
)
def test_urls_that_differ_in_their_query_alone(
    frontier: Frontier, known: list[str], asked: list[str], verdicts: list[ScopeVerdict | None]
) -> None:
    _found(frontier, *(f"http://{_OWN}{path}" for path in known))
    crowd = UrlQuotas(frontier, _SETTINGS)
    assert [_judge(crowd, f"http://{_OWN}{path}") for path in asked] == verdicts


@pytest.mark.parametrize(
    ("known", "asked", "verdicts"),
    [
        ([], ["a.example", "b.example", "c.example"], [None, None, TOO_MANY_HOSTS]),
        (["a.example"], ["a.example", "b.example", "c.example", "a.example"], [None, None, TOO_MANY_HOSTS, None]),
        (["a.example", "b.example"], ["c.example", _OWN], [TOO_MANY_HOSTS, None]),  # hosts of start URLs are no find
        (["a.example", "b.example"], ["a.example:8080"], [TOO_MANY_HOSTS]),
    ],
)
def test_hosts_that_a_crawl_finds(
    frontier: Frontier, known: list[str], asked: list[str], verdicts: list[ScopeVerdict | None]
) -> None:
    _found(frontier, *(f"http://{host}/" for host in known))
    crowd = UrlQuotas(frontier, _SETTINGS)
    assert [_judge(crowd, f"http://{host}/x") for host in asked] == verdicts


def test_what_was_refused_takes_no_room(frontier: Frontier) -> None:
    _found(
        frontier,
        "http://a.example/?1",
        "http://b.example/?1",
        f"http://{_OWN}/?1",
        f"http://{_OWN}/?2",
        state="refused",
    )
    crowd = UrlQuotas(frontier, _SETTINGS)
    assert [_judge(crowd, url) for url in ("http://c.example/", f"http://{_OWN}/?3")] == [None, None]


def test_no_bound_is_zero(frontier: Frontier) -> None:
    crowd = UrlQuotas(frontier, CrawlSettings(max_queries=0, max_hosts=0))
    assert [_judge(crowd, f"http://h{number}.example/?{number}") for number in range(20)] == [None] * 20
    assert not crowd.is_uncertain("http://h1.example/?1")


def test_once_they_are_in_the_frontier_those_that_were_let_in_count_once(frontier: Frontier) -> None:
    """Of the same URL twice one is counted in the end; so the bound is uncertain until they are all written."""
    crowd = UrlQuotas(frontier, _SETTINGS)
    page = f"http://{_OWN}/a?1"
    assert (_judge(crowd, page), _judge(crowd, page)) == (None, None)
    assert crowd.is_uncertain(f"http://{_OWN}/a?2") and not crowd.is_uncertain(f"http://{_OWN}/b?2")
    _found(frontier, page)
    crowd.settle()
    assert not crowd.is_uncertain(f"http://{_OWN}/a?2")
    assert [_judge(crowd, f"http://{_OWN}/a?{number}") for number in (2, 3)] == [None, QUERIES]
