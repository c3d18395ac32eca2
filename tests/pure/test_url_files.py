"""Lists of URLs in all forms that programs write, and in none."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.crawl.sitemaps import read_listing
from agent.crawl.url_files import read_urls

pytestmark = pytest.mark.pure

BOOKMARKS = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<DL><p>
    <DT><A HREF="http://e.org/a?x=1&amp;y=2" ADD_DATE="1">A</A>
    <DT><A HREF="javascript:void(0)">B</A>
    <DT><A HREF="place:sort=8">C</A>
    <DT><A HREF="ftp://e.org/d">D</A>
</DL>"""
OPML = """<?xml version="1.0"?>
<opml version="2.0"><body>
<outline text="a" xmlUrl="http://e.org/feed" htmlUrl="http://e.org/"/>
</body></opml>"""
RSS = "<rss><channel><link>http://e.org/</link><item><link>http://e.org/1</link></item></channel></rss>"
SITEMAP = "<?xml version='1.0'?><urlset><url><loc>http://e.org/1</loc></url><url><loc>/rel</loc></url></urlset>"


@pytest.mark.parametrize(
    ("text", "urls", "faults"),
    [
        ("", [], []),
        (
            "e.org\nhttp://e.org/ü\r\n\r\n  http://e.org/x  \n",
            ["http://e.org/", "http://e.org/%C3%BC", "http://e.org/x"],
            [],
        ),
        ("# c\nhttp://e.org/#top # c\n#http://e.org/b", ["http://e.org/"], []),
        ("http://e.org/a http://e.org/b\nword\nftp://e.org/", [], [1, 2, 3]),
        (BOOKMARKS, ["http://e.org/a?x=1&y=2"], [7]),
        (OPML, ["http://e.org/feed", "http://e.org/"], []),
        (RSS, ["http://e.org/", "http://e.org/1"], []),
        (SITEMAP, ["http://e.org/1"], [0]),
    ],
)
@pytest.mark.parametrize("form", ["utf-8", "utf-8-sig", "utf-16", "gzip"])
def test_each_form(tmp_path: Path, text: str, urls: list[str], faults: list[int], form: str) -> None:
    file = tmp_path / "list"
    file.write_bytes(gzip.compress(text.encode()) if form == "gzip" else text.encode(form))
    listed = list(read_urls(file))
    assert [one.url for one in listed if one.url] == urls
    assert [one.line for one in listed if one.fault] == faults


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_no_content_raises_and_nothing_is_lost_in_silence(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "list"
    file.write_bytes(b"x" + content)
    for listed in read_urls(file):
        assert bool(listed.url) != bool(listed.fault)
    read_listing([content], "http://e.org/")


@given(st.lists(st.integers(0, 99), max_size=30), st.integers(1, 40), st.booleans())
def test_a_sitemap_is_read_alike_however_it_comes(numbers: list[int], size: int, packed: bool) -> None:
    text = "<urlset>" + "".join(f"<url><loc>/p{number}?a=1&b=2</loc></url>" for number in numbers) + "</urlset>"
    data = gzip.compress(text.encode()) if packed else text.encode()
    listing = read_listing([data[at : at + size] for at in range(0, len(data), size)], "http://e.org/s.xml")
    assert listing.pages == tuple(dict.fromkeys(f"http://e.org/p{number}?a=1&b=2" for number in numbers))
    assert listing.is_sitemap and not listing.is_cut
