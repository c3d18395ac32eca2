"""Reports of crawls of many hosts: one that is dead spoils the rest, what pages need lies elsewhere, nobody is told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agent.jobs.publishing import JobOutcome
from tests.support import crawls
from tests.support.crawls import arcs, crawl, run_command
from tests.support.messy_sites import PIXEL, Case, MessyCrawl, check, crawled, with_head
from tests.support.secure import SecureHosts
from tests.support.site import Site, redirect
from tests.support.wire import nobody_there, page
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import FieldNumber, RecordState
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.git.repository import CRAWLS, Repository

pytestmark = pytest.mark.crawl


_ANSWERING = int(os.environ.get("ANSWERING_HOSTS", "16"))


def _through(site: Site, *more: str) -> tuple[str, ...]:
    """wget_args: names lead to the site, addresses of this machine are asked as they are."""
    return (*crawls.through(site.proxy), "-e", "no_proxy=127.0.0.1", *more)


def _hosts(archive: Archive, outcome: JobOutcome) -> dict[str, dict[str, Any]]:
    return {host["host"]: host for host in crawls.summary_of(archive, outcome)["hosts"]}


# -- each host for itself ----------------------------------------------------------------------------------------------


def test_of_many_hosts_those_that_answer_are_complete(archive: Archive, site: Site, tmp_path: Path) -> None:
    """A hundred in `make soak`: eighty answer, ten are dead, five forbid it, five have a certificate of their own."""
    good = [f"h{number}.test" for number in range(_ANSWERING)]
    forbidding = [f"no{number}.test" for number in range(5)]
    secure = [f"tls{number}.test" for number in range(5)]
    for host in good:
        site.add_html("/", '<a href="/a.html">a</a><a href="/b.html">b</a><a href="/c.html">c</a>', host=host)
        for path in ("/a.html", "/b.html", "/c.html"):
            site.add_html(path, path, host=host)
    for number, host in enumerate(forbidding):
        site.add_html("/", "x", host=host)
        if number < 3:
            site.add("/robots.txt", "User-agent: *\nDisallow: /\n", "text/plain", host=host)
        else:
            site.gone("/", status=403, host=host)
    with ExitStack() as stack:
        proxy = stack.enter_context(SecureHosts(tmp_path, lambda *_: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
        dead = [stack.enter_context(nobody_there()) for _ in range(_ANSWERING // 8)]
        starts = [f"http://{host}/" for host in good + dead + forbidding] + [f"https://{host}/" for host in secure]
        how: dict[str, Any] = {
            "name": "hundred",
            "wget_args": _through(site, "-e", f"https_proxy={proxy.proxy}"),
            "timeout": 5.0,
            "max_instances": 16,
        }
        first = crawl(archive, *starts, **how)
        for host in good:
            site.add_html("/", '<a href="/a.html">a</a><a href="/b.html">b</a>', host=host)
        second = crawl(archive, *starts, **how)
    for outcome in (first, second):
        hosts = _hosts(archive, outcome)
        assert [host for host, end in hosts.items() if end["complete"]] == sorted(good)
        assert {hosts[host]["reason"] for host in dead} == {"server down: connection-refused"}
        assert all(hosts[host]["reason"].startswith("certificate not valid: tls") for host in secure)
        assert all("forbidden by robots.txt" in hosts[host]["reason"] for host in forbidding[:3])
        assert all(hosts[host]["reason"].startswith("start URL gave 403") for host in forbidding[3:])
        assert not outcome.complete
    assert all(arcs(archive, host) == {"index.html", "a.html", "b.html"} for host in good)
    assert second.summary["arcs"] == {
        "added": 0,
        "changed": _ANSWERING,
        "removed": _ANSWERING,
        "unchanged": 2 * _ANSWERING,
    }


def test_a_dead_host_keeps_what_it_had_and_what_its_pages_link_to(archive: Archive, site: Site) -> None:
    """S-hosts-1."""
    with Site() as dying:
        dying.add_html("/", f'<a href="/deep.html">d</a><a href="{site.url("/only.html")}">o</a>')
        dying.add_html("/deep.html", f'<a href="{site.url("/deeper.html")}">o</a>')
        site.add_html("/", '<a href="/p.html">p</a>')
        for path in ("/p.html", "/only.html", "/deeper.html"):
            site.add_html(path, path)
        starts = (site.url(), dying.url())
        assert crawl(archive, *starts, name="two").complete
    site.add_html("/", "no more")
    with nobody_there(dying.port):
        outcome = crawl(archive, *starts, name="two", timeout=5.0)
    assert arcs(archive, site.host) == {"index.html", "only.html", "deeper.html"}
    assert arcs(archive, dying.host) == {"index.html", "deep.html"}
    assert {host: end["complete"] for host, end in _hosts(archive, outcome).items()} == {
        site.host: True,
        dying.host: False,
    }
    assert f"server down (connection-refused): {dying.host}" in outcome.warnings


def test_a_dead_counter_makes_nothing_incomplete(archive: Archive, site: Site) -> None:
    with nobody_there() as counter:
        site.add_html("/", f'<img src="http://{counter}/t.gif"><a href="/p.html">p</a><a href="/q.html">q</a>')
        site.add_html("/p.html", f'<img src="http://{counter}/t.gif?p">')
        site.add_html("/q.html", f'<img src="http://{counter}/t.gif?q">')
        how: dict[str, Any] = {"hosts": ["*"], "name": "me", "paths": [f"{site.host}/*"], "timeout": 5.0}
        assert crawl(archive, site.url(), private_addresses=True, **how).complete
        site.add_html("/", f'<img src="http://{counter}/t.gif"><a href="/p.html">p</a>')
        outcome = crawl(archive, site.url(), private_addresses=True, **how)
    assert outcome.complete and outcome.summary["arcs"] == {"added": 0, "changed": 1, "removed": 1, "unchanged": 1}
    assert _hosts(archive, outcome)[counter]["role"] == "resource"


def test_a_start_url_that_is_gone_is_one_page_less(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/p.html">p</a>')
    site.add_html("/p.html", "p")
    site.add_html("/second.html", "s")
    starts = (site.url(), site.url("/second.html"))
    assert crawl(archive, *starts, name="two").complete
    site.gone("/second.html")
    outcome = crawl(archive, *starts, name="two")
    assert outcome.complete and arcs(archive, site.host) == {"index.html", "p.html"}


def test_the_end_of_a_crawl_is_the_end_for_all(archive: Archive, site: Site) -> None:
    for host in ("a.test", "b.test"):
        site.add_html("/", "x" * 2000, host=host)
    outcome = crawl(
        archive, "http://a.test/", "http://b.test/", wget_args=_through(site), max_total_size=3000, max_instances=1
    )
    assert {end["reason"] for end in _hosts(archive, outcome).values()} == {"max-total-size"}


def _checked(archive: Archive, *starts: str, **how: Any) -> tuple[RecordState, str]:
    """The state of the record of a crawl that is released once it is checked, and its field 21."""
    outcome = crawl(archive, *starts, name="checked", release="when-checked", **how)
    record = Catalogue(archive).read(outcome.job)[0]
    return record.state, record.text(FieldNumber.STATUS)


def test_when_checked_releases_if_what_was_complete_is_complete_again(archive: Archive, site: Site) -> None:
    with nobody_there() as dead:
        for host in ("a.test", "b.test"):
            site.add_html("/", "a page", host=host)
        starts = ("http://a.test/", "http://b.test/", f"http://{dead}/")
        how: dict[str, Any] = {"wget_args": _through(site), "timeout": 5.0}
        state, status = _checked(archive, *starts, **how)
        assert state is RecordState.RELEASED
        assert status.startswith(f"complete but for 1 host: {dead} (server down: connection-refused)")
        site.gone("/", status=403, host="b.test")
        state, status = _checked(archive, *starts, **how)
        assert (state, status.partition(";")[0]) == (RecordState.COUNTED, "incomplete")
        site.back("/", host="b.test")
        assert _checked(archive, *starts, **how)[0] is RecordState.RELEASED
        assert _checked(archive, *starts, **how, required_hosts=(dead,))[0] is RecordState.COUNTED


# -- what pages need lies elsewhere ------------------------------------------------------------------------------------


def _nested(number: int) -> str:
    return f'<iframe src="/f/{number + 1}/"></iframe>'


CASES = (
    Case(
        name="cdn",
        finding="B",
        serves={
            "/": '<link rel="stylesheet" href="http://css.cdn.test/s.css"><script src="http://js.cdn.test/x.js"></script>'
            '<img src="http://img.cdn.test/1.png"><iframe src="http://frame.cdn.test/f.html"></iframe>'
            '<link rel="icon" href="http://img.cdn.test/i.png"><a href="http://foreign.test/">f</a>',
            "http://css.cdn.test/s.css": page(
                "@import 't.css'; @font-face{src:url(http://font.cdn.test/f.woff)}", "text/css"
            ),
            "http://css.cdn.test/t.css": page("a{background:url(u.png)}", "text/css"),
            "http://css.cdn.test/u.png": PIXEL,
            "http://font.cdn.test/f.woff": page(b"wOFF", "font/woff"),
            "http://js.cdn.test/x.js": page("1", "text/javascript"),
            "http://img.cdn.test/1.png": PIXEL,
            "http://img.cdn.test/i.png": PIXEL,
            "http://frame.cdn.test/f.html": '<img src="g.png"><a href="/more.html">m</a>',
            "http://frame.cdn.test/g.png": PIXEL,
            "http://frame.cdn.test/more.html": "more",
            "http://foreign.test/": "foreign",
        },
        kept=[
            "http://css.cdn.test/s.css",
            "http://css.cdn.test/t.css",
            "http://css.cdn.test/u.png",
            "http://font.cdn.test/f.woff",
            "http://js.cdn.test/x.js",
            "http://img.cdn.test/1.png",
            "http://img.cdn.test/i.png",
            "http://frame.cdn.test/f.html",
            "http://frame.cdn.test/g.png",
        ],
        never=["http://foreign.test/", "http://frame.cdn.test/more.html"],
        words={"http://foreign.test/": "host", "http://frame.cdn.test/more.html": "host"},
    ),
    Case(
        name="frames",
        finding="E",
        serves={"/": _nested(0), **{f"/f/{number}/": _nested(number) for number in range(1, 9)}},
        asked=["/f/5/"],
        never=["/f/6/"],
        words={"/f/6/": "resource-depth"},
    ),
    Case(
        name="frames-linked",  # a link to a frame makes a page of it, and what that needs comes
        finding="E",
        serves={
            "/": f'{_nested(0)}<a href="/f/5/">five</a>',
            **{f"/f/{number}/": _nested(number) for number in range(1, 5)},
            "/f/5/": '<img src="/deep.png">',
            "/deep.png": PIXEL,
        },
        kept=["/f/5/", "/deep.png"],
    ),
    Case(
        name="moved-image",
        finding="F",
        serves={
            "/": '<img src="/img?id=1"><img src="/img?id=2">',
            "/img?id=1": redirect("http://store.cdn.test/a/1.png"),
            "http://store.cdn.test/a/1.png": redirect("http://far.cdn.test/1.png"),
            "http://far.cdn.test/1.png": PIXEL,
            "/img?id=2": redirect("/media/2.png"),
            "/media/2.png": PIXEL,
        },
        kept=["http://far.cdn.test/1.png", "/media/2.png"],
    ),
    Case(
        name="moved-link",  # the right is that of the image, not of the host
        finding="F",
        serves={"/": '<a href="/away">a</a>', "/away": redirect("http://store.cdn.test/page.html")},
        never=["http://store.cdn.test/page.html"],
        words={"http://store.cdn.test/page.html": "host"},
    ),
)


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessyCrawl]:
    """One crawl of all cases."""
    with crawled(tmp_path_factory.mktemp("real"), CASES) as done:
        yield done


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(messy: MessyCrawl, case: Case) -> None:
    check(case, messy)


def test_hosts_of_resources_are_told_apart(messy: MessyCrawl) -> None:
    hosts = crawls.summary_of(messy.archive, messy.outcome)["hosts"]
    assert messy.outcome.complete
    assert [host["role"] for host in hosts] == sorted(host["role"] for host in hosts)
    assert {host["host"] for host in hosts if host["role"] == "page"} == {case.host for case in CASES}
    assert crawls.meta(messy.archive, "img.cdn.test", "1.png").role == "resource"
    assert crawls.meta(messy.archive, "cdn.test", "index.html").role == "page"


@pytest.mark.parametrize(("where", "kept"), [("hosts", ["/own.png"]), ("none", [])])
def test_page_resources_of_the_crawls_own_hosts_or_none(
    archive: Archive, site: Site, where: str, kept: list[str]
) -> None:
    site.add_html("/", '<img src="/own.png"><img src="http://img.test/x.png">', host="me.test")
    site.add("/own.png", PIXEL, "image/png", host="me.test")
    site.add("/x.png", PIXEL, "image/png", host="img.test")
    crawl(archive, "http://me.test/", depth=0, page_resources=where, wget_args=_through(site))
    asked = {request.path for request in site.requests if request.path.endswith("png")}
    assert asked == set(kept)


def test_paths_do_not_bind_resources_and_their_redirects(archive: Archive, site: Site) -> None:
    site.add_html("/press/", '<img src="/press/img?id=1"><a href="/other/">o</a>')
    site.add_nasty("/press/img?id=1", redirect("/media/1.png"))
    site.add("/media/1.png", PIXEL, "image/png")
    outcome = crawl(archive, site.url("/press/"), paths=["/press/*"])
    assert "media/1.png" in arcs(archive, site.host) and outcome.complete
    assert "paths" in crawls.log_lines(archive, outcome)[site.url("/other/")].notes


def test_a_page_and_a_crawl_have_bounds_for_resources(archive: Archive, site: Site) -> None:
    images = "".join(f'<img src="http://i{number}.test/x.png">' for number in range(6))
    more = "".join(f'<img src="/{number}.png">' for number in range(10))
    site.add_html("/", f'{images}<a href="/more.html">m</a>', host="me.test")
    site.add_html("/more.html", f'{more}<img src="http://i0.test/x.png">', host="me.test")
    for number in range(6):
        site.add("/x.png", PIXEL, "image/png", host=f"i{number}.test")
    for number in range(10):
        site.add(f"/{number}.png", PIXEL, "image/png", host="me.test")
    outcome = crawl(archive, "http://me.test/", max_resource_hosts=4, max_page_resources=8, wget_args=_through(site))
    log = crawls.log_lines(archive, outcome)
    words = [note for line in log.values() for note in line.notes if note.startswith("resource-")]
    assert sorted(words) == ["resource-hosts"] * 2 + ["resource-number"] * 2


def test_resources_reach_no_private_address_by_a_start_url_that_has_one(archive: Archive, site: Site) -> None:
    with Site() as other:
        site.add_html("/", f'<img src="{other.url("/x.png")}">')
        other.add("/x.png", PIXEL, "image/png")
        outcome = crawl(archive, site.url())
        assert not other.requests
        assert "private-address" in crawls.log_lines(archive, outcome)[other.url("/x.png")].notes
        crawl(archive, site.url(), private_addresses=True)
        assert [request.path for request in other.requests] == ["/robots.txt", "/x.png"]


def test_robots_for_pages_holds_for_no_image(archive: Archive, site: Site) -> None:
    site.add("/robots.txt", "User-agent: *\nDisallow: /x\n", "text/plain")
    site.add_html("/", '<img src="/x.png"><a href="/x.html">x</a>')
    site.add("/x.png", PIXEL, "image/png")
    site.add_html("/x.html", "x")
    crawl(archive, site.url(), robots_for="pages")
    assert arcs(archive, site.host) == {"index.html", "x.png"}


# -- hosts that only gave resources, again -----------------------------------------------------------------------------


def test_what_no_page_needs_any_more_goes_and_nothing_changed_is_no_commit(archive: Archive, site: Site) -> None:
    def serve(*hosts: str) -> None:
        site.add_html("/", "".join(f'<img src="http://{host}/x.png">' for host in hosts), host="me.test")
        for host in hosts:
            site.add("/x.png", PIXEL, "image/png", host=host)

    def again() -> JobOutcome:
        return crawl(archive, "http://me.test/", name="me", wget_args=_through(site), timeout=5.0)

    def commits(host: str) -> int:
        return len(Repository(archive.repository(host)).refs(CRAWLS))

    serve("ad1.test", "ad2.test", "cdn.test")
    assert again().complete
    outcome = again()
    assert outcome.complete and [commits(host) for host in ("ad1.test", "cdn.test", "me.test")] == [1, 1, 2]
    assert [tag.partition("@")[2] for tag in outcome.tags] == ["me.test"]
    serve("ad1.test", "cdn.test")
    site.gone("/x.png", status=503, host="cdn.test")
    outcome = again()
    assert outcome.complete and outcome.lacks.lost == 1  # it was there before
    assert (arcs(archive, "ad2.test"), arcs(archive, "cdn.test")) == (set(), {"x.png"})
    assert [tag.partition("@")[2] for tag in outcome.tags] == ["ad2.test", "me.test"]
    assert {part.tag.domain for part in Catalogue(archive).read(outcome.job)[0].parts} == {"ad2.test", "me.test"}
    assert [commits(host) for host in ("ad1.test", "ad2.test", "cdn.test")] == [1, 2, 1]


def test_a_host_whose_links_broke_is_no_host_of_resources(archive: Archive, site: Site) -> None:
    links = "".join(f'<a href="http://docs.test/{number}">d</a>' for number in range(5))
    site.add_html("/", f'<img src="http://docs.test/x.png">{links}', host="me.test")
    site.add("/x.png", PIXEL, "image/png", host="docs.test")
    for number in range(5):
        site.add_html(f"/{number}", "d", host="docs.test")
    how: dict[str, Any] = {"name": "me", "hosts": ["docs.test"], "wget_args": _through(site)}
    assert crawl(archive, "http://me.test/", **how).complete
    site.add_html("/", '<img src="http://docs.test/x.png">', host="me.test")
    outcome = crawl(archive, "http://me.test/", **how)
    assert not outcome.complete and len(arcs(archive, "docs.test")) == 6
    assert _hosts(archive, outcome)["docs.test"]["reason"].startswith("found 1 of the 6 ARCs")
    assert any("found 1 of the 6" in line for line in outcome.warnings)


# -- what is missing is said -------------------------------------------------------------------------------------------


def test_the_last_lines_say_what_is_missing_and_report_tells_of_a_url(archive: Archive, site: Site) -> None:
    site.add("/robots.txt", "User-agent: *\nDisallow: /s.css\n", "text/plain")
    site.add_html("/", '<link rel="stylesheet" href="/s.css"><img src="/cut.png"><a href="/gone.html">g</a>')
    site.add_nasty("/cut.png", with_head(b"Content-Type: image/png\r\nContent-Length: 999", PIXEL))
    done = run_command("crawl", "--archive", archive.root, "--wait", "0", "--timeout", "5", site.url(), timeout=120)
    assert done.code == 3, done.err
    assert f"missing from pages: 2 resources: {site.host} 2" in done.err
    assert "not archived: 3: robots 1, status 404 1, truncated 1" in done.err
    (job,) = (folder.name for folder in archive.reports.iterdir())

    def told(*more: str) -> tuple[int, str]:
        said = run_command("report", "--archive", archive.root, job, *more)
        return said.code, said.out

    code, text = told("--url", site.url("/s.css"))
    assert code == 0 and "is not archived" in text and "robots.txt forbids it" in text
    assert f"found as a resource that a page needs of {site.url()}" in text
    code, text = told("--url", site.url("/never.html"))
    assert code == 1 and "was not seen" in text
    code, text = told("--url", site.url("/gone.html/"), "--json")
    assert code == 0 and [line["url"] for line in json.loads(text)["lines"]] == [site.url("/gone.html")]
    code, text = told()
    assert "Completeness of hosts" in text and "missing from pages" in text
    site.add("/robots.txt", "", "text/plain")


def test_a_dead_counter_is_listed_and_no_failure(archive: Archive, site: Site) -> None:
    with nobody_there() as counter:
        site.add_html("/", f'<img src="http://{counter}/t.gif">')
        arguments = ("--archive", archive.root, "--wait", "0", "--timeout", "5", "--private-addresses")
        done = run_command("crawl", *arguments, site.url(), timeout=120)
    assert done.code == 0, done.err
    assert f"missing from pages: 1 resources: {counter} 1" in done.err
