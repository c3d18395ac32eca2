"""Pages that take long to read, or kill who reads them: the rest of a crawl does not wait (/Cr-8/, /Cr-6/)."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.crawl.resultreader import MOST_DEATHS
from agent.jobs.publishing import JobOutcome
from tests.support import crawls
from tests.support.crawls import crawl
from tests.support.site import Site
from tests.support.waiting import until
from webarcfs.archive.config.directory import Archive
from webarcfs.content import outlinks

pytestmark = pytest.mark.crawl

#: So long that it is not read in the job's own process.
_LONG = b"<p>long</p>" * 200_000
_OTHER = "other.example"
_CHAIN = 12


class _Crawling:
    """A crawl in a thread. `end` gives its outcome."""

    def __init__(self, archive: Archive, *urls: str, **settings: object) -> None:
        self.stop = threading.Event()
        self._outcome: list[JobOutcome] = []
        self._thread = threading.Thread(
            target=lambda: self._outcome.append(crawl(archive, *urls, stop=self.stop, **settings))
        )
        self._thread.start()

    def end(self) -> JobOutcome:
        self._thread.join(120)
        assert self._outcome, "the crawl did not end, or not well"
        return self._outcome[0]


def _reader() -> int:
    """The process that reads answers for this one, if there is one."""
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and "agent.crawl.resultreader" in (entry / "cmdline").read_text():
                return int(entry.name)
        except (OSError, ValueError, IndexError):
            continue
    return 0


@contextmanager
def _crawling(archive: Archive, *urls: str, **settings: object) -> Iterator[_Crawling]:
    work = _Crawling(archive, *urls, **settings)
    try:
        yield work
    finally:
        work.stop.set()
        if reader := _reader():
            os.kill(reader, signal.SIGCONT)
        work.end()


def _two_hosts(site: Site) -> tuple[str, str]:
    """A page that is long, and on another host a chain of pages, each of them known by the one before."""
    site.add_host(_OTHER)
    site.add("/", b"<title>long</title>" + _LONG + b"<a href=/behind>behind</a>")
    site.add_html("/behind", "behind")
    for number in range(_CHAIN):
        site.add_html(f"/{number}", f"<a href='/{number + 1}'>next</a>", host=_OTHER)
    site.add_html(f"/{_CHAIN}", "last", host=_OTHER)
    return site.url("/"), site.url("/0", _OTHER)


def test_other_hosts_and_a_stop_do_not_wait_for_a_page(archive: Archive, site: Site) -> None:
    """While a page is read, here for ever, others are asked and read, and the crawl can be stopped; then it goes on."""
    urls = _two_hosts(site)
    how = {"max_instances": 2, "depth": 2 * _CHAIN, "wget_args": crawls.through(site.proxy)}
    with _crawling(archive, *urls, **how) as work:
        reader = until(_reader, "a process that reads")
        os.kill(reader, signal.SIGSTOP)
        until(lambda: site.count(f"/{_CHAIN}", _OTHER), "the last page of the other host")
        assert site.count("/behind") == 0
        work.stop.set()
        assert work.end().interrupted
        assert not _reader()
    outcome = crawl(archive, *urls, **how)
    assert outcome.complete
    assert site.count("/behind") == 1
    asked = Counter((each.host, each.path) for each in site.requests)
    assert [each for each, count in asked.items() if count > 1 and each[1] != "/robots.txt"] == []
    assert all("links-unread" not in line.notes for line in crawls.log_lines(archive, outcome).values())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGPROF])
def test_a_page_that_kills_its_readers_is_archived_without_links(
    archive: Archive, site: Site, number: signal.Signals
) -> None:
    """SIGPROF is what the kernel sends where a page takes too long. Such a crawl is incomplete, and removes nothing."""
    site.add_html("/", "<a href=/heavy>heavy</a><a href=/other>other</a>")
    site.add(
        "/heavy", b"<title>heavy</title>" + b"".join(b"<a href=/other?%d>" % n for n in range(outlinks.MOST_LINKS))
    )
    site.add("/other", b"<title>other</title>" + _LONG + b"<a href=/behind>behind</a>")
    site.add_html("/behind", "behind")
    heavy = site.url("/heavy")
    with _crawling(archive, site.url("/"), depth=2) as work:
        for time in range(1, MOST_DEATHS + 1):
            until(lambda time=time: _is_at(archive, heavy, time), "that a process is at the page")
            os.kill(_reader(), number)
        outcome = work.end()
    assert not outcome.complete
    log = crawls.log_lines(archive, outcome)
    assert log[heavy].notes == ("links-unread", "added")
    assert log[site.url("/behind")].status == 200
    assert "heavy" in crawls.arcs(archive, site.host)


def _is_at(archive: Archive, url: str, time: int) -> bool:
    """Whether the answer that is being read, for this time, is that of `url`."""
    for marks in archive.jobs.glob("*/*.reading"):
        try:
            lines = marks.read_bytes().splitlines()
            with marks.with_suffix(".warc").open("rb") as warc:
                warc.seek(int(lines[-1]))
                return len(lines) == time and url.encode() in warc.read(1000)
        except (OSError, IndexError):
            continue
    return False


def test_a_page_that_is_cut_is_noted(archive: Archive, site: Site) -> None:
    """crawl.log says of which pages not all links were looked for."""
    site.add("/", b"<a href=/first>first</a>" + b" " * outlinks.LONGEST_BODY + b"<a href=/last>last</a>")
    site.add_html("/first", "first")
    outcome = crawl(archive, site.url("/"), max_file_size=20_000_000)
    log = crawls.log_lines(archive, outcome)
    assert log[site.url("/")].notes == ("links-cut", "added")
    assert log[site.url("/first")].notes == ("added",)
    assert outcome.complete and site.url("/last") not in log
