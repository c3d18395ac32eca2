"""What a crawl by browser says of each page that it showed, in `report --shown`, on the desk and in the report."""

from __future__ import annotations

import csv
import io
import json

import pytest

from agent.crawl.frontier import ShownView
from agent.reports import shown_pages
from agent.reports.report import remarks_in
from tests.support import script_site
from tests.support.bad_pages import BadPageSizes, serve_bad_pages
from tests.support.browsers import needs_chromium
from tests.support.crawls import crawl, run_command
from tests.support.desks import served, with_people
from tests.support.script_site import ScriptSite
from webarcfs.archive.config.directory import Archive

pytestmark = [pytest.mark.crawl]
site = script_site.site

SIZES = BadPageSizes(large=3 << 20, bomb=8 << 20, dom=1 << 20, frames=20, slow=1.0)


def _page(url: str, state: str = "done", missed: int = 0, refused: int = 0) -> ShownView:
    return ShownView(url, state, "", "", 9, refused, missed, 0)


def test_pages_that_lack_most_come_first() -> None:
    pages = [
        _page("http://a/whole"),
        _page("http://a/refused", refused=7),
        _page("http://a/missed", missed=2),
        _page("http://a/failed", "failed"),
        _page("http://a/also-whole"),
    ]
    order = [page.url.rpartition("/")[2] for page in shown_pages.worst_first(pages)]
    assert order == ["failed", "missed", "refused", "also-whole", "whole"]


@pytest.mark.parametrize(("failed", "missed"), [(0, 0), (1, 0), (0, 3)])
def test_only_what_could_not_be_shown_or_did_not_come_is_a_warning(failed: int, missed: int) -> None:
    shown = {"pages": 2, "failed": failed, "requests": 9, "refused": 4, "missed": missed}
    (remark,) = remarks_in({"shown": shown})
    assert remark.text.startswith("pages shown by a browser: 2")
    assert remark.is_warning is bool(failed or missed)
    assert not remarks_in({"shown": {}})


@needs_chromium()
def test_each_page_has_its_numbers_once_the_job_is_gone(site: ScriptSite, archive: Archive) -> None:
    """The worst page first; in each form of the command, and on the desk."""
    site.add_html("/whole", "<p>whole</p><script>fetch('/api/hello?x=1')</script>")
    site.add_html("/lacks", "<script>fetch('/private/x.json').catch(() => 0); fetch('/api/hello?x=1')</script>")
    bad = site.url(serve_bad_pages(site, SIZES)["cut-picture"].path)
    whole, lacks = site.url("/whole"), site.url("/lacks")
    outcome = crawl(archive, whole, lacks, bad, fetcher="browser", depth=0)
    assert not list(archive.jobs.iterdir())
    assert (outcome.report / shown_pages.NAME).is_file()

    asked = run_command("report", outcome.report.name, "--archive", archive.root, "--shown", "--format", "json")
    rows = json.loads(asked.out)
    assert [row["url"] for row in rows] == [bad, lacks, whole]
    assert [(row["requests"], row["refused"], row["missed"]) for row in rows[1:]] == [(2, 1, 0), (1, 0, 0)]
    assert rows[0]["missed"] >= 1
    as_csv = run_command("report", outcome.report.name, "--archive", archive.root, "--shown", "--format", "csv")
    assert [row["url"] for row in csv.DictReader(io.StringIO(as_csv.out))] == [bad, lacks, whole]
    table = run_command("report", outcome.report.name, "--archive", archive.root, "--shown", "--limit", "1").out
    assert bad in table and whole not in table and "2 more" in table

    totals = "pages shown by a browser: 3;"
    for subject, is_said in ((outcome.report.name, True), (str(outcome.tags[0]), False)):
        words = run_command("report", subject, "--archive", archive.root).out.split()
        assert (totals in " ".join(words)) is is_said, subject

    with_people(archive)
    with served(archive) as desk:
        page = desk.client("anna").get(f"/report/{outcome.report.name}")
    assert page.status == 200
    shown = [row.findtext(".//bdi") for row in page.page.xpath('//table[@class="shown-pages"]/tbody/tr')]
    assert shown == [bad, lacks, whole]
    facts = dict(zip(page.page.xpath("//dl/div/dt/text()"), page.page.xpath("//dl/div/dd/text()"), strict=True))
    assert facts["Pages shown by a browser"] == "3"
    assert totals in page.words, "a request without a response is a warning"


def test_a_crawl_without_a_browser_says_so(site: ScriptSite, archive: Archive) -> None:
    outcome = crawl(archive, site.url("/small/1.html"), depth=0)
    assert not (outcome.report / shown_pages.NAME).exists()
    asked = run_command("report", outcome.report.name, "--archive", archive.root, "--shown")
    assert asked.out.strip() == "no browser showed a page"
