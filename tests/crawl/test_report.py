"""`webarc-agent report`: what a job did, by job, publication or commitTag (DESIGN.md section 6, "Reports")."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from agent import tables
from agent.status import Status
from tests.support import crawls
from tests.support.crawls import crawl, run_command, through
from tests.support.site import Site
from webarcfs.archive.directory import Archive
from webarcfs.archive.errors import Damaged

pytestmark = pytest.mark.crawl


@pytest.fixture
def done(archive: Archive, site: Site) -> crawls.Outcome:
    """A crawl of two hosts on which some things are left out."""
    site.add("/robots.txt", "User-agent: *\nDisallow: /private", "text/plain", host="a.example")
    site.add_html(
        "/",
        "".join(f'<a href="/{path}">x</a>' for path in ("1", "2", "missing", "private", "x/" * 6))
        + '<img src="http://b.example/p.png"><a href="http://c.example/">c</a>',
        host="a.example",
    )
    site.add_html("/1", "one", host="a.example")
    site.add_html("/2", "two", host="a.example")
    site.add("/p.png", b"\x89PNG\r\n\x1a\n", "image/png", host="b.example")
    (archive.filters / "mime.toml").write_text('exclude = ["image/*"]', "utf-8")
    return crawl(archive, "http://a.example/", name="two-hosts", hosts=["b.example"], wget_args=through(site.proxy))


def _report(archive: Archive, *arguments: str) -> crawls.Done:
    return run_command("report", "--archive", archive.root, *arguments)


def test_the_tables(archive: Archive, done: crawls.Outcome) -> None:
    out = json.loads(_report(archive, done.job, "--json").out)
    assert out["summary"] == crawls.summary_of(archive, done)
    rows = {(row["table"], row["key"]): (row["urls"], row["archived"]) for row in out["tables"]}
    assert rows == {
        ("hosts", "a.example"): (7, 3),
        ("hosts", "b.example"): (2, 0),
        ("hosts", "c.example"): (1, 0),
        ("types", "text/html"): (3, 3),
        ("statuses", "200"): (5, 3),
        ("statuses", "404"): (2, 0),
        ("statuses", "-4000"): (1, 0),
        ("statuses", "-5000"): (1, 0),
        ("statuses", "-9998"): (1, 0),
        ("left_out", "robots.txt itself"): (2, 0),
        ("left_out", "status 404"): (1, 0),
        ("left_out", "filter:mime"): (1, 0),
        ("left_out", "host"): (1, 0),
        ("left_out", "robots"): (1, 0),
        ("left_out", "trap:repeats"): (1, 0),
    }
    total = sum(row["bytes"] for row in out["tables"] if row["table"] == "hosts")
    assert total == out["summary"]["bytes"] == sum(row["bytes"] for row in out["tables"] if row["table"] == "statuses")
    seed3 = {row["key"]: row["seed3"] for row in out["tables"] if row["table"] == "statuses"}
    assert (seed3["-9998"], seed3["-5000"], seed3["404"]) == (-7, -5, 404)


def test_csv_has_the_same(archive: Archive, done: crawls.Outcome) -> None:
    rows = list(csv.DictReader(io.StringIO(_report(archive, done.job, "--csv").out)))
    records = json.loads(_report(archive, done.job, "--json").out)["tables"]
    assert [(row["table"], row["key"], int(row["bytes"])) for row in rows] == [
        (each["table"], each["key"], each["bytes"]) for each in records
    ]


def test_for_people(archive: Archive, done: crawls.Outcome) -> None:
    text = _report(archive, "two-hosts", "--top", "2").out
    for part in (done.job, "complete", *done.tags, "3 added", "a.example", "1 more", "404 Not Found", "filter:mime"):
        assert part in text, f"{part} is not in\n{text}"
    assert "c.example" not in text, "only two rows a table were asked for"


def test_a_tag_is_the_part_of_its_domain_and_a_publication_its_last_job(archive: Archive, done: crawls.Outcome) -> None:
    tag = next(tag for tag in done.tags if tag.endswith("@a.example"))
    rows = json.loads(_report(archive, tag, "--json").out)["tables"]
    assert [row["key"] for row in rows if row["table"] == "hosts"] == ["a.example"]
    assert json.loads(_report(archive, "two-hosts", "--json").out)["summary"]["job"] == done.job


def test_what_there_is_no_report_of(archive: Archive, done: crawls.Outcome) -> None:
    for name in ("no-such", "2026-01-01T00:00:00@a.example"):
        answer = _report(archive, name)
        assert (answer.code, answer.out) == (2, "")
        assert name in answer.err and done.job in answer.err
    (archive.jobs / "20260101000000-begun").mkdir()
    assert "no report yet" in _report(archive, "begun").err
    assert _report(archive, done.job, "--csv", "--json").code == 1


def test_a_damaged_log_is_named(archive: Archive, done: crawls.Outcome) -> None:
    log: Path = archive.reports / done.job / "crawl.log"
    log.write_text(log.read_text("utf-8") + "half a li", "utf-8")
    answer = _report(archive, done.job)
    assert answer.code == 2 and "line 11 of crawl.log" in answer.err
    with pytest.raises(Damaged):
        tables.parse("- x - http://e.org/ - - - - - - - seed3:-5", 1)


def test_every_status_has_words() -> None:
    assert all(tables.meaning(status) for status in Status)
    assert (tables.meaning(200), tables.meaning(999), tables.meaning(-12345)) == ("OK", "HTTP", "")
