"""A server that says "not now" is left alone, all of it and by all jobs, as long as it asked (RFC 9110, RFC 6585)."""

from __future__ import annotations

import time
from email.utils import formatdate
from itertools import pairwise

import pytest

from agent.crawl import politeness
from tests.support import crawls, nasty
from tests.support.crawls import crawl, end, start_command
from tests.support.site import Site
from tests.support.wire import Exchange, error_page, page
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl

#: Between two requests: time enough to notice a refusal on a busy machine.
_WAIT = 1.2


def _links(count: int) -> str:
    return "".join(f'<a href="/{number}">x</a>' for number in range(count))


def _refusing(site: Site, paths: int, number: int, code: int, retry_after: str | None) -> None:
    """A home page and so many others; `number` refuses at first."""
    site.add_html("/", _links(paths))
    for each in range(paths):
        site.add_html(f"/{each}", f"page {each}")
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    refusals = iter([error_page(code, headers)])

    def answer(exchange: Exchange) -> None:
        next(refusals, page("at last"))(exchange)

    site.add_nasty(f"/{number}", answer)


def _pause_after_refusal(site: Site, number: int) -> float:
    """Seconds between the first request for a page and the next request of any."""
    times = [(request.time, request.path) for request in site.requests]
    first = next(index for index, (_, path) in enumerate(times) if path == f"/{number}")
    return times[first + 1][0] - times[first][0]


def test_the_rest_of_the_batch_waits_too(archive: Archive, site: Site) -> None:
    """Seconds. wget is between two requests when the refusal is noticed, so none comes in between."""
    _refusing(site, 3, 1, 429, "4")
    outcome = crawl(archive, site.url(), wait=_WAIT, robots=False)
    assert outcome.complete
    assert _pause_after_refusal(site, 1) >= 4
    assert len(crawls.arcs(archive, site.host)) == 4
    assert crawls.log_lines(archive, outcome)[site.url("/1")].notes == ("added", "tries:2")
    assert [site.count(f"/{each}") for each in range(3)] == [1, 2, 1]


def test_retry_after_as_a_date(archive: Archive, site: Site) -> None:
    until = time.time() + 8
    _refusing(site, 2, 0, 503, formatdate(until, usegmt=True))
    assert crawl(archive, site.url(), wait=_WAIT, robots=False).complete
    assert min(request.time for request in site.requests if request.path == "/1") >= int(until)


def test_without_a_wait_only_the_page_that_was_refused_waits(archive: Archive, site: Site) -> None:
    """wget cannot be stopped between two requests, and the server's lock file gets no pause."""
    _refusing(site, 3, 1, 429, "4")
    site.add_html("/2", '<a href="/later">x</a>')
    site.add_html("/later", "of the next batch")
    assert crawl(archive, site.url(), wait=0.0, robots=False).complete
    times = {path: [each.time for each in site.requests if each.path == path] for path in ("/1", "/2", "/later")}
    refused, again = times["/1"]
    assert again - refused >= 4
    assert times["/2"][0] < again and times["/later"][0] < again


def test_one_broken_page_that_says_503_does_not_stop_the_others(archive: Archive, site: Site) -> None:
    site.add_html("/", _links(4))
    for each in range(4):
        site.add_html(f"/{each}", f"page {each}")
    site.add_nasty("/1", nasty.status(503))
    outcome = crawl(archive, site.url())
    assert outcome.complete
    assert crawls.log_lines(archive, outcome)[site.url("/1")].notes == ("tries:3",)
    assert len(crawls.arcs(archive, site.host)) == 4


def test_a_server_that_never_stops_refusing_is_given_up_and_nothing_is_removed(
    archive: Archive, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(politeness, "PATIENCE", 3)
    site.add_html("/", _links(30))
    for each in range(30):
        site.add_html(f"/{each}", f"page {each}")
    crawl(archive, site.url(), name="nightly", robots=False)
    site.clear_log()
    for each in range(30):
        site.add_nasty(f"/{each}", nasty.too_many_requests(retry_after=0))
    outcome = crawl(archive, site.url(), name="nightly", robots=False, wait=_WAIT)
    assert not outcome.complete
    assert len(crawls.arcs(archive, site.host)) == 31
    assert len(site.requests) == 4, "the start page, and then three refusals"
    log = crawls.log_lines(archive, outcome)
    assert {line.notes[0] for line in log.values() if line.status == 429} == {politeness.SERVER_BUSY}


def test_the_pause_holds_in_all_jobs(archive: Archive, site: Site) -> None:
    """One job is told to wait; another that begins meanwhile waits as well, and both take turns."""
    _refusing(site, 2, 0, 429, "4")
    site.add_html("/other", "of the other job")
    options = ("--archive", archive.root, "--wait", str(_WAIT), "--no-robots")
    first = start_command("crawl", *options, site.url())
    second = None
    try:
        deadline = time.monotonic() + 60
        while site.count("/0") == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        second = start_command("crawl", *options, site.url("/other"))
        assert [first.wait(60), second.wait(60)] == [0, 0]
    finally:
        end(first)
        if second is not None:
            end(second)
    assert _pause_after_refusal(site, 0) >= 4
    assert {"index.html", "0", "1", "other"} == crawls.arcs(archive, site.host)
    times = [request.time for request in site.requests]
    assert min(later - earlier for earlier, later in pairwise(times)) >= _WAIT * 0.98
    assert site.max_open() == 1
