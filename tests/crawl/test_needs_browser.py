"""Pages that only a browser could show: the crawl says so, on real front ends and real documentation."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from agent.crawl.frontier import FoundUrl, Frontier, UrlOutcome
from agent.crawl.vocabulary import Reason, UrlState
from tests.crawl.test_conditional import tagged
from tests.support import crawls, realsites
from tests.support.app_server import serving
from tests.support.built_apps import APPS, BuiltApp
from tests.support.crawls import crawl, run_command
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive
from webarcfs.content.outlinks import find

pytestmark = pytest.mark.crawl

_WORD = "needs-browser"
_SHELL = b"<!DOCTYPE html><title>App</title><div id='app'></div><script src='/app.js'></script>"


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_front_ends_that_others_built_need_one(app: BuiltApp) -> None:
    if not app.is_here():
        pytest.skip("needs `make apps`")
    with serving([app]) as server:
        page = server.answer("GET", app.host, app.start, b"", is_page=True)
    # The start page of our own app has a head and a list of what it does, which its scripts only fill in.
    assert find(page.body, app.url, "text/html", "utf-8").needs_browser is (app.name != "hills")


@pytest.mark.parametrize("site", realsites.ALL, ids=lambda site: site.package)
def test_documentation_needs_none(site: realsites.RealSite) -> None:
    if not site.is_installed:
        pytest.skip(site.missing)
    pages = [name for name in site.files() if name.endswith((".html", ".htm"))][::20]
    bodies = ((name, (site.root / name).read_bytes()) for name in pages)
    needing = [name for name, body in bodies if find(body, "http://e.org/", "text/html", "utf-8").needs_browser]
    assert needing == []


def test_a_crawl_notes_such_pages_and_its_report_says_what_to_do(archive: Archive, site: Site) -> None:
    """Not what a page embeds, and no error page; a page that did not change is noted again."""
    site.add_html("/", '<a href="/app">a</a><a href="/gone">g</a><iframe src="/framed"></iframe>')
    site.add("/app", _SHELL)
    site.add("/framed", _SHELL)
    site.add("/gone", _SHELL, status=404)
    site.add("/app.js", b"1", "text/javascript")
    outcome = crawl(archive, site.url(), keep_errors=True)
    noted = {url for url, line in crawls.log_lines(archive, outcome).items() if _WORD in line.notes}
    assert noted == {site.url("/app")}
    assert crawls.summary_of(archive, outcome)["needs_browser"] == {site.host: 1}
    said = run_command("report", "--archive", archive.root).out
    assert f"1 page holds little without scripts ({_WORD}): {site.host} 1" in said
    assert 'fetcher = "auto"' in said
    assert _WORD in run_command("report", "--archive", archive.root, "--url", site.url("/app")).out


def test_a_page_that_did_not_change_is_noted_again(archive: Archive, site: Site) -> None:
    site.add_nasty("/", tagged(_SHELL.decode()))  # type: ignore[arg-type]
    crawl(archive, site.url(), conditional=True)
    again = crawl(archive, site.url(), conditional=True)
    line = crawls.log_lines(archive, again)[site.url()]
    assert line.status == 304 and {"not-modified", _WORD} <= set(line.notes)


def test_a_rejected_page_is_counted_by_why_it_was(archive: Archive, site: Site) -> None:
    """The word is no reason for which something is not archived."""
    site.add("/", _SHELL)
    (archive.root / "filters").mkdir(exist_ok=True)
    (archive.root / "filters" / "mime.toml").write_text('exclude = ["text/html"]\n')
    crawl(archive, site.url(), filters=("mime",))
    rows = run_command("report", "--archive", archive.root, "--format", "csv").out.splitlines()
    left_out = [row.split(",")[1] for row in rows if row.startswith("left_out,")]
    assert "filter:mime" in left_out and _WORD not in left_out


def test_a_trial_says_it_of_its_start_pages(archive: Archive, site: Site) -> None:
    site.add("/", _SHELL)
    site.add_html("/text", "<p>plain</p>")
    run_command("publication", "add", "p", site.url(), site.url("/text"), "--archive", archive.root)
    said = run_command("publication", "try", "p", "--archive", archive.root).out
    assert f"{site.url()} holds little without its scripts" in said
    assert f"{site.url('/text')} holds" not in said


def test_a_page_that_a_browser_could_not_show_is_not_one_that_needs_the_setting(tmp_path: Path) -> None:
    with closing(Frontier(tmp_path / "frontier.db")) as frontier, frontier.changes():
        frontier.add(
            FoundUrl(url=f"http://e.org/{name}", domain="e.org", kind="link", depth=0, hops="") for name in "abcd"
        )
        rows = [row for row, _ in frontier.all()]
        frontier.settle(UrlOutcome(id=row.id, state=UrlState.DONE, status=200) for row in rows)
        for row in rows[:3]:
            frontier.annotate(row.id, Reason.NEEDS_BROWSER)
        frontier.want_view(rows[0])
        assert frontier.needing_browser() == {"e.org": 2}
        frontier.end_views(Reason.BROWSER_MISSING)
        assert frontier.shown_pages()["failed"] == 1
        assert frontier.needing_browser() == {"e.org": 2}
