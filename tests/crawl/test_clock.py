"""The machine's clock is set in the middle of a crawl, or while it is interrupted: no wait is the longer for it."""

from __future__ import annotations

import time

import pytest

from agent.crawl.frontier import FoundUrl, Frontier, UrlOutcome
from agent.crawl.politeness import LONGEST_PAUSE
from tests.support import crawls, nasty
from tests.support.crawls import StopAfter, crawl
from tests.support.site import Exchange, Site, page
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl

_HOUR = 3600.0


@pytest.mark.parametrize("hours", [-50, 50])
@pytest.mark.parametrize("wait", [0.0, 0.2])
def test_a_pause_lasts_as_long_as_was_asked_for(
    archive: Archive, site: Site, monkeypatch: pytest.MonkeyPatch, hours: int, wait: float
) -> None:
    """Of the server, and of a page that failed; and robots.txt is not asked for again and again."""
    real = time.time
    asked: list[float] = []

    def busy(exchange: Exchange) -> None:
        asked.append(time.monotonic())
        if len(asked) == 1:
            monkeypatch.setattr(time, "time", lambda: real() + hours * _HOUR)
            nasty.too_many_requests(retry_after=2)(exchange)
        else:
            page("at last")(exchange)

    site.add_html("/", '<a href="/busy">b</a><a href="/flaky">f</a>')
    site.add_nasty("/busy", busy)
    site.add_nasty("/flaky", nasty.flaky(1))
    outcome = crawl(archive, site.url(), wait=wait)
    assert outcome.complete
    assert crawls.arcs(archive, site.host) == {"index.html", "busy", "flaky"}
    assert 2 <= asked[1] - asked[0] < 60
    assert site.count("/robots.txt") == 1


def test_after_an_interruption_no_url_waits_longer_than_a_pause_can_be(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/a">a</a>')
    site.add_nasty("/a", nasty.hang())
    stop = StopAfter(site, 3)
    assert crawl(archive, site.url(), stop=stop.event).interrupted
    stop.join()
    (folder,) = archive.jobs.iterdir()
    frontier = Frontier(folder / "frontier.db")
    row = frontier.by_url(site.url("/a"))
    assert row is not None
    with frontier.changes():  # as a process whose clock was days ahead leaves it
        frontier.settle(
            [UrlOutcome(id=row.id, state="waiting", status=0, tried=0, not_before=time.time() + 90 * _HOUR)]
        )
        frontier.add([FoundUrl(url=site.url("/b"), domain=site.host, kind="link", depth=1, hops="L")])
        frontier.bound_waits(time.time() + LONGEST_PAUSE)
    assert frontier.waiting()[site.host] + 1 > 0 and frontier.next(site.host, time.time() + LONGEST_PAUSE, 9)
    assert {each.url for each in frontier.next(site.host, time.time(), 9)} == {site.url("/b")}
    assert len(frontier.next(site.host, time.time() + LONGEST_PAUSE, 9)) == 2
    frontier.close()
