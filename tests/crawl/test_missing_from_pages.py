"""What pages need and a crawl did not bring: in its report, its record, on the desk, and what to do about each word."""

from __future__ import annotations

import csv
import io
import json

import pytest

from agent.reports.explanations import advice_on, desk_advice_on, explanation_of
from agent.reports.report import missing_after_patches, most_rows
from tests.support import crawls, desks
from tests.support.site import Site
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.record import MissingResources, Record, read_record, write_record
from webarcfs.archive.config.directory import Archive

pytestmark = pytest.mark.crawl

HOME = (
    "<link rel=stylesheet href=http://cdn.test/a.css><img src=http://cdn.test/b.png><img src=http://cdn.test/c.png>"
    "<img src=http://closed.test/d.png><img src=/here.png><a href=/page>p</a><a href=/gone>g</a>"
)
WANTED = {("cdn.test", "status 404"): 2, ("closed.test", "robots"): 1, ("www.test", "status 403"): 1}


@pytest.fixture
def crawled(archive: Archive, site: Site) -> tuple[Archive, Record]:
    """A crawl of one site whose pages lack something of three hosts."""
    site.add_html("/", HOME, host="www.test")
    site.add_html("/page", "<img src=http://cdn.test/b.png>", host="www.test")
    site.gone("/here.png", status=403, host="www.test")
    site.add("/a.css", "a { }", "text/css", host="cdn.test")
    for path in ("/b.png", "/c.png"):
        site.gone(path, host="cdn.test")
    site.add("/robots.txt", "User-agent: *\nDisallow: /\n", "text/plain", host="closed.test")
    through = crawls.through(site.proxy)
    crawls.crawl(archive, "http://www.test/", wget_args=through, name="p", page_resources="any", release="by-hand")
    return archive, next(Catalogue(archive).records())


def test_the_report(crawled: tuple[Archive, Record]) -> None:
    archive, record = crawled
    rows = crawls.summary_of(archive, record.id)["missing"]["rows"]
    assert {(host, word): urls for host, word, urls in rows} == WANTED and rows[0][:2] == ["cdn.test", "status 404"]
    from_log = missing_after_patches(archive, record.id).rows
    assert [list(row) for row in from_log] == rows, "the log says the same as the frontier"
    text = crawls.run_command("report", "--archive", archive.root).out
    assert "  http://www.test/here.png: status 403\n" in text, "what failed comes before what is not there"
    table = text.partition("Missing from pages")[2].partition("\n\n")[0]
    for host, word in WANTED:
        line = next(line for line in table.splitlines() if line.startswith(host))
        assert word in line and advice_on(word) in line
    answer = json.loads(crawls.run_command("report", "--archive", archive.root, "--json", "p").out)
    lacks = [row for row in answer["tables"] if row["table"] == "missing"]
    assert {row["key"]: row["urls"] for row in lacks} == {" ".join(key): urls for key, urls in WANTED.items()}
    found = csv.DictReader(io.StringIO(crawls.run_command("report", "--archive", archive.root, "--csv", "p").out))
    assert sum(row["table"] == "missing" and bool(row["meaning"]) for row in found) == len(WANTED)


def test_the_report_of_a_tag_is_of_its_host(crawled: tuple[Archive, Record]) -> None:
    archive, record = crawled
    (tag,) = [part.tag for part in record.parts if part.tag.domain == "cdn.test"]
    summary = json.loads(crawls.run_command("report", "--archive", archive.root, "--json", str(tag)).out)["summary"]
    assert [end["host"] for end in summary["hosts"]] == ["cdn.test"]
    assert summary["missing"]["resources"] == {"cdn.test": 2}
    assert [url for url, _ in summary["missing"]["embedded"]] == ["http://cdn.test/b.png", "http://cdn.test/c.png"]


def test_the_record(crawled: tuple[Archive, Record]) -> None:
    """Staff have it in record.xml and by `record show`; readers do not."""
    archive, record = crawled
    assert {(lack.host, lack.word): lack.urls for lack in record.missing} == WANTED
    assert read_record(write_record(record)) == record
    assert record.for_readers().missing == () and b"<missing" not in write_record(record.for_readers())
    shown = crawls.run_command("record", "show", "--archive", archive.root, record.id).out
    assert "closed.test, 1 resources: robots." in shown and advice_on("robots") in shown
    fields = json.loads(crawls.run_command("record", "show", "--json", "--archive", archive.root, record.id).out)
    assert {row["advice"] for row in fields["missing"]} == {advice_on(word) for _, word in WANTED}


def test_the_desk(crawled: tuple[Archive, Record]) -> None:
    """The report's and the record's page have the table; a preview says why a page is not there."""
    archive, record = crawled
    desks.with_people(archive)
    with desks.served(archive) as served:
        anna = served.client("anna")
        for path in (f"/report/{record.id}", f"/snapshot/{record.id}"):
            page = anna.get(path)
            assert page.status == 200
            table = page.page.xpath("//table[caption='Missing from pages']")
            rows = [[cell.text_content() for cell in row] for row in table[0].xpath("tbody/tr")]
            assert {(row[0], row[1]): int(row[2].split()[0]) for row in rows} == WANTED
            assert {row[3] for row in rows} == {desk_advice_on(word) for _, word in WANTED}
        first = anna.get(f"/snapshot/{record.id}/preview")
        gone = anna.get(f"{first.path.rpartition('http://')[0]}http://www.test/gone")
        assert "This crawl does not have the page" in gone.words and "Why it is not there" in gone.words
        assert explanation_of("status 404") in gone.words and desk_advice_on("status 404") in gone.words
        assert gone.page.xpath("//a[starts-with(@href, '/missing?')]"), "the page about it has more"
        unseen = anna.get(f"{first.path.rpartition('http://')[0]}http://www.test/never")
        assert "No page that the crawl read has a link to it." in unseen.words


def test_a_table_has_a_bound_and_says_how_much_is_left() -> None:
    rows = [(f"h{number}", "robots", 1) for number in range(5000)]
    short = list(most_rows(rows, 100))
    assert len(short) == 101 and short[-1] == ("", "", 4900)
    assert list(most_rows(short, 10))[-1] == ("", "", 4990)
    assert MissingResources(*short[-1]).urls == 4900
