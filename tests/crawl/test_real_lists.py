"""Lists of URLs as people have them: each is one crawl, and what is wrong in one is said and harms nothing else."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent.crawl import url_files
from agent.jobs import crawljob
from tests.support import crawls
from tests.support.crawls import run_command
from tests.support.site import Site
from tests.support.sources import ROOT
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Exit

pytestmark = pytest.mark.crawl

_OPTIONS = ("--wait", "0", "--private-addresses")


def _pages(site: Site, *places: str) -> None:
    for place in places:
        site.add_html(place, f"{place}<a href='/linked{place}'>x</a><img src='/i{place}.png'>")
        site.add_html(f"/i{place}.png", "x")


def test_a_list_is_one_crawl_of_its_pages_and_adds_alone(archive: Archive, site: Site, tmp_path: Path) -> None:
    """S-list-1: comments, blank lines, a dead page, a line that is no URL."""
    _pages(site, "/a", "/b", "/old")
    site.gone("/dead")
    assert run_command("crawl", "--archive", archive.root, *_OPTIONS, "--page", site.url("/old")).code == 0
    file = tmp_path / "urls.txt"
    file.write_text(f"# mine\n\n{site.url('/a')}  # a comment\nno url at all\n{site.url('/b')}\n{site.url('/dead')}\n")
    done = run_command("crawl", "--archive", archive.root, *_OPTIONS, "--list", file)
    assert done.code == Exit.INCOMPLETE
    assert f"{file}:4: no url at all is no URL" in done.err
    assert f"{site.url('/dead')} gave nothing: 404" in done.err
    arcs = crawls.arcs(archive, site.host)
    assert {"a", "b", "old", "i/a.png", "i/b.png"} <= arcs and not any("linked" in arc for arc in arcs)
    assert site.count("/sitemap.xml") == 0


def test_a_list_from_standard_input(archive: Archive, site: Site) -> None:
    _pages(site, "/a")
    done = run_command("crawl", "--archive", archive.root, *_OPTIONS, "--list", "-", stdin=site.url("/a"))
    assert done.code == 0, done.err
    assert "a" in crawls.arcs(archive, site.host)
    assert not (archive.root / "lists").exists()


def test_bookmarks_that_are_no_pages_are_counted_and_the_list_names_its_report(
    archive: Archive, site: Site, tmp_path: Path
) -> None:
    _pages(site, "/a")
    file = tmp_path / "bookmarks.html"
    links = (site.url("/a"), "javascript:void(0)", "place:x")
    file.write_text("".join(f"<DT><A HREF={link!r}>a</A>" for link in links))
    done = run_command("crawl", "--archive", archive.root, *_OPTIONS, "--list", file)
    assert done.code == 0 and f"{file}: 2 entries are no pages of the web" in done.err, done.err
    assert f"{file}:" in done.err and ": javascript:" in done.err, "the first ones are named, with their lines"
    done = run_command("report", "--archive", archive.root, "bookmarks")
    assert done.code == 0 and "-bookmarks-" in done.out, done.err


def test_a_list_from_a_pipe(archive: Archive, site: Site, tmp_path: Path) -> None:
    """It can be read once, as that of a shell's `<(…)`."""
    _pages(site, "/a")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(site.url("/a"),), daemon=True)
    writer.start()
    done = run_command("crawl", "--archive", archive.root, *_OPTIONS, "--list", pipe)
    writer.join(60)
    assert done.code == 0, done.err
    assert "a" in crawls.arcs(archive, site.host)


def test_a_list_from_standard_input_that_was_not_read_is_there_for_the_next_run(
    archive: Archive, site: Site, tmp_path: Path
) -> None:
    """S-list-2: the process that read it has removed its own file."""
    _pages(site, "/a")
    file = tmp_path / url_files.STANDARD_INPUT
    file.write_text(site.url("/a"))
    publication = dataclasses.replace(crawls.publish_as(name="stdin-1", depth=0), list=str(file))
    stop = threading.Event()
    stop.set()
    outcome = crawljob.run(archive, publication, None, only_adds=True, stop=stop)
    assert outcome.interrupted
    file.unlink()
    done = run_command("crawl", "--archive", archive.root, "--private-addresses", "--resume", outcome.job)
    assert done.code == 0, done.err
    assert "a" in crawls.arcs(archive, site.host) and not list(archive.jobs.iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("@urls.txt",), "--list urls.txt"),
        (("--list", "/nowhere/urls.txt"), "/nowhere/urls.txt: No such file"),
        (("--list", "/dev/null"), "/dev/null has no URL"),
        (("--page",), "--page goes with URLs"),
    ],
)
def test_what_cannot_be_meant_is_told(archive: Archive, arguments: tuple[str, ...], says: str) -> None:
    done = run_command("crawl", "--archive", archive.root, *arguments)
    assert done.code and says in done.err, done.err


def test_a_publication_with_a_list_removes_what_leaves_the_list(archive: Archive, site: Site) -> None:
    _pages(site, "/a", "/b")
    (archive.root / "mine.txt").write_text(f"{site.url('/a')}\n{site.url('/b')}\n")
    archive.settings.write_text(
        '[[publication]]\nname = "mine"\nlist = "mine.txt"\ndepth = 0\nwait = 0\n'
        "min_share = 0\nprivate_addresses = true\n"
    )
    for left in ({"a", "b"}, {"b"}):
        done = run_command("crawl", "--archive", archive.root, "--publication", "mine")
        assert done.code == 0, done.err
        assert {arc for arc in crawls.arcs(archive, site.host) if "/" not in arc} == left
        (archive.root / "mine.txt").write_text(f"{site.url('/b')}\n")


_READER = """
import sys, pathlib
from agent.crawl.url_files import read_urls
from tests.support.memory import peak
path = pathlib.Path(sys.argv[1])
number = sum(bool(listed.url) for listed in read_urls(path))
print(number, peak())
"""


def _peak(file: Path, length: int) -> int:
    """The most memory, in kB, that reading a list of so many URLs takes."""
    with file.open("w") as out:
        out.writelines(f"http://h{number % 1000}.example/{number}\n" for number in range(length))
    command = [sys.executable, "-c", _READER, str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    number, kilobytes = map(int, done.stdout.split())
    assert number == length
    return kilobytes


def test_a_long_list_takes_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    """Its URLs alone are eight megabytes."""
    assert _peak(tmp_path / "long.txt", 300_000) - _peak(tmp_path / "short.txt", 3_000) < 4 << 10
