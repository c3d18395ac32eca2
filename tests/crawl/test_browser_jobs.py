"""Jobs whose browser hangs, and jobs that want the one browser of the machine at the same time."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from agent.crawl import browserpool
from tests.support import script_site
from tests.support.browsers import needs_chromium
from tests.support.crawls import StopAfter, crawl, log_lines
from tests.support.process_trees import processes_below
from tests.support.script_site import ScriptSite
from tests.support.waiting import PATIENCE
from webarcfs.archive.config.directory import Archive

pytestmark = [pytest.mark.crawl, needs_chromium()]
site = script_site.site


def _controllers() -> list[int]:
    return [process.pid for process in processes_below(os.getpid()) if "agent.crawl.browser" in process.command]


def test_a_process_that_hangs_is_ended_and_the_page_is_shown_by_another(
    site: ScriptSite, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browserpool, "_GRACE", 2.0)
    monkeypatch.setattr(browserpool, "MOST_WAITING", 1)
    url = site.url("/small/0.html")
    stopped: list[int] = []

    def stop() -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not stopped:
            if site.count("/small/0.html"):
                for pid in _controllers():
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
            time.sleep(0.02)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    outcome = crawl(archive, url, fetcher="browser", depth=0, browser_page_seconds=20.0)
    thread.join()
    assert stopped and not set(stopped) & set(_controllers())
    assert "rendered" in log_lines(archive, outcome)[url].notes


def test_two_jobs_take_turns_with_the_browser(site: ScriptSite, archive: Archive) -> None:
    urls = [site.url("/small/0.html"), f"http://localhost:{site.port}/small/1.html"]
    most: list[int] = []
    notes: dict[str, tuple[str, ...]] = {}

    def run(url: str) -> None:
        outcome = crawl(archive, url, fetcher="browser", depth=0)
        notes[url] = tuple(log_lines(archive, outcome)[url].notes)

    threads = [threading.Thread(target=run, args=(url,)) for url in urls]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        most.append(len(_controllers()))
        time.sleep(0.1)
    assert max(most) == 1
    assert all("rendered" in notes[url] for url in urls)


def test_a_job_that_is_stopped_amid_a_page_resumes_with_it(site: ScriptSite, archive: Archive) -> None:
    """S-browser-7: nothing is fetched twice, and no process stays."""
    url = site.url("/small/0.html")
    stop = StopAfter(site, 3)  # robots.txt, the page, and the first that its script wants
    crawl(archive, url, fetcher="browser", depth=0, wait=0.5, stop=stop.event)
    stop.join()
    assert _controllers() == []
    begun = len(site.responses)
    outcome = crawl(archive, url, fetcher="browser", depth=0)
    assert "rendered" in log_lines(archive, outcome)[url].notes
    asked = [(response.method, response.host, response.path) for response in site.responses]
    assert len(asked) == len(set(asked)), asked
    assert 3 <= begun < len(asked), "both runs asked for something"
