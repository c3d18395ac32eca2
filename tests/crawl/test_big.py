"""What is big: bodies, and numbers of links. Memory stays flat."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys

import pytest

from agent.status import Status
from tests.support import crawls, nasty
from tests.support.crawls import crawl
from tests.support.site import Everywhere, Exchange, Site
from webarcfs.archive.directory import Archive

pytestmark = pytest.mark.crawl

_MIB = 1 << 20
_BIG = 300 * _MIB
_LINKS = 100_000

#: The command, and then the most memory that its process ever had. Not ru_maxrss: a child inherits its parent's.
_MEASURED = """
import atexit, sys
from agent.cli import main
atexit.register(lambda: print([line for line in open("/proc/self/status") if line.startswith("VmHWM")][0]))
sys.argv[0] = "webarc-agent"
main()
"""


def test_a_body_of_300_mb(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/big.bin">big</a><a href="/big.html">big</a>')
    site.add_nasty("/big.bin", _big)
    site.add_nasty("/big.html", nasty.big_body(5 * _MIB, content_type="text/html"))
    command = [sys.executable, "-c", _MEASURED, "crawl", "--archive", str(archive.root), "--wait=0", site.url()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    most = re.search(r"VmHWM:\s+(\d+) kB", done.stdout)
    assert most is not None and int(most[1]) * 1024 < 200 * _MIB, done.stdout
    expected = hashlib.sha256()
    for number in range(_BIG // _MIB):
        expected.update(_mebibyte(number))
    assert _sha256(archive, site, "big.bin") == expected.hexdigest()
    assert _sha256(archive, site, "big.html") == nasty.big_sha256(5 * _MIB)
    assert site.count("/big.bin") == 1


def _big(exchange: Exchange) -> None:
    """300 MB that git can compress: noise would only measure zlib."""
    exchange.begin(200, {"Content-Type": "application/octet-stream", "Content-Length": str(_BIG)})
    for number in range(_BIG // _MIB):
        exchange.send(_mebibyte(number))


def _mebibyte(number: int) -> bytes:
    return (b"%07d\n" % number) * (_MIB // 8)


def _sha256(archive: Archive, site: Site, arc: str) -> str:
    """Of a data file, without ever holding it."""
    name, blob = crawls.files(archive, site.host)[arc]
    assert name.startswith("data.")
    command = ["git", "cat-file", "blob", blob]
    digest = hashlib.sha256()
    with subprocess.Popen(command, cwd=archive.repository(site.host), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while piece := process.stdout.read(_MIB):
            digest.update(piece)
    return digest.hexdigest()


def test_a_page_with_100_000_links(archive: Archive, site: Site) -> None:
    links = "".join(f'<a href="/page/{number}.html">{number}</a>\n' for number in range(_LINKS))
    site.add_html("/", f'<a href="/near">near</a>{links}')
    site.add("/robots.txt", "User-agent: *\nDisallow: /page/", "text/plain")
    site.add_html("/near", "near")
    outcome = crawl(archive, site.url())
    assert outcome.complete
    assert crawls.arcs(archive, site.host) == {"index.html", "near"}
    log = crawls.log_lines(archive, outcome)
    refused = [line for line in log.values() if line.status == Status.ROBOTS]
    assert len(refused) == _LINKS - 1, "MOST_LINKS of a page are read"
    assert len(site.requests) == 3


def test_a_trap_ends(archive: Archive, site: Site) -> None:
    site.mount(Everywhere(nasty.trap()), at="/trap")
    site.add_html("/", '<a href="/trap/">t</a>')
    outcome = crawl(archive, site.url(), depth=6)
    assert len(crawls.arcs(archive, site.host)) == 1 + sum(2**level for level in range(6))
    assert outcome.complete
