"""What a crawl may remove: what its own publication saw and nobody else holds, and nothing at all when in doubt."""

from __future__ import annotations

import threading

import pytest

from agent.crawl.vocabulary import Status
from tests.support import crawls, nasty
from tests.support.crawls import count, crawl, run_command
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl

_PAGES = 10


def _fill(site: Site) -> set[str]:
    site.add_html("/", "".join(f'<a href="/{number}">{number}</a>' for number in range(_PAGES)))
    for number in range(_PAGES):
        site.add_html(f"/{number}", f"Page {number}.")
    return {"index.html", *map(str, range(_PAGES))}


def test_two_publications_on_one_host_in_turns(archive: Archive, site: Site) -> None:
    every = _fill(site)
    for _ in range(2):
        assert crawl(archive, site.url(), name="whole").complete
        assert crawls.arcs(archive, site.host) == every
        assert crawl(archive, site.url(), name="home", depth=0).complete
        assert crawls.arcs(archive, site.host) == every
    # What one no longer sees stays while the other holds it, and goes when neither does.
    assert crawl(archive, site.url("/3"), name="three", depth=0).complete
    site.add_html("/", "".join(f'<a href="/{number}">{number}</a>' for number in range(_PAGES) if number not in (3, 4)))
    assert count(crawl(archive, site.url(), name="whole")) == (0, 1, 1, 8)
    assert crawls.arcs(archive, site.host) == every - {"4"}
    site.gone("/3")
    assert crawl(archive, site.url("/3"), name="three", depth=0, accept_shrink=True).summary["arcs"] == {
        "added": 0,
        "changed": 0,
        "removed": 1,
        "unchanged": 0,
    }
    assert crawls.arcs(archive, site.host) == every - {"3", "4"}


def test_a_host_only_touched_for_images_loses_nothing(archive: Archive, site: Site) -> None:
    through = crawls.through(site.proxy)
    site.add_html("/", '<img src="http://media.example/logo.png">', host="a.example")
    site.add("/logo.png", b"\x89PNG\r\n\x1a\n", "image/png", host="media.example")
    site.add_html("/", '<a href="/x">x</a>', host="media.example")
    site.add_html("/x", "x", host="media.example")
    crawl(archive, "http://media.example/", name="media", wget_args=through)
    crawl(archive, "http://a.example/", name="a", hosts=["media.example"], wget_args=through)
    assert crawls.arcs(archive, "media.example") == {"index.html", "x", "logo.png"}
    site.add_html("/", "no image any more", host="a.example")
    crawl(archive, "http://a.example/", name="a", hosts=["media.example"], wget_args=through)
    assert {"index.html", "x"} <= crawls.arcs(archive, "media.example")


def test_a_site_that_shrinks_too_much_is_not_believed(archive: Archive, site: Site) -> None:
    every = _fill(site)
    options = ("--archive", archive.root, "--wait", "0", site.url())
    assert run_command("crawl", *options).code == 0
    site.add_html("/", "This site is for sale.")
    done = run_command("crawl", *options)
    assert done.code == 3
    assert "found 1 of the 11 ARCs" in done.err and "--accept-shrink" in done.err
    assert crawls.arcs(archive, site.host) == every
    assert b"for sale" in crawls.read(archive, site.host, "index.html"), "what was found is published"
    report = max(each.name for each in archive.reports.iterdir())
    summary = crawls.summary_of(archive, report)
    assert (summary["complete"], summary["arcs"]["removed"]) == (False, 0)
    head = crawls.store(archive, site.host).head()
    assert head is not None and dict(head.message.trailers)["Complete"] == "no"
    assert run_command("crawl", *options).code == 3, "it is not believed the second time either"
    assert run_command("crawl", "--min-share", "0.05", *options).code == 0
    assert crawls.arcs(archive, site.host) == {"index.html"}


def test_accept_shrink_removes(archive: Archive, site: Site) -> None:
    _fill(site)
    crawl(archive, site.url())
    site.add_html("/", "Small is beautiful.")
    assert not crawl(archive, site.url()).complete
    done = run_command("crawl", "--archive", archive.root, "--wait", "0", "--accept-shrink", site.url(), "--timeout=20")
    assert done.code == 0
    assert crawls.arcs(archive, site.host) == {"index.html"}
    assert count(crawl(archive, site.url())) == (0, 0, 0, 1)


def test_a_server_that_goes_down_midway_costs_nothing(archive: Archive) -> None:
    with Site() as site:
        every = _fill(site)
        port = site.port
        crawl(archive, site.url())
    with Site(port) as site:
        _fill(site)
        site.gone("/0")  # would be removed
        site.add_nasty("/1", nasty.hang())
        ending = _end_when(crawls.StopAfter(site, 4), site)  # while wget waits for /1
        outcome = crawl(archive, f"http://127.0.0.1:{port}/", timeout=5)
        ending.join()
    assert not outcome.complete
    assert "server down" in outcome.warnings[0]
    assert crawls.arcs(archive, f"127.0.0.1:{port}") == every
    log = crawls.log_lines(archive, outcome)
    assert log[f"http://127.0.0.1:{port}/1"].status == Status.CONNECT_FAILED
    assert "connection-refused" in log[f"http://127.0.0.1:{port}/1"].notes


def _end_when(stopper: crawls.StopAfter, site: Site) -> threading.Thread:
    """Ends the server as a crash would."""

    def wait() -> None:
        stopper.join()
        site.__exit__(None, None, None)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_a_crawl_that_is_stopped_goes_on_where_it_was(archive: Archive, site: Site) -> None:
    every = _fill(site)
    site.add_nasty("/5", nasty.slow(1.0))
    stopper = crawls.StopAfter(site, 6)
    outcome = crawl(archive, site.url(), stop=stopper.event)
    stopper.join()
    assert outcome.interrupted and not outcome.tags
    assert list(archive.domains()) == []
    assert len(list(archive.jobs.iterdir())) == 1
    assert crawl(archive, site.url()).complete
    assert crawls.arcs(archive, site.host) == every
    assert {site.count(f"/{path}") for path in every - {"index.html", "5"}} == {1}
    assert list(archive.jobs.iterdir()) == []


def test_nothing_left_at_all(archive: Archive, site: Site) -> None:
    every = _fill(site)
    crawl(archive, site.url())
    for path in ("/", *(f"/{number}" for number in range(_PAGES))):
        site.gone(path)
    outcome = crawl(archive, site.url())
    assert not outcome.complete
    assert crawls.arcs(archive, site.host) == every


# -- pages that sitemaps list ------------------------------------------------------------------------------------------


def _list(site: Site, *paths: str) -> None:
    """A sitemap with these pages, which a crawl finds in its usual place."""
    places = "".join(f"<url><loc>{site.url(path)}</loc></url>" for path in paths)
    head = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    site.add("/sitemap.xml", f"{head}{places}</urlset>".encode(), "application/xml")


def test_a_listed_page_that_is_gone_goes_unless_another_publication_holds_it(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/linked">linked</a>')
    for path in ("/linked", "/held", "/other"):
        site.add_html(path, f"Page {path}.")
    _list(site, "/held", "/other")
    assert crawl(archive, site.url(), name="mine", sitemaps=True).complete
    assert {"held", "other"} <= crawls.arcs(archive, site.host)
    assert crawl(archive, site.url("/held"), name="second", depth=0).complete
    site.gone("/held")
    site.gone("/other")
    assert crawl(archive, site.url(), name="mine", sitemaps=True).complete
    assert crawls.arcs(archive, site.host) & {"held", "other"} == {"held"}


def test_a_listed_url_that_is_gone_takes_nothing_from_another_url_of_its_place(archive: Archive, site: Site) -> None:
    """`/d/` has the bytes that `/d/index.html` had: the ARC was met."""
    site.add_html("/", '<a href="/linked">linked</a>')
    site.add_html("/linked", "Linked.")
    site.add_html("/d/index.html", "The same.")
    _list(site, "/d/index.html")
    assert crawl(archive, site.url(), sitemaps=True).complete
    assert "d/index.html" in crawls.arcs(archive, site.host)
    site.gone("/d/index.html")
    site.add_html("/d/", "The same.")
    site.add_html("/", '<a href="/linked">linked</a><a href="/d/">d</a>')
    assert crawl(archive, site.url(), sitemaps=True).complete
    assert "d/index.html" in crawls.arcs(archive, site.host)


@pytest.mark.parametrize("sitemaps", [True, False])
def test_what_only_an_incomplete_crawl_saw_is_not_taken_for_listed(
    archive: Archive, site: Site, sitemaps: bool
) -> None:
    """A complete crawl removes what the last complete one saw; sitemaps change nothing about that."""
    site.add_html("/", '<a href="/a">a</a>')
    site.add_html("/a", "a")
    assert crawl(archive, site.url(), sitemaps=sitemaps).complete
    site.add_html("/", '<a href="/a">a</a><a href="/new">new</a><a href="/big">big</a>')
    site.add_html("/new", "new")
    site.add_html("/big", "x" * 30_000)
    assert not crawl(archive, site.url(), sitemaps=sitemaps, max_total_size=20_000).complete
    assert "new" in crawls.arcs(archive, site.host)
    site.gone("/new")
    assert crawl(archive, site.url(), sitemaps=sitemaps).complete
    assert "new" in crawls.arcs(archive, site.host)
