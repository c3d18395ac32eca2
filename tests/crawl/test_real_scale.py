"""Reports of what is too much: lists of thousands of URLs, sitemaps without end, gzip that unpacks to gigabytes.

Small forms here; `make soak` asks for the full ones by the environment.
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import os
import signal
import sqlite3
import subprocess
import threading
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from agent.crawl import url_files
from agent.crawl.sitemaps import LONGEST_SITEMAP, MOST_SITEMAPS
from agent.crawl.url_files import read_urls
from agent.jobs import crawljob
from tests.bench.measure import Watched
from tests.support import crawls
from tests.support.crawls import start_command, through
from tests.support.site import Answer, Site, page
from tests.support.waiting import eventually
from webarcfs.archive.config import directory
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import Exit

pytestmark = pytest.mark.crawl

LISTED = int(os.environ.get("LISTED_URLS", "240"))
LONG_LIST = int(os.environ.get("LONG_LIST", "6000"))
#: Sitemaps of an index, URLs of each, and `max_sitemap_urls`: the first ends by the number of sitemaps.
SITEMAPS = [tuple(map(int, some.split("x"))) for some in os.environ.get("SITEMAPS", "1100x1x50000 30x100x1000").split()]
BOMB = int(os.environ.get("BOMB_MIB", "80"))
LONG = "BOMB_MIB" in os.environ
_HOSTS = 40
_MIB = 1 << 20


# -- ten thousand bookmarks --------------------------------------------------------------------------------------------


class _Pages:
    """Pages of a host; one in a hundred is gone."""

    def find(self, path: str) -> Answer | None:
        number = path.strip("/").removesuffix(".html")
        if not number.isdecimal() or _is_gone(int(number)):
            return None
        return page(f"<!DOCTYPE html><title>{number}</title><a href='/other.html'>not this one</a>")


def _is_gone(number: int) -> bool:
    return number % 100 == 7


def _bookmark(number: int) -> str:
    return f"http://b{number % _HOSTS:02}.test/{number}.html"


def _write_bookmarks(path: Path, count: int) -> None:
    lines = (f'    <DT><A HREF="{_bookmark(number)}" ADD_DATE="1">page {number}</A>\n' for number in range(count))
    path.write_text(f"<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<TITLE>Bookmarks</TITLE>\n<DL><p>\n{''.join(lines)}</DL><p>")


def _crawl_list(archive: Archive, file: Path, *more: str) -> subprocess.Popen[str]:
    return start_command("crawl", "--archive", archive.root, "--list", file, *more)


def _settings(archive: Archive, site: Site) -> None:
    archive.settings.write_text(
        f"[index]\nsearch = false\n[crawl]\nwait = 0\nmax_instances = 6\nwget_args = {list(through(site.proxy))}\n"
    )


@contextmanager
def _bookmarked(folder: Path, count: int) -> Iterator[tuple[Archive, Site, Path]]:
    with Site() as site:
        for number in range(_HOSTS):
            site.mount(_Pages(), host=f"b{number:02}.test")
        archive, file = directory.create(folder / f"archive-{count}"), folder / f"bookmarks-{count}.html"
        _settings(archive, site)
        _write_bookmarks(file, count)
        yield archive, site, file


def test_a_bookmarks_file_is_one_job_and_a_kill_goes_on(tmp_path: Path) -> None:
    """S-list-2"""
    with _bookmarked(tmp_path, LISTED) as (archive, site, file):
        process = _crawl_list(archive, file)
        eventually(lambda: len(site.requests) > LISTED // 2, within=3600)
        os.killpg(process.pid, signal.SIGKILL)
        crawls.end(process)
        assert site.requests and not list(archive.reports.iterdir())
        process = _crawl_list(archive, file)
        _, errors = process.communicate(timeout=7000)
        crawls.end(process)
        asked = Counter(f"http://{request.host}{request.path}" for request in site.requests)
        open_at_once = {host: site.max_open(host) for host in {request.host for request in site.requests}}
    gone = [number for number in range(LISTED) if _is_gone(number)]
    assert process.returncode == Exit.INCOMPLETE, errors
    (report,) = archive.reports.iterdir()
    assert list(archive.jobs.iterdir()) == []
    log = crawls.log_lines(archive, report.name)
    pages = {url for url in log if not url.endswith(("/robots.txt", "/other.html"))}
    assert pages == {_bookmark(number) for number in range(LISTED)}
    kept = sum(len(crawls.arcs(archive, domain)) for domain in archive.domains())
    assert kept == LISTED - len(gone)
    assert f"not archived: {len(gone)}: status 404 {len(gone)}" in errors, errors
    assert sum("gave nothing" in line for line in errors.splitlines()) == min(len(gone), 50) + (len(gone) > 50)
    assert set(open_at_once.values()) == {1}
    # What was under way when it was killed is asked for again: a batch of each wget at most.
    assert max(asked.values()) <= 3 and sum(number > 1 for number in asked.values()) <= 6 * 40 + _HOSTS


@pytest.mark.skipif(LISTED < 10_000, reason="a large list alone shows how memory grows")
def test_memory_does_not_grow_with_the_list(tmp_path: Path) -> None:
    peaks = {}
    for count in (LISTED // 10, LISTED):
        with _bookmarked(tmp_path, count) as (archive, _, file):
            process = _crawl_list(archive, file)
            with Watched(process.pid) as watched:
                process.communicate(timeout=7000)
            crawls.end(process)
            peaks[count] = watched.anonymous / _MIB
    print(peaks)
    assert peaks[LISTED] - peaks[LISTED // 10] < 40, peaks


def test_a_list_enters_the_frontier_in_flat_memory_and_a_stop_is_heard(tmp_path: Path) -> None:
    """S-list-2: a list of a million URLs is stopped once all of them wait, and the job stays."""
    peaks = {}
    for count in (LONG_LIST // 10, LONG_LIST):
        with _bookmarked(tmp_path, 0) if count == LONG_LIST else _bookmarked(tmp_path, 1) as (archive, _, _):
            file = tmp_path / f"list-{count}.txt"
            with file.open("w") as out:
                out.writelines(f"{_bookmark(number)}\n" for number in range(count))
            process = _crawl_list(archive, file)
            with Watched(process.pid) as watched:
                eventually(lambda: _waiting_in(archive) >= count, within=3600)  # noqa: B023
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=600)
            crawls.end(process)
            assert process.returncode == Exit.INCOMPLETE and "resumes" in errors, errors
            assert len(list(archive.jobs.iterdir())) == 1
            peaks[count] = watched.anonymous / _MIB
    print(peaks)
    assert peaks[LONG_LIST] - peaks[LONG_LIST // 10] < 60, peaks


def _waiting_in(archive: Archive) -> int:
    """How many URLs are in the frontier of the job."""
    for path in archive.jobs.glob("*/frontier.db"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as frontier, suppress(sqlite3.OperationalError):
            return int(frontier.execute("SELECT count(*) FROM url").fetchone()[0])
    return 0


def test_a_stop_is_heard_while_a_list_is_read(archive: Archive, tmp_path: Path) -> None:
    """Nothing of the list is in the frontier then; the next run of the job reads all of it."""
    file = tmp_path / "list.txt"
    file.write_text("http://a.test/\nhttp://b.test/\n")
    stop = threading.Event()
    stop.set()
    outcome = crawljob.run(archive, dataclasses.replace(crawls.publish_as(name="l"), list=str(file)), None, stop=stop)
    assert outcome.interrupted and _waiting_in(archive) == 0


# -- gzip that unpacks to gigabytes ------------------------------------------------------------------------------------


def _bomb(first: bytes, fill: bytes, mib: int) -> bytes:
    """Gzip of `first` and so many MiB of `fill`."""
    packer = zlib.compressobj(9, wbits=31)
    packed = [packer.compress(first)]
    block = fill * (_MIB // len(fill))
    packed += [packer.compress(block) for _ in range(mib)]
    return b"".join([*packed, packer.flush()])


@pytest.mark.parametrize(
    ("first", "fill"),
    [
        (b"http://a.test/\n", b"\n"),
        (b"http://a.test/\n", b"x"),
        (b"http://a.test/\n", b"# a comment\n"),
        (b"<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<A HREF='http://a.test/'>a</A>", b" "),
        (b"<urlset><url><loc>http://a.test/</loc></url>", b" "),
    ],
)
def test_a_packed_list_is_read_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bytes, fill: bytes
) -> None:
    """S-list-2"""
    if not LONG:
        monkeypatch.setattr(url_files, "LONGEST_UNPACKED", 8 * _MIB)
    file = tmp_path / "list.gz"
    file.write_bytes(_bomb(first, fill, BOMB if LONG else 9))
    listed = list(itertools.islice(read_urls(file), 10))
    assert [some.url for some in listed if some.url] == ["http://a.test/"]
    assert any("unpacked" in some.fault for some in listed), listed


def test_a_list_within_the_bound_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"".join(b"http://a.test/%d\n" % number for number in range(1000))
    monkeypatch.setattr(url_files, "LONGEST_UNPACKED", len(lines))
    file = tmp_path / "list.gz"
    file.write_bytes(gzip.compress(lines))
    assert sum(bool(listed.url) for listed in read_urls(file)) == len(list(read_urls(file))) == 1000


@pytest.mark.parametrize("coded", [False, True])  # by its server as well, which is no sitemap but a bomb
def test_a_packed_sitemap_is_read_up_to_a_bound(archive: Archive, site: Site, *, coded: bool) -> None:
    """S-sitemap-1"""
    _settings(archive, site)
    bomb = _bomb(b"<urlset><url><loc>/listed.html</loc></url>", b" ", max(BOMB, LONGEST_SITEMAP // _MIB + 1))
    how = {"Content-Encoding": "gzip"} if coded else {}
    for place in ("/", "/listed.html"):
        site.add_html(place, place, host="a.test")
    site.add("/sitemap.xml", bomb, "text/xml" if coded else "application/gzip", headers=how, host="a.test")
    process = start_command("crawl", "--archive", archive.root, "http://a.test/")
    with Watched(process.pid) as watched:
        process.communicate(timeout=3600)
    crawls.end(process)
    (report,) = archive.reports.iterdir()
    line = crawls.log_lines(archive, report.name)["http://a.test/sitemap.xml"]
    assert ("decompression-bomb" if coded else "sitemap-cut") in line.notes
    assert site.count("/listed.html") == (not coded)
    assert watched.anonymous / _MIB < 150


# -- sitemaps without end ----------------------------------------------------------------------------------------------


class _Sitemaps:
    """An index of thousands of sitemaps, each with as many URLs, and of itself. Robots may read no page of them."""

    def __init__(self, maps: int, of_each: int) -> None:
        self._maps, self._of_each = maps, of_each

    def find(self, path: str) -> Answer | None:
        """The home page, robots.txt, the index or one of its sitemaps."""
        if path == "/":
            return page("<!DOCTYPE html><title>home</title>")
        if path == "/robots.txt":
            return page("User-agent: *\nDisallow: /page/\n", "text/plain")
        if path == "/sitemap.xml":
            maps = "".join(f"<sitemap><loc>/map-{number}.xml</loc></sitemap>" for number in range(self._maps))
            return page(f"<sitemapindex><sitemap><loc>/sitemap.xml</loc></sitemap>{maps}</sitemapindex>", "text/xml")
        if path.startswith("/map-"):
            urls = "".join(f"<url><loc>/page{path}/{number}</loc></url>" for number in range(self._of_each))
            return page(f"<urlset>{urls}</urlset>", "text/xml")
        return None


@pytest.mark.parametrize(("maps", "of_each", "most"), SITEMAPS)
def test_an_index_of_thousands_of_sitemaps_ends(
    archive: Archive, site: Site, maps: int, of_each: int, most: int
) -> None:
    """S-sitemap-1: the bounds are of URLs and of sitemaps; what is left out has a word."""
    site.mount(_Sitemaps(maps, of_each), host="a.test")
    _settings(archive, site)
    process = start_command("crawl", "--archive", archive.root, "--max-sitemap-urls", str(most), "http://a.test/")
    with Watched(process.pid) as watched:
        _, errors = process.communicate(timeout=7000)
    crawls.end(process)
    assert process.returncode == 0, errors
    (report,) = archive.reports.iterdir()
    log = crawls.log_lines(archive, report.name)
    asked = {f"http://a.test{request.path}" for request in site.requests}
    bound = min(most, of_each * MOST_SITEMAPS)  # the index counts as well, by each of its names
    assert bound - 2 * of_each <= sum("/page/" in url for url in log) <= bound
    assert sum(url.endswith(".xml") for url in asked) <= MOST_SITEMAPS
    assert site.count("/sitemap.xml", "a.test") == 1
    left_out = [line for url, line in log.items() if url not in asked]
    assert all(line.status < 0 and line.notes for line in left_out)
    notes = Counter(note for line in log.values() for note in line.notes)
    assert {"sitemap-number", "sitemap-full", "sitemap-cut"} & notes.keys(), notes
    assert watched.anonymous / _MIB < 200
