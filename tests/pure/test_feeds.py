"""The items of feeds: what each kind has as its page, what is no item, and what hostile feeds do."""

from __future__ import annotations

import gzip
import json

import pytest

from agent.crawl.sitemaps import LONGEST_JSON, read_feed

pytestmark = pytest.mark.pure

_URL = "https://www.e.org/news/feed.xml"
_RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
_ATOM = 'xmlns="http://www.w3.org/2005/Atom"'
_JSON = "https://jsonfeed.org/version/1.1"


def _items(text: str | bytes, most: int = 100) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_feed([data], _URL, most)[0].pages)


def _rss(*items: str) -> str:
    return (
        f"<rss version='2.0'><channel><link>/</link>{''.join(f'<item>{item}</item>' for item in items)}</channel></rss>"
    )


def _atom(*entries: str, root: str = "") -> str:
    body = "".join(f"<entry>{entry}</entry>" for entry in entries)
    return f"<feed {_ATOM} {root}><link href='/'/><id>http://id.e.org/</id>{body}</feed>"


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        (_rss("<link>/a</link><guid>http://e.org/other</guid>"), ["https://www.e.org/a"]),
        (_rss("<link> b?x=1&amp;y#f </link>"), ["https://www.e.org/news/b?x=1&y"]),
        (_rss("<link><![CDATA[http://o.org/c]]></link>"), ["http://o.org/c"]),
        (_rss("<guid>http://e.org/g</guid>"), ["http://e.org/g"]),
        (_rss("<guid isPermaLink='false'>http://e.org/g</guid>", "<guid>17</guid>"), []),
        (_rss("<enclosure url='a.mp3'/>"), ["https://www.e.org/news/a.mp3"]),
        (_rss("<enclosure url='a.mp3'/><link>p</link>"), ["https://www.e.org/news/p"]),
        (_rss("<link>mailto:a@e.org</link><guid>http://e.org/g</guid>"), ["http://e.org/g"]),
        (_rss("<source url='/s'>x</source><comments>/c</comments><image><link>/i</link></image>"), []),
        ("<rss version='0.91'><channel><item><link>/a</link></item><item><link>/a</link></item></channel></rss>",
         ["https://www.e.org/a"]),
        (f"<rdf:RDF {_RDF} xmlns='http://purl.org/rss/1.0/'><channel rdf:about='/'><link>/</link></channel>"
         "<item rdf:about='/a'><link>/b</link></item><item rdf:about='/c'/></rdf:RDF>",
         ["https://www.e.org/b", "https://www.e.org/c"]),
        (_atom("<link rel='self' href='s'/><link rel='alternate' type='text/html' href='a'/>"),
         ["https://www.e.org/news/a"]),
        (_atom("<link type='application/json' href='j'/><link href='a'/>"), ["https://www.e.org/news/a"]),
        (_atom("<link rel='enclosure' href='f.pdf'/>"), ["https://www.e.org/news/f.pdf"]),
        (_atom("<content src='c'/>", "<id>urn:uuid:1</id>", "<id>http://e.org/7</id>"),
         ["https://www.e.org/news/c", "http://e.org/7"]),
        (_atom("<source><link href='s'/></source><content type='xhtml'><div><link href='d'/></div></content>"), []),
        (_atom("<link href='a'/>", root="xml:base='http://b.org/x/'"), ["http://b.org/x/a"]),
        (f"<feed {_ATOM} xml:base='/x/'><entry xml:base='y/'><link xml:base='z/' href='a'/></entry>"
         "<entry><link href='b'/></entry></feed>", ["https://www.e.org/x/y/z/a", "https://www.e.org/x/b"]),
        ("<urlset><url><loc>http://e.org/a</loc></url></urlset>", ["http://e.org/a"]),
        ("http://e.org/a\nhttp://e.org/b\n", ["http://e.org/a", "http://e.org/b"]),
        (json.dumps({"version": _JSON, "items": [{"id": "1", "url": "/a"}, {"id": "http://e.org/b"}, {"id": 3}, 4,
                     {"external_url": "http://o.org/", "id": "5"}, {"attachments": [{"url": "m.mp3"}]}]}),
         ["https://www.e.org/a", "http://e.org/b", "http://o.org/", "https://www.e.org/news/m.mp3"]),
    ],
)  # fmt: skip
def test_items(text: str, pages: list[str]) -> None:
    assert _items(text) == pages
    assert _items(gzip.compress(text.encode())) == pages
    pieces = [text.encode()[at : at + 7] for at in range(0, len(text.encode()), 7)]
    assert list(read_feed(pieces, _URL, 100)[0].pages) == pages


@pytest.mark.parametrize(
    "text",
    ["", "<html><body><a href='/a'>a</a></body></html>", "<sitemapindex><sitemap><loc>/</loc></sitemap></sitemapindex>",
     "<opml/>", "{}", "[1]", "{" * 100_000, '{"items": []}', "sorry", "\0\1\2"],
)  # fmt: skip
def test_what_is_no_feed(text: str) -> None:
    listing, _ = read_feed([text.encode()], _URL, 10)
    assert not listing.is_sitemap and not listing.pages


def test_items_without_a_page_are_counted() -> None:
    assert read_feed([_rss("<title>t</title>", "<link/>", "<link>a</link>").encode()], _URL, 10)[1] == 2
    text = json.dumps({"version": _JSON, "items": [{"id": "1"}, {"url": "/a"}]})
    assert read_feed([text.encode()], _URL, 10)[1] == 1


@pytest.mark.parametrize("kind", ["rss", "json"])
def test_the_bound_of_items(kind: str) -> None:
    links = [f"http://e.org/{number}" for number in range(1000)]
    text = _rss(*(f"<link>{link}</link>" for link in links))
    if kind == "json":
        text = json.dumps({"version": _JSON, "items": [{"url": link} for link in links]})
    listing, _ = read_feed([text.encode()], _URL, 3)
    assert list(listing.pages) == links[:3] and listing.is_cut


def test_a_feed_that_is_cut_off_has_what_came() -> None:
    text = _rss(*(f"<link>/{number}</link>" for number in range(100)))
    assert _items(text[: len(text) // 2])[:3] == [f"https://www.e.org/{number}" for number in range(3)]


def test_json_without_end_is_no_feed() -> None:
    piece = b'{"version": "' + b"x" * (1 << 20)
    listing, _ = read_feed([piece] * (2 * (LONGEST_JSON >> 20)), _URL, 10)
    assert not listing.is_sitemap


def test_json_that_is_too_long_is_no_feed_in_one_piece_either() -> None:
    """A crawl reads the archived feed whole; what follows the bound takes nothing away from its end."""
    feed = json.dumps({"version": _JSON, "items": [{"url": "/a"}, {"id": "1"}], "x": "x" * (2 * LONGEST_JSON)}).encode()
    in_pieces = read_feed([feed[at : at + (1 << 16)] for at in range(0, len(feed), 1 << 16)], _URL, 10)
    assert read_feed([feed], _URL, 10) == in_pieces == read_feed([feed, feed], _URL, 10)
    assert not in_pieces[0].is_sitemap


def test_deep_and_wide_bases_end() -> None:
    deep = "<a xml:base='x/'>" * 100_000
    assert _items(f"<feed {_ATOM}><entry><link href='a'/></entry>{deep}") == ["https://www.e.org/news/a"]
