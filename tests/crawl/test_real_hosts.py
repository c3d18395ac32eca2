"""Reports of crawls of many hosts: one that is dead spoils the rest, what pages need lies elsewhere, nobody is told."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agent.jobs.publishing import JobOutcome
from tests.support import crawls
from tests.support.crawls import archive as archive
from tests.support.crawls import arcs, crawl, run_command
from tests.support.messy_sites import PIXEL, Case, MessyCrawl, check, crawl_cases, raw
from tests.support.secure import SecureHosts
from tests.support.site import Site, redirect
from tests.support.wire import page
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import FieldNumber, RecordState
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.git.repository import CRAWLS, Repository


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


def _refusing(stack: ExitStack) -> str:
    """A host that refuses connections."""
    reserved = stack.enter_context(socket.socket())
    reserved.bind(("127.0.0.1", 0))
    return f"127.0.0.1:{reserved.getsockname()[1]}"


def _through(site: Site, *more: str) -> tuple[str, ...]:
    """wget_args: names lead to the site, addresses of this machine are asked as they are."""
    return (*crawls.through(site.proxy), "-e", "no_proxy=127.0.0.1", *more)


def _hosts(archive: Archive, outcome: JobOutcome) -> dict[str, dict[str, Any]]:
    return {host["host"]: host for host in crawls.summary_of(archive, outcome)["hosts"]}


# -- each host for itself ----------------------------------------------------------------------------------------------


def test_of_a_hundred_hosts_the_eighty_that_answer_are_complete(archive: Archive, site: Site, tmp_path: Path) -> None:
    good = [f"h{number}.test" for number in range(80)]
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
        dead = [_refusing(stack) for _ in range(10)]
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
        assert all(hosts[host]["reason"].startswith("server down: tls") for host in secure)
        assert all("forbidden by robots.txt" in hosts[host]["reason"] for host in forbidding[:3])
        assert all(hosts[host]["reason"].startswith("start URL gave 403") for host in forbidding[3:])
        assert not outcome.complete
    assert all(arcs(archive, host) == {"index.html", "a.html", "b.html"} for host in good)
    assert second.summary["arcs"] == {"added": 0, "changed": 80, "removed": 80, "unchanged": 160}


def test_a_dead_host_keeps_what_it_had_and_what_its_pages_link_to(archive: Archive, site: Site) -> None:
    with Site() as dying:
        dying.add_html("/", f'<a href="/deep.html">d</a><a href="{site.url("/only.html")}">o</a>')
        dying.add_html("/deep.html", f'<a href="{site.url("/deeper.html")}">o</a>')
        site.add_html("/", '<a href="/p.html">p</a>')
        for path in ("/p.html", "/only.html", "/deeper.html"):
            site.add_html(path, path)
        starts = (site.url(), dying.url())
        assert crawl(archive, *starts, name="two").complete
    site.add_html("/", "no more")
    outcome = crawl(archive, *starts, name="two", timeout=5.0)
    assert arcs(archive, site.host) == {"index.html", "only.html", "deeper.html"}
    assert arcs(archive, dying.host) == {"index.html", "deep.html"}
    assert {host: end["complete"] for host, end in _hosts(archive, outcome).items()} == {
        site.host: True,
        dying.host: False,
    }
    assert f"server down: {dying.host}" in outcome.warnings


def test_a_dead_counter_makes_nothing_incomplete(archive: Archive, site: Site) -> None:
    with ExitStack() as stack:
        counter = _refusing(stack)
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
