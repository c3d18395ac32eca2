"""Sites that never end: a crawl ends all the same, exactly at its bounds, and crawl.log has the word for it."""

from __future__ import annotations

import re

import pytest

from agent.crawl.vocabulary import Status
from agent.jobs.publishing import JobOutcome
from tests.support import crawls, nasty
from tests.support.crawls import crawl, through
from tests.support.site import Everywhere, Site
from tests.support.wire import Answer, Exchange, page
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.metadata import now

pytestmark = pytest.mark.crawl


def _left_out(archive: Archive, outcome: JobOutcome, word: str) -> set[str]:
    log = crawls.log_lines(archive, outcome)
    found = {url for url, line in log.items() if word in line.notes}
    assert all(log[url].status == Status.TRAP for url in found)
    return found


def _calendar(*steps: int) -> Answer:
    """Each month links to those so many months away."""

    def answer(exchange: Exchange) -> None:
        match = re.fullmatch(r"(.*)/(\d+)/(\d+)/", exchange.request.path)
        assert match
        months = [int(match[2]) * 12 + int(match[3]) - 1 + step for step in steps]
        links = (f'<a href="{match[1]}/{month // 12}/{month % 12 + 1:02}/">x</a>' for month in months)
        page("".join(links))(exchange)

    return answer


def _endless(exchange: Exchange) -> None:
    """Pages of numbers, each linking to the one before, and home; and to where it may be shared."""
    path, _, number = exchange.request.path.partition("=")
    before = f"{path}={int(number) - 1}"
    page(f"<a href='{before}'>before</a><a href='/share?u={path}={number}'>s</a><a href=/>h</a>")(exchange)


def test_queries_of_one_path_are_counted_exactly_over_pages_and_runs(archive: Archive, site: Site) -> None:
    """Facets: every page links to fifty new combinations of itself, and to old ones."""

    def facets(exchange: Exchange) -> None:
        number = int(exchange.request.path.partition("?n=")[2] or 0)
        page("".join(f'<a href="/list?n={each}">x</a>' for each in range(number * 50, number * 50 + 55)))(exchange)

    for number in range(400):
        site.add_nasty(f"/list?n={number}", facets)
    site.add_nasty("/list", facets)
    site.add_html("/", '<a href="/list">l</a><a href="/other?n=1">o</a>')
    site.add_html("/other?n=1", "another path")
    stopper = crawls.StopAfter(site, 30)
    settings = {"name": "facets", "max_queries": 120, "depth": 50}
    crawl(archive, site.url(), stop=stopper.event, **settings)
    stopper.join()
    outcome = crawl(archive, site.url(), **settings)
    assert outcome.complete
    asked = {request.path for request in site.requests if request.path.startswith("/list?")}
    assert len(asked) == 120
    left_out = _left_out(archive, outcome, "trap:queries")
    assert len(left_out) > 50 and not {url.removeprefix(site.url("")) for url in left_out} & asked
    assert "other?n=1" in crawls.arcs(archive, site.host)


def test_a_page_that_has_more_queries_than_may_enter(archive: Archive, site: Site) -> None:
    site.add_html("/", "".join(f'<a href="/list?n={number}">x</a>' for number in range(30)) * 2)
    for number in range(30):
        site.add_html(f"/list?n={number}", "same")
    outcome = crawl(archive, site.url(), max_queries=7)
    assert len(crawls.arcs(archive, site.host)) == 8
    assert _left_out(archive, outcome, "trap:queries") == {site.url(f"/list?n={number}") for number in range(7, 30)}


def test_a_link_to_what_would_lie_thousands_deep_costs_nothing(archive: Archive, site: Site) -> None:
    """It is left out, and the next crawl, which asks whether it was there before, looks no further than need be."""
    deep = "/a" * 4000
    site.add_html("/", f'<a href="{deep}">x</a><a href="/b">b</a>')
    site.add_html("/b", "b")
    for _ in range(2):
        outcome = crawl(archive, site.url())
        assert outcome.complete
        assert _left_out(archive, outcome, "trap:path-depth") == {site.url(deep)}
    assert crawls.arcs(archive, site.host) == {"index.html", "b"}


def test_endless_host_names(archive: Archive, site: Site) -> None:
    def hosts(exchange: Exchange) -> None:
        label = exchange.request.host.partition(".")[0]
        page("".join(f'<a href="http://{label}{letter}.wide.example/">x</a>' for letter in "ab"))(exchange)

    site.unknown_host = hosts
    outcome = crawl(
        archive,
        "http://a.wide.example/",
        hosts=["*.wide.example"],
        max_hosts=9,
        depth=100,
        robots=False,
        wget_args=through(site.proxy),
    )
    assert outcome.complete
    assert len({request.host for request in site.requests}) == len(list(archive.domains())) == 10
    assert len(_left_out(archive, outcome, "trap:hosts")) == 11


def test_calendars_paths_that_grow_and_a_server_that_knows_every_page(archive: Archive, site: Site) -> None:
    for year in range(2000, 2100):
        site.mount(Everywhere(_calendar(-1, 1)), at=f"/{year}")
    site.mount(Everywhere(nasty.trap()), at="/soft")
    autumn = f"/{now().year + 4}/09/"
    site.add_html("/", f'<a href="{autumn}">calendar</a><a href="/soft/">soft</a>')
    outcome = crawl(archive, site.url(), depth=9, max_path_depth=7, max_years_ahead=4, max_repeats=4)
    assert outcome.complete
    log = crawls.log_lines(archive, outcome)
    begun = int(str(outcome.summary["started"])[:4])
    years = {int(request.path[1:5]) for request in site.requests if re.match(r"/20\d\d/", request.path)}
    assert max(years) == begun + 4
    assert _left_out(archive, outcome, "trap:calendar") == {site.url(f"/{begun + 5}/01/")}
    assert _left_out(archive, outcome, "trap:path-depth") > {site.url("/soft/1/2/1/2/1/2/")}
    assert site.url("/soft/1/1/1/1/1/") in _left_out(archive, outcome, "trap:repeats")
    assert all(request.path.count("/") <= 7 for request in site.requests)
    assert all(line.status > 0 or line.notes for line in log.values())


def test_a_calendar_backwards_ends_and_its_pattern_is_named(archive: Archive, site: Site) -> None:
    site.mount(Everywhere(_calendar(-1)), at="/cal")
    site.add_html("/", f'<a href="/cal/{now().year}/02/">calendar</a>')
    outcome = crawl(archive, site.url(), depth="unlimited", max_years_back=3)
    assert outcome.complete
    begun = int(str(outcome.summary["started"])[:4])
    assert _left_out(archive, outcome, "trap:calendar") == {site.url(f"/cal/{begun - 4}/12/")}
    log = crawls.log_lines(archive, outcome)
    assert f"pattern:{site.host}/cal/#" in log[site.url(f"/cal/{begun - 4}/12/")].notes


def test_pages_of_one_pattern_that_bring_nothing_new_end(archive: Archive, site: Site) -> None:
    for number in range(5, -400, -1):
        site.add_nasty(f"/day?o={number}", _endless)
    site.add_html("/", '<a href="/day?o=5">days</a>')
    outcome = crawl(archive, site.url(), depth="unlimited", max_pattern=50)
    assert outcome.complete
    assert 50 <= len([request for request in site.requests if request.path.startswith("/day?")]) <= 60
    log = crawls.log_lines(archive, outcome)
    left_out = _left_out(archive, outcome, "trap:pattern")
    assert left_out and f"pattern:{site.host}/day?o=#" in log[max(left_out)].notes


def test_a_chain_of_pages_with_content_of_their_own_does_not_end(archive: Archive, site: Site) -> None:
    """As drawn stories have them: each page links to the next alone, and shows an image of its own."""
    for number in range(40):
        site.add_html(f"/story/{number}", f'<a href="/story/{number + 1}">next</a><img src="/i/{number}.png">')
    site.add_html("/", '<a href="/story/0">begin</a>')
    crawl(archive, site.url(), depth="unlimited", max_pattern=10)
    assert site.count("/story/39") == 1
