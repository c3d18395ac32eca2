"""The next crawl of pages that a browser showed: what only their scripts led to stays, unless it is gone."""

from __future__ import annotations

import pytest

from tests.support import script_site
from tests.support.browsers import needs_chromium
from tests.support.crawls import arcs, crawl, log_lines
from tests.support.script_site import ScriptSite
from webarcfs.archive.config.directory import Archive

pytestmark = [pytest.mark.crawl, needs_chromium()]
site = script_site.site


def _application(site: ScriptSite) -> str:
    """A start page with a shell, whose script asks for data and links to a page; returns the start URL."""
    site.add_html("/start", "<p>words</p><a href=/shell>shell</a><a href=/static>static</a>")
    site.add_html("/static", "static")
    site.add_html("/linked", "linked by the DOM alone")
    site.add("/values", "{}", "application/json")
    site.add_html(
        "/shell",
        "<div id=app></div><script>fetch('/values').then(() => { const link = document.createElement('a');"
        "link.href = '/linked'; link.textContent = 'linked'; app.append(link); });</script>",
    )
    return site.url("/start")


def _has(archive: Archive, site: ScriptSite, path: str) -> bool:
    return any(path.strip("/") in arc for arc in arcs(archive, site.host))


def test_a_page_that_fails_loses_nothing_that_only_its_dom_led_to(site: ScriptSite, archive: Archive) -> None:
    start = _application(site)
    assert crawl(archive, start, fetcher="browser", depth=2).complete
    assert _has(archive, site, "linked") and _has(archive, site, "values")
    site.gone("/shell", 500)
    outcome = crawl(archive, start, fetcher="browser", depth=2)
    assert "browser-before" in log_lines(archive, outcome)[site.url("/shell")].notes
    assert site.url("/linked") in log_lines(archive, outcome)
    assert _has(archive, site, "shell") and _has(archive, site, "linked") and _has(archive, site, "values")
    site.gone("/shell", 404)
    crawl(archive, start, fetcher="browser", depth=2, min_share=0.0)
    assert not _has(archive, site, "linked") and not _has(archive, site, "values"), "it is gone with its page"


def test_a_crawl_by_wget_follows_what_a_browser_showed_before(
    site: ScriptSite, archive: Archive, caplog: pytest.LogCaptureFixture
) -> None:
    """The links of the archived DOM are followed; what scripts alone asked for leaves the newest snapshot, as said."""
    start = _application(site)
    crawl(archive, start, fetcher="browser", depth=2)
    outcome = crawl(archive, start, fetcher="wget", depth=2, min_share=0.0)
    assert site.url("/linked") in log_lines(archive, outcome)
    assert _has(archive, site, "linked") and not _has(archive, site, "values")
    assert "a browser showed" in caplog.text
