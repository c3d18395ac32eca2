"""How far a job is, page by page, how quick, and how long the rest takes."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import crawls
from tests.support.agents import agent, configure, reports, status, summaries
from tests.support.crawls import COMMAND, run_command
from tests.support.site import Site
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive

archive = crawls.archive
pytestmark = pytest.mark.crawl
_PAGES = 24


def _fill(site: Site) -> None:
    """A start page with a link to each of the others, which are one batch; and a robots.txt."""
    site.add_html("/", "".join(f'<a href="/{number}">{number}</a>' for number in range(_PAGES)))
    for number in range(_PAGES):
        site.add_html(f"/{number}", f"page {number}")
    site.add("/robots.txt", "User-agent: *\nAllow: /\n", "text/plain")


def test_progress_moves_with_each_page_and_tells_speed_and_rest(archive: Archive) -> None:
    with Site() as site:
        _fill(site)
        one = {"name": "slow", "urls": [site.url("/")], "interval": "1 day", "wait": 0.8, "robots": True}
        configure(archive, one)
        told: list[dict[str, Any]] = []

        def ended() -> bool:
            told.extend(each for each in status(archive)["jobs"] if each["stage"] == "capture")
            if not any(" s left" in each.get("text", "") for each in told):  # a process takes longer than a page
                told.extend([{"text": run_command("status", "--archive", archive.root).out}])
            return bool(reports(archive, "slow"))

        with agent(archive) as running:
            until(ended, "the crawl has ended")
            assert running.stop() == 0
        (summary,) = summaries(archive, reports(archive, "slow"))
    texts = [each["text"] for each in told if "text" in each]
    told = [each for each in told if "text" not in each]
    done = [each["done"] for each in told]
    assert done == sorted(done), "it went back"
    assert len({each for each in done if 2 < each <= _PAGES}) >= 4, f"it moves by batches: {sorted(set(done))}"
    timed = [each for each in told if each["left"]]
    assert timed and all(0 < each["a_second"] < 10 for each in timed)
    assert all(each["left"] >= (each["known"] - each["done"]) * 0.2 for each in timed), timed
    assert any("/s, " in text and " s left" in text for text in texts)
    # robots.txt and the pages were asked for; documents are the pages.
    assert told[-1]["known"] == _PAGES + 2 and max(each["documents"] for each in told) <= _PAGES + 1
    assert summary["complete"]


def test_robots_txt_is_no_document(archive: Archive) -> None:
    with Site() as site:
        site.add_html("/", "page")
        site.add("/robots.txt", "User-agent: *\nDisallow: /x\n", "text/plain")
        crawls.crawl(archive, site.url("/"), robots=True)
    (report,) = archive.reports.iterdir()
    assert json.loads((report / "item.json").read_text())["documents"] == 1


def test_a_terminal_shows_speed_and_rest(archive: Archive, tmp_path: Path) -> None:
    """Through a real terminal of its own (script(1))."""
    with Site() as site:
        _fill(site)
        words = [*COMMAND, "crawl", "--archive", str(archive.root), "--wait", "0.3", site.url("/")]
        command = " ".join(shlex.quote(word) for word in words)
        done = subprocess.run(
            ["script", "--quiet", "--return", "--command", command, str(tmp_path / "typescript")],
            check=False, capture_output=True, timeout=120, env={**os.environ, "TERM": "xterm", "COLUMNS": "160"},
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert b"/s, " in done.stdout and b"left" in done.stdout, done.stdout[-500:]
