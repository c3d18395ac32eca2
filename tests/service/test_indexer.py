"""The agent keeps the full-text index in step, in a process of its own; reports tell what has no text."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from io import StringIO

import pytest

from agent.indexing.fulltext import is_behind
from tests.support import crawls
from tests.support.agents import agent, configure
from tests.support.crawls import run_command
from tests.support.readercommand import webarc
from tests.support.site import Site
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.history.sequence import Feed

archive = crawls.archive
pytestmark = pytest.mark.crawl


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        site.add_html("/", '<a href="/a">a</a><a href="/b.pdf">b</a><a href="/c.doc">c</a> okapi')
        site.add_html("/a", "giraffe")
        site.add("/b.pdf", b"%PDF-1.4\nnonsense", {"Content-Type": "application/pdf"})
        site.add("/c.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2_000), {"Content-Type": "application/msword"})
        yield site


def _total(archive: Archive, words: str) -> int:
    answer = webarc("search", "--present", words, "--format", "json", "--archive", str(archive.root))
    return int(json.loads(answer.stdout)["total"]) if not answer.returncode else -1


def test_an_agent_indexes_after_each_crawl(archive: Archive, site: Site) -> None:
    configure(archive, {"name": "p", "urls": [site.url("/")], "interval": "3 seconds"})
    with agent(archive) as running:
        until(lambda: _total(archive, "giraffe") == 1, "the first crawl is indexed", 60)
        site.add_html("/a", "zebra")
        until(lambda: _total(archive, "zebra") == 1, "a later crawl is indexed", 60)
        assert _total(archive, "giraffe") == 0
        assert running.stop() == 0


def test_once_ends_when_all_is_indexed(archive: Archive, site: Site) -> None:
    configure(archive, {"name": "p", "urls": [site.url("/")], "interval": "1 day"})
    done = run_command("start", "--archive", archive.root, "--once", timeout=120)
    assert done.code == 0, done.err
    assert not is_behind(archive) and _total(archive, "okapi") == 1


def test_a_crawl_by_hand_does_not_index(archive: Archive, site: Site) -> None:
    """Publishing does no indexing; a search says what is not indexed yet."""
    assert run_command("crawl", "--archive", archive.root, "--wait", "0", site.url("/")).code == 0
    assert not archive.search.exists() and is_behind(archive)
    assert run_command("index", "--archive", archive.root).code == 0
    site.add_html("/a", "zebra")
    assert run_command("crawl", "--archive", archive.root, "--wait", "0", site.url("/")).code == 0
    answer = webarc("search", "giraffe", "--archive", str(archive.root))
    assert "1 found" in answer.stdout and "1 snapshots are not indexed yet" in answer.stderr


def test_a_report_lists_what_has_no_text(archive: Archive, site: Site) -> None:
    assert run_command("crawl", "--archive", archive.root, "--wait", "0", site.url("/")).code == 0
    job = next(archive.reports.iterdir()).name
    early = run_command("report", "--archive", archive.root, "--text", job)
    assert early.code == 2 and "index" in early.err
    assert run_command("index", "--archive", archive.root).code == 0
    told = run_command("report", "--archive", archive.root, "--text", job)
    assert told.code == 0 and "1 damaged" in told.out and site.url("/b.pdf") in told.out
    rows = json.loads(run_command("report", "--archive", archive.root, "--text", "--json", job).out)
    assert {(each["url"], each["fault"]) for each in rows} >= {(site.url("/b.pdf"), "damaged")}
    assert all(each["meaning"] for each in rows)
    by_tag = run_command(
        "report", "--archive", archive.root, "--text", "--csv", next(iter(Feed(archive.changes).lines()))
    )
    assert [each["url"] for each in csv.DictReader(StringIO(by_tag.out))] == [each["url"] for each in rows]
