"""How far the browser of a running crawl is: in `status`, `job` and on the desk's page of jobs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import desks
from tests.support.browsers import needs_chromium
from tests.support.crawls import end, run_command, start_command
from tests.support.site import Site
from tests.support.waiting import until
from tests.support.wire import Exchange, page
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive

pytestmark = [pytest.mark.crawl, needs_chromium()]

SCRIPT = "fetch('/data').then(r => r.text()).then(text => document.body.append(text))"


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    archive = directory.create(tmp_path / "archive")
    archive.settings.write_text("[crawl]\nbrowser_page_seconds = 600.0\n")
    desks.with_people(archive)
    return archive


@pytest.fixture
def held() -> Iterator[tuple[Site, threading.Event]]:
    """Serve a page that needs a browser, on two hosts; its data come once the event is set."""
    event = threading.Event()

    def answer(exchange: Exchange) -> None:
        event.wait(300)
        page("some words", "text/plain")(exchange)

    with Site() as site:
        for host in (site.host, f"localhost:{site.port}"):
            site.add_html("/", f"<script>{SCRIPT}</script>", host=host)
            site.add_nasty("/data", answer, host)
        try:
            yield site, event
        finally:
            event.set()


def test_a_running_job_says_how_many_pages_wait_for_the_browser(
    archive: Archive, held: tuple[Site, threading.Event]
) -> None:
    site, event = held
    urls = (site.url("/"), site.url("/", f"localhost:{site.port}"))
    crawl = start_command("crawl", "--archive", archive.root, "--fetcher", "browser", "--wait", "0", *urls)
    try:

        def job() -> dict[str, Any] | None:
            jobs = json.loads(run_command("status", "--archive", archive.root, "--json").out)["jobs"]
            return next((job for job in jobs if job["views"] == {"showing": 1, "waiting": 1}), None)

        name = until(job, "one page is shown, and the other waits")["job"]
        sentence = "pages for the browser: 1 waiting, 1 being shown"
        for words in (("status",), ("job", "list"), ("job", "show", name)):
            assert sentence in run_command(*words, "--archive", archive.root).out, words
        with desks.served(archive) as served:
            carl = served.client("carl")
            running = carl.get("/running")
            assert "Pages for the browser: waiting: 1 · being shown: 1 · shown already: 0" in running.words
            (figure,) = running.page.xpath("//*[@data-figure='view-waiting']")
            assert figure.text == "1"
            carl.headers["Accept-Language"] = "de"
            assert "Seiten für den Browser: warten: 1 · wird gezeigt: 1" in carl.get("/running").words
        event.set()
        crawl.communicate(timeout=120)
        assert crawl.returncode == 0
    finally:
        end(crawl)
    report = run_command("report", "--archive", archive.root).out
    assert "pages shown by a browser: 2;" in " ".join(report.split())
