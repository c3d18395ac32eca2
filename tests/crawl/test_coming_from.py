"""README, "Coming from HTTrack, wget, Heritrix, Browsertrix, ArchiveBox": its commands, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import warcs
from tests.support.crawls import Done, arcs
from tests.support.foreignfiles import arc_record, gzipped, write_arc, write_wacz
from tests.support.site import Site
from tests.support.sources import ROOT
from webarcfs.archive.config.directory import Archive, create

pytestmark = pytest.mark.crawl

README = (ROOT / "README.md").read_text("utf-8")
SECTION = README.partition("## Coming from HTTrack, wget, Heritrix, Browsertrix, ArchiveBox\n")[2].partition("\n## ")[0]
COMMANDS = re.findall(r"^ {4}(\S.*)$", SECTION, re.MULTILINE)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with an archive, as the commands name it."""
    create(tmp_path / "webarc")
    return tmp_path


@pytest.fixture
def pages(site: Site) -> Iterator[Site]:
    site.add_html("/", '<a href="a.html">a</a><img src="i.png"><a href="gone.html">b</a>', "Start")
    site.add_html("/a.html", "text", "A page")
    site.add("/i.png", b"\x89PNG\r\n\x1a\n" + bytes(99), "image/png")
    yield site


def run(home: Path, command: str, site: Site | None = None) -> Done:
    """A command of README in a shell, in that home; its site is ours."""
    if site is not None:
        command = command.replace("https://www.example.org/", site.url("/"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=home, env={**os.environ, "HOME": str(home), "PATH": path},
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def commands(*words: str) -> list[str]:
    """The commands in which one of these words occurs, in README's order; each occurs in one."""
    found = [command for command in COMMANDS if any(word in command for word in words)]
    assert all(any(word in command for command in found) for word in words)
    return found


def test_every_command_is_run_here() -> None:
    run_here = (
        commands("heritrix/", "collections/", "example.wacz", "archivebox/")
        + commands("--warc-file", "example.warc.gz")
        + commands("httrack ", "webarc mirror")
        + commands("--captured", " downloads")
        + commands("find ", "--list", "-qO-")
        + commands("--pause")
    )
    assert sorted(set(run_here)) == sorted(COMMANDS)


def test_folders_of_crawlers(home: Path) -> None:
    """Heritrix, Browsertrix and ArchiveBox."""
    files = {
        "heritrix/jobs/example/20250601120000/warcs/WEB-1.warc.gz": "heritrix.example",
        "crawls/collections/example/archive/rec-1-0.warc.gz": "browsertrix.example",
        "archivebox/archive/1748779200.0/warc/1748779201.warc.gz": "archivebox.example",
    }
    for path, host in files.items():
        (home / path).parent.mkdir(parents=True)
        (home / path).write_bytes(gzipped([warcs.response(f"http://{host}/a", b"<title>a</title>")]))
    browsertrix = (home / "crawls/collections/example/archive/rec-1-0.warc.gz").read_bytes()
    write_wacz(home / "crawls/collections/example/example.wacz", {"archive/rec-1-0.warc.gz": browsertrix})
    wacz = gzipped([warcs.response("http://wacz.example/a", b"<title>a</title>")])
    write_wacz(home / "example.wacz", {"archive/data.warc.gz": wacz})
    for command in commands("heritrix/", "collections/", "example.wacz", "archivebox/"):
        assert run(home, command).code == 0, command
    archive = Archive(home / "webarc")
    assert sorted(archive.domains()) == sorted([*files.values(), "wacz.example"])
    assert arcs(archive, "heritrix.example") == {"a"}


def test_wget(home: Path, pages: Site) -> None:
    fetch, take = commands("--warc-file", "example.warc.gz")
    assert run(home, fetch, pages).code == 8, "wget tells that one page is missing"
    assert run(home, take).code == 0
    assert arcs(Archive(home / "webarc"), pages.host) == {"index.html", "a.html", "i.png"}


def test_httrack(home: Path, pages: Site) -> None:
    fetch, take = commands("httrack ", "webarc mirror")
    assert run(home, f"{fetch} < /dev/null", pages).code == 0
    assert run(home, take).code == 0
    assert arcs(Archive(home / "webarc"), pages.host) == {"index.html", "a.html", "i.png"}


def test_copies(home: Path, pages: Site) -> None:
    """Mirrors and saved pages, as their programs leave them."""
    done = run(home, "wget -q -r -P mirror https://www.example.org/", pages)
    assert done.code == 8, "wget tells that one page is missing"
    (home / "folder").mkdir()
    (home / "folder" / "index.html").write_text("<title>a page of a folder</title>")
    (home / "downloads").mkdir()
    comment = "<!-- Page saved with SingleFile \n url: https://saved.example/a \n saved date: Sat May 02 2020 -->"
    single = comment.replace("Sat May 02 2020", "Sat May 02 2020 10:00:00 GMT+0200 (CEST)")
    (home / "downloads" / "a.html").write_text(f"<!DOCTYPE html> <html>{single}<title>a</title>saved")
    (home / "page.html").write_text("<title>saved by a browser</title>")
    for command in commands("--captured", " downloads"):
        assert run(home, command).code == 0, command
    archive = Archive(home / "webarc")
    assert arcs(archive, pages.host) == {"index.html", "a.html", "i.png"}
    assert arcs(archive, "www.example.org") == {"docs/index.html", "page"}
    assert arcs(archive, "saved.example") == {"a"}


def test_lists_and_standard_input(home: Path, site: Site) -> None:
    (home / "collected").mkdir()
    for host in ("one.example", "two.example"):
        record = arc_record(f"http://{host}/a", warcs.http(b"<title>a</title>"))
        write_arc(home / "collected" / f"{host}.arc.gz", [record], "gzip")
    site.add("/crawl.warc.gz", gzipped([warcs.response("http://three.example/a", b"a")]), "application/warc")
    for command in commands("find ", "--list", "-qO-"):
        assert run(home, command, site).code == 0, command
    assert sorted(Archive(home / "webarc").domains()) == ["one.example", "three.example", "two.example"]


def test_a_folder_of_years(home: Path) -> None:
    (home / "collection").mkdir()
    for year in (2021, 2019, 2020):
        made = warcs.response("http://years.example/a", b"as of %d" % year, f"{year}-06-01T00:00:00Z")
        (home / "collection" / f"{9999 - year}.warc.gz").write_bytes(gzipped([made]))
    look, take = commands("--pause")
    assert run(home, look).code == 0 and list(Archive(home / "webarc").domains()) == []
    done = run(home, take)
    assert (done.code, [line[:4] for line in done.out.splitlines()]) == (0, ["2019", "2020", "2021"])
