"""From crawl to mount: what a server answered is what a reader of the mount gets, on sites that nobody here wrote."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mount.conftest import Mounter
from tests.support import forked, realsites
from tests.support.crawls import log_text
from tests.support.nasty import big_body, big_chunks, big_sha256
from tests.support.nasty_pages import collisions
from tests.support.realsites import RealSite
from tests.support.site import Site
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.arc_paths import arc_path, data_name

pytestmark = [pytest.mark.mount, pytest.mark.crawl]

_SITES = (realsites.POSTGRESQL, realsites.PYTHON, realsites.HANDBOOK)


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


def crawl(archive: Archive, *arguments: str) -> list[str]:
    """One crawl by the command; returns the lines of its crawl.log."""
    command = [sys.executable, "-c", "from agent.cli import main; main()", "--quiet", "crawl"]
    options = ["--archive", str(archive.root), "--wait", "0", "--depth", "20"]
    forked.run([*command, *options, *arguments], check=True)
    return log_text(archive, max(archive.reports.iterdir()).name).splitlines()


def in_mount(point: Path, url: str) -> Path:
    """Where the body of `url` is to be found."""
    return point / arc_path(url) / data_name(url)


@pytest.mark.parametrize("real", _SITES, ids=lambda real: real.package)
def test_a_real_site_byte_for_byte(archive: Archive, mount: Mounter, site: Site, real: RealSite) -> None:
    """Each file that the server gave whole is in the mount with its bytes; crawl.log has a reason for all others."""
    site.mount(real.root, at="/")
    log = crawl(archive, *(site.url(start) for start in real.starts))
    point = mount(archive).point
    answered = {line.split()[3]: line.split() for line in log}
    asked = {site.url(request.path) for request in site.requests}
    compared = 0
    for url in asked:
        columns = answered[url]
        if columns[1] == "200":
            path = real.root / url.split("/", 3)[3].partition("?")[0]
            body = (path / "index.html" if path.is_dir() else path).read_bytes()
            assert in_mount(point, url).read_bytes() == body, url
            compared += 1
        else:
            assert columns[1] in ("404", "301"), columns
    assert compared > 200
    assert all(line.split()[1] != "0" for line in log), "every URL that was seen has an outcome"


def test_collisions_byte_for_byte(archive: Archive, mount: Mounter, site: Site) -> None:
    """The site made for collisions, through the mount."""
    expected = collisions(site)
    crawl(archive, site.url("/"))
    point = mount(archive).point
    for path, body in expected.items():
        assert in_mount(point, site.url(path)).read_bytes() == body, path


def test_a_reader_keeps_its_version(archive: Archive, mount: Mounter, site: Site) -> None:
    """Who opened a large file before a crawl replaced it reads the old bytes to the end; new opens get the new ones."""
    size = 40_000_000
    site.add_html("/", '<a href="/big.bin">big</a>')
    site.add_nasty("/big.bin", big_body(size, seed=1))
    crawl(archive, site.url("/"))
    point = mount(archive).point
    path = in_mount(point, site.url("/big.bin"))
    with path.open("rb") as old:
        read = old.read(1_000_000)
        site.add_nasty("/big.bin", big_body(size, seed=2))
        crawl(archive, site.url("/"))
        _wait_for_lines(point, 2)
        assert path.read_bytes() == b"".join(big_chunks(size, seed=2))
        read += old.read()
    assert read == b"".join(big_chunks(size, seed=1))
    assert big_sha256(size, seed=1) != big_sha256(size, seed=2)


def test_who_reads_a_tag_finds_its_state(archive: Archive, mount: Mounter, site: Site) -> None:
    """A line of .changes is shown only when the state that it names is."""
    page = site.url("/")
    site.add("/", b"0")
    crawl(archive, page)
    point = mount(archive).point
    for number in range(1, 4):
        site.add("/", b"%d" % number)
        crawl(archive, page)
        tags = _wait_for_lines(point, number + 1)
        assert in_mount(point, page).read_bytes() == b"%d" % number
        assert (point / ".snapshots" / tags[-1] / "index.html" / "data.html").read_bytes() == b"%d" % number
        assert (point / ".snapshots" / tags[0] / "index.html" / "data.html").read_bytes() == b"0"


def _wait_for_lines(point: Path, count: int) -> list[str]:
    for _ in range(300):
        lines = (point / ".changes").read_text("utf-8").splitlines()
        if len(lines) >= count:
            return lines
        time.sleep(0.02)
    raise AssertionError(f"{count} lines did not come")
