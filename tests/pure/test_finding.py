"""The room's one box: what is an address, and what is words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.properties import examples
from webarcfs.archive.model.urls import canonical, domain_of
from webarcfs.room.pages.finding import address_in, words_in
from webarcfs.room.replay.replay_url import archived_url, calendar_path
from webarcfs.search.query_language import parse_search

pytestmark = pytest.mark.pure


def nothing_archived(_: str) -> bool:
    return False


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("example.org", "http://example.org/"),
        ("www.example.org/x?b=1&a=2", "http://www.example.org/x?b=1&a=2"),
        ("  WWW.Example.ORG/X  ", "http://www.example.org/X"),
        ("https://example.org", "https://example.org/"),
        ("HTTPS://example.org:443/a/../b", "https://example.org/b"),
        ("http://intranet/x", "http://intranet/x"),
        ("http://example.test/", "http://example.test/"),
        ("example.org:8080/x", "http://example.org:8080/x"),
        ("www.example.test", "http://www.example.test/"),
        ("bücher.de/ä", "http://xn--bcher-kva.de/%C3%A4"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("例え.jp", "http://xn--r8jz45g.jp/"),
        ("192.0.2.7/a", "http://192.0.2.7/a"),
        ("[2001:db8::1]/", "http://[2001:db8::1]/"),
        ("example.co.uk", "http://example.co.uk/"),
        ("github.io", "http://github.io/"),
        ("example.org/a#b", "http://example.org/a"),
        ("http://anna:secret@example.org/x", "http://example.org/x"),
        ("example.org/a@b", "http://example.org/a@b"),
        ("example.org/?q=javascript:x", "http://example.org/?q=javascript:x"),
    ],
)
def test_an_address_is_known(text: str, url: str) -> None:
    assert address_in(text, nothing_archived) == url


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "#", "annual report", "report", '"example.org"', "„example.org“", "«example.org»",
        "javascript:alert(1)", "JavaScript://example.org/%0aalert(1)", "data:text/html,x", "mailto:a@example.org",
        "anna@example.org", "anna:secret@example.org/x", "ftp://example.org/", "site:example.org", "title:report",
        "during:2024", "example.org harbour", "http://example.org/ harbour", "http://example.org/a b",
        "-example.org", "report*", "org", "co", "AC/DC", "and/or", "3.14", "24.12.2020", "node.js", "report.pdf",
        "e.g.", "localhost:8080", "example.test/x", "http://", "http:///x", "http://a..b/", "http://<b>/",
        "//example.org/", "/example.org", "C#", "example.org\\x", "http://example.org:99999/", "harbour.", "..",
        "www.", "www", "http%3A%2F%2Fexample.org", "example.org\nharbour", "example.org\u00a0harbour", "x" * 9_000,
        "http://example.org/" + "x" * 9_000, "\ud800.org", "\x00example.org",
    ],
)  # fmt: skip
def test_all_else_is_words(text: str) -> None:
    assert address_in(text, nothing_archived) is None


def test_a_host_without_a_known_suffix_is_an_address_where_the_archive_has_it() -> None:
    asked: list[str] = []

    def is_archived(domain: str) -> bool:
        asked.append(domain)
        return domain in ("town.test", "localhost:8080")

    assert address_in("Town.Test/x", is_archived) == "http://town.test/x"
    assert address_in("localhost:8080", is_archived) == "http://localhost:8080/"
    assert address_in("other.test", is_archived) is None
    assert asked == ["town.test", "localhost:8080", "other.test"]
    assert address_in("localhost", lambda _: True) is None  # one word, as any other
    assert address_in("report/x", lambda _: True) is None


@given(st.text(max_size=60) | st.from_regex(r"(https?:)?/{0,3}[a-z@.:\[\]%\"-]{0,20}[/?#]?.{0,20}"), st.booleans())
@settings(max_examples=examples(400), deadline=None)
def test_whatever_is_typed_is_a_canonical_web_address_or_words(text: str, is_archived: bool) -> None:
    url = address_in(text, lambda _: is_archived)
    if url is not None:
        assert url.startswith(("http://", "https://")) and canonical(url) == url
        assert archived_url(url.encode()) == url  # the redirect leads to this very URL
        assert calendar_path(url).isascii()
        assert "@" not in domain_of(url)
        assert not any(char.isspace() for char in text.strip())
    assert address_in(f'"{text}"', lambda _: True) is None
    assert address_in(f"{text} word", lambda _: True) is None or not text.strip()
    assert address_in(f" {text}\t", lambda _: is_archived) == url


LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)


@given(st.lists(LABEL, min_size=1, max_size=4), st.sampled_from(["org", "de", "co.uk", "рф", "museum"]),
       st.from_regex(r"(/[A-Za-z0-9._~-]{0,10}){0,4}(\?[a-z=&0-9]{0,10})?", fullmatch=True))  # fmt: skip
@settings(max_examples=examples(200), deadline=None)
def test_a_host_with_a_known_suffix_is_the_same_address_with_and_without_a_scheme(
    labels: list[str], suffix: str, rest: str
) -> None:
    with_scheme = address_in(f"http://{'.'.join(labels)}.{suffix}{rest}", nothing_archived)
    assert address_in(f"{'.'.join(labels)}.{suffix}{rest}", nothing_archived) == with_scheme


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("http://example.org/", '"example.org"'),
        ("https://example.org/a/b?c=1", '"example.org/a/b?c=1"'),
        ("annual report", "annual report"),
        ('http://example.org/"', 'http://example.org/"'),
    ],
)
def test_an_address_is_searched_as_words(text: str, words: str) -> None:
    assert words_in(text) == words


@given(st.from_regex(r"[A-Za-z0-9]{0,40}", fullmatch=True))
@settings(max_examples=examples(50), deadline=None)
def test_the_words_of_an_address_are_a_search_without_a_fault(text: str) -> None:
    parse_search(words_in(f"http://{text}.example.org/{text}/"))
