"""Crawls of one server that overlap: what was captured before never becomes newer than what was captured after."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest

from agent.crawl import job_folder
from agent.crawl.job_folder import Phase
from agent.jobs import publishing
from agent.jobs.publishing import JobOutcome
from tests.support import crawls
from tests.support.crawls import StopAfter, crawl
from tests.support.nasty import slow
from tests.support.site import Site, page, redirect
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS
from webarcfs.archive.history import redirect_lists
from webarcfs.archive.history.sequence import Feed
from webarcfs.archive.model.metadata import now
from webarcfs.archive.system import locks

pytestmark = pytest.mark.crawl


@pytest.fixture
def pages(site: Site) -> Site:
    site.add_html("/", '<a href="/a">a</a><a href="/gone">g</a><a href="/b">b</a>')
    for name in ("a", "b", "gone"):
        site.add_html(f"/{name}", f"{name}, first")
    return site


def next_second() -> None:
    """Captures have whole seconds."""
    begun = now()
    until(lambda: (now() - begun).total_seconds() >= 1.1, "the next second")


@contextlib.contextmanager
def crawling(archive: Archive, site: Site, stop: threading.Event, **how: object) -> Iterator[list[JobOutcome]]:
    """A crawl in a thread; the list has its outcome afterwards."""
    outcomes: list[JobOutcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(crawl(archive, site.url(), stop=stop, **how)))
    thread.start()
    try:
        yield outcomes
    finally:
        stop.set()
        thread.join(120)
        assert not thread.is_alive()


def state_of(archive: Archive) -> Phase | None:
    return next(
        (found.state for path in archive.jobs.iterdir() if (found := job_folder.load_item(path)) is not None), None
    )


def test_a_job_that_waits_for_another_one_to_publish_stops_when_it_is_told_to(archive: Archive, pages: Site) -> None:
    """And one that waited until another crawl had come and gone takes its place in time: main stays."""
    crawl(archive, pages.url(), name="first")
    stop = threading.Event()
    pages.add_html("/a", "a, second")
    with locks.exclusive(archive.publishing_lock(pages.host)):
        with crawling(archive, pages, stop, name="waits") as outcomes:
            until(lambda: state_of(archive) is Phase.CONVERTING, "all is fetched")
            until(lambda: len(pages.requests) == 10, "both crawls asked for all")
        assert [each.interrupted for each in outcomes] == [True]
        assert state_of(archive) is Phase.INTERRUPTED
    next_second()
    pages.gone("/gone")
    pages.add_html("/a", "a, third")
    newer = crawl(archive, pages.url(), name="first")
    assert crawls.count(newer) == (0, 1, 1, 2)
    main = crawls.head_of(archive, pages.host)

    resumed = crawl(archive, pages.url(), name="waits")
    assert crawls.head_of(archive, pages.host) == main
    assert b"a, third" in crawls.read(archive, pages.host, "a")
    assert not resumed.complete and any("older than what is there" in each for each in resumed.warnings)
    (tag,) = resumed.tags
    repository = crawls.store(archive, pages.host)
    times = list(repository.refs(CRAWLS))
    older = repository.refs(CRAWLS)[times[1]]
    assert str(repository.commit(older).message.tag) == tag < newer.tags[0]
    assert b"a, second" in crawls.read(archive, pages.host, "a", older)
    assert "gone" in crawls.arcs(archive, pages.host, older)
    assert list(Feed(archive.changes).lines())[-1] == tag


def test_of_a_job_that_goes_on_what_was_captured_before_the_newer_crawl_is_older(archive: Archive, pages: Site) -> None:
    crawl(archive, pages.url(), name="first")
    pages.add_html("/a", "a, second")
    pages.add_nasty("/b", slow(300, page("b")))
    stop = StopAfter(pages, 5)
    crawl(archive, pages.url(), name="slow", stop=stop.event)
    stop.join()
    until(lambda: list(archive.jobs.iterdir()), "it was interrupted")
    next_second()
    pages.add_html("/a", "a, third")
    pages.add_html("/b", "b, third")
    crawl(archive, pages.url(), name="first")
    pages.add_html("/b", "b, fourth")
    pages.clear_log()
    resumed = crawl(archive, pages.url(), name="slow")
    assert pages.count("/a") == 0, "it had that"
    assert b"a, third" in crawls.read(archive, pages.host, "a")
    assert b"b, fourth" in crawls.read(archive, pages.host, "b")
    notes = {url: line.notes for url, line in crawls.log_lines(archive, resumed).items()}
    assert notes[pages.url("/a")] == ("older", "unchanged")
    assert "changed" in notes[pages.url("/b")]
    assert resumed.complete


def test_a_crawl_that_is_told_to_stop_publishes_nothing_of_a_domain_or_all(
    archive: Archive, pages: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a domain as well: the next one publishes it whole, and fetches nothing again."""
    stop = threading.Event()
    flow = publishing.unpack

    def stopping(documents, run):  # type: ignore[no-untyped-def]
        for document in flow(documents, run):
            stop.set()
            yield document

    monkeypatch.setattr(publishing, "STAGES", (("unpack", stopping), *publishing.STAGES[1:]))
    assert crawl(archive, pages.url(), stop=stop).interrupted
    assert list(Feed(archive.changes).lines()) == []
    asked = len(pages.requests)
    monkeypatch.undo()
    assert crawl(archive, pages.url()).complete
    assert len(pages.requests) == asked


def test_a_redirect_that_was_captured_before_the_newer_crawl_is_older(archive: Archive, site: Site) -> None:
    """Another redirect, a page that redirects by now, a redirect that is a page by now."""
    site.add_html("/", "".join(f'<a href="/{name}">x</a>' for name in "acdb"))
    for name in "acd":
        site.add_html(f"/{name}", f"{name}, first")
    site.add_nasty("/b", slow(300, page("b")))
    site.add_nasty("/a", redirect("/old"))
    site.add_nasty("/d", redirect("/old"))
    stop = StopAfter(site, 6)
    crawl(archive, site.url(), name="slow", stop=stop.event)
    stop.join()
    until(lambda: list(archive.jobs.iterdir()), "it was interrupted")
    next_second()
    site.add_html("/b", "b")
    site.add_nasty("/a", redirect("/new"))
    site.add_nasty("/c", redirect("/new"))
    site.add_html("/d", "d, second")
    crawl(archive, site.url(), name="first")
    before = crawls.files(archive, site.host)
    site.clear_log()
    resumed = crawl(archive, site.url(), name="slow")
    assert site.count("/a") == site.count("/c") == site.count("/d") == 0, "it had those"
    now_there = crawls.files(archive, site.host)
    assert {path for path in before if before[path] != now_there.get(path)} <= {"b", "index.html"}
    assert set(now_there) - set(before) <= {"old"}
    repository = crawls.store(archive, site.host)
    led = {each.url: each.target for each in redirect_lists.every(repository, crawls.tree(archive, site.host))}
    assert led == {site.url(path): site.url("/new") for path in ("/a", "/c")}
    assert "c" not in crawls.arcs(archive, site.host) and "d" in crawls.arcs(archive, site.host)
    notes = {url: line.notes for url, line in crawls.log_lines(archive, resumed).items()}
    assert "older" in notes[site.url("/a")] and "older" in notes[site.url("/c")]
    assert notes[site.url("/d")] == ("redirect-held",)
