"""What an order or a stop finds under way is finished and kept: each URL is asked for once (S-order-1)."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import pytest

from agent.crawl import wgetpool
from agent.jobs.publishing import JobOutcome
from tests.service.test_orders import finished, order
from tests.support import crawls, nasty
from tests.support.agents import agent, configure, job_of
from tests.support.crawls import crawl, end, run_command, start_command
from tests.support.site import Site, page
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Exit
from webarcfs.archive.model.metadata import format_time, now

archive = crawls.archive
pytestmark = pytest.mark.crawl

#: The second asks for a pause between two requests.
_HOSTS = ("a.example", "b.example")
_PAUSE = 0.1
_PAGES = 32
#: Pages that come in pieces, for so many seconds; the others come at once, or after a moment.
_IN_PIECES, _SECONDS = (4, 13, 22), 4.0


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        for host in _HOSTS:
            site.add_html("/", "".join(f'<a href="/{number}">x</a>' for number in range(_PAGES)), host=host)
            for number in range(_PAGES):
                text = f"<html>{host} {number}</html>"
                answer = nasty.slow(0.1, page(text)) if number % 3 == 2 else page(text)
                if number in _IN_PIECES:
                    body = text.ljust(400).encode()
                    answer = nasty.drip(round(len(body) / _SECONDS), body)
                site.add_nasty(f"/{number}", answer, host=host)
        delay = f"User-agent: *\nCrawl-delay: {_PAUSE}\n"
        site.add("/robots.txt", delay, "text/plain", host="b.example")
        yield site


def _asked(site: Site) -> Counter[tuple[str, str]]:
    return Counter((request.host, request.path) for request in site.requests if request.path != "/robots.txt")


def _asked_of(site: Site, host: str) -> int:
    return sum(request.host == host for request in site.requests)


def _last_request(site: Site) -> float:
    return max(request.time for request in site.requests)


def test_each_url_is_asked_for_once_over_a_pause_a_restart_and_an_extension(archive: Archive, site: Site) -> None:
    """S-order-1: two hosts, one of them without a wait, four places; a document in pieces is under way each time."""
    urls = [f"http://{host}/" for host in _HOSTS]
    through = list(crawls.through(site.proxy))
    configure(
        archive,
        {"name": "p", "urls": urls, "interval": "1 day", "wait": 0.0, "at_deadline": "wait", "wget_args": through},
        robots=True,
        max_instances=4,
    )
    first, second, third = _IN_PIECES

    def under_way(number: int) -> float:
        until(lambda: site.count(f"/{number}", "b.example"), f"/{number} is under way", every=0.02)
        return time.time()

    def held() -> None:
        until(lambda: (known := job_of(archive, "p")) and known["held"] and not known["running"], "it is held")

    with agent(archive) as running:
        under_way(first)
        assert "taken (paused)" in order(archive, "p", "pause")
        ordered = time.time()
        until(lambda: "documents under way: " in order(archive, "show", "p"), "it tells what is under way")
        held()
        assert _last_request(site) < ordered + 2.0
        order(archive, "p", "resume")
        begun = under_way(second)
        assert running.stop() == 0
        assert _last_request(site) < begun + 2.0
    with agent(archive) as running:
        under_way(third)
        order(archive, "p", "deadline", "1 second")
        ordered = time.time()
        held()
        assert _last_request(site) < ordered + 3.0
        order(archive, "p", "deadline", format_time(now() + timedelta(hours=1)))
        assert finished(archive)["complete"]
        assert running.stop() == 0
    assert set(_asked(site).values()) == {1} and len(_asked(site)) == len(_HOSTS) * (_PAGES + 1)
    for host in _HOSTS:
        assert site.max_open(host) == 1
        assert len(crawls.arcs(archive, host)) == _PAGES + 1
    times = [request.time for request in site.requests if request.host == "b.example"][1:]
    assert min(later - earlier for earlier, later in pairwise(times)) >= _PAUSE * 0.98


def test_no_request_follows_one_that_fails_after_the_order(archive: Archive, site: Site) -> None:
    """S-order-1: without a wait, where the server closes the connection instead of an answer."""
    for number in range(_PAGES):
        site.add_nasty(f"/{number}", nasty.slow(0.7, nasty.close_before_head()), host="a.example")
    stopper = crawls.StopAfter(site, 4)
    assert _crawl(archive, site, stopper.event).interrupted
    assert len(_asked(site)) == 3 and _asked_twice(site) == set()


def test_a_resumed_job_does_not_wait_for_what_is_under_way(archive: Archive, site: Site) -> None:
    """S-order-1: the other server is asked on, and the one with the document once that is there."""
    _hurry(site, *_IN_PIECES[1:])
    for number in _IN_PIECES:
        site.add_html(f"/{number}", "at once", host="b.example")
    command = ("crawl", "--archive", archive.root, "--wait", "0", "http://a.example/", "http://b.example/")
    started = start_command(*command, http_proxy=site.proxy)
    try:
        until(lambda: site.count(f"/{_IN_PIECES[0]}", "a.example"), "it fetches", every=0.02)
        (folder,) = archive.jobs.iterdir()
        order(archive, folder.name, "pause")
        order(archive, folder.name, "resume")
        before = _asked_of(site, "b.example")
        until(lambda: _asked_of(site, "b.example") > before, "it goes on", every=0.02)
        assert not site.count(f"/{_IN_PIECES[0] + 1}", "a.example")
        assert started.wait(60) == Exit.DONE
    finally:
        end(started)
    assert set(_asked(site).values()) == {1} and site.max_open("a.example") == 1


def test_a_stop_waits_five_seconds_for_a_document_that_takes_longer(archive: Archive, site: Site) -> None:
    """S-order-2."""
    _hurry(site, *_IN_PIECES)
    site.add_nasty("/0", nasty.drip(10, b"x" * 4000), host="a.example")  # 400 seconds
    stopper = crawls.StopAfter(site, 3)  # robots.txt, the start page, /0
    begun = time.monotonic()
    assert _crawl(archive, site, stopper.event).interrupted
    assert 4.5 < time.monotonic() - begun < 200
    _hurry(site, 0)
    assert _crawl(archive, site).complete
    assert _asked_twice(site) == {"/0"}


def test_where_wget_cannot_be_held_what_has_begun_to_come_is_finished(
    archive: Archive, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-order-2: as under a filter of system calls. An answer that does not begin for a second is given up."""
    monkeypatch.setattr(wgetpool, "may_trace", lambda: False)
    late = _IN_PIECES[0] + 1
    _hurry(site, *_IN_PIECES[1:])
    site.add_nasty(f"/{late}", nasty.slow(300.0), host="a.example")
    assert _crawl(archive, site, crawls.StopAfter(site, _IN_PIECES[0] + 3).event).interrupted
    assert site.count(f"/{late}") == 0
    begun = time.monotonic()
    assert _crawl(archive, site, crawls.StopAfter(site, 1).event).interrupted
    assert time.monotonic() - begun < 200
    _hurry(site, late)
    assert _crawl(archive, site).complete
    assert _asked_twice(site) == {f"/{late}"}


def test_ctrl_c_in_a_terminal_finishes_what_is_under_way(archive: Archive, site: Site) -> None:
    """S-order-2: the signal goes to all processes of the terminal's group."""
    _hurry(site, *_IN_PIECES[1:])
    command = ("crawl", "--archive", archive.root, "--wait", "0", "http://a.example/")
    started = start_command(*command, http_proxy=site.proxy)
    try:
        until(lambda: site.count(f"/{_IN_PIECES[0]}"), "it fetches", every=0.02)
        os.killpg(started.pid, signal.SIGINT)
        assert started.wait(60) == Exit.INCOMPLETE
    finally:
        end(started)
    assert not site.count(f"/{_PAGES - 1}")
    assert run_command(*command, http_proxy=site.proxy).code == Exit.DONE
    assert _asked_twice(site) == set()


def _hurry(site: Site, *numbers: int) -> None:
    for number in numbers:
        site.add_html(f"/{number}", "at once", host="a.example")


def _crawl(archive: Archive, site: Site, stop: threading.Event | None = None) -> JobOutcome:
    return crawl(archive, "http://a.example/", name="p", stop=stop, wget_args=crawls.through(site.proxy))


def _asked_twice(site: Site) -> set[str]:
    return {path for (_, path), times in _asked(site).items() if times > 1}
