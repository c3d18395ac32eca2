"""Whatever Chromium loads of the pages of test_real_links.py, the crawl finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route

from tests.crawl.test_real_links import CASES
from tests.support.browsers import chromium, needs_chromium
from tests.support.messy_sites import PIXEL
from webarcfs.content.outlinks import links_of

pytestmark = [pytest.mark.store, needs_chromium()]

#: Chromium looks ahead in a page of a srcdoc, where it does not know that page's own base yet.
GUESSED = {"srcdoc-base": {"http://srcdoc-base.test/b/x.png"}}
PAGES = {case.name: (case.url("/"), str(case.serves["/"])) for case in CASES if isinstance(case.serves["/"], str)}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


def loaded(browser: Browser, url: str, html: str) -> set[str]:
    """The URLs that Chromium asks for when it shows a page, whose scripts do not run."""
    asked: set[str] = set()

    def answer(route: Route) -> None:
        if route.request.url == url:
            route.fulfill(body=html, content_type="text/html; charset=utf-8")
            return
        asked.add(route.request.url)
        route.fulfill(body=PIXEL, content_type="image/png")

    context = browser.new_context(java_script_enabled=False)
    context.route("**/*", answer)
    tab = context.new_page()
    tab.goto(url, wait_until="networkidle")
    context.close()
    return asked - {url.removesuffix("/") + "/favicon.ico"}


@pytest.mark.parametrize("name", PAGES)
def test_the_crawl_finds_what_chromium_loads(browser: Browser, name: str) -> None:
    url, html = PAGES[name]
    found = {link.url for link in links_of(html.encode(), url, "text/html", "utf-8")}
    assert loaded(browser, url, html) - found - GUESSED.get(name, set()) == set()


def test_chromium_loads_something(browser: Browser) -> None:
    url, html = PAGES["image-set"]
    assert loaded(browser, url, html + "<a>x</a>") == {f"{url}x.png"}
