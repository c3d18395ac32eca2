"""Private addresses: a crawl of public sites keeps away from the machine and the network that it runs in."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from agent.crawl.disposition import ArchivedPages, Disposition
from agent.crawl.frontier import FoundUrl, Frontier
from agent.crawl.job_folder import Job
from agent.crawl.resultreader import EndedBatch, ResultReader
from agent.crawl.wget import BatchFiles, FetchResult, Limits, command, write_list
from tests.support.archives import publish
from tests.support.crawls import COMMAND, crawl, end, log_lines, publish_as, run_command, through
from tests.support.namespaces import apart
from tests.support.site import Site, redirect
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.config.settings import CrawlSettings
from webarcfs.archive.model.metadata import now

pytestmark = pytest.mark.crawl


@pytest.mark.parametrize("target", ["127.0.0.1", "127.1", "localhost", "2130706433"])
def test_a_start_page_does_not_lead_inside(archive: Archive, site: Site, target: str) -> None:
    """Neither its redirects nor its links, though where it redirects to belongs to the crawl."""
    secret = f"http://{target}:{site.port}/secret"
    site.add_html("/secret", "inside")
    site.add_nasty("/", redirect(secret), host="start.example")
    site.add_html("/page", f'<a href="{secret}">inside</a>', host="start.example")
    starts = ["http://start.example/", "http://start.example/page"]
    done = crawl(archive, *starts, wget_args=through(site.proxy), hosts=["*"])
    assert [request for request in site.requests if "start.example" not in request.host] == []
    assert not done.complete, "what is not seen of a site must not be removed"
    lines = [line for url, line in log_lines(archive, done).items() if url.endswith("/secret")]
    assert lines and all("private-address" in line.notes and line.status < 0 for line in lines)


@pytest.mark.parametrize("target", ["169.254.169.254", "127.1", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]"])
def test_rules_that_lead_inside_are_not_known(archive: Archive, site: Site, target: str) -> None:
    """A robots.txt that redirects there: the crawl ends, and nothing of its server is fetched (RFC 9309, 2.3.1.4)."""
    site.add_nasty("/robots.txt", redirect(f"http://{target}/robots.txt"), host="b.example")
    site.add_html("/", "b", host="b.example")
    site.add_html("/", '<a href="http://b.example/">b</a>', host="a.example")
    done = crawl(archive, "http://a.example/", hosts=["*"], wget_args=through(site.proxy))
    assert done.warnings == ("robots.txt not available: b.example",)
    assert {request.host for request in site.requests} == {"a.example", "b.example"}
    log = log_lines(archive, done)
    assert log["http://b.example/"].notes == ("robots-unavailable",)
    assert log[f"http://{target}/robots.txt"].notes == ("private-address",)


def test_pages_that_moved_inside_stay_with_what_only_they_lead_to(archive: Archive, tmp_path: Path) -> None:
    """What is not asked for may be there still, as pages are that robots.txt forbids: none of it may be removed."""
    publish(archive, "moved.example", {"hub.html": b'<a href="/deep">deep</a>'})
    frontier = Frontier(tmp_path / "frontier.db")
    hub, deep = "http://moved.example/hub.html", "http://moved.example/deep"
    publication = publish_as("http://start.example/", hosts=["moved.example"])
    job = Job(
        archive=archive,
        name="job",
        folder=tmp_path,
        publication=publication,
        profile=None,
        frontier=frontier,
        begun=now(),
    )
    try:
        with frontier.changes():
            frontier.add([FoundUrl(url=hub, domain="moved.example", kind="link", depth=1, hops="L")])
            Disposition(job, ArchivedPages(archive)).keep_out("moved.example")
        rows = [frontier.by_url(url) for url in (hub, deep)]
        assert [(row and row.state, row and row.note) for row in rows] == [("failed", "private-address")] * 2
    finally:
        frontier.close()


def test_the_setting_lets_it(archive: Archive, site: Site) -> None:
    site.add_html("/secret", "inside")
    site.add_nasty("/", redirect(site.url("/secret")), host="start.example")
    done = crawl(archive, "http://start.example/", wget_args=through(site.proxy), private_addresses=True)
    assert done.complete and "/secret" in {request.path for request in site.requests}


def test_a_start_url_on_a_private_address_lets_it(archive: Archive, site: Site) -> None:
    site.add_html("/", "inside")
    assert crawl(archive, site.url("/")).complete


def _with_hosts(hosts: Path, archive: Archive, start: str, *options: str) -> list[str]:
    """The command line of a crawl that has an /etc/hosts of its own."""
    script = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'
    crawling = [*COMMAND, "crawl", "--archive", str(archive.root), "--wait", "0", "--no-sitemaps", *options, start]
    return apart(script, hosts, *crawling)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to have an /etc/hosts of its own")
def test_a_name_is_looked_up(archive: Archive, site: Site, tmp_path: Path) -> None:
    """wget is not started for a host whose name leads inside, and the log tells what would let it."""
    site.add_html("/", "inside")
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost intranet.example\n")
    start = f"http://intranet.example:{site.port}/"
    site.add_host(f"intranet.example:{site.port}")
    words = _with_hosts(hosts, archive, start)
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3, done.stderr
    assert "private_addresses (--private-addresses) allows it" in done.stderr
    assert site.requests == []
    (report,) = archive.reports.iterdir()
    assert "private-address" in log_lines(archive, report.name)[start].notes
    words = _with_hosts(hosts, archive, start, "--private-addresses")
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [request.path for request in site.requests] == ["/robots.txt", "/"]


def test_a_name_that_nobody_knows_fails_as_ever(archive: Archive) -> None:
    done = run_command("crawl", "--archive", archive.root, "--wait", "0", "http://nobody.invalid/")
    assert done.code == 3
    (report,) = archive.reports.iterdir()
    assert "dns" in log_lines(archive, report.name)["http://nobody.invalid/"].notes


@pytest.mark.parametrize("number", [3, 60])
def test_answers_from_inside_are_dropped_whatever_the_name_led_to_before(
    tmp_path: Path, site: Site, number: int
) -> None:
    """wget looks names up itself: each record of its WARC has the address, also on a connection that was kept open."""
    site.add_html("/", '<a href="/found">found</a>')
    site.add_nasty("/1", redirect("/found"))
    urls = [site.url("/"), *(site.url(f"/{each}") for each in range(1, number))]
    files, settings = BatchFiles(tmp_path, 1), CrawlSettings(wait=0.0)
    write_list(files, urls)
    subprocess.run(command(files, settings, 0.0, tmp_path / "cookies"), cwd=tmp_path, check=False, timeout=240)
    assert len(site.requests) == number
    frontier = Frontier(tmp_path / "frontier.db")
    with frontier.changes():
        frontier.add(FoundUrl(url=url, domain=site.host, kind="seed", depth=0, hops="") for url in urls)
        frontier.take(frontier.next(site.host, 0, number), 1, site.host)
    rows = frontier.fetching(1)
    frontier.close()
    for public, state in ((True, "failed"), (False, "done")):
        found = _read(
            EndedBatch(1, site.host, rows, files.warc, files.log), Limits(0, keep_errors=False, public=public)
        )
        assert {answer.settled.state for answer in found} == {state} and len(found) == number
        kept = [answer for answer in found if answer.settled.arc or answer.target or answer.links]
        assert len(kept) == (0 if public else 2)
        assert not public or {answer.settled.note for answer in found} == {"private-address"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to have an /etc/hosts of its own")
def test_a_name_that_leads_inside_later_gives_nothing(archive: Archive, site: Site, tmp_path: Path) -> None:
    """When it is looked up it leads nowhere, and when wget looks it up again, inside: wget asks, nothing is kept."""
    site.add_html("/", '<a href="/a">a</a>')
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    start = f"http://later.example:{site.port}/"
    site.add_host(f"later.example:{site.port}")
    words = _with_hosts(hosts, archive, start, "--no-robots")
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        while not list(archive.jobs.glob("*/000001.list")) and process.poll() is None:
            time.sleep(0.02)
        hosts.write_text("127.0.0.1 localhost later.example\n")
        _, told = process.communicate(timeout=120)
    finally:
        end(process)
    assert process.returncode == 3, told
    assert {request.path for request in site.requests} == {"/"}
    assert list(archive.domains()) == []
    (report,) = archive.reports.iterdir()
    assert "private-address" in log_lines(archive, report.name)[start].notes


def _read(batch: EndedBatch, limits: Limits) -> list[FetchResult]:
    """What the agent makes of a batch: itself of a few URLs, its process of more."""
    reader = ResultReader(limits)
    try:
        reader.give(batch)
        while (ended := reader.next([], 1.0)) is None:
            pass
        return list(reader.answers(ended, batch.rows))
    finally:
        reader.close()
