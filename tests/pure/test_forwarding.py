"""Where a page goes on by itself, and what a request says of the page that named its URL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.crawl.wget import referrer_of
from webarcfs.archive.model.urls import canonical
from webarcfs.content.outlinks import field_link, forward_of, is_quick

pytestmark = pytest.mark.pure

URL = "http://www.example.org/a/b?c"


@pytest.mark.parametrize(
    ("refresh", "target"),
    [
        ("0; url=/ok.html", "http://www.example.org/ok.html"),
        ("5;URL='x.html'", "http://www.example.org/a/x.html"),
        ('0,url="//f.org/#part"', "http://f.org/"),
        ("3 /x", "http://www.example.org/x"),
        (".5; /x", "http://www.example.org/x"),
        ("0;url=/voil\xc3\xa0", "http://www.example.org/voil%C3%A0"),
        ("0;url=/caf\xe9", "http://www.example.org/caf%E9"),
        ("0;url=https://f.org/x y", "https://f.org/x%20y"),
        ("6;url=/late", ""),
        ("999999999;url=/late", ""),
        ("9999999999999;url=/late", ""),
        ("0", ""),
        (" 5", ""),
        (" 5 ", ""),
        (" 5 /x", "http://www.example.org/x"),
        ("", ""),
        ("url=/x", ""),
        ("-1;url=/x", ""),
        ("0;url=javascript:x()", ""),
        ("0;url=", ""),
        (f"0;url={URL}", ""),
        ("0;url=#top", ""),
    ],
)
def test_where_a_refresh_goes(refresh: str, target: str) -> None:
    assert forward_of(URL, refresh, b"", "image/png", "utf-8") == target
    page = f"<title>t</title><meta http-equiv=' REFRESH ' content=\"{refresh.replace(chr(34), '&quot;')}\">"
    in_page = forward_of(URL, "", page.encode("latin-1"), "text/html", "windows-1252")
    assert in_page == target or not refresh.isascii()
    if target:
        assert [link.url for link in field_link(URL, refresh)] == [target]


def test_a_late_refresh_is_a_link_all_the_same() -> None:
    assert [link.url for link in field_link(URL, "600;url=/late")] == ["http://www.example.org/late"]
    assert field_link(URL, "nonsense") == field_link(URL, "") == field_link(URL, "30") == ()


@pytest.mark.parametrize(
    ("page", "target"),
    [
        ("<base href=http://f.org/x/><meta http-equiv=refresh content='0;y'>", "http://f.org/x/y"),
        (
            "<meta http-equiv=refresh content='30;/a'><meta http-equiv=refresh content='1;/b'>",
            "http://www.example.org/b",
        ),
        ("<meta http-equiv=refresh content='5'><meta http-equiv=refresh content='1;/b'>", "http://www.example.org/b"),
        ("<noscript><meta http-equiv=refresh content='0;/a'></noscript>", ""),
        ("<noscript>x</noscript><meta http-equiv=refresh content='0;/a'>", "http://www.example.org/a"),
        ("<!-- <meta http-equiv=refresh content='0;/a'> -->", ""),
        ("<body><p>late<meta http-equiv=refresh content='0;/a'>", "http://www.example.org/a"),
        ("<div>" * 5000 + "<meta http-equiv=refresh content='0;/a'>", "http://www.example.org/a"),
        ("<div>" * 5000 + "</noscript><meta http-equiv=refresh content='0;/a'>", "http://www.example.org/a"),
        ("<meta name=refresh content='0;/a'>", ""),
        ("<meta http-equiv=refresh content=' 5'><meta http-equiv=refresh content='1;/b'>", "http://www.example.org/b"),
    ],
)
def test_which_refresh_of_a_page_counts(page: str, target: str) -> None:
    assert forward_of(URL, "", page.encode(), "text/html", "utf-8") == target


@given(st.text(max_size=80), st.binary(max_size=200))
def test_nothing_in_a_refresh_raises(refresh: str, body: bytes) -> None:
    for text in (refresh, f"0;url={refresh}"):
        target = forward_of(URL, text, b"<meta http-equiv=refresh content='" + body + b"'>", "text/html", "utf-8")
        assert not target or canonical(target) == target
        assert is_quick(text) in (True, False)


@pytest.mark.parametrize(
    ("page", "url", "referrer"),
    [
        ("http://a.org/x?secret=1", "http://a.org/y", "http://a.org/"),
        ("http://a.org:81/x", "http://cdn.org/y", "http://a.org:81/"),
        ("https://a.org/x", "https://cdn.org/y", "https://a.org/"),
        ("https://a.org/x", "http://a.org/y", ""),
        ("http://a.org/x", "https://a.org/y", "http://a.org/"),
        ("", "http://a.org/", ""),
    ],
)
def test_what_a_request_says_of_its_page(page: str, url: str, referrer: str) -> None:
    assert referrer_of(page, url) == referrer
