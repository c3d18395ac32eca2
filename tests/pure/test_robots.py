"""RFC 9309: what a server's robots.txt permits."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.crawl.politeness import (
    LONGEST_DELAY,
    LONGEST_ROBOTS,
    allowed,
    crawl_delay,
    parse_robots,
    product_token,
    robots_url,
)
from webarcfs.archive.model.errors import UrlRefused

pytestmark = pytest.mark.pure

AGENT = "webarcfs/1.0 (+mailto:archive@example.org)"
SITE = "http://e.org"


@pytest.mark.parametrize(
    ("rules", "path", "may"),
    [
        ("", "/", True),
        ("User-agent: *\nDisallow: /", "/", False),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /a", "/ab", False),
        ("User-agent: *\nDisallow: /a", "/b", True),
        # section 2.2.2: the most specific rule, and allow where two are alike
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),
        # section 2.2.3: * and $
        ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif", False),
        ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif?z", True),
        # section 2.2.1: our own group goes before *, whatever the case; the others are not ours
        ("User-agent: *\nDisallow: /\n\nUser-agent: WebArcFS\nAllow: /", "/a", True),
        ("User-agent: webarcfs\nDisallow: /\n\nUser-agent: *\nAllow: /", "/a", False),
        ("User-agent: otherbot\nDisallow: /", "/a", True),
        ("User-agent: archive\nDisallow: /", "/a", True),  # only the product token counts, not the contact
        ("User-agent: a\nUser-agent: webarcfs\nDisallow: /x", "/x", False),
        # escapes mean the same
        ("User-agent: *\nDisallow: /caf%C3%A9", "/caf%C3%A9", False),
        ("User-agent: *\nDisallow: /café", "/caf%C3%A9", False),
        ("\ufeffUser-agent: *\nDisallow: /a", "/a", False),
        ("User-agent: *\r\nDisallow: /a\r\n", "/a", False),
        ("<html><body>Not found</body></html>", "/a", True),
        ("Disallow: /", "/a", True),
    ],
)
def test_rules(rules: str, path: str, may: bool) -> None:
    assert allowed(parse_robots(200, rules.encode()), AGENT, SITE + path) is may


@pytest.mark.parametrize(
    ("status", "known", "may"),
    [
        (200, True, False),
        (204, True, False),
        (301, True, True),
        (401, True, True),
        (403, True, True),
        (404, True, True),
        (429, True, True),
        (500, False, False),
        (503, False, False),
        (0, False, False),
        (-1, False, False),
        (-4, False, False),
    ],
)
def test_statuses(status: int, known: bool, may: bool) -> None:
    """Section 2.3.1: 4xx allows everything, 5xx and no answer nothing until it is known."""
    rules = parse_robots(status, b"User-agent: *\nDisallow: /")
    assert rules.known is known
    assert allowed(rules, AGENT, SITE + "/a") is may


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("User-agent: *\nCrawl-delay: 2.5", 2.5),
        ("User-agent: *\nCrawl-delay: 86400", LONGEST_DELAY),
        ("User-agent: *\nCrawl-delay: soon", None),
        ("User-agent: *\nCrawl-delay: -1", None),
        ("User-agent: *\nCrawl-delay: inf", None),
        ("User-agent: other\nCrawl-delay: 3", None),
        ("", None),
    ],
)
def test_crawl_delay(text: str, seconds: float | None) -> None:
    assert crawl_delay(parse_robots(200, text.encode()), AGENT) == seconds


def test_no_delay_where_there_are_no_rules() -> None:
    assert crawl_delay(parse_robots(404, b""), AGENT) is None
    assert crawl_delay(parse_robots(503, b""), AGENT) is None


def test_rules_can_be_kept_and_rebuilt() -> None:
    rules = parse_robots(200, b"\xef\xbb\xbfUser-agent: *\nDisallow: /\xff")
    again = parse_robots(rules.status, rules.text.encode())
    assert again == rules
    assert not allowed(again, AGENT, SITE + "/%EF%BF%BD")


def test_a_rule_that_is_cut_short_does_not_count() -> None:
    """Section 2.5: at least 500 KiB count."""
    assert LONGEST_ROBOTS >= 500 * 1024
    head = b"User-agent: *\nDisallow: /kept\n"
    rules = parse_robots(200, head + b"#" * (LONGEST_ROBOTS - len(head) - 12) + b"\nDisallow: /private\n")
    assert not allowed(rules, AGENT, SITE + "/kept")
    assert allowed(rules, AGENT, SITE + "/public")
    assert len(rules.text) <= LONGEST_ROBOTS


def test_groups_that_multiply_are_cut() -> None:
    agents = b"".join(b"User-agent: b%d\n" % n for n in range(16_000))
    started = time.process_time()
    rules = parse_robots(200, b"User-agent: *\nDisallow: /a\n" + agents + b"Disallow: /\n" * 20_000)
    assert time.process_time() - started < 5
    assert not allowed(rules, AGENT, SITE + "/a")


def test_a_long_list_of_unwanted_robots_is_read_whole() -> None:
    agents = b"".join(b"User-agent: b%d\nDisallow: /\n\n" % n for n in range(5_000))
    rules = parse_robots(200, agents + b"User-agent: webarcfs\nDisallow: /x\n")
    assert not allowed(rules, AGENT, SITE + "/x")
    assert allowed(rules, AGENT, SITE + "/y")


@pytest.mark.parametrize(
    ("url", "rules"),
    [
        ("http://e.org/a/b?c#d", "http://e.org/robots.txt"),
        ("https://e.org:8443/", "https://e.org:8443/robots.txt"),
        ("http://u:p@E.org:80/", "http://e.org/robots.txt"),
        ("http://[2001:db8::1]:81/x", "http://[2001:db8::1]:81/robots.txt"),
    ],
)
def test_robots_url(url: str, rules: str) -> None:
    assert robots_url(url) == rules


def test_robots_url_of_what_is_no_url() -> None:
    with pytest.raises(UrlRefused):
        robots_url("mailto:a@e.org")


def test_product_token() -> None:
    assert product_token("webarcfs/0.1 (+http://e.org/)") == "webarcfs"
    assert product_token("webarcfs") == "webarcfs"


@given(
    st.integers(-10, 600),
    st.lists(
        st.sampled_from(["User-agent:", " *", " webarcfs", "\n", "Disallow:", "Allow:", " /", "$", "*", "http://["])
        | st.text(max_size=5)
    ).map("".join),
    st.text(max_size=20),
)
def test_nothing_raises(status: int, text: str, path: str) -> None:
    rules = parse_robots(status, text.encode("utf-8", "surrogatepass"))
    for url in (SITE + "/" + path, SITE + "//[" + path, path):
        assert allowed(rules, AGENT, url) in (True, False)
    delay = crawl_delay(rules, AGENT)
    assert delay is None or 0 <= delay <= LONGEST_DELAY
