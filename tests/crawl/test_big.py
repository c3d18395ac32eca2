"""What is big: bodies, and numbers of links. Memory stays flat."""

from __future__ import annotations

import hashlib
import os
import subprocess

import pytest

from agent.crawl.vocabulary import Status
from tests.bench.measure import agent, cost
from tests.support import crawls, nasty
from tests.support.crawls import crawl
from tests.support.site import Everywhere, Exchange, Site
from webarcfs.archive.config.directory import Archive
from webarcfs.content.outlinks import MOST_LINKS

pytestmark = pytest.mark.crawl

_MIB = 1 << 20
_BIG = 300 * _MIB
#: `make soak ARGS=big` has as many as are read of a page.
_LINKS = int(os.environ.get("BIG_LINKS", "10000"))


def test_a_body_of_300_mb(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/big.bin">big</a><a href="/big.html">big</a>')
    site.add_nasty("/big.bin", _big)
    site.add_nasty("/big.html", nasty.big_body(5 * _MIB, content_type="text/html"))
    done = cost(agent("crawl", "--archive", str(archive.root), "--wait=0", site.url()))
    assert done.exit_code == 0
    assert 0 < done.together < 250, "MiB, of the crawl and all that it runs"
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


def test_a_page_with_very_many_links(archive: Archive, site: Site) -> None:
    links = "".join(f'<a href="/page/{number}.html">{number}</a>\n' for number in range(_LINKS))
    site.add_html("/", f'<a href="/near">near</a>{links}')
    site.add("/robots.txt", "User-agent: *\nDisallow: /page/", "text/plain")
    site.add_html("/near", "near")
    outcome = crawl(archive, site.url())
    assert outcome.complete
    assert crawls.arcs(archive, site.host) == {"index.html", "near"}
    log = crawls.log_lines(archive, outcome)
    refused = [line for line in log.values() if line.status == Status.ROBOTS]
    assert len(refused) == min(_LINKS, MOST_LINKS - 1), "MOST_LINKS of a page are read"
    assert len(site.requests) == 3


def test_a_trap_ends(archive: Archive, site: Site) -> None:
    site.mount(Everywhere(nasty.trap()), at="/trap")
    site.add_html("/", '<a href="/trap/">t</a>')
    outcome = crawl(archive, site.url(), depth=6)
    assert len(crawls.arcs(archive, site.host)) == 1 + sum(2**level for level in range(6))
    assert outcome.complete
