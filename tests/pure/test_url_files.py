"""Lists of URLs in all forms that programs write, and in none."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent.crawl import url_files
from agent.crawl.sitemaps import read_listing
from agent.crawl.url_files import read_urls
from webarcfs.archive.model.errors import UsageError

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
_GZIP = gzip.compress(b"", mtime=0)[:10]
#: How files of each kind begin: text, bookmarks, a section that no page has, OPML, sitemaps, feeds, what is packed.
_STARTS = (b"x", b"<", b"<a href=", b"<![x", b"<opml>", b"<urlset>", b"<rss>", _GZIP[:2], _GZIP)


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
    assert [one.line for one in listed if one.fault and not one.is_no_page] == faults
    assert [one.line for one in listed if one.is_no_page] == [5, 6] * (text is BOOKMARKS)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(_STARTS), st.binary(max_size=300), st.booleans())
@example(b"<![x", b"", False)
@example(b"<![x", b"]>", False)
def test_no_content_raises_and_nothing_is_lost_in_silence(
    tmp_path: Path, start: bytes, content: bytes, packed: bool
) -> None:
    file = tmp_path / "list"
    file.write_bytes(gzip.compress(start + content, mtime=0) if packed else start + content)
    try:
        listed = list(read_urls(file))
    except UsageError as error:
        assert not packed and start.startswith(_GZIP[:2]) and str(file) in str(error)
    else:
        assert all(bool(one.url) != bool(one.fault) for one in listed)
        assert start != b"x" or listed[0].line == 1
    read_listing([start + content], "http://e.org/")


@pytest.mark.parametrize("text", ["<![x]>", "<![ 1>", "<![CDATA[x]]>"])
def test_sections_of_any_word_are_skipped(text: str) -> None:
    """Newer releases of Python do not ask for it."""
    parser = url_files._Anchors()
    parser.rawdata = text
    assert parser.parse_marked_section(0) == len(text)


@given(st.lists(st.integers(0, 99), max_size=30), st.integers(1, 40), st.booleans())
def test_a_sitemap_is_read_alike_however_it_comes(numbers: list[int], size: int, packed: bool) -> None:
    text = "<urlset>" + "".join(f"<url><loc>/p{number}?a=1&b=2</loc></url>" for number in numbers) + "</urlset>"
    data = gzip.compress(text.encode()) if packed else text.encode()
    listing = read_listing([data[at : at + size] for at in range(0, len(data), size)], "http://e.org/s.xml")
    assert listing.pages == tuple(dict.fromkeys(f"http://e.org/p{number}?a=1&b=2" for number in numbers))
    assert listing.is_sitemap and not listing.is_cut


def test_the_line_that_the_bound_cuts_is_no_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_files, "LONGEST_UNPACKED", 30)
    file = tmp_path / "list.gz"
    file.write_bytes(gzip.compress(b"http://e.org/a\nhttp://e.org/page-of-many\n"))
    listed = list(read_urls(file))
    assert [one.url for one in listed if one.url] == ["http://e.org/a"]
    assert [(one.line, "cut off" in one.fault) for one in listed[1:]] == [(2, True), (0, False)]


@pytest.mark.parametrize("more", [b"", b"\xff" * 100])
def test_the_last_line_of_a_packed_sitemap_that_is_cut_is_no_url(more: bytes) -> None:
    lines = b"".join(b"http://e.org/%d\n" % number for number in range(10))
    packed = gzip.compress(lines + b"http://e.org/page-of-many\n", compresslevel=0)
    listing = read_listing([packed[: packed.index(b"-of-many")], more], "http://e.org/sitemap.txt.gz")
    assert len(listing.pages) == 10 and listing.is_cut
