"""What a crawl asks for and what it leaves alone: depth, hosts, robots.txt, pauses, limits (/Cr-1.1/, /Cr-7/)."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest

from agent.crawl.vocabulary import Status
from agent.jobs import crawljob
from tests.support import crawls, nasty
from tests.support.crawls import crawl, run_command
from tests.support.site import Everywhere, Site, page, redirect
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import Exclusion

pytestmark = pytest.mark.crawl


def _links(*paths: str) -> str:
    return "".join(f'<a href="{path}">{path}</a>\n' for path in paths)


# -- depth -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("depth", "expected"), [(0, "index.html"), (1, "index.html 1"), (2, "index.html 1 2")])
def test_depth_counts_links_from_the_start(archive: Archive, site: Site, depth: int, expected: str) -> None:
    for number, path in enumerate(["/", "/1", "/2", "/3"], 1):
        site.add_html(path, _links(f"/{number}"))
    outcome = crawl(archive, site.url(), depth=depth)
    assert crawls.arcs(archive, site.host) == set(expected.split())
    refused = crawls.log_lines(archive, outcome)[site.url(f"/{depth + 1}")]
    assert (refused.status, refused.notes) == (Status.TOO_MANY_HOPS, ("depth",))
    assert site.count(f"/{depth + 1}") == 0


def test_a_shorter_way_that_is_found_later_counts(archive: Archive, site: Site) -> None:
    # /far is found at depth 3 by way of /a/b, and at depth 1 by way of a page that is late: what /far links to is in.
    site.add_html("/", _links("/late", "/a"))
    site.add_html("/a", _links("/b"))
    site.add_html("/b", _links("/far"))
    site.add_nasty("/late", nasty.flaky(2, then=page(_links("/far"))))
    site.add_html("/far", _links("/farther"))
    site.add_html("/farther", _links("/farthest"))
    site.add_html("/farthest", _links("/out"))
    site.add_html("/out", "")
    outcome = crawl(archive, site.url(), depth=4)
    assert crawls.arcs(archive, site.host) == {"index.html", "late", "a", "b", "far", "farther", "farthest"}
    log = crawls.log_lines(archive, outcome)
    assert log[site.url("/farthest")].path == "LLLL"
    assert log[site.url("/out")].notes == ("depth",)
    assert site.count("/far") == 1


def test_requisites_and_redirects_cost_no_depth(archive: Archive, site: Site) -> None:
    site.add_html("/", '<link rel="stylesheet" href="/style.css"><img src="/a.png"><a href="/page">p</a>')
    site.add("/style.css", '@import "more.css"; body { background: url(/b.png) }', "text/css")
    site.add("/more.css", "p { background: url(/c.png) }", "text/css")
    for name in "abc":
        site.add(f"/{name}.png", b"\x89PNG\r\n\x1a\n" + name.encode(), "image/png")
    site.add_nasty("/moved", redirect("/"))
    outcome = crawl(archive, site.url("/moved"), depth=0)
    assert outcome.complete and not outcome.warnings
    assert crawls.arcs(archive, site.host) == {"index.html", "style.css", "more.css", "a.png", "b.png", "c.png"}
    log = crawls.log_lines(archive, outcome)
    assert log[site.url("/c.png")].path == "REEE"
    assert log[site.url("/c.png")].referrer == site.url("/more.css")


def test_requisites_can_be_left_out(archive: Archive, site: Site) -> None:
    site.add_html("/", '<link rel="stylesheet" href="/style.css"><img src="/a.png"><a href="/page">p</a>')
    site.add_html("/page", '<img src="/b.png">')
    site.add("/style.css", "", "text/css")
    crawl(archive, site.url(), depth=0, page_requisites=False)
    assert crawls.arcs(archive, site.host) == {"index.html"}


def test_parts_of_a_site_are_left_out_and_the_reason_is_kept(archive: Archive, site: Site) -> None:
    site.add_html("/", _links("/old/a", "/new"))
    site.add_html("/old/a", "")
    site.add_html("/new", "")
    pattern = f"{site.host.partition(':')[0]}/old/*"
    exclude = (Exclusion(match=pattern, reason="appraised"),)
    outcome = crawl(archive, site.url(), name="pub", exclude=exclude)
    assert crawls.log_lines(archive, outcome)[site.url("/old/a")].notes == ("excluded",)
    assert not any(request.path.startswith("/old") for request in site.requests)
    record, _ = Catalogue(archive).read(outcome.job)
    assert record.text(13) == f"{pattern} (appraised)"
    kept = Catalogue(archive).file("publications/pub.json")
    assert kept is not None and json.loads(kept)["publication"]["exclude"] == [
        {"match": pattern, "reason": "appraised"}
    ]


# -- hosts -------------------------------------------------------------------------------------------------------------


def test_other_hosts_are_refused_and_named(archive: Archive, site: Site) -> None:
    site.add_html("/", _links("http://b.example/x", "http://c.b.example/", "http://d.example/", "ftp://e.example/"))
    for host in ("b.example", "c.b.example", "d.example"):
        site.add_html("/", "", host=host)
        site.add_html("/x", "", host=host)
    outcome = crawl(
        archive, site.url(), hosts=["*.example"], exclude_hosts=["d.*"], wget_args=crawls.through(site.proxy)
    )
    log = crawls.log_lines(archive, outcome)
    assert set(archive.domains()) == {site.host, "b.example", "c.b.example"}
    assert log["http://d.example/"].notes == ("excluded-host",)
    assert not any(request.host == "d.example" for request in site.requests)
    only_own = crawls.log_lines(archive, crawl(archive, site.url(), name="own", wget_args=crawls.through(site.proxy)))
    assert {url: line.notes for url, line in only_own.items() if line.status == Status.OUT_OF_SCOPE} == {
        "http://b.example/x": ("host",),
        "http://c.b.example/": ("host",),
        "http://d.example/": ("host",),
    }


def test_where_a_start_page_redirects_to_belongs_to_it(archive: Archive, site: Site) -> None:
    site.add_nasty("/", redirect("http://www.b.example/"), host="b.example")
    site.add_nasty("/", redirect("http://new.b.example/home/"), host="www.b.example")
    site.add_html("/home/", _links("/x", "http://away.example/", "http://b.example/old"), host="new.b.example")
    site.add_nasty("/x", redirect("http://away.example/x"), host="new.b.example")
    site.add_html("/old", "still here", host="b.example")
    outcome = crawl(archive, "http://b.example/", wget_args=crawls.through(site.proxy))
    assert outcome.complete and not outcome.warnings
    assert crawls.arcs(archive, "new.b.example") == {"home/index.html"}
    assert crawls.arcs(archive, "b.example") == {"old"}
    log = crawls.log_lines(archive, outcome)
    assert log["http://away.example/"].notes == log["http://away.example/x"].notes == ("host",)


def test_several_hosts_at_once_but_each_by_one_connection(archive: Archive, site: Site) -> None:
    hosts = [f"host{number}.example" for number in range(6)]
    for host in hosts:
        site.add_html("/", _links(*(f"/{number}" for number in range(5))), host=host)
        for number in range(5):
            site.add_nasty(f"/{number}", nasty.slow(0.1, then=page(f"{host} {number}")), host=host)
    starts = [f"http://{host}/" for host in hosts]
    outcome = crawl(archive, *starts, max_instances=3, wget_args=crawls.through(site.proxy))
    assert outcome.complete
    assert len(outcome.tags) == len(hosts) and set(archive.domains()) == set(hosts)
    for host in hosts:
        assert len(crawls.arcs(archive, host)) == 6
        assert site.max_open(host) == 1
    assert 2 <= _most_at_once([(r.time, r.host) for r in site.requests if r.path != "/robots.txt"]) <= 3


def test_no_crawl_has_more_places_than_the_archive_allows(archive: Archive, site: Site) -> None:
    """Whatever its publication or an option says (/Cr-1.3/)."""
    hosts = [f"host{number}.example" for number in range(5)]
    for host in hosts:
        site.add_html("/", _links(*(f"/{number}" for number in range(4))), host=host)
        for number in range(4):
            site.add_nasty(f"/{number}", nasty.slow(0.1, then=page(f"{host} {number}")), host=host)
    asked = crawls.publish_as(*(f"http://{host}/" for host in hosts), max_instances=5,
                              wget_args=crawls.through(site.proxy))  # fmt: skip
    assert crawljob.run(archive, asked, None, instances=2).complete
    assert _most_at_once([(r.time, r.host) for r in site.requests if r.path != "/robots.txt"]) == 2
    done = run_command("crawl", "--archive", archive.root, "--wait", "0", "--max-instances", "9", site.url("/gone"))
    assert "max_instances is 4 in [crawl] of webarc.toml" in done.err


def test_no_host_waits_until_others_are_done(archive: Archive, site: Site) -> None:
    """Places are fewer than hosts, and each host has its share of them from the beginning, whatever it is called."""
    hosts = [f"host{number:02}.example" for number in range(12)]
    for host in hosts:
        site.add_html("/", _links(*(f"/{number}" for number in range(80))), host=host)
        for number in range(80):
            site.add_html(f"/{number}", f"{host} {number}", host=host)
    starts = [f"http://{host}/" for host in hosts]
    assert crawl(archive, *starts, max_instances=1, wget_args=crawls.through(site.proxy)).complete
    asked = [request.host for request in site.requests if request.path != "/robots.txt"]
    half = Counter(asked[: len(asked) // 2])
    assert min(half[host] for host in hosts) >= len(asked) / 2 / len(hosts) / 2


def test_a_turn_is_short_where_many_hosts_share_the_places(archive: Archive, site: Site) -> None:
    """Also of those that begin at one time: with a wait between requests, a long turn would be minutes."""
    hosts = [f"host{number:02}.example" for number in range(12)]
    for host in hosts:
        site.add_html("/", _links(*(f"/{number}" for number in range(300))), host=host)
        site.mount(Everywhere(page("<html></html>")), host=host)
    stop = crawls.StopAfter(site, 600)
    starts = [f"http://{host}/" for host in hosts]
    crawl(archive, *starts, max_instances=3, wait=0.01, robots=False, stop=stop.event,
          wget_args=crawls.through(site.proxy))  # fmt: skip
    asked = Counter(request.host for request in site.requests[:600])
    assert max(asked.values()) <= 102, asked


def test_a_deadline_leaves_no_host_without_its_turn(archive: Archive, site: Site) -> None:
    """Twenty hosts, two places; with turns of the usual length the last ones would come after the deadline.

    A machine that is too slow to fetch a few pages of each host until then gets a later deadline.
    """
    hosts = [f"host{number:02}.example" for number in range(20)]
    for host in hosts:
        site.add_html("/", _links(*(f"/{number}" for number in range(300))), host=host)
        site.mount(Everywhere(nasty.slow(0.05, then=page("<html></html>"))), host=host)
    starts = [f"http://{host}/" for host in hosts]
    for seconds in (12, 24, 48, 96):
        before = len(site.requests)
        outcome = crawl(archive, *starts, name=f"in-{seconds}", max_instances=2, wait=0.1,
                        max_duration=f"{seconds} seconds", wget_args=crawls.through(site.proxy))  # fmt: skip
        assert outcome.warnings[0] == "max-duration"
        asked = Counter(request.host for request in site.requests[before:] if request.path != "/robots.txt")
        shares = sorted(asked[host] for host in hosts)
        mean = sum(shares) / len(shares)
        print(f"pages a host in {seconds} s: least {shares[0]}, mean {mean:.1f}, most {shares[-1]}: {shares}")
        if mean >= 6:
            break
    assert shares[0] >= 2, "its start page, and what it leads to"
    assert all(crawls.arcs(archive, host) for host in hosts)


def _most_at_once(requests: list[tuple[float, str]]) -> int:
    """How many hosts were being asked at one time: a host is from its first request to its last."""
    spans = {host: [time for time, each in requests if each == host] for _, host in requests}
    slow = {host: (times[1], times[-1]) for host, times in spans.items() if len(times) > 1}
    return max(sum(begin <= time <= last for begin, last in slow.values()) for time, _ in requests)


# -- robots.txt --------------------------------------------------------------------------------------------------------


def test_robots_txt_is_obeyed(archive: Archive, site: Site) -> None:
    site.add("/robots.txt", "User-agent: webarcfs\nDisallow: /private\n\nUser-agent: *\nDisallow: /", "text/plain")
    site.add_html("/", _links("/private/x", "/public", "/robots.txt") + '<img src="/private.png">')
    site.add_html("/public", "")
    outcome = crawl(archive, site.url())
    log = crawls.log_lines(archive, outcome)
    assert crawls.arcs(archive, site.host) == {"index.html", "public"}
    for path in ("/private/x", "/private.png"):
        assert (log[site.url(path)].status, log[site.url(path)].notes) == (Status.ROBOTS, ("robots",))
        assert site.count(path) == 0
    assert site.count("/robots.txt") == 1
    assert site.requests[0].path == "/robots.txt"
    assert log[site.url("/robots.txt")].path == "P"
    again = crawl(archive, site.url(), robots=False, name="rude")
    assert site.count("/robots.txt") == 2, "then it is a page like others"
    assert crawls.log_lines(archive, again)[site.url("/private/x")].status == 404


def test_no_robots_txt_allows_all(archive: Archive, site: Site) -> None:
    site.add_html("/", "home")
    for status in (404, 403):
        site.add("/robots.txt", "User-agent: *\nDisallow: /", status=status)
        assert crawls.count(crawl(archive, site.url(), name=f"with-{status}"))[1:3] == (0, 0)
    assert crawls.arcs(archive, site.host) == {"index.html"}


def test_pages_stay_while_robots_txt_fails(archive: Archive, site: Site) -> None:
    site.add_html("/", _links("/a"))
    site.add_html("/a", "")
    crawl(archive, site.url())
    site.add("/robots.txt", "", status=500)
    outcome = crawl(archive, site.url())
    assert not outcome.complete and outcome.warnings
    assert crawls.arcs(archive, site.host) == {"index.html", "a"}
    log = crawls.log_lines(archive, outcome)
    assert (log[site.url()].status, log[site.url()].notes) == (Status.ROBOTS_UNREACHABLE, ("robots-unavailable",))
    assert log[site.url("/robots.txt")].status == 500
    assert log[site.url("/robots.txt")].notes == ("tries:3",)
    assert site.count("/") == 1


def test_what_robots_txt_newly_forbids_stays_with_what_only_it_leads_to(archive: Archive, site: Site) -> None:
    site.add_html("/", _links("/hub"))
    site.add_html("/hub", _links("/leaf"))
    site.add_html("/leaf", "")
    crawl(archive, site.url())
    site.add("/robots.txt", "User-agent: *\nDisallow: /hub", "text/plain")
    outcome = crawl(archive, site.url())
    assert outcome.complete
    assert crawls.count(outcome) == (0, 0, 0, 2)
    assert crawls.arcs(archive, site.host) == {"index.html", "hub", "leaf"}


def test_redirected_robots_txt(archive: Archive, site: Site) -> None:
    site.add_nasty("/robots.txt", redirect("http://rules.example/moved"), host="a.example")
    site.add_nasty("/moved", redirect("/robots.txt"), host="rules.example")
    site.add("/robots.txt", "User-agent: *\nDisallow: /private", "text/plain", host="rules.example")
    site.add_html("/", _links("/private", "/public"), host="a.example")
    site.add_html("/public", "", host="a.example")
    outcome = crawl(archive, "http://a.example/", wget_args=crawls.through(site.proxy))
    assert outcome.complete
    assert crawls.arcs(archive, "a.example") == {"index.html", "public"}
    assert crawls.log_lines(archive, outcome)["http://a.example/private"].status == Status.ROBOTS
    assert list(archive.domains()) == ["a.example"]


def test_a_page_that_robots_txt_redirects_to_is_still_a_page(archive: Archive, site: Site) -> None:
    site.add_nasty("/robots.txt", redirect("/not-found.html"))
    site.add_html("/", _links("/not-found.html", "/a"))
    site.add_html("/a", "")
    site.add_html("/not-found.html", "What you look for is not here.")
    crawl(archive, site.url())
    assert crawls.arcs(archive, site.host) == {"index.html", "a", "not-found.html"}


def test_robots_txt_with_a_wait_of_a_minute(archive: Archive, site: Site) -> None:
    # One URL a batch, and the start pages were there before robots.txt was.
    site.add_html("/", "")
    site.add_html("/b", "")
    stopper = crawls.StopAfter(site, 1)
    outcome = crawl(archive, site.url(), site.url("/b"), wait=61.0, stop=stopper.event)
    stopper.join()
    assert outcome.interrupted
    assert [request.path for request in site.requests] == ["/robots.txt"]


# -- manners -----------------------------------------------------------------------------------------------------------


def test_user_agent_and_pauses(archive: Archive, site: Site) -> None:
    site.add_html("/", _links("/a", "/b"))
    site.add_html("/a", _links("/c"))
    for path in "/b", "/c":
        site.add_html(path, "")
    crawl(archive, site.url(), wait=0.4, user_agent="tester/7 (+tester@example.org)")
    crawl(archive, site.url("/c"), wait=0.4, user_agent="tester/7 (+tester@example.org)")
    assert {request.headers["user-agent"] for request in site.requests} == {"tester/7 (+tester@example.org)"}
    times = [request.time for request in site.requests]
    assert len(times) == 7
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.39


def test_crawl_delay_of_robots_txt(archive: Archive, site: Site) -> None:
    site.add("/robots.txt", "User-agent: *\nCrawl-delay: 0.5\nDisallow: /x", "text/plain")
    site.add_html("/", _links("/a", "/b"))
    for path in "/a", "/b":
        site.add_html(path, "")
    crawl(archive, site.url())
    times = [request.time for request in site.requests if request.path in ("/a", "/b")]
    assert times[1] - times[0] >= 0.49


# -- limits ------------------------------------------------------------------------------------------------------------


def _slow_site(site: Site, pages: int) -> None:
    site.add_html("/", _links(*(f"/{number}" for number in range(pages))))
    for number in range(pages):
        site.add_nasty(f"/{number}", nasty.slow(0.1, then=page(b"x" * 10_000)))


def test_max_total_size_cuts(archive: Archive, site: Site) -> None:
    for number in range(5):
        site.add_html(f"/{number}" if number else "/", _links(f"/{number + 1}") + "x" * 10_000)
    crawl(archive, site.url(), name="nightly")
    outcome = crawl(archive, site.url(), name="nightly", max_total_size=25_000)
    assert (outcome.complete, outcome.warnings) == (False, ("max-total-size",))
    assert len(crawls.arcs(archive, site.host)) == 5
    log = crawls.log_lines(archive, outcome)
    assert (log[site.url("/2")].status, log[site.url("/2")].notes) == (Status.QUOTA, ("max-total-size",))
    commit = crawls.store(archive, site.host).head()
    assert commit is not None and not commit.message.complete


@pytest.mark.parametrize(("size", "kept"), [(3000, 3), (2999, 2), (3999, 3), (4000, 4), (999, 0)])
def test_max_total_size_holds_to_the_byte_over_all_batches(archive: Archive, site: Site, size: int, kept: int) -> None:
    for number in range(6):
        link = _links(f"/{number + 1}")
        site.add(f"/{number}", link + "x" * (1000 - len(link)))
    outcome = crawl(archive, site.url("/0"), robots=False, max_total_size=size)
    log = crawls.log_lines(archive, outcome)
    assert [line.status for line in log.values()] == [200] * kept + [Status.QUOTA]
    assert not outcome.complete
    assert sum(int(line.size) for line in log.values() if line.status == 200) <= size


def test_max_total_size_within_one_batch(archive: Archive, site: Site) -> None:
    site.add_html("/", _links(*(f"/{number}" for number in range(300))))
    for number in range(300):
        site.add(f"/{number}", bytes(10_000), "application/octet-stream")
    outcome = crawl(archive, site.url(), max_total_size=205_000)
    log = crawls.log_lines(archive, outcome)
    kept = [line for line in log.values() if line.status == 200]
    assert len(kept) == 20 and sum(int(line.size) for line in kept) <= 205_000
    refused = [line for line in log.values() if line.status in (Status.QUOTA, Status.CUT)]
    assert len(refused) == 281 and {line.notes for line in refused} == {("max-total-size",)}


def test_max_file_size_holds_to_the_byte(archive: Archive, site: Site) -> None:
    site.add_html("/", _links("/fits", "/not"))
    for path, size in ("/fits", 10_000), ("/not", 10_001):
        site.add(path, b"x" * size)
    log = crawls.log_lines(archive, crawl(archive, site.url(), max_file_size=10_000))
    assert log[site.url("/fits")].notes == ("added",)
    assert (log[site.url("/not")].status, log[site.url("/not")].notes) == (Status.QUOTA, ("too-big",))


def test_max_duration_cuts(archive: Archive, site: Site) -> None:
    _slow_site(site, 60)
    options = ("--archive", archive.root, "--wait", "0", site.url())
    done = run_command("crawl", "--max-duration", "2 seconds", *options)
    assert done.code == 3 and "max-duration" in done.err
    (report,) = archive.reports.iterdir()
    log = crawls.log_lines(archive, report.name)
    cut = [line for line in log.values() if line.status == Status.CUT]
    kept = [line for line in log.values() if line.status == 200]
    assert len(cut) > 10 and kept, "what came before is there"
    assert {line.annotations for line in cut} == {("seed3:-6", "max-duration", "depth:1")}, "they were never asked for"
    assert len(crawls.arcs(archive, site.host)) == len(kept)
    assert not crawls.summary_of(archive, report.name)["complete"]
