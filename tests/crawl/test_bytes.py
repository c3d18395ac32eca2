"""What a server answers with a whole 200 is archived byte for byte, under the ARC of its URL (issue's "It shows")."""

from __future__ import annotations

import hashlib
import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urljoin

import pytest
import zstandard

from tests.support import crawls, nasty
from tests.support.crawls import Line, crawl
from tests.support.nasty_pages import COLLISIONS, collisions, encodings
from tests.support.realsites import HANDBOOK, POSTGRESQL, PYTHON, RealSite
from tests.support.site import Site, wire_path
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.arc_paths import arc_path, split
from webarcfs.archive.model.errors import UrlRefused
from webarcfs.archive.model.urls import canonical

pytestmark = pytest.mark.crawl

#: CI has one site here, and all of them through the mount (tests/mount/test_crawled.py); `make soak` has all here too.
_REAL = {"postgresql.example": POSTGRESQL}
if os.environ.get("WEBARC_SOAK"):
    _REAL |= {"python.example": PYTHON, "handbook.example": HANDBOOK}
_REFERENCE = re.compile(rb"<(?:a|img|link|script)\b[^<>]*?\b(?:href|src)=\"([^\"]+)")
_EMPTY_SEGMENT = re.compile(r"[^:]//")
_NO_LINKS = re.compile(rb"<!--.*?-->|<script\b[^>]*>.*?</script>|<textarea.*?</textarea>", re.DOTALL)


def test_real_sites_whole(archive: Archive, site: Site) -> None:
    here = {host: real for host, real in _REAL.items() if real.is_installed}
    if not here:
        pytest.skip(POSTGRESQL.missing)
    for host, real in here.items():
        site.mount(real.root, host=host)
    starts = [f"http://{host}{start}" for host, real in here.items() for start in real.starts]
    outcome = crawl(archive, *starts, depth=99, wget_args=crawls.through(site.proxy))
    log = crawls.log_lines(archive, outcome)
    assert outcome.complete and not outcome.warnings
    for host, real in here.items():
        _compare(archive, site, host, real, log)
        assert site.max_open(host) == 1


def _compare(archive: Archive, site: Site, host: str, real: RealSite, log: dict[str, Line]) -> None:
    """Every file that was asked for is archived, and every link leads to what was asked for or stands in the log."""
    asked = {path: real.root / unquote(path.partition("?")[0])[1:] for path in _asked(site, host)}
    served = {path: file for path, file in asked.items() if file.is_file()}
    archived = crawls.files(archive, host)
    assert archived.keys() == {_arc(f"http://{host}{path}") for path in served}
    for path, file in served.items():
        assert archived[_arc(f"http://{host}{path}")][1] == _blob(file), f"{path} differs"
        assert log[canonical(f"http://{host}{path}")].status == 200
    for path in asked.keys() - served.keys():
        assert log[canonical(f"http://{host}{path}")].status in (301, 404), path
    linked = {url for path, file in served.items() for url in _links(f"http://{host}{path}", file)}
    assert linked - log.keys() == set(), "linked, and not in crawl.log"
    assert len(served) > 200


def _asked(site: Site, host: str) -> set[str]:
    return {request.path for request in site.requests if request.host == host} - {"/robots.txt"}


def _arc(url: str) -> str:
    return split(arc_path(canonical(url)))[1]


def _blob(file: Path) -> str:
    body = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(body) + body, usedforsecurity=False).hexdigest()


def _links(url: str, file: Path) -> Iterator[str]:
    """The links of a page as a simple reader sees them, so that they do not depend on webarcfs.content.outlinks."""
    if file.suffix != ".html":
        return
    for raw in set(_REFERENCE.findall(_NO_LINKS.sub(b"", file.read_bytes()))):
        reference = html.unescape(raw.decode("utf-8", "replace")).strip()
        if _EMPTY_SEGMENT.search(reference):
            continue  # urljoin drops them, browsers do not
        target = urljoin(url, reference)
        if target.startswith(("http://", "https://")):
            try:
                yield canonical(target.partition("#")[0])
            except UrlRefused:
                continue


# -- names that get into each other's way ------------------------------------------------------------------------------


def test_colliding_names_are_all_archived(archive: Archive, site: Site) -> None:
    bodies = collisions(site)
    outcome = crawl(archive, site.url(), depth=1)
    assert outcome.complete and not outcome.warnings
    expected = {_arc(site.url(path)): body for path, body in bodies.items()}
    assert len(expected) == len(bodies)
    found = {arc: crawls.read(archive, site.host, arc) for arc in crawls.arcs(archive, site.host)}
    assert found == expected
    for path in bodies:
        title = "All" if path == "/" else _title_of(path)
        told = crawls.meta(archive, site.host, _arc(site.url(path)))
        assert (told.title, told.path) == (title, f"/{arc_path(canonical(site.url(path)))}")
    assert crawls.count(crawl(archive, site.url(), depth=1)) == (0, 0, 0, len(bodies))


def _title_of(path: str) -> str:
    """The path as its page's title has it: as people spell it, white space folded."""
    spelled = next(each for each in COLLISIONS if wire_path(each) == path)
    return " ".join(spelled.split())


def test_titles_in_every_encoding(archive: Archive, site: Site) -> None:
    titles = encodings(site)
    outcome = crawl(archive, site.url("/enc/"), depth=1)
    assert outcome.complete and not outcome.warnings
    assert {path: crawls.meta(archive, site.host, _arc(site.url(path))).title for path in titles} == titles


@pytest.mark.parametrize("paths", [("/blog", "/blog/x"), ("/blog/x", "/blog")])
def test_a_page_and_a_page_below_it_in_either_order(archive: Archive, site: Site, paths: tuple[str, str]) -> None:
    site.add_html("/", "".join(f'<a href="{path}">{path}</a>' for path in paths))
    for path in paths:
        site.add_html(path, f"This is {path}.", title=path)
    crawl(archive, site.url())
    assert crawls.arcs(archive, site.host) == {"index.html", "blog", "blog/x"}
    assert b"This is /blog/x." in crawls.read(archive, site.host, "blog/x")
    assert b"This is /blog." in crawls.read(archive, site.host, "blog")


@pytest.mark.parametrize("paths", [("/blog", "/blog/x"), ("/blog/x", "/blog")])
def test_a_page_and_a_page_below_it_in_two_crawls(archive: Archive, site: Site, paths: tuple[str, str]) -> None:
    for path in paths:
        site.add_html(path, f"This is {path}.")
        crawl(archive, site.url(path))
    assert crawls.arcs(archive, site.host) == {"blog", "blog/x"}
    site.add_html("/blog", "Changed.")
    site.add_html("/blog/x", "Changed too.")
    for path in paths:
        assert crawls.count(crawl(archive, site.url(path))) == (0, 1, 0, 0)
    assert b"Changed." in crawls.read(archive, site.host, "blog")
    assert b"Changed too." in crawls.read(archive, site.host, "blog/x")


def test_one_of_a_page_and_a_page_below_it_goes(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/a">a</a><a href="/a/x">x</a><a href="/b">b</a><a href="/b/x">x</a><a href="/c">c</a>')
    for path in ("/a", "/a/x", "/b", "/b/x", "/c"):
        site.add_html(path, f"This is {path}.")
    crawl(archive, site.url())
    site.gone("/a")
    site.gone("/b/x")
    assert crawls.count(crawl(archive, site.url())) == (0, 0, 2, 4)
    assert crawls.arcs(archive, site.host) == {"index.html", "a/x", "b", "c"}


# -- two URLs, one ARC -------------------------------------------------------------------------------------------------


def test_two_urls_of_one_arc(archive: Archive, site: Site) -> None:
    site.add_html("/", '<a href="/index.html">1</a><a href="/same/">2</a><a href="/same/index.html">3</a>')
    site.add_html("/index.html", "another one")
    site.add_html("/same/", "the same")
    site.add_html("/same/index.html", "the same")
    log = crawls.log_lines(archive, crawl(archive, site.url()))
    assert b"/same/" in crawls.read(archive, site.host, "index.html")
    assert b"another one" in crawls.read(archive, site.host, "index.html%http.index")
    assert log[site.url("/index.html")].notes == (f"differs-from:{site.url()}", "added")
    assert log[site.url("/same/index.html")].notes == (f"same-as:{site.url('/same/')}", "duplicate")


# -- codings -----------------------------------------------------------------------------------------------------------


def test_bodies_are_decoded_and_heads_are_not(archive: Archive, site: Site) -> None:
    answers = {
        "/gzip": nasty.gzip_body(),
        "/brotli": nasty.brotli_body(),
        "/zstd": nasty.page(zstandard.compress(nasty.BODY), headers={"Content-Encoding": "zstd"}),
        "/chunked": nasty.chunked(),
        "/no-length": nasty.no_content_length(),
        "/no-length-1.1": nasty.no_content_length(version="HTTP/1.1"),
    }
    for path, answer in answers.items():
        site.add_nasty(path, answer)
    site.add_html("/", "".join(f'<a href="{path}">{path}</a>' for path in answers))
    crawl(archive, site.url())
    for path in answers:
        assert crawls.read(archive, site.host, path[1:]) == nasty.BODY, path
    head = crawls.read_file(archive, site.host, "gzip/headers.http")
    assert head is not None and head.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nContent-Encoding: gzip\r\n" in head
    assert head.endswith(b"\r\n\r\n")


def test_what_no_decoder_knows_stays_as_it_was_sent(archive: Archive, site: Site) -> None:
    site.add("/", b"\x28\xb5\x2f\xfd not really", headers={"Content-Encoding": "zstd, odd one"})
    log = crawls.log_lines(archive, crawl(archive, site.url()))
    assert crawls.read(archive, site.host, "index.html") == b"\x28\xb5\x2f\xfd not really"
    assert "coding:zstd" in log[site.url()].notes
