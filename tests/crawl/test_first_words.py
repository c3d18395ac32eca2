"""What commands say to somebody who has read little: last lines, lists and reports name what helps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import crawls
from tests.support.crawls import Done, run_command
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive

archive = crawls.archive
pytestmark = pytest.mark.crawl


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


def _configure(archive: Archive, site: Site, **more: Any) -> None:
    lines = {"name": "p", "urls": [site.url("/")], "wait": 0, "sitemaps": False, **more}
    text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in lines.items())
    archive.settings.write_text(f"[[publication]]\n{text}\n")


def _run(archive: Archive, *words: str | Path) -> Done:
    return run_command(*words, "--archive", archive.root, timeout=120)


# -- releases ----------------------------------------------------------------------------------------------------------


def test_a_crawl_that_waits_for_its_release_says_so_with_the_command(archive: Archive, site: Site) -> None:
    site.add_html("/", "start")
    _configure(archive, site, release="by-hand")
    done = _run(archive, "crawl", "--publication", "p", "--private-addresses")
    assert done.code == 0, done.err
    (command,) = (line.partition("; next: ")[2] for line in done.err.splitlines() if "until it is released" in line)
    listed = _run(archive, "record", "list").out
    assert "counted, not released" in listed and "`webarc-agent record release RECORD`" in listed
    assert _run(archive, *command.split()[1:]).code == 0
    assert "not released" not in _run(archive, "record", "list").out


def test_a_crawl_that_readers_see_says_nothing_of_a_release(archive: Archive, site: Site) -> None:
    site.add_html("/", "start")
    _configure(archive, site)
    done = _run(archive, "crawl", "--publication", "p", "--private-addresses")
    assert done.code == 0 and "released" not in done.err
    assert "released" not in _run(archive, "record", "list").out


def test_a_publication_that_is_added_says_when_it_is_crawled_and_that_readers_wait(
    archive: Archive, site: Site
) -> None:
    site.add_html("/", "start")
    secret = archive.root.parent / "cookies"
    secret.write_text("consent=yes\n")
    secret.chmod(0o600)
    words = ("publication", "add", "p", site.url("/"), "--set", "wait=0", "--set", "interval=1 week")
    cookies = ("--set", f'cookies=[{{hosts=["{site.url("")}"], file="{secret}"}}]')
    for tries in (("--try",), ()):
        out = _run(archive, *words, *cookies, *tries).out
        assert "crawls it every 1 week" in out and "once somebody releases it" in out
    out = _run(archive, *(word.replace("p", "q", 1) if word == "p" else word for word in words)).out
    assert "crawls it every 1 week" in out and "releases it" not in out
